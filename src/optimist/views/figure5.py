"""The paper's Figure 5: value function and uncertainty of mountain car as a run goes on, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import FloatArray
from optimist.views.plan_figure import RESOLUTION, Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

SAMPLES = "#d55e00"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What an agent believed at some time, on the lattice of a slice."""

    title: str
    values: FloatArray  # [R^2]
    uncertainty: FloatArray | None  # [R^2]; None: the truth
    samples: FloatArray  # [n, d] states seen


def draw_figure5(
    snapshots: Sequence[Snapshot], shown: Slice, xs: FloatArray, ys: FloatArray, note: str
) -> Figure:
    """One column per snapshot: value function above, uncertainty below, with the observed samples."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(3.9 * len(snapshots) + 0.8, 7.0), layout="constrained")
    panels = figure.subplots(2, len(snapshots), squeeze=False, sharex=True, sharey=True)
    lowest = min(float(snapshot.values.min()) for snapshot in snapshots)
    highest = max(float(snapshot.values.max()) for snapshot in snapshots)
    for column, snapshot in enumerate(snapshots):
        upper, lower = panels[:, column]
        upper.set_title(snapshot.title, fontsize=10)
        mesh = _fill(upper, xs, ys, snapshot.values, "viridis", (lowest, highest))
        if column == len(snapshots) - 1:
            figure.colorbar(mesh, ax=panels[0, :].tolist(), label="value")
        truth = np.zeros(snapshot.values.shape)
        unknown = truth if snapshot.uncertainty is None else snapshot.uncertainty
        grey = _fill(lower, xs, ys, unknown, "gray", (0.0, 1.0))
        if snapshot.uncertainty is None:
            lower.text(0.5, 0.5, "nothing unknown", transform=lower.transAxes, ha="center", color="white")
        if column == len(snapshots) - 1:
            figure.colorbar(grey, ax=panels[1, :].tolist(), label="uncertainty c, mean over actions")
        for panel in (upper, lower):
            panel.scatter(*snapshot.samples.T[list(shown.axes)], s=5, color=SAMPLES, label="observed")
        lower.set_xlabel(shown.names[shown.axes[0]])
    for panel in panels[:, 0]:
        panel.set_ylabel(shown.names[shown.axes[1]])
        panel.set_xlim(xs[0], xs[-1])
        panel.set_ylim(ys[0], ys[-1])
    panels[0, 0].legend(loc="upper left", fontsize=8, framealpha=0.85)
    figure.supxlabel(note, fontsize=7.5)
    return figure


def _fill(
    axes: Axes, xs: FloatArray, ys: FloatArray, values: FloatArray, colours: str, limits: tuple[float, float]
) -> QuadMesh:
    picture = values.reshape(RESOLUTION, RESOLUTION)
    mesh = axes.pcolormesh(xs, ys, picture, cmap=colours, vmin=limits[0], vmax=limits[1], shading="nearest")
    mesh.set_rasterized(True)
    if colours == "viridis" and np.ptp(values) > 0.0:
        axes.contour(xs, ys, picture, levels=8, colors="white", linewidths=0.4, alpha=0.6)
    return mesh
