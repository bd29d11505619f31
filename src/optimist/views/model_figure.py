"""The picture of a learned model: what it predicts, where it was seen, what it does not know (Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import FloatArray
from optimist.models import GPDynamics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESOLUTION = 120  # points per axis


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model of a 2-D system at some time."""

    title: str
    model: GPDynamics


def draw_models(
    snapshots: Sequence[Snapshot],
    *,
    action: int,
    coordinate: int,
    truth: FloatArray,
    names: tuple[str, str],
    what: str,
) -> Figure:
    """One column per snapshot: predicted displacement of one coordinate, its error, the uncertainty.

    `truth` [RESOLUTION^2] is the true displacement at `lattice` states.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    box = snapshots[0].model.box
    xs, ys, states = lattice(box.low, box.high)
    control = snapshots[0].model.controls[action : action + 1]
    figure = Figure(figsize=(4.6 * len(snapshots) + 0.8, 9.6), layout="constrained")
    panels = figure.subplots(3, len(snapshots), squeeze=False, sharex=True, sharey=True)
    limit = float(np.abs(truth).max())
    for column, snapshot in enumerate(snapshots):
        next_states, uncertainty = snapshot.model.predict_with_uncertainty(states, control)
        predicted = box.displacement(states, next_states)[:, coordinate]
        rows = (
            (f"predicted {what}", predicted, "cividis", (-limit, limit)),
            ("absolute error", np.abs(predicted - truth), "magma_r", (0.0, limit)),
            ("uncertainty c", uncertainty, "gray", (0.0, 1.0)),
        )
        for row, (label, values, colours, limits) in enumerate(rows):
            panel = panels[row, column]
            mesh = panel.pcolormesh(
                xs,
                ys,
                values.reshape(RESOLUTION, RESOLUTION),
                cmap=colours,
                vmin=limits[0],
                vmax=limits[1],
                shading="nearest",
                rasterized=True,
            )
            if column == len(snapshots) - 1:
                figure.colorbar(mesh, ax=panels[row, :].tolist(), label=label)
            _draw_samples(panel, snapshot.model, action)
        panels[0, column].set_title(snapshot.title, fontsize=11)
        panels[2, column].set_xlabel(names[0])
    for panel in panels[:, 0]:
        panel.set_ylabel(names[1])
    panels[0, 0].legend(loc="upper left", fontsize=8, framealpha=0.85)
    return figure


def lattice(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Positions along both axes, and all states of a picture, row by row.  [R], [R], [R^2, 2]"""
    xs, ys = (np.linspace(low[axis], high[axis], RESOLUTION) for axis in range(2))
    return xs, ys, np.column_stack([np.tile(xs, RESOLUTION), np.repeat(ys, RESOLUTION)])


def _draw_samples(axes: Axes, model: GPDynamics, action: int) -> None:
    same = model.seen.actions == action
    for rows, colour, label in ((~same, "none", "other actions"), (same, "#d55e00", "this action")):
        axes.scatter(
            model.seen.states[rows, 0],
            model.seen.states[rows, 1],
            s=10,
            facecolors=colour,
            edgecolors="#d55e00",
            linewidths=0.8,
            label=label,
        )
