"""Blow a puck over an air table, around a wall, into a corner: place and velocity.

    p'' = u - 0.1 p'

Nine ways to push, none included. -1 a step until it is in its corner and slow. The wall and the rim end the
episode, at -100.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Bools, Floats, Stranger, integrated

STEP = 0.1  # s
N_SUBSTEPS = 1
DRAG = 0.1  # 1/s
PUSH = 1.0  # m/s^2, along each axis
CONTROLS = PUSH * np.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
RIM = 1.0  # m, to all sides
WALL_HALF, WALL_TOP = 0.15, 0.2  # m: it stands on the lower rim
GOAL, GOAL_RADIUS, SLOW = np.array([0.6, -0.6]), 0.2, 0.5  # m, m, m/s
CRASH = -100.0
START = np.array([-0.6, -0.6, 0.0, 0.0])
SPREAD = np.array([0.1, 0.1, 0.05, 0.05])
REACH = np.array([100.0, 100.0, 100.0, 100.0])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 4]"""
    return np.concatenate([states[:, 2:], controls - DRAG * states[:, 2:]], axis=1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The puck after 0.1 s.  [n, 4]"""
    return integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)


def has_crashed(states: Floats) -> Bools:
    """In the wall or beyond the rim.  [n]"""
    x, y = states[:, 0], states[:, 1]
    crashed: Bools = (np.abs(x) > RIM) | (np.abs(y) > RIM) | ((np.abs(x) < WALL_HALF) & (y < WALL_TOP))
    return crashed


def is_terminal(states: Floats) -> Bools:
    """In its corner and slow, or crashed.  [n]"""
    there: Bools = np.hypot(states[:, 0] - GOAL[0], states[:, 1] - GOAL[1]) < GOAL_RADIUS
    slow: Bools = np.hypot(states[:, 2], states[:, 3]) < SLOW
    return (there & slow) | has_crashed(states)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """-1 a step, -100 for the one that crashes.  [n]"""
    return np.where(has_crashed(next_states), CRASH, -1.0)


class AirTable(Stranger):
    """Starts in the corner on the other side of the wall."""

    def __init__(self) -> None:
        super().__init__(
            dynamics, reward, is_terminal, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS
        )
