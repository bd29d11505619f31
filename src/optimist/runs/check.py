"""Is a record whole? From where on not, what can be saved? `optimist check` and `optimist.check`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from optimist.agents.doubts import BY_HAND
from optimist.box import Box
from optimist.runs.agent_file import checkpointed, lost
from optimist.runs.chain import Row
from optimist.runs.database import Reading, structure_damage, told
from optimist.runs.errors import DamagedError, RunError, UnreadableError, said
from optimist.runs.files import AGENT, RECORD, is_there, require_regular
from optimist.runs.health import complaints
from optimist.runs.maps import copy_maps
from optimist.runs.record import EpisodeRow, Record, read_record
from optimist.runs.store import RunStore
from optimist.runs.tables import CHAINED, FORMAT_VERSION, Tips
from optimist.runs.witness import heard
from optimist.runs.writing import make_database
from optimist.transitions import Transitions

PAGE = 4096  # bytes; what SQLite makes them of unless told otherwise


@dataclass(frozen=True)
class Checked:
    """What was found in the directory of a run."""

    run: str
    ok: bool  # all that was written is there, as it was written
    problems: tuple[str, ...]  # what is not
    warnings: tuple[str, ...]  # what costs time, or cannot be known
    format: int | None  # of the record; None when it cannot be read
    transitions: int  # whole ones, up to the first that is not
    episodes: int
    plans: int
    void: tuple[int, ...]  # numbers of the transitions not to be learned from
    savable: bool  # whether a new run can be made of what is whole
    saved: str | None = None  # where one was


def check(run: str | Path, *, void: Iterable[int] = (), salvage: str | Path | None = None) -> Checked:
    """Look whether the record of a run is whole, and what of it can be saved. Nothing is changed by that.

    Args:
        run: the directory.
        void: numbers of transitions, from 1, to mark as not to be learned from. They stay in the record.
        salvage: a new directory, for a run of what is whole. `resume` goes on from there.

    """
    directory, numbers = Path(run), list(void)
    if numbers:
        with RunStore.open(directory, writing=True) as store:
            store.mark(*numbers, reason=BY_HAND)
    record, problems, warnings = _examined(directory)
    rows = None if record is None else whole_part(record)
    if salvage is not None:
        if rows is None:
            raise DamagedError(f"A run to salvage must have settings that can be read; got {directory}.")
        RunStore.filled(Path(salvage), rows).close()
        copy_maps(directory, Path(salvage))
    whole = rows or {}
    counts = {name: len(whole.get(name, ())) for name in ("transitions", "episodes")}
    counts["plans"] = len({row[0] for row in whole.get("plans", ())})  # one made again counts once
    return Checked(
        run=str(run),
        ok=not problems,
        problems=tuple(problems),
        warnings=tuple(warnings),
        format=None if record is None else record.version,
        **counts,
        void=() if record is None else tuple(sorted(record.void)),
        savable=rows is not None,
        saved=None if salvage is None else str(salvage),
    )


def _examined(directory: Path) -> tuple[Record | None, list[str], list[str]]:
    """What can be read of a record, its problems, and warnings."""
    if not is_there(directory / RECORD):
        raise ValueError(f"The run directory must hold a run ({RECORD}); got {directory}, which does not.")
    require_regular(directory)
    document, witness = checkpointed(directory), heard(directory)  # the record is never behind them
    try:
        record, disorder = _read(directory, witness)
    except DamagedError as error:
        found = _read_without_first_page(directory, witness)
        return found, [f"it cannot be opened: {said(error.__cause__ or error)}"], []
    problems = [*record.damages, *([] if disorder is None else [disorder])]
    warnings = []
    known = _learned_from(document, record)
    if not record.damages and known > _length(record):
        problems.append(lost(known, _length(record)))
    if document is None and is_there(directory / AGENT):
        warnings.append(f"{AGENT} cannot be used: what it knew is learned again from the record")
    warnings += complaints_of(record)
    if record.version not in CHAINED:
        warnings.append(
            f"it is of format {record.version}, which proves nothing: a number that changed would not be seen"
        )
    elif record.damages:
        found = _read_without_first_page(directory, witness)
        if found is not None and _length(found) > _length(record):
            record = found
    return record, problems, warnings


def complaints_of(record: Record) -> list[str]:
    """What looks wrong in what was recorded: mostly a task that was told wrongly."""
    try:
        task = record.header["task"]
        rows, plans = record.transitions, record.plans
        drawn = plans[-1]["rehearsal"].get("box", task) if plans else task  # by the agent, if nobody told it
        box = Box(drawn["low"], drawn["high"], periodic=drawn["periodic"])
        settled = not plans or bool(plans[-1]["settled"])
        found = complaints(
            box,
            len(task["controls"]),
            Transitions.of(rows) if rows else None,
            record.episodes,
            settled=settled,
        )
    except (KeyError, TypeError, ValueError, UnreadableError):
        return []  # what cannot be read is told elsewhere
    return [complaint.says for complaint in found]


def _length(record: Record) -> int:
    return len(record.chains["transitions"].rows)


def _read(directory: Path, witness: Tips | None) -> tuple[Record, str | None]:
    """The record, and what SQLite finds wrong with it."""
    with told(directory), closing(Reading(directory)) as reading:
        return read_record(reading.connection, witness), structure_damage(reading.connection)


def _read_without_first_page(directory: Path, witness: Tips | None) -> Record | None:
    """What can be read with the first page of an empty record in the place of its own.

    That page says where the tables are. Without it SQLite reads nothing, however whole they may be; and they
    are in the same place in all records that were made by this version.
    """
    with TemporaryDirectory(prefix="optimist-") as name:
        empty, mended = (Path(name) / below for below in ("empty", "mended"))
        empty.mkdir()
        mended.mkdir()
        make_database(empty, {})
        page = bytearray((empty / RECORD).read_bytes()[:PAGE])
        content = (directory / RECORD).read_bytes()
        page[28:32] = (len(content) // PAGE).to_bytes(4, "big")  # how many there are
        (mended / RECORD).write_bytes(bytes(page) + content[PAGE:])
        try:
            record, _ = _read(mended, witness)
        except (DamagedError, RunError):
            return None
    return record if whole_part(record) is not None else None


def _learned_from(document: dict[str, Any] | None, record: Record) -> int:
    """How many transitions the checkpoint knows, if it is one of this run."""
    try:
        header = record.header
        assert document is not None
        ours = all(document[name] == header[name] for name in ("settings", "seed", "task"))
        return int(document["knowledge"]["n_transitions"]) if ours else 0
    except (AssertionError, KeyError, TypeError, UnreadableError, ValueError):
        return 0


# --- what can be saved ---


def whole_part(record: Record, count: int | None = None) -> dict[str, list[Row]] | None:
    """The rows of a run of the first `count` transitions, or of all that are whole; None without settings."""
    try:
        header = json.dumps(record.header | {"format_version": FORMAT_VERSION})
    except UnreadableError:
        return None
    transitions = record.chains["transitions"].rows
    count = len(transitions) if count is None else min(count, len(transitions))
    return {
        "header": [(header,), (header,)],
        "transitions": transitions[:count],
        "episodes": _episodes(record, count),
        "plans": [row for row in record.chains["plans"].rows if row[0] <= count],
        "marks": [(*row[:3], min(row[3], count)) for row in record.chains["marks"].rows if row[0] <= count],
    }


def _episodes(record: Record, count: int) -> list[Row]:
    """How the episodes went that ended with the first `count` transitions: as recorded, else added up."""
    recorded = record.chains["episodes"].rows
    if not record.settled.get("transitions", (1,))[0]:
        return recorded  # of a run that records nothing smaller
    recorded = [row for row in recorded if row[2] <= count]
    added = _added_up(record.chains["transitions"].rows[:count])
    return recorded + [
        (row.steps, row.total_reward, row.transitions, row.ending, row.expected)
        for row in added[len(recorded) :]
    ]


def _added_up(rows: list[Row]) -> list[EpisodeRow]:
    """The episodes that ended, of transitions."""
    ended: list[EpisodeRow] = []
    steps, total = 0, 0.0
    for number, row in enumerate(rows, 1):
        steps, total = steps + 1, total + row[3]
        follows = rows[number][0] if number < len(rows) else row[0]
        if row[5] or row[6] or follows != row[0]:
            ending = "terminated" if row[5] else "truncated" if row[6] else "abandoned"
            ended.append(EpisodeRow(row[0], steps, total, number, ending))
            steps, total = 0, 0.0
    return ended
