"""The files of a run: opened without following links, made exclusively, replaced as a whole.

Whoever can write to a directory can put anything there under a name that a run will use: a link to somebody
else's file, a pipe nobody writes to, a device. Nothing is read from or written to those. A file with a second
name (a hard link) is read, and not written to.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from optimist.runs.errors import RunError

RECORD = "run.sqlite"
LOG, INDEX, JOURNAL = (f"{RECORD}-{kind}" for kind in ("wal", "shm", "journal"))  # of SQLite
AGENT = "agent.optimist"
WITNESS = "run.head"
MAPS = "run.maps"
FRAME = "run.frame"
# what a run consists of, or may have left behind when it was stopped
NAMES = (
    RECORD, f"{RECORD}.new", f"{RECORD}.new-wal", f"{RECORD}.new-shm", f"{RECORD}.new-journal",
    LOG, INDEX, JOURNAL, AGENT, f"{AGENT}.new", WITNESS, MAPS, FRAME, f"{FRAME}.new",
)  # fmt: skip

CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_there(file: Path, *, following: bool = False) -> bool:
    """Whether there is such a file; a ValueError when what is there is no regular file."""
    try:
        mode = file.stat().st_mode if following else file.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "something else")
        raise ValueError(f"What is read or written must be a regular file; got {file}, {kind}.")
    return True


def require_regular(directory: Path) -> None:
    """A ValueError when something in the directory of a run is named like a file of its and is none."""
    for name in NAMES:
        is_there(directory / name)
    require_unshared(directory, INDEX)  # who reads writes to it, too


def require_unshared(directory: Path, *names: str) -> None:
    """A ValueError when one of these files is somebody else's as well, by a hard link."""
    for name in names:
        if is_there(directory / name):
            _require_one_name(directory / name, (directory / name).lstat())


def _require_one_name(file: Path, status: os.stat_result) -> None:
    if status.st_nlink > 1:
        raise ValueError(
            f"A file that is written must have one name; got {file}, which has {status.st_nlink} "
            "(hard links). Write to a copy."
        )


def which(directory: Path) -> tuple[tuple[int, int], ...]:
    """Which files the names of the record stand for: others when it was removed, moved or replaced."""
    found = ((directory / name).lstat() for name in (RECORD, LOG))
    return tuple((status.st_dev, status.st_ino) for status in found)


def open_regular(file: Path, flags: int) -> int:
    """A descriptor of a regular file that is no link; ValueError when it is something else, or OSError."""
    is_there(file)
    descriptor = os.open(file, flags | CAREFULLY, 0o666)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):  # put there since
            raise ValueError(f"What is read or written must be a regular file; got {file}, which is none.")
        if flags & (os.O_WRONLY | os.O_RDWR):
            _require_one_name(file, status)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def create_empty(file: Path) -> int:
    """A descriptor of a new file in the place of what was left of an earlier one."""
    if is_there(file):
        file.unlink()
    return open_regular(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def replace_file(file: Path, content: bytes) -> None:
    """Write beside, bring to disk and rename: at any instant there is a whole one."""
    beside = file.with_name(file.name + ".new")
    made = False
    try:
        is_there(file)
        with os.fdopen(create_empty(beside), "wb") as out:
            made = True
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
        sync_directory(file.parent)
    except OSError as error:
        if made:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
        raise RunError(f"The agent could not be written to {file}: {error.strerror}.") from error


def sync_directory(directory: Path) -> None:
    """Bring a rename to disk, where directories can be synced at all."""
    if os.name != "nt":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
