"""Asked: what a session answers, whoever asks; nothing is learned by it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from optimist.agents.agent import Agent
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.controls import rounded
from optimist.given import array_of
from optimist.planning import Policy
from optimist.planning.sights import remembered
from optimist.runs.given_environment import OnlyOne, spaces_of, states_of
from optimist.runs.loop import Environment, in_space
from optimist.runs.record import EpisodeRow
from optimist.task import Task
from optimist.transitions import Transitions

A = TypeVar("A", bound=Agent)


class Asked(Generic[A]):
    """An agent, what it was told, what it has seen and would do."""

    _agent: A
    _problem: str | None
    _episodes: list[EpisodeRow]
    _n_outside: int
    _counted_from: int
    env: Environment | None

    def predict(
        self,
        observation: ArrayLike,
        state: object = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """The best action in one observation [d], or the best actions in many [n, d].

        Whoever says where episodes begin (`episode_start`, a flag for each observation) and hands back the
        `state` that came with the last actions, as Stable-Baselines3 does, gets what `evaluate` does: an
        agent may prepare for an episode where it begins. `deterministic` changes nothing: exploration is in
        the plan, not in the choice. Of equals the first is taken.
        """
        states = self._states(observation)
        if episode_start is None and state is None:
            actions, memory = self.policy.greedy(states), None
        else:
            actions, memory = remembered(self.policy, states, state, episode_start)
        if self.task.control_box is not None:
            actions = rounded(self.task.control_box, self.task.applied(actions))
        actions = actions if self.env is None else in_space(self.env, actions)
        return (actions[0], memory) if np.ndim(observation) == 1 else (actions, memory)

    def value(self, states: ArrayLike) -> FloatArray | None:
        """What `states` [n, d] or [d] are worth, if this kind of agent says so.  [n]"""
        return None

    def uncertainty(self, states: ArrayLike) -> FloatArray | None:
        """How unknown each action is in `states` [n, d] or [d], if it says so.  [n, n_actions]"""
        return None

    @property
    def policy(self) -> Policy:
        """What it acts on, for many states at a time."""
        return self._agent.policy

    @property
    def box(self) -> Box:
        """Where it can act well."""
        return self.task.box

    @property
    def task(self) -> Task:
        """What it was told."""
        return self._agent.task

    @property
    def problem(self) -> str | None:
        """What its environment is called in the record."""
        return self._problem

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self._agent.seed

    @property
    def num_timesteps(self) -> int:
        """Transitions made so far, or since they were last counted from 0 (`reset_num_timesteps`)."""
        return len(self._agent.transitions) - self._counted_from

    @property
    def has_planned(self) -> bool:
        """Whether it can be asked for an action."""
        return getattr(self._agent, "knowledge", True) is not None

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """What it observes: the environment's, else the task's box."""
        return spaces_of(self.env, self.task)[0]

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """What it can do: the environment's, else one action per control."""
        return spaces_of(self.env, self.task)[1]

    def get_env(self) -> Any:
        """The environment that it learns in, as it was given; None without one."""
        given = self.env.env if hasattr(self.env, "observing") else self.env  # type: ignore[union-attr]
        return given.vector if isinstance(given, OnlyOne) else given

    def get_vec_normalize_env(self) -> None:
        """None: observations are states as they are. Callbacks of Stable-Baselines3 ask for it."""

    @property
    def transitions(self) -> Transitions:
        """All that it has seen."""
        return Transitions.of(self._agent.transitions)

    @property
    def void(self) -> list[int]:
        """Numbers, from 1, of the transitions that it does not learn from."""
        return sorted(getattr(self._agent, "void", ()))

    @property
    def episodes(self) -> list[EpisodeRow]:
        """How the episodes went that have ended."""
        return list(self._episodes)

    @property
    def n_outside(self) -> int:
        """How many transitions began an episode, or led, outside the box: plans see them at its edge."""
        return self._n_outside

    @property
    def stopped_learning_at(self) -> int | None:
        """Transitions after which the model had settled and learning stopped; None while it goes on."""
        return self._agent.settled_at

    def _states(self, observations: ArrayLike) -> FloatArray:
        """States as they are, or as they come of what the environment itself shows."""
        observing = getattr(self.env, "observing", None)
        if observing is not None and not observing.is_identity:
            given = array_of("Observations", observations)
            if given.shape[-1:] == (observing.n_observed,):
                rows = [observing(row) for row in np.atleast_2d(given)]
                observations = np.array(rows).reshape(*given.shape[:-1], -1)
        return states_of(self.task, observations)
