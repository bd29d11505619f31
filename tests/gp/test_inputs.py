"""Features: scaled by what was visited, angles on the circle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.gp.inputs import Inputs

ANGLES = st.floats(-50.0, 50.0)
BOX = Box([-2.0, -np.pi, 0.0], [5.0, np.pi, 10.0], periodic=[False, True, False])


def points_in(box: Box, n: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(box.low, box.high, size=(n, box.n_dims))


def squared_distance(left: FloatArray, right: FloatArray) -> float:
    return float(((left - right) ** 2).sum())


@given(low=st.floats(-10.0, 10.0), period=st.floats(0.1, 20.0), first=ANGLES, second=ANGLES)
def test_the_squared_distance_of_two_angles_is_two_minus_two_cosines(
    low: float, period: float, first: float, second: float
) -> None:
    inputs = Inputs.spanning(Box([low], [low + period], periodic=[True]), np.empty((0, 1)))
    features = inputs.features(np.array([[first], [second]]))
    angle = 2.0 * np.pi * (first - second) / ((low + period) - low)
    expected = 2.0 * (1.0 - np.cos(angle))
    assert squared_distance(features[0], features[1]) == pytest.approx(expected, abs=1e-10)


@given(low=st.floats(-10.0, 10.0), period=st.floats(0.1, 20.0), turns=st.integers(-3, 3), where=ANGLES)
def test_a_periodic_axis_is_the_same_after_any_number_of_turns(
    low: float, period: float, turns: int, where: float
) -> None:
    box = Box([low], [low + period], periodic=[True])
    inputs = Inputs.spanning(box, np.empty((0, 1)))
    here = inputs.of_axis(0, np.array([where]))
    there = inputs.of_axis(0, np.array([where + turns * float(box.widths[0])]))
    np.testing.assert_allclose(here, there, atol=1e-10)


def test_a_periodic_axis_is_continuous_across_the_seam_and_one_that_is_not_is_not() -> None:
    points = points_in(BOX, 20, 0)
    inputs = Inputs.spanning(BOX, points)
    step = 1e-6
    for axis, continuous in enumerate(BOX.periodic):
        edges = inputs.of_axis(axis, np.array([BOX.low[axis] + step, BOX.high[axis] - step]))
        apart = np.sqrt(squared_distance(edges[0], edges[1]))
        assert apart == pytest.approx(2.0 * step, rel=1e-3) if continuous else apart > 1.0


def test_scaling_maps_the_data_onto_minus_one_to_one() -> None:
    points = points_in(BOX, 30, 1) * [0.1, 1.0, 0.5] + [1.0, 0.0, 3.0]  # a part of the box only
    features = Inputs.spanning(BOX, points).features(points)
    assert features.shape == (30, 4)
    for column in (0, 3):
        assert features[:, column].min() == pytest.approx(-1.0, abs=1e-12)
        assert features[:, column].max() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(features[:, 1] ** 2 + features[:, 2] ** 2, 1.0, atol=1e-14)


def test_without_data_the_box_itself_is_mapped_onto_minus_one_to_one() -> None:
    inputs = Inputs.spanning(BOX, np.empty((0, 3)))
    features = inputs.features(np.vstack([BOX.low, BOX.high]))
    np.testing.assert_allclose(features[:, [0, 3]], [[-1.0, -1.0], [1.0, 1.0]], atol=1e-14)


@given(value=st.floats(-2.0, 5.0), spread=st.floats(0.0, 1e-3))
def test_a_coordinate_that_hardly_varies_is_not_blown_up(value: float, spread: float) -> None:
    points = points_in(BOX, 10, 2)
    points[:, 0] = value + spread * np.linspace(-1.0, 1.0, 10)
    inputs = Inputs.spanning(BOX, points)
    assert np.abs(inputs.features(points)[:, 0]).max() <= 1.0 + 1e-12
    whole_box = inputs.of_axis(0, np.array([BOX.low[0], BOX.high[0]]))
    # a fiftieth of the box is the finest that is looked at: the whole box then spans 50 times [-1, 1]
    assert np.ptp(whole_box) <= 100.0 + 1e-9


def test_one_point_gives_finite_features() -> None:
    point = np.array([[1.0, 0.5, 2.0]])
    features = Inputs.spanning(BOX, point).features(point)
    np.testing.assert_allclose(features, [[0.0, np.cos(0.5), np.sin(0.5), 0.0]], atol=1e-14)


def test_an_interior_shift_and_stretch_of_data_and_box_changes_no_features() -> None:
    points = points_in(BOX, 15, 3)[:, [0, 2]]
    box = Box(BOX.low[[0, 2]], BOX.high[[0, 2]])
    stretched = Box(7.0 + 3.0 * box.low, 7.0 + 3.0 * box.high)
    moved = 7.0 + 3.0 * points
    np.testing.assert_allclose(
        Inputs.spanning(stretched, moved).features(moved),
        Inputs.spanning(box, points).features(points),
        atol=1e-13,
    )


def test_controls_stand_behind_and_are_divided_by_their_largest_magnitude() -> None:
    points = points_in(BOX, 6, 4)
    controls = np.array([[-5.0, 0.0, 0.02], [2.5, 0.0, 0.0], [0.0, 0.0, -0.01]])
    inputs = Inputs.spanning(BOX, points).with_controls(controls)
    assert inputs.n_axes == 6
    np.testing.assert_array_equal(inputs.axes, [0, 1, 1, 2, 3, 4, 5])
    rows = np.hstack([points[:3], controls])
    features = inputs.features(rows)
    np.testing.assert_allclose(
        features[:, 4:], [[-1.0, 0.0, 1.0], [0.5, 0.0, 0.0], [0.0, 0.0, -0.5]], atol=1e-15
    )
    np.testing.assert_array_equal(features[:, :4], Inputs.spanning(BOX, points).features(points[:3]))


def test_features_are_those_of_the_axes_side_by_side() -> None:
    points = points_in(BOX, 9, 5)
    inputs = Inputs.spanning(BOX, points)
    features, axes = inputs.features(points), inputs.axes
    np.testing.assert_array_equal(axes, [0, 1, 1, 2])
    for axis in range(inputs.n_axes):
        np.testing.assert_array_equal(features[:, axes == axis], inputs.of_axis(axis, points[:, axis]))


def test_features_of_a_point_do_not_depend_on_its_neighbours() -> None:
    points = points_in(BOX, 9, 6)
    inputs = Inputs.spanning(BOX, points)
    one_by_one = np.vstack([inputs.features(points[i : i + 1]) for i in range(9)])
    np.testing.assert_array_equal(inputs.features(points), one_by_one)
