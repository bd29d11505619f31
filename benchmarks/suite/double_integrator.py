"""Park a puck on a line: position and velocity, pushed left or right, as fast as it goes.

    x'' = u

-1 a step until it is at 0, nearly at rest.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP = 0.1  # s
CONTROLS = np.array([[-1.0], [0.0], [1.0]])  # m/s^2
GOAL = np.array([0.1, 0.15])  # m, m/s
START = np.array([3.0, 0.0])
SPREAD = np.array([0.3, 0.1])
REACH = np.array([1000.0, 100.0])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """Exact under a constant push.  [n, 2]"""
    position, velocity = states[:, 0], states[:, 1]
    push = controls[:, 0]
    return np.column_stack([position + STEP * velocity + 0.5 * STEP**2 * push, velocity + STEP * push])


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: Floats) -> Bools:
    """Parked.  [n]"""
    position, velocity = np.abs(states).T
    parked: Bools = (position <= GOAL[0]) & (velocity <= GOAL[1])
    return parked


class DoubleIntegrator(gymnasium.Env[Floats, np.int64]):
    """Starts 3 m away."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-REACH, REACH, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(len(CONTROLS))
        self.state = START.copy()  # [2]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin near the start."""
        super().reset(seed=seed)
        start = START + SPREAD * self.np_random.uniform(-1.0, 1.0, size=2)
        self.state = start
        return self.state.copy(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control, held for 0.1 s."""
        states, controls = self.state[np.newaxis], CONTROLS[[action]]
        next_states = dynamics(states, controls)
        paid = float(reward(states, controls, next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, bool(is_terminal(next_states)[0]), False, {}
