"""The paper's Figure 5: value function and uncertainty of mountain car as a run goes on, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optimist.agents import GPRMaxAgent
from optimist.agents.settings import parse_settings
from optimist.arrays import FloatArray
from optimist.experiments.problems import find_problem
from optimist.experiments.specs import Experiment, Group
from optimist.paper.order import Order
from optimist.runs import RunStore
from optimist.runs.loop import catch_up
from optimist.task import Task
from optimist.transitions import Transition
from optimist.views.plan_figure import RESOLUTION, Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

SAMPLES = "#d55e00"


def figure5(order: Order) -> list[Path]:
    """Make it from recorded runs."""
    order.require_plots()
    experiment = figure5_runs(seed=order.seed)
    order.run_missing(experiment)
    problem = find_problem(PROBLEM)
    shown = Slice((0, 1), problem.starts[0], problem.axis_names)
    xs, ys, states = shown.lattice(problem.task.box)
    note = f"mountain car, preset 'ours', seed {order.seed}; value 0 where nothing is known"
    return order.saved(
        "figure5", draw_figure5(beliefs(experiment, order.results, states), shown, xs, ys, note)
    )


@dataclass(frozen=True, eq=False)
class Belief:
    """What an agent, or the truth, says of some states."""

    title: str
    values: FloatArray  # [n]
    uncertainty: FloatArray | None  # [n], mean over actions; None: the truth
    samples: FloatArray  # [m, d], states seen


PROBLEM = "mountain-car"
MOMENTS = (("gp-rmax-exp", 40), ("gp-rmax-exp", 120), ("gp-rmax-grid", 120))


def figure5_runs(*, seed: int) -> Experiment:
    """The runs of Figure 5."""
    agents = tuple(dict.fromkeys(agent for agent, _ in MOMENTS))
    group = Group(problems=(PROBLEM,), agents=agents, seeds=(seed,), episodes=3)
    return Experiment(name="figure5", runs=(group,))


def beliefs(experiment: Experiment, root: Path, states: FloatArray) -> list[Belief]:
    """What the recorded runs said of `states` [n, d] after so many transitions, and the truth.

    The model and the plan of that moment are made again from the first transitions of the run.
    """
    problem = find_problem(PROBLEM)
    specs = {spec.agent: spec for spec in experiment.specs()}
    found = []
    for agent, count in MOMENTS:
        with RunStore.open(specs[agent].directory(root), writing=False) as store:
            header, transitions = store.header, store.transitions()[:count]
        if len(transitions) < count:
            raise ValueError(
                f"The run {specs[agent].id} must have {count} transitions; got {len(transitions)}."
            )
        found.append(_belief(agent, count, _agent_after(problem.task, header, transitions), states))
    made = problem.plan(problem.recipes["ours"])
    truth = Belief(
        "the true value function", made.q_function.value(states), None, np.empty((0, states.shape[1]))
    )
    return [*found, truth]


def _agent_after(task: Task, header: dict[str, Any], transitions: list[Transition]) -> GPRMaxAgent:
    agent = GPRMaxAgent(task, parse_settings(header["settings"]), seed=header["seed"])
    for transition in transitions:
        list(catch_up(agent, None))
        agent.observe(transition)
    agent.update()
    return agent


def _belief(name: str, count: int, agent: GPRMaxAgent, states: FloatArray) -> Belief:
    known = agent.known()
    values, unsure = known.planned.q_function.value(states), known.flow.uncertainty(states).mean(axis=1)
    samples = np.array([transition.state for transition in agent.transitions])
    return Belief(f"{name}, {count} transitions", values, unsure, samples)


def draw_figure5(
    snapshots: Sequence[Belief], shown: Slice, xs: FloatArray, ys: FloatArray, note: str
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
