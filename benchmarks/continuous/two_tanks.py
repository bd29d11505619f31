"""Fill two tanks that leak, and leak into each other, to their marks: both levels; two pumps.

    h1' = 0.3 (1 + u1) - 0.35 sqrt(h1) - 0.2 (h1 - h2)
    h2' = 0.2 (1 + u2) - 0.30 sqrt(h2) + 0.2 (h1 - h2)

Pumps from off (-1) to full (1). A step costs the squared distances from the marks 0.7 and 0.4, 0.01 of effort
included, times 10, after it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated

STEP = 0.5  # s
N_SUBSTEPS = 2
MARKS = np.array([0.7, 0.4])  # m
START = np.array([0.15, 0.9])
SPREAD = np.array([0.1, 0.1])
REACH = np.full(2, 10.0)
LOW, HIGH = [0.0, 0.0], [1.5, 1.5]
NINE = np.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 2]"""
    first, second = np.maximum(states, 0.0).T
    over = 0.2 * (first - second)
    return np.column_stack(
        [
            0.3 * (1.0 + controls[:, 0]) - 0.35 * np.sqrt(first) - over,
            0.2 * (1.0 + controls[:, 1]) - 0.3 * np.sqrt(second) + over,
        ]
    )


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The levels after half a second; no tank is less than empty.  [n, 2]"""
    return np.maximum(integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS), 0.0)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Distances from the marks, and effort.  [n]"""
    missed = ((next_states - MARKS) ** 2).sum(axis=1)
    paid: Floats = -10.0 * missed - 0.01 * (controls**2).sum(axis=1)
    return paid


class TwoTanks(Stranger):
    """Starts with one tank nearly empty and the other too full."""

    def __init__(self) -> None:
        super().__init__(dynamics, reward, start=START, spread=SPREAD, reach=REACH, n_actuators=2)
