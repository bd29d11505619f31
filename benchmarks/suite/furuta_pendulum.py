"""Swing up a pendulum at the end of an arm that turns (Furuta): arm and its rate, pendulum and its rate.

    (A + B sin^2 p) a'' + C cos p p'' + 2 B sin p cos p a' p' - C sin p p'^2 = tau - 0.005 a'
    C cos p a'' + B p'' - B sin p cos p a'^2 - D sin p = -0.0005 p'

a is the arm's angle, p the pendulum's, 0 upright. The arm shall point ahead, too.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated, turned

STEP = 0.05  # s
N_SUBSTEPS = 5
MASS, LENGTH, ARM = 0.1, 0.4, 0.2  # kg, m, m: a rod, and how far out it hangs
A = 0.004 + MASS * ARM**2  # kg m^2
B = MASS * LENGTH**2 / 3.0
C = MASS * ARM * LENGTH / 2.0
D = MASS * 9.81 * LENGTH / 2.0  # N m
ARM_FRICTION, FRICTION = 0.005, 0.0005  # N m s
TORQUE = 0.2  # N m
CONTROLS = np.array([[-1.0], [-0.25], [0.0], [0.25], [1.0]])
START = np.array([0.0, 0.0, np.pi, 0.0])
SPREAD = np.array([0.1, 0.1, 0.1, 0.1])
REACH = np.array([np.pi, 300.0, np.pi, 300.0])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 4]"""
    _, arm_rate, angle, rate = states.T
    sine, cosine = np.sin(angle), np.cos(angle)
    on_arm = TORQUE * controls[:, 0] - ARM_FRICTION * arm_rate + C * sine * rate**2
    on_arm = on_arm - 2.0 * B * sine * cosine * arm_rate * rate
    on_rod = D * sine - FRICTION * rate + B * sine * cosine * arm_rate**2
    size = (A + B * sine**2) * B - (C * cosine) ** 2  # determinant of the masses
    turning = (B * on_arm - C * cosine * on_rod) / size
    swinging = ((A + B * sine**2) * on_rod - C * cosine * on_arm) / size
    return np.column_stack([arm_rate, turning, rate, swinging])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """Arm and pendulum after 0.05 s.  [n, 4]"""
    states = integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)
    return turned(states, 0, 2)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Height missed by the pendulum, a little for the arm's angle and for both rates.  [n]"""
    arm, arm_rate, angle, rate = states.T
    cost: Floats = (1.0 - np.cos(angle)) + 0.2 * (1.0 - np.cos(arm)) + 0.002 * (arm_rate**2 + rate**2)
    return -cost


class FurutaPendulum(Stranger):
    """Starts hanging, with the arm ahead."""

    def __init__(self) -> None:
        super().__init__(dynamics, reward, start=START, spread=SPREAD, reach=REACH, angles=(0, 2))
