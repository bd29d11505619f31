"""The paper's Figure 4: total reward over episodes, GP-RMAX on the left, Sarsa on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import FloatArray
from optimist.experiments.specs import Experiment
from optimist.experiments.statistics import probability_of_improvement, summarise
from optimist.paper.order import Order
from optimist.paper.runs import (
    BOOTSTRAP_SEED,
    MINUTES,
    REFERENCE,
    Curve,
    Runs,
    curves,
    figure4_runs,
    recorded_runs,
    totals_of,
)
from optimist.paper.table import best_total

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# colour-blind safe (Okabe & Ito), and told apart in print by their dashes. Those drawn later are narrower: of
# curves that coincide each shows at the sides, and in the gaps, of the next.
STYLES = {
    "gp-rmax-exp": ("#0072b2", "-", 4.5),
    "gp-rmax-grid": ("#d55e00", "--", 2.6),
    "gp-rmax-noexp": ("#009e73", "-.", 1.2),
    "sarsa-fine": ("#cc79a7", "-", 3.2),
    "sarsa-coarse": ("#56b4e9", "--", 1.4),
}
SMOOTHED_ABOVE = 100  # episodes: longer curves are shown as medians of blocks
BLOCKS = 100


NOTE = (
    "medians over seeds (0, 1, ...), bands: 95 % bootstrap intervals of the median; "
    "settings: preset 'ours', docs/background/sarsa.md; long curves are medians of blocks of episodes"
)


def figure4(order: Order) -> list[Path]:
    """Make it, with its statistics, from recorded runs."""
    order.require_plots()
    runs = recorded_runs(run_figure4(order), order.results)
    best = best_totals(runs, order)
    name = order.named("figure4")
    figures = order.saved(name, draw_figure4(curves(runs), best, NOTE))
    return [*figures, order.written(name, statistics_as_markdown(runs, best))]


def run_figure4(order: Order) -> Experiment:
    """Its runs, announced and made."""
    minutes = MINUTES["quick" if order.quick else "full"]
    order.say(f"about {minutes} minutes on two cores if nothing is recorded")
    experiment = figure4_runs(quick=order.quick)
    order.run_missing(experiment)
    return experiment


def best_totals(runs: Runs, order: Order) -> dict[str, float]:
    """What is possible on each problem."""
    order.say("planning with the true dynamics")
    return {problem: best_total(problem) for problem in dict.fromkeys(problem for problem, _ in runs)}


def draw_figure4(curves: Mapping[str, Sequence[Curve]], best: Mapping[str, float], note: str) -> Figure:
    """Two panels per problem; a black line for the best possible; bands over seeds."""
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(10.0, 2.7 * len(curves) + 0.9), layout="constrained")
    panels = figure.subplots(len(curves), 2, squeeze=False, sharey="row")
    for row, (problem, found) in enumerate(curves.items()):
        for column, family in enumerate(("gp-rmax", "sarsa")):
            panel = panels[row, column]
            mine = [curve for curve in found if curve.agent.startswith(family)]
            for curve in mine:
                _draw_curve(panel, curve)
            label = "best possible (true model)"
            panel.axhline(best[problem], color="black", linewidth=1.0, label=label, zorder=1.5)  # below all
            panel.set_xlabel("episode")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            seeds = {curve.n_seeds for curve in mine}
            count = "/".join(str(n) for n in sorted(seeds)) or "no"
            panel.set_title(f"{problem}, {'GP-RMAX' if column == 0 else 'Sarsa'}, {count} seeds", fontsize=10)
            panel.grid(alpha=0.25, linewidth=0.5)
        panels[row, 0].set_ylabel("total reward")
        _limit(panels[row, 0], found, best[problem])
    for column in range(2):
        panels[0, column].legend(fontsize=7.5, loc="lower right", framealpha=0.9)
    figure.supxlabel(note, fontsize=7.5)
    return figure


def _lines(curve: Curve) -> list[FloatArray]:
    """Episodes, medians and both ends of the band, as they are drawn."""
    lines = [np.arange(1.0, len(curve.median) + 1.0), curve.median, curve.low, curve.high]
    return [_blocks(values) for values in lines] if len(curve.median) > SMOOTHED_ABOVE else lines


def _draw_curve(axes: Axes, curve: Curve) -> None:
    colour, dashes, width = STYLES[curve.agent]
    episodes, median, low, high = _lines(curve)
    marker = "o" if len(median) <= 20 else "none"
    (line,) = axes.plot(episodes, median, dashes, color=colour, linewidth=width, label=curve.agent)
    line.set(marker=marker, markersize=width + 2.5)
    axes.fill_between(episodes, low, high, color=colour, alpha=0.2, linewidth=0.0)


def _blocks(values: FloatArray) -> FloatArray:
    """Medians of consecutive episodes."""
    return np.array([np.median(block) for block in np.array_split(values, BLOCKS)])


def _limit(axes: Axes, curves: Sequence[Curve], best: float) -> None:
    """Leave some room above the best, and below the worst."""
    shown = np.concatenate([[best], *(line for curve in curves for line in _lines(curve)[1:])])
    lowest, highest = float(shown.min()), float(shown.max())
    room = 0.06 * max(highest - lowest, abs(best) * 0.1)
    axes.set_ylim(lowest - room, highest + 1.5 * room)


def statistics_as_markdown(runs: Runs, best: dict[str, float]) -> str:
    """Per problem and agent: first and last episode, and how probably GP-RMAXexp's last is the better one."""
    lines = [
        "| problem | agent | seeds | first episode, median | last episode | median [95 %] | IQM [95 %] "
        f"| P({REFERENCE} better) [95 %] | best possible |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (problem, agent), seeds in runs.items():
        totals = totals_of(seeds)
        summary = summarise(totals, seed=BOOTSTRAP_SEED)
        reference = totals_of(runs[problem, REFERENCE])[:, -1:]
        better = probability_of_improvement(reference, totals[:, -1:], seed=BOOTSTRAP_SEED)
        chance = f"{better.probability[0]:.2f} {_interval(better.interval.low[0], better.interval.high[0])}"
        middle, mean = summary.median_interval, summary.iqm_interval
        cells = [
            problem,
            agent,
            str(len(seeds)),
            f"{summary.median[0]:.4g}",
            str(totals.shape[1]),
            f"{summary.median[-1]:.4g} {_interval(middle.low[-1], middle.high[-1])}",
            f"{summary.iqm[-1]:.4g} {_interval(mean.low[-1], mean.high[-1])}",
            "" if agent == REFERENCE else chance,
            f"{best[problem]:.4g}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _interval(low: float, high: float) -> str:
    return f"[{low:.4g}, {high:.4g}]"
