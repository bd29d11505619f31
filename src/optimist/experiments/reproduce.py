"""The paper's experiments (Section 4) as data, and what is read off their recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optimist.agents import AGENTS, GPRMaxAgent
from optimist.agents.settings import parse_settings
from optimist.arrays import FloatArray
from optimist.experiments.offline import OfflinePlan, plan_offline
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.experiments.specs import Experiment, Group
from optimist.experiments.statistics import summarise
from optimist.planning import QFunction
from optimist.runs import EpisodeRow, RunStore
from optimist.systems import SYSTEMS, System
from optimist.transitions import Transition

RL_AGENTS = tuple(AGENTS)
BOOTSTRAP_SEED = 0

# episodes of the GP-RMAX agents and of Sarsa, seeds of both: in the full figure and in the quick one
FULL = {
    "mountain-car": (15, 1000, 10),
    "pendulum": (8, 1000, 10),
    "bicycle": (40, 2000, 10),
    "acrobot": (10, 1000, 10),
}
QUICK = {
    "mountain-car": (8, 300, 3),
    "pendulum": (5, 300, 3),
    "bicycle": (6, 500, 2),
    "acrobot": (3, 300, 2),
}
MINUTES = {"full": 35, "quick": 4}  # on two cores; the full one from its CPU time


def figure4(*, quick: bool) -> Experiment:
    """All runs of Figure 4."""
    sizes = QUICK if quick else FULL
    groups = []
    for problem, (few, many, seeds) in sizes.items():
        groups.append(Group(problems=(problem,), agents=RL_AGENTS, seeds=seeds, episodes=few))
        groups.append(Group(problems=(problem,), agents=SARSA_AGENTS, seeds=seeds, episodes=many))
    return Experiment(name="figure4-quick" if quick else "figure4", runs=tuple(groups))


@dataclass(frozen=True, eq=False)
class Curve:
    """Total rewards of one agent over episodes, over seeds."""

    agent: str
    n_seeds: int
    median: FloatArray  # [n_episodes]
    low: FloatArray  # [n_episodes], 95 % bootstrap interval of the median
    high: FloatArray  # [n_episodes]


Runs = dict[tuple[str, str], list[list[EpisodeRow]]]  # by problem and agent, one list of episodes per seed


def recorded_runs(experiment: Experiment, root: Path) -> Runs:
    """The episodes of all runs of an experiment; a ValueError when some are missing."""
    found: Runs = {}
    for spec in experiment.specs():
        directory = spec.directory(root)
        with RunStore.open(directory, writing=False) as store:
            rows = store.episodes()[: spec.episodes]
        if len(rows) < spec.episodes:
            raise ValueError(f"The run in {directory} must have {spec.episodes} episodes; got {len(rows)}.")
        found.setdefault((spec.problem, spec.agent), []).append(rows)
    return found


def totals_of(seeds: Sequence[Sequence[EpisodeRow]]) -> FloatArray:
    """Total rewards.  [n_seeds, n_episodes]"""
    return np.array([[row.total_reward for row in rows] for rows in seeds])


def curves(runs: Runs) -> dict[str, list[Curve]]:
    """Per problem the curve of every agent."""
    found: dict[str, list[Curve]] = {}
    for (problem, agent), seeds in runs.items():
        found.setdefault(problem, []).append(_curve(agent, totals_of(seeds)))
    return found


def _curve(agent: str, totals: FloatArray) -> Curve:
    summary = summarise(totals, seed=BOOTSTRAP_SEED)
    interval = summary.median_interval
    return Curve(agent, len(totals), summary.median, interval.low, interval.high)


@dataclass(frozen=True)
class BestRow:
    """The best possible performance of one problem."""

    system: System
    paper: float
    paper_grid: float  # the paper's own uniform grid
    ours: float
    nearby: float  # mean of 50 starts


def best_possible(problem: str) -> BestRow:
    """Plan with the true dynamics, as the paper and as we do; the worst of the paper's starts."""
    system = SYSTEMS[problem]
    ours, total = _planned(system, "ours")
    nearby = float(ours.roll_out(system.nearby_starts(50, seed=0)).total_rewards.mean())
    return BestRow(system, system.paper_best, _planned(system, "paper")[1], total, nearby)


def best_total(problem: str) -> float:
    """Of `best_possible` only what our recipe reaches."""
    return _planned(SYSTEMS[problem], "ours")[1]


def _planned(system: System, recipe: str) -> tuple[OfflinePlan, float]:
    made = plan_offline(system, system.recipes[recipe])
    return made, float(made.roll_out(system.starts).total_rewards.min())


def table_as_markdown(rows: list[BestRow]) -> str:
    """The table of best possible performances."""
    lines = [
        "| problem | the paper | its grid, ours | our recipe | mean of 50 starts nearby |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.system.name} | {row.paper:g} | {row.paper_grid:.4g} | {row.ours:.4g} | {row.nearby:.4g} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, eq=False)
class Belief:
    """What an agent, or the truth, says of some states."""

    title: str
    values: FloatArray  # [n]
    uncertainty: FloatArray | None  # [n], mean over actions; None: the truth
    samples: FloatArray  # [m, d], states seen


FIGURE5_PROBLEM = "mountain-car"
FIGURE5_MOMENTS = (("gp-rmax-exp", 40), ("gp-rmax-exp", 120), ("gp-rmax-grid", 120))


def figure5(*, seed: int) -> Experiment:
    """The runs of Figure 5."""
    agents = tuple(dict.fromkeys(agent for agent, _ in FIGURE5_MOMENTS))
    group = Group(problems=(FIGURE5_PROBLEM,), agents=agents, seeds=(seed,), episodes=3)
    return Experiment(name="figure5", runs=(group,))


def beliefs(experiment: Experiment, root: Path, states: FloatArray) -> list[Belief]:
    """What the recorded runs said of `states` [n, d] after so many transitions, and the truth.

    The model and the plan of that moment are made again from the first transitions of the run.
    """
    system = SYSTEMS[FIGURE5_PROBLEM]
    specs = {spec.agent: spec for spec in experiment.specs()}
    found = []
    for agent, count in FIGURE5_MOMENTS:
        with RunStore.open(specs[agent].directory(root), writing=False) as store:
            header, transitions = store.header, store.transitions()[:count]
        if len(transitions) < count:
            raise ValueError(
                f"The run {specs[agent].id} must have {count} transitions; got {len(transitions)}."
            )
        found.append(_belief(agent, count, _agent_after(system, header, transitions), states))
    made = plan_offline(system, system.recipes["ours"])
    truth = Belief(
        "the true value function", made.q_function.value(states), None, np.empty((0, states.shape[1]))
    )
    return [*found, truth]


def _agent_after(system: System, header: dict[str, Any], transitions: list[Transition]) -> GPRMaxAgent:
    agent = GPRMaxAgent(system.task, parse_settings(header["settings"]), seed=header["seed"])
    for transition in transitions:
        if agent.due:
            agent.update()
        agent.observe(transition)
    agent.update()
    return agent


def _belief(name: str, count: int, agent: GPRMaxAgent, states: FloatArray) -> Belief:
    assert agent.knowledge is not None
    assert agent.flow is not None
    values = QFunction(agent.grid, agent.knowledge.plan.q_values).value(states)
    samples = np.array([transition.state for transition in agent.transitions])
    return Belief(
        f"{name}, {count} transitions", values, agent.flow.uncertainty(states).mean(axis=1), samples
    )
