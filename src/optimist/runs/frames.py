"""The last picture that a run's environment drew of itself, where it draws any (`render_mode="rgb_array"`).

It is there to be looked at. A run never waits for it: drawing takes at most a hundredth of the time, and an
environment whose drawing fails is not asked again.
"""

from __future__ import annotations

import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from optimist.runs.files import FRAME, create_empty, is_there, open_regular
from optimist.runs.loop import Event, Stepped

PAUSE = 0.5  # seconds between two pictures, at least
SHARE = 0.01  # of the time, at most
LARGEST = 2**25  # bytes of a picture


class Frames:
    """Listens to a run, and keeps its last picture."""

    def __init__(self, directory: Path, env: gymnasium.Env[Any, Any]) -> None:
        self._file, self._env = directory / FRAME, env
        self._due = 0.0 if env.render_mode == "rgb_array" else float("inf")

    def __call__(self, event: Event) -> None:
        """Draw, if it is time to."""
        began = monotonic()
        if began < self._due or not isinstance(event, Stepped):
            return
        try:
            keep_frame(self._file, np.asarray(self._env.render()))
        except Exception:  # whatever it is, the run goes on without pictures
            self._due = float("inf")
            return
        self._due = began + max(PAUSE, (monotonic() - began) / SHARE)


def keep_frame(file: Path, pixels: NDArray[Any]) -> None:
    """Put a picture [height, width, 3] in the place of the last."""
    content = png(pixels)
    beside = file.with_name(f"{file.name}.new")
    is_there(file)
    with os.fdopen(create_empty(beside), "wb") as out:
        out.write(content)
    beside.replace(file)


def read_frame(directory: Path) -> bytes | None:
    """The last picture of a run, a PNG; None when there is none."""
    with suppress(OSError, ValueError), os.fdopen(open_regular(directory / FRAME, os.O_RDONLY), "rb") as file:
        content = file.read(LARGEST)
        return content if content.startswith(SIGNATURE) else None
    return None


SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(pixels: NDArray[Any]) -> bytes:
    """Pixels [height, width, 3] of 8 bits as a PNG."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or pixels.size > LARGEST:
        raise ValueError(
            f"A picture must be [height, width, 3] of uint8; got {pixels.dtype} {list(pixels.shape)}."
        )
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b"")
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
