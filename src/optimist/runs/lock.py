"""One writer per run: an advisory lock on its directory, gone with the process that holds it.

It is the directory itself that is locked (flock), not a file in it: a file can be removed, and then two
processes hold locks of two files of one name. Nor is it the database: SQLite locks that with fcntl, whose
locks a process loses when it closes any descriptor of the file. Where directories cannot be locked (some
network file systems) there is no lock; the chain of rows still refuses a second writer
(`optimist.runs.writing`). Windows has no flock, but does not remove files that are open: there it is a file.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

Release = Callable[[], None]

UNABLE = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def take_lock(directory: Path) -> Release:
    """Lock a run: how to let go of it, as often as one likes. A ValueError when another process has it."""
    if sys.platform == "win32":
        return _lock_file(directory / "run.lock")
    import fcntl  # noqa: PLC0415

    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise _in_use(directory) from error
    except OSError as error:
        os.close(descriptor)
        if error.errno in UNABLE:
            return lambda: None
        raise

    held, holder = [descriptor], os.getpid()

    def release() -> None:
        while held:  # once: the number of a closed descriptor is soon somebody else's
            if os.getpid() == holder:  # a child that was forked meanwhile must not keep it, nor let go of it
                fcntl.flock(held[0], fcntl.LOCK_UN)
            os.close(held.pop())

    return release


def _lock_file(file: Path) -> Release:
    from filelock import FileLock, Timeout  # noqa: PLC0415

    lock = FileLock(file, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise _in_use(file.parent) from error
    return lock.release


def _in_use(directory: Path) -> ValueError:
    return ValueError(
        f"The run directory must not be in use; got {directory}, which another process is writing to. "
        "Wait until it ends, or stop it."
    )
