"""What can go wrong with a run: the work failed, or its files are not what was written to them."""

from __future__ import annotations

from pathlib import Path


class RunError(Exception):
    """The work failed. One sentence."""


class DamagedError(ValueError):
    """A run's files are not what was written to them. One sentence."""

    @classmethod
    def of(cls, directory: Path, damage: str) -> DamagedError:
        """The run in `directory`, of which `damage` is known."""
        return cls(
            f"The record of a run must be whole; got {directory}: {damage}. "
            f"`optimist check {directory}` says what can be saved."
        )


class UnreadableError(Exception):
    """Of a record nothing can be read: why, in half a sentence."""


class ForeignError(Exception):
    """A record is of a format that is not known: which."""


class OvertakenError(Exception):
    """Somebody else has added to a record meanwhile."""


def said(error: BaseException) -> str:
    """What an error says, in one line; the words of a damaged file may be no text."""
    return "no text" if isinstance(error, UnicodeError) else " ".join(str(error).split()).rstrip(".")
