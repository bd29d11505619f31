"""What things look like in a notebook: small tables, curves and maps as HTML that stands by itself.

Whatever comes from outside is escaped. Pictures are inline: nothing is loaded from anywhere.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray

# from dark to light, as matplotlib's viridis at eight places
COLOURS = np.array(
    [
        (68, 1, 84), (70, 50, 127), (54, 92, 141), (39, 127, 142),
        (31, 161, 135), (74, 194, 109), (159, 218, 58), (253, 231, 37),
    ],
    dtype=np.float64,
)  # fmt: skip


def block(title: str, rows: Mapping[str, object], *pictures: str) -> str:
    """A title, a table of names and values, and pictures beside one another."""
    left = "style='text-align:left'"
    lines = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(_said(value))}</td></tr>"
        for name, value in rows.items()
        if value is not None
    )
    beside = "".join(f"<div>{picture}</div>" for picture in pictures if picture)
    return (
        f"<div class='optimist'><strong>{escape(title)}</strong>"
        f"<div style='display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start'>"
        f"<table>{lines}</table>{beside}</div></div>"
    )


def _said(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value):.5g}"
    if isinstance(value, np.ndarray):
        return _said(value.tolist())
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value))
    return str(value)


def curve(values: Sequence[float], expected: Sequence[float | None], title: str) -> str:
    """A curve through `values`, and (dashed) what was expected of them, as SVG."""
    told = [value for value in (*values, *expected) if value is not None and np.isfinite(value)]
    if len(values) < 2 or not told:
        return ""
    low, high = min(told), max(told)
    span = (high - low) or 1.0
    wide, tall, edge = 260, 120, 8

    def place(k: int, value: float) -> str:
        x = edge + (wide - 2 * edge) * k / (len(values) - 1)
        return f"{x:.1f},{tall - edge - (tall - 2 * edge) * (value - low) / span:.1f}"

    def line(points: Sequence[float | None], style: str) -> str:
        drawn = [
            place(k, value) for k, value in enumerate(points) if value is not None and np.isfinite(value)
        ]
        return f"<polyline points='{' '.join(drawn)}' fill='none' {style}/>" if len(drawn) > 1 else ""

    said = f"{title}: from {low:.4g} (bottom) to {high:.4g} (top)"
    dashed = line(expected, "stroke='#888' stroke-dasharray='4 3'")
    drawn = line(values, "stroke='#1f77b4' stroke-width='2'")
    return (
        f"<svg width='{wide}' height='{tall}' viewBox='0 0 {wide} {tall}' role='img' "
        f"style='border:1px solid #8888'><title>{escape(said)}</title>{dashed}{drawn}</svg>"
        f"<br><small>{escape(said)}</small>"
    )


def heat(values: FloatArray, title: str, low: float | None = None, high: float | None = None) -> str:
    """A map of `values` [n_down, n_right], the first row at the top: dark is `low`, light is `high`."""
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    shares = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0) * (len(COLOURS) - 1)
    left = np.minimum(shares.astype(np.int64), len(COLOURS) - 2)
    part = (shares - left)[..., np.newaxis]
    pixels = ((1.0 - part) * COLOURS[left] + part * COLOURS[left + 1]).round().astype(np.uint8)
    said = f"{title}: from {low:.4g} (dark) to {high:.4g} (light)"
    return (
        f"<img width='160' height='120' style='image-rendering:pixelated' alt='{escape(said)}' "
        f"src='data:image/png;base64,{b64encode(png(pixels)).decode()}'><br><small>{escape(said)}</small>"
    )


def over_two_axes(
    low: FloatArray, high: FloatArray, at: FloatArray, across: int = 80, down: int = 60
) -> tuple[FloatArray, tuple[int, int]]:
    """Points over the first two axes, the others as `at` says, from the top left; how to shape their values.

    `low`, `high`, `at` [d]; of one axis, one row.  [n_down * n_right, d]
    """
    shares = np.meshgrid(np.linspace(1.0, 0.0, down if len(low) > 1 else 1), np.linspace(0.0, 1.0, across))
    points = np.tile(at, (shares[0].size, 1))
    for axis, share in zip(range(len(low)), reversed(shares), strict=False):
        points[:, axis] = low[axis] + share.T.ravel() * (high[axis] - low[axis])
    return points, shares[0].T.shape


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels [n_down, n_right, 3] as a PNG file."""
    down, right, _ = pixels.shape
    rows = np.concatenate([np.zeros((down, 1), np.uint8), pixels.reshape(down, -1)], axis=1)  # no filter

    def part(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    size = struct.pack(">IIBBBBB", right, down, 8, 2, 0, 0, 0)
    parts = (part(b"IHDR", size), part(b"IDAT", zlib.compress(rows.tobytes())), part(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
