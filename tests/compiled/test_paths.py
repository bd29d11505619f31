"""Displacements of many points, against the box's own and plain numpy."""

from __future__ import annotations

import numpy as np

from optimist.box import Box
from optimist.compiled.paths import carry_on, crossed, displace

BOX = Box([-np.pi, -1.0, 0.0], [np.pi, 2.0, 0.5], periodic=[True, False, True])


def test_displacements_are_those_of_the_box_to_the_last_bit() -> None:
    stream = np.random.default_rng(0)
    points, next_points = stream.uniform(BOX.low - 1.0, BOX.high + 1.0, size=(2, 500, 3))
    next_points[0] = points[0] + [np.pi, 1.5, 0.25]  # half a turn: the short way is neither
    unsure, places = stream.uniform(size=500), stream.permutation(600)[:500].astype(np.int32)
    found = np.full((600, 5), 7.0)
    displace(points, next_points, unsure, BOX.periods, places, found)
    np.testing.assert_array_equal(found[places, :3], BOX.displacement(points, next_points))
    np.testing.assert_array_equal(found[places, 3], unsure)
    assert (found[:, 4] == 7.0).all()
    assert (np.delete(found, places, axis=0) == 7.0).all()


def test_how_much_is_crossed_is_the_most_over_the_axes() -> None:
    stream = np.random.default_rng(1)
    origins, points = stream.uniform(BOX.low, BOX.high, size=(2, 200, 3))
    widths = stream.uniform(0.01, 0.3, size=(200, 3))
    points[0] = origins[0]
    rows = stream.permutation(200)
    apart = widths[np.argsort(rows)]
    found = [crossed(origins, points, k, apart, rows[k], BOX.periods) for k in range(200)]
    expected = (np.abs(BOX.displacement(origins, points)) / widths).max(axis=1)
    np.testing.assert_array_equal(found, expected)
    assert found[0] == 0.0


def test_paths_that_go_on_are_moved_to_the_front_and_the_others_are_done() -> None:
    stream = np.random.default_rng(2)
    origins, after = stream.uniform(BOX.low, BOX.high, size=(2, 100, 3))
    where, earned = stream.permutation(300)[:100], stream.normal(size=100)
    ended, unsure = stream.uniform(size=100) < 0.2, stream.uniform(size=100)
    totals, counts, known = stream.normal(size=100), stream.uniform(size=100), stream.uniform(size=100)
    going = where.copy(), origins.copy(), np.empty((100, 3)), totals.copy(), counts.copy(), known.copy()
    made = np.zeros((300, 3)), np.zeros(300), np.zeros(300), np.zeros(300)
    widths = stream.uniform(2.0, 9.0, size=(300, 3))
    asked = (0.9, 3.0), (1, 8, 0.1), widths, BOX.periods
    count = carry_on(after, earned, ended, unsure, *asked, going, made)

    totals = totals + counts * ((1.0 - unsure) * earned + unsure * 3.0)
    counts = np.where(ended, 0.0, counts * (1.0 - unsure) * 0.9)
    known = known * (1.0 - unsure)
    share = (np.abs(BOX.displacement(origins, after)) / widths[where]).max(axis=1)
    on = (counts != 0.0) & (share < 1.0) & (share * 8 >= 2.0) & (known > 0.1)
    assert 0 < on.sum() == count < 100
    for found, expected in zip(going, (where, origins, after, totals, counts, known), strict=True):
        np.testing.assert_array_equal(found[:count], expected[on])
    for found, expected in zip(made, (after, totals, counts), strict=False):
        np.testing.assert_array_equal(found[where[~on]], expected[~on])
        assert not np.delete(found, where[~on], axis=0).any()
    assert (made[3][where] == 1.0).all()


def test_after_the_last_step_all_paths_are_done() -> None:
    going = np.arange(2), np.zeros((2, 3)), np.empty((2, 3)), np.zeros(2), np.ones(2), np.ones(2)
    made = np.zeros((2, 3)), np.zeros(2), np.zeros(2), np.zeros(2)
    asked = np.ones((2, 3)), np.array([2.0, 3.0]), np.array([False, True]), np.empty(0)
    assert carry_on(*asked, (0.5, 0.0), (3, 4, 0.5), np.empty((0, 0)), BOX.periods, going, made) == 0
    assert made[1].tolist() == [2.0, 3.0]
    assert made[2].tolist() == [0.5, 0.0]
