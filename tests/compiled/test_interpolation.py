from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.interpolation import interpolate_many, locate
from optimist.grid import Grid
from tests.naive.interpolation import bracket, corners, flat, unflat, weights_of_point

Lookup = tuple[FloatArray, NDArray[np.int64], FloatArray, FloatArray, NDArray[np.int64]]
DIMS = range(1, 7)


def some_grid(dims: int, *, uniform: bool, stream: np.random.Generator) -> Grid:
    """Axes of 2 to 5 nodes (fewer in many dimensions), every other one periodic."""
    counts = stream.integers(2, 6 if dims < 5 else 4, size=dims)
    low = stream.uniform(-3.0, 1.0, dims)
    high = low + stream.uniform(0.5, 4.0, dims)
    periodic = [(axis + dims) % 2 == 0 for axis in range(dims)]
    box = Box(low, high, periodic)
    if uniform:
        return Grid.uniform(box, counts.tolist())
    axes = []
    for axis, count in enumerate(counts):
        inner = np.sort(stream.uniform(low[axis], high[axis], count))
        if not periodic[axis]:
            inner[0], inner[-1] = low[axis], high[axis]
        axes.append(inner)
    return Grid(box, axes)


def some_points(grid: Grid, stream: np.random.Generator) -> FloatArray:
    """Inside, far outside, on nodes, and on nodes some periods away."""
    box = grid.box
    inside = stream.uniform(box.low, box.high, (40, grid.n_dims))
    outside = stream.uniform(box.low - 3.0 * box.widths, box.high + 3.0 * box.widths, (40, grid.n_dims))
    on_nodes = grid.nodes[stream.integers(grid.n_nodes, size=20)]
    turned = on_nodes + np.where(box.periodic, box.widths, 0.0)
    return np.vstack([inside, outside, on_nodes, turned, box.low[np.newaxis], box.high[np.newaxis]])


def lookup(grid: Grid) -> Lookup:
    """The arguments of `locate`, put together here once more from their descriptions."""
    axes = [
        np.append(nodes, nodes[0] + width) if turns else nodes
        for nodes, width, turns in zip(grid.axes, grid.box.widths, grid.box.periodic, strict=True)
    ]
    starts = np.cumsum([0, *(len(nodes) for nodes in axes)]).astype(np.int64)
    spacings = [np.diff(nodes) for nodes in axes]
    inverses = np.array([1.0 / s[0] if np.allclose(s, s[0], rtol=1e-13) else 0.0 for s in spacings])
    padded = [len(nodes) for nodes in axes]
    strides = np.array([int(np.prod(padded[axis + 1 :])) for axis in range(len(padded))], dtype=np.int64)
    return np.concatenate(axes), starts, np.where(grid.box.periodic, grid.box.widths, 0.0), inverses, strides


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("dims", DIMS)
def test_locate_finds_the_naive_weights_and_counts_what_it_clips(dims: int, uniform: bool) -> None:
    stream = np.random.default_rng([dims, uniform])
    grid = some_grid(dims, uniform=uniform, stream=stream)
    points = some_points(grid, stream)
    cells = np.empty(len(points), dtype=np.int32)
    fractions = np.empty(points.shape)
    n_clipped = locate(points, *lookup(grid), cells, fractions)
    assert (fractions >= 0.0).all()
    assert (fractions <= 1.0).all()
    periods = [
        float(width) if turns else None
        for width, turns in zip(grid.box.widths, grid.box.periodic, strict=True)
    ]
    clipped = 0
    for k, point in enumerate(points):
        weights = np.zeros(grid.n_nodes)
        for corner, weight in corners(unflat(int(cells[k]), grid.padded_shape), fractions[k].tolist()):
            weights[flat([c % n for c, n in zip(corner, grid.shape, strict=True)], grid.shape)] += weight
        np.testing.assert_allclose(weights, weights_of_point(grid.axes, periods, point), atol=1e-12)
        clipped += any(
            bracket(axis.tolist(), period, float(x))[2]
            for axis, period, x in zip(grid.axes, periods, point, strict=True)
        )
    assert n_clipped == clipped


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("dims", [1, 3, 6])
def test_locate_gives_the_same_without_compiling(dims: int, uniform: bool) -> None:
    stream = np.random.default_rng([10, dims, uniform])
    grid = some_grid(dims, uniform=uniform, stream=stream)
    points = some_points(grid, stream)
    found = []
    for function in (locate, locate.py_func):
        cells = np.empty(len(points), dtype=np.int32)
        fractions = np.empty(points.shape)
        n_clipped = function(points, *lookup(grid), cells, fractions)
        found.append((cells, fractions, n_clipped))
    (cells, fractions, n_clipped), (plain_cells, plain_fractions, plain_clipped) = found
    np.testing.assert_array_equal(cells, plain_cells)
    np.testing.assert_array_equal(fractions, plain_fractions)
    assert n_clipped == plain_clipped


@pytest.mark.parametrize("n_actions", [1, 2, 5])
@pytest.mark.parametrize("dims", DIMS)
def test_interpolate_many_weighs_the_nodes_as_the_twin_does(dims: int, n_actions: int) -> None:
    stream = np.random.default_rng([20, dims, n_actions])
    grid = some_grid(dims, uniform=False, stream=stream)
    points = some_points(grid, stream)
    values = stream.normal(size=(grid.n_nodes, n_actions))
    located = grid.locate(points)
    strides = tuple(grid.padded_strides.tolist())
    out = np.empty((len(points), n_actions))
    interpolate_many(grid.pad(values), located.cells, located.fractions, strides, out)
    periods = [
        float(width) if turns else None
        for width, turns in zip(grid.box.widths, grid.box.periodic, strict=True)
    ]
    expected = np.array([weights_of_point(grid.axes, periods, point) @ values for point in points])
    np.testing.assert_allclose(out, expected, atol=1e-11)
    again = np.empty_like(out)
    few = slice(0, None, 7)
    interpolate_many.py_func(
        grid.pad(values), located.cells[few], located.fractions[few], strides, again[few]
    )
    np.testing.assert_allclose(again[few], out[few], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("dims", DIMS)
def test_a_node_is_given_back_exactly(dims: int) -> None:
    stream = np.random.default_rng([30, dims])
    grid = some_grid(dims, uniform=True, stream=stream)
    values = stream.normal(size=(grid.n_nodes, 2))
    located = grid.locate(grid.nodes)
    out = np.empty_like(values)
    strides = tuple(grid.padded_strides.tolist())
    interpolate_many(grid.pad(values), located.cells, located.fractions, strides, out)
    np.testing.assert_array_equal(out, values)


def test_points_are_found_among_nodes_that_crowd_in_one_place() -> None:
    nodes = np.concatenate([[-1.0], np.sort(np.random.default_rng(0).uniform(0.0, 1e-3, 300)), [0.5, 2.0]])
    grid = Grid(Box([-1.0], [2.0]), [nodes])
    points = np.concatenate([nodes, np.nextafter(nodes, -9.0), np.nextafter(nodes, 9.0)])
    points = np.concatenate([points, np.random.default_rng(1).uniform(-1.0, 2.0, 500)]).clip(-1.0, 2.0)
    cells, fractions, n_clipped = grid.locate(points[:, np.newaxis])
    expected = np.clip(np.searchsorted(nodes, points, side="right") - 1, 0, len(nodes) - 2)
    np.testing.assert_array_equal(cells, expected)
    assert n_clipped == 0
    widths = np.diff(nodes)[expected]
    np.testing.assert_allclose(nodes[expected] + fractions[:, 0] * widths, points, atol=1e-15)
