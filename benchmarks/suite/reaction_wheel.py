"""Swing up a pendulum by spinning a wheel at its tip: angle, rate, rate of the wheel.

    J angle'' = m g l sin angle - tau - b rate,   Jw wheel' = tau,   tau = 0.1 u - k (wheel - rate)

Angle 0 is upright. The motor (tau, in N m) is a third as strong as gravity, weaker when the wheel is fast.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated, turned

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


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 3]"""
    angle, rate, wheel = states.T
    torque = TORQUE * controls[:, 0] - BACK * (wheel - rate)
    swinging = (WEIGHT * np.sin(angle) - torque - FRICTION * rate) / INERTIA
    return np.column_stack([rate, swinging, torque / WHEEL_INERTIA])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The pendulum after 0.05 s.  [n, 3]"""
    states = integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)
    return turned(states, 0)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squares of angle and rate, and a little of the wheel's.  [n]"""
    angle, rate, wheel = turned(states, 0).T
    cost: Floats = 0.1 * angle**2 + 0.002 * rate**2 + 1e-6 * wheel**2
    return -cost


class ReactionWheel(Stranger):
    """Starts hanging."""

    def __init__(self) -> None:
        super().__init__(
            dynamics, reward, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS, angles=(0,)
        )
