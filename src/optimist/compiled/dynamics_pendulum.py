"""Pendulum, one step; `optimist.systems.pendulum` has the equations."""

from __future__ import annotations

import numpy as np
from numba import float64, njit, void

from optimist.compiled.dynamics import READ_ROWS, clipped, wrapped

MASS = 1.0
LENGTH = 1.0
GRAVITY = 9.81
FRICTION = 0.05
MAX_RATE = 10.0
SUBSTEP = 0.01
N_SUBSTEPS = 20

STEP_ROWS_WITH_FRICTION = void(READ_ROWS, READ_ROWS, float64, float64[:, ::1])


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
def step_rows(states, controls, friction, next_states):
    """Every row, with any friction."""
    stride = 0 if controls.shape[0] == 1 else 1
    for k in range(states.shape[0]):
        advance(states[k], controls[k * stride, 0], friction, next_states[k])


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """Distance from upright, speed and effort, before the step; there is no end."""
    angle = wrapped(state[0], -np.pi, np.pi)
    return -(0.1 * angle**2 + 0.01 * state[1] ** 2 + 0.01 * control[0] ** 2), False
