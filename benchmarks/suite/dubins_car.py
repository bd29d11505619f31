"""Drive a car that cannot stop to a disc, around two pillars: place and heading.

    x' = v cos heading,   y' = v sin heading,   heading' = u,   v = 1 m/s

-1 a step until it is in the disc. Pillars and the fence end the episode, at -150.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Bools, Floats, Stranger, integrated, turned

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


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 3]"""
    heading = states[:, 2]
    columns = SPEED * np.cos(heading), SPEED * np.sin(heading), controls[:, 0]
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The car after 0.2 s.  [n, 3]"""
    states = integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)
    return turned(states, 2)


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


class DubinsCar(Stranger):
    """Starts in one corner of the field; the disc is in the opposite one."""

    def __init__(self) -> None:
        super().__init__(
            dynamics,
            reward,
            is_terminal,
            start=START,
            spread=SPREAD,
            reach=REACH,
            controls=CONTROLS,
            angles=(2,),
        )
