"""The store of a run: one SQLite file. A transition is on disk before the agent acts again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from optimist.agents.agent import Update
from optimist.arrays import FloatArray
from optimist.runs.headers import parse_run_header
from optimist.runs.lock import take_lock
from optimist.transitions import Transition

FORMAT_VERSION = 3
FILE = "run.sqlite"
# what a run deleted by hand may have left behind, and would be taken for a part of the new one
LEFTOVERS = (f"{FILE}.new", f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", "agent.optimist")

SCHEMA = """
CREATE TABLE header (document TEXT NOT NULL);
CREATE TABLE transitions (
    number INTEGER PRIMARY KEY,       -- from 1
    episode INTEGER NOT NULL,         -- from 1
    state BLOB NOT NULL,              -- float64, little-endian, as observed
    action INTEGER NOT NULL,
    reward REAL NOT NULL,
    next_state BLOB NOT NULL,
    terminated INTEGER NOT NULL,
    truncated INTEGER NOT NULL,
    outside INTEGER NOT NULL          -- the successor lay outside the task's box (clipped to plan on it)
);
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY,
    steps INTEGER NOT NULL,
    total_reward REAL NOT NULL,
    transitions INTEGER NOT NULL,     -- in the run when it ended
    ending TEXT NOT NULL,             -- terminated, truncated, or abandoned (an outside environment, resumed)
    expected REAL                     -- what the agent expected it to earn when it began, if it did
);
CREATE TABLE plans (
    n_transitions INTEGER PRIMARY KEY,
    fit_seconds REAL NOT NULL,
    predict_seconds REAL NOT NULL,
    plan_seconds REAL NOT NULL,
    sweeps INTEGER NOT NULL,
    residual REAL NOT NULL,
    converged INTEGER NOT NULL,
    mean_drift REAL,
    uncertainty_drift REAL,
    mean_uncertainty REAL NOT NULL,
    model TEXT NOT NULL,              -- JSON: what the model says of itself
    settled INTEGER NOT NULL,
    rehearsal TEXT NOT NULL           -- JSON: layout that won, what was tried, what an episode shall earn
);
"""

# From format 1, whose plans had a column for each thing that Gaussian processes say of themselves.
UPGRADE = """
BEGIN IMMEDIATE;
ALTER TABLE plans ADD COLUMN model TEXT NOT NULL DEFAULT '{}';
UPDATE plans SET model = json_object(
    'basis_sizes', json(basis_sizes), 'hyperparameters', json(hyperparameters)
);
ALTER TABLE plans DROP COLUMN basis_sizes;
ALTER TABLE plans DROP COLUMN hyperparameters;
UPDATE header SET document = json_set(document, '$.settings.model.learner', 'gp')
    WHERE json_type(document, '$.settings.model') = 'object';
UPDATE header SET document = json_set(document, '$.format_version', 2);
COMMIT;
"""

# From format 2, when nothing was rehearsed.
UPGRADE_2 = """
BEGIN IMMEDIATE;
ALTER TABLE episodes ADD COLUMN expected REAL;
ALTER TABLE plans ADD COLUMN rehearsal TEXT NOT NULL DEFAULT '{}';
UPDATE header SET document = json_insert(document, '$.settings.planning.rehearse', json('false'))
    WHERE json_type(document, '$.settings.planning') = 'object';
UPDATE header SET document = json_set(document, '$.format_version', 3);
COMMIT;
"""


class RunError(Exception):
    """The work failed; what was recorded is safe. One sentence."""


@dataclass(frozen=True)
class EpisodeRow:
    """How one episode went."""

    episode: int  # from 1
    steps: int
    total_reward: float
    transitions: int  # in the run when it ended
    ending: str  # terminated, truncated or abandoned
    expected: float | None = None  # by the agent when it began


def finished(rows: Sequence[EpisodeRow]) -> int:
    """How many episodes count: one that was abandoned is made again."""
    return sum(row.ending != "abandoned" for row in rows)


class RunStore:
    """The record of one run. One writer at a time; readers never block it."""

    def __init__(self, directory: Path, connection: sqlite3.Connection, lock: FileLock | None) -> None:
        self.directory = directory
        self._connection = connection
        self._lock = lock

    @classmethod
    def create(cls, directory: Path, header: dict[str, Any]) -> RunStore:
        """A new run in a new or empty directory."""
        directory = Path(directory)
        with _writable(directory):
            directory.mkdir(parents=True, exist_ok=True)
            lock = take_lock(directory)
        try:
            if (directory / FILE).exists():
                raise ValueError(
                    f"The run directory must be new; got {directory}, which holds a run. "
                    f"`optimist resume {directory}` goes on with it."
                )
            return cls._filled(directory, lock, header)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _filled(cls, directory: Path, lock: FileLock, header: dict[str, Any]) -> RunStore:
        # Filled beside and renamed: a run either is there with its settings or is not there.
        beside = directory / (FILE + ".new")
        with _told(directory):
            for leftover in LEFTOVERS:
                (directory / leftover).unlink(missing_ok=True)
            with closing(sqlite3.connect(beside)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")  # readers do not block the writer
                connection.executescript(SCHEMA)
                document = json.dumps({"format_version": FORMAT_VERSION} | header)
                connection.execute("INSERT INTO header VALUES (?)", (document,))
                connection.commit()
            beside.rename(directory / FILE)
            return cls(directory, _connect(directory), lock)

    @classmethod
    def open(cls, directory: Path, *, writing: bool) -> RunStore:
        """An existing run; for writing it is locked."""
        directory = Path(directory)
        with _writable(directory):
            if not (directory / FILE).is_file():
                raise ValueError(
                    f"The run directory must hold a run ({FILE}); got {directory}, which does not."
                )
            lock = take_lock(directory) if writing else None
        connection = None
        try:
            with _told(directory):
                connection = _connect(directory, writing=writing)
                store = cls(directory, connection, lock)
                version = store.header["format_version"]
                if version not in range(1, FORMAT_VERSION + 1):
                    raise ValueError(
                        f"The run in {directory} must be of format 1 to {FORMAT_VERSION}; got {version}, of "
                        "another version of Optimist. Open it with that one."
                    )
                if version == 1 and writing:
                    connection.executescript(UPGRADE)
                if version < FORMAT_VERSION and writing:
                    connection.executescript(UPGRADE_2)
        except BaseException:
            if connection is not None:
                connection.close()
            if lock is not None:
                lock.release()
            raise
        return store

    @property
    def header(self) -> dict[str, Any]:
        """Settings and all that says what the run is."""
        rows = self._rows("SELECT document FROM header")
        document = parse_run_header(rows[0][0] if rows else None, self.directory)
        try:
            model = document.get("settings", {}).get("model")
            if document["format_version"] == 1 and model is not None:
                model.setdefault("learner", "gp")  # there was no other
            planning = document.get("settings", {}).get("planning")
            if document["format_version"] in (1, 2) and planning is not None:
                planning.setdefault("rehearse", False)  # nothing was
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"The record of the run in {self.directory} is damaged: no settings.") from error
        return document

    def want(self, episodes: int) -> None:
        """Record how many episodes the run is to have, for whoever resumes it."""
        document = json.dumps(self.header | {"episodes": episodes})
        with _told(self.directory), self._connection as connection:
            connection.execute("UPDATE header SET document = ?", (document,))

    def append(
        self, transition: Transition, episode: int, *, outside: bool, ended: EpisodeRow | None = None
    ) -> None:
        """Record a transition, and the end of its episode with it; on disk when this returns."""
        with _told(self.directory), self._connection as connection:
            connection.execute(
                "INSERT INTO transitions (episode, state, action, reward, next_state, terminated, truncated, "
                "outside) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    episode,
                    _packed(transition.state),
                    transition.action,
                    transition.reward,
                    _packed(transition.next_state),
                    transition.terminated,
                    transition.truncated,
                    outside,
                ),
            )
            if ended is not None:
                _insert(connection, "INSERT", "episodes", asdict(ended))

    def end_episodes(self, rows: Sequence[EpisodeRow]) -> None:
        """Record the ends of episodes that ended without a transition of their own; all of them or none."""
        with _told(self.directory), self._connection as connection:
            for row in rows:
                _insert(connection, "INSERT", "episodes", asdict(row))

    def record_plan(self, update: Update) -> None:
        """Record an update; one made again after an interruption replaces itself."""
        row = asdict(update)
        drift = row.pop("drift") or {"mean_drift": None, "uncertainty_drift": None}
        row |= {name: json.dumps(row[name]) for name in ("model", "rehearsal")}
        with _told(self.directory), self._connection as connection:
            _insert(connection, "INSERT OR REPLACE", "plans", row | drift)

    @property
    def n_transitions(self) -> int:
        """How many there are."""
        return int(self._rows("SELECT count(*) FROM transitions")[0][0])

    def transitions(self) -> list[Transition]:
        """All of them, in order."""
        rows = self._rows(
            "SELECT state, action, reward, next_state, terminated, truncated FROM transitions ORDER BY number"
        )
        sizes = {len(row[k]) for row in rows for k in (0, 3)}
        if len(sizes) > 1 or any(size % 8 for size in sizes):
            raise RunError(f"The record of the run in {self.directory} is damaged: states of another size.")
        return [
            Transition(_unpacked(row[0]), row[1], row[2], _unpacked(row[3]), bool(row[4]), bool(row[5]))
            for row in rows
        ]

    def episodes(self) -> list[EpisodeRow]:
        """Those that have ended, in order."""
        names = [row[1] for row in self._rows("PRAGMA table_info(episodes)")]
        rows = self._rows("SELECT * FROM episodes ORDER BY episode")
        return [EpisodeRow(**dict(zip(names, row, strict=True))) for row in rows]

    def expected_of(self, episode: int) -> float | None:
        """What was expected of an episode when it began: what the last plan before it said."""
        begun = self._rows("SELECT count(*) FROM transitions WHERE episode < ?", (episode,))[0][0]
        said = [row["rehearsal"].get("expected") for row in self.plans() if row["n_transitions"] <= begun]
        return said[-1] if said else None

    def open_episode(self) -> tuple[int, int, float]:
        """The episode that goes on: its number, steps and total reward so far."""
        done = len(self.episodes())
        rewards = self._rows("SELECT reward FROM transitions WHERE episode = ? ORDER BY number", (done + 1,))
        total = 0.0
        for (reward,) in rewards:  # in this order, as the loop adds them up
            total += reward
        return done + 1, len(rewards), total

    def n_outside(self) -> int:
        """How many successors lay outside the task's box."""
        return int(self._rows("SELECT sum(outside) FROM transitions")[0][0] or 0)

    def plans(self) -> list[dict[str, Any]]:
        """One dictionary per update, in order."""
        names = [row[1] for row in self._rows("PRAGMA table_info(plans)")]
        found = self._rows("SELECT * FROM plans ORDER BY n_transitions")
        rows = [dict(zip(names, row, strict=True)) for row in found]
        for row in rows:
            if "model" in row:
                row["model"] = json.loads(row["model"])
            else:  # format 1
                row["model"] = {
                    name: json.loads(row.pop(name)) for name in ("basis_sizes", "hyperparameters")
                }
            row["rehearsal"] = json.loads(row.get("rehearsal", "{}"))
        return rows

    def stopped_learning_at(self) -> int | None:
        """The number of transitions after which learning stopped."""
        last = self._rows("SELECT n_transitions, settled FROM plans ORDER BY n_transitions DESC LIMIT 1")
        return int(last[0][0]) if last and last[0][1] else None

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with _told(self.directory):
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Let go of it; once is enough, more does no harm."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect(directory: Path, *, writing: bool = True) -> sqlite3.Connection:
    file = directory / FILE
    if not writing:
        return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    connection = sqlite3.connect(file, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")  # on disk at every commit, a power cut included
    return connection


@contextmanager
def _writable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(f"The run directory must be writable; got {directory}: {error.strerror}.") from error


@contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Turn SQLite's errors into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        reason = str(error).rstrip(".")
        raise RunError(
            f"The record of the run in {directory} could not be used: {reason}. What was recorded is safe; "
            f"once the cause is mended, `optimist resume {directory}` goes on."
        ) from error
    except OSError as error:
        raise RunError(f"The run in {directory} could not be written: {error.strerror}.") from error


def _insert(connection: sqlite3.Connection, how: str, table: str, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"{how} INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def _packed(state: FloatArray) -> bytes:
    return np.asarray(state, dtype="<f8").tobytes()


def _unpacked(blob: bytes) -> FloatArray:
    return np.frombuffer(blob, dtype="<f8").astype(np.float64)
