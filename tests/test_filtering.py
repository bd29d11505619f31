"""A filter against the textbook's, and against the variance that the Riccati equation says."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_discrete_are

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.filtering import Around, Filter

SLOPE = np.array([[1.0, 0.1], [-0.3, 0.95]])
PUSH = np.array([[0.0], [0.1]])
READING, MOTION = np.array([0.04, 0.02]), np.array([0.001, 0.003])
BOX = Box([-50.0, -50.0], [50.0, 50.0])


def linear(states: FloatArray, controls: FloatArray) -> Around:
    slopes = np.broadcast_to(SLOPE, (len(states), 2, 2))
    return Around(states @ SLOPE.T + controls @ PUSH.T, slopes, np.zeros_like(states))


FILTER = Filter(BOX, linear, READING, MOTION)


def lived(count: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States, readings, controls."""
    stream = np.random.default_rng(seed)
    states, controls = [stream.standard_normal(2)], stream.uniform(-1.0, 1.0, (count, 1))
    for control in controls:
        states.append(SLOPE @ states[-1] + PUSH @ control + np.sqrt(MOTION) * stream.standard_normal(2))
    true = np.array(states)
    return true, true + np.sqrt(READING) * stream.standard_normal(true.shape), controls


def test_it_is_the_textbook_filter() -> None:
    _, readings, controls = lived(60, 0)
    belief = FILTER.begin(readings[:1])
    mean, spread = readings[0], np.diag(READING)
    for reading, control in zip(readings[1:], controls, strict=True):
        belief = FILTER.go_on(belief, control[np.newaxis], reading[np.newaxis])
        mean, spread = SLOPE @ mean + PUSH @ control, SLOPE @ spread @ SLOPE.T + np.diag(MOTION)
        gain = spread @ np.linalg.inv(spread + np.diag(READING))
        mean, spread = mean + gain @ (reading - mean), (np.eye(2) - gain) @ spread
        np.testing.assert_allclose(FILTER.states(belief)[0], mean, atol=1e-10)
        np.testing.assert_allclose(belief.spread[0], spread, atol=1e-12)
    before = solve_discrete_are(SLOPE.T, np.eye(2), np.diag(MOTION), np.diag(READING))
    after = before - before @ np.linalg.inv(before + np.diag(READING)) @ before
    np.testing.assert_allclose(belief.spread[0], after, rtol=1e-6)


def test_it_is_nearer_to_the_truth_than_readings_by_what_it_says() -> None:
    errors: list[FloatArray] = []
    for seed in range(30):
        true, readings, controls = lived(80, seed)
        belief = FILTER.begin(readings[:1])
        for control, reading in zip(controls, readings[1:], strict=True):
            belief = FILTER.go_on(belief, control[np.newaxis], reading[np.newaxis])
            errors.append(FILTER.states(belief)[0] - true[len(errors) % 80 + 1])
    found = np.mean(np.square(errors), axis=0)
    assert (found < 0.5 * READING).all()
    np.testing.assert_allclose(found, np.diag(belief.spread[0]), rtol=0.25)


def test_many_at_a_time_are_the_same_as_one_at_a_time() -> None:
    _, readings, controls = lived(3, 1)
    three = FILTER.go_on(FILTER.begin(readings[:3]), controls, readings[1:])
    for row in range(3):
        one = FILTER.go_on(
            FILTER.begin(readings[row : row + 1]), controls[row : row + 1], readings[row + 1 : row + 2]
        )
        np.testing.assert_allclose(FILTER.states(one)[0], FILTER.states(three)[row], rtol=1e-12)


def test_what_no_noise_explains_begins_anew() -> None:
    belief = FILTER.begin(np.zeros((2, 2)))
    readings = np.array([[0.1, 0.0], [9.0, 0.0]])
    after = FILTER.go_on(belief, np.zeros((2, 1)), readings)
    assert after.off[0].any()
    np.testing.assert_array_equal(FILTER.states(after)[1], readings[1])
    np.testing.assert_array_equal(after.spread[1], np.diag(READING))


def test_angles_go_the_short_way_round() -> None:
    box = Box([-np.pi, -50.0], [np.pi, 50.0], [True, False])

    def turned(states: FloatArray, controls: FloatArray) -> Around:
        return Around(box.wrap(states), np.broadcast_to(np.eye(2), (1, 2, 2)), np.zeros_like(states))

    turning = Filter(box, turned, READING, MOTION)
    belief = turning.go_on(
        turning.begin(np.array([[3.1, 0.0]])), np.zeros((1, 1)), np.array([[3.3 - 2 * np.pi, 0.0]])
    )
    angle = turning.states(belief)[0, 0] % (2 * np.pi)
    assert 3.1 < angle < 3.3


def test_what_the_step_does_not_know_is_left_to_the_reading() -> None:
    def unknown(states: FloatArray, controls: FloatArray) -> Around:
        return linear(states, controls)._replace(unsure=np.full(states.shape, 1e6))

    blind = Filter(BOX, unknown, READING, MOTION)
    reading = np.array([[0.3, -0.1]])
    belief = blind.go_on(blind.begin(np.zeros((1, 2))), np.zeros((1, 1)), reading)
    np.testing.assert_allclose(blind.states(belief), reading, atol=1e-6)
