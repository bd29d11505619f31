"""Record: all that the store of a run holds, read at once and proven, or as far as it can be.

Nothing is taken from SQLite on trust: every row is compared with its digest, every table with its length.
Runs of formats 1 to 3 have no digests; of those what can be seen is seen (a row that is missing, a state that
does not continue the one before it).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optimist.arrays import Action
from optimist.runs.chain import Row, genesis, link
from optimist.runs.errors import DamagedError, ForeignError, UnreadableError, said
from optimist.runs.headers import read_run_header
from optimist.runs.old_formats import modern, read_old
from optimist.runs.tables import CHAINED, FORMAT_VERSION, TABLES, Table, Tip, Tips
from optimist.transitions import Transition

TITLES = {"header": "settings"}  # of tables that people know by another name


@dataclass(frozen=True)
class EpisodeRow:
    """How one episode went."""

    episode: int  # from 1
    steps: int
    total_reward: float
    transitions: int  # in the run when it ended
    ending: str  # terminated, truncated or abandoned
    expected: float | None = None  # by the agent when it began

    def told(self) -> str:
        """In one line."""
        expected = "" if self.expected is None else f" (expected {self.expected:.4g})"
        return (
            f"episode {self.episode}: total reward {self.total_reward:.4g}{expected} in {self.steps} steps "
            f"({self.ending}), {self.transitions} transitions"
        )


def finished(rows: Sequence[EpisodeRow]) -> int:
    """How many episodes count: one that was abandoned is made again."""
    return sum(row.ending != "abandoned" for row in rows)


@dataclass(frozen=True)
class Mark:
    """That a transition is not to be learned from, or (not void) is to be after all."""

    transition: int  # its number, from 1
    void: bool
    reason: str
    made_after: int  # transitions there were when it was marked


@dataclass(frozen=True, eq=False)
class Chain:
    """One table as far as it is whole."""

    rows: list[Row]
    digests: list[bytes]  # none in a run of an old format
    damage: str | None = None  # what comes then
    later: tuple[Row, ...] = ()  # rows behind the damage that are themselves whole


@dataclass(frozen=True, eq=False)
class Record:
    """What a store holds. Its rows are whole; `damages` says where they should go on."""

    version: int  # of the format
    chains: dict[str, Chain]
    damages: tuple[str, ...]
    settled: Tips  # where the chains ended, as the store says
    witness: Tips  # and as the witness does

    @property
    def tips(self) -> Tips:
        """Where the chains end."""
        return {
            name: Tip(len(chain.digests), chain.digests[-1]) if chain.digests else Tip(0, genesis(name))
            for name, chain in self.chains.items()
        }

    def require_whole(self, directory: Path) -> None:
        """Raise DamagedError when it is not."""
        if self.damages:
            raise DamagedError.of(directory, self.damages[0])

    @property
    def header(self) -> dict[str, Any]:
        """Settings and all that says what the run is."""
        chain = self.chains["header"]
        try:
            return modern(read_run_header((*chain.rows, *chain.later)[-1][0]), self.version)
        except (IndexError, ValueError) as error:
            raise UnreadableError("its settings cannot be read") from error

    @property
    def transitions(self) -> list[Transition]:
        """All of them, in order; arrays of their own."""
        rows = self.chains["transitions"].rows
        if not rows:
            return []
        states, next_states = (_stacked([row[column] for row in rows]) for column in (1, 4))
        return [
            Transition(state, _action(row[2]), float(row[3]), next_state, bool(row[5]), bool(row[6]))
            for row, state, next_state in zip(rows, states, next_states, strict=True)
        ]

    @property
    def episodes(self) -> list[EpisodeRow]:
        """Those that have ended, in order."""
        return [EpisodeRow(number, *row) for number, row in enumerate(self.chains["episodes"].rows, 1)]

    @property
    def plans(self) -> list[dict[str, Any]]:
        """One dictionary per update, in the order of transitions; one that was made again counts once."""
        made: dict[int, dict[str, Any]] = {}
        for values in self.chains["plans"].rows:
            row = dict(zip(TABLES["plans"].columns, values, strict=True))
            made[row["n_transitions"]] = row | {name: _read(row[name]) for name in ("model", "rehearsal")}
        return [made[number] for number in sorted(made)]

    @property
    def marks(self) -> list[Mark]:
        """All of them, in order."""
        return [Mark(row[0], bool(row[1]), *row[2:]) for row in self.chains["marks"].rows]

    @property
    def void(self) -> set[int]:
        """Numbers of the transitions that are not to be learned from."""
        return {number for reason in {mark.reason for mark in self.marks} for number in self.marked(reason)}

    def marked(self, reason: str) -> set[int]:
        """Numbers of the transitions that are void for this reason; of several marks the last counts."""
        last = {mark.transition: mark.void for mark in self.marks if mark.reason == reason}
        return {number for number, void in last.items() if void}


def _action(value: int | bytes) -> Action:
    """A number, or a control [k]."""
    return _stacked([value])[0] if isinstance(value, bytes) else value


def _stacked(blobs: list[bytes]) -> Any:
    """States of one size as an array [n, d]."""
    return np.frombuffer(b"".join(blobs), dtype="<f8").astype(np.float64).reshape(len(blobs), -1)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise UnreadableError("what a plan says of itself cannot be read") from error


# --- reading ---


def read_record(connection: sqlite3.Connection, witness: Tips | None) -> Record:
    """The record, in one transaction; what is damaged is said in it, unless there is nothing left to read.

    `witness` is what was heard before: how far the record had come at least.
    """
    connection.execute("BEGIN")
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        version = _version(connection, chained="chains" in names)
        if version not in CHAINED:
            return _unproven(version, read_old(connection, version))
        chains = {name: _read_chain(connection, table) for name, table in TABLES.items()}
        settled = _settled(connection)
    finally:
        connection.rollback()
    chains["transitions"] = _continuing(chains["transitions"])
    damages = [*_told(chains), *_short(chains, settled, witness)]
    return Record(version, chains, tuple(damages), settled, witness or {})


def _version(connection: sqlite3.Connection, *, chained: bool) -> int:
    """The format, as the header says it, before anything in it is proven."""
    found = [_said_version(text) for (text,) in connection.execute("SELECT document FROM header")]
    known = [version for version in found if type(version) is int and version in CHAINED]
    if chained and (known or all(version is None for version in found)):
        return max(known, default=FORMAT_VERSION)  # or nobody knows, and the chain says what is wrong
    version = found[-1] if found else None
    if version is None:
        raise UnreadableError("its settings cannot be read")
    if type(version) is not int or version not in range(1, FORMAT_VERSION + (not chained)):
        raise ForeignError(version)
    if chained:
        raise UnreadableError(f"it is of format {FORMAT_VERSION} and says {version}")
    return version


def _said_version(text: Any) -> Any:
    try:
        return json.loads(text).get("format_version")
    except (AttributeError, RecursionError, TypeError, ValueError):
        return None


def _settled(connection: sqlite3.Connection) -> Tips:
    """Where the chains ended at least; what of that makes no sense is left out."""
    found: Tips = {}
    with suppress(sqlite3.Error, UnicodeError):
        for name, length, digest in connection.execute("SELECT name, length, digest FROM chains"):
            if type(length) is int and length >= 0 and isinstance(digest, bytes):
                found[name] = Tip(length, digest)
    return found


def _read_chain(connection: sqlite3.Connection, table: Table) -> Chain:
    """The rows of a table up to the first that is not what was written."""
    rows: list[Row] = []
    digests: list[bytes] = []
    later: list[Row] = []
    damage: str | None = None
    previous = genesis(table.name)
    try:
        for number, *values, digest in connection.execute(table.select):
            row = tuple(values)
            right = _is_right(previous, table, row, digest)
            if damage is None and number != len(rows) + 1:
                damage = f"number {len(rows) + 1} is missing"
            elif damage is None and not right:
                damage = f"number {number} is not what was written"
            if damage is None:
                rows.append(row)
                digests.append(digest)
            elif right:
                later.append(row)
            previous = digest
    except (sqlite3.Error, UnicodeError) as error:
        damage = damage or f"number {len(rows) + 1} cannot be read ({said(error)})"
    return Chain(rows, digests, damage, tuple(later))


def _is_right(previous: Any, table: Table, row: Row, digest: Any) -> bool:
    """Whether a row is the one that was written after the one with the digest `previous`."""
    try:
        return isinstance(digest, bytes) and link(previous, table.kinds, row) == digest
    except (TypeError, ValueError):
        return False


def _continuing(chain: Chain) -> Chain:
    """As far as every state is the one that the transition before it led to, and all are of one size."""
    for number, (before, row) in enumerate(_pairs(chain.rows), 1):
        size = len(before[4]) if before is not None else len(row[1])
        if not len(row[1]) == len(row[4]) == size or size % 8:
            return _cut(chain, number, "is of another size")
        if before is not None and before[0] == row[0] and before[4] != row[1]:
            return _cut(chain, number, "does not begin where the one before it ended")
    return chain


def _cut(chain: Chain, number: int, damage: str) -> Chain:
    return Chain(chain.rows[: number - 1], chain.digests[: number - 1], f"number {number} {damage}")


def _pairs(rows: list[Row]) -> Iterator[tuple[Row | None, Row]]:
    return zip([None, *rows], rows, strict=False)


def _told(chains: dict[str, Chain]) -> list[str]:
    return [
        f"its {TITLES.get(name, name)} are whole up to number {len(chain.rows)}, then {chain.damage}"
        for name, chain in chains.items()
        if chain.damage is not None
    ]


def _short(chains: dict[str, Chain], settled: Tips, witness: Tips | None) -> list[str]:
    """What is missing at the end, of tables that are whole as far as they go."""
    found = []
    for name, chain in chains.items():
        if chain.damage is None:
            known = [settled.get(name), (witness or {}).get(name, Tip(0, genesis(name)))]
            found += [told for told in (_missing(name, chain, tip) for tip in known) if told][:1]
    return found


def _missing(name: str, chain: Chain, known: Tip | None) -> str | None:
    """What is missing of a chain that is known to have come to a tip."""
    title = TITLES.get(name, name)
    if known is None:
        return f"where its {title} ended cannot be read"
    if known.length > len(chain.rows):
        return f"its {title} had come to number {known.length} and end after {len(chain.rows)}"
    return None if _reaches(chain, name, known) else f"its {title} are not those that were written"


def _reaches(chain: Chain, name: str, tip: Tip) -> bool:
    if tip.length == 0:
        return tip.digest == genesis(name)
    return len(chain.digests) >= tip.length and chain.digests[tip.length - 1] == tip.digest


def _unproven(version: int, rows: dict[str, list[Row]]) -> Record:
    chains = {name: Chain(rows.get(name, []), []) for name in TABLES}
    chains["transitions"] = _continuing(chains["transitions"])
    return Record(version, chains, tuple(_told(chains)), {}, {})
