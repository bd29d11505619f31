"""The picture of a report, for print: a run's curve, last maps, drift and times; or a sweep's comparison."""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import QFunction
from optimist.runs.maps import Map
from optimist.views.plan_figure import RESOLUTION, Slice, draw_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000")
COLUMNS = 3


def draw_report(data: dict[str, Any]) -> Figure:
    """What `views.page.report` has gathered, as a figure."""
    rows = data["runs"]["runs"]
    if len(rows) == 1 and rows[0]["id"] in data["run"]:
        return _draw_run(data["run"][rows[0]["id"]])
    return _draw_sweep(data["runs"]["name"], [row for row in rows if not row.get("error")])


def _draw_run(run: dict[str, Any]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415

    said = run["run"]
    header, plans = said["header"], said["plans"]
    figure = Figure(figsize=(15.0, 9.2), layout="constrained")
    count = run["steps"]["count"]
    title = f"{header['problem']}, {header['agent']}, seed {header['seed']}: {count} transitions"
    panels = figure.subplot_mosaic([["curve", "value", "unknown"], ["drift", "times", "known"]])
    _draw_curve(panels["curve"], said)
    held = _draw_maps(figure, panels["value"], panels["unknown"], run)
    figure.suptitle("\n".join(line for line in (title, held) if line), fontsize=11)
    after = [plan["n_transitions"] for plan in plans]
    _draw_drift(panels["drift"], after, plans, header["settings"].get("stopping"))
    floor = np.zeros(len(plans))
    for part, colour in zip(("fit", "predict", "plan"), COLOURS, strict=False):
        seconds = np.array([plan[f"{part}_seconds"] for plan in plans])
        panels["times"].bar(np.arange(1, len(plans) + 1), seconds, bottom=floor, color=colour, label=part)
        floor += seconds
    panels["known"].plot(after, [plan["mean_uncertainty"] for plan in plans], "o-", color=COLOURS[0])
    panels["known"].set_ylim(-0.02, 1.02)
    labels = {"drift": "drift", "times": "seconds of each update", "known": "mean uncertainty"}
    for name, label in labels.items():
        panels[name].set_title(label, fontsize=10)
        panels[name].set_xlabel("plan" if name == "times" else "transitions")
    if plans:
        panels["times"].legend(fontsize=8)
    return figure


def _draw_curve(panel: Axes, said: dict[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    totals = [row[1] for row in said["episodes"]]
    numbers = np.arange(1, len(totals) + 1)
    if said["best_known"] is not None:
        panel.axhline(said["best_known"], color="black", linewidth=1.0, label="best known")
    panel.plot(numbers, totals, "o-" if len(totals) <= 40 else "-", color=COLOURS[0], label="earned")
    expected = [np.nan if row[4] is None else row[4] for row in said["episodes"]]
    panel.plot(numbers, expected, "_", color=COLOURS[1], markersize=14, label="expected")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_title("learning curve", fontsize=10)
    panel.set_xlabel("episode")
    panel.set_ylabel("total reward")
    panel.legend(fontsize=8)


def _draw_drift(
    panel: Axes, after: list[int], plans: list[dict[str, Any]], rule: dict[str, Any] | None
) -> None:
    for name, colour in zip(("mean_drift", "uncertainty_drift"), COLOURS, strict=False):
        drifts = [plan[name] if plan[name] else np.nan for plan in plans]
        panel.plot(after, drifts, "o-", color=colour, label=name.replace("_", " "))
        if rule is not None:
            panel.axhline(rule[f"{name}_tolerance"], color=colour, linestyle="--", linewidth=1.0)
    if np.isfinite([plan[name] or np.nan for plan in plans for name in ("mean_drift",)]).any():
        panel.set_yscale("log")
    panel.legend(fontsize=8)


def _draw_maps(figure: Figure, left: Axes, right: Axes, run: dict[str, Any]) -> str:
    """The maps of the last plan that has one; where the axes not shown are held."""
    said, names = run["run"], tuple(run["run"]["names"])
    left.set_title("value function", fontsize=10)
    right.set_title("uncertainty, mean over controls", fontsize=10)
    if not run["maps"]:
        return ""
    kept = run["maps"][max(run["maps"])]
    values, unknown = _functions(kept, said["header"]["task"])
    start = np.frombuffer(base64.b64decode(run["steps"]["states"]), dtype="<f4")[: len(names)]
    box = values.grid.box
    if len(names) == 1:
        xs = np.linspace(box.low[0], box.high[0], 4 * RESOLUTION)
        left.plot(xs, values.value(xs[:, np.newaxis]))
        right.plot(xs, unknown(xs[:, np.newaxis]).mean(axis=1))
        return ""
    shown = Slice((0, 1), np.asarray(start, dtype=np.float64), names)
    xs, ys, states = shown.lattice(box)
    draw_values(figure, left, xs, ys, values.value(states).reshape(RESOLUTION, RESOLUTION))
    picture = unknown(states).mean(axis=1).reshape(RESOLUTION, RESOLUTION)
    mesh = right.pcolormesh(
        xs, ys, picture, cmap="Purples", vmin=0.0, vmax=1.0, shading="nearest", rasterized=True
    )
    figure.colorbar(mesh, ax=right)
    path = np.array(kept["document"]["path"])
    for panel in (left, right):
        if len(path):
            panel.plot(path[:, 0], path[:, 1], ".", markersize=3, color=COLOURS[1], label="rehearsed")
            panel.legend(fontsize=8, loc="upper right")
        panel.set_xlabel(names[0])
        panel.set_ylabel(names[1])
    return shown.title()


def _functions(kept: dict[str, Any], task: dict[str, Any]) -> tuple[QFunction, QFunction]:
    """Q-values and uncertainty of a map, at any state."""
    document = kept["document"]
    levels, shades = Map(document, base64.b64decode(kept["content"])).arrays()
    axes, periodic = document["axes"], task["periodic"]
    ends = [
        (low, high) if around else (nodes[0], nodes[-1])
        for nodes, low, high, around in zip(axes, task["low"], task["high"], periodic, strict=True)
    ]
    grid = Grid(Box([low for low, _ in ends], [high for _, high in ends], periodic=periodic), axes)
    q_values = document["low"] + levels.T * ((document["high"] - document["low"]) / document["levels"])
    return QFunction(grid, q_values), QFunction(grid, shades.T / document["shades"])


def _draw_sweep(name: str, rows: list[dict[str, Any]]) -> Figure:
    """Median and quartiles over the runs of every agent, a panel for each problem."""
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    problems: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        problems[str(row["problem"])][str(row["agent"])].append(row)
    across = min(COLUMNS, max(len(problems), 1))
    down = -(-max(len(problems), 1) // across)
    figure = Figure(figsize=(5.4 * across, 4.4 * down), layout="constrained")
    figure.suptitle(f"{name}: {len(rows)} runs, median and quartiles", fontsize=11)
    panels = figure.subplots(down, across, squeeze=False).reshape(-1)
    for panel, (problem, agents) in zip(panels, problems.items(), strict=False):
        panel.set_title(problem, fontsize=10)
        for k, (agent, mine) in enumerate(agents.items()):
            colour, band = COLOURS[k % len(COLOURS)], quartiles([row["totals"] for row in mine])
            numbers = np.arange(1, band.shape[1] + 1)
            panel.fill_between(numbers, band[0], band[2], color=colour, alpha=0.2, linewidth=0.0)
            panel.plot(numbers, band[1], "o-", markersize=3, color=colour, label=f"{agent} ({len(mine)})")
        best = next(iter(agents.values()))[0]["best_known"]
        if best is not None:
            panel.axhline(best, color="black", linestyle="--", linewidth=1.0, label="best known")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("episode")
        panel.set_ylabel("total reward")
        panel.legend(fontsize=8)
    for panel in panels[len(problems) :]:
        panel.set_visible(False)
    return figure


def quartiles(totals: list[list[float]]) -> FloatArray:
    """Of every episode over runs, as long as half of them have come so far.  [3, n_episodes]"""
    found = []
    for k in range(max(map(len, totals), default=0)):
        some = [row[k] for row in totals if len(row) > k]
        if 2 * len(some) < len(totals):
            break
        found.append(np.quantile(some, [0.25, 0.5, 0.75]))
    return np.array(found).reshape(-1, 3).T
