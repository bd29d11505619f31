"""The witness: a small file that says how far the record had come, written after every commit.

The end of a record is in SQLite's log until it is closed. A log that is damaged, or left behind when the
files were copied, is a shorter record that looks whole. The witness knows better. It is not brought to disk
(that would double the price of a transition), so after a power cut it may say less than there is, never more.
Nothing depends on it: when it is missing or damaged itself, it says nothing.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from optimist.runs.chain import digest
from optimist.runs.files import WITNESS, open_regular
from optimist.runs.tables import TABLES, Tip, Tips

LENGTH = 1024  # bytes, filled up with spaces


class Witness:
    """Writes down how far a record has come."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = open_regular(directory / WITNESS, os.O_WRONLY | os.O_CREAT)

    def note(self, tips: Tips) -> None:
        """The record has come that far."""
        said = json.dumps({name: [tip.length, tip.digest.hex()] for name, tip in tips.items()})
        content = f"{digest(said.encode()).hex()} {said}".ljust(LENGTH) + "\n"
        with suppress(OSError):  # what was committed is
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, content.encode())

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def heard(directory: Path) -> Tips | None:
    """What the witness of a run says; None when there is none, or none to be trusted."""
    try:
        with os.fdopen(open_regular(directory / WITNESS, os.O_RDONLY), "rb") as file:
            check, _, said = file.read(LENGTH + 1).decode().rstrip().partition(" ")
    except (OSError, ValueError):
        return None
    if digest(said.encode()).hex() != check:
        return None
    found: dict[str, Any] = json.loads(said)
    return {name: Tip(found[name][0], bytes.fromhex(found[name][1])) for name in TABLES if name in found}
