"""The picture of a learning run: its learning curve, and of what it knows as much as its agent can say."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from optimist.runs import EpisodeRow, Session
from optimist.views.axes_figure import draw_axes
from optimist.views.plan_figure import RESOLUTION, Slice, draw_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLES = "#d55e00"


def draw_learning(
    run: Session[Any],
    problem: str,
    *,
    axis_names: tuple[str, ...],  # [d]
    best_known: float | None = None,
    axes: tuple[int, int] = (0, 1),
) -> Figure:
    """Curve, value function, uncertainty, nodes; of more than two axes a slice through where it began."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    seen = run.transitions.states[: run.stopped_learning_at]
    middle = 0.5 * (run.box.low + run.box.high)
    shown = Slice(axes, seen[0] if len(seen) else middle, axis_names)
    values = unknown = None
    if run.box.n_dims > 1:
        xs, ys, states = shown.lattice(run.box)
        with suppress(ValueError):  # before its first plan an agent has nothing to show
            values, unknown = run.value(states), run.uncertainty(states)
    maps = {"values": values, "unknown": unknown}
    grid, layout = getattr(run, "grid", None), getattr(run, "layout", None)  # if it plans on a grid
    panels = ["curve", *(name for name, found in maps.items() if found is not None)]
    panels += ["nodes"] if grid is not None else []
    figure = Figure(figsize=(5.0 * len(panels), 4.6), layout="constrained")
    title = f"{problem}, learned from {run.num_timesteps} transitions, seed {run.seed}"
    figure.suptitle("\n".join(line for line in (title, shown.title()) if line), fontsize=11)
    drawn = figure.subplot_mosaic([[*panels]])
    _draw_curve(drawn["curve"], run.episodes, best_known)
    if values is not None:
        draw_values(figure, drawn["values"], xs, ys, values.reshape(RESOLUTION, RESOLUTION))
    if unknown is not None:
        picture = unknown.mean(axis=1).reshape(RESOLUTION, RESOLUTION)
        mesh = drawn["unknown"].pcolormesh(xs, ys, picture, cmap="gray", shading="nearest", rasterized=True)
        mesh.set_clim(0.0, max(float(picture.max()), 1e-12))
        figure.colorbar(mesh, ax=drawn["unknown"], label="uncertainty, mean over actions")
        drawn["unknown"].set_title("what it does not know", fontsize=10)
    if grid is not None:
        title = "where its nodes are" + (f"\n{layout.name}" if layout is not None else "")
        draw_axes(drawn["nodes"], grid, seen, axis_names, title)
    for panel in [drawn[name] for name in maps if name in panels]:
        if len(seen):
            panel.scatter(seen[:, axes[0]], seen[:, axes[1]], s=4, color=SAMPLES, label="learned from")
            panel.legend(loc="upper right", fontsize=8, framealpha=0.85)
        panel.set_xlabel(axis_names[axes[0]])
        panel.set_ylabel(axis_names[axes[1]])
        panel.set_xlim(xs[0], xs[-1])
        panel.set_ylim(ys[0], ys[-1])
    return figure


def _draw_curve(axes: Axes, episodes: Sequence[EpisodeRow], best_known: float | None) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    totals = np.array([row.total_reward for row in episodes])
    numbers = [row.episode for row in episodes]
    few = len(numbers) <= 12
    if best_known is not None:
        axes.axhline(best_known, color="black", linewidth=1.0, label=f"best known ({best_known:g})")
    axes.plot(numbers, totals, "o-" if few else "-", color="#0072b2", label="learned")
    expected = [(row.episode, row.expected) for row in episodes if row.expected is not None]
    if expected and few:
        axes.plot(*zip(*expected, strict=True), "_", color="#d55e00", markersize=14, label="expected")
    for number, total in zip(numbers, totals, strict=True) if few else ():
        axes.annotate(
            f"{total:.4g}", (number, total), textcoords="offset points", xytext=(0, -14), ha="center"
        )
    axes.set_xlabel("episode")
    axes.set_ylabel("total reward")
    axes.set_title("learning curve", fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.12, y=0.2)
    axes.legend(loc="lower right", fontsize=8)
