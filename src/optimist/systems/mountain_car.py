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
from optimist.systems.drawing import BODY, GOAL, GROUND, INK, Area, Disc, Drawing, Line, Shape, arrow, turned
from optimist.systems.system import Recipe, System
from optimist.task import Task

LEFT_WALL = -1.2
TOP = 0.5
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
    next_state[0] = TOP if position > TOP else position
    next_state[1] = velocity


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """-1 a step, until the top of the hill."""
    return -1.0, next_state[0] >= TOP


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-1 a step.  [n]"""
    return np.full(len(states), -1.0)


def is_terminal(states: FloatArray) -> BoolArray:
    """The top of the hill.  [n]"""
    at_goal: BoolArray = states[:, 0] >= TOP
    return at_goal


BOX = Box([LEFT_WALL, -MAX_SPEED], [TOP, MAX_SPEED])


def hill(position: FloatArray | float) -> FloatArray:
    """Its height, whose slope is what pulls the car.  [n] or a number"""
    height: FloatArray = 0.45 * np.sin(3.0 * np.asarray(position))
    return height


def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
    """The car on its hill, a flag at the top, the push of the engine."""
    ground = np.linspace(LEFT_WALL, 0.65, 90)
    slope = [(float(x), float(y)) for x, y in zip(ground, hill(ground), strict=True)]
    foot = (float(state[0]), float(hill(state[0])))
    tilt = float(np.arctan(1.35 * np.cos(3.0 * state[0])))
    body = turned([(-0.085, 0.045), (0.085, 0.045), (0.05, 0.11), (-0.05, 0.11)], tilt, foot)
    wheels = turned([(-0.05, 0.035), (0.05, 0.035)], tilt, foot)
    force = 0.0 if control is None else 0.16 * float(control[0])
    begin, end = turned([(0.0, 0.19), (force, 0.19)], tilt, foot)
    flag = float(hill(TOP))
    return [
        Area([*slope, (0.65, -0.8), (LEFT_WALL, -0.8)], "#eeeeee"),
        Line(slope, 0.012, GROUND),
        Line([(LEFT_WALL, float(hill(LEFT_WALL))), (LEFT_WALL, 0.5)], 0.02, GROUND),
        Line([(TOP, flag), (TOP, flag + 0.2)], 0.01, INK),
        Area([(TOP, flag + 0.2), (TOP + 0.1, flag + 0.165), (TOP, flag + 0.13)], GOAL),
        Area(body, BODY),
        *(Disc(wheel, 0.035, INK) for wheel in wheels),
        *arrow(begin, end, 0.018),
    ]


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
    drawing=Drawing(shapes, (-1.3, -0.7), (0.7, 0.8), fps=30),
    recipes={"paper": Recipe(GRID)},
    paper_best=-103.0,
    best_known=-103.0,
)
