"""Acrobot against plain Python, Gymnasium, its equations of motion and the conservation of energy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from optimist.arrays import FloatArray
from optimist.systems.acrobot import SYSTEM as ACROBOT
from optimist.systems.acrobot import accelerations

PROPERTY = settings(deadline=None, max_examples=100)
TASK = ACROBOT.task
FASTEST = (4.0 * math.pi, 9.0 * math.pi)
ANGLE = st.floats(-math.pi, math.pi)


def scalar_accelerations(t1: float, w1: float, t2: float, w2: float, torque: float) -> tuple[float, float]:
    """Sutton & Barto's equations with m = l = I = 1, l_c = 0.5, g = 9.8."""
    d1 = 0.25 + (1.0 + 0.25 + 2.0 * 0.5 * math.cos(t2)) + 1.0 + 1.0
    d2 = (0.25 + 0.5 * math.cos(t2)) + 1.0
    p2 = 0.5 * 9.8 * math.cos(t1 + t2 - math.pi / 2.0)
    p1 = (
        -0.5 * w2 * w2 * math.sin(t2)
        - 2.0 * 0.5 * w1 * w2 * math.sin(t2)
        + (0.5 + 1.0) * 9.8 * math.cos(t1 - math.pi / 2.0)
        + p2
    )
    a2 = (torque + d2 / d1 * p1 - 0.5 * w1 * w1 * math.sin(t2) - p2) / (0.25 + 1.0 - d2 * d2 / d1)
    return -(d2 * a2 + p1) / d1, a2


def tip_is_high(t1: float, t2: float) -> bool:
    return -math.cos(t1) - math.cos(t1 + t2) > 1.0


def scalar_step(state: FloatArray, torque: float, *, stop: bool = True) -> tuple[list[float], int]:
    """The next state, angles not wrapped, and how many of the four substeps were made."""
    t1, w1, t2, w2 = (float(x) for x in state)
    made = 0
    while made < 4 and not (stop and tip_is_high(t1, t2)):
        a1, a2 = scalar_accelerations(t1, w1, t2, w2, torque)
        w1 = max(-FASTEST[0], min(FASTEST[0], w1 + 0.05 * a1))
        w2 = max(-FASTEST[1], min(FASTEST[1], w2 + 0.05 * a2))
        t1, t2 = t1 + 0.05 * w1, t2 + 0.05 * w2
        made += 1
    return [t1, w1, t2, w2], made


def mechanical_energy(state: FloatArray) -> float:
    """Two links of mass 1, length 1, centre at 0.5 and inertia 1 about it; t2 is relative to t1."""
    t1, w1, t2, w2 = (float(x) for x in state)
    both = w1 + w2
    # velocities of the two centres of mass, from their positions (sin t, -cos t)
    v1x, v1y = 0.5 * w1 * math.cos(t1), 0.5 * w1 * math.sin(t1)
    v2x = w1 * math.cos(t1) + 0.5 * both * math.cos(t1 + t2)
    v2y = w1 * math.sin(t1) + 0.5 * both * math.sin(t1 + t2)
    kinetic = 0.5 * (v1x**2 + v1y**2 + v2x**2 + v2y**2) + 0.5 * (w1**2 + both**2)
    height_1 = -0.5 * math.cos(t1)
    height_2 = -math.cos(t1) - 0.5 * math.cos(t1 + t2)
    return kinetic + 9.8 * (height_1 + height_2)


def random_states(count: int, *, seed: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(TASK.box.low, TASK.box.high, size=(count, 4))


def accelerations_of(state: FloatArray, torque: float) -> tuple[float, float]:
    t1, w1, t2, w2 = (np.array([x]) for x in state)
    a1, a2 = accelerations(t1, w1, t2, w2, np.array([torque]))
    return float(a1[0]), float(a2[0])


def turned(differences: FloatArray) -> FloatArray:
    angles = np.arctan2(np.sin(differences[:, ::2]), np.cos(differences[:, ::2]))
    return np.column_stack([angles, differences[:, 1::2]])


def test_accelerations_satisfy_the_two_equations_of_motion() -> None:
    for state in random_states(200, seed=0):
        for torque in (-1.0, 0.0, 1.0):
            t1, w1, t2, w2 = (float(x) for x in state)
            a1, a2 = accelerations_of(state, torque)
            d1 = 3.5 + math.cos(t2)
            d2 = 1.25 + 0.5 * math.cos(t2)
            p2 = 4.9 * math.sin(t1 + t2)
            p1 = -0.5 * w2 * (w2 + 2.0 * w1) * math.sin(t2) + 14.7 * math.sin(t1) + p2
            assert d1 * a1 + d2 * a2 + p1 == pytest.approx(0.0, abs=1e-9)
            residual = d2 * a1 + 1.25 * a2 + 0.5 * w1**2 * math.sin(t2) + p2 - torque
            assert residual == pytest.approx(0.0, abs=1e-9)


def test_accelerations_are_those_of_gymnasium() -> None:
    theirs = AcrobotEnv()
    derivative: Callable[[FloatArray], FloatArray] = theirs._dsdt
    assert theirs.book_or_nips == "book"
    for state in random_states(100, seed=1):
        t1, w1, t2, w2 = (float(x) for x in state)
        expected = derivative(np.array([t1, t2, w1, w2, 1.0]))
        np.testing.assert_allclose(accelerations_of(state, 1.0), expected[2:4], rtol=1e-12, atol=1e-10)


def test_the_power_of_the_torque_is_what_changes_the_energy() -> None:
    for state in random_states(50, seed=2):
        for torque in (-1.0, 0.0, 1.0):
            a1, a2 = accelerations_of(state, torque)
            flow = np.array([state[1], a1, state[3], a2])
            h = 1e-6
            gain = (mechanical_energy(state + h * flow) - mechanical_energy(state - h * flow)) / (2.0 * h)
            assert gain == pytest.approx(torque * float(state[3]), abs=1e-3)


def test_energy_is_conserved_without_torque() -> None:
    def flow(time: float, state: FloatArray) -> list[float]:
        a1, a2 = accelerations_of(state, 0.0)
        return [float(state[1]), a1, float(state[3]), a2]

    for start in ([1.0, 0.0, 0.5, 0.0], [2.5, 1.0, -1.0, 2.0], [-0.3, -2.0, 2.0, 4.0]):
        path = solve_ivp(flow, (0.0, 3.0), start, rtol=1e-10, atol=1e-10).y.T
        energies = [mechanical_energy(state) for state in path]
        np.testing.assert_allclose(energies, energies[0], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("torque", [-1.0, 1.0])
def test_steps_are_those_of_plain_python(torque: float) -> None:
    states = random_states(300, seed=3)
    states[:150, 1::2] *= 0.2
    expected = np.array([scalar_step(state, torque)[0] for state in states])
    found = ACROBOT.dynamics(states, np.array([[torque]]))
    assert np.abs(turned(found - expected)).max() < 1e-9


def test_substeps_stop_at_the_goal() -> None:
    states = random_states(2000, seed=4)
    states[:, 1::2] *= 0.3
    found = ACROBOT.dynamics(states, np.array([[1.0]]))
    stopped = []
    for state, successor in zip(states, found, strict=True):
        reached, made = scalar_step(state, 1.0)
        if 0 < made < 4:
            assert np.abs(turned(np.array([successor - reached]))).max() < 1e-9
            assert TASK.terminal(successor[np.newaxis])[0]
            onward, _ = scalar_step(state, 1.0, stop=False)
            stopped.append(np.abs(np.subtract(onward, reached)).max())
    assert len(stopped) > 50
    assert min(stopped) > 1e-4  # going on would have led elsewhere


@PROPERTY
@given(ANGLE, st.floats(-FASTEST[0], FASTEST[0]), ANGLE, st.floats(-FASTEST[1], FASTEST[1]))
def test_velocities_are_bounded_and_angles_wrapped(t1: float, w1: float, t2: float, w2: float) -> None:
    successors = ACROBOT.dynamics(np.array([[t1, w1, t2, w2]] * 2), TASK.controls)
    assert (np.abs(successors[:, 1]) <= FASTEST[0]).all()
    assert (np.abs(successors[:, 3]) <= FASTEST[1]).all()
    assert ((successors[:, ::2] >= -math.pi) & (successors[:, ::2] < math.pi)).all()


@PROPERTY
@given(ANGLE, st.floats(-5.0, 5.0), ANGLE, st.floats(-5.0, 5.0))
def test_left_and_right_are_mirror_images(t1: float, w1: float, t2: float, w2: float) -> None:
    state = np.array([[t1, w1, t2, w2]])
    height = -math.cos(t1) - math.cos(t1 + t2)
    if abs(height - 1.0) < 1e-9:
        return
    sum_of_both = ACROBOT.dynamics(state, np.array([[1.0]])) + ACROBOT.dynamics(-state, np.array([[-1.0]]))
    assert np.abs(turned(sum_of_both)).max() < 1e-9


def test_hanging_at_rest_without_torque_stays_put() -> None:
    assert ACROBOT.dynamics(np.zeros((1, 4)), np.array([[0.0]])).tolist() == [[0.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("t1", "t2", "high"),
    [
        (0.0, 0.0, False),
        (math.pi, 0.0, True),
        (math.pi, math.pi, False),  # folded: the tip is back at the joint
        (math.pi / 2.0, math.pi / 2.0 - 0.01, False),  # height just below 1
        (math.pi / 2.0 + 0.01, math.pi / 2.0, True),
        (-math.pi / 2.0 - 0.01, -math.pi / 2.0, True),
        (math.pi / 2.0, 0.0, False),
    ],
)
def test_the_goal_is_a_tip_one_link_above_the_joint(t1: float, t2: float, high: bool) -> None:
    assert TASK.terminal(np.array([[t1, 3.0, t2, -3.0]])).tolist() == [high]


def test_every_step_costs_one_the_last_included() -> None:
    states = random_states(20, seed=5)
    next_states = ACROBOT.dynamics(states, np.array([[1.0]]))
    next_states[0] = [math.pi - 0.01, 0.0, 0.0, 0.0]
    assert TASK.rewards(states, np.array([[1.0]]), next_states).tolist() == [-1.0] * 20


def test_the_start_is_hanging_at_rest() -> None:
    assert ACROBOT.starts.tolist() == [[0.0, 0.0, 0.0, 0.0]]
