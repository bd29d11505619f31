"""Bring a mass on a table to rest at a mark, pushed along both axes: place and velocity.

    p'' = u - 0.3 p'

Any push within [-1, 1] along each axis. A step costs p^2 + 0.1 p'^2 + 0.05 u^2, before it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated

STEP = 0.2  # s
N_SUBSTEPS = 2
DRAG = 0.3  # 1/s
START = np.array([1.0, -0.7, 0.0, 0.0])
SPREAD = np.array([0.2, 0.2, 0.1, 0.1])
REACH = np.full(4, 100.0)
LOW, HIGH = [-1.5, -1.5, -1.5, -1.5], [1.5, 1.5, 1.5, 1.5]
NINE = np.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 4]"""
    return np.concatenate([states[:, 2:], controls - DRAG * states[:, 2:]], axis=1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The mass after 0.2 s.  [n, 4]"""
    return integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Distance, speed and effort.  [n]"""
    far, fast = (states[:, :2] ** 2).sum(axis=1), (states[:, 2:] ** 2).sum(axis=1)
    paid: Floats = -far - 0.1 * fast - 0.05 * (controls**2).sum(axis=1)
    return paid


class PlanarMass(Stranger):
    """Starts at some distance, at rest."""

    def __init__(self) -> None:
        super().__init__(dynamics, reward, start=START, spread=SPREAD, reach=REACH, n_actuators=2)
