"""Sarsa(lambda) on a compiled system, recorded as runs are, summarised per episode.

A run is a function of its settings and seed, and fast. So nothing but its episodes is recorded; to go on with
one, it is made again from the start, and what is recorded must come out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from optimist.agents.sarsa import SarsaAgent, SarsaSettings
from optimist.arrays import FloatArray
from optimist.documents import parsed
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.problems import Problem
from optimist.experiments.sarsa_settings import sarsa_settings
from optimist.runs import EpisodeRow, RunError, RunStore, Session
from optimist.runs.headers import of_run, require_settings
from optimist.runs.listening import Callback, Saying, listening, said_no
from optimist.runs.loop import Ended, reset_seed
from optimist.runs.progress import LearningProgress
from optimist.runs.resume import checked_header
from optimist.systems.system import System
from optimist.transitions import Transitions

CHUNK = 100  # episodes learned, then recorded, at a time


class SarsaRun(Session[Any]):
    """A run of Sarsa(lambda): learns whole episodes inside compiled code, and records only those."""

    def __init__(self, name: str, system: System, settings: SarsaSettings, *, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"`seed` must be a whole number, not negative; got {seed}.")
        agent = SarsaAgent(system.task, settings, seed=seed)
        super().__init__(agent, SystemEnvironment(system.name), name=name, problem=system.name)
        self._system = system
        self._recorded: list[EpisodeRow] = []  # before this run was opened

    @property
    def episodes(self) -> list[EpisodeRow]:
        """How the episodes went that have ended."""
        return max(self._episodes, self._recorded, key=len).copy()

    @property
    def num_timesteps(self) -> int:
        """Transitions made so far."""
        return self.episodes[-1].transitions if self.episodes else 0

    @property
    def transitions(self) -> Transitions:
        """None: they stay inside compiled code."""
        nothing = np.empty((0, self.task.box.n_dims))
        return Transitions.stepped(nothing, np.empty(0, dtype=np.int64), nothing)

    @property
    def policy(self) -> SarsaAgent:
        """Greedy, after all episodes so far."""
        self._make(len(self._recorded))
        agent: SarsaAgent = self._agent
        return agent

    def value(self, states: ArrayLike) -> FloatArray:
        """The best Q-value of `states` [n, d].  [n]"""
        return np.asarray(self.policy.q_values(self._states(states)).max(axis=1))

    def follow(self, store: RunStore) -> None:
        """Go on with what is recorded there."""
        self._store, self._recorded = store, store.episodes()

    def learn(
        self,
        total_timesteps: int | None = None,
        callback: object = None,
        log_interval: int | None = 1,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = False,
        progress_bar: bool = False,
        *,
        episodes: int | None = None,
    ) -> Self:
        """Go on until there are so many `episodes`; it stops only at the end of one, and logs nothing."""
        if episodes is None or total_timesteps is not None:
            raise ValueError("Sarsa must be told how many `episodes` to learn for, and nothing else.")
        if episodes < 1:
            raise ValueError(f"`episodes` must be at least 1; got {episodes}.")
        if self._store is not None:
            self._store.want(max(episodes, len(self._recorded)))
        with (
            LearningProgress.shown(progress_bar, None, episodes, len(self._episodes)) as bar,
            listening(self, callback) as callbacks,
        ):
            saying: list[Callback] = (
                [Saying(self.verbose, log_interval)] if self.verbose and log_interval else []
            )
            self._make(max(episodes, len(self._recorded)), [bar, *saying, *callbacks])
        return self

    def _make(self, episodes: int, callbacks: Sequence[Callback] = ()) -> None:
        """The episodes up to that number that were not made yet, some at a time.

        What was learned and not recorded is made again: an interrupted agent begins from nothing.
        """
        if self._interrupted:
            self._recorded = self._episodes if self._store is None else self._store.episodes()
            self._agent, self._episodes = SarsaAgent(self.task, self._agent.settings, seed=self.seed), []
        self._interrupted = True
        while len(self._episodes) < episodes:
            first = len(self._episodes) + 1
            rows = list(self._learned(range(first, min(first + CHUNK, episodes + 1))))
            self._require_same(rows)
            news = [row for row in rows if row.episode > len(self._recorded)]
            if self._store is not None and news:
                self._store.end_episodes(news)
            self._episodes += rows
            heard = [callback(event) for event in map(Ended, news) for callback in callbacks]
            if any(said_no(answer) for answer in heard):
                break
        self._interrupted = False

    def _learned(self, numbers: range) -> Iterator[EpisodeRow]:
        system, n_transitions = self._system, self._episodes[-1].transitions if self._episodes else 0
        assert system.step is not None
        assert system.outcome is not None
        made = self._agent.learn(system.step, system.outcome, self._starts(numbers))
        for k, episode in enumerate(numbers):
            steps = int(made.steps[k])
            n_transitions += steps
            ending = "terminated" if made.terminated[k] else "truncated"
            yield EpisodeRow(episode, steps, float(made.total_rewards[k]), n_transitions, ending)

    def _starts(self, episodes: range) -> FloatArray:
        """Where the environment begins these episodes, for every agent the same.  [n, d]"""
        assert self.env is not None
        return np.array([self.env.reset(seed=reset_seed(self.seed, episode))[0] for episode in episodes])

    def _require_same(self, made: list[EpisodeRow]) -> None:
        for row in made:
            if row.episode <= len(self._recorded) and self._recorded[row.episode - 1] != row:
                assert self._store is not None
                raise RunError(
                    f"The run in {self._store.directory} must come out again as it was recorded; episode "
                    f"{row.episode} does not. It was made by another version, or on another kind of machine."
                )


def sarsa_kind(name: str) -> tuple[Callable[..., Any], ...]:
    """How the agent called `name` chooses its settings, starts, and is opened again: see `kinds.Kind`."""

    def choose(problem: Problem, preset: str, file: Path | None) -> SarsaSettings:
        if preset != "ours" or file is not None:
            raise ValueError(f"Preset and settings must be left out with {name}, which has its own.")
        return sarsa_settings(_compiled(problem, name).name, name)

    def start(problem: Problem, settings: SarsaSettings, seed: int) -> SarsaRun:
        return SarsaRun(name, _compiled(problem, name), settings, seed=seed)

    def reopen(run: Path, problem: Problem, writing: bool) -> SarsaRun:
        store = RunStore.open(run, writing=writing)
        try:
            header = checked_header(store, problem.task)
            with of_run(run):
                settings = parsed(SarsaSettings, header["settings"], "The settings")
                made = start(problem, settings, header["seed"])
                require_settings(header["settings"], settings.model_dump(mode="json"), whole=False)
            made.follow(store)
        except BaseException:
            store.close()
            raise
        return made

    return choose, start, reopen


def _compiled(problem: Problem, name: str) -> System:
    system = problem.system
    if system is None or system.step is None or system.outcome is None:
        raise ValueError(
            f"The problem of {name} must be compiled (`step` and `outcome` of a system); got {problem.name}."
        )
    return system
