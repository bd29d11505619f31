"""The picture of a grid: where the nodes of every axis went, over the states they were placed by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import FloatArray
from optimist.grid import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 80
NODES, VISITS = "#0072b2", "#d55e00"


def draw_axes(panel: Axes, grid: Grid, states: FloatArray, names: tuple[str, ...], title: str) -> None:
    """One strip per axis, scaled to the box: nodes below, above them how often `states` [n, d] were there."""
    scaled = (grid.box.clip(states) - grid.box.low) / grid.box.widths
    for axis, nodes in enumerate(grid.axes):
        floor = grid.n_dims - 1.0 - axis
        places = (nodes - grid.box.low[axis]) / grid.box.widths[axis]
        first = axis == 0  # one entry in the legend is enough
        label = "nodes" if first else ""
        panel.vlines(places, floor + 0.05, floor + 0.3, color=NODES, linewidth=0.8, label=label)
        if len(scaled):
            counts, edges = np.histogram(scaled[:, axis], bins=BINS, range=(0.0, 1.0))
            heights = floor + 0.34 + 0.5 * np.sqrt(counts / max(counts.max(), 1))
            label = "visits" if first else ""
            panel.stairs(heights, edges, baseline=floor + 0.34, fill=True, color=VISITS, label=label)
        for place, edge in ((0.0, grid.box.low[axis]), (1.0, grid.box.high[axis])):
            panel.annotate(
                f"{edge:.3g}",
                (place, floor),
                textcoords="offset points",
                xytext=(0, -7),
                ha="left" if place == 0.0 else "right",
                fontsize=7,
            )
    panel.set_yticks(np.arange(grid.n_dims)[::-1] + 0.4, names)
    panel.set_xticks([])
    panel.set_xlim(-0.01, 1.01)
    panel.set_ylim(-0.2, grid.n_dims)
    panel.set_title(title, fontsize=10)
    panel.legend(loc="upper right", fontsize=8, framealpha=0.85)
