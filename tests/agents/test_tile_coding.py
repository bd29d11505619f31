"""Tilings: each point in one tile of each, tiles as wide as they should be, angles without a seam."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.agents.sarsa import SarsaSettings
from optimist.agents.tile_coding import TileCoding, TilingGroup
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.experiments.sarsa_settings import SETTINGS, sarsa_settings
from optimist.systems import SYSTEMS
from tests.naive.sarsa import active_tiles

PROPERTY = settings(max_examples=100)
BOX = Box([-1.0, 0.0, -math.pi], [1.0, 4.0, math.pi], periodic=[False, False, True])
GROUPS = (
    TilingGroup(axes=(0, 1, 2), intervals=(4, 3, 5), tilings=8),
    TilingGroup(axes=(2,), intervals=(6,), tilings=3),
    TilingGroup(axes=(2, 0), intervals=(2, 7), tilings=1),
)
CODING = TileCoding.of(BOX, GROUPS, offset_seed=None)


def random_points(count: int, *, seed: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(BOX.low, BOX.high, (count, 3))


def test_every_point_lies_in_exactly_one_tile_of_every_tiling() -> None:
    tiles = CODING.tiles(np.vstack([random_points(2000, seed=0), BOX.low, BOX.high]))
    assert tiles.shape == (2002, CODING.n_tilings)
    assert CODING.n_tilings == 8 + 3 + 1
    ends = np.append(CODING.firsts[1:], CODING.n_tiles)
    assert (tiles >= CODING.firsts).all()
    assert (tiles < ends).all()


def test_there_are_as_many_tiles_as_intervals_and_one_more_on_each_axis_that_does_not_wrap() -> None:
    assert CODING.n_tiles == 8 * (5 * 4 * 5) + 3 * 6 + 1 * (2 * 8)


@pytest.mark.parametrize("offset_seed", [None, 1, 2])
def test_two_points_share_a_tile_when_they_share_its_cell_and_only_then(offset_seed: int | None) -> None:
    """Places in the table and cells by their coordinates: one to one."""
    coding = TileCoding.of(BOX, GROUPS, offset_seed=offset_seed)
    points = random_points(3000, seed=1)
    choices = SarsaSettings(tilings=GROUPS, step_size=0.1)
    named: dict[object, int] = {}
    for point, tiles in zip(points, coding.tiles(points), strict=True):
        for name, tile in zip(
            active_tiles(BOX, choices, coding.shifts, tuple(point.tolist())), tiles, strict=True
        ):
            assert named.setdefault(name, int(tile)) == tile
    assert len(set(named.values())) == len(named)


@PROPERTY
@given(st.floats(-1.0, 1.0), st.floats(0.0, 4.0), st.floats(-3.1, 3.1), st.integers(-3, 3))
def test_turning_an_angle_all_the_way_round_changes_nothing(x: float, y: float, angle: float, n: int) -> None:
    point, turned = np.array([[x, y, angle]]), np.array([[x, y, angle + 2.0 * math.pi * n]])
    edges = (angle + math.pi) / (2.0 * math.pi) * np.array([5 * 8, 6 * 3, 2])
    if np.abs(edges - np.round(edges)).min() > 1e-6:  # not on an edge, where rounding decides
        assert CODING.tiles(point).tolist() == CODING.tiles(turned).tolist()


def test_there_is_no_seam_where_an_angle_wraps() -> None:
    coding = TileCoding.of(BOX, [TilingGroup(axes=(2,), intervals=(5,), tilings=8)], offset_seed=None)
    near = 1e-6
    shared = [
        (
            coding.tiles(np.array([[0.0, 0.0, a - near]])) == coding.tiles(np.array([[0.0, 0.0, a + near]]))
        ).sum()
        for a in np.linspace(-math.pi, math.pi, 41)
    ]
    # 40 edges of tiles, one of a single tiling at each of 40 places, the seam among them
    assert shared == [7] * 41


@PROPERTY
@given(st.floats(-0.99, 0.99), st.floats(0.0, 1.0))
def test_tiles_generalise_as_far_as_an_interval(x: float, part: float) -> None:
    """Of n tilings, points a fraction f of an interval apart share (1 - f) n tiles, rounded up or down."""
    n, intervals = 8, 4
    coding = TileCoding.of(BOX, [TilingGroup(axes=(0,), intervals=(intervals,), tilings=n)], offset_seed=None)
    width = 2.0 / intervals
    other = x + part * width * (-1.0 if x > 0.0 else 1.0)
    shared = (coding.tiles(np.array([[x, 0, 0.0]])) == coding.tiles(np.array([[other, 0, 0.0]]))).sum()
    assert abs(shared - (1.0 - part) * n) <= 1.0 + 1e-6


def test_points_more_than_an_interval_apart_share_nothing() -> None:
    tiles = CODING.tiles(np.array([[-0.6, 0.5, -3.0], [0.0, 2.0, 0.5]]))
    assert not (tiles[0] == tiles[1]).any()


def test_points_outside_lie_in_the_tiles_of_the_nearest_inside() -> None:
    outside = np.array([[-9.0, 5.0, 0.3], [1.0 + 1e-9, -2.0, -0.3]])
    assert CODING.tiles(outside).tolist() == CODING.tiles(BOX.clip(outside)).tolist()


def test_offsets_are_spread_evenly_and_differ_between_axes() -> None:
    shifts = CODING.shifts[:8]
    for axis in range(3):
        assert sorted(shifts[:, axis].tolist()) == [k / 8 for k in range(8)]
    assert shifts[1].tolist() == [1 / 8, 3 / 8, 5 / 8]


def test_random_offsets_go_with_the_seed_and_are_uniform() -> None:
    many = [TilingGroup(axes=(0, 1), intervals=(4, 4), tilings=500)]
    shifts = TileCoding.of(BOX, many, offset_seed=0).shifts[:, :2]
    assert shifts.min() >= 0.0
    assert shifts.max() < 1.0
    assert np.abs(shifts.mean(axis=0) - 0.5).max() < 5.0 * math.sqrt(1.0 / 12.0 / 500.0)
    assert abs(np.corrcoef(shifts[:, 0], shifts[:, 1]).min()) < 5.0 / math.sqrt(500.0)
    np.testing.assert_array_equal(shifts, TileCoding.of(BOX, many, offset_seed=0).shifts[:, :2])
    assert not (shifts == TileCoding.of(BOX, many, offset_seed=1).shifts[:, :2]).any()


def test_published_tilings_have_the_published_numbers_of_tiles() -> None:
    car = TileCoding.of(
        SYSTEMS["mountain-car"].task.box, sarsa_settings("mountain-car", "sarsa-fine").tilings, offset_seed=0
    )
    assert (car.n_tilings, car.n_tiles) == (10, 10 * 9 * 9)
    np.testing.assert_allclose(1.0 / car.scales[0], [1.7 / 8, 0.14 / 8])
    arm = TileCoding.of(
        SYSTEMS["acrobot"].task.box, sarsa_settings("acrobot", "sarsa-fine").tilings, offset_seed=0
    )
    triples = 6 * 7 * 6 + 6 * 7 * 7 + 6 * 6 * 7 + 7 * 6 * 7
    pairs = 6 * 7 + 6 * 6 + 6 * 7 + 7 * 6 + 7 * 7 + 6 * 7
    assert arm.n_tilings == 48
    assert arm.n_tiles == 12 * 6 * 7 * 6 * 7 + 3 * triples + 2 * pairs + 3 * (6 + 7 + 6 + 7)


@pytest.mark.parametrize("problem", SETTINGS)
def test_coarse_has_clearly_fewer_tiles_than_fine(problem: str) -> None:
    box = SYSTEMS[problem].task.box
    fine, coarse = (
        TileCoding.of(box, sarsa_settings(problem, agent).tilings, offset_seed=0)
        for agent in ("sarsa-fine", "sarsa-coarse")
    )
    assert 3 * coarse.n_tiles < fine.n_tiles


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([], "at least one group"),
        ([TilingGroup(axes=(0, 3), intervals=(4, 4), tilings=1)], r"some of 0 to 2; got \[0, 3\]"),
        ([TilingGroup(axes=(0, 0), intervals=(4, 4), tilings=1)], r"some of 0 to 2; got \[0, 0\]"),
        (
            [TilingGroup(axes=(0, 1), intervals=(4,), tilings=1)],
            r"one count of intervals per axis \(2\); got 1",
        ),
        (
            [TilingGroup(axes=(0, 1, 2), intervals=(999, 999, 999), tilings=1)],
            "at most 33554432 tiles; got 99",
        ),
    ],
)
def test_tilings_that_do_not_fit_are_refused(groups: list[TilingGroup], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TileCoding.of(BOX, groups, offset_seed=None)


def test_points_that_cannot_lie_in_tiles_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(n, 3\); got \(2,\)"):
        CODING.tiles(np.zeros(2))
    with pytest.raises(ValueError, match="must be finite"):
        CODING.tiles(np.array([[0.0, np.nan, 0.0]]))
