"""One writer per run: an advisory lock on a file, gone with the process that holds it."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

FILE = "run.lock"


def take_lock(directory: Path) -> FileLock:
    """The lock of a run; a ValueError when another process has it."""
    lock = FileLock(directory / FILE, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise ValueError(
            f"The run directory must not be in use; got {directory}, which another process is writing "
            "to. Wait until it ends, or stop it."
        ) from error
    return lock
