"""Mountain car, one step; `optimist.systems.mountain_car` has the equations."""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.compiled.dynamics import clipped

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
def step_rows(states, controls, next_states):
    """Every row."""
    stride = 0 if controls.shape[0] == 1 else 1
    for k in range(states.shape[0]):
        step(states[k], controls[k * stride], next_states[k])


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """-1 a step, until the top of the hill."""
    return -1.0, next_state[0] >= GOAL
