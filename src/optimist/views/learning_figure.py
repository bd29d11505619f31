"""The picture of a learning run: its learning curve, its value function, and what it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimist.learner import GPRMax
from optimist.systems import System
from optimist.views.plan_figure import RESOLUTION, Slice, draw_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLES = "#d55e00"


def draw_learning(learner: GPRMax, system: System, axes: tuple[int, int] = (0, 1)) -> Figure:
    """Three panels; of more than two axes a slice through the paper's start."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    shown = Slice(axes, system.starts[0], system.axis_names)
    xs, ys, states = shown.lattice(learner.grid.box)
    values = learner.value(states).reshape(RESOLUTION, RESOLUTION)
    unknown = learner.uncertainty(states).mean(axis=1).reshape(RESOLUTION, RESOLUTION)
    figure = Figure(figsize=(15.0, 4.6), layout="constrained")
    title = f"{system.name}, learned from {learner.num_timesteps} transitions, seed {learner.seed}"
    figure.suptitle("\n".join(line for line in (title, shown.title()) if line), fontsize=11)
    curve, left, right = figure.subplots(1, 3)
    _draw_curve(curve, learner, system)
    draw_values(figure, left, xs, ys, values)
    mesh = right.pcolormesh(
        xs, ys, unknown, cmap="gray", vmin=0.0, vmax=max(float(unknown.max()), 1e-12), shading="nearest"
    )
    mesh.set_rasterized(True)
    figure.colorbar(mesh, ax=right, label="uncertainty, mean over actions")
    right.set_title("what it does not know", fontsize=10)
    seen = learner.transitions.states[: learner.stopped_learning_at]
    for panel in (left, right):
        panel.scatter(*seen[:, list(axes)].T, s=4, color=SAMPLES, label="learned from")
        panel.set_xlabel(shown.names[axes[0]])
        panel.set_xlim(xs[0], xs[-1])
        panel.set_ylim(ys[0], ys[-1])
    left.set_ylabel(shown.names[axes[1]])
    right.legend(loc="upper right", fontsize=8, framealpha=0.85)
    return figure


def _draw_curve(axes: Axes, learner: GPRMax, system: System) -> None:
    episodes = learner.episodes
    totals = np.array([row.total_reward for row in episodes])
    numbers = [row.episode for row in episodes]
    axes.axhline(system.best_known, color="black", linewidth=1.0, label=f"best known ({system.best_known:g})")
    axes.plot(numbers, totals, "o-", color="#0072b2", label="learned")
    for number, total in zip(numbers, totals, strict=True):
        axes.annotate(
            f"{total:.4g}", (number, total), textcoords="offset points", xytext=(0, -14), ha="center"
        )
    axes.set_xlabel("episode")
    axes.set_ylabel("total reward")
    axes.set_title("learning curve", fontsize=10)
    axes.set_xticks(numbers)
    axes.margins(x=0.12, y=0.2)
    axes.legend(loc="lower right", fontsize=8)
