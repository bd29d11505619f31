"""The picture of an episode: its coordinates over time, each between the edges of the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR = "#0072b2"
EDGE = "#cccccc"


def draw_coordinates(panel: Axes, box: Box, path: FloatArray, names: tuple[str, ...], title: str) -> None:
    """One strip per axis, scaled to the box, with the path [t, d] in it; the pen is lifted at seams."""
    scaled = (box.clip(path) - box.low) / box.widths
    times = np.arange(len(path), dtype=np.float64)
    for axis in range(box.n_dims):
        floor = box.n_dims - 1.0 - axis
        panel.axhspan(floor + 0.1, floor + 0.9, facecolor="none", edgecolor=EDGE, linewidth=0.8)
        strip = np.column_stack([times, floor + 0.1 + 0.8 * scaled[:, axis]])
        seam = 0.4 if box.periodic[axis] else np.inf
        lifted = pen_lifted(strip, np.array([np.inf, seam]))
        panel.plot(lifted[:, 0], lifted[:, 1], color=COLOUR, linewidth=1.2)
        for height, edge in ((0.1, box.low[axis]), (0.9, box.high[axis])):
            panel.annotate(
                f"{edge:.3g}",
                (1.0, floor + height),
                xycoords=("axes fraction", "data"),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
    panel.set_yticks(np.arange(box.n_dims)[::-1] + 0.5, names)
    panel.set_xlim(0.0, max(len(path) - 1.0, 1.0))
    panel.set_ylim(0.0, box.n_dims)
    panel.set_xlabel("step")
    panel.set_title(title, fontsize=10)


def pen_lifted(path: FloatArray, farthest: FloatArray) -> FloatArray:
    """A path [t, 2] with a gap wherever it jumps farther than that: across the seam of a periodic axis."""
    jumps = np.flatnonzero((np.abs(np.diff(path, axis=0)) > farthest).any(axis=1)) + 1
    return np.insert(path, jumps, np.nan, axis=0)
