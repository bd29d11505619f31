"""Acrobot (Sutton & Barto): swing the tip of a two-link arm up by the torque between the links.

    d1 t1'' + d2 t2'' + p1 = 0,   d2 t1'' + (m2 lc2^2 + I2) t2'' + m2 l1 lc2 t1'^2 sin t2 + p2 = torque

State (t1, t1', t2, t2') in the paper's order. Four semi-implicit steps of 0.05 s per action: each
velocity (bounded), then its angle, accelerations from the old state; the substeps stop at the goal.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import clipped, wrapped
from optimist.discretisation import Discretisation
from optimist.systems.drawing import BODY, GOAL, INK, Disc, Drawing, Line, Shape, turning
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


@njit(nogil=True, cache=True)
def accelerations(angle_1, rate_1, angle_2, rate_2, torque):
    """Angular accelerations of the two joints; of numbers, or of arrays [n]."""
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


@njit(nogil=True, cache=True)
def tip_is_high(angle_1, angle_2):
    """The tip is one link's length above the upper joint."""
    return -np.cos(angle_1) - np.cos(angle_1 + angle_2) > 1.0


@njit(nogil=True, cache=True)
def step(state, control, next_state):
    """Semi-implicit substeps that stop at the goal.  [4], [1] -> out [4]"""
    angle_1, rate_1, angle_2, rate_2 = state[0], state[1], state[2], state[3]
    for _ in range(N_SUBSTEPS):
        if tip_is_high(angle_1, angle_2):
            break
        faster_1, faster_2 = accelerations(angle_1, rate_1, angle_2, rate_2, control[0])
        rate_1 = clipped(rate_1 + SUBSTEP * faster_1, MAX_RATE_1)
        rate_2 = clipped(rate_2 + SUBSTEP * faster_2, MAX_RATE_2)
        angle_1 += SUBSTEP * rate_1
        angle_2 += SUBSTEP * rate_2
    next_state[0] = wrapped(angle_1, -np.pi, np.pi)
    next_state[1] = rate_1
    next_state[2] = wrapped(angle_2, -np.pi, np.pi)
    next_state[3] = rate_2


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """-1 a step, until the tip is high."""
    return -1.0, tip_is_high(next_state[0], next_state[2])


BOX = Box(
    [-np.pi, -MAX_RATE_1, -np.pi, -MAX_RATE_2],
    [np.pi, MAX_RATE_1, np.pi, MAX_RATE_2],
    periodic=[True, False, True, False],
)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: FloatArray) -> BoolArray:
    """The tip is one link's length above the upper joint.  [n]"""
    angle_1, both = states[:, 0], states[:, 0] + states[:, 2]
    high: BoolArray = -np.cos(angle_1) - np.cos(both) > 1.0
    return high


def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
    """Both links, the line that the tip shall cross, the torque between the links."""
    angle, both = float(state[0]), float(state[0] + state[2])
    elbow = (LINK_LENGTH * float(np.sin(angle)), -LINK_LENGTH * float(np.cos(angle)))
    tip = (elbow[0] + LINK_LENGTH * float(np.sin(both)), elbow[1] - LINK_LENGTH * float(np.cos(both)))
    torque = 0.0 if control is None else float(control[0])
    towards = both - 0.5 * np.pi  # where the second link points
    return [
        Line([(-2.6, LINK_LENGTH), (2.6, LINK_LENGTH)], 0.03, GOAL),
        Line([(0.0, 0.0), elbow], 0.1, BODY),
        Line([elbow, tip], 0.1, "#56b4e9"),
        Disc((0.0, 0.0), 0.1, INK),
        Disc(elbow, 0.1, INK),
        *turning(elbow, 0.4, (towards, towards + 1.2 * torque), 0.05),
    ]


SYSTEM = System(
    name="acrobot",
    summary="swing up a two-link arm driven at the elbow",
    task=Task(
        box=BOX,
        controls=np.array([-1.0, 1.0]),
        reward=reward,
        is_terminal=is_terminal,
        discount=1.0,
        optimistic_value=0.0,
    ),
    step=step,
    outcome=outcome,
    starts=np.zeros((1, 4)),
    start_spread=np.full(4, 0.1),
    axis_names=("angle 1 [rad]", "rate 1 [rad/s]", "angle 2 [rad]", "rate 2 [rad/s]"),
    drawing=Drawing(shapes, (-2.8, -2.1), (2.8, 2.1), fps=10),
    recipes={"paper": Recipe(Discretisation(nodes=(25,) * 4, spacing=(1.0,) * 4, hold=1))},
    paper_best=-64.0,
    best_known=-63.0,
)
