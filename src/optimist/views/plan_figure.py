"""The picture of a plan: value function and greedy policy over two axes of the state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import Actions, FloatArray
from optimist.box import Box
from optimist.planning import QFunction
from optimist.views.axes_figure import draw_axes
from optimist.views.path_figure import pen_lifted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")
RESOLUTION = 160  # points per axis


@dataclass(frozen=True, eq=False)
class Slice:
    """Which two axes to show, and where the others are held."""

    axes: tuple[int, int]
    at: FloatArray  # [d]
    names: tuple[str, ...]  # [d]

    def lattice(self, box: Box, resolution: int = RESOLUTION) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions along both axes, and all states of a picture, row by row.  [R], [R], [R^2, d]"""
        first, second = self.axes
        xs = np.linspace(box.low[first], box.high[first], resolution)
        ys = np.linspace(box.low[second], box.high[second], resolution)
        states = np.tile(self.at, (resolution * resolution, 1))
        states[:, first] = np.tile(xs, resolution)
        states[:, second] = np.repeat(ys, resolution)
        return xs, ys, states

    def title(self) -> str:
        """Where the axes not shown are held, if there are any."""
        others = [axis for axis in range(len(self.at)) if axis not in self.axes]
        return ", ".join(f"{self.names[axis]} = {self.at[axis]:.3g}" for axis in others)


def check_target(file: Path, formats: tuple[str, ...] = FORMATS, what: str = "picture") -> None:
    """Raise ValueError now rather than after the work when a picture cannot be written there."""
    if file.suffix.lower().lstrip(".") not in formats:
        raise ValueError(f"The {what} must end in .{', .'.join(formats)}; got {file.name!r}.")
    if file.is_dir():
        raise ValueError(f"The {what} must be a file; {file} is a directory.")
    if not file.parent.is_dir():
        raise ValueError(f"The {what} must go to a directory that exists; got {file.parent}.")
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise ValueError(
            f"A {what} needs matplotlib, which is not installed: pip install 'optimist[plots]'."
        ) from None


def draw_line(
    q_function: QFunction, controls: FloatArray, path: FloatArray, title: str, names: tuple[str, ...]
) -> Figure:
    """Value function and greedy control along the only axis, with the path of a rollout [t, 1]; the nodes."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    box = q_function.grid.box
    xs = np.linspace(box.low[0], box.high[0], RESOLUTION * 4)
    visited = path[np.isfinite(path).all(axis=1)]
    figure = Figure(figsize=(15.5, 4.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    left, right, nodes = figure.subplots(1, 3)
    draw_axes(nodes, q_function.grid, visited, names, "where the nodes are")
    left.plot(xs, q_function.value(xs[:, np.newaxis]))
    left.plot(visited[:, 0], q_function.value(visited), ".", color="black", markersize=4, label="rollout")
    left.set_title("value function", fontsize=10)
    left.legend(fontsize=8)
    right.step(xs, q_function.greedy(xs[:, np.newaxis]), where="mid")
    right.set_yticks(range(len(controls)), [", ".join(f"{value:g}" for value in row) for row in controls])
    right.set_title("greedy policy", fontsize=10)
    for axes in (left, right):
        axes.set_xlabel(names[0])
        axes.set_xlim(xs[0], xs[-1])
    return figure


def draw_plan(
    q_function: QFunction,
    controls: FloatArray,
    path: FloatArray,
    title: str,
    shown: Slice,
) -> Figure:
    """Value function and greedy control over a slice, with the path of a rollout [t, d]; and the nodes."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    box = q_function.grid.box
    first, second = shown.axes
    xs, ys, states = shown.lattice(box)
    values = q_function.value(states).reshape(RESOLUTION, RESOLUTION)
    actions = q_function.greedy(states).reshape(RESOLUTION, RESOLUTION)

    figure = Figure(figsize=(15.5, 4.6), layout="constrained")
    figure.suptitle("\n".join(line for line in (title, shown.title()) if line), fontsize=11)
    left, right, nodes = figure.subplots(1, 3)
    right.sharex(left)
    right.sharey(left)
    visited = path[np.isfinite(path).all(axis=1)]
    draw_axes(nodes, q_function.grid, visited, shown.names, "where the nodes are")
    draw_values(figure, left, xs, ys, values)
    draw_actions(figure, right, xs, ys, actions, controls)
    for axes in (left, right):
        draw_path(axes, path[:, [first, second]], box.widths[[first, second]])
        axes.set_xlabel(shown.names[first])
        axes.set_xlim(xs[0], xs[-1])
        axes.set_ylim(ys[0], ys[-1])
    left.set_ylabel(shown.names[second])
    left.legend(loc="upper right", fontsize=8, facecolor="#bbbbbb", framealpha=0.9)
    return figure


def save_figure(figure: Figure, file: Path) -> None:
    """Write beside and rename: there is never half a picture."""
    beside = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix}")
    try:
        figure.savefig(beside, dpi=150)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def draw_values(figure: Figure, axes: Axes, xs: FloatArray, ys: FloatArray, values: FloatArray) -> None:
    """A value function with its contours and scale."""
    mesh = axes.pcolormesh(xs, ys, values, cmap="viridis", shading="nearest", rasterized=True)
    axes.contour(xs, ys, values, levels=10, colors="white", linewidths=0.5, linestyles="solid", alpha=0.6)
    figure.colorbar(mesh, ax=axes, label="value")
    axes.set_title("value function", fontsize=10)


def draw_actions(
    figure: Figure,
    axes: Axes,
    xs: FloatArray,
    ys: FloatArray,
    actions: Actions,
    controls: FloatArray,
) -> None:
    """A policy: the control of every place."""
    from matplotlib import colormaps  # noqa: PLC0415
    from matplotlib.colors import BoundaryNorm, ListedColormap  # noqa: PLC0415

    count = len(controls)
    # cividis is made for colour-blind readers and keeps the order of the controls in print
    colours = ListedColormap(colormaps["cividis"](np.linspace(0.0, 1.0, count)))
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    mesh = axes.pcolormesh(xs, ys, actions, cmap=colours, norm=norm, shading="nearest", rasterized=True)
    bar = figure.colorbar(mesh, ax=axes, ticks=range(count), label="control")
    bar.ax.set_yticklabels([", ".join(f"{value:g}" for value in row) for row in controls])
    axes.set_title("greedy policy", fontsize=10)


def draw_path(axes: Axes, path: FloatArray, widths: FloatArray, label: str = "rollout") -> None:
    """A path [t, 2] in a box that wide, with its start and its end."""
    path = path[np.isfinite(path).all(axis=1)]
    broken = pen_lifted(path, 0.5 * widths)
    axes.plot(broken[:, 0], broken[:, 1], color="black", linewidth=2.2)
    axes.plot(broken[:, 0], broken[:, 1], color="white", linewidth=1.1, label=label)
    for place, marker, colour, name in ((0, "o", "white", "start"), (-1, "X", "#d55e00", "end")):
        (shown,) = axes.plot(*path[place], marker, color=colour, markeredgecolor="black", label=name)
        shown.set(markersize=7, clip_on=False, zorder=3)
