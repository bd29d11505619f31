"""A report: the page with all data in it, one file that needs no network. Of a sweep: the comparison.

Maps of many plans are large. A report keeps those of the first and the last plan, and of as many others,
evenly spread, as there is room for.
"""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from optimist.runs import RunStore
from optimist.runs.frames import read_frame
from optimist.runs.maps import Map, Maps
from optimist.views.page.document import page
from optimist.views.page.many import ITSELF, find_runs, summary
from optimist.views.page.reading import describe_run, steps_of

ROOM = 12_000_000  # bytes of maps in a report of one run
ROOM_OF_MANY = 24_000_000  # in all, of a sweep
LIBRARIES = ("optimist", "numpy", "scipy", "numba", "gymnasium")


def write_report(directory: Path, file: Path) -> dict[str, Any]:
    """Write the report of a run, or of the runs below a directory; the data that are in it."""
    names = find_runs(directory)
    if not names:
        raise ValueError(f"The directory must hold a run, or several below it; got {directory}, with none.")
    require_target(file)
    data = report_data(directory, names)
    title = f"Optimist: {directory.resolve().name}"
    beside = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix}")
    try:
        beside.write_text(page(title, data), "utf-8")
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
    return data


def require_target(file: Path) -> None:
    """Raise ValueError when a report cannot be written there."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"The report must end in .html; got {file.name!r}.")
    if file.is_dir():
        raise ValueError(f"The report must be a file; {file} is a directory.")
    if not file.parent.is_dir():
        raise ValueError(f"The report must go to a directory that exists; got {file.parent}.")


def report_data(directory: Path, names: Sequence[str]) -> dict[str, Any]:
    """What the page of a report is given."""
    alone = list(names) == [ITSELF]
    room = ROOM if alone else ROOM_OF_MANY // len(names)
    listing = [{"id": ITSELF}] if alone else [summary(directory / name, name) for name in names]
    readable = [row["id"] for row in listing if not row.get("error")]
    return {
        "versions": {
            "report by": {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}
        },
        "runs": {"name": directory.resolve().name, "runs": listing, "message": None},
        "run": {name: _run(directory / name, room) for name in readable},
    }


def _run(directory: Path, room: int) -> dict[str, Any]:
    """One run whole."""
    maps = Maps(directory)
    with RunStore.open(directory, writing=False) as store:
        document, record = describe_run(store, maps), store.record
        found = {}
        for plan in document["plans"]:
            number = plan["n_transitions"]
            one = maps.read(number, store.digest_of(number)) if plan["map"] else None
            if one is not None:
                found[number] = one
        kept, frame = _fitting(found, room), read_frame(directory)
        for plan in document["plans"]:
            plan["map"] = plan["n_transitions"] in kept
        return {
            "version": "report.1",
            "error": None,
            "run": document,
            "steps": steps_of(record),
            "maps": {number: _inlined(found[number]) for number in kept},
            "frame": None if frame is None else base64.b64encode(frame).decode(),
        }


def _fitting(found: dict[int, Map], room: int) -> list[int]:
    """Which maps to keep: the more the better, the first and the last in any case."""
    numbers = list(found)
    for count in range(len(numbers), 2, -1):
        some = sorted({numbers[round(k * (len(numbers) - 1) / (count - 1))] for k in range(count)})
        if sum(len(found[number].content) for number in some) <= room:
            return some
    return numbers[:1] + numbers[1:][-1:]


def _inlined(one: Map) -> dict[str, Any]:
    return {"document": one.document, "content": base64.b64encode(one.content).decode()}
