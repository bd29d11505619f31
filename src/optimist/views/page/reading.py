"""What a run says of itself, for the page: as JSON can say it, read again when something changed."""

from __future__ import annotations

import base64
import json
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optimist.documents import sayable
from optimist.runs import RunError, RunStore
from optimist.runs.check import complaints_of
from optimist.runs.files import RECORD, is_there
from optimist.runs.maps import NO_RECORD, Map, Maps
from optimist.runs.record import Record, finished
from optimist.systems import SYSTEMS

PAUSE = 0.6  # seconds between two readings, at least
SHARE = 50.0  # times as long as a reading took nothing is read: the run comes first
PLAN = (
    "n_transitions", "fit_seconds", "predict_seconds", "plan_seconds", "sweeps", "residual", "converged",
    "mean_drift", "uncertainty_drift", "mean_uncertainty", "settled", "rehearsal", "model",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Look:
    """A run as it was when it was last looked at, put into words once for all who ask."""

    version: str  # another after every change
    error: str | None  # why there is nothing newer to see
    document: dict[str, Any] | None  # of what was read last
    record: Record | None

    @cached_property
    def _said(self) -> bytes:
        return told({"version": self.version, "error": self.error, "run": self.document})[:-1]

    @cached_property
    def _steps(self) -> dict[int, bytes]:
        return {}

    def said(self, since: int) -> bytes:
        """All of it, and the transitions after the first `since`."""
        if since not in self._steps:
            nothing = {"since": 0, "count": 0}
            self._steps[since] = told(nothing if self.record is None else steps_of(self.record, since))
        return b'%s,"steps":%s}' % (self._said, self._steps[since])


NOTHING = Look("0", None, None, None)


class RunReader:
    """One run. It may appear, grow, be damaged and disappear while it is watched."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.maps = Maps(directory)
        self._store: RunStore | None = None
        self._file: tuple[int, int] | None = None  # which one is open
        self._look = NOTHING
        self._counter = 0
        self._due = 0.0
        self._lock = threading.Lock()

    def look(self) -> Look:
        """What there is to see; read again if it is time to, and something has changed."""
        with self._lock:
            began = time.monotonic()
            if began >= self._due:  # nobody has read it while we waited
                self._read()
                done = time.monotonic()
                self._due = done + max(PAUSE, SHARE * (done - began))
            return self._look

    @property
    def seen(self) -> Look | None:
        """What there is to see without reading anything; None when it is time to."""
        return self._look if time.monotonic() < self._due else None

    def _read(self) -> None:
        try:
            store = self._opened()
            if store is None:
                seen = self._look.document is not None
                self._note("The run was removed while it was watched." if seen else None)
                return
            record = store.record
            if record is not self._look.record or self._look.error is not None:
                self._counter += 1
                version = f"{self._file and self._file[1]}.{self._counter}"
                self._look = Look(version, None, describe_run(store, self.maps), record)
        except (ValueError, RunError, OSError, KeyError, TypeError) as error:
            self._note(str(error) or type(error).__name__)

    def _note(self, error: str | None) -> None:
        if error != self._look.error:
            self._counter += 1
            self._look = Look(f"e.{self._counter}", error, self._look.document, self._look.record)
        self._close()

    def _opened(self) -> RunStore | None:
        """The store that is there now; None when there is none."""
        file = self.directory / RECORD
        if not is_there(file):
            return None
        status = file.stat()
        if self._store is None or self._file != (status.st_dev, status.st_ino):
            self._close()
            self._store = RunStore.open(self.directory, writing=False)
            self._file = status.st_dev, status.st_ino
        return self._store

    def map_of(self, number: int) -> Map | None:
        """The map of the plan after so many transitions."""
        with self._lock:
            record = self._look.record
            return None if record is None else self.maps.read(number, _digest(record, number))

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None

    def close(self) -> None:
        """Let go of the files."""
        with self._lock:
            self._close()


def describe_run(store: RunStore, maps: Maps) -> dict[str, Any]:
    """All that there is to say of a run, but for its transitions and maps."""
    record, header = store.record, store.header
    task = header.get("task") or {}
    ends = record.episodes
    pictured = maps.found()
    plans = []
    for row in record.plans:
        number = row["n_transitions"]
        digest = _digest(record, number)
        has_map = (number, digest or NO_RECORD) in pictured
        plans.append({name: row[name] for name in PLAN} | {"map": has_map})
    found: dict[str, Any] = sayable(
        {
            "header": header,
            "format": record.version,
            "names": _names(header, len(task.get("low", []))),
            "best_known": best_known(header.get("problem")),
            "episodes": [
                [row.steps, row.total_reward, row.transitions, row.ending, row.expected] for row in ends
            ],
            "finished": finished(ends),
            "wanted": header.get("episodes"),  # None: so many transitions were asked for
            "plans": plans,
            "settled": bool(plans and plans[-1]["settled"]),
            "marks": [[mark.transition, mark.void, mark.reason, mark.made_after] for mark in record.marks],
            "void": sorted(record.void),
            "outside": store.n_outside(),
            "complaints": complaints_of(record),
        }
    )
    return found


def steps_of(record: Record, since: int = 0) -> dict[str, Any]:
    """The transitions of a record after the first `since`, packed; where episodes lead to is in `tips`."""
    rows = record.chains["transitions"].rows
    since = since if 0 <= since <= len(rows) else 0
    some = rows[since:]
    tips = {
        since + k: np.frombuffer(row[4], dtype="<f8").tolist()
        for k, row in enumerate(some)
        if k + 1 == len(some) or some[k + 1][0] != row[0]
    }
    return {
        "since": since,
        "count": len(rows),
        "states": _packed(b"".join(row[1] for row in some)),
        "actions": [_action(row[2]) for row in some],
        "rewards": [float(f"{row[3]:.6g}") for row in some],
        "episodes": [row[0] for row in some],
        "tips": sayable(tips),
    }


def best_known(problem: Any) -> float | None:
    """The best total anybody found, of one of ours."""
    return SYSTEMS[problem].best_known if problem in SYSTEMS else None


def _names(header: dict[str, Any], n_dims: int) -> list[str]:
    problem, recorded = str(header.get("problem")), header.get("axis_names")
    names = SYSTEMS[problem].axis_names if problem in SYSTEMS else recorded
    return list(names) if names and len(names) == n_dims else [f"coordinate {axis}" for axis in range(n_dims)]


def _digest(record: Record, number: int) -> str | None:
    digests = record.chains["transitions"].digests
    return digests[number - 1].hex() if 1 <= number <= len(digests) else None


def _action(recorded: int | bytes) -> int | list[float]:
    """The number of a listed control; or the control itself, where any may be applied."""
    return np.frombuffer(recorded, dtype="<f8").tolist() if isinstance(recorded, bytes) else recorded


def _packed(states: bytes) -> str:
    """Numbers as base64 of float32."""
    return base64.b64encode(np.frombuffer(states, dtype="<f8").astype("<f4").tobytes()).decode()


def told(document: Any) -> bytes:
    """As it goes over the wire."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
