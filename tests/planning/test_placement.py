"""Where nodes go: where the states are, against counting; how many an axis gets, against trying all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning.placement import allot, place, resized, roughness
from tests.test_grid import make_grid

BOX = Box([-2.0, 0.0, 10.0], [2.0, 6.0, 11.0], periodic=[False, True, False])
COUNTS = (21, 24, 16)


def states_in(box: Box, count: int, *, seed: int = 0, beyond: float = 0.0) -> FloatArray:
    stream = np.random.default_rng([seed, count])
    low, high = box.low - beyond * box.widths, box.high + beyond * box.widths
    return stream.uniform(low, high, size=(count, box.n_dims))


def assert_same_axes(found: Grid, expected: Grid, *, atol: float = 1e-12) -> None:
    assert found.shape == expected.shape
    for axis, same in zip(found.axes, expected.axes, strict=True):
        np.testing.assert_allclose(axis, same, atol=atol)


# --- places --------------------------------------------------------------------------------------------


def test_without_a_share_nodes_are_uniform_wherever_the_states_are() -> None:
    clustered = np.tile([1.9, 0.1, 10.5], (50, 1))
    assert_same_axes(place(BOX, COUNTS, clustered, 0.0), Grid.uniform(BOX, COUNTS))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_without_states_nodes_are_uniform(share: float) -> None:
    assert_same_axes(place(BOX, COUNTS, np.empty((0, 3)), share), Grid.uniform(BOX, COUNTS))


def test_states_outside_are_ignored() -> None:
    outside = np.tile([5.0, 1.0, 9.0], (30, 1))
    alone = place(BOX, COUNTS, outside, 0.8)
    uniform = Grid.uniform(BOX, COUNTS)
    for axis in (0, 2):
        np.testing.assert_allclose(alone.axes[axis], uniform.axes[axis], atol=1e-12)
    inside = np.tile([0.3, 1.0, 10.2], (20, 1))
    together = place(BOX, COUNTS, np.concatenate([inside, outside]), 0.8)
    assert_same_axes(together, place(BOX, COUNTS, inside, 0.8))


@settings(max_examples=40, deadline=None, database=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.0, 0.999),
    n_states=st.integers(1, 40),
    spread=st.floats(1e-6, 1.5),
    counts=st.tuples(*[st.integers(2, 60)] * 3),
)
def test_any_states_make_a_legal_grid_from_edge_to_edge(
    seed: int, share: float, n_states: int, spread: float, counts: tuple[int, int, int]
) -> None:
    stream = np.random.default_rng(seed)
    centre = stream.uniform(BOX.low, BOX.high)
    states = centre + spread * BOX.widths * stream.normal(size=(n_states, 3))
    grid = place(BOX, counts, states, share)  # `Grid` refuses what is none
    assert grid.shape == counts
    assert grid.box is BOX
    for axis in (0, 2):
        assert grid.axes[axis][0] == BOX.low[axis]
        assert grid.axes[axis][-1] == BOX.high[axis]
    turning = grid.axes[1]
    assert turning[0] == 0.0
    assert turning[-1] < 6.0
    again = place(BOX, counts, states, share)
    for nodes, same in zip(grid.axes, again.axes, strict=True):
        np.testing.assert_array_equal(nodes, same)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("centre", [0.05, 0.3, 0.5, 0.93])
def test_nodes_are_where_the_states_are(periodic: bool, centre: float) -> None:
    """About the share of them within a few deviations of the kernel, and the uniform rest."""
    box = Box([0.0], [1.0], [periodic])
    states = centre + 0.02 * np.random.default_rng(0).uniform(-1.0, 1.0, (400, 1))
    for share in (0.5, 0.8, 0.98):
        nodes = place(box, [201], states, share).axes[0]
        gaps = np.abs(box.displacement(np.full((len(nodes), 1), centre), nodes[:, np.newaxis])[:, 0])
        near = float((gaps < 0.06).mean())
        width = min(centre + 0.06, 1.0) - max(centre - 0.06, 0.0) if not periodic else 0.12
        assert near == pytest.approx(share + (1.0 - share) * width, abs=0.02)


def test_nodes_follow_two_crowds_in_proportion() -> None:
    box = Box([0.0], [1.0])
    stream = np.random.default_rng(1)
    states = np.concatenate([stream.normal(0.2, 0.01, 300), stream.normal(0.7, 0.01, 100)])[:, np.newaxis]
    nodes = place(box, [401], states, 0.95).axes[0]
    left, right = (np.abs(nodes - 0.2) < 0.1).sum(), (np.abs(nodes - 0.7) < 0.1).sum()
    assert left / right == pytest.approx((0.95 * 0.75 + 0.01) / (0.95 * 0.25 + 0.01), rel=0.03)


def test_each_axis_goes_by_its_own_coordinate() -> None:
    states = states_in(BOX, 500)
    states[:, 0] = 1.5
    grid, uniform = place(BOX, COUNTS, states, 0.9), Grid.uniform(BOX, COUNTS)
    assert (np.abs(grid.axes[0] - 1.5) < 0.2).mean() > 0.8
    for axis in (1, 2):
        spacing = float(np.diff(uniform.axes[axis])[0])
        np.testing.assert_allclose(grid.axes[axis], uniform.axes[axis], atol=1.5 * spacing)


def test_a_crowd_across_the_seam_is_one_crowd() -> None:
    box = Box([0.0], [6.0], [True])
    around = np.array([[5.9], [5.95], [6.05], [0.1], [-0.05], [6.0]])
    nodes = place(box, [100], around, 0.9).axes[0]
    assert (np.abs(box.displacement(np.zeros((100, 1)), nodes[:, np.newaxis])) < 0.5).mean() > 0.85


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_a_share_outside_zero_to_one_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"`share` must be in \[0, 1\); got"):
        place(BOX, COUNTS, states_in(BOX, 5), share)


# --- resized -------------------------------------------------------------------------------------------


def test_resized_to_its_own_size_a_grid_is_itself() -> None:
    grid = place(BOX, COUNTS, states_in(BOX, 30), 0.8)
    assert_same_axes(resized(grid, grid.shape), grid)


def test_resized_a_uniform_grid_is_uniform() -> None:
    assert_same_axes(resized(Grid.uniform(BOX, COUNTS), (7, 11, 40)), Grid.uniform(BOX, (7, 11, 40)))


def test_resized_every_second_node_is_thinned() -> None:
    grid = place(BOX, (21, 24, 17), states_in(BOX, 30), 0.8)
    assert_same_axes(resized(grid, (11, 12, 9)), grid.thinned())


# --- allotment -----------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None, database=None)
@given(
    weights=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6),
    more=st.floats(1.0, 2000.0),
    least=st.integers(2, 6),
)
def test_an_allotment_keeps_to_the_budget_and_to_the_least(
    weights: list[float], more: float, least: int
) -> None:
    budget = int(least ** len(weights) * more)
    counts = allot(np.array(weights), budget, least=least)
    assert len(counts) == len(weights)
    assert min(counts) >= least
    assert np.prod(counts, dtype=float) <= budget
    order = np.argsort(weights)
    assert (np.diff(np.array(counts)[order]) >= 0).all()
    # nothing is left over: with one more on every axis that has more than the least it is too many
    grown = [count + 1 if count > least else count for count in counts]
    if max(counts) > least:
        assert np.prod(grown, dtype=float) > budget


@pytest.mark.parametrize(
    ("weights", "budget", "expected"),
    [
        ((1.0, 1.0), 10_000, (100, 100)),
        ((2.0, 1.0), 20_000, (200, 100)),
        ((1.0, 3.0, 1.0), 3 * 20**3, (20, 60, 20)),
        ((1.0, 1e-9), 1000, (200, 5)),
        ((1.0, 1.0), 25, (5, 5)),
        ((5.0,), 333, (333,)),
    ],
)
def test_an_allotment_is_proportional(
    weights: tuple[float, ...], budget: int, expected: tuple[int, ...]
) -> None:
    np.testing.assert_allclose(allot(np.array(weights), budget), expected, atol=1)


def test_a_budget_below_the_least_is_refused() -> None:
    with pytest.raises(ValueError, match="`budget` must be at least 125; got 124"):
        allot(np.ones(3), 124)


# --- roughness -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_linear_values_need_nothing(n_dims: int) -> None:
    grid = Grid.uniform(Box([-1.0] * n_dims, [2.0] * n_dims), [7, 5, 6][:n_dims])
    values = 4.0 + grid.nodes @ np.array([3.0, -2.0, 0.5])[:n_dims]
    assert roughness(grid, values).max() < 1e-6


def test_the_axis_that_bends_needs_more() -> None:
    grid = make_grid(3, "uniform", "line")
    for bent in range(3):
        scaled = (grid.nodes - grid.box.low) / grid.box.widths
        needs = roughness(grid, 5.0 * scaled[:, bent] ** 2 + scaled.sum(axis=1))
        assert needs.argmax() == bent
        assert needs[bent] > 1e3 * np.delete(needs, bent).max()


def test_the_need_of_an_axis_is_that_of_a_loop() -> None:
    grid = make_grid(2, "uniform", "mixed")  # the first turns
    values = np.random.default_rng(0).normal(size=grid.shape)
    rows, columns = grid.shape
    bends = [
        abs(values[(i + 1) % rows, j] - 2.0 * values[i, j] + values[i - 1, j])
        for i in range(rows)
        for j in range(columns)
    ]
    across = [
        abs(values[i, j + 1] - 2.0 * values[i, j] + values[i, j - 1])
        for i in range(rows)
        for j in range(1, columns - 1)
    ]
    expected = [rows * np.mean(bends) ** 0.5, columns * np.mean(across) ** 0.5]
    np.testing.assert_allclose(roughness(grid, values.reshape(-1)), expected, rtol=1e-12)


def test_the_need_does_not_depend_much_on_how_many_nodes_there_are() -> None:
    """Of a parabola: n sqrt(2 (w / (n - 1))^2) goes to sqrt(2) w."""
    box = Box([-1.0], [1.0])
    needs = []
    for count in (21, 41, 81):
        grid = Grid.uniform(box, [count])
        needs.append(float(roughness(grid, grid.nodes[:, 0] ** 2)[0]))
    np.testing.assert_allclose(needs, 2.0 * 2.0**0.5, rtol=0.06)
