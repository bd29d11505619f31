"""Mountain car (Sutton & Barto): an underpowered car must swing back to climb the hill ahead.

    v' = clip(v + 0.001 u - 0.0025 cos 3x, -0.07, 0.07)
    x' = x + v', at the left wall x' = -1.2 and v' = 0, at the goal x' = 0.5

Reward -1 on every step, the last included. Paper, Section 4.1.
"""

from __future__ import annotations

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import STEP_ROWS, compiled_for
from optimist.compiled.dynamics_mountain_car import GOAL, LEFT_WALL, MAX_SPEED, outcome, step, step_rows
from optimist.systems.system import Recipe, System, stepped
from optimist.task import Task


def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One step.  [n, 2], [n, 1] -> [n, 2]"""
    return stepped(compiled_for(step_rows, STEP_ROWS), states, controls, n_axes=2, n_controls=1)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: FloatArray) -> BoolArray:
    """The top of the hill.  [n]"""
    at_goal: BoolArray = states[:, 0] >= GOAL
    return at_goal


BOX = Box([LEFT_WALL, -MAX_SPEED], [GOAL, MAX_SPEED])

MOUNTAIN_CAR = System(
    name="mountain-car",
    gymnasium_id="optimist/MountainCar-v0",
    summary="drive an underpowered car up a hill",
    task=Task(
        box=BOX,
        controls=np.array([-1.0, 0.0, 1.0]),
        reward=reward,
        is_terminal=is_terminal,
        discount=0.99,
        optimistic_value=0.0,
    ),
    dynamics=dynamics,
    step=step,
    outcome=outcome,
    observation_box=BOX,
    starts=np.array([[-np.pi / 6.0, 0.0]]),
    start_spread=np.array([0.1, 0.005]),
    axis_names=("position", "velocity"),
    recipes={
        "paper": Recipe((100, 100), (1.0, 1.0)),
        "ours": Recipe((100, 100), (1.0, 1.0), reason="as the paper: nothing to gain"),
    },
    paper_best=-103.0,
    best_known=-103.0,
)
