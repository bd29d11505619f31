"""Rules of uncertainty, against exact loops over nodes and transitions."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import KNOWNNESS, GPDynamics, fit_dynamics
from optimist.models.knownness import (
    Asked,
    Variances,
    all_known,
    cell_variance,
    gp_variance,
    visited_cells,
)
from optimist.transitions import Transitions
from tests.models.learning import of_kind, unsure
from tests.naive import gp as naive

PLANE = Box([-1.0, 0.0], [2.0, 8.0])
CYLINDER = Box([-1.0, 0.0], [2.0, 8.0], periodic=[False, True])
CONTROLS = np.array([[-1.0], [1.0], [2.0]])
both_boxes = pytest.mark.parametrize("box", [PLANE, CYLINDER], ids=["plane", "cylinder"])


def naive_cell(box: Box, state: FloatArray, cells: int) -> tuple[int, ...]:
    """In exact arithmetic."""
    places = []
    for axis, coordinate in enumerate(state):
        low, high = Fraction(float(box.low[axis])), Fraction(float(box.high[axis]))
        share = (Fraction(float(coordinate)) - low) / (high - low)
        if box.periodic[axis]:
            share %= 1
        places.append(min(max(floor(share * cells), 0), cells - 1))
    return tuple(places)


def naive_uncertainty(grid: Grid, action: int, seen: Transitions, cells: int) -> list[float]:
    visited = set()
    for state, taken in zip(seen.states, seen.actions, strict=True):
        if taken == action:
            visited.add(naive_cell(grid.box, state, cells))
    return [0.0 if naive_cell(grid.box, node, cells) in visited else 1.0 for node in grid.nodes]


def walk(box: Box, count: int, *, seed: int = 0, actions: int = 3, beyond: float = 0.0) -> Transitions:
    stream = np.random.default_rng(seed)
    margin = beyond * box.widths
    states = stream.uniform(box.low - margin, box.high + margin, size=(count, 2))
    next_states = states + 0.01 * np.sin(states)
    return Transitions.stepped(states, stream.integers(actions, size=count), next_states)


def fit(box: Box, seen: Transitions, knownness: str, *, joint: bool) -> GPDynamics:
    return fit_dynamics(seen, box, CONTROLS, of_kind(joint), knownness=knownness, fit_seed=0)


def test_the_rules_are_known_by_the_names_of_the_documentation() -> None:
    assert list(KNOWNNESS) == ["gp-variance", "cell-variance", "visited-cells", "none"]
    assert KNOWNNESS["gp-variance"].needs_variance
    assert KNOWNNESS["cell-variance"].needs_variance
    assert not KNOWNNESS["visited-cells"].needs_variance
    assert not KNOWNNESS["none"].needs_variance
    assert [rule.untried for rule in KNOWNNESS.values()] == [1.0, 1.0, 1.0, 0.0]


def test_gp_variance_is_the_largest_over_the_coordinates() -> None:
    grid = Grid.uniform(PLANE, [4, 3])
    variances = np.random.default_rng(0).uniform(size=(2, 12))
    found = gp_variance(grid, Asked(0, walk(PLANE, 5), Variances(variances, np.ones_like(variances))))
    assert found.tolist() == [max(pair) for pair in variances.T.tolist()]


@both_boxes
@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_gp_variance_of_a_model_is_the_largest_of_its_processes(box: Box, joint: bool) -> None:
    grid = Grid.uniform(box, [6, 5])
    model = fit(box, walk(box, 30), "gp-variance", joint=joint)
    uncertainty = unsure(model.predict_on(grid))
    for action, control in enumerate(CONTROLS):
        regressors = model.regressors[0 if joint else action]
        assert regressors is not None
        points = np.hstack([grid.nodes, np.tile(control, (30, 1))]) if joint else grid.nodes
        each = np.array([regressor.predict(points)[1] for regressor in regressors])
        np.testing.assert_allclose(uncertainty[action], each.max(axis=0), atol=1e-5)


@both_boxes
@pytest.mark.parametrize("cells", [1, 3, 10])
@pytest.mark.parametrize("beyond", [0.0, 0.3])
def test_visited_cells_are_those_of_a_loop_over_nodes_and_transitions(
    box: Box, cells: int, beyond: float
) -> None:
    grid = Grid.uniform(box, [7, 8])  # no node on the border of a cell but for exact ones
    seen = walk(box, 60, beyond=beyond)
    for action in range(3):
        found = visited_cells(grid, Asked(action, seen), per_axis=cells)
        assert found.tolist() == naive_uncertainty(grid, action, seen, cells)


def test_visited_cells_wrap_on_periodic_axes_only() -> None:
    # one step beyond the upper edge: the same place as just inside the lower one, if the axis is periodic
    state = np.array([[0.0, 8.1]])
    seen = Transitions.stepped(state, np.array([0]), state)
    for box, expected_cell in ((CYLINDER, 0), (PLANE, 9)):
        grid = Grid.uniform(box, [4, 32])
        known = visited_cells(grid, Asked(0, seen), per_axis=10) == 0.0
        cells = np.floor(grid.nodes[known][:, 1] / 0.8).clip(max=9)
        assert set(cells.tolist()) == {float(expected_cell)}


def test_nodes_on_the_upper_edge_belong_to_the_last_cell() -> None:
    state = np.array([[1.99, 7.99]])
    seen = Transitions.stepped(state, np.array([0]), state)
    grid = Grid.uniform(PLANE, [2, 2])
    assert visited_cells(grid, Asked(0, seen), per_axis=10).tolist() == [1.0, 1.0, 1.0, 0.0]


@both_boxes
def test_an_action_without_data_has_visited_no_cell(box: Box) -> None:
    grid = Grid.uniform(box, [5, 5])
    seen = walk(box, 500, actions=2)
    assert visited_cells(grid, Asked(0, seen), per_axis=3).tolist() == [0.0] * 25
    assert visited_cells(grid, Asked(2, seen), per_axis=3).tolist() == [1.0] * 25


@both_boxes
@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_a_model_that_counts_cells_tells_of_each_action_what_a_loop_tells(box: Box, joint: bool) -> None:
    grid = Grid.uniform(box, [8, 8])
    seen = walk(box, 40, actions=2)
    uncertainty = unsure(fit(box, seen, "visited-cells", joint=joint).predict_on(grid))
    for action in range(3):
        assert uncertainty[action].tolist() == naive_uncertainty(grid, action, seen, 10)


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_cells_left_over_an_edge_were_visited_all_the_same(joint: bool) -> None:
    inner = walk(PLANE, 20, actions=3)
    at_wall = np.array([[1.95, 4.1]])
    seen = Transitions.stepped(
        np.vstack([inner.states, at_wall]),
        np.append(inner.actions, 0),
        np.vstack([inner.next_states, [[2.0, 4.1]]]),
    )
    grid = Grid.uniform(PLANE, [7, 8])
    uncertainty = unsure(fit(PLANE, seen, "visited-cells", joint=joint).predict_on(grid))
    assert uncertainty[0].tolist() == naive_uncertainty(grid, 0, seen, 10)
    assert (
        uncertainty[0].reshape(7, 8)[6, 4] == 0.0
    )  # the node at (2, 4.57), in the cell of the state at the wall


@both_boxes
@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_with_none_nothing_is_unknown_tried_or_not(box: Box, joint: bool) -> None:
    grid = Grid.uniform(box, [4, 4])
    assert not all_known(grid, Asked(0, walk(box, 3))).any()
    uncertainty = unsure(fit(box, walk(box, 5, actions=2), "none", joint=joint).predict_on(grid))
    assert uncertainty.shape == (3, 16)
    assert not uncertainty.any()


@pytest.mark.parametrize("knownness", KNOWNNESS)
def test_the_rule_of_uncertainty_does_not_touch_the_successors(knownness: str) -> None:
    grid, seen = Grid.uniform(CYLINDER, [5, 4]), walk(CYLINDER, 30)
    expected = fit(CYLINDER, seen, "gp-variance", joint=False).predict_on(grid).next_states
    found = fit(CYLINDER, seen, knownness, joint=False).predict_on(grid).next_states
    np.testing.assert_array_equal(found, expected)


# --- the variance as far as the planner would notice ---------------------------------------------------


def stretched(grid: Grid, factors: FloatArray) -> Grid:
    """The same grid in other units."""
    box = Box(grid.box.low * factors, grid.box.high * factors, grid.box.periodic)
    return Grid(box, [axis * factor for axis, factor in zip(grid.axes, factors, strict=True)])


def some_variances(grid: Grid, priors: list[float] | FloatArray, *, seed: int = 0) -> Variances:
    normalised = np.random.default_rng(seed).uniform(size=(grid.n_dims, grid.n_nodes))
    return Variances(normalised, everywhere(grid, priors))


def everywhere(grid: Grid, priors: list[float] | FloatArray) -> FloatArray:
    """One prior variance for each axis, the same at all nodes.  [d, N]"""
    return np.repeat(np.asarray(priors, dtype=np.float64)[:, np.newaxis], grid.n_nodes, axis=1)


def of_cells(grid: Grid, variances: Variances) -> FloatArray:
    return cell_variance(grid, Asked(0, walk(PLANE, 3), variances))


def naive_cell_variance(grid: Grid, variances: Variances) -> list[float]:
    """max_i v_i s_i^2 / (s_i^2 + h_i^2), node by node, v_i the share of the prior variance that is left.

    h_i is the width of the cell, a twentieth of the axis at most.
    """
    expected = []
    for node in range(grid.n_nodes):
        places = np.unravel_index(node, grid.shape)
        products = []
        for axis in range(grid.n_dims):
            share, prior = float(variances.normalised[axis, node]), float(variances.priors[axis, node])
            width = min(float(grid.cell_widths(axis)[places[axis]]), float(grid.box.widths[axis]) / 20.0)
            squared = share * prior
            products.append(share * squared / (squared + width**2))
        expected.append(max(products))
    return expected


@both_boxes
def test_cell_variance_is_that_of_a_loop_over_nodes_and_coordinates(box: Box) -> None:
    uneven = Grid.spaced(box, [6, 5], [2.0, 1.5])
    fine = Grid.uniform(box, [31, 44])
    for grid in (Grid.uniform(box, [4, 7]), uneven, fine, Grid.spaced(box, [21, 35], [2.0, 1.5])):
        for priors in ([1.0, 1.0], [1e-3, 30.0], [4.0, 1e-8]):
            variances = some_variances(grid, priors)
            np.testing.assert_allclose(of_cells(grid, variances), naive_cell_variance(grid, variances))


@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.floats(-12.0, 12.0),
    other=st.floats(-12.0, 12.0),
    counts=st.tuples(st.integers(2, 6), st.integers(2, 6)),
)
def test_cell_variance_lies_between_nothing_and_the_variance(
    seed: int, scale: float, other: float, counts: tuple[int, int]
) -> None:
    grid = Grid.uniform(CYLINDER, counts)
    variances = some_variances(grid, [10.0**scale, 10.0**other], seed=seed)
    found = of_cells(grid, variances)
    assert (found >= 0.0).all()
    assert (found <= gp_variance(grid, Asked(0, walk(PLANE, 3), variances))).all()


@both_boxes
def test_cells_much_smaller_than_the_prior_spread_leave_the_variance_as_it_is(box: Box) -> None:
    grid = Grid.uniform(box, [5, 4])
    variances = some_variances(grid, (1e6 * box.widths) ** 2)
    expected = gp_variance(grid, Asked(0, walk(PLANE, 3), variances))
    np.testing.assert_allclose(of_cells(grid, variances), expected, rtol=1e-6)


@both_boxes
def test_cells_much_larger_than_the_prior_spread_make_everything_known(box: Box) -> None:
    grid = Grid.uniform(box, [5, 4])
    assert of_cells(grid, some_variances(grid, (1e-5 * box.widths) ** 2)).max() < 1e-6


@both_boxes
def test_cell_variance_grows_with_the_variance_and_with_finer_cells(box: Box) -> None:
    coarse, fine = Grid.uniform(box, [22, 21]), Grid.uniform(box, [43, 42])
    priors = (0.08 * box.widths) ** 2
    levels = [
        of_cells(coarse, Variances(np.full((2, 22 * 21), v), everywhere(coarse, priors)))
        for v in (0.0, 0.1, 0.5, 1.0)
    ]
    assert (np.diff(levels, axis=0) > 0.0).all()
    np.testing.assert_array_equal(levels[0], 0.0)
    finer = of_cells(fine, Variances(np.full((2, 43 * 42), 0.5), everywhere(fine, priors)))
    assert finer.min() > levels[2].max()


@both_boxes
def test_coarse_cells_count_as_a_twentieth_of_the_axis(box: Box) -> None:
    """Or ignorance would look harmless on a coarse grid."""
    priors = (0.08 * box.widths) ** 2
    expected = 0.5 * (0.5 * 0.08**2) / (0.5 * 0.08**2 + 0.05**2)
    for counts in ([2, 3], [5, 4], [15, 20]):
        grid = Grid.uniform(box, counts)
        found = of_cells(grid, Variances(np.full((2, grid.n_nodes), 0.5), everywhere(grid, priors)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@both_boxes
def test_cell_variance_does_not_depend_on_the_units(box: Box) -> None:
    grid = Grid.spaced(box, [6, 5], [1.5, 1.0])
    variances = some_variances(grid, (0.1 * box.widths) ** 2)
    for factors in (np.array([1000.0, 1.0]), np.array([1e-3, 60.0])):
        other = Variances(variances.normalised, variances.priors * (factors**2)[:, np.newaxis])
        np.testing.assert_allclose(of_cells(stretched(grid, factors), other), of_cells(grid, variances))


@both_boxes
@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_cell_variance_of_a_learned_model_does_not_depend_on_the_units(box: Box, joint: bool) -> None:
    grid, seen, factors = Grid.uniform(box, [6, 5]), walk(box, 30), np.array([1000.0, 0.25])
    scaled = stretched(grid, factors)
    in_other_units = Transitions.stepped(seen.states * factors, seen.actions, seen.next_states * factors)
    here = fit(box, seen, "cell-variance", joint=joint).predict_on(grid)
    there = fit(scaled.box, in_other_units, "cell-variance", joint=joint).predict_on(scaled)
    np.testing.assert_allclose(unsure(there), unsure(here), atol=1e-3)


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_cell_variance_does_not_depend_on_the_units_of_what_has_not_moved_yet(joint: bool) -> None:
    grid, seen, factors = Grid.uniform(PLANE, [6, 5]), walk(PLANE, 12), np.array([1000.0, 1e-3])
    scaled = stretched(grid, factors)
    resting = Transitions.stepped(seen.states, seen.actions, seen.states)
    in_other_units = Transitions.stepped(seen.states * factors, seen.actions, seen.states * factors)
    here = fit(PLANE, resting, "cell-variance", joint=joint).predict_on(grid)
    there = fit(scaled.box, in_other_units, "cell-variance", joint=joint).predict_on(scaled)
    np.testing.assert_allclose(unsure(there), unsure(here), atol=1e-3)


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_cell_variance_of_a_learned_model_is_made_of_its_processes(joint: bool) -> None:
    grid = Grid.spaced(CYLINDER, [6, 5], [2.0, 1.0])
    model = fit(CYLINDER, walk(CYLINDER, 30), "cell-variance", joint=joint)
    uncertainty = unsure(model.predict_on(grid))
    for action, control in enumerate(CONTROLS):
        regressors = model.regressors[0 if joint else action]
        assert regressors is not None
        points = np.hstack([grid.nodes, np.tile(control, (30, 1))]) if joint else grid.nodes
        shares = np.array([regressor.predict(points)[1] for regressor in regressors])
        # the prior, from the process itself: its variance before any data, in units of the axis
        priors = [
            naive.prior_under(regressor.inputs.features(points), regressor.posterior.hyperparameters)
            * regressor.target_scale**2
            for regressor in regressors
        ]
        expected = naive_cell_variance(grid, Variances(shares, np.array(priors)))
        np.testing.assert_allclose(uncertainty[action], expected, atol=1e-5)


def test_with_cell_variance_an_action_never_tried_is_wholly_unknown() -> None:
    grid = Grid.uniform(PLANE, [4, 3])
    seen = walk(PLANE, 30, actions=2)
    prediction = fit(PLANE, seen, "cell-variance", joint=False).predict_on(grid)
    np.testing.assert_array_equal(unsure(prediction)[2], 1.0)


@pytest.mark.parametrize(("n_dims", "per_axis"), [(1, 100), (2, 10), (3, 5), (4, 3)])
def test_by_default_there_are_about_a_hundred_cells_in_any_dimension(n_dims: int, per_axis: int) -> None:
    box = Box([0.0] * n_dims, [1.0] * n_dims)
    grid = Grid.uniform(box, [per_axis + 1] * n_dims)
    state = np.full((1, n_dims), 0.5 / per_axis)
    seen = Transitions.stepped(state, np.array([0]), state)
    for given_cells in (None, per_axis):
        known = grid.nodes[visited_cells(grid, Asked(0, seen), per_axis=given_cells) == 0.0]
        np.testing.assert_allclose(known, np.zeros((1, n_dims)), atol=0.0)
