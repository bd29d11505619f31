"""What the strangers share: Runge-Kutta steps, angles, and an environment around batched functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rates = Callable[[Floats, Floats], Floats]


def integrated(
    rates: Rates,
    states: Floats,
    controls: Floats,
    *,
    step: float,
    n_substeps: int,
    most: Floats | None = None,
) -> Floats:
    """The states after a step, by Runge-Kutta; the last coordinates stop at +- `most`.  [n, d]"""
    h = step / n_substeps
    for _ in range(n_substeps):
        k1 = rates(states, controls)
        k2 = rates(states + 0.5 * h * k1, controls)
        k3 = rates(states + 0.5 * h * k2, controls)
        k4 = rates(states + h * k3, controls)
        states = states + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        if most is not None:
            states[:, -most.size :] = np.clip(states[:, -most.size :], -most, most)
    return states


def turned(states: Floats, *angles: int) -> Floats:
    """Those coordinates brought into [-pi, pi).  [n, d]"""
    states = states.copy()
    for axis in angles:
        states[:, axis] = np.mod(states[:, axis] + np.pi, 2.0 * np.pi) - np.pi
    return states


class Stranger(gymnasium.Env[Floats, Any]):
    """Starts near one place; every step is one of the controls, or (continuous) any between -1 and 1."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        dynamics: Rates,
        reward: Callable[[Floats, Floats, Floats], Floats],
        is_terminal: Callable[[Floats], Bools] | None = None,
        *,
        start: Floats,  # [d]
        spread: Floats,  # [d], episodes begin within +- this of the start
        reach: Floats,  # [d], no state is further from 0
        controls: Floats | None = None,  # [n_actions, k]; None: continuous
        angles: tuple[int, ...] = (),
        n_actuators: int = 1,  # of continuous actions
    ) -> None:
        self.observation_space = gymnasium.spaces.Box(-reach, reach, dtype=np.float64)
        if controls is None:
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (n_actuators,), np.float32)
        else:
            self.action_space = gymnasium.spaces.Discrete(len(controls))
        self.state = start.copy()  # [d]
        self._dynamics, self._reward, self._is_terminal = dynamics, reward, is_terminal
        self._start, self._spread, self._controls, self._angles = start, spread, controls, angles

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin near the start."""
        super().reset(seed=seed)
        start = self._start + self._spread * self.np_random.uniform(-1.0, 1.0, size=self._start.size)
        self.state = turned(start[np.newaxis], *self._angles)[0]
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control, held for a step."""
        states = self.state[np.newaxis]
        controls = np.array(action, dtype=np.float64)[np.newaxis]
        if self._controls is not None:
            controls = self._controls[[action]]
        next_states = self._dynamics(states, controls)
        paid = float(self._reward(states, controls, next_states)[0])
        ended = self._is_terminal is not None and bool(self._is_terminal(next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, ended, False, {}
