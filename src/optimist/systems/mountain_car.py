"""Mountain car (Sutton & Barto): an underpowered car must swing back to climb the hill ahead.

    v' = clip(v + 0.001 u - 0.0025 cos 3x, -0.07, 0.07)
    x' = x + v', at the left wall x' = -1.2 and v' = 0, at the goal x' = 0.5

Reward -1 on every step, the last included. Paper, Section 4.1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import clipped
from optimist.discretisation import Discretisation
from optimist.systems.system import Recipe, System
from optimist.task import Task

LEFT_WALL = -1.2
GOAL = 0.5
MAX_SPEED = 0.07
THRUST = 0.001
GRAVITY = 0.0025


@njit(nogil=True, cache=True)
def step(state, control, next_state):
    """[2], [1] -> out [2]"""
    velocity = state[1] + THRUST * control[0] - GRAVITY * np.cos(3.0 * state[0])
    velocity = clipped(velocity, MAX_SPEED)
    position = state[0] + velocity
    if position < LEFT_WALL:
        position, velocity = LEFT_WALL, 0.0
    next_state[0] = GOAL if position > GOAL else position
    next_state[1] = velocity


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """-1 a step, until the top of the hill."""
    return -1.0, next_state[0] >= GOAL


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: FloatArray) -> BoolArray:
    """The top of the hill.  [n]"""
    at_goal: BoolArray = states[:, 0] >= GOAL
    return at_goal


BOX = Box([LEFT_WALL, -MAX_SPEED], [GOAL, MAX_SPEED])

GRID = Discretisation(nodes=(100, 100), spacing=(1.0, 1.0), hold=1)

SYSTEM = System(
    name="mountain-car",
    summary="drive an underpowered car up a hill",
    task=Task(
        box=BOX,
        controls=np.array([-1.0, 0.0, 1.0]),
        reward=reward,
        is_terminal=is_terminal,
        discount=0.99,
        optimistic_value=0.0,
    ),
    step=step,
    outcome=outcome,
    starts=np.array([[-np.pi / 6.0, 0.0]]),
    start_spread=np.array([0.1, 0.005]),
    axis_names=("position", "velocity"),
    recipes={"paper": Recipe(GRID)},
    paper_best=-103.0,
    best_known=-103.0,
)
