"""Roll a ball to the middle of a beam by tilting it: place of the ball, its velocity, tilt, rate of the tilt.

    x'' = 5/7 (x tilt'^2 - g sin tilt)
    (J + m x^2) tilt'' = tau - m g x cos tilt - 2 m x x' tilt' - b tilt'

The ball falls off at either end: -100, and over.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP = 0.05  # s
N_SUBSTEPS = 5
MASS, INERTIA, FRICTION = 0.1, 0.05, 0.1  # kg, kg m^2, N m s
GRAVITY = 9.81
HALF = 0.5  # m, of the beam
CONTROLS = np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0]])  # N m
FALL = -100.0
START = np.array([0.3, 0.0, 0.0, 0.0])
SPREAD = np.array([0.05, 0.02, 0.02, 0.02])
REACH = np.array([100.0, 200.0, 100.0, 200.0])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 4]"""
    place, velocity, tilt, rate = states.T
    rolling = 5.0 / 7.0 * (place * rate**2 - GRAVITY * np.sin(tilt))
    torque = controls[:, 0] - MASS * GRAVITY * place * np.cos(tilt) - FRICTION * rate
    tilting = (torque - 2.0 * MASS * place * velocity * rate) / (INERTIA + MASS * place**2)
    return np.column_stack([velocity, rolling, rate, tilting])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """Ball and beam after 0.05 s.  [n, 4]"""
    h = STEP / N_SUBSTEPS
    for _ in range(N_SUBSTEPS):
        k1 = rates(states, controls)
        k2 = rates(states + 0.5 * h * k1, controls)
        k3 = rates(states + 0.5 * h * k2, controls)
        k4 = rates(states + h * k3, controls)
        states = states + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return states


def is_terminal(states: Floats) -> Bools:
    """Fallen off.  [n]"""
    fallen: Bools = np.abs(states[:, 0]) > HALF
    return fallen


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squares of everything, mostly of the place; -100 for falling off.  [n]"""
    place, velocity, tilt, rate = states.T
    cost: Floats = 10.0 * place**2 + 0.5 * velocity**2 + 0.5 * tilt**2 + 0.02 * rate**2
    return np.where(is_terminal(next_states), FALL, -cost)


class BallAndBeam(gymnasium.Env[Floats, np.int64]):
    """Starts level, with the ball at rest out to the right."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-REACH, REACH, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(len(CONTROLS))
        self.state = START.copy()  # [4]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin near the start."""
        super().reset(seed=seed)
        start = START + SPREAD * self.np_random.uniform(-1.0, 1.0, size=4)
        self.state = start
        return self.state.copy(), {}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control, held for 0.05 s."""
        states, controls = self.state[np.newaxis], CONTROLS[[action]]
        next_states = dynamics(states, controls)
        paid = float(reward(states, controls, next_states)[0])
        self.state = next_states[0]
        return self.state.copy(), paid, bool(is_terminal(next_states)[0]), False, {}
