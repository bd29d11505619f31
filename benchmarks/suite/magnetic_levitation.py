"""Hold a steel ball 10 mm under an electromagnet: gap and velocity, downwards positive.

    m gap'' = m g - C (i / gap)^2

Unstable: 10 mm is where 1 A carries the ball, and a little lower it falls. Stops at 4 mm and 20 mm catch it.
The action sets the current, -1 for none to 1 for 2.5 A.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated

STEP = 0.005  # s
N_SUBSTEPS = 5
MASS = 0.05  # kg
GRAVITY = 9.81
TARGET = 0.01  # m
PULL = MASS * GRAVITY * TARGET**2  # N m^2/A^2: 1 A carries the ball at the target
MAX_CURRENT = 2.5  # A
STOPS = (0.004, 0.02)  # m
CONTROLS = np.array([[-1.0], [-0.75], [-0.5], [-0.25], [0.0], [0.5], [1.0]])
START = np.array([0.016, 0.0])
SPREAD = np.array([0.001, 0.02])
REACH = np.array([0.1, 10.0])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 2]"""
    gap, velocity = np.maximum(states[:, 0], 0.5 * STOPS[0]), states[:, 1]
    current = 0.5 * MAX_CURRENT * (1.0 + controls[:, 0])
    return np.column_stack([velocity, GRAVITY - PULL / MASS * (current / gap) ** 2])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The stops take all speed away.  [n, 2]"""
    states = integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)
    gap, velocity = states[:, 0], states[:, 1]
    stopped = (gap <= STOPS[0]) & (velocity < 0.0) | (gap >= STOPS[1]) & (velocity > 0.0)
    return np.column_stack([np.clip(gap, *STOPS), np.where(stopped, 0.0, velocity)])


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squares of distance (5 mm), velocity (0.5 m/s) and a little of the action.  [n]"""
    distance, velocity = (states[:, 0] - TARGET) / 0.005, states[:, 1] / 0.5
    cost: Floats = distance**2 + velocity**2 + 0.01 * controls[:, 0] ** 2
    return -cost


class MagneticLevitation(Stranger):
    """Starts 6 mm too low, and falling if nothing is done."""

    def __init__(self) -> None:
        super().__init__(dynamics, reward, start=START, spread=SPREAD, reach=REACH)
