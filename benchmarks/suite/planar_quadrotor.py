"""Fly a quadrotor, seen from the side, back to its place: place, tilt, and their rates.

    m x'' = -F sin tilt,   m y'' = F cos tilt - m g,   I tilt'' = tau

The controls are the thrust F beyond the weight, in N, and the torque tau, in N m. The ground ends it: -150.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Bools, Floats, Stranger, integrated

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
    return integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)


def is_terminal(states: Floats) -> Bools:
    """On the ground.  [n]"""
    down: Bools = states[:, 1] < GROUND
    return down


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squared distance, tilt and rates; -150 for the ground.  [n]"""
    weights = np.array([1.0, 1.0, 0.5, 0.1, 0.1, 0.05])
    cost: Floats = (weights * states**2).sum(axis=1)
    return np.where(is_terminal(next_states), CRASH, -cost)


class PlanarQuadrotor(Stranger):
    """Starts level, a metre to the right and half a metre too low."""

    def __init__(self) -> None:
        super().__init__(
            dynamics, reward, is_terminal, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS
        )
