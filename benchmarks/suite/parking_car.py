"""Park a car: place, heading, speed, steering angle.

    x' = v cos heading,   y' = v sin heading,   heading' = v tan(steering) / 1,   v' = u0,   steering' = u1

The steering stops at 0.6 rad, the speed at 1.5 m/s either way. The car shall stand at 0 and look along x.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 0.2  # s
N_SUBSTEPS = 2
WHEEL_BASE = 1.0  # m
MOST = np.array([1.5, 0.6])  # m/s, rad
CONTROLS = np.array([[a, w] for a in (-1.0, 0.0, 1.0) for w in (-1.0, 0.0, 1.0)])  # m/s^2, rad/s
START = np.array([-2.5, 1.5, 0.0, 0.0, 0.0])
SPREAD = np.array([0.2, 0.2, 0.2, 0.05, 0.05])
REACH = np.array([1000.0, 1000.0, np.pi, 10.0, np.pi])


def turned(states: Floats) -> Floats:
    """The heading brought into [-pi, pi).  [n, 5]"""
    states = states.copy()
    states[:, 2] = np.mod(states[:, 2] + np.pi, 2.0 * np.pi) - np.pi
    return states


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 5]"""
    heading, speed, steering = states[:, 2], *np.clip(states[:, 3:], -MOST, MOST).T
    turning = speed * np.tan(steering) / WHEEL_BASE
    columns = speed * np.cos(heading), speed * np.sin(heading), turning, controls[:, 0], controls[:, 1]
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """Speed and steering have their stops.  [n, 5]"""
    h = STEP / N_SUBSTEPS
    for _ in range(N_SUBSTEPS):
        k1 = rates(states, controls)
        k2 = rates(states + 0.5 * h * k1, controls)
        k3 = rates(states + 0.5 * h * k2, controls)
        k4 = rates(states + h * k3, controls)
        states = states + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        states[:, 3:] = np.clip(states[:, 3:], -MOST, MOST)
    return turned(states)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squared distance, wrong heading, and a little of speed and steering.  [n]"""
    x, y, heading, speed, steering = states.T
    cost: Floats = 0.1 * (x**2 + y**2) + 0.2 * (1.0 - np.cos(heading))
    cost = cost + 0.02 * (speed**2 + steering**2)
    return -cost


class ParkingCar(gymnasium.Env[Floats, np.int64]):
    """Starts behind the lot and to its left."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-REACH, REACH, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(len(CONTROLS))
        self.state = START.copy()  # [5]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin near the start."""
        super().reset(seed=seed)
        start = START + SPREAD * self.np_random.uniform(-1.0, 1.0, size=5)
        self.state = turned(start[np.newaxis])[0]
        return self.state.copy(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control, held for 0.2 s."""
        states, controls = self.state[np.newaxis], CONTROLS[[action]]
        next_states = dynamics(states, controls)
        paid = float(reward(states, controls, next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, False, False, {}
