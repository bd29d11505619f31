"""The picture of a learning run: its learning curve, and of what it knows as much as its agent can say."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from optimist.arrays import FloatArray
from optimist.runs import EpisodeRow, Session
from optimist.views.axes_figure import draw_axes
from optimist.views.knowledge import Episode, Maps, policy_of
from optimist.views.path_figure import draw_coordinates
from optimist.views.plan_figure import RESOLUTION, Slice, draw_actions, draw_path, draw_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLES = "#d55e00"
COLUMNS = 3
COARSE = 80  # points per axis of a policy: looking ahead takes a tenth of a millisecond each
UNKNOWN = "what it does not know"


def draw_learning(
    run: Session[Any],
    problem: str,
    *,
    axis_names: tuple[str, ...],  # [d]
    best_known: float | None = None,
    axes: tuple[int, int] | None = (0, 1),
) -> Figure:
    """Curve, value function, policy and uncertainty with the last path, nodes, that path over time.

    Of more than two axes a slice through where it began; of one axis (`axes` None) curves along it.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    seen = run.transitions.states[: run.stopped_learning_at]
    at = seen[0] if len(seen) else 0.5 * (run.box.low + run.box.high)
    last = None
    with suppress(ValueError):  # none has ended, or it records none
        last = Episode.of(run)
    shown = None if run.box.n_dims == 1 or axes is None else Slice(axes, at, axis_names)
    grid = getattr(run, "grid", None)  # if it plans on one
    maps = _Along(run) if shown is None else _Over(run, shown)
    panels = ["curve", *maps.names, *(["nodes"] if grid is not None else []), *(["last"] if last else [])]
    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.2 * columns, 4.4 * rows), layout="constrained")
    title = f"{problem}, learned from {run.num_timesteps} transitions, seed {run.seed}"
    held = shown.title() if shown is not None else ""
    figure.suptitle("\n".join(line for line in (title, held) if line), fontsize=11)
    padded = [*panels, *["."] * (rows * columns - len(panels))]
    mosaic: list[Any] = [padded[columns * row : columns * (row + 1)] for row in range(rows)]
    drawn = figure.subplot_mosaic(mosaic)
    _draw_curve(drawn["curve"], run.episodes, best_known)
    maps.draw(figure, drawn, seen, None if last is None else last.states)
    if grid is not None:
        layout = getattr(run, "layout", None)
        title = "where its nodes are" + (f"\n{layout.name}" if layout is not None else "")
        draw_axes(drawn["nodes"], grid, seen, axis_names, title)
    if last is not None:
        title = f"episode {last.row.episode}: total reward {last.row.total_reward:.4g}"
        draw_coordinates(drawn["last"], run.box, last.states, axis_names, title)
    if shown is None:
        for name in maps.names:
            drawn[name].set_xlabel(axis_names[0])
    return figure


class _Over:
    """What it knows, over two axes."""

    def __init__(self, run: Session[Any], shown: Slice) -> None:
        self.run, self.shown = run, shown
        self.xs, self.ys, _ = shown.lattice(run.box)
        self.maps = Maps.over(run, shown)
        self.actions = policy_of(run, shown.lattice(run.box, COARSE)[2])
        found = {"values": self.maps.values, "policy": self.actions, "unknown": self.maps.unknown}
        self.names = [name for name, part in found.items() if part is not None]

    def draw(self, figure: Figure, drawn: dict[str, Axes], seen: FloatArray, path: FloatArray | None) -> None:
        first, second = self.shown.axes
        xs, ys = self.xs, self.ys
        if self.maps.values is not None:
            draw_values(figure, drawn["values"], xs, ys, self.maps.values)
        if self.actions is not None:
            across, up, _ = self.shown.lattice(self.run.box, COARSE)
            picture = self.actions.reshape(COARSE, COARSE)
            draw_actions(figure, drawn["policy"], across, up, picture, self.run.task.controls)
        if self.maps.unknown is not None:
            draw_unknown(figure, drawn["unknown"], xs, ys, self.maps.unknown)
        for name in self.names:
            panel = drawn[name]
            if len(seen) and name == "unknown":
                panel.scatter(seen[:, first], seen[:, second], s=4, color=SAMPLES, label="learned from")
            if path is not None and name != "unknown":
                widths = self.run.box.widths[[first, second]]
                draw_path(panel, path[:, [first, second]], widths, "last episode")
            if panel.get_legend_handles_labels()[0] and name != "policy":
                panel.legend(loc="upper right", fontsize=8, facecolor="#bbbbbb", framealpha=0.9)
            panel.set_xlabel(self.shown.names[first])
            panel.set_ylabel(self.shown.names[second])
            panel.set_xlim(xs[0], xs[-1])
            panel.set_ylim(ys[0], ys[-1])


class _Along:
    """What it knows, along the only axis."""

    def __init__(self, run: Session[Any]) -> None:
        self.run = run
        self.xs = np.linspace(run.box.low[0], run.box.high[0], 4 * RESOLUTION)
        states = self.xs[:, np.newaxis]
        self.maps, self.actions = Maps.of(run, states), policy_of(run, states)
        found = {"values": self.maps.values, "policy": self.actions, "unknown": self.maps.unknown}
        self.names = [name for name, part in found.items() if part is not None]

    def draw(self, figure: Figure, drawn: dict[str, Axes], seen: FloatArray, path: FloatArray | None) -> None:
        if self.maps.values is not None:
            drawn["values"].plot(self.xs, self.maps.values)
            drawn["values"].set_title("value function", fontsize=10)
        if self.actions is not None:
            controls = [", ".join(f"{value:g}" for value in row) for row in self.run.task.controls]
            drawn["policy"].step(self.xs, self.actions, where="mid")
            drawn["policy"].set_yticks(range(len(controls)), controls)
            drawn["policy"].set_title("greedy policy", fontsize=10)
        if self.maps.unknown is not None:
            drawn["unknown"].plot(self.xs, self.maps.unknown, color="black")
            places = np.zeros(len(seen))
            drawn["unknown"].plot(seen[:, 0], places, "|", color=SAMPLES, label="learned from")
            drawn["unknown"].set_ylim(-0.05, 1.05)
            drawn["unknown"].set_title(UNKNOWN, fontsize=10)
            drawn["unknown"].legend(loc="upper right", fontsize=8)
        for name in self.names:
            drawn[name].set_xlim(self.xs[0], self.xs[-1])


def draw_unknown(figure: Figure, axes: Axes, xs: FloatArray, ys: FloatArray, unknown: FloatArray) -> None:
    """Terra incognita: white where nothing is known, black where all is; always from 0 to 1."""
    mesh = axes.pcolormesh(xs, ys, unknown, cmap="gray", vmin=0.0, vmax=1.0, shading="nearest")
    mesh.set_rasterized(True)
    figure.colorbar(mesh, ax=axes, label="uncertainty, mean over actions")
    axes.set_title(UNKNOWN, fontsize=10)


def _draw_curve(axes: Axes, episodes: Sequence[EpisodeRow], best_known: float | None) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    totals = np.array([row.total_reward for row in episodes])
    numbers = [row.episode for row in episodes]
    few = len(numbers) <= 12
    if best_known is not None:
        axes.axhline(
            best_known, color="black", linewidth=1.0, label=f"best known ({best_known:g})", zorder=1.5
        )
    axes.plot(numbers, totals, "o-" if few else "-", color="#0072b2", label="learned")
    expected = [(row.episode, row.expected) for row in episodes if row.expected is not None]
    if expected and few:
        axes.plot(
            *zip(*expected, strict=True), "_", color="#d55e00", markersize=16, label="expected", zorder=4
        )
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
