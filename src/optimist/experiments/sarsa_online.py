"""Sarsa(lambda) on one of the benchmark systems, recorded as runs are, summarised per episode.

A run is a function of its settings and seed, and fast. So nothing but its episodes is recorded; to go on with
one, it is made again from the start, and what is recorded must come out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from optimist.agents.sarsa import SarsaAgent, SarsaSettings
from optimist.arrays import FloatArray
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.sarsa_settings import sarsa_settings
from optimist.runs import EpisodeRow, RunError, RunStore
from optimist.runs.checkpoint import require_same_task, run_header
from optimist.runs.loop import reset_seed
from optimist.systems import System, find_system

CHUNK = 100  # episodes learned, then recorded, at a time

Listener = Callable[[EpisodeRow], object]


def run_sarsa(
    problem: str,
    agent: str,
    *,
    seed: int,
    episodes: int,
    directory: Path | None = None,
    settings: SarsaSettings | None = None,
    listener: Listener | None = None,
) -> list[EpisodeRow]:
    """Learn a problem for so many episodes, from nothing.

    Args:
        problem: one of the benchmark systems.
        agent: `sarsa-fine` or `sarsa-coarse`.
        seed: of everything random.
        episodes: how many.
        directory: where to record the run, if anywhere; new or empty.
        settings: instead of the agent's own.
        listener: called with every episode when it is recorded.

    """
    system = find_system(problem)
    learner = SarsaAgent(system.task, settings or sarsa_settings(problem, agent), seed=_checked(seed))
    _at_least_one(episodes)
    store = None if directory is None else RunStore.create(directory, run_header(learner, agent, problem))
    return _go_on(learner, system, episodes, store, listener)


def resume_sarsa(
    directory: Path, *, episodes: int | None = None, listener: Listener | None = None
) -> list[EpisodeRow]:
    """Go on with a recorded run, to `episodes` in all; by default to as many as it was started with."""
    store = RunStore.open(directory, writing=True)
    try:
        system, learner = _learner_of(store)
        wanted = int(store.header.get("episodes", 1)) if episodes is None else episodes
        _at_least_one(wanted)
    except BaseException:
        store.close()
        raise
    return _go_on(learner, system, wanted, store, listener)


def sarsa_learner(directory: Path) -> tuple[SarsaAgent, System]:
    """The agent of a recorded run, after all its episodes: to act greedily, or to look at."""
    with RunStore.open(directory, writing=False) as store:
        system, learner = _learner_of(store)
        recorded = store.episodes()
    for made in _chunks(learner, system, len(recorded)):
        _require_same(recorded, made, directory)
    return learner, system


def _go_on(
    learner: SarsaAgent, system: System, episodes: int, store: RunStore | None, listener: Listener | None
) -> list[EpisodeRow]:
    recorded: list[EpisodeRow] = []
    rows: list[EpisodeRow] = []
    try:
        if store is not None:
            recorded = store.episodes()
            store.want(max(episodes, len(recorded)))
        for made in _chunks(learner, system, max(episodes, len(recorded))):
            if store is not None:
                _require_same(recorded, made, store.directory)
                store.end_episodes([row for row in made if row.episode > len(recorded)])
            for row in made:
                if listener is not None:
                    listener(row)
            rows += made
    finally:
        if store is not None:
            store.close()
    return rows


def _chunks(learner: SarsaAgent, system: System, episodes: int) -> Iterator[list[EpisodeRow]]:
    """The episodes from the first on, some at a time."""
    n_transitions = 0
    for first in range(1, episodes + 1, CHUNK):
        numbers = range(first, min(first + CHUNK, episodes + 1))
        made = learner.learn(system.step, system.outcome, _starts(system, learner.seed, numbers))
        rows = []
        for k, episode in enumerate(numbers):
            steps = int(made.steps[k])
            n_transitions += steps
            ending = "terminated" if made.terminated[k] else "truncated"
            rows.append(EpisodeRow(episode, steps, float(made.total_rewards[k]), n_transitions, ending))
        yield rows


def _starts(system: System, seed: int, episodes: range) -> FloatArray:
    """Where the environment begins these episodes, for every agent the same.  [n, d]"""
    environment = SystemEnvironment(system.name)
    return np.array([environment.reset(seed=reset_seed(seed, episode))[0] for episode in episodes])


def _require_same(recorded: list[EpisodeRow], made: list[EpisodeRow], directory: Path) -> None:
    for row in made:
        if row.episode <= len(recorded) and recorded[row.episode - 1] != row:
            raise RunError(
                f"The run in {directory} must come out again as it was recorded; episode {row.episode} "
                "does not. It was made by another version, or on another kind of machine."
            )


def _learner_of(store: RunStore) -> tuple[System, SarsaAgent]:
    header = store.header
    if not str(header["agent"]).startswith("sarsa"):
        raise ValueError(f"The run must be one of Sarsa; got {header['agent']!r} in {store.directory}.")
    system = find_system(header["problem"])
    require_same_task(header["task"], system.task, store.directory)
    settings = SarsaSettings.model_validate(header["settings"])
    return system, SarsaAgent(system.task, settings, seed=header["seed"])


def _checked(seed: int) -> int:
    if seed < 0:
        raise ValueError(f"`seed` must be a whole number, not negative; got {seed}.")
    return seed


def _at_least_one(episodes: int) -> None:
    if episodes < 1:
        raise ValueError(f"`episodes` must be at least 1; got {episodes}.")
