"""The witness: a small file that says how far the record had come, written after every commit.

The end of a record is in SQLite's log until it is closed. A log that is damaged, or left behind when the
files were copied, is a shorter record that looks whole. The witness knows better. It is not brought to disk
(that would double the price of a transition), so after a power cut it may say less than there is, never more.
Nothing depends on it: when it is missing or damaged itself, it says nothing.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from itertools import chain
from pathlib import Path

from optimist.runs.chain import SIZE, digest
from optimist.runs.files import WITNESS, open_regular
from optimist.runs.tables import TABLES, Tip, Tips

TIPS = struct.Struct("<" + f"q{SIZE}s" * len(TABLES))  # length and digest of each table, in order


class Witness:
    """Writes down how far a record has come."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = open_regular(directory / WITNESS, os.O_WRONLY | os.O_CREAT)

    def note(self, tips: Tips) -> None:
        """The record has come that far."""
        said = TIPS.pack(*chain.from_iterable(tips[name] for name in TABLES))
        with suppress(OSError):  # what was committed is
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, said + digest(said))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def heard(directory: Path) -> Tips | None:
    """What the witness of a run says; None when there is none, or none to be trusted."""
    try:
        with os.fdopen(open_regular(directory / WITNESS, os.O_RDONLY), "rb") as file:
            content = file.read(TIPS.size + SIZE)
    except (OSError, ValueError):
        return None
    said = content[: TIPS.size]
    if len(said) < TIPS.size or digest(said) != content[TIPS.size :]:
        return None
    values = iter(TIPS.unpack(said))
    return {name: Tip(next(values), next(values)) for name in TABLES}
