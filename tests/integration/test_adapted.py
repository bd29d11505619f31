"""An adapted task is the problem itself: a plan from the documented equations works in the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.discretisation import Discretisation
from optimist.environments.adapter import AdaptedEnvironment
from optimist.planning import plan
from tests.environments.test_adapter import cart_pole, mountain_car, pendulum

Equations = Callable[[FloatArray, FloatArray], FloatArray]


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    angle, rate = states.T
    rate = np.clip(rate + (15.0 * np.sin(angle) + 3.0 * controls[:, 0]) * 0.05, -8.0, 8.0)
    return np.column_stack([angle + 0.05 * rate, rate])


def climb(states: FloatArray, controls: FloatArray) -> FloatArray:
    position, velocity = states.T
    push = 0.001 * (controls[:, 0] - 1.0)
    velocity = np.clip(velocity + push - 0.0025 * np.cos(3.0 * position), -0.07, 0.07)
    position = np.clip(position + velocity, -1.2, 0.6)
    return np.column_stack([position, np.where((position == -1.2) & (velocity < 0.0), 0.0, velocity)])


def balance(states: FloatArray, controls: FloatArray) -> FloatArray:
    x, speed, angle, rate = states.T
    cosine, sine = np.cos(angle), np.sin(angle)
    pushed = (controls[:, 0] + 0.05 * rate**2 * sine) / 1.1
    turned = (9.8 * sine - cosine * pushed) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    moved = pushed - 0.05 * turned * cosine / 1.1
    return np.column_stack(
        [x + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * rate, rate + 0.02 * turned]
    )


def planned_return(env: AdaptedEnvironment, equations: Equations, nodes: tuple[int, ...]) -> float:
    """Total reward of the planned policy in the environment itself."""
    policy = plan(env.task, equations, Discretisation(nodes=nodes), depth=0).policy
    state, _ = env.reset(seed=0)
    total, done = 0.0, False
    while not done:
        action = int(policy.greedy(env.task.box.clip(state)[np.newaxis])[0])
        state, reward, terminated, truncated, _ = env.step(action)
        total, done = total + reward, terminated or truncated
    return total


@pytest.mark.parametrize(
    ("make", "equations", "nodes", "at_least"),
    [
        (pendulum, swing, (81, 81), -140.0),  # -127 with 101 x 101; doing nothing costs about -1500
        (mountain_car, climb, (101, 101), -115.0),  # of -200
        (cart_pole, balance, (11, 15, 15, 15), 500.0),  # of 500
    ],
)
def test_what_is_planned_for_the_task_is_good_in_the_environment(
    make: Any, equations: Equations, nodes: tuple[int, ...], at_least: float
) -> None:
    assert planned_return(make(), equations, nodes) >= at_least
