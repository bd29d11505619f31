"""Park a car: place, heading, speed, steering angle.

    x' = v cos heading,   y' = v sin heading,   heading' = v tan(steering) / 1,   v' = u0,   steering' = u1

The steering stops at 0.6 rad, the speed at 1.5 m/s either way. The car shall stand at 0 and look along x.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated, turned

STEP = 0.2  # s
N_SUBSTEPS = 2
WHEEL_BASE = 1.0  # m
MOST = np.array([1.5, 0.6])  # m/s, rad
CONTROLS = np.array([[a, w] for a in (-1.0, 0.0, 1.0) for w in (-1.0, 0.0, 1.0)])  # m/s^2, rad/s
START = np.array([-2.5, 1.5, 0.0, 0.0, 0.0])
SPREAD = np.array([0.2, 0.2, 0.2, 0.05, 0.05])
REACH = np.array([1000.0, 1000.0, np.pi, 10.0, np.pi])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 5]"""
    heading, speed, steering = states[:, 2], *np.clip(states[:, 3:], -MOST, MOST).T
    turning = speed * np.tan(steering) / WHEEL_BASE
    columns = speed * np.cos(heading), speed * np.sin(heading), turning, controls[:, 0], controls[:, 1]
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def dynamics(states: Floats, controls: Floats) -> Floats:
    """Speed and steering have their stops.  [n, 5]"""
    states = integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS, most=MOST)
    return turned(states, 2)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squared distance, wrong heading, and a little of speed and steering.  [n]"""
    x, y, heading, speed, steering = states.T
    cost: Floats = 0.1 * (x**2 + y**2) + 0.2 * (1.0 - np.cos(heading))
    cost = cost + 0.02 * (speed**2 + steering**2)
    return -cost


class ParkingCar(Stranger):
    """Starts behind the lot and to its left."""

    def __init__(self) -> None:
        super().__init__(
            dynamics, reward, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS, angles=(2,)
        )
