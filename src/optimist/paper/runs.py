"""The runs of Figure 4 as data, and what is read off them once they are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.agents import AGENTS
from optimist.arrays import FloatArray
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.experiments.specs import Experiment, Group
from optimist.experiments.statistics import summarise
from optimist.runs import EpisodeRow, RunStore

RL_AGENTS = tuple(AGENTS)
REFERENCE = "gp-rmax-exp"
BOOTSTRAP_SEED = 0

# episodes of the GP-RMAX agents and of Sarsa; seeds of both, and of the two GP-RMAX agents that are there to
# be compared with: in the full figure and in the quick one
FULL = {
    "mountain-car": (8, 1000, 10, 3),
    "pendulum": (5, 1000, 10, 3),
    "bicycle": (10, 2000, 10, 3),
    "acrobot": (8, 1000, 10, 3),
}
QUICK = {
    "mountain-car": (8, 300, 3, 3),
    "pendulum": (5, 300, 3, 3),
    "bicycle": (6, 500, 2, 2),
    "acrobot": (3, 300, 2, 2),
}
MINUTES = {"full": 70, "quick": 4}  # on two cores; the full one from its CPU time


def figure4_runs(*, quick: bool) -> Experiment:
    """All runs of Figure 4."""
    sizes = QUICK if quick else FULL
    groups = []
    others = tuple(agent for agent in RL_AGENTS if agent != REFERENCE)
    for problem, (few, many, seeds, fewer) in sizes.items():
        groups.append(Group(problems=(problem,), agents=(REFERENCE,), seeds=seeds, episodes=few))
        groups.append(Group(problems=(problem,), agents=others, seeds=fewer, episodes=few))
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
