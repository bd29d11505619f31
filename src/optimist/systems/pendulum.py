"""Inverted pendulum (Deisenroth et al. 2009): swing up with a motor too weak to push straight up.

    angle'' = (-mu rate + m g l sin(angle) + u) / (m l^2),  u held for 0.2 s (20 Runge-Kutta steps)

Angle 0 is upright. The paper prints the start (0, 0), where its reward is best; the start is hanging,
(pi, 0) (corrected). Reward -0.1 angle^2 - 0.01 rate^2 - 0.01 u^2 at the state before the step.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import clipped, wrapped
from optimist.discretisation import Discretisation
from optimist.systems.drawing import BODY, INK, PALE, Disc, Drawing, Line, Shape, turning
from optimist.systems.system import Recipe, System
from optimist.task import Task

MASS = 1.0
LENGTH = 1.0
GRAVITY = 9.81
FRICTION = 0.05
MAX_RATE = 10.0
SUBSTEP = 0.01
N_SUBSTEPS = 20


@njit(nogil=True, cache=True)
def acceleration(angle, rate, torque, friction):
    """Angular acceleration."""
    return (-friction * rate + MASS * GRAVITY * LENGTH * np.sin(angle) + torque) / (MASS * LENGTH**2)


@njit(nogil=True, cache=True)
def advance(state, torque, friction, next_state):
    """The classical Runge-Kutta method of fourth order.  [2] -> out [2]"""
    angle, rate = state[0], state[1]
    half = 0.5 * SUBSTEP
    for _ in range(N_SUBSTEPS):
        a1, r1 = rate, acceleration(angle, rate, torque, friction)
        a2, r2 = rate + half * r1, acceleration(angle + half * a1, rate + half * r1, torque, friction)
        a3, r3 = rate + half * r2, acceleration(angle + half * a2, rate + half * r2, torque, friction)
        a4 = rate + SUBSTEP * r3
        r4 = acceleration(angle + SUBSTEP * a3, a4, torque, friction)
        angle += SUBSTEP / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        rate += SUBSTEP / 6.0 * (r1 + 2.0 * r2 + 2.0 * r3 + r4)
    next_state[0] = wrapped(angle, -np.pi, np.pi)
    next_state[1] = clipped(rate, MAX_RATE)


@njit(nogil=True, cache=True)
def step(state, control, next_state):
    """[2], [1] -> out [2]"""
    advance(state, control[0], FRICTION, next_state)


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """Distance from upright, speed and effort, before the step; there is no end."""
    angle = wrapped(state[0], -np.pi, np.pi)
    return -(0.1 * angle**2 + 0.01 * state[1] ** 2 + 0.01 * control[0] ** 2), False


BOX = Box([-np.pi, -MAX_RATE], [np.pi, MAX_RATE], periodic=[True, False])


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Distance from upright, speed and effort, before the step.  [n]"""
    angle = BOX.wrap(states)[:, 0]
    cost: FloatArray = 0.1 * angle**2 + 0.01 * states[:, 1] ** 2 + 0.01 * controls[:, 0] ** 2
    return -cost


def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
    """The rod and its mass, a mark where it shall be, the torque of the motor."""
    tip = (LENGTH * float(np.sin(state[0])), LENGTH * float(np.cos(state[0])))
    torque = 0.0 if control is None else float(control[0])
    # a positive torque turns with the clock: the angle is counted from upright to the right
    arc = (0.5 * np.pi, 0.5 * np.pi - 0.3 * torque)
    return [
        Line([(0.0, 0.0), (0.0, LENGTH)], 0.01, PALE),
        Disc((0.0, LENGTH), 0.13, PALE),
        Line([(0.0, 0.0), tip], 0.05, BODY),
        Disc(tip, 0.11, BODY),
        Disc((0.0, 0.0), 0.05, INK),
        *turning((0.0, 0.0), 0.3, arc, 0.03),
    ]


GRID = Discretisation(nodes=(100, 100), spacing=(1.0, 1.0), hold=1)

SYSTEM = System(
    name="pendulum",
    summary="swing up and balance an underactuated pendulum",
    task=Task(
        box=BOX,
        controls=np.array([-5.0, -2.5, 0.0, 2.5, 5.0]),
        reward=reward,
        discount=0.99,
        optimistic_value=0.0,
    ),
    step=step,
    outcome=outcome,
    starts=np.array([[-np.pi, 0.0]]),
    start_spread=np.array([0.1, 0.1]),
    axis_names=("angle [rad]", "rate [rad/s]"),
    drawing=Drawing(shapes, (-1.6, -1.2), (1.6, 1.2), fps=10),
    recipes={"paper": Recipe(GRID)},
    paper_best=-18.41,
    best_known=-16.51,
)
