"""Park a puck on a line: position and velocity, pushed left or right, as fast as it goes.

    x'' = u

-1 a step until it is at 0, nearly at rest.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Bools, Floats, Stranger

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


class DoubleIntegrator(Stranger):
    """Starts 3 m away."""

    def __init__(self) -> None:
        super().__init__(
            dynamics, reward, is_terminal, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS
        )
