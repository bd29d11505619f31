"""Pendulum against plain Python, scipy's integrator and the conservation of energy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from optimist.arrays import FloatArray
from optimist.systems.pendulum import SYSTEM as PENDULUM
from optimist.systems.pendulum import advance
from tests.naive.integrators import runge_kutta_4

PROPERTY = settings(deadline=None, max_examples=60)
TASK = PENDULUM.task
TORQUES = (-5.0, -2.5, 0.0, 2.5, 5.0)
NO_TORQUE = np.array([[0.0]])


def scalar_acceleration(angle: float, rate: float, torque: float) -> float:
    return -0.05 * rate + 9.81 * math.sin(angle) + torque


def scalar_step(angle: float, rate: float, torque: float) -> tuple[float, float]:
    """Twenty classical Runge-Kutta steps of 0.01 s."""
    h = 0.01
    for _ in range(20):
        a1, b1 = rate, scalar_acceleration(angle, rate, torque)
        a2 = rate + h / 2.0 * b1
        b2 = scalar_acceleration(angle + h / 2.0 * a1, a2, torque)
        a3 = rate + h / 2.0 * b2
        b3 = scalar_acceleration(angle + h / 2.0 * a2, a3, torque)
        a4 = rate + h * b3
        b4 = scalar_acceleration(angle + h * a3, a4, torque)
        angle += h * (a1 + 2.0 * a2 + 2.0 * a3 + a4) / 6.0
        rate += h * (b1 + 2.0 * b2 + 2.0 * b3 + b4) / 6.0
    return angle, max(-10.0, min(10.0, rate))


def random_states(count: int, *, seed: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(TASK.box.low, TASK.box.high, size=(count, 2))


def turned(differences: FloatArray) -> FloatArray:
    """Differences of states with the angle's taken modulo a turn."""
    angle = np.arctan2(np.sin(differences[:, 0]), np.cos(differences[:, 0]))
    return np.column_stack([angle, differences[:, 1]])


def energy(states: FloatArray) -> FloatArray:
    total: FloatArray = 0.5 * states[:, 1] ** 2 + 9.81 * np.cos(states[:, 0])
    return total


@pytest.mark.parametrize("torque", TORQUES)
def test_steps_are_those_of_plain_python(torque: float) -> None:
    states = random_states(100, seed=0)
    expected = np.array([scalar_step(float(angle), float(rate), torque) for angle, rate in states])
    found = PENDULUM.dynamics(states, np.array([[torque]]))
    assert np.abs(turned(found - expected)).max() < 1e-12


@pytest.mark.parametrize("torque", TORQUES)
def test_steps_solve_the_differential_equation(torque: float) -> None:
    states = random_states(25, seed=1)

    def derivative(time: float, state: FloatArray) -> list[float]:
        return [state[1], scalar_acceleration(state[0], state[1], torque)]

    ends = np.array(
        [solve_ivp(derivative, (0.0, 0.2), state, rtol=1e-10, atol=1e-12).y[:, -1] for state in states]
    )
    ends[:, 1] = np.clip(ends[:, 1], -10.0, 10.0)
    found = PENDULUM.dynamics(states, np.array([[torque]]))
    assert np.abs(turned(found - ends)).max() < 1e-6


def swung(states: FloatArray, *, friction: float) -> FloatArray:
    """Without torque, with any friction."""
    next_states = np.empty_like(states)
    for state, next_state in zip(states, next_states, strict=True):
        advance(state, 0.0, friction, next_state)
    return next_states


def test_with_the_papers_friction_the_steps_are_those_of_the_system() -> None:
    states = random_states(50, seed=7)
    np.testing.assert_array_equal(swung(states, friction=0.05), PENDULUM.dynamics(states, NO_TORQUE))


def test_energy_is_conserved_without_friction_and_torque() -> None:
    stream = np.random.default_rng(2)
    # at most 5 rad/s at the top becomes 8.1 at the bottom: the limit of 10 is never met
    states = stream.uniform([-np.pi, -5.0], [np.pi, 5.0], size=(50, 2))
    before = energy(states)
    for _ in range(50):
        states = swung(states, friction=0.0)
    assert np.abs(states[:, 1]).max() < 9.0
    np.testing.assert_allclose(energy(states), before, rtol=0.0, atol=1e-4)


@PROPERTY
@given(st.floats(-3.14, 3.14), st.floats(-5.0, 5.0))
def test_friction_only_takes_energy_away(angle: float, rate: float) -> None:
    state = np.array([[angle, rate]])
    assert energy(PENDULUM.dynamics(state, NO_TORQUE))[0] <= energy(state)[0] + 1e-6


@PROPERTY
@given(st.floats(-3.14, 3.14), st.floats(-10.0, 10.0), st.sampled_from(TORQUES))
def test_left_and_right_are_mirror_images(angle: float, rate: float, torque: float) -> None:
    state, control = np.array([[angle, rate]]), np.array([[torque]])
    mirrored = PENDULUM.dynamics(-state, -control)
    assert np.abs(turned(mirrored + PENDULUM.dynamics(state, control))).max() < 1e-12


def test_upright_and_hanging_at_rest_stay_put() -> None:
    assert PENDULUM.dynamics(np.zeros((1, 2)), NO_TORQUE).tolist() == [[0.0, 0.0]]
    hanging = np.array([[-np.pi, 0.0]])
    assert np.abs(turned(PENDULUM.dynamics(hanging, NO_TORQUE) - hanging)).max() < 1e-12


def test_upright_is_unstable_and_hanging_is_stable() -> None:
    beside = PENDULUM.dynamics(np.array([[0.1, 0.0], [np.pi - 0.1, 0.0]]), NO_TORQUE)
    assert beside[0, 0] > 0.1
    assert beside[1, 0] > np.pi - 0.1


def test_the_motor_is_too_weak_to_push_straight_up() -> None:
    state = np.array([[-np.pi, 0.0]])
    for _ in range(200):
        state = PENDULUM.dynamics(state, np.array([[5.0]]))
        assert abs(state[0, 0]) > 1.0


def test_the_rate_is_bounded_and_the_angle_wrapped() -> None:
    fast = PENDULUM.dynamics(np.array([[1.5, 10.0], [-1.5, -10.0]]), np.array([[5.0], [-5.0]]))
    assert fast[:, 1].tolist() == [10.0, -10.0]
    wrapped = PENDULUM.dynamics(np.array([[3.0, 5.0]]), NO_TORQUE)
    assert -np.pi <= wrapped[0, 0] < -1.0


@pytest.mark.parametrize(
    ("angle", "rate", "torque", "expected"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (2.0, 0.0, 0.0, -0.4),
        (0.0, 10.0, 0.0, -1.0),
        (0.0, 0.0, -5.0, -0.25),
        (-1.0, 2.0, 2.5, -0.1 - 0.04 - 0.0625),
        (math.pi, 0.0, 0.0, -0.1 * math.pi**2),
        (-math.pi, 0.0, 0.0, -0.1 * math.pi**2),
    ],
)
def test_rewards_have_their_closed_form(angle: float, rate: float, torque: float, expected: float) -> None:
    found = TASK.rewards(np.array([[angle, rate]]), np.array([[torque]]), np.array([[0.5, 0.5]]))
    assert found[0] == pytest.approx(expected, abs=1e-15)


def test_the_reward_is_paid_for_the_state_before_the_step() -> None:
    states = random_states(30, seed=4)
    control = np.array([[2.5]])
    at_rest = TASK.rewards(states, control, np.zeros((30, 2)))
    elsewhere = TASK.rewards(states, control, random_states(30, seed=5))
    np.testing.assert_array_equal(at_rest, elsewhere)


def test_no_state_is_terminal() -> None:
    assert not TASK.terminal(random_states(100, seed=6)).any()
    assert not TASK.terminal(np.zeros((1, 2))).any()


def test_the_start_is_hanging_at_rest() -> None:
    assert PENDULUM.starts.shape == (1, 2)
    assert abs(PENDULUM.starts[0, 0]) == pytest.approx(math.pi)
    assert PENDULUM.starts[0, 1] == 0.0


@PROPERTY
@given(st.floats(-3.0, 1.0), st.floats(0.01, 0.5), st.integers(1, 10))
def test_runge_kutta_on_a_linear_equation_is_taylors_polynomial(
    slope: float, step: float, n_steps: int
) -> None:
    z = slope * step
    expected = 2.0 * (1.0 + z + z**2 / 2.0 + z**3 / 6.0 + z**4 / 24.0) ** n_steps
    found = runge_kutta_4(lambda y: slope * y, np.array([2.0]), step, n_steps)
    assert found[0] == pytest.approx(expected, rel=1e-12)


def test_runge_kutta_has_order_four() -> None:
    def circle(y: FloatArray) -> FloatArray:
        return np.array([y[1], -y[0]])

    exact = np.array([math.cos(1.0), -math.sin(1.0)])
    errors = [np.abs(runge_kutta_4(circle, np.array([1.0, 0.0]), 1.0 / n, n) - exact).max() for n in (10, 20)]
    assert 14.0 < errors[0] / errors[1] < 18.0
