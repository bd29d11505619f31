"""Acrobot (Sutton & Barto): swing the tip of a two-link arm up by the torque between the links.

    d1 t1'' + d2 t2'' + p1 = 0,   d2 t1'' + (m2 lc2^2 + I2) t2'' + m2 l1 lc2 t1'^2 sin t2 + p2 = torque

State (t1, t1', t2, t2') in the paper's order. Four semi-implicit steps of 0.05 s per action: each
velocity (bounded), then its angle, accelerations from the old state; the substeps stop at the goal.
"""

from __future__ import annotations

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import STEP_ROWS, compiled_for
from optimist.compiled.dynamics_acrobot import (
    MAX_RATE_1,
    MAX_RATE_2,
    accelerations,
    outcome,
    step,
    step_rows,
)
from optimist.systems.system import Recipe, System, stepped
from optimist.task import Task

BOX = Box(
    [-np.pi, -MAX_RATE_1, -np.pi, -MAX_RATE_2],
    [np.pi, MAX_RATE_1, np.pi, MAX_RATE_2],
    periodic=[True, False, True, False],
)


def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One step of 0.2 s.  [n, 4], [n, 1] -> [n, 4]"""
    return stepped(compiled_for(step_rows, STEP_ROWS), states, controls, n_axes=4, n_controls=1)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: FloatArray) -> BoolArray:
    """The tip is one link's length above the upper joint.  [n]"""
    angle_1, both = states[:, 0], states[:, 0] + states[:, 2]
    high: BoolArray = -np.cos(angle_1) - np.cos(both) > 1.0
    return high


__all__ = ["ACROBOT", "BOX", "accelerations", "dynamics", "is_terminal", "reward"]

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
    step=step,
    outcome=outcome,
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
