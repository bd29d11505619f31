"""The cart-poles against plain Python, scipy's integrator, the conservation of energy and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from optimist.arrays import FloatArray
from optimist.systems.cart_pole import SYSTEM as CART_POLE
from optimist.systems.cart_pole import advance
from optimist.systems.cart_pole_rail import SYSTEM as ON_RAIL
from optimist.systems.system import System
from tests.naive.integrators import runge_kutta_4

PROPERTY = settings(deadline=None, max_examples=60)
BOTH = pytest.mark.parametrize("system", [CART_POLE, ON_RAIL], ids=["free", "rail"])
TASK = CART_POLE.task
FORCES = (-10.0, -5.0, 0.0, 5.0, 10.0)
NO_FORCE = np.array([[0.0]])
UPRIGHT = np.array([[0.0, 0.0, math.pi, 0.0]])


def flow(state: FloatArray, force: float, friction: float = 0.1) -> FloatArray:
    """The published equations, one number after the other.  [4]"""
    _, v, a, w = (float(x) for x in state)
    m = M = l = 0.5  # noqa: N806, E741
    g, s, c = 9.82, math.sin(a), math.cos(a)
    push = force - friction * v
    of_cart = (2.0 * m * l * w**2 * s + 3.0 * m * g * s * c + 4.0 * push) / (4.0 * (M + m) - 3.0 * m * c**2)
    of_angle = (-3.0 * m * l * w**2 * s * c - 6.0 * (M + m) * g * s - 6.0 * push * c) / (
        4.0 * l * (m + M) - 3.0 * m * l * c**2
    )
    return np.array([v, of_cart, w, of_angle])


def energy(states: FloatArray) -> FloatArray:
    """Cart of 0.5 kg, and a thin rod of 0.5 kg and 0.5 m that hangs from it.  [n]"""
    _, v, a, w = states.T
    across, up = v + 0.25 * w * np.cos(a), 0.25 * w * np.sin(a)  # of the middle of the rod
    moving = 0.25 * v**2 + 0.25 * (across**2 + up**2) + 0.5 * (0.5 * 0.5**2 / 12.0) * w**2
    total: FloatArray = moving - 0.5 * 9.82 * 0.25 * np.cos(a)
    return total


def random_states(count: int, *, seed: int, rate: float = 15.0) -> FloatArray:
    high = np.array([3.0, 6.0, math.pi, rate])
    return np.random.default_rng(seed).uniform(-high, high, size=(count, 4))


def missed(found: FloatArray, expected: FloatArray) -> float:
    return float(np.abs(TASK.box.displacement(expected, found)).max())


def coasted(states: FloatArray, *, friction: float) -> FloatArray:
    """Without force, with any friction.  [n, 4]"""
    next_states = np.empty_like(states)
    for state, next_state in zip(states, next_states, strict=True):
        advance(state, 0.0, friction, next_state)
    return next_states


@pytest.mark.parametrize("force", FORCES)
def test_steps_are_those_of_plain_python(force: float) -> None:
    states = random_states(40, seed=0)
    expected = [runge_kutta_4(lambda y: flow(y, force), state, 0.005, 20) for state in states]
    assert missed(CART_POLE.dynamics(states, np.array([[force]])), np.array(expected)) < 1e-11


@pytest.mark.parametrize("force", FORCES)
@pytest.mark.parametrize(("rate", "within"), [(10.0, 1e-6), (15.0, 1e-5)])
def test_steps_solve_the_differential_equation(force: float, rate: float, within: float) -> None:
    states = random_states(40, seed=1, rate=rate)
    ends = [
        solve_ivp(lambda t, y: flow(y, force), (0.0, 0.1), state, rtol=1e-11, atol=1e-12).y[:, -1]
        for state in states
    ]
    assert missed(CART_POLE.dynamics(states, np.array([[force]])), np.array(ends)) < within


def test_with_the_published_friction_the_steps_are_those_of_the_system() -> None:
    states = random_states(50, seed=2)
    np.testing.assert_array_equal(coasted(states, friction=0.1), CART_POLE.dynamics(states, NO_FORCE))


def test_the_rail_changes_no_step() -> None:
    assert ON_RAIL.step is CART_POLE.step


def test_energy_is_conserved_without_friction_and_force() -> None:
    states = random_states(50, seed=3, rate=8.0)
    before = energy(states)
    for _ in range(40):
        states = coasted(states, friction=0.0)
    np.testing.assert_allclose(energy(states), before, rtol=0.0, atol=1e-5)


def test_momentum_is_conserved_without_friction_and_force() -> None:
    def momentum(states: FloatArray) -> FloatArray:
        along: FloatArray = states[:, 1] + 0.125 * states[:, 3] * np.cos(states[:, 2])
        return along

    states = random_states(50, seed=4, rate=8.0)
    after = coasted(states, friction=0.0)
    np.testing.assert_allclose(momentum(after), momentum(states), rtol=0.0, atol=1e-6)


@PROPERTY
@given(st.floats(-6.0, 6.0), st.floats(-3.14, 3.14), st.floats(-10.0, 10.0))
def test_friction_only_takes_energy_away(speed: float, angle: float, rate: float) -> None:
    state = np.array([[0.0, speed, angle, rate]])
    assert energy(CART_POLE.dynamics(state, NO_FORCE))[0] <= energy(state)[0] + 1e-6


def test_a_small_swing_has_its_closed_frequency() -> None:
    """Without friction: angle'' = -6 (M + m) g / (l (4 M + m)) angle, and the cart swings against it."""
    frequency = math.sqrt(6.0 * 9.82 / (0.5 * 2.5))
    state = np.array([[0.0, 0.0, 1e-4, 0.0]])
    for k in range(1, 21):
        state = coasted(state, friction=0.0)
        swung = 1e-4 * math.cos(0.1 * k * frequency)
        assert state[0, 2] == pytest.approx(swung, abs=1e-9)
        assert state[0, 0] == pytest.approx(0.125 * (1e-4 - swung), abs=1e-9)


def test_upright_and_hanging_at_rest_stay_put() -> None:
    assert CART_POLE.dynamics(np.array([[1.5, 0.0, 0.0, 0.0]]), NO_FORCE).tolist() == [[1.5, 0.0, 0.0, 0.0]]
    assert missed(CART_POLE.dynamics(UPRIGHT, NO_FORCE), UPRIGHT) < 1e-14


def test_upright_is_unstable_and_hanging_is_stable() -> None:
    beside = CART_POLE.dynamics(np.array([[0.0, 0.0, math.pi - 0.1, 0.0], [0.0, 0.0, 0.1, 0.0]]), NO_FORCE)
    assert beside[0, 2] < math.pi - 0.1
    assert beside[1, 2] < 0.1


def test_the_force_ends_at_a_hundred_metres_a_second() -> None:
    state = np.zeros((1, 4))
    for _ in range(500):
        state = CART_POLE.dynamics(state, np.array([[10.0]]))
    assert 90.0 < state[0, 1] < 101.0
    assert CART_POLE.observation_box.contains(state)[0]


@PROPERTY
@given(
    st.floats(-3.0, 3.0),
    st.floats(-6.0, 6.0),
    st.floats(-3.14, 3.14),
    st.floats(-15.0, 15.0),
    st.sampled_from(FORCES),
)
def test_left_and_right_are_mirror_images(x: float, v: float, a: float, w: float, force: float) -> None:
    state, control = np.array([[x, v, a, w]]), np.array([[force]])
    mirrored = CART_POLE.dynamics(-state, -control)
    assert missed(mirrored, -CART_POLE.dynamics(state, control)) < 1e-11


@BOTH
@pytest.mark.parametrize(
    ("position", "angle", "squared"),
    [
        (0.0, math.pi, 0.0),
        (0.0, -math.pi, 0.0),
        (0.0, 0.0, 1.0),  # hanging: two lengths below
        (0.0, math.pi / 2.0, 0.5),
        (-0.5, math.pi / 2.0, 0.25),  # the tip is under the mark
        (0.5, math.pi / 2.0, 1.25),
        (0.25, math.pi, 0.0625),
    ],
)
def test_rewards_have_their_closed_form(
    system: System, position: float, angle: float, squared: float
) -> None:
    ends = np.array([[position, 1.0, angle, -2.0]])
    found = system.task.rewards(np.ones((1, 4)), np.array([[5.0]]), ends)
    assert found[0] == pytest.approx(-(1.0 - math.exp(-squared / 0.125)), abs=1e-14)


@BOTH
def test_the_reward_is_paid_for_the_state_after_the_step(system: System) -> None:
    ends, control = random_states(30, seed=5), np.array([[5.0]])
    at_rest = system.task.rewards(np.zeros((30, 4)), control, ends)
    np.testing.assert_array_equal(at_rest, system.task.rewards(random_states(30, seed=6), control, ends))


def test_without_a_rail_no_state_is_terminal() -> None:
    assert TASK.is_terminal is None


def test_the_rail_ends_the_episode_and_costs_as_much_as_hanging_through_one() -> None:
    places = np.array([-2.41, -2.4, 0.0, 2.4, 2.41])
    ends = np.column_stack([places, np.zeros((5, 3))])
    assert ON_RAIL.task.terminal(ends).tolist() == [True, False, False, False, True]
    rewards = ON_RAIL.task.rewards(np.zeros((5, 4)), NO_FORCE, ends)
    assert rewards[[0, 4]].tolist() == [-40.0, -40.0]
    np.testing.assert_array_equal(rewards[1:4], TASK.rewards(np.zeros((3, 4)), NO_FORCE, ends[1:4]))
    hanging = TASK.max_steps * TASK.rewards(np.zeros((1, 4)), NO_FORCE, np.zeros((1, 4)))[0]
    assert hanging == pytest.approx(-40.0, abs=0.02)


@BOTH
def test_constants_are_those_published(system: System) -> None:
    task = system.task
    assert task.controls[:, 0].tolist() == list(FORCES)
    assert (task.discount, task.optimistic_value, task.max_steps) == (0.98, 0.0, 40)
    assert task.box.periodic.tolist() == [False, False, True, False]
    assert system.starts.tolist() == [[0.0] * 4]
    assert system.start_spread.tolist() == [0.1] * 4
    assert (dict(system.recipes), system.paper_best, system.best_known) == ({}, None, None)


def test_the_box_reaches_beyond_the_rail() -> None:
    edges = np.array([ON_RAIL.task.box.low, ON_RAIL.task.box.high])
    assert ON_RAIL.task.terminal(edges).all()
