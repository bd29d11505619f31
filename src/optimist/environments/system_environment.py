"""A Gymnasium environment around a benchmark system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from optimist.arrays import Action, FloatArray
from optimist.environments.rendering import Picture, Window, picture_of, pillow
from optimist.environments.spaces import action_space, control_of
from optimist.systems import find_system
from optimist.task import Task


class SystemEnvironment(gymnasium.Env[FloatArray, Any]):
    """One of the systems, stepped one transition at a time.

    Observations are states (float64). Episodes start at one of the paper's starts, chosen by the seed, or
    at `options={"state": ...}`. A terminal state terminates; the limit of 500 steps truncates, and is
    Gymnasium's (`gymnasium.make` adds it). With `render_mode` "rgb_array" `render` returns a picture; with
    "human" every step is shown in a window.

    With `noise` every step leads a little astray: a normal number is added to each coordinate, its standard
    deviation that share of a usual displacement (one number, or one per coordinate). With `sensor_noise` the
    state is only read so.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 30}  # noqa: RUF012

    def __init__(
        self,
        problem: str,
        render_mode: str | None = None,
        noise: float | Sequence[float] = 0.0,
        sensor_noise: float | Sequence[float] = 0.0,
    ) -> None:
        self.system = find_system(problem)
        self.noise = self.system.noise(noise)
        self.sensor_noise = self.system.noise(sensor_noise, "`sensor_noise`")
        self._episode = 0  # what its noise is drawn by
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
        self.action_space = action_space(self.system.task)
        self._state: FloatArray | None = None
        self._push: FloatArray | None = None  # [k], that led to the state

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Of the coordinates of the state."""
        return self.system.axis_names

    @property
    def task(self) -> Task:
        """What an agent may be told."""
        return self.system.task

    @property
    def restore(self) -> Callable[[FloatArray], None] | None:
        """How to go on from a state, as if the episode had come there: what resuming a run needs.

        None where sensors are noisy: what was read is not where it was.
        """
        return None if self.sensor_noise.any() else self._restored

    def _restored(self, state: FloatArray) -> None:
        self._state, self._push = np.array(state, dtype=np.float64), None

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
        self._episode = (
            int(self.np_random.integers(2**62)) if self.noise.any() or self.sensor_noise.any() else 0
        )
        self._state, self._push = state.copy(), None
        self._show()
        return self._read(state), {}

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step of the true dynamics."""
        if self._state is None:
            raise RuntimeError("`reset` must be called before `step`.")
        task = self.system.task
        states = self._state[np.newaxis]
        controls = control_of(task, action)[np.newaxis]
        next_states = self.system.dynamics(states, controls)
        if self.noise.any():
            astray = self.noise * self._normal(self._state, controls[0])
            next_states = self.system.observation_box.astray(next_states, astray)
        reward = float(task.rewards(states, controls, next_states)[0])
        terminated = bool(task.terminal(next_states)[0])
        self._state, self._push = next_states[0], controls[0]
        self._show()
        return self._read(next_states[0]), reward, terminated, False, {}

    def _read(self, state: FloatArray) -> FloatArray:
        """A state as a sensor shows it.  [d]"""
        if not self.sensor_noise.any():
            return state.copy()
        return np.asarray(self.system.observation_box.clip(state + self.sensor_noise * self._normal(state)))

    def _normal(self, *what: FloatArray) -> FloatArray:
        """Normal numbers [d] that follow from the episode and `what`: a run that goes on meets the same."""
        words = np.concatenate(what).astype(np.float64).view(np.uint32)
        stream = np.random.default_rng([self._episode, *words.tolist()])
        return stream.standard_normal(len(self.noise))

    def picture(self, place: FloatArray, action: Action | None = None) -> Picture:
        """How the system looks at any place [d], and what pushes it there.  [height, width, 3]"""
        push = None if action is None else self.system.task.applied(np.array([action]))[0]
        return self._pictured(place, push)

    def _pictured(self, place: FloatArray, push: FloatArray | None) -> Picture:
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
        return self._pictured(self._state, self._push)

    def _show(self) -> None:
        if self._window is not None and self._state is not None:
            picture = self._pictured(self._state, self._push)
            self._window.show(picture, self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
