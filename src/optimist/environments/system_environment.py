"""A Gymnasium environment around a benchmark system."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from optimist.arrays import FloatArray
from optimist.environments.spaces import action_space, control_of
from optimist.systems import find_system
from optimist.task import Task


class SystemEnvironment(gymnasium.Env[FloatArray, Any]):
    """One of the systems, stepped one transition at a time.

    Observations are states (float64). Episodes start at one of the paper's starts, chosen by the seed, or
    at `options={"state": ...}`. A terminal state terminates; the limit of 500 steps truncates, and is
    Gymnasium's (`gymnasium.make` adds it).
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, problem: str, render_mode: str | None = None) -> None:
        self.system = find_system(problem)
        self.problem = problem
        self.render_mode = render_mode
        box = self.system.observation_box
        self.observation_space = gymnasium.spaces.Box(box.low, box.high, dtype=np.float64)
        self.action_space = action_space(self.system.task)
        self._state: FloatArray | None = None

    @property
    def task(self) -> Task:
        """What an agent may be told."""
        return self.system.task

    def restore(self, state: FloatArray) -> None:
        """Go on from `state`, as if the episode had come there: what resuming a run needs."""
        self._state = np.array(state, dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        starts = self.system.starts
        state = starts[self.np_random.integers(len(starts))]
        unknown = set(options or {}) - {"state"}
        if unknown:
            raise ValueError(f"The options of `reset` must be 'state' or none; got {sorted(unknown)}.")
        if options is not None and "state" in options:
            state = np.array(options["state"], dtype=np.float64)
            if state not in self.observation_space:
                raise ValueError(
                    f"The `state` to start from must lie in {self.observation_space}; got {options['state']}."
                )
        self._state = state.copy()
        return state.copy(), {}

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step of the true dynamics."""
        if self._state is None:
            raise RuntimeError("`reset` must be called before `step`.")
        task = self.system.task
        states = self._state[np.newaxis]
        controls = control_of(task, action)[np.newaxis]
        next_states = self.system.dynamics(states, controls)
        reward = float(task.rewards(states, controls, next_states)[0])
        terminated = bool(task.terminal(next_states)[0])
        self._state = next_states[0]
        return next_states[0].copy(), reward, terminated, False, {}
