"""Learning one of the benchmark systems from nothing: the only place where agents and systems meet.

What is handed over is the system's task and, as data, the grid its recipe names; the dynamics stay behind the
environment.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optimist.agents import AgentSettings, GridSettings, settings_of
from optimist.environments.system_environment import SystemEnvironment
from optimist.learner import GPRMax
from optimist.planning import Rollouts, roll_out
from optimist.runs import RunStore
from optimist.systems import SYSTEMS, System, find_system

START_SEED = 0


def learning_settings(
    problem: str, agent: str, *, preset: str = "ours", file: Path | None = None
) -> AgentSettings:
    """Settings for a benchmark problem: the preset, on the grid of the recipe of the same name."""
    recipes = find_system(problem).recipes
    recipe = recipes.get(preset, recipes["ours"])
    grid = GridSettings(nodes=recipe.nodes, spacing=recipe.spacing, limits=recipe.limits, hold=recipe.hold)
    return settings_of(agent, preset=preset, grid=grid, file=file)


def start_run(
    problem: str, settings: AgentSettings, *, agent: str, seed: int, run: Path, episodes: int = 1
) -> GPRMax:
    """A new recorded run that shall have so many episodes."""
    learner = GPRMax(SystemEnvironment(problem), settings=settings, agent=agent, seed=seed)
    learner.record(run, episodes=episodes)
    return learner


def open_run(run: Path, *, writing: bool) -> tuple[GPRMax, System]:
    """A recorded run of a benchmark system, to go on with or to look at."""
    with RunStore.open(run, writing=False) as store:
        problem = store.header["problem"]
    if problem not in SYSTEMS:
        raise ValueError(
            f"The run must be of one of {', '.join(SYSTEMS)}; got {problem!r}. A run of another environment "
            "is resumed from Python: optimist.GPRMax.resume(directory, env)."
        )
    return GPRMax.resume(run, SystemEnvironment(problem), writing=writing), SYSTEMS[problem]


def evaluate(
    learner: GPRMax, system: System, *, n_random: int, seed: int = START_SEED
) -> tuple[Rollouts, Rollouts]:
    """Greedy episodes, nothing learned: from the paper's starts, and from random states."""
    box = learner.grid.box
    stream = np.random.default_rng([seed, n_random])
    states = stream.uniform(box.low, box.high, size=(n_random, box.n_dims))
    states = states[~system.task.terminal(states)] if n_random else states
    policy = learner.policy
    rollouts = [roll_out(system.task, system.dynamics, policy, starts) for starts in (system.starts, states)]
    return rollouts[0], rollouts[1]
