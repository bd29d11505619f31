"""The one who writes a run: its lock, its connection, and where its chains end."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import RLock
from typing import NoReturn

import numpy as np

from optimist.runs.chain import Row
from optimist.runs.database import Reading, connect_to_write, patiently, told, transaction
from optimist.runs.errors import OvertakenError, RunError
from optimist.runs.files import NAMES, RECORD, create_empty, sync_directory, which
from optimist.runs.lock import Release
from optimist.runs.record import Record, read_record
from optimist.runs.tables import FORMAT_VERSION, Tips, add, ends_at, settle, write_tables
from optimist.runs.witness import Witness, heard


class Writing:
    """Adds rows to the end of a record. Whoever makes one holds the lock, and hands it over."""

    def __init__(self, directory: Path, release: Release) -> None:
        self.directory = directory
        self.connection = connect_to_write(directory)
        self._release = release
        self._witness: Witness | None = None
        self._tips: Tips = {}
        self._settled: Tips = {}  # as the store says
        self._last: Row | None = None  # of the transitions
        self._files: tuple[tuple[int, int], ...] = ()  # which they are
        self._process = os.getpid()
        self.turn = RLock()  # of threads that share the connection

    def begin(self, record: Record) -> None:
        """Go on from there."""
        rows = record.chains["transitions"].rows
        self._tips, self._last = record.tips, rows[-1] if rows else None
        self._settled = record.settled
        if not ends_at(self.connection, self._tips):
            raise OvertakenError
        self._witness = Witness(self.directory)
        self._witness.note(self._tips)
        self._files = which(self.directory)

    def length(self, table: str) -> int:
        """How many rows a table has."""
        return self._tips[table].length

    def add(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Add rows, each with its table; all of them or none."""
        if rows:
            with self.turn:
                self._add(rows)

    def _add(self, rows: Sequence[tuple[str, Row]]) -> None:
        self._require_same()
        last = self._last
        for name, row in rows:
            if name == "transitions":
                _require_continues(last, row)
                last = row
        try:
            tips = self._added(rows)
        except (sqlite3.Error, OSError, OvertakenError) as error:
            self._tell(error)
        self._tips, self._last = tips, last
        if any(name != "transitions" for name, _ in rows):
            self._settled = tips
        if self._witness is not None:
            self._witness.note(tips)

    def _added(self, rows: Sequence[tuple[str, Row]]) -> Tips:
        if len(rows) == 1 and rows[0][0] == "transitions":  # one statement is a transaction
            return patiently(lambda: add(self.connection, self._tips, rows))
        with transaction(self.connection):
            return add(self.connection, self._tips, rows)

    def _require_same(self) -> None:
        """That it is the process that opened it, and that its files are still there."""
        if os.getpid() != self._process:
            raise RunError(
                f"The run in {self.directory} must be written by the process that opened it; got a fork "
                "of that one."
            )
        try:
            found = which(self.directory)
        except OSError:
            found = ()
        if found != self._files:
            raise RunError(
                f"The record of the run in {self.directory} must stay where it is while it is written; it "
                "was removed, moved or replaced. Nothing is added to it any more."
            )

    def _tell(self, error: Exception) -> NoReturn:
        try:
            with told(self.directory):
                raise error
        except RunError as sentence:
            raise RunError(f"{sentence} {self._safe()}".rstrip()) from error

    def _safe(self) -> str:
        """That what was recorded is safe, if somebody who looks finds it so."""
        try:
            with told(self.directory), closing(Reading(self.directory)) as reading:
                record = read_record(reading.connection, heard(self.directory))
        except (RunError, ValueError):
            return ""
        if record.damages or record.tips != self._tips:
            return ""
        return (
            "What was recorded is safe; once the cause is mended, "
            f"`optimist resume {self.directory}` goes on."
        )

    def upgrade(self, record: Record) -> None:
        """Write a record of an old format anew, in its place."""
        header = json.dumps(record.header | {"format_version": FORMAT_VERSION})
        rows = {name: chain.rows for name, chain in record.chains.items()} | {
            "header": [(header,), (header,)]
        }
        with transaction(self.connection):
            for name in ("header", "transitions", "episodes", "plans"):
                self.connection.execute(f"DROP TABLE {name}")
            write_tables(self.connection, rows)

    def digest_of(self, number: int) -> bytes | None:
        """Of the transition that was the last, if it is that one."""
        tip = self._tips.get("transitions")
        return tip.digest if tip is not None and tip.length == number >= 1 else None

    def close(self) -> None:
        """Let go of it; once is enough, more does no harm."""
        if os.getpid() != self._process:  # a fork: all of it is its parent's
            self._release()
            return
        if self._tips != self._settled:
            with suppress(sqlite3.Error), transaction(self.connection):
                if ends_at(self.connection, self._tips):
                    settle(self.connection, self._tips)
        self.connection.close()
        if self._witness is not None:
            self._witness.close()
            self._witness = None
        self._release()


def make_database(directory: Path, rows: Mapping[str, Sequence[Row]]) -> None:
    """Make the database of a run, beside and renamed: it is there with its settings or it is not there."""
    for name in NAMES:  # a run deleted by hand may have left them, and they would be taken for the new one's
        (directory / name).unlink(missing_ok=True)
    beside = directory / f"{RECORD}.new"
    os.close(create_empty(beside))
    with closing(sqlite3.connect(beside, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        with transaction(connection):
            write_tables(connection, rows)
        # from the log into the file that is renamed: closing does that, too, but does not tell when it cannot
        kept_out = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if kept_out:
        raise RunError(f"The run in {directory} could not be begun: another program is reading {beside}.")
    beside.rename(directory / RECORD)
    sync_directory(directory)


def _require_continues(before: Row | None, row: Row) -> None:
    if before is not None and before[0] == row[0] and before[4] != row[1]:
        raise RunError(
            "A transition must begin in the state that the one before it led to; got "
            f"{_unpacked(row[1])} after {_unpacked(before[4])}. Something has written into a state: "
            "an environment, a reward or a terminal function."
        )


def _unpacked(blob: bytes) -> list[float]:
    numbers: list[float] = np.frombuffer(blob, dtype="<f8").tolist()
    return numbers
