"""The store of a run: one SQLite file. A transition is on disk before the agent acts again.

What is in it is proven whenever it is opened and whenever somebody else has written to it
(`optimist.runs.record`). Rows are added and never changed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from optimist.agents.agent import Update
from optimist.agents.doubts import BY_HAND
from optimist.runs.chain import Row
from optimist.runs.database import Reading, structure_damage, told
from optimist.runs.errors import DamagedError, RunError
from optimist.runs.files import JOURNAL, LOG, RECORD, is_there, require_regular, require_unshared
from optimist.runs.headers import check_run_header
from optimist.runs.in_notebook import store_html
from optimist.runs.lock import take_lock
from optimist.runs.maps import keep_map
from optimist.runs.record import EpisodeRow, Mark, Record, read_record
from optimist.runs.tables import CHAINED, FORMAT_VERSION, TABLES
from optimist.runs.witness import heard
from optimist.runs.writing import Writing, make_database
from optimist.transitions import Transition


class RunStore:
    """The record of one run. One writer at a time; readers never block it."""

    def __init__(self, directory: Path, reading: Reading | None, writing: Writing | None) -> None:
        self.directory = directory
        self._reading, self._writing = reading, writing
        self.closed = False
        self._record: tuple[object, Record] | None = None  # as it was when `_state` was that

    @classmethod
    def create(cls, directory: Path, header: dict[str, Any]) -> RunStore:
        """A new run in a new or empty directory."""
        document = json.dumps({"format_version": FORMAT_VERSION} | header)
        # twice: all else can be made again or done without, and a damage rarely meets both
        return cls.filled(directory, {"header": [(document,), (document,)]})

    @classmethod
    def filled(cls, directory: Path, rows: Mapping[str, Sequence[Row]]) -> RunStore:
        """A new run that has these rows, by table."""
        directory = Path(directory)
        with _usable(directory, "writable"):
            directory.mkdir(parents=True, exist_ok=True)
            release = take_lock(directory)
        try:
            require_regular(directory)
            if is_there(directory / RECORD):
                raise ValueError(
                    f"The run directory must be new; got {directory}, which holds a run. "
                    f"`optimist resume {directory}` goes on with it."
                )
            with told(directory):
                make_database(directory, rows)
                return cls._begun(Writing(directory, release))
        except BaseException:
            release()
            raise

    @classmethod
    def open(cls, directory: Path, *, writing: bool) -> RunStore:
        """An existing run; for writing it is locked, and brought to today's format."""
        directory = Path(directory)
        with _usable(directory, "writable" if writing else "readable"):
            if not is_there(directory / RECORD):
                raise ValueError(
                    f"The run directory must hold a run ({RECORD}); got {directory}, which does not."
                )
            require_regular(directory)
            if not writing:
                return cls._proven(directory)
            require_unshared(directory, RECORD, LOG, JOURNAL)
            if not os.access(directory, os.W_OK):
                raise ValueError(f"The run directory must be writable; got {directory}, which is not.")
            release = take_lock(directory)
        try:
            # SQLite only reads at first: of a damaged log it would keep what it understands
            with cls._proven(directory) as found, told(directory):
                record, damage = found.record, structure_damage(found._connection)
            if damage is not None:
                raise DamagedError.of(directory, damage)
            with told(directory):
                return cls._begun(Writing(directory, release), record)
        except BaseException:
            release()
            raise

    @classmethod
    def _proven(cls, directory: Path) -> RunStore:
        """A store to read from, whose record is whole."""
        with told(directory):
            store = cls(directory, Reading(directory), None)
        try:
            store.record  # noqa: B018 - proven
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _begun(cls, writing: Writing, old: Record | None = None) -> RunStore:
        """A store to write to; `old` is what is in it, if that may be of an old format."""
        store = cls(writing.directory, None, writing)
        try:
            if old is not None and old.version not in CHAINED:
                writing.upgrade(old)
            elif old is not None:
                store._record = store._state(), old
            writing.begin(store.record)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def record(self) -> Record:
        """All of it, whole; a DamagedError when it is not."""
        with told(self.directory), self._turn():
            state = self._state()
            if self._record is None or self._record[0] != state:
                witness = heard(self.directory)  # before the record: that is never behind it
                record = read_record(self._connection, witness)
                record.require_whole(self.directory)
                self._record = state, record
        return self._record[1]

    def _turn(self) -> AbstractContextManager[object]:
        """Of threads that share a store: one after the other."""
        return nullcontext() if self._writing is None else self._writing.turn

    def _state(self) -> object:
        """Something that is another after every change, whoever made it."""
        connection = self._connection
        return connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._writing is not None:
            return self._writing.connection
        assert self._reading is not None
        return self._reading.connection

    @property
    def header(self) -> dict[str, Any]:
        """Settings and all that says what the run is."""
        with told(self.directory):
            document = self.record.header
        check_run_header(document, self.directory)
        return document

    def want(self, episodes: int) -> None:
        """Record how many episodes the run is to have, for whoever resumes it."""
        header = self.header
        if header.get("episodes") != episodes:
            self._writer.add([("header", (json.dumps(header | {"episodes": episodes}),))])

    def append(
        self, transition: Transition, episode: int, *, outside: bool, ended: EpisodeRow | None = None
    ) -> None:
        """Record a transition, and the end of its episode with it; on disk when this returns."""
        row = (
            episode,
            _packed(transition.state),
            _packed(transition.action) if np.ndim(transition.action) else transition.action,
            float(transition.reward),
            _packed(transition.next_state),
            int(transition.terminated),
            int(transition.truncated),
            int(outside),
        )
        end = [] if ended is None else self._ends([ended])
        self._writer.add([("transitions", row), *end])

    def end_episodes(self, rows: Sequence[EpisodeRow]) -> None:
        """Record the ends of episodes that ended without a transition of their own; all of them or none."""
        self._writer.add(self._ends(rows))

    def record_plan(self, update: Update) -> None:
        """Record an update, and keep its map; of one made again after an interruption the last counts."""
        drift = {"mean_drift": None, "uncertainty_drift": None}
        row = vars(update) | (drift if update.drift is None else vars(update.drift))
        row |= {name: json.dumps(row[name]) for name in ("model", "rehearsal")}
        row |= {name: int(row[name]) for name in ("converged", "settled")}
        self._writer.add([("plans", tuple(row[name] for name in TABLES["plans"].columns))])
        if update.plan_map is not None:
            number = update.n_transitions
            keep_map(self.directory, number, self.digest_of(number), update.plan_map)

    def mark(self, *numbers: int, void: bool = True, reason: str) -> list[int]:
        """Mark transitions as void (not to be learned from) or not, all or none; for which that is news."""
        record = self.record
        count = len(record.chains["transitions"].rows)
        for number in numbers:
            if not 1 <= number <= count:
                raise ValueError(
                    f"The number of a transition must be from 1 to {count}, of those in {self.directory}; "
                    f"got {number}."
                )
        # what was marked by hand needs no other reason; by hand what is unexplained can be made sure
        already = record.marked(reason) | (record.marked(BY_HAND) if void else set())
        news = [number for number in dict.fromkeys(numbers) if (number in already) != void]
        self._writer.add([("marks", (number, int(void), reason, count)) for number in news])
        return news

    def _ends(self, rows: Sequence[EpisodeRow]) -> list[tuple[str, Row]]:
        """Ends of episodes as rows: the next ones, in order."""
        for number, row in enumerate(rows, self._writer.length("episodes") + 1):
            if row.episode != number:
                raise RunError(f"The next episode to end must be number {number}; got {row.episode}.")
        return [
            ("episodes", (row.steps, row.total_reward, row.transitions, row.ending, row.expected))
            for row in rows
        ]

    @property
    def _writer(self) -> Writing:
        if self._writing is None:
            raise RunError(f"The run in {self.directory} must be opened for writing; got it readonly.")
        return self._writing

    @property
    def n_transitions(self) -> int:
        """How many there are."""
        return len(self.record.chains["transitions"].rows)

    def transitions(self) -> list[Transition]:
        """All of them, in order."""
        return self.record.transitions

    def episodes(self) -> list[EpisodeRow]:
        """Those that have ended, in order."""
        return self.record.episodes

    def plans(self) -> list[dict[str, Any]]:
        """One dictionary per update, in order."""
        with told(self.directory):
            return self.record.plans

    def marks(self) -> list[Mark]:
        """Which transitions were marked, in the order in which they were."""
        return self.record.marks

    def marked(self, reason: str) -> set[int]:
        """Numbers of the transitions that are void for this reason."""
        return self.record.marked(reason)

    def digest_of(self, number: int) -> str | None:
        """What proves the first so many transitions; None when there are none, or nothing does."""
        digest = self._writing.digest_of(number) if self._writing is not None else None
        if digest is None:
            found = self.record.chains["transitions"].digests
            digest = found[number - 1] if 1 <= number <= len(found) else None
        return None if digest is None else digest.hex()

    def expected_of(self, episode: int) -> float | None:
        """What was expected of an episode when it began: what the last plan before it said."""
        begun = sum(row[0] < episode for row in self.record.chains["transitions"].rows)
        said = [row["rehearsal"].get("expected") for row in self.plans() if row["n_transitions"] <= begun]
        return said[-1] if said else None

    def open_episode(self) -> tuple[int, int, float]:
        """The episode that goes on: its number, steps and total reward so far."""
        record = self.record
        episode = len(record.episodes) + 1
        total, steps = 0.0, 0
        for row in record.chains["transitions"].rows:  # in this order, as the loop adds them up
            if row[0] == episode:
                total, steps = total + row[3], steps + 1
        return episode, steps, total

    def n_outside(self) -> int:
        """How many transitions began an episode, or led, outside the task's box."""
        return sum(row[7] for row in self.record.chains["transitions"].rows)

    def stopped_learning_at(self) -> int | None:
        """The number of transitions after which learning stopped."""
        last = self.plans()[-1:]
        return int(last[0]["n_transitions"]) if last and last[0]["settled"] else None

    def close(self) -> None:
        """Let go of it; once is enough, more does no harm."""
        self.closed = True
        if self._reading is not None:
            self._reading.close()
        if self._writing is not None:
            self._writing.close()

    def _repr_html_(self) -> str:
        return store_html(self)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _usable(directory: Path, how: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(f"The run directory must be {how}; got {directory}: {error.strerror}.") from error


def _packed(numbers: Any) -> bytes:
    return np.asarray(numbers, dtype="<f8").tobytes()
