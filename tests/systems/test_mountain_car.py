"""Mountain car against plain Python and Gymnasium's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

from optimist.arrays import FloatArray
from optimist.systems.mountain_car import SYSTEM as MOUNTAIN_CAR

TASK = MOUNTAIN_CAR.task


def scalar_step(x: float, v: float, a: float) -> tuple[float, float]:
    v = v + 0.001 * a - 0.0025 * math.cos(3.0 * x)
    v = max(-0.07, min(0.07, v))
    x = x + v
    if x < -1.2:
        return -1.2, 0.0
    return min(x, 0.5), v


def random_states(count: int, *, seed: int) -> FloatArray:
    stream = np.random.default_rng(seed)
    return stream.uniform(TASK.box.low, TASK.box.high, size=(count, 2))


def step_one(x: float, v: float, a: float) -> tuple[float, float]:
    position, velocity = MOUNTAIN_CAR.dynamics(np.array([[x, v]]), np.array([[a]]))[0]
    return float(position), float(velocity)


def test_steps_are_those_of_plain_python() -> None:
    states = random_states(500, seed=0)
    for a in (-1.0, 0.0, 1.0):
        expected = [scalar_step(float(x), float(v), a) for x, v in states]
        np.testing.assert_allclose(
            MOUNTAIN_CAR.dynamics(states, np.array([[a]])), expected, rtol=0.0, atol=1e-15
        )


def test_steps_are_those_of_gymnasium_short_of_the_goal() -> None:
    theirs = MountainCarEnv()
    n_compared = 0
    for action, a in enumerate((-1.0, 0.0, 1.0)):
        for x, v in random_states(200, seed=1):
            theirs.state = (float(x), float(v))
            theirs.step(action)
            if theirs.state[0] < 0.5:
                np.testing.assert_allclose(step_one(x, v, a), theirs.state, rtol=0.0, atol=1e-15)
                n_compared += 1
    assert n_compared > 400


def test_the_left_wall_stops_the_car() -> None:
    assert step_one(-1.19, -0.05, -1.0) == (-1.2, 0.0)


def test_a_car_that_just_does_not_touch_the_wall_keeps_its_speed() -> None:
    x, v = step_one(-1.1, -0.05, 0.0)
    assert -1.2 < x < -1.1
    assert v < 0.0


def test_the_position_is_clipped_at_the_goal_and_the_speed_kept() -> None:
    x, v = step_one(0.49, 0.06, 1.0)
    assert x == 0.5
    assert v == pytest.approx(0.06 + 0.001 - 0.0025 * math.cos(1.47), abs=1e-15)


@pytest.mark.parametrize(("v", "a"), [(0.07, 1.0), (-0.07, -1.0)])
def test_the_speed_is_bounded(v: float, a: float) -> None:
    # cos 3x has the sign that speeds the car up further
    x = -1.0 if v > 0.0 else -0.2
    assert step_one(x, v, a) == pytest.approx((x + v, v), abs=1e-15)


def test_the_start_is_the_bottom_of_the_valley() -> None:
    np.testing.assert_allclose(MOUNTAIN_CAR.starts, [[-math.pi / 6.0, 0.0]])
    x, v = step_one(-math.pi / 6.0, 0.0, 0.0)
    assert x == pytest.approx(-math.pi / 6.0, abs=1e-12)
    assert v == pytest.approx(0.0, abs=1e-12)


def test_the_motor_is_too_weak_to_drive_straight_up() -> None:
    x, v = -math.pi / 6.0, 0.0
    for _ in range(500):
        x, v = step_one(x, v, 1.0)
        assert x < 0.5


def test_only_the_goal_is_terminal() -> None:
    states = np.array([[0.5, 0.0], [0.5, -0.07], [np.nextafter(0.5, 0.0), 0.07], [-1.2, 0.0]])
    assert TASK.terminal(states).tolist() == [True, True, False, False]


def test_every_step_costs_one_the_last_included() -> None:
    states = random_states(50, seed=2)
    next_states = MOUNTAIN_CAR.dynamics(states, np.array([[1.0]]))
    next_states[0] = [0.5, 0.07]
    assert TASK.rewards(states, np.array([[1.0]]), next_states).tolist() == [-1.0] * 50
