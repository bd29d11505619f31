"""Bicycle balancing at constant speed (Randlov & Alstrom 1998; Ernst et al. 2005).

    phi     = roll + atan(d / h)                                    (d: displacement of the rider)
    roll''  = [M h g sin phi - cos phi (I_dc s th' + sign(th) v^2 (M_d r (1/r_f + 1/r_b) + M h / r_CM))] / I
    th''    = (T - I_dv s roll') / I_dl                             (T: torque on the handlebar, s = v / r)

One semi-implicit step of 0.01 s in the order of Randlov's code: roll', roll, th', th, where th'' uses
the old roll'. Fallen beyond 12 degrees of roll (the paper prints the inequality the wrong way round):
reward -10 and the end; otherwise -roll^2.
"""

from __future__ import annotations

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import STEP_ROWS, compiled_for
from optimist.compiled.dynamics_bicycle import (
    FALL_REWARD,
    MAX_HANDLEBAR,
    MAX_ROLL,
    outcome,
    step,
    step_rows,
)
from optimist.systems.system import Recipe, System, stepped
from optimist.task import Task

BOX = Box(
    [-MAX_ROLL, -2.0 * np.pi, -MAX_HANDLEBAR, -2.0 * np.pi],
    [MAX_ROLL, 2.0 * np.pi, MAX_HANDLEBAR, 2.0 * np.pi],
)


def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One step of 0.01 s.  [n, 4], [n, 2] -> [n, 4]"""
    return stepped(compiled_for(step_rows, STEP_ROWS), states, controls, n_axes=4, n_controls=2)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-10 on falling, otherwise -roll^2 before the step.  [n]"""
    return np.where(is_terminal(next_states), FALL_REWARD, -(states[:, 0] ** 2))


def is_terminal(states: FloatArray) -> BoolArray:
    """Fallen.  [n]"""
    fallen: BoolArray = np.abs(states[:, 0]) > MAX_ROLL
    return fallen


__all__ = ["BICYCLE", "BOX", "MAX_ROLL", "dynamics", "is_terminal", "reward"]

BICYCLE = System(
    name="bicycle",
    gymnasium_id="optimist/Bicycle-v0",
    summary="balance a bicycle that is about to fall",
    task=Task(
        box=BOX,
        controls=np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -0.02], [0.0, 0.02], [0.0, 0.0]]),
        reward=reward,
        is_terminal=is_terminal,
        discount=0.98,
        optimistic_value=0.0,
    ),
    dynamics=dynamics,
    step=step,
    outcome=outcome,
    # the rates are not limited; a rider who tries for 500 steps does not come near these
    observation_box=Box(
        [-np.pi / 2.0, -50.0, -MAX_HANDLEBAR, -150.0], [np.pi / 2.0, 50.0, MAX_HANDLEBAR, 150.0]
    ),
    starts=np.array([[np.deg2rad(10.0), 0.0, 0.0, 0.0], [np.deg2rad(-10.0), 0.0, 0.0, 0.0]]),
    start_spread=np.array([np.deg2rad(1.0), 0.05, np.deg2rad(1.0), 0.05]),
    axis_names=(
        "roll [rad]",
        "roll rate [rad/s]",
        "handlebar [rad]",
        "handlebar rate [rad/s]",
    ),
    recipes={
        "paper": Recipe((20, 20, 20, 20), (1.0, 1.0, 1.0, 1.0)),
        "ours": Recipe(
            (20, 20, 20, 20),
            (1.0, 3.0, 1.5, 1.5),
            hold=8,
            lookahead=1,
            reason=(
                "good riding uses a twentieth of the printed roll rates, so nodes are denser "
                "around 0; a step of 0.01 s is short against a cell, so eight are planned as one"
            ),
        ),
    },
    paper_best=-3.49,
    best_known=-2.05,
)
