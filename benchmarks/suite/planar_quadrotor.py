"""Fly a quadrotor, seen from the side, back to its place: place, tilt, and their rates.

    m x'' = -F sin tilt,   m y'' = F cos tilt - m g,   I tilt'' = tau

The controls are the thrust F beyond the weight, in N, and the torque tau, in N m. The ground ends it: -150.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP = 0.1  # s
N_SUBSTEPS = 4
MASS, INERTIA, GRAVITY = 0.5, 0.01, 9.81  # kg, kg m^2, m/s^2
CONTROLS = np.array([[0.0, 0.0], [2.0, 0.0], [-2.0, 0.0], [0.0, 0.04], [0.0, -0.04]])
GROUND = -1.5  # m
CRASH = -150.0
START = np.array([1.0, -0.5, 0.0, 0.0, 0.0, 0.0])
SPREAD = np.array([0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
REACH = np.array([1000.0, 1000.0, 1000.0, 200.0, 200.0, 200.0])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 6]"""
    tilt = states[:, 2]
    thrust = (MASS * GRAVITY + controls[:, 0]) / MASS
    columns = -thrust * np.sin(tilt), thrust * np.cos(tilt) - GRAVITY, controls[:, 1] / INERTIA
    return np.concatenate([states[:, 3:], np.stack(np.broadcast_arrays(*columns), axis=-1)], axis=1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The quadrotor after 0.1 s.  [n, 6]"""
    h = STEP / N_SUBSTEPS
    for _ in range(N_SUBSTEPS):
        k1 = rates(states, controls)
        k2 = rates(states + 0.5 * h * k1, controls)
        k3 = rates(states + 0.5 * h * k2, controls)
        k4 = rates(states + h * k3, controls)
        states = states + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return states


def is_terminal(states: Floats) -> Bools:
    """On the ground.  [n]"""
    down: Bools = states[:, 1] < GROUND
    return down


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squared distance, tilt and rates; -150 for the ground.  [n]"""
    weights = np.array([1.0, 1.0, 0.5, 0.1, 0.1, 0.05])
    cost: Floats = (weights * states**2).sum(axis=1)
    return np.where(is_terminal(next_states), CRASH, -cost)


class PlanarQuadrotor(gymnasium.Env[Floats, np.int64]):
    """Starts level, a metre to the right and half a metre too low."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-REACH, REACH, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(len(CONTROLS))
        self.state = START.copy()  # [6]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin near the start."""
        super().reset(seed=seed)
        start = START + SPREAD * self.np_random.uniform(-1.0, 1.0, size=6)
        self.state = start
        return self.state.copy(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control, held for 0.1 s."""
        states, controls = self.state[np.newaxis], CONTROLS[[action]]
        next_states = dynamics(states, controls)
        paid = float(reward(states, controls, next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, bool(is_terminal(next_states)[0]), False, {}
