"""Acrobot (Sutton & Barto): swing the tip of a two-link arm up by the torque between the links.

    d1 t1'' + d2 t2'' + p1 = 0,   d2 t1'' + (m2 lc2^2 + I2) t2'' + m2 l1 lc2 t1'^2 sin t2 + p2 = torque

State (t1, t1', t2, t2') in the paper's order. Four semi-implicit steps of 0.05 s per action: each
velocity (bounded), then its angle, accelerations from the old state; the substeps stop at the goal.
"""

from __future__ import annotations

import numpy as np

from optimist.box import BoolArray, Box, FloatArray
from optimist.systems.system import Recipe, System
from optimist.task import Task

GRAVITY = 9.8
LINK_LENGTH = 1.0  # l1 = l2
CENTRE = 0.5  # lc1 = lc2
MASS = 1.0  # m1 = m2
INERTIA = 1.0  # I1 = I2
SUBSTEP = 0.05
N_SUBSTEPS = 4
MAX_RATE_1 = 4.0 * np.pi
MAX_RATE_2 = 9.0 * np.pi

BOX = Box(
    [-np.pi, -MAX_RATE_1, -np.pi, -MAX_RATE_2],
    [np.pi, MAX_RATE_1, np.pi, MAX_RATE_2],
    periodic=[True, False, True, False],
)


def accelerations(
    angle_1: FloatArray,
    rate_1: FloatArray,
    angle_2: FloatArray,
    rate_2: FloatArray,
    torque: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Angular accelerations of the two joints, each [n]."""
    cosine, sine = np.cos(angle_2), np.sin(angle_2)
    coupling = MASS * LINK_LENGTH * CENTRE
    d1 = MASS * CENTRE**2 + MASS * (LINK_LENGTH**2 + CENTRE**2) + 2.0 * coupling * cosine + 2.0 * INERTIA
    d2 = MASS * CENTRE**2 + coupling * cosine + INERTIA
    # cos(t - pi/2) = sin t
    p2 = MASS * CENTRE * GRAVITY * np.sin(angle_1 + angle_2)
    p1 = (
        -coupling * rate_2 * sine * (rate_2 + 2.0 * rate_1)
        + (MASS * CENTRE + MASS * LINK_LENGTH) * GRAVITY * np.sin(angle_1)
        + p2
    )
    ratio = d2 / d1
    acceleration_2 = (torque + ratio * p1 - coupling * rate_1**2 * sine - p2) / (
        MASS * CENTRE**2 + INERTIA - d2 * ratio
    )
    return -(d2 * acceleration_2 + p1) / d1, acceleration_2


def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One step of 0.2 s.  [n, 4], [n, 1] -> [n, 4]"""
    angle_1, rate_1, angle_2, rate_2 = states.T
    torque = controls[:, 0]
    for _ in range(N_SUBSTEPS):
        moving = ~_tip_is_high(angle_1, angle_2)
        acceleration_1, acceleration_2 = accelerations(angle_1, rate_1, angle_2, rate_2, torque)
        faster_1 = np.clip(rate_1 + SUBSTEP * acceleration_1, -MAX_RATE_1, MAX_RATE_1)
        faster_2 = np.clip(rate_2 + SUBSTEP * acceleration_2, -MAX_RATE_2, MAX_RATE_2)
        rate_1 = np.where(moving, faster_1, rate_1)
        rate_2 = np.where(moving, faster_2, rate_2)
        angle_1 = np.where(moving, angle_1 + SUBSTEP * rate_1, angle_1)
        angle_2 = np.where(moving, angle_2 + SUBSTEP * rate_2, angle_2)
    return BOX.wrap(np.column_stack([angle_1, rate_1, angle_2, rate_2]))


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: FloatArray) -> BoolArray:
    """The tip is one link's length above the upper joint.  [n]"""
    return _tip_is_high(states[:, 0], states[:, 2])


def _tip_is_high(angle_1: FloatArray, angle_2: FloatArray) -> BoolArray:
    high: BoolArray = -np.cos(angle_1) - np.cos(angle_1 + angle_2) > 1.0
    return high


UNIFORM = (1.0, 1.0, 1.0, 1.0)
SWUNG_LIMITS = (np.pi, 2.0 * np.pi, np.pi, 3.0 * np.pi)
REASON = (
    "a swing-up stays within half and a third of the printed rates; interpolation errors at this "
    "resolution cost some ten steps, which searching ten steps ahead wins back"
)

ACROBOT = System(
    name="acrobot",
    gymnasium_id="optimist/Acrobot-v0",
    summary="swing up a two-link arm driven at the elbow",
    task=Task(
        box=BOX,
        controls=np.array([-1.0, 1.0]),
        reward=reward,
        is_terminal=is_terminal,
        discount=1.0,
        optimistic_value=0.0,
    ),
    dynamics=dynamics,
    observation_box=BOX,
    starts=np.zeros((1, 4)),
    start_spread=np.full(4, 0.1),
    axis_names=("angle 1 [rad]", "rate 1 [rad/s]", "angle 2 [rad]", "rate 2 [rad/s]"),
    recipes={
        "paper": Recipe((25, 25, 25, 25), UNIFORM),
        "ours": Recipe((25, 25, 25, 25), UNIFORM, SWUNG_LIMITS, hold=2, lookahead=10, reason=REASON),
        "fine": Recipe((31, 31, 31, 31), UNIFORM, SWUNG_LIMITS, hold=2, lookahead=10, reason=REASON),
    },
    paper_best=-64.0,
    best_known=-63.0,
)
