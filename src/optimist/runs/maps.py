"""The maps of a run: what each of its plans said everywhere, in one file that only grows.

They are there to be looked at. Nothing depends on them, so they are neither brought to disk at once nor a
part of the record; but each proves itself by its own digest, and says which transitions it was made of by the
digest of the last. One that was cut off when the machine died is passed over.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.agents.plan_map import PlanMap
from optimist.runs.chain import SIZE, digest
from optimist.runs.files import MAPS, is_there, open_regular

MAGIC = b"optimap1"
# transitions, sizes of document and content, digest of the last transition; with magic and its own digest
SAID = struct.Struct(f"<qqq{SIZE}s")
HEAD = struct.Struct(f"<8sqqq{SIZE}s{SIZE}s")
LARGEST = 2**28  # bytes of a document or a content: what says more is damaged
CHUNK = 2**20
NO_RECORD = "00" * SIZE  # of runs that prove nothing


class Map(NamedTuple):
    """One map as it is kept."""

    document: dict[str, Any]  # `PlanMap.document`
    content: bytes  # zlib: differences of levels (low bytes, then high bytes), differences of shades

    def arrays(self) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        """Levels and shades.  [n_actions, n_nodes] each"""
        raw = np.frombuffer(zlib.decompress(self.content), dtype=np.uint8)
        n_actions, third = self.document["n_actions"], raw.size // 3
        planes = raw[: 2 * third].astype(np.uint16)
        levels = np.cumsum(planes[:third] + (planes[third:] << 8), dtype=np.uint16)
        shades = np.cumsum(raw[2 * third :], dtype=np.uint8)
        return levels.reshape(n_actions, -1), shades.reshape(n_actions, -1)


def packed(plan_map: PlanMap) -> Map:
    """Made small: neighbours differ by little."""
    levels = np.diff(plan_map.levels.reshape(-1), prepend=np.uint16(0)).astype("<u2")
    shades = np.diff(plan_map.shades.reshape(-1), prepend=np.uint8(0))
    planes = levels.view(np.uint8).reshape(-1, 2).T
    return Map(plan_map.document(), zlib.compress(planes.tobytes() + shades.tobytes(), 1))


def keep_map(directory: Path, number: int, record: str | None, plan_map: PlanMap) -> None:
    """Add the map of the plan after `number` transitions, the last of which has the digest `record`.

    A disk that is full loses a picture, not a run: the next transition says so.
    """
    document, content = packed(plan_map)
    text = json.dumps(document).encode()
    said = SAID.pack(number, len(text), len(content), bytes.fromhex(record or NO_RECORD))
    with suppress(OSError):
        descriptor = open_regular(directory / MAPS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "ab") as out:
            out.write(MAGIC + said + digest(said + text + content) + text + content)


def copy_maps(directory: Path, new: Path) -> None:
    """Bring the maps of a run to another that was made of it."""
    with suppress(OSError, ValueError):
        if is_there(directory / MAPS):
            shutil.copyfile(directory / MAPS, new / MAPS)


@dataclass
class Maps:
    """The maps in a directory, found as the file grows."""

    directory: Path
    _places: dict[tuple[int, str], int] = field(default_factory=dict)  # by transitions and their digest
    _end: int = 0  # of what was looked through
    _file: tuple[int, int] | None = None  # which one that was

    def found(self) -> set[tuple[int, str]]:
        """Of which plans there are maps: after how many transitions, the last of which has which digest."""
        try:
            with os.fdopen(open_regular(self.directory / MAPS, os.O_RDONLY), "rb") as file:
                status = os.fstat(file.fileno())
                if self._file != (status.st_dev, status.st_ino) or status.st_size < self._end:
                    self._places, self._end, self._file = {}, 0, (status.st_dev, status.st_ino)
                self._look(file, status.st_size)
        except (OSError, ValueError):
            self._places, self._end = {}, 0
        return set(self._places)

    def _look(self, file: Any, size: int) -> None:
        while self._end + HEAD.size <= size:
            file.seek(self._end)
            magic, number, n_text, n_content, record, _ = HEAD.unpack(file.read(HEAD.size))
            sound = magic == MAGIC and 0 <= n_text < LARGEST and 0 <= n_content < LARGEST
            after = self._end + HEAD.size + n_text + n_content if sound else size + 1
            if after <= size:
                self._places[number, record.hex()] = self._end
                self._end = after
                continue
            further = _next_magic(file, self._end + 1)
            if further is None:
                return  # cut off, or still being written
            self._end = further

    def read(self, number: int, record: str | None) -> Map | None:
        """The map of the plan after so many transitions; None when there is none that is whole."""
        key = number, record or NO_RECORD
        self.found()
        if key not in self._places:
            return None
        try:
            with os.fdopen(open_regular(self.directory / MAPS, os.O_RDONLY), "rb") as file:
                file.seek(self._places[key])
                head = file.read(HEAD.size)
                _, _, n_text, n_content, _, written = HEAD.unpack(head)
                text, content = file.read(n_text), file.read(n_content)
            if digest(head[8:-SIZE] + text + content) != written:
                return None
            return Map(json.loads(text), content)
        except (OSError, ValueError, struct.error):
            return None


def _next_magic(file: Any, place: int) -> int | None:
    """Where the next map begins."""
    file.seek(place)
    rest = b""
    while chunk := file.read(CHUNK):
        window = rest + chunk
        found = window.find(MAGIC)
        if found >= 0:
            return int(place + found)
        rest = window[-len(MAGIC) + 1 :]
        place += len(window) - len(rest)
    return None
