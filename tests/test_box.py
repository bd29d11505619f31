"""Box against closed forms, trigonometry and the definition of a period."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.box import Box

PROPERTY = settings(deadline=None, max_examples=100)
COORDINATE = st.floats(-1000.0, 1000.0)
CIRCLE = Box([-np.pi], [np.pi], periodic=[True])
CYLINDER = Box([-1.0, 0.0], [2.0, 360.0], periodic=[False, True])


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    n_dims = draw(st.integers(1, 6))
    low = [draw(st.floats(-10.0, 10.0)) for _ in range(n_dims)]
    widths = [draw(st.floats(0.1, 10.0)) for _ in range(n_dims)]
    periodic = [draw(st.booleans()) for _ in range(n_dims)]
    return Box(low, np.add(low, widths), periodic=periodic)


@st.composite
def boxes_with_points(draw: st.DrawFn, n_points: int = 2) -> tuple[Box, FloatArray]:
    box = draw(boxes())
    rows = [[draw(COORDINATE) for _ in range(box.n_dims)] for _ in range(n_points)]
    return box, np.array(rows)


def distance_to_whole_turns(box: Box, differences: FloatArray) -> FloatArray:
    """How far each difference is from a whole number of periods; on other axes, from zero."""
    turns = np.where(box.periodic, np.round(differences / box.widths), 0.0)
    return np.abs(differences - turns * box.widths)


def test_sizes_and_widths_are_those_of_the_edges() -> None:
    assert CYLINDER.n_dims == 2
    assert CYLINDER.widths.tolist() == [3.0, 360.0]
    assert not Box([0.0], [1.0]).periodic.any()


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(0.0, 0.0), (359.0, 359.0), (360.0, 0.0), (-1.0, 359.0), (725.0, 5.0), (-720.0, 0.0), (180.0, 180.0)],
)
def test_wrap_brings_degrees_into_one_turn(degrees: float, expected: float) -> None:
    wrapped = CYLINDER.wrap(np.array([[0.5, degrees]]))
    assert wrapped.tolist() == [[0.5, expected]]


def test_wrap_leaves_other_axes_alone() -> None:
    assert CYLINDER.wrap(np.array([[-77.0, 10.0], [77.0, 10.0]]))[:, 0].tolist() == [-77.0, 77.0]


def test_wrap_agrees_with_the_angle_of_sine_and_cosine() -> None:
    angles = np.linspace(-50.0, 50.0, 1001)[:, np.newaxis]
    expected = np.arctan2(np.sin(angles), np.cos(angles))
    np.testing.assert_allclose(CIRCLE.wrap(angles), expected, atol=1e-12)


@pytest.mark.parametrize("tiny", [-5e-324, -1e-300, -1e-17, -1e-16])
def test_wrap_never_rounds_up_to_the_upper_edge(tiny: float) -> None:
    for low in (0.0, 1.0, -np.pi):
        box = Box([low], [low + 2.0 * np.pi], periodic=[True])
        wrapped = box.wrap(np.array([[low + tiny]]))[0, 0]
        assert low <= wrapped < box.high[0]


def test_wrap_takes_a_single_point() -> None:
    point = np.array([0.5, 370.0])
    assert CYLINDER.wrap(point).tolist() == [0.5, 10.0]
    assert point.tolist() == [0.5, 370.0]


@PROPERTY
@given(boxes_with_points())
def test_wrap_is_idempotent_and_lands_in_the_half_open_box(given_: tuple[Box, FloatArray]) -> None:
    box, points = given_
    wrapped = box.wrap(points)
    np.testing.assert_array_equal(box.wrap(wrapped), wrapped)
    turned = wrapped[:, box.periodic]
    assert (turned >= box.low[box.periodic]).all()
    assert (turned < box.high[box.periodic]).all()


@PROPERTY
@given(boxes_with_points())
def test_wrap_moves_by_whole_periods(given_: tuple[Box, FloatArray]) -> None:
    box, points = given_
    assert distance_to_whole_turns(box, box.wrap(points) - points).max() < 1e-9


def test_clip_is_closed_form_on_both_kinds_of_axis() -> None:
    points = np.array([[-3.0, -10.0], [0.5, 10.0], [9.0, 361.0]])
    assert CYLINDER.clip(points).tolist() == [[-1.0, 350.0], [0.5, 10.0], [2.0, 1.0]]


@PROPERTY
@given(boxes_with_points(n_points=3))
def test_clip_gives_the_nearest_point_of_the_box(given_: tuple[Box, FloatArray]) -> None:
    box, points = given_
    clipped = box.clip(points)
    assert box.contains(clipped).all()
    for point, nearest in zip(points, clipped, strict=True):
        for q in np.flatnonzero(~box.periodic):
            low, high, x = float(box.low[q]), float(box.high[q]), float(point[q])
            assert nearest[q] == (low if x < low else high if x > high else x)


def test_clip_keeps_points_of_the_box() -> None:
    box = Box([-1.0, -2.0], [1.0, 2.0])
    points = np.array([[-1.0, -2.0], [1.0, 2.0], [0.3, -0.7]])
    np.testing.assert_array_equal(box.clip(points), points)


def test_contains_counts_the_edges_in_and_ignores_periodic_axes() -> None:
    points = np.array([[-1.0, 0.0], [2.0, 360.0], [0.0, 1e6], [-1.0001, 0.0], [2.0001, 0.0]])
    assert CYLINDER.contains(points).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_contains_is_false_where_a_coordinate_is_not_finite(bad: float) -> None:
    assert CYLINDER.contains(np.array([[bad, 0.0], [0.0, bad]])).tolist() == [False, False]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (10.0, 20.0, 10.0),
        (350.0, 10.0, 20.0),
        (10.0, 350.0, -20.0),
        (0.0, 179.0, 179.0),
        (0.0, 181.0, -179.0),
        (0.0, 180.0, -180.0),
        (5.0, 5.0 + 720.0, 0.0),
    ],
)
def test_displacement_takes_the_short_way_round(start: float, end: float, expected: float) -> None:
    moved = CYLINDER.displacement(np.array([[0.0, start]]), np.array([[1.5, end]]))
    assert moved.tolist() == [[1.5, expected]]


def test_displacement_of_angles_is_the_angle_of_their_difference() -> None:
    stream = np.random.default_rng(0)
    first, second = stream.uniform(-20.0, 20.0, size=(2, 500, 1))
    expected = np.arctan2(np.sin(second - first), np.cos(second - first))
    np.testing.assert_allclose(CIRCLE.displacement(first, second), expected, atol=1e-12)


def test_displacement_takes_the_long_way_on_an_axis_that_is_not_periodic() -> None:
    line = Box([-np.pi], [np.pi])
    assert line.displacement(np.array([[3.0]]), np.array([[-3.0]])).tolist() == [[-6.0]]
    assert CIRCLE.displacement(np.array([3.0]), np.array([-3.0]))[0] == pytest.approx(2.0 * math.pi - 6.0)


@PROPERTY
@given(boxes_with_points())
def test_state_plus_displacement_is_the_next_state(given_: tuple[Box, FloatArray]) -> None:
    box, (state, next_state) = given_[0], given_[1]
    moved = box.displacement(state, next_state)
    assert distance_to_whole_turns(box, state + moved - next_state).max() < 1e-9


@PROPERTY
@given(boxes_with_points())
def test_displacement_is_antisymmetric_up_to_a_period(given_: tuple[Box, FloatArray]) -> None:
    box, (state, next_state) = given_[0], given_[1]
    total = box.displacement(state, next_state) + box.displacement(next_state, state)
    assert distance_to_whole_turns(box, total).max() < 1e-9


@PROPERTY
@given(boxes_with_points())
def test_displacement_is_at_most_half_a_period(given_: tuple[Box, FloatArray]) -> None:
    box, (state, next_state) = given_[0], given_[1]
    moved = box.displacement(state, next_state)
    assert (np.abs(moved) <= 0.5 * box.widths + 1e-9)[box.periodic].all()


def test_equal_boxes_have_equal_hashes() -> None:
    again = Box([-1.0, 0.0], [2.0, 360.0], periodic=[False, True])
    assert again == CYLINDER
    assert hash(again) == hash(CYLINDER)
    assert Box([-1.0, 0.0], [2.0, 360.0]) != CYLINDER
    assert Box([-1.0, 0.0], [2.0, 361.0], periodic=[False, True]) != CYLINDER
    assert CYLINDER != "a cylinder"


def test_a_box_cannot_be_changed() -> None:
    low = np.array([0.0])
    box = Box(low, [1.0])
    low[0] = -7.0
    assert box.low[0] == 0.0
    for values in (box.low, box.high, box.periodic):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


@pytest.mark.parametrize(
    ("low", "high", "periodic"),
    [
        ([], [], None),
        ([0.0] * 7, [1.0] * 7, None),
        ([[0.0]], [[1.0]], None),
        (0.0, 1.0, None),
        ([0.0, 0.0], [1.0], None),
        ([0.0], [0.0], None),
        ([1.0], [0.0], None),
        ([np.nan], [1.0], None),
        ([0.0], [np.nan], None),
        ([-np.inf], [1.0], None),
        ([0.0], [np.inf], None),
        ([0.0, 0.0], [1.0, 1.0], [True]),
        ([0.0], [1.0], [True, False]),
        ([0.0], [1.0], [[True]]),
    ],
)
def test_a_bad_box_is_refused_with_what_was_given(low: Any, high: Any, periodic: Any) -> None:
    with pytest.raises(ValueError, match=r"must .*; got "):
        Box(low, high, periodic=periodic)


def test_a_narrowed_box_keeps_angles_whole_and_never_grows() -> None:
    box = Box([-1.0, -np.pi, 0.5], [4.0, np.pi, 3.0], periodic=[False, True, False])
    narrowed = box.narrowed([2.0, 1.0, 9.0])
    assert narrowed == Box([-1.0, -np.pi, 0.5], [2.0, np.pi, 3.0], periodic=[False, True, False])
    with pytest.raises(ValueError, match=r"`limits` must leave some of the box; got \[2\.0, 1\.0, 0\.5\]"):
        box.narrowed([2.0, 1.0, 0.5])


def test_noise_moves_what_no_edge_holds_and_nothing_leaves() -> None:
    box = Box([0.0, 0.0, -1.0], [1.0, 1.0, 1.0], [False, False, True])
    points = np.array([[0.5, 1.0, -1.0], [0.0, 0.9, 0.5]])
    moved = box.astray(points, np.full((2, 3), 0.2))
    np.testing.assert_allclose(moved, [[0.7, 1.0, -0.8], [0.0, 1.0, 0.7]])
    np.testing.assert_allclose(box.astray(points, np.full((2, 3), -0.2))[0], [0.3, 1.0, 0.8])
