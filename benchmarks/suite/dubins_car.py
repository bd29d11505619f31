"""Drive a car that cannot stop to a disc, around two pillars: place and heading.

    x' = v cos heading,   y' = v sin heading,   heading' = u,   v = 1 m/s

-1 a step until it is in the disc. Pillars and the fence end the episode, at -150.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP = 0.2  # s
N_SUBSTEPS = 2
SPEED = 1.0  # m/s
CONTROLS = np.array([[-1.0], [0.0], [1.0]])  # rad/s
FENCE = 5.0  # m, to all sides
GOAL, GOAL_RADIUS = np.array([4.0, 3.5]), 0.6
PILLARS = np.array([[-0.5, 0.5, 1.6], [2.5, -1.0, 1.2]])  # x, y, radius
CRASH = -150.0
START = np.array([-4.0, -3.5, 0.0])
SPREAD = np.array([0.2, 0.2, 0.3])
REACH = np.array([100.0, 100.0, np.pi])


def turned(states: Floats) -> Floats:
    """The heading brought into [-pi, pi).  [n, 3]"""
    states = states.copy()
    states[:, 2] = np.mod(states[:, 2] + np.pi, 2.0 * np.pi) - np.pi
    return states


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 3]"""
    heading = states[:, 2]
    columns = SPEED * np.cos(heading), SPEED * np.sin(heading), controls[:, 0]
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The car after 0.2 s.  [n, 3]"""
    h = STEP / N_SUBSTEPS
    for _ in range(N_SUBSTEPS):
        k1 = rates(states, controls)
        k2 = rates(states + 0.5 * h * k1, controls)
        k3 = rates(states + 0.5 * h * k2, controls)
        k4 = rates(states + h * k3, controls)
        states = states + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return turned(states)


def has_crashed(states: Floats) -> Bools:
    """In a pillar or beyond the fence.  [n]"""
    crashed: Bools = np.maximum(np.abs(states[:, 0]), np.abs(states[:, 1])) > FENCE
    for x, y, radius in PILLARS:
        crashed = crashed | (np.hypot(states[:, 0] - x, states[:, 1] - y) < radius)
    return crashed


def is_terminal(states: Floats) -> Bools:
    """In the disc, or crashed.  [n]"""
    there: Bools = np.hypot(states[:, 0] - GOAL[0], states[:, 1] - GOAL[1]) < GOAL_RADIUS
    return there | has_crashed(states)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """-1 a step, -150 for the one that crashes.  [n]"""
    return np.where(has_crashed(next_states), CRASH, -1.0)


class DubinsCar(gymnasium.Env[Floats, np.int64]):
    """Starts in one corner of the field; the disc is in the opposite one."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-REACH, REACH, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(len(CONTROLS))
        self.state = START.copy()  # [3]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin near the start."""
        super().reset(seed=seed)
        start = START + SPREAD * self.np_random.uniform(-1.0, 1.0, size=3)
        self.state = turned(start[np.newaxis])[0]
        return self.state.copy(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control, held for 0.2 s."""
        states, controls = self.state[np.newaxis], CONTROLS[[action]]
        next_states = dynamics(states, controls)
        paid = float(reward(states, controls, next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, bool(is_terminal(next_states)[0]), False, {}
