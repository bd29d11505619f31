"""The runs below a directory: one that is itself a run, or a sweep's."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from optimist.documents import sayable
from optimist.runs import RunError, RunStore
from optimist.runs.files import RECORD
from optimist.views.page.reading import PAUSE, SHARE, RunReader, best_known

DEEPEST = 6  # directories below
MOST = 1000  # runs
ITSELF = "."


def find_runs(directory: Path) -> list[str]:
    """Where there are runs, as paths from `directory`; links are not followed."""
    if (directory / RECORD).exists():
        return [ITSELF]
    found = []
    for place, below, files in os.walk(directory):
        here = Path(place).relative_to(directory)
        below.sort()
        if RECORD in files:
            found.append(here.as_posix())
            below.clear()
        if len(here.parts) >= DEEPEST:
            below.clear()
        if len(found) >= MOST:
            break
    return found


class Watched:
    """A directory that is watched. Nothing outside of it is ever read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._readers: dict[str, RunReader] = {}
        self._summaries: dict[str, tuple[object, dict[str, Any]]] = {}
        self._runs: list[dict[str, Any]] = []
        self._due = 0.0
        self._lock = threading.Lock()

    def runs(self) -> dict[str, Any]:
        """The runs there are, each in a few lines; and what is wrong if there is none."""
        with self._lock:
            began = time.monotonic()
            if began >= self._due:
                self._runs = [self._summary(name) for name in find_runs(self.directory)]
                done = time.monotonic()
                self._due = done + max(PAUSE, SHARE * (done - began))
            message = None
            if not self.directory.is_dir():
                message = f"There is no directory {self.directory.name!r}, or no longer."
            elif not self._runs:
                message = f"There is no run in {self.directory.name!r} yet. The page waits for one."
            return {"name": self.directory.resolve().name, "runs": self._runs, "message": message}

    def _summary(self, name: str) -> dict[str, Any]:
        place = self.directory / name
        if name == ITSELF:
            return {"id": name}
        state = _state(place)
        if name not in self._summaries or self._summaries[name][0] != state:
            self._summaries[name] = state, summary(place, name)
        return self._summaries[name][1]

    def known(self, name: str) -> RunReader | None:
        """Who reads a run, if somebody does already."""
        return self._readers.get(name)

    def reader(self, name: str) -> RunReader | None:
        """Who reads a run; None when there is no run of that name, nor was any."""
        with self._lock:
            if name not in self._readers:
                if name != ITSELF and name not in find_runs(self.directory):
                    return None
                self._readers[name] = RunReader(self.directory / name if name != ITSELF else self.directory)
            return self._readers[name]

    def close(self) -> None:
        """Let go of all files."""
        for reader in self._readers.values():
            reader.close()


def summary(directory: Path, name: str) -> dict[str, Any]:
    """A run in a few lines."""
    try:
        with RunStore.open(directory, writing=False) as store:
            header, ends, plans = store.header, store.episodes(), store.plans()
            found: dict[str, Any] = sayable(
                {
                    "id": name,
                    "problem": header.get("problem"),
                    "agent": header.get("agent"),
                    "seed": header.get("seed"),
                    "wanted": header.get("episodes"),
                    "best_known": best_known(header.get("problem")),
                    "totals": [row.total_reward for row in ends],
                    "transitions": store.n_transitions or (ends[-1].transitions if ends else 0),
                    "plans": len(plans),
                    "settled_at": store.stopped_learning_at(),
                    "seconds": sum(
                        row[part]
                        for row in plans
                        for part in ("fit_seconds", "predict_seconds", "plan_seconds")
                    ),
                    "error": None,
                }
            )
            return found
    except (ValueError, RunError, OSError, KeyError, TypeError) as error:
        return {"id": name, "error": str(error), "totals": []}


def _state(directory: Path) -> object:
    """Something that is another after a change."""
    found = []
    for name in (RECORD, f"{RECORD}-wal"):
        try:
            status = (directory / name).stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
