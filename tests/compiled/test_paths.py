"""Displacements of many points, against the box's own and plain numpy."""

from __future__ import annotations

import numpy as np

from optimist.box import Box
from optimist.compiled.paths import crossed, displace

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
    widths, rows = stream.uniform(0.01, 0.3, size=(50, 3)), stream.integers(50, size=200)
    points[0] = origins[0]
    found = np.empty(200)
    crossed(origins, points, widths, rows, BOX.periods, found)
    expected = (np.abs(BOX.displacement(origins, points)) / widths[rows]).max(axis=1)
    np.testing.assert_array_equal(found, expected)
    assert found[0] == 0.0
