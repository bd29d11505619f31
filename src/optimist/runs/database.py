"""Connections to the database of a run, to read and to write, and what SQLite's errors mean."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from optimist.runs.errors import DamagedError, ForeignError, OvertakenError, RunError, UnreadableError, said
from optimist.runs.files import LOG, RECORD, is_there
from optimist.runs.tables import FORMAT_VERSION

T = TypeVar("T")

PATIENCE = 90.0  # seconds that another program may keep the database locked
TURN = 0.5  # seconds waited at a time: Ctrl-C is heard in between

# what the file is like; all other errors are of the machine around it
OF_THE_FILE = (
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_INTERNAL,
    sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_MISUSE,
)  # fmt: skip


SHORT = sqlite3.SQLITE_IOERR_SHORT_READ
NO_ROOM = sqlite3.SQLITE_IOERR_SHMSIZE  # for the third file
CANNOT_WRITE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


class Reading:
    """A connection that only reads, also where nothing can be written.

    SQLite reads a database with a log by help of a third file, which it has to make. Where it cannot, or the
    disk is full, the database is read as one that nobody changes; if there is a log, from a copy of both.
    """

    def __init__(self, directory: Path) -> None:
        self._copy: TemporaryDirectory[str] | None = None
        self.connection = _connected(directory / RECORD, "mode=ro")
        try:
            try:
                patiently(lambda: self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone())
            except sqlite3.Error as error:
                if _code(error) not in CANNOT_WRITE and not _has_no_room(error):
                    raise
                self.connection.close()
                self.connection = self._without_writing(directory)
        except BaseException:
            self.close()
            raise

    def _without_writing(self, directory: Path) -> sqlite3.Connection:
        log = directory / LOG
        if not is_there(log) or log.stat().st_size == 0:
            return _connected(directory / RECORD, "mode=ro&immutable=1")
        self._copy = TemporaryDirectory(prefix="optimist-")
        for file in (directory / RECORD, log):
            shutil.copyfile(file, Path(self._copy.name) / file.name)
        return _connected(Path(self._copy.name) / RECORD, "mode=ro")

    def close(self) -> None:
        """Let go of it; once is enough, more does no harm."""
        self.connection.close()
        if self._copy is not None:
            self._copy.cleanup()


def connect_to_write(directory: Path) -> sqlite3.Connection:
    """A connection that writes: on disk at every commit, a power cut included."""
    connection = _connected(directory / RECORD, "mode=rw")
    try:
        patiently(lambda: connection.execute("PRAGMA synchronous = FULL"))
        patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"))  # readers do not block the writer
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(file: Path, how: str) -> sqlite3.Connection:
    address = f"{file.resolve().as_uri()}?{how}"
    connection = sqlite3.connect(
        address, uri=True, timeout=TURN, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside, or nothing; on disk when it ends."""
    patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def patiently(work: Callable[[], T]) -> T:
    """Do what another program's lock may be in the way of; it has a while to let go."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except sqlite3.Error as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise


def structure_damage(connection: sqlite3.Connection) -> str | None:
    """What SQLite finds wrong with its own pages: no harm to who reads right rows, but to who adds some."""
    try:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except (sqlite3.DatabaseError, UnicodeError) as error:
        if isinstance(error, sqlite3.Error) and _code(error) not in OF_THE_FILE:
            raise
        found = said(error)
    return None if found == "ok" else f"its pages are in disorder ({' '.join(found.split())})"


def _code(error: sqlite3.Error) -> int | None:
    """The kind of an error, without its particulars."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


@contextmanager
def told(directory: Path) -> Iterator[None]:
    """Turn what SQLite and the system say into one sentence: the file is damaged, or the work failed."""
    try:
        yield
    except UnreadableError as error:
        raise DamagedError.of(directory, str(error)) from error
    except ForeignError as error:
        raise ValueError(
            f"The run in {directory} must be of format 1 to {FORMAT_VERSION}; got {error}, of another "
            "version of Optimist. Open it with that one."
        ) from error
    except OvertakenError as error:
        raise RunError(
            f"The run in {directory} must have one writer; another process has added to its record. "
            "Nothing of this one was mixed in."
        ) from error
    except UnicodeDecodeError as error:
        raise DamagedError.of(directory, said(error)) from error
    except sqlite3.Error as error:
        if _code(error) in OF_THE_FILE or getattr(error, "sqlite_errorcode", 0) == SHORT:
            raise DamagedError.of(directory, said(error)) from error
        raise RunError(
            f"The record of the run in {directory} could not be used: {_reason(error)}."
        ) from error
    except OSError as error:
        raise RunError(f"The run in {directory} could not be used: {error.strerror}.") from error


def _reason(error: sqlite3.Error) -> str:
    if _code(error) == sqlite3.SQLITE_BUSY:
        return f"another program has kept it locked for {PATIENCE:.0f} s"
    return "the disk is full" if _has_no_room(error) else said(error)


def _has_no_room(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) == NO_ROOM
