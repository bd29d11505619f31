"""The tables of a record (format 7), and how rows are added to them: at their end, chained, never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from optimist.runs.chain import Row, genesis, link
from optimist.runs.errors import OvertakenError

FORMAT_VERSION = 7
# formats with digests, read and written as they are: 4 knew no controls but listed ones, 5 no linear trends,
# 6 no mirrors
CHAINED = (4, 5, 6, 7)


@dataclass(frozen=True)
class Table:
    """One chain of rows: a column that counts them from 1, their columns, their digest."""

    name: str
    number: str
    columns: tuple[str, ...]
    kinds: str  # a letter for each column: see `chain.link`

    @cached_property
    def insert(self) -> str:
        """The statement that adds a row, if all tables have as many as is said behind its values."""
        names = (self.number, *self.columns, "digest")
        values, ends = ", ".join("?" * len(names)), " AND ".join(f"{count} = ?" for count in _counted())
        return f"INSERT INTO {self.name} ({', '.join(names)}) SELECT {values} WHERE {ends}"

    @cached_property
    def select(self) -> str:
        """The statement that reads all rows."""
        names = (self.number, *self.columns, "digest")
        return f"SELECT {', '.join(names)} FROM {self.name} ORDER BY {self.number}"


def _table(name: str, number: str, columns: str, kinds: str) -> Table:
    return Table(name, number, tuple(columns.split()), kinds)


TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table("header", "number", "document", "t"),
        _table(
            "transitions",
            "number",
            "episode state action reward next_state terminated truncated outside",
            "qbadbqqq",
        ),
        _table("episodes", "episode", "steps total_reward transitions ending expected", "qdqtd"),
        _table(
            "plans",
            "number",
            "n_transitions fit_seconds predict_seconds plan_seconds sweeps residual converged mean_drift "
            "uncertainty_drift mean_uncertainty model settled rehearsal",
            "qdddqdqdddtqt",
        ),
        _table("marks", "number", "transition void reason made_after", "qqtq"),
    )
}

SCHEMA = (
    """CREATE TABLE header (             -- the last row counts
    number INTEGER PRIMARY KEY,       -- from 1
    document TEXT NOT NULL,           -- JSON: settings and all that says what the run is
    digest BLOB NOT NULL              -- in every table: over the row, and the digest of the one before it
)""",
    """CREATE TABLE transitions (
    number INTEGER PRIMARY KEY,       -- from 1
    episode INTEGER NOT NULL,         -- from 1
    state BLOB NOT NULL,              -- float64, little-endian, as observed
    action INTEGER NOT NULL,          -- number of a listed control; or the control itself, as states are
    reward REAL NOT NULL,
    next_state BLOB NOT NULL,
    terminated INTEGER NOT NULL,
    truncated INTEGER NOT NULL,
    outside INTEGER NOT NULL,         -- the successor lay outside the task's box (clipped to plan on it)
    digest BLOB NOT NULL
)""",
    """CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY,
    steps INTEGER NOT NULL,
    total_reward REAL NOT NULL,
    transitions INTEGER NOT NULL,     -- in the run when it ended
    ending TEXT NOT NULL,             -- terminated, truncated, or abandoned (an outside environment, resumed)
    expected REAL,                    -- what the agent expected it to earn when it began, if it did
    digest BLOB NOT NULL
)""",
    """CREATE TABLE plans (              -- of those after the same transitions the last counts
    number INTEGER PRIMARY KEY,
    n_transitions INTEGER NOT NULL,
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
    rehearsal TEXT NOT NULL,          -- JSON: layout that won, what was tried, what an episode shall earn
    digest BLOB NOT NULL
)""",
    """CREATE TABLE marks (              -- of those of the same transition the last counts
    number INTEGER PRIMARY KEY,
    transition INTEGER NOT NULL,      -- its number
    void INTEGER NOT NULL,            -- 1: not to be learned from; 0: to be learned from after all
    reason TEXT NOT NULL,             -- by hand, or what the agent found
    made_after INTEGER NOT NULL,      -- transitions there were when it was marked
    digest BLOB NOT NULL
)""",
    """CREATE TABLE chains (             -- how long each table is: its last rows cannot go unnoticed either
    name TEXT PRIMARY KEY,
    length INTEGER NOT NULL,          -- at least; exactly when the run was closed
    digest BLOB NOT NULL              -- of its last row
) WITHOUT ROWID""",
)


class Tip(NamedTuple):
    """The end of a chain."""

    length: int
    digest: bytes  # of the last row


Tips = dict[str, Tip]  # by table


def add(connection: sqlite3.Connection, tips: Tips, rows: Sequence[tuple[str, Row]]) -> Tips:
    """Add rows, each with the name of its table; where the chains end then. Several inside a transaction.

    An OvertakenError when they do not end at `tips`: rows of two writers cannot form one chain. A lone
    transition leaves `chains` alone: a second page for every one would cost more than all else.
    """
    after = dict(tips)
    for name, row in rows:
        table, tip = TABLES[name], after[name]
        ends = [end.length for end in after.values()]
        after[name] = Tip(tip.length + 1, link(tip.digest, table.kinds, row))
        values = (tip.length + 1, *row, after[name].digest, *ends)
        if connection.execute(table.insert, values).rowcount != 1:
            raise OvertakenError
    if any(name != "transitions" for name, _ in rows):
        settle(connection, after)
    return after


def settle(connection: sqlite3.Connection, tips: Tips) -> None:
    """Write down where the chains end, inside a transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO chains (name, length, digest) VALUES (?, ?, ?)",
        [(name, *tip) for name, tip in tips.items()],
    )


def ends_at(connection: sqlite3.Connection, tips: Tips) -> bool:
    """Whether the tables have as many rows as that."""
    found = connection.execute(f"SELECT {', '.join(_counted())}").fetchone()
    return list(found) == [tips[name].length for name in TABLES]


def _counted() -> list[str]:
    """How many rows each table has, in SQL."""
    return [f"(SELECT coalesce(max({table.number}), 0) FROM {name})" for name, table in TABLES.items()]


def write_tables(connection: sqlite3.Connection, rows: Mapping[str, Sequence[Row]]) -> Tips:
    """Make all tables, with these rows in them, inside a transaction; where the chains end."""
    for statement in SCHEMA:
        connection.execute(statement)
    tips = {name: Tip(0, genesis(name)) for name in TABLES}
    tips = add(connection, tips, [(name, row) for name in TABLES for row in rows.get(name, ())])
    settle(connection, tips)
    return tips
