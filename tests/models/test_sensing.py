"""Noise of sensors told from noise of the motion, on linear systems whose variances are known."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.models.sensing import Missed, Sensing, Slopes, pays, tell_apart
from optimist.transitions import Transitions

BOX = Box([-1e3, -1e3], [1e3, 1e3])
CONTROLS = np.array([[-1.0], [1.0]])
SLOPE = np.array([[0.9, 0.3], [-0.2, 0.8]])
PUSH = np.array([[0.0], [0.5]])
READING, MOTION = np.array([0.04, 0.01]), np.array([0.02, 0.05])  # variances
NOTHING = np.zeros(2)


class Known:
    """A model that knows the linear system exactly."""

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        return np.asarray(states @ SLOPE.T + controls @ PUSH.T)

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        return self.predict(states, controls)


def read(count: int, seed: int, reading: FloatArray, motion: FloatArray) -> Transitions:
    """What is read of it in episodes of 50 steps, one number at a time."""
    stream, rows = np.random.default_rng(seed), []
    for number in range(count):
        if number % 50 == 0:
            x = stream.standard_normal(2)
            y = x + np.sqrt(reading) * stream.standard_normal(2)
        action = int(stream.integers(2))
        x = SLOPE @ x + PUSH @ CONTROLS[action] + np.sqrt(motion) * stream.standard_normal(2)
        after = x + np.sqrt(reading) * stream.standard_normal(2)
        rows.append((y, action, after))
        y = after
    states, actions, next_states = map(np.array, zip(*rows, strict=True))
    return Transitions.stepped(states, actions, next_states)


def total(reading: FloatArray, motion: FloatArray) -> FloatArray:
    """Standard deviation of what is missed: R + A R A' + Q."""
    covariance = np.diag(reading) + SLOPE @ np.diag(reading) @ SLOPE.T + np.diag(motion)
    return np.asarray(np.sqrt(np.diag(covariance)))


def missed_of(seen: Transitions, noise: FloatArray) -> tuple[Slopes, Missed]:
    step = Slopes(Known(), BOX, noise)
    return step, Missed.of(step, seen, CONTROLS, np.ones(seen.states.shape, dtype=np.bool_))


def found(count: int, seed: int, reading: FloatArray, motion: FloatArray) -> Sensing | None:
    noise = total(reading, motion)
    return tell_apart(missed_of(read(count, seed, reading, motion), noise)[1], noise)


@pytest.mark.parametrize("seed", range(3))
def test_many_transitions_tell_both_variances(seed: int) -> None:
    both = found(40_000, seed, READING, MOTION)
    assert both is not None
    np.testing.assert_allclose(both.reading, READING, rtol=0.12)
    np.testing.assert_allclose(both.motion, MOTION, rtol=0.2)


def test_one_sensor_is_noisy_and_the_other_is_not() -> None:
    both = found(10_000, 0, np.array([0.04, 0.0]), MOTION)
    assert both is not None
    np.testing.assert_allclose(both.reading, [0.04, 0.0], rtol=0.1)
    np.testing.assert_allclose(both.motion, MOTION, rtol=0.15)


def test_sensors_alone_leave_nothing_to_the_motion() -> None:
    both = found(3000, 1, READING, NOTHING)
    assert both is not None
    np.testing.assert_allclose(both.reading, READING, rtol=0.3)
    assert (both.motion < 0.2 * READING).all()


def test_motion_alone_is_never_taken_for_sensors() -> None:
    assert [found(300, seed, NOTHING, MOTION) for seed in range(200)] == [None] * 200


def test_three_hundred_transitions_are_enough() -> None:
    assert all(found(300, seed, READING, MOTION) is not None for seed in range(20))


def test_too_few_say_nothing() -> None:
    assert found(25, 0, READING, NOTHING) is None


def test_the_slopes_are_those_of_the_system() -> None:
    _, missed = missed_of(read(40, 0, READING, MOTION), total(READING, MOTION))
    np.testing.assert_allclose(missed.around.slopes, np.broadcast_to(SLOPE, (40, 2, 2)), atol=1e-9)
    assert missed.around.unsure.max() == 0.0
    assert np.flatnonzero(~missed.follows).tolist() == [0]


def test_episodes_are_not_taken_for_one() -> None:
    _, missed = missed_of(read(120, 0, READING, MOTION), total(READING, MOTION))
    assert np.flatnonzero(~missed.follows).tolist() == [0, 50, 100]


def test_filtering_pays_where_sensors_are_noisy_and_not_where_the_motion_is() -> None:
    noise = total(READING, NOTHING)
    step, missed = missed_of(read(600, 2, READING, NOTHING), noise)
    sensing = Sensing(READING, NOTHING, np.ones(2))
    assert pays(missed, sensing.filtering(step), noise)
    step, missed = missed_of(read(600, 2, NOTHING, MOTION), np.sqrt(MOTION))
    assert not pays(missed, sensing.filtering(step), np.sqrt(MOTION))
