"""One writer per run: an advisory lock on a file, gone with the process that holds it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FILE = "run.lock"


@dataclass(frozen=True)
class Lock:
    """Held until released, or until the process ends in whatever way."""

    descriptor: int

    @classmethod
    def take(cls, directory: Path) -> Lock:
        """Take it, or say that another process has it."""
        descriptor = os.open(directory / FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise ValueError(
                f"The run directory must not be in use; got {directory}, which another process is writing "
                "to. Wait until it ends, or stop it."
            ) from error
        return cls(descriptor)

    def release(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


def _lock(descriptor: int) -> None:
    if os.name == "nt":  # pragma: no cover
        import msvcrt  # noqa: PLC0415

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
