"""Bicycle against plain Python and its left-right symmetry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.systems.bicycle import SYSTEM as BICYCLE

PROPERTY = settings(deadline=None, max_examples=100)
TASK = BICYCLE.task
CONTROLS = ((-2.0, 0.0), (2.0, 0.0), (0.0, -0.02), (0.0, 0.02), (0.0, 0.0))
MIRRORED = (1, 0, 3, 2, 4)  # the action of the opposite control
FALL = math.radians(12.0)
HARD_LEFT = math.radians(80.0)


def scalar_step(
    roll: float, roll_rate: float, bar: float, bar_rate: float, torque: float, lean: float
) -> tuple[float, float, float, float]:
    speed, gravity, rider, trail, height, base = 10.0 / 3.6, 9.82, 0.30, 0.66, 0.94, 1.11
    bicycle, tyre, person, radius, dt = 15.0, 1.7, 60.0, 0.34, 0.01
    mass = bicycle + person
    sigma = speed / radius
    inertia = 13.0 / 3.0 * bicycle * height * height + person * (height + rider) * (height + rider)
    inertia_dc = tyre * radius * radius
    inertia_dv = 3.0 / 2.0 * tyre * radius * radius
    inertia_dl = 1.0 / 2.0 * tyre * radius * radius

    phi = roll + math.atan(lean / height)
    if bar == 0.0:
        front = back = middle = sign = 0.0
    else:
        front = abs(math.sin(bar)) / base
        back = abs(math.tan(bar)) / base
        middle = 1.0 / math.sqrt((base - trail) ** 2 + (base / math.tan(bar)) ** 2)
        sign = math.copysign(1.0, bar)
    pull = sign * speed * speed * (tyre * radius * (front + back) + mass * height * middle)
    roll_acceleration = (
        mass * height * gravity * math.sin(phi) - math.cos(phi) * (inertia_dc * sigma * bar_rate + pull)
    ) / inertia
    bar_acceleration = (torque - inertia_dv * sigma * roll_rate) / inertia_dl

    roll_rate += dt * roll_acceleration
    roll += dt * roll_rate
    bar_rate += dt * bar_acceleration
    bar += dt * bar_rate
    limit = 80.0 / 180.0 * math.pi
    return roll, roll_rate, max(-limit, min(limit, bar)), bar_rate


def random_states(count: int, *, seed: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(TASK.box.low, TASK.box.high, size=(count, 4))


@pytest.mark.parametrize("control", CONTROLS)
def test_steps_are_those_of_plain_python(control: tuple[float, float]) -> None:
    torque, lean = control
    states = random_states(200, seed=0)
    states[:50, 2] *= 1e-3  # riding nearly straight on
    states[50:60, 2] = 0.0
    expected = [
        scalar_step(roll, roll_rate, bar, bar_rate, torque, lean)
        for roll, roll_rate, bar, bar_rate in states.tolist()
    ]
    np.testing.assert_allclose(
        BICYCLE.dynamics(states, np.array([control])), expected, rtol=1e-12, atol=1e-13
    )


@PROPERTY
@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4), st.integers(0, 4))
def test_left_and_right_are_mirror_images(unit: list[float], action: int) -> None:
    state = np.array([unit]) * TASK.box.high
    ahead = BICYCLE.dynamics(state, TASK.controls[[action]])
    mirrored = BICYCLE.dynamics(-state, TASK.controls[[MIRRORED[action]]])
    np.testing.assert_allclose(mirrored, -ahead, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(TASK.controls[MIRRORED[action]], -TASK.controls[action])


def test_rewards_and_falls_are_the_same_left_and_right() -> None:
    states = random_states(100, seed=1)
    next_states = BICYCLE.dynamics(states, TASK.controls[[0]])
    np.testing.assert_array_equal(TASK.terminal(next_states), TASK.terminal(-next_states))
    np.testing.assert_array_equal(
        TASK.rewards(states, TASK.controls[[0]], next_states),
        TASK.rewards(-states, TASK.controls[[1]], -next_states),
    )


def test_riding_straight_and_upright_stays_so() -> None:
    state = np.zeros((1, 4))
    for _ in range(100):
        state = BICYCLE.dynamics(state, np.array([[0.0, 0.0]]))
    assert state.tolist() == [[0.0, 0.0, 0.0, 0.0]]


def test_without_control_a_leaning_bicycle_falls_to_the_side_it_leans() -> None:
    for start in BICYCLE.starts:
        state = start[np.newaxis]
        for _ in range(100):
            state = BICYCLE.dynamics(state, np.array([[0.0, 0.0]]))
            if TASK.terminal(state)[0]:
                break
        assert TASK.terminal(state)[0]
        assert np.sign(state[0, 0]) == np.sign(start[0])


def test_the_handlebar_stops_at_80_degrees_and_keeps_its_rate() -> None:
    states = np.array([[0.0, 0.0, HARD_LEFT - 0.001, 6.0], [0.0, 0.0, -HARD_LEFT + 0.001, -6.0]])
    turned = BICYCLE.dynamics(states, np.array([[2.0, 0.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(turned[:, 2], [HARD_LEFT, -HARD_LEFT], rtol=1e-15)
    assert turned[0, 3] > 6.0
    assert turned[1, 3] < -6.0


@pytest.mark.parametrize(
    ("degrees", "fallen"), [(0.0, False), (11.99, False), (-11.99, False), (12.01, True), (-12.01, True)]
)
def test_a_bicycle_has_fallen_beyond_12_degrees(degrees: float, fallen: bool) -> None:
    assert TASK.terminal(np.array([[math.radians(degrees), 0.0, 0.0, 0.0]])).tolist() == [fallen]


def test_only_the_roll_decides_a_fall() -> None:
    states = random_states(100, seed=2)
    states[:, 0] = np.linspace(-0.99 * FALL, 0.99 * FALL, 100)
    assert not TASK.terminal(states).any()


def test_falling_costs_ten_and_riding_the_square_of_the_roll() -> None:
    states = np.array([[0.2, 0.0, 0.0, 0.0], [0.2, 1.0, 0.0, 0.0], [-0.1, 0.0, 0.3, 0.0]])
    next_states = np.array([[0.2094, 0.0, 0.0, 0.0], [0.2095, 1.0, 0.0, 0.0], [-0.2095, 0.0, 0.3, 0.0]])
    assert math.radians(12.0) == pytest.approx(0.20944, abs=1e-5)
    rewards = TASK.rewards(states, np.array([[0.0, 0.0]]), next_states)
    np.testing.assert_allclose(rewards, [-0.04, -10.0, -10.0], rtol=1e-14)


def test_the_starts_lean_ten_degrees_to_either_side() -> None:
    np.testing.assert_allclose(np.sort(BICYCLE.starts[:, 0]), [-math.pi / 18.0, math.pi / 18.0])
    assert not BICYCLE.starts[:, 1:].any()
    assert not TASK.terminal(BICYCLE.starts).any()


def test_no_ride_leaves_the_observations_before_it_falls() -> None:
    stream = np.random.default_rng(3)
    policies = stream.integers(0, 5, size=(205, 500))
    policies[:5] = np.arange(5)[:, np.newaxis]
    policies[5:105] = np.repeat(policies[5:105, ::10], 10, axis=1)  # controls held for 0.1 s
    states = BICYCLE.nearby_starts(205, seed=4)
    for actions in policies.T:
        riding = ~TASK.terminal(states)
        states[riding] = BICYCLE.dynamics(states[riding], TASK.controls[actions[riding]])
        assert BICYCLE.observation_box.contains(states).all()
