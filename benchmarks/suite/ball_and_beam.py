"""Roll a ball to the middle of a beam by tilting it: place of the ball, its velocity, tilt, rate of the tilt.

    x'' = 5/7 (x tilt'^2 - g sin tilt)
    (J + m x^2) tilt'' = tau - m g x cos tilt - 2 m x x' tilt' - b tilt'

The ball falls off at either end: -100, and over.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Bools, Floats, Stranger, integrated

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
    return integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)


def is_terminal(states: Floats) -> Bools:
    """Fallen off.  [n]"""
    fallen: Bools = np.abs(states[:, 0]) > HALF
    return fallen


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squares of everything, mostly of the place; -100 for falling off.  [n]"""
    place, velocity, tilt, rate = states.T
    cost: Floats = 10.0 * place**2 + 0.5 * velocity**2 + 0.5 * tilt**2 + 0.02 * rate**2
    return np.where(is_terminal(next_states), FALL, -cost)


class BallAndBeam(Stranger):
    """Starts level, with the ball at rest out to the right."""

    def __init__(self) -> None:
        super().__init__(
            dynamics, reward, is_terminal, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS
        )
