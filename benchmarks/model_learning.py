"""What a Gaussian process knows of mountain car after 40 and after 120 transitions (the paper's Fig. 5).

    python -m benchmarks.model_learning model.png

The uncertainty is nearly constant along velocity: acceleration depends on the position only, the processes
find that out, and so they know states nobody has visited.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.exploring import random_transitions
from optimist.arrays import FloatArray
from optimist.models import GPSettings, Model, fit_dynamics
from optimist.systems import SYSTEMS
from optimist.task import Task
from optimist.transitions import Transitions
from optimist.views.plan_figure import check_target, save_figure

FORWARD = 2
SETTINGS = GPSettings(kind="per-action", subset=150)
RESOLUTION = 120  # points per axis


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model of a 2-D system at some time."""

    title: str
    model: Model
    seen: Transitions


def draw_models(
    snapshots: Sequence[Snapshot],
    *,
    task: Task,
    action: int,
    coordinate: int,
    truth: FloatArray,
    names: tuple[str, str],
    what: str,
) -> Figure:
    """One column per snapshot: predicted displacement of one coordinate, its error, the uncertainty.

    `truth` [RESOLUTION^2] is the true displacement at `lattice` states.
    """
    box, control = task.box, task.controls[action : action + 1]
    xs, ys, states = lattice(box.low, box.high)
    figure = Figure(figsize=(4.6 * len(snapshots) + 0.8, 9.6), layout="constrained")
    panels = figure.subplots(3, len(snapshots), squeeze=False, sharex=True, sharey=True)
    limit = float(np.abs(truth).max())
    for column, snapshot in enumerate(snapshots):
        next_states, uncertainty = snapshot.model.predict_with_uncertainty(states, control)
        assert uncertainty is not None
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
            _draw_samples(panel, snapshot.seen, action)
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


def _draw_samples(axes: Axes, seen: Transitions, action: int) -> None:
    same = seen.actions == action
    for rows, colour, label in ((~same, "none", "other actions"), (same, "#d55e00", "this action")):
        axes.scatter(
            seen.states[rows, 0],
            seen.states[rows, 1],
            s=10,
            facecolors=colour,
            edgecolors="#d55e00",
            linewidths=0.8,
            label=label,
        )


def main() -> None:
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "model.png")
    check_target(file)
    system = SYSTEMS["mountain-car"]
    task = system.task
    snapshots = []
    for count in (40, 120):
        transitions = random_transitions(system, count, seed=1)
        model = fit_dynamics(transitions, task.box, task.controls, SETTINGS, fit_seed=0)
        snapshots.append(Snapshot(f"after {count} transitions", model, transitions))
    _, _, states = lattice(task.box.low, task.box.high)
    control = task.controls[FORWARD : FORWARD + 1]
    # the acceleration itself, without wall and speed limit
    truth = 0.001 * control[0, 0] - 0.0025 * np.cos(3.0 * states[:, 0])
    figure = draw_models(
        snapshots,
        task=task,
        action=FORWARD,
        coordinate=1,
        truth=truth,
        names=("position", "velocity"),
        what="acceleration",
    )
    figure.suptitle(
        "mountain car, full throttle: one Gaussian process per action and coordinate", fontsize=12
    )
    save_figure(figure, file)
    for snapshot in snapshots:
        _, uncertainty = snapshot.model.predict_with_uncertainty(states, control)
        assert uncertainty is not None
        print(f"{snapshot.title}: mean uncertainty over the box {uncertainty.mean():.4f}")
    print(f"picture: {file}")


if __name__ == "__main__":
    main()
