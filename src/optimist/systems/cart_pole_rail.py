"""The cart-pole on a rail of 4.8 m: as `cart_pole`, but running off the rail ends the episode.

Leaving costs 40, as much as hanging for a whole episode of 40 steps. The box reaches beyond the rail, so that
the end can be seen at its edge.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.arrays import BoolArray, FloatArray
from optimist.systems import cart_pole
from optimist.systems.cart_pole import step, tip_reward
from optimist.systems.drawing import PUSH, Drawing, Line, Shape
from optimist.systems.system import System
from optimist.task import Task

RAIL = 2.4  # m, to either side
LEAVING_REWARD = -40.0


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """-40 and the end beyond the rail, otherwise the distance of the tip from upright, after the step."""
    if abs(next_state[0]) > RAIL:
        return LEAVING_REWARD, True
    return tip_reward(next_state[0], next_state[2]), False


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """-40 beyond the rail, otherwise the distance of the tip from upright, after the step.  [n]"""
    on_rail = cart_pole.reward(states, controls, next_states)
    return np.where(is_terminal(next_states), LEAVING_REWARD, on_rail)


def is_terminal(states: FloatArray) -> BoolArray:
    """Beyond the rail.  [n]"""
    left: BoolArray = np.abs(states[:, 0]) > RAIL
    return left


def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
    """As on the ground; posts where the rail ends."""
    camera = float(state[0] - np.clip(state[0], -cart_pole.SIGHT, cart_pole.SIGHT))
    posts = [side * RAIL - camera for side in (-1.0, 1.0)]
    posts = [post for post in posts if abs(post) < 1.7]
    return [
        *cart_pole.shapes(state, control),
        *(Line([(post, -0.25), (post, 0.15)], 0.04, PUSH) for post in posts),
    ]


SYSTEM = System(
    name="cart-pole-rail",
    summary="the same on a rail that ends",
    task=Task(
        box=cart_pole.BOX,
        controls=cart_pole.FORCES,
        reward=reward,
        is_terminal=is_terminal,
        discount=0.98,
        optimistic_value=0.0,
        max_steps=40,
    ),
    step=step,
    outcome=outcome,
    observation_box=cart_pole.OBSERVATION_BOX,
    starts=cart_pole.STARTS,
    start_spread=cart_pole.START_SPREAD,
    axis_names=cart_pole.AXIS_NAMES,
    drawing=Drawing(shapes, *cart_pole.CORNERS, fps=10),
)
