"""A Gymnasium environment around a benchmark system."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from optimist.arrays import FloatArray
from optimist.environments.rendering import Picture, Window, picture_of, pillow
from optimist.systems import find_system
from optimist.task import Task


class SystemEnvironment(gymnasium.Env[FloatArray, np.int64]):
    """One of the systems, stepped one transition at a time.

    Observations are states (float64). Episodes start at one of the paper's starts, chosen by the seed, or
    at `options={"state": ...}`. A terminal state terminates; the limit of 500 steps truncates, and is
    Gymnasium's (`gymnasium.make` adds it). With `render_mode` "rgb_array" `render` returns a picture; with
    "human" every step is shown in a window.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, problem: str, render_mode: str | None = None) -> None:
        self.system = find_system(problem)
        self.problem = problem
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(f"`render_mode` must be one of {', '.join(modes)} or None; got {render_mode!r}.")
        self.render_mode = render_mode
        self.metadata = self.metadata | {"render_fps": self.system.drawing.fps}
        self._window: Window | None = None
        if render_mode is not None:
            pillow()  # or say so now
            self._window = Window(self.system.gymnasium_id) if render_mode == "human" else None
        box = self.system.observation_box
        self.observation_space = gymnasium.spaces.Box(box.low, box.high, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(self.system.task.n_actions)
        self._state: FloatArray | None = None
        self._action: int | None = None  # that led to the state

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Of the coordinates of the state."""
        return self.system.axis_names

    @property
    def task(self) -> Task:
        """What an agent may be told."""
        return self.system.task

    def restore(self, state: FloatArray) -> None:
        """Go on from `state`, as if the episode had come there: what resuming a run needs."""
        self._state, self._action = np.array(state, dtype=np.float64), None

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
        self._state, self._action = state.copy(), None
        self._show()
        return state.copy(), {}

    def step(self, action: np.int64 | int) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step of the true dynamics."""
        if self._state is None:
            raise RuntimeError("`reset` must be called before `step`.")
        if not self.action_space.contains(action):
            raise ValueError(
                f"The action must be one of 0 to {self.system.task.n_actions - 1}; got {action!r}."
            )
        task = self.system.task
        states = self._state[np.newaxis]
        controls = task.controls[int(action)][np.newaxis]
        next_states = self.system.dynamics(states, controls)
        reward = float(task.rewards(states, controls, next_states)[0])
        terminated = bool(task.terminal(next_states)[0])
        self._state, self._action = next_states[0], int(action)
        self._show()
        return next_states[0].copy(), reward, terminated, False, {}

    def picture(self, place: FloatArray, action: int | None = None) -> Picture:
        """How the system looks at any place [d], and what pushes it there.  [height, width, 3]"""
        push = None if action is None else self.system.task.controls[action]
        return picture_of(self.system.drawing, place, push)

    def render(self) -> Picture | None:
        """A picture of where it is, with what led there; in a window ("human") it is there already."""
        if self.render_mode is None:
            gymnasium.logger.warn(  # as Gymnasium's own do
                "`render` must be told how when the environment is made: "
                f'gymnasium.make("{self.system.gymnasium_id}", render_mode="rgb_array"); got no mode.'
            )
            return None
        if self._state is None:
            raise RuntimeError("`reset` must be called before `render`.")
        if self._window is not None:
            self._show()
            return None
        return self.picture(self._state, self._action)

    def _show(self) -> None:
        if self._window is not None and self._state is not None:
            picture = self.picture(self._state, self._action)
            self._window.show(picture, self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
