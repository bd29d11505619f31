"""Swing up a pendulum by spinning a wheel at its tip: angle, rate, rate of the wheel.

    J angle'' = m g l sin angle - tau - b rate,   Jw wheel' = tau,   tau = 0.1 u - k (wheel - rate)

Angle 0 is upright. The motor (tau, in N m) is a third as strong as gravity, weaker when the wheel is fast.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 0.05  # s
N_SUBSTEPS = 5
INERTIA = 0.01  # kg m^2, of the pendulum
WEIGHT = 0.3  # N m: m g l
FRICTION = 0.001  # N m s
WHEEL_INERTIA = 0.0005  # kg m^2
TORQUE = 0.1  # N m
BACK = 0.0002  # N m s: 500 rad/s at most
CONTROLS = np.array([[-1.0], [-0.25], [0.0], [0.25], [1.0]])
START = np.array([np.pi, 0.0, 0.0])
SPREAD = np.array([0.1, 0.2, 5.0])
REACH = np.array([np.pi, 100.0, 2000.0])


def turned(states: Floats) -> Floats:
    """The angle brought into [-pi, pi).  [n, 3]"""
    states = states.copy()
    states[:, 0] = np.mod(states[:, 0] + np.pi, 2.0 * np.pi) - np.pi
    return states


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 3]"""
    angle, rate, wheel = states.T
    torque = TORQUE * controls[:, 0] - BACK * (wheel - rate)
    swinging = (WEIGHT * np.sin(angle) - torque - FRICTION * rate) / INERTIA
    return np.column_stack([rate, swinging, torque / WHEEL_INERTIA])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The pendulum after 0.05 s.  [n, 3]"""
    h = STEP / N_SUBSTEPS
    for _ in range(N_SUBSTEPS):
        k1 = rates(states, controls)
        k2 = rates(states + 0.5 * h * k1, controls)
        k3 = rates(states + 0.5 * h * k2, controls)
        k4 = rates(states + h * k3, controls)
        states = states + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return turned(states)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squares of angle and rate, and a little of the wheel's.  [n]"""
    angle, rate, wheel = turned(states).T
    cost: Floats = 0.1 * angle**2 + 0.002 * rate**2 + 1e-6 * wheel**2
    return -cost


class ReactionWheel(gymnasium.Env[Floats, np.int64]):
    """Starts hanging."""

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
        """One control, held for 0.05 s."""
        states, controls = self.state[np.newaxis], CONTROLS[[action]]
        next_states = dynamics(states, controls)
        paid = float(reward(states, controls, next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, False, False, {}
