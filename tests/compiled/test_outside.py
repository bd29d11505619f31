"""How far states are outside a box: compiled loops against the same with arrays, one line at a time."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.compiled.outside import shares_outside

DIMS = range(1, 7)
Sides = tuple[FloatArray, FloatArray, BoolArray, BoolArray, FloatArray]  # low, high, open ones, cells


def some_sides(dims: int, seed: int) -> Sides:
    """A box whose axes are of different size, its sides open or closed, cells of some width."""
    stream = np.random.default_rng([dims, seed])
    low = stream.uniform(-5.0, 1.0, dims)
    widths = 10.0 ** stream.uniform(-1.0, 1.5, dims)
    opened = stream.random((2, dims)) < 0.6
    return low, low + widths, opened[0], opened[1], widths / stream.integers(1, 30, dims)


def states_around(sides: Sides, count: int = 60) -> FloatArray:
    """Inside, a little and a lot outside, and two corners of the box."""
    low, high, *_ = sides
    stream = np.random.default_rng(len(low))
    reach = (high - low) * 10.0 ** stream.uniform(-3.0, 3.0, (count, 1))
    return np.vstack([stream.uniform(low - reach, high + reach), low, high])


def found(states: FloatArray, sides: Sides) -> FloatArray:
    shares = np.full(len(states), np.nan)
    shares_outside(states, *sides, shares)
    return shares


def naive(states: FloatArray, sides: Sides) -> FloatArray:
    """x / (1 + x), x cells beyond the side it is furthest outside of."""
    low, high, open_low, open_high, cells = sides
    below = np.where(open_low, low - states, 0.0)
    above = np.where(open_high, states - high, 0.0)
    out = np.maximum(np.maximum(below, above) / cells, 0.0).max(axis=1)
    return np.asarray(out / (1.0 + out))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dims", DIMS)
def test_shares_are_the_naive_ones(dims: int, seed: int) -> None:
    sides = some_sides(dims, seed)
    states = states_around(sides)
    np.testing.assert_allclose(found(states, sides), naive(states, sides), rtol=1e-14)


def test_random_states_are_of_every_kind() -> None:
    """Or the test above says little."""
    shares = np.concatenate(
        [found(states_around(some_sides(d, seed)), some_sides(d, seed)) for d in DIMS for seed in range(5)]
    )
    assert (shares == 0.0).mean() > 0.1
    assert ((shares > 0.0) & (shares < 0.5)).mean() > 0.05
    assert (shares > 0.99).mean() > 0.1


@pytest.mark.parametrize("dims", DIMS)
def test_within_and_beyond_closed_sides_there_is_no_share(dims: int) -> None:
    low, high, _, _, cells = some_sides(dims, 0)
    closed, opened = np.zeros(dims, dtype=np.bool_), np.ones(dims, dtype=np.bool_)
    inside = np.random.default_rng(0).uniform(low, high, (20, dims))
    np.testing.assert_array_equal(found(inside, (low, high, opened, opened, cells)), 0.0)
    shut = (low, high, closed, closed, cells)
    np.testing.assert_array_equal(found(states_around(shut), shut), 0.0)
    infinite = np.array([[np.inf] * dims, [-np.inf] * dims])
    np.testing.assert_array_equal(found(infinite, shut), 0.0)


@pytest.mark.parametrize(("cells_out", "share"), [(1.0, 0.5), (3.0, 0.75), (99.0, 0.99), (1e-9, 1e-9)])
@pytest.mark.parametrize("way", [-1.0, 1.0])
def test_a_cell_beyond_the_edge_it_is_a_half(cells_out: float, share: float, way: float) -> None:
    opened = np.ones(1, dtype=np.bool_)
    sides = (np.array([-2.0]), np.array([2.0]), opened, opened, np.array([0.25]))
    states = np.array([[way * (2.0 + 0.25 * cells_out)]])
    np.testing.assert_allclose(found(states, sides), share, rtol=1e-6)


@pytest.mark.parametrize("far", [1e20, 1e200, 1.7e308, np.inf])
@pytest.mark.parametrize("way", [-1.0, 1.0])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_however_far_away_it_is_one(axis: int, way: float, far: float) -> None:
    """Where a count of cells overflows, too."""
    low, high = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 1e-3, 50.0])
    opened = np.ones(3, dtype=np.bool_)
    states = np.array([[0.0, 5e-4, 10.0]])
    states[0, axis] = way * far
    assert found(states, (low, high, opened, opened, (high - low) / 7.0)).tolist() == [1.0]


def test_of_no_states_there_are_no_shares() -> None:
    assert found(np.empty((0, 2)), some_sides(2, 0)).shape == (0,)
