"""Grid against hat functions by np.interp, scipy's interpolator, tiled grids and multilinear functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from tests.naive.interpolation import dense_weights, interpolants

PROPERTY = settings(deadline=None, max_examples=60)
PERIODIC = {
    "line": (False,) * 6,
    "mixed": (True, False, False, True, False, True),
    "torus": (True,) * 6,
}
EVERY_GRID = [
    pytest.param(n_dims, spacing, kind, id=f"{n_dims}d-{spacing}-{kind}")
    for n_dims, spacing, kind in product(range(1, 7), ("uniform", "random"), PERIODIC)
]
LINES = [
    pytest.param(n_dims, spacing, id=f"{n_dims}d-{spacing}")
    for n_dims, spacing in product(range(1, 7), ("uniform", "random"))
]
COUNTS = (5, 3, 4, 2, 3, 4)


def make_grid(n_dims: int, spacing: str, kind: str, *, seed: int = 0) -> Grid:
    """A grid with another number of nodes on each axis; random periodic axes do not begin at low."""
    stream = np.random.default_rng([seed, n_dims])
    low = stream.uniform(-3.0, 1.0, n_dims)
    box = Box(low, low + stream.uniform(0.5, 7.0, n_dims), periodic=PERIODIC[kind][:n_dims])
    if spacing == "uniform":
        return Grid.uniform(box, COUNTS[:n_dims])
    axes = []
    for q in range(n_dims):
        steps = np.cumsum(stream.uniform(0.2, 1.0, COUNTS[q] + 1))
        places = (steps[:-1] - (0.0 if box.periodic[q] else steps[0])) / (
            steps[-1] if box.periodic[q] else steps[-2] - steps[0]
        )
        axes.append(box.low[q] + places * box.widths[q])
    return Grid(box, axes)


def points_in(grid: Grid, n_points: int, *, seed: int = 1) -> FloatArray:
    stream = np.random.default_rng([seed, grid.n_dims])
    return stream.uniform(grid.box.low, grid.box.high, size=(n_points, grid.n_dims))


def values_on(grid: Grid, *, seed: int = 2) -> FloatArray:
    return np.random.default_rng([seed, grid.n_nodes]).normal(size=grid.n_nodes)


def dense(grid: Grid, points: FloatArray) -> FloatArray:
    """The weight of every node where the grid locates the points, [n_points, n_nodes]."""
    return dense_weights(grid, *interpolants(grid, points))


def hat_weights(grid: Grid, points: FloatArray) -> FloatArray:
    """The weight of every node as a product of np.interp's hat functions, [n_points, n_nodes]."""
    table = np.ones((len(points), 1))
    for q, nodes in enumerate(grid.axes):
        period = float(grid.box.widths[q]) if grid.box.periodic[q] else None
        hats = np.stack(
            [np.interp(points[:, q], nodes, unit, period=period) for unit in np.eye(nodes.size)], axis=1
        )
        table = (table[:, :, np.newaxis] * hats[:, np.newaxis, :]).reshape(len(points), -1)
    return table


def interpolated(grid: Grid, values: FloatArray, points: FloatArray) -> FloatArray:
    vertices, weights = interpolants(grid, points)
    answer: FloatArray = (weights * values[vertices]).sum(axis=1)
    return answer


def tiled(grid: Grid, values: FloatArray) -> tuple[Grid, FloatArray]:
    """The same function on a grid without periodic axes: three periods side by side."""
    table = values.reshape(grid.shape)
    axes = list(grid.axes)
    for q in np.flatnonzero(grid.box.periodic):
        period = grid.box.widths[q]
        axes[q] = np.concatenate([axes[q] - period, axes[q], axes[q] + period])
        table = np.concatenate([table] * 3, axis=int(q))
    box = Box([axis[0] for axis in axes], [axis[-1] for axis in axes])
    return Grid(box, axes), table.reshape(-1)


# --- weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_weights_are_non_negative_and_sum_to_one(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    vertices, weights = interpolants(grid, points_in(grid, 200))
    assert vertices.shape == weights.shape == (200, 2**n_dims)
    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0.0, atol=1e-14)
    assert vertices.min() >= 0
    assert vertices.max() < grid.n_nodes


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_weights_are_products_of_hat_functions(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    points = points_in(grid, 60)
    np.testing.assert_allclose(dense(grid, points), hat_weights(grid, points), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_a_node_is_its_own_interpolant(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    vertices, weights = interpolants(grid, grid.nodes)
    own = np.where(vertices == np.arange(grid.n_nodes)[:, np.newaxis], weights, 0.0).sum(axis=1)
    np.testing.assert_array_equal(own, 1.0)
    assert grid.locate(grid.nodes).n_clipped == 0


@pytest.mark.parametrize(("n_dims", "spacing"), LINES)
def test_multilinear_functions_are_reproduced(n_dims: int, spacing: str) -> None:
    grid = make_grid(n_dims, spacing, "line")
    coefficients = np.random.default_rng(n_dims).normal(size=2**n_dims)

    def multilinear(points: FloatArray) -> FloatArray:
        total = np.zeros(len(points))
        for coefficient, chosen in zip(coefficients, product((False, True), repeat=n_dims), strict=True):
            total += coefficient * points[:, np.array(chosen)].prod(axis=1)
        return total

    points = points_in(grid, 100)
    found = interpolated(grid, multilinear(grid.nodes), points)
    np.testing.assert_allclose(found, multilinear(points), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("n_dims", "kind"), [(3, "mixed"), (4, "mixed"), (6, "mixed")])
def test_functions_constant_along_periodic_axes_are_reproduced(n_dims: int, kind: str) -> None:
    grid = make_grid(n_dims, "random", kind)
    slopes = np.where(grid.box.periodic, 0.0, np.arange(1.0, n_dims + 1.0))
    points = points_in(grid, 100)
    np.testing.assert_allclose(
        interpolated(grid, grid.nodes @ slopes + 3.0, points), points @ slopes + 3.0, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(("n_dims", "spacing"), LINES)
def test_interpolation_agrees_with_scipy(n_dims: int, spacing: str) -> None:
    grid = make_grid(n_dims, spacing, "line", seed=5)
    values, points = values_on(grid), points_in(grid, 200)
    oracle = RegularGridInterpolator(grid.axes, values.reshape(grid.shape), method="linear")
    np.testing.assert_allclose(interpolated(grid, values, points), oracle(points), rtol=0.0, atol=1e-11)


@PROPERTY
@given(st.data())
def test_one_axis_agrees_with_numpy_for_any_nodes(data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=8))
    nodes = np.cumsum([data.draw(st.floats(-10.0, 10.0)), *gaps])
    values = np.array(data.draw(st.lists(st.floats(-1.0, 1.0), min_size=nodes.size, max_size=nodes.size)))
    points = np.array(data.draw(st.lists(st.floats(-30.0, 100.0), min_size=1, max_size=8)))
    grid = Grid(Box([nodes[0]], [nodes[-1]]), [nodes])
    np.testing.assert_allclose(
        interpolated(grid, values, points[:, np.newaxis]),
        np.interp(points, nodes, values),
        rtol=0.0,
        atol=1e-9,
    )


def test_no_points_have_no_interpolants() -> None:
    grid = make_grid(3, "random", "mixed")
    vertices, weights = interpolants(grid, np.empty((0, 3)))
    assert vertices.shape == weights.shape == (0, 8)
    assert grid.locate(np.empty((0, 3))).n_clipped == 0


@pytest.mark.parametrize("offset", [2.0**10, 2.0**20, 2.0**30])
def test_weights_do_not_depend_on_where_the_origin_is(offset: float) -> None:
    # every number here is a multiple of 2^-10, so shifting by the offset is exact
    nodes = np.array([0.0, 0.25, 0.375, 1.0, 1.5, 2.0])
    points = np.arange(0, 2049, 3)[:, np.newaxis] / 1024.0
    near = interpolants(Grid(Box([0.0], [2.0]), [nodes]), points)
    far = interpolants(Grid(Box([offset], [offset + 2.0]), [offset + nodes]), offset + points)
    for here, there in zip(near, far, strict=True):
        np.testing.assert_array_equal(here, there)


def test_uneven_nodes_on_a_narrow_axis_far_from_zero_are_not_taken_for_even_ones() -> None:
    scale, offset = 2.0**-16, 2.0**30
    nodes = np.array([0.0, 0.25, 1.0])
    points = np.array([[0.125], [0.375], [0.625], [0.875]])
    far = Grid(Box([offset], [offset + scale]), [offset + scale * nodes])
    found = dense(far, offset + scale * points)
    near = Grid(Box([0.0], [1.0]), [nodes])
    np.testing.assert_allclose(found, hat_weights(near, points), rtol=0.0, atol=1e-12)


# --- periodic axes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4])
@pytest.mark.parametrize("spacing", ["uniform", "random"])
@pytest.mark.parametrize("kind", ["mixed", "torus"])
def test_a_periodic_grid_equals_its_tiling(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    values, points = values_on(grid), points_in(grid, 300)
    unwrapped, repeated = tiled(grid, values)
    assert unwrapped.locate(points).n_clipped == 0
    np.testing.assert_allclose(
        interpolated(grid, values, points), interpolated(unwrapped, repeated, points), rtol=0.0, atol=1e-11
    )


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), [p for p in EVERY_GRID if "line" not in str(p.id)])
def test_whole_periods_make_no_difference(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    values, points = values_on(grid), points_in(grid, 100)
    turns = np.random.default_rng(0).integers(-100, 101, size=points.shape)
    away = points + np.where(grid.box.periodic, turns * grid.box.widths, 0.0)
    assert grid.locate(away).n_clipped == 0
    np.testing.assert_allclose(
        interpolated(grid, values, away), interpolated(grid, values, points), rtol=0.0, atol=1e-9
    )


@pytest.mark.parametrize("spacing", ["uniform", "random"])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_interpolation_is_continuous_across_the_seam(n_dims: int, spacing: str) -> None:
    grid = make_grid(n_dims, spacing, "mixed")
    values, middle = values_on(grid), points_in(grid, 50)
    for place in (grid.box.low[0], grid.box.high[0], grid.axes[0][0], grid.axes[0][-1]):
        at = middle.copy()
        at[:, 0] = place
        for shift in (-1e-9, 1e-9, -1e-15, 1e-15):
            beside = at.copy()
            beside[:, 0] += shift
            np.testing.assert_allclose(
                interpolated(grid, values, beside), interpolated(grid, values, at), rtol=0.0, atol=1e-6
            )


def test_the_seam_cell_joins_the_last_node_to_the_first() -> None:
    grid = Grid(Box([0.0], [10.0], periodic=[True]), [[1.0, 4.0, 7.0]])
    # the cell from 7 to 11, which is 1 again; 0 is three quarters of the way
    found = dense(grid, np.array([[0.0], [10.0], [9.0], [-1.0], [8.0], [0.5]]))
    expected = [[0.75, 0, 0.25], [0.75, 0, 0.25], [0.5, 0, 0.5], [0.5, 0, 0.5], [0.25, 0, 0.75]]
    np.testing.assert_allclose(found, [*expected, [0.875, 0, 0.125]], rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_uniform_periodic_axis_has_equal_cells_the_seam_included(count: int) -> None:
    box = Box([-np.pi], [np.pi], periodic=[True])
    (nodes,) = Grid.uniform(box, [count]).axes
    np.testing.assert_allclose(np.diff(np.append(nodes, nodes[0] + 2.0 * np.pi)), 2.0 * np.pi / count)
    assert nodes[0] == -np.pi


# --- outside ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_points_outside_are_clipped_and_counted(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    box = grid.box
    stream = np.random.default_rng(n_dims)
    points = stream.uniform(box.low - box.widths / 4.0, box.high + box.widths / 4.0, size=(300, n_dims))
    values = values_on(grid)
    found = interpolated(grid, values, points)
    assert grid.locate(points).n_clipped == int((~box.contains(points)).sum())
    np.testing.assert_allclose(found, interpolated(grid, values, box.clip(points)), rtol=0.0, atol=1e-11)
    assert found.min() >= values.min() - 1e-12
    assert found.max() <= values.max() + 1e-12


def test_a_point_is_counted_once_however_many_axes_it_leaves() -> None:
    grid = Grid.uniform(Box([0.0, 0.0], [1.0, 1.0]), [3, 3])
    points = np.array([[2.0, 2.0], [-1.0, 0.5], [0.5, 1.0 + 1e-12], [0.0, 1.0], [1.0, 0.0]])
    assert grid.locate(points).n_clipped == 3


@pytest.mark.parametrize("spacing", ["uniform", "random"])
def test_points_however_far_are_held_at_the_edge(spacing: str) -> None:
    grid = make_grid(1, spacing, "line")
    for far in (1e6, 1e18, 1e300):
        _, fractions, n_clipped = grid.locate(np.array([[-far], [far]]))
        assert n_clipped == 2
        assert fractions[:, 0].tolist() == [0.0, 1.0]
        found = dense(grid, np.array([[-far], [far]]))
        np.testing.assert_array_equal(found, np.eye(grid.n_nodes)[[0, -1]])


def test_the_edges_of_the_box_are_not_outside() -> None:
    grid = make_grid(2, "random", "line")
    corners = np.array(list(product(*zip(grid.box.low, grid.box.high, strict=True))))
    assert grid.locate(corners).n_clipped == 0


# --- cells, padding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_cells_and_fractions_say_where_the_point_is(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    points = points_in(grid, 50)
    cells, fractions, _ = grid.locate(points)
    assert cells.dtype == np.int32
    places = np.unravel_index(cells, grid.padded_shape)
    for q, nodes in enumerate(grid.axes):
        period = grid.box.widths[q] if grid.box.periodic[q] else 0.0
        ghosted = np.append(nodes, nodes[0] + period) if period else nodes
        left, right = ghosted[places[q]], ghosted[places[q] + 1]
        back = left + fractions[:, q] * (right - left)
        back[back >= grid.box.high[q]] -= period
        assert np.abs(back - points[:, q]).max() < 1e-12
    assert fractions.min() >= 0.0
    assert fractions.max() <= 1.0


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_corners_of_a_cell_lie_at_constant_offsets_in_the_padded_values(
    n_dims: int, spacing: str, kind: str
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    values = values_on(grid)
    padded = grid.pad(values)
    cells, fractions, _ = grid.locate(points_in(grid, 50))
    total = np.zeros(len(cells))
    for corner in product((0, 1), repeat=n_dims):
        weight = reduce(
            np.multiply, [fractions[:, q] if up else 1.0 - fractions[:, q] for q, up in enumerate(corner)]
        )
        total += weight * padded[cells + int(np.dot(corner, grid.padded_strides))]
    np.testing.assert_allclose(total, interpolated(grid, values, points_in(grid, 50)), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("rest", [(), (1,), (3,)])
@pytest.mark.parametrize("n_dims", range(1, 7))
@pytest.mark.parametrize("kind", list(PERIODIC))
def test_padding_is_that_of_numpy(n_dims: int, kind: str, rest: tuple[int, ...]) -> None:
    grid = make_grid(n_dims, "uniform", kind)
    values = np.random.default_rng(0).normal(size=(grid.n_nodes, *rest))
    widths = [(0, int(periodic)) for periodic in grid.box.periodic] + [(0, 0)] * len(rest)
    expected = np.pad(values.reshape(*grid.shape, *rest), widths, mode="wrap")
    assert grid.padded_shape == expected.shape[:n_dims]
    np.testing.assert_array_equal(grid.pad(values), expected.reshape(-1, *rest))


@pytest.mark.parametrize("n_actions", [1, 3])
@pytest.mark.parametrize("n_dims", range(1, 7))
@pytest.mark.parametrize("kind", list(PERIODIC))
def test_refreshed_ghosts_are_those_of_padding(n_dims: int, kind: str, n_actions: int) -> None:
    grid = make_grid(n_dims, "uniform", kind)
    values = np.random.default_rng(1).normal(size=(grid.n_nodes, n_actions))
    expected = grid.pad(values)
    stale = np.full(expected.shape, np.nan)
    stale[grid.padded_places] = values
    flat = stale.reshape(-1)
    grid.refresh_ghosts(flat)
    np.testing.assert_array_equal(flat.reshape(expected.shape), expected)


@pytest.mark.parametrize("n_dims", range(1, 7))
@pytest.mark.parametrize("kind", list(PERIODIC))
def test_padded_places_find_every_node_once(n_dims: int, kind: str) -> None:
    grid = make_grid(n_dims, "random", kind)
    numbers = np.arange(grid.n_nodes, dtype=np.float64)
    assert len(np.unique(grid.padded_places)) == grid.n_nodes
    np.testing.assert_array_equal(grid.pad(numbers)[grid.padded_places], numbers)


@pytest.mark.parametrize("n_dims", range(1, 7))
@pytest.mark.parametrize("kind", list(PERIODIC))
def test_padded_strides_are_those_of_a_numpy_array(n_dims: int, kind: str) -> None:
    grid = make_grid(n_dims, "random", kind)
    expected = np.array(np.empty(grid.padded_shape, dtype=np.int8).strides)
    np.testing.assert_array_equal(grid.padded_strides, expected)


# --- nodes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_nodes_are_numbered_in_c_order(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    expected = np.stack(np.meshgrid(*grid.axes, indexing="ij"), axis=-1).reshape(-1, n_dims)
    assert grid.shape == COUNTS[:n_dims]
    assert grid.n_nodes == len(expected)
    np.testing.assert_array_equal(grid.nodes, expected)
    np.testing.assert_array_equal(grid.nodes_between(1, grid.n_nodes - 1), expected[1:-1])


@pytest.mark.parametrize("size", [1, 7, 59, 60, 61, 1000])
def test_blocks_cover_every_node_once_in_order(size: int) -> None:
    grid = Grid.uniform(Box([0.0] * 3, [1.0] * 3), [3, 4, 5])
    numbers = [range(first, last) for first, last in grid.blocks(size)]
    assert [number for block in numbers for number in block] == list(range(60))
    assert max(len(block) for block in numbers) <= size


@pytest.mark.parametrize("count", [2, 3, 4, 9, 20])
@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("periodic", [False, True])
def test_spaced_nodes_follow_their_formula(count: int, power: float, periodic: bool) -> None:
    low, high = -1.5, 4.0
    (nodes,) = Grid.spaced(Box([low], [high], periodic=[periodic]), [count], [power]).axes
    expected = []
    for k in range(count):
        u = -1.0 + 2.0 * k / (count if periodic else count - 1)
        sign = (u > 0.0) - (u < 0.0)
        expected.append((low + high) / 2.0 + (high - low) / 2.0 * sign * abs(u) ** power)
    np.testing.assert_allclose(nodes, expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("count", [2, 3, 8, 21])
@pytest.mark.parametrize("power", [1.0, 1.5, 3.0])
def test_spaced_nodes_are_symmetric_and_reach_the_edges(count: int, power: float) -> None:
    box = Box([-2.0], [6.0])
    (nodes,) = Grid.spaced(box, [count], [power]).axes
    np.testing.assert_allclose(nodes + nodes[::-1], 4.0, rtol=0.0, atol=1e-12)
    assert nodes[0] == -2.0
    assert nodes[-1] == 6.0


@pytest.mark.parametrize("count", [5, 8, 21])
@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
def test_powers_above_one_put_more_nodes_in_the_middle(count: int, power: float) -> None:
    (nodes,) = Grid.spaced(Box([-1.0], [1.0]), [count], [power]).axes
    outward = np.diff(nodes)[(count - 1) // 2 :]  # gaps from the middle to the right edge
    assert (np.diff(outward) > 0.0).all()


def test_uniform_is_spacing_with_power_one() -> None:
    box = Box([0.0, -1.0, 2.0], [1.0, 1.0, 5.0], periodic=[False, True, False])
    grid = Grid.uniform(box, [5, 4, 2])
    assert grid.axes[0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert grid.axes[1].tolist() == [-1.0, -0.5, 0.0, 0.5]
    assert grid.axes[2].tolist() == [2.0, 5.0]
    for nodes, same in zip(grid.axes, Grid.spaced(box, [5, 4, 2], [1.0, 1.0, 1.0]).axes, strict=True):
        np.testing.assert_array_equal(nodes, same)


def test_nodes_are_copied_and_cannot_be_changed() -> None:
    nodes = np.array([0.0, 0.5, 1.0])
    grid = Grid(Box([0.0], [1.0]), [nodes])
    nodes[1] = 0.9
    assert grid.axes[0][1] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        grid.axes[0][1] = 0.9


def test_end_nodes_off_by_rounding_are_moved_to_the_edges() -> None:
    grid = Grid(Box([0.0], [1.0]), [[1e-14, 0.5, 1.0 - 1e-14]])
    assert grid.axes[0].tolist() == [0.0, 0.5, 1.0]
    assert grid.locate(np.array([[0.0], [1.0]])).n_clipped == 0


def test_cells_of_a_uniform_axis_are_as_wide_as_its_spacing() -> None:
    box = Box([-1.0, 0.0], [4.0, 6.0], periodic=[False, True])
    grid = Grid.uniform(box, [11, 4])
    np.testing.assert_allclose(grid.cell_widths(0), np.full(11, 0.5), rtol=1e-14)
    np.testing.assert_allclose(grid.cell_widths(1), np.full(4, 1.5), rtol=1e-14)


def test_the_cell_around_a_node_is_half_the_distance_of_its_neighbours() -> None:
    grid = Grid(Box([0.0], [10.0]), [[0.0, 1.0, 4.0, 10.0]])
    # in the middle (4 - 0) / 2 and (10 - 1) / 2; at the edges the whole distance to the only neighbour
    np.testing.assert_allclose(grid.cell_widths(0), [1.0, 2.0, 4.5, 6.0], rtol=1e-14)


def test_cells_of_a_periodic_axis_reach_across_the_seam() -> None:
    grid = Grid(Box([0.0], [10.0], periodic=[True]), [[1.0, 2.0, 5.0, 9.0]])
    # around 1: from 9 - 10 to 2; around 9: from 5 to 1 + 10
    np.testing.assert_allclose(grid.cell_widths(0), [1.5, 2.0, 3.5, 3.0], rtol=1e-14)


@pytest.mark.parametrize("n_dims", range(1, 7))
@pytest.mark.parametrize("spacing", ["uniform", "random"])
def test_cells_of_a_periodic_axis_sum_to_the_period(n_dims: int, spacing: str) -> None:
    grid = make_grid(n_dims, spacing, "torus")
    for axis in range(n_dims):
        widths = grid.cell_widths(axis)
        assert widths.shape == grid.axes[axis].shape
        assert (widths > 0.0).all()
        assert widths.sum() == pytest.approx(grid.box.widths[axis], rel=1e-13)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_cell_widths_are_those_of_a_loop_over_nodes(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    for axis in range(n_dims):
        nodes = grid.axes[axis].tolist()
        expected = []
        for k, node in enumerate(nodes):
            if grid.box.periodic[axis]:
                period = float(grid.box.widths[axis])
                left = (node - nodes[k - 1]) % period
                right = (nodes[(k + 1) % len(nodes)] - node) % period
                expected.append((left + right) / 2.0)
            else:
                gaps = [abs(node - nodes[j]) for j in (k - 1, k + 1) if 0 <= j < len(nodes)]
                expected.append(sum(gaps) / len(gaps))
        np.testing.assert_allclose(grid.cell_widths(axis), expected, rtol=1e-12)


def test_two_nodes_share_one_cell_or_on_a_circle_the_whole_of_it() -> None:
    np.testing.assert_allclose(Grid.uniform(Box([-1.0], [2.0]), [2]).cell_widths(0), [3.0, 3.0])
    ring = Grid(Box([0.0], [6.0], periodic=[True]), [[1.0, 2.0]])
    np.testing.assert_allclose(ring.cell_widths(0), [3.0, 3.0])


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_widths_at_nodes_are_those_of_their_cells(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    places = np.unravel_index(np.arange(grid.n_nodes), grid.shape)
    expected = np.column_stack([grid.cell_widths(axis)[place] for axis, place in enumerate(places)])
    np.testing.assert_allclose(grid.widths_at(grid.nodes), expected, rtol=1e-12)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), EVERY_GRID)
def test_widths_in_between_are_interpolated_axis_by_axis(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    points = points_in(grid, 30)
    found = grid.widths_at(points)
    weights = hat_weights(grid, points)
    places = np.unravel_index(np.arange(grid.n_nodes), grid.shape)
    for axis, place in enumerate(places):
        np.testing.assert_allclose(found[:, axis], weights @ grid.cell_widths(axis)[place], rtol=1e-10)


def test_widths_wrap_on_periodic_axes_and_stay_those_of_the_edge_on_others() -> None:
    grid = Grid(Box([0.0, 0.0], [10.0, 10.0], [True, False]), [[0.0, 1.0, 4.0], [0.0, 1.0, 10.0]])
    ring, line = grid.cell_widths(0), grid.cell_widths(1)
    points = np.array([[10.0, -3.0], [7.0, 99.0], [-3.0, 0.0], [21.0, 10.0]])
    found = grid.widths_at(points)
    # half way across the seam twice, then the first and the second node a turn or two away
    across = 0.5 * (ring[2] + ring[0])
    np.testing.assert_allclose(found[:, 0], [ring[0], across, across, ring[1]], rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], [line[0], line[2], line[0], line[2]], rtol=1e-12)


# --- what is refused ----------------------------------------------------------------------------------

UNIT = Box([0.0], [1.0])
RING = Box([0.0], [1.0], periodic=[True])


@pytest.mark.parametrize(
    ("box", "axes", "message"),
    [
        (UNIT, [], r"one entry per axis \(1\); got 0"),
        (UNIT, [[0.0, 1.0], [0.0, 1.0]], r"one entry per axis \(1\); got 2"),
        (UNIT, [[0.0]], r"Axis 0 must have at least 2 nodes; got 1"),
        (UNIT, [[]], r"Axis 0 must have at least 2 nodes; got 0"),
        (RING, [[0.5]], r"Axis 0 must have at least 2 nodes; got 1"),
        (UNIT, [[[0.0, 1.0], [0.0, 1.0]]], r"must .*; got "),
        (UNIT, [[0.0, 0.5, 0.5, 1.0]], r"axis 0 must be increasing; got "),
        (UNIT, [[1.0, 0.0]], r"axis 0 must be increasing; got "),
        (UNIT, [[0.0, np.nan, 1.0]], r"axis 0 must be increasing; got "),
        (RING, [[0.5, 0.25]], r"axis 0 must be increasing; got "),
        (UNIT, [[0.1, 1.0]], r"axis 0 must reach from 0\.0 to 1\.0.*; got 0\.1 to 1\.0"),
        (UNIT, [[0.0, 0.9]], r"axis 0 must reach from 0\.0 to 1\.0.*; got 0\.0 to 0\.9"),
        (UNIT, [[-0.1, 1.0]], r"axis 0 must reach .*; got "),
        (UNIT, [[0.0, 1.1]], r"axis 0 must reach .*; got "),
        (RING, [[0.0, 0.5, 1.0]], r"periodic axis 0 must lie in \[0\.0, 1\.0\).*; got 0\.0 to 1\.0"),
        (RING, [[-0.1, 0.5]], r"periodic axis 0 must lie in .*; got "),
        (RING, [[0.5, 1.2]], r"periodic axis 0 must lie in .*; got "),
    ],
)
def test_bad_axes_are_refused_with_what_was_given(box: Box, axes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grid(box, axes)


def test_the_message_names_the_axis_that_is_wrong() -> None:
    with pytest.raises(ValueError, match="axis 2 must be increasing"):
        Grid(Box([0.0] * 3, [1.0] * 3), [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("counts", "powers", "message"),
    [
        ([3], [1.0, 1.0], r"`counts` must have one entry per axis \(2\); got 1"),
        ([3, 3, 3], [1.0, 1.0], r"`counts` must have one entry per axis \(2\); got 3"),
        ([3, 3], [1.0], r"`powers` must have one entry per axis \(2\); got 1"),
        ([3, 1], [1.0, 1.0], r"`counts` must be at least 2 on every axis; got \[3, 1\]"),
        ([0, 3], [1.0, 1.0], r"`counts` must be at least 2 on every axis; got \[0, 3\]"),
        ([3, 3], [1.0, 0.0], r"`powers` must be positive; got "),
        ([3, 3], [-1.0, 1.0], r"`powers` must be positive; got "),
        ([3, 3], [np.nan, 1.0], r"`powers` must be positive; got "),
        ([3, 3], [np.inf, 1.0], r"`powers` must be positive; got "),
    ],
)
def test_bad_counts_and_powers_are_refused(
    counts: Sequence[int], powers: Sequence[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Grid.spaced(Box([0.0, 0.0], [1.0, 1.0]), counts, powers)


def test_more_nodes_than_can_be_numbered_are_refused() -> None:
    with pytest.raises(ValueError, match=r"fewer than 2\^31 nodes; got 40 x 40 x 40 x 40 x 40 x 40"):
        Grid.uniform(Box([0.0] * 6, [1.0] * 6), [40] * 6)


@pytest.mark.parametrize("shape", [(2,), (4, 3), (4, 1), (2, 2, 2), ()])
def test_points_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = Grid.uniform(Box([0.0, 0.0], [1.0, 1.0]), [3, 3])
    with pytest.raises(ValueError, match=r"`points` must have shape \(n, 2\); got "):
        grid.locate(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["line", "torus"])
def test_points_that_are_not_finite_are_refused_with_their_row(bad: float, kind: str) -> None:
    grid = make_grid(2, "uniform", kind)
    points = points_in(grid, 6)
    points[3, 1] = bad
    points[5, 0] = bad
    with pytest.raises(ValueError, match=r"`points` must be finite; got .* in row 3"):
        grid.locate(points)
