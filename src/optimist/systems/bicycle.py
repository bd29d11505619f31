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
from numba import njit

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import clipped
from optimist.discretisation import Discretisation
from optimist.systems.drawing import (
    BODY,
    GROUND,
    INK,
    PALE,
    Disc,
    Drawing,
    Line,
    Shape,
    arrow,
    turned,
    turning,
)
from optimist.systems.system import Recipe, System
from optimist.task import Task

SPEED = 10.0 / 3.6
GRAVITY = 9.82
RIDER_OFFSET = 0.30  # d_CM, vertical distance of the rider's centre of mass from the bicycle's
TRAIL = 0.66  # c
HEIGHT = 0.94  # h
WHEEL_BASE = 1.11  # l
BICYCLE_MASS = 15.0  # M_c
TYRE_MASS = 1.7  # M_d
RIDER_MASS = 60.0  # M_p
TOTAL_MASS = BICYCLE_MASS + RIDER_MASS
TYRE_RADIUS = 0.34
TYRE_RATE = SPEED / TYRE_RADIUS  # sigma'
DURATION = 0.01

INERTIA = 13.0 / 3.0 * BICYCLE_MASS * HEIGHT**2 + RIDER_MASS * (HEIGHT + RIDER_OFFSET) ** 2
INERTIA_DC = TYRE_MASS * TYRE_RADIUS**2
INERTIA_DV = 1.5 * TYRE_MASS * TYRE_RADIUS**2
INERTIA_DL = 0.5 * TYRE_MASS * TYRE_RADIUS**2

MAX_ROLL = float(np.deg2rad(12.0))
MAX_HANDLEBAR = float(np.deg2rad(80.0))
FALL_REWARD = -10.0


@njit(nogil=True, cache=True)
def centrifugal(handlebar):
    """sign(th) v^2 (M_d r (1/r_f + 1/r_b) + M h / r_CM)"""
    tangent = abs(np.tan(handlebar))
    inverse_front = abs(np.sin(handlebar)) / WHEEL_BASE
    inverse_back = tangent / WHEEL_BASE
    # 1 / sqrt((l - c)^2 + (l / tan th)^2), written so that th = 0 gives 0
    inverse_mass = tangent / np.hypot((WHEEL_BASE - TRAIL) * tangent, WHEEL_BASE)
    turning = TYRE_MASS * TYRE_RADIUS * (inverse_front + inverse_back) + TOTAL_MASS * HEIGHT * inverse_mass
    return np.sign(handlebar) * SPEED**2 * turning


@njit(nogil=True, cache=True)
def step(state, control, next_state):
    """In the order of Randlov's code.  [4], [2] -> out [4]"""
    roll, roll_rate, handlebar, handlebar_rate = state[0], state[1], state[2], state[3]
    torque, displacement = control[0], control[1]
    phi = roll + np.arctan(displacement / HEIGHT)
    roll_acceleration = (
        TOTAL_MASS * HEIGHT * GRAVITY * np.sin(phi)
        - np.cos(phi) * (INERTIA_DC * TYRE_RATE * handlebar_rate + centrifugal(handlebar))
    ) / INERTIA
    handlebar_acceleration = (torque - INERTIA_DV * TYRE_RATE * roll_rate) / INERTIA_DL
    roll_rate += DURATION * roll_acceleration
    handlebar_rate += DURATION * handlebar_acceleration
    next_state[0] = roll + DURATION * roll_rate
    next_state[1] = roll_rate
    next_state[2] = clipped(handlebar + DURATION * handlebar_rate, MAX_HANDLEBAR)
    next_state[3] = handlebar_rate


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """-10 and the end on falling, otherwise -roll^2 before the step."""
    if abs(next_state[0]) > MAX_ROLL:
        return FALL_REWARD, True
    return -(state[0] ** 2), False


BOX = Box(
    [-MAX_ROLL, -2.0 * np.pi, -MAX_HANDLEBAR, -2.0 * np.pi],
    [MAX_ROLL, 2.0 * np.pi, MAX_HANDLEBAR, 2.0 * np.pi],
)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-10 on falling, otherwise -roll^2 before the step.  [n]"""
    return np.where(is_terminal(next_states), FALL_REWARD, -(states[:, 0] ** 2))


def is_terminal(states: FloatArray) -> BoolArray:
    """Fallen.  [n]"""
    fallen: BoolArray = np.abs(states[:, 0]) > MAX_ROLL
    return fallen


def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
    """From behind: how it leans, between the lines where it has fallen; from above: where it is steered."""
    torque, displacement = (0.0, 0.0) if control is None else (float(control[0]), float(control[1]))
    foot, hub = (-0.75, 0.0), (0.85, 1.15)
    lean = -float(state[0])  # to the right is positive, and with the clock
    fallen = [turned([(0.0, 0.0), (0.0, 1.9)], side * MAX_ROLL, foot) for side in (-1.0, 1.0)]
    wheel, frame, bars = (
        turned(points, lean, foot)
        for points in (
            [(0.0, 0.06), (0.0, 2.0 * TYRE_RADIUS)],
            [(0.0, 2.0 * TYRE_RADIUS), (0.0, HEIGHT)],
            [(-0.28, 0.98), (0.28, 0.98)],
        )
    )
    hip, head = turned([(0.0, HEIGHT), (3.0 * displacement, HEIGHT + 0.75)], lean, foot)
    rear = (hub[0], hub[1] - WHEEL_BASE)
    angle = -float(state[2])  # to the right, too
    front, grips = (
        turned(points, angle, hub)
        for points in ([(0.0, -TYRE_RADIUS), (0.0, TYRE_RADIUS)], [(-0.32, -0.05), (0.32, -0.05)])
    )
    arc = (0.5 * np.pi + angle, 0.5 * np.pi + angle - 0.6 * np.sign(torque))
    return [
        Line([(-1.55, 0.0), (0.05, 0.0)], 0.015, GROUND),
        *(Line(limit, 0.012, PALE) for limit in fallen),
        Line(wheel, 0.09, INK),
        Line(frame, 0.05, BODY),
        Line(bars, 0.035, INK),
        Line([hip, head], 0.16, BODY),
        Disc(head, 0.13, BODY),
        *arrow(head, (head[0] + 10.0 * displacement, head[1]), 0.03),
        Line([rear, hub], 0.06, BODY),
        Line([(rear[0], rear[1] - TYRE_RADIUS), (rear[0], rear[1] + TYRE_RADIUS)], 0.09, INK),
        Line(front, 0.09, INK),
        Line(grips, 0.05, BODY),
        *turning(hub, 0.5, arc, 0.03),
    ]


SYSTEM = System(
    name="bicycle",
    summary="balance a bicycle that is about to fall",
    task=Task(
        box=BOX,
        controls=np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -0.02], [0.0, 0.02], [0.0, 0.0]]),
        reward=reward,
        is_terminal=is_terminal,
        discount=0.98,
        optimistic_value=0.0,
    ),
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
    drawing=Drawing(shapes, (-1.6, -0.4), (1.6, 2.0), fps=50),
    recipes={"paper": Recipe(Discretisation(nodes=(20,) * 4, spacing=(1.0,) * 4, hold=1))},
    paper_best=-3.49,
    best_known=-2.05,
)
