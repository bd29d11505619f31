"""A model seen through the grid, against naive loops, exact dynamics and what theory says."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import Prediction, TrueDynamics
from optimist.planning import (
    Flow,
    Stopping,
    Tables,
    hold,
    optimistic,
    solve,
    tabulate,
    tabulate_held,
)
from optimist.task import Task
from tests.naive import flow as naive
from tests.test_grid import make_grid

GRIDS = [
    pytest.param(d, spacing, kind, id=f"{d}d-{spacing}-{kind}")
    for d, spacing, kind in product(range(1, 5), ("uniform", "random"), ("line", "mixed", "torus"))
]
CONTROLS = np.array([[-1.0], [0.25], [2.0]])


def anything(grid: Grid, *, n_actions: int = 3, seed: int = 0, unsure: bool = True) -> Prediction:
    """Successors all over the place: beyond the box, across the seam; and any uncertainty."""
    stream = np.random.default_rng([seed, grid.n_nodes])
    moves = stream.uniform(-0.45, 0.45, size=(n_actions, grid.n_nodes, grid.n_dims)) * grid.box.widths
    uncertainty = stream.uniform(size=(n_actions, grid.n_nodes)) if unsure else np.zeros(moves.shape[:2])
    return Prediction(grid.box.wrap(grid.nodes + moves), uncertainty)


def states_around(grid: Grid, count: int, *, seed: int = 1, beyond: float = 0.2) -> FloatArray:
    stream = np.random.default_rng([seed, grid.n_dims])
    margin = beyond * grid.box.widths
    return stream.uniform(grid.box.low - margin, grid.box.high + margin, size=(count, grid.n_dims))


def assert_same_place(box: Box, found: FloatArray, expected: FloatArray) -> None:
    """Equal, where the two ends of a periodic axis are one place."""
    np.testing.assert_allclose(box.displacement(expected, found), 0.0, atol=1e-11)


def multilinear(grid: Grid) -> tuple[FloatArray, FloatArray]:
    """Coefficients of displacements that are multilinear in the axes that do not turn.  [corners, d]"""
    stream = np.random.default_rng([7, grid.n_dims])
    exponents = np.array(list(product((0, 1), repeat=grid.n_dims)))
    exponents = exponents[(exponents[:, grid.box.periodic] == 0).all(axis=1)]
    return exponents, stream.uniform(-0.05, 0.05, size=(len(exponents), grid.n_dims)) * grid.box.widths


def moved_multilinearly(grid: Grid, states: FloatArray, controls: FloatArray) -> FloatArray:
    exponents, coefficients = multilinear(grid)
    places = (states - grid.box.low) / grid.box.widths
    terms = (places[:, np.newaxis, :] ** exponents).prod(axis=2)
    return grid.box.wrap(states + (terms @ coefficients) * controls[:, :1])


# --- the flow -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_at_the_nodes_a_step_is_the_prediction(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction = anything(grid)
    flow = Flow.of(grid, prediction)
    assert flow.n_actions == 3
    for action in range(3):
        next_states, uncertainty = flow.step(grid.nodes, action)
        assert_same_place(grid.box, next_states, prediction.next_states[action])
        np.testing.assert_allclose(uncertainty, prediction.uncertainty[action], atol=1e-13)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_a_step_from_anywhere_is_the_naive_one(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction = anything(grid)
    flow = Flow.of(grid, prediction)
    for state in states_around(grid, 12):
        for action in range(3):
            expected, unsure = naive.step(grid, prediction, state, action)
            next_states, uncertainty = flow.step(state[np.newaxis], action)
            assert_same_place(grid.box, next_states[0], expected)
            assert uncertainty[0] == pytest.approx(unsure, abs=1e-12)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_multilinear_displacements_are_followed_exactly(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)

    def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
        return moved_multilinearly(grid, states, controls)

    flow = Flow.of(grid, TrueDynamics(dynamics, CONTROLS).predict_on(grid))
    states = states_around(grid, 50, beyond=0.0)
    for action, control in enumerate(CONTROLS):
        next_states, uncertainty = flow.step(states, action)
        assert_same_place(grid.box, next_states, dynamics(states, np.tile(control, (50, 1))))
        np.testing.assert_array_equal(uncertainty, 0.0)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_all_actions_at_once_are_each_action_alone(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 20)
    every, unsure = flow.step_all(states)
    for action in range(3):
        alone, uncertainty = flow.step(states, action)
        np.testing.assert_array_equal(every.reshape(20, 3, n_dims)[:, action], alone)
        np.testing.assert_array_equal(unsure.reshape(20, 3)[:, action], uncertainty)
        np.testing.assert_array_equal(flow.uncertainty(states)[:, action], uncertainty)


@pytest.mark.parametrize("spacing", ["uniform", "random"])
def test_periodic_coordinates_end_inside_and_others_may_leave(spacing: str) -> None:
    grid = make_grid(3, spacing, "mixed")
    flow = Flow.of(grid, anything(grid))
    next_states, _ = flow.step(states_around(grid, 400), 0)
    assert (next_states[:, 0] >= grid.box.low[0]).all()
    assert (next_states[:, 0] < grid.box.high[0]).all()
    assert (next_states[:, 1] > grid.box.high[1]).any()


def test_a_turn_goes_the_short_way_across_the_seam() -> None:
    grid = Grid.uniform(Box([0.0], [360.0], [True]), [8])
    turned = (grid.nodes + 40.0) % 360.0
    flow = Flow.of(grid, Prediction(turned[np.newaxis], np.zeros((1, 8))))
    next_states, _ = flow.step(np.array([[350.0], [330.0], [10.0], [-10.0], [710.0]]), 0)
    np.testing.assert_allclose(next_states[:, 0], [30.0, 10.0, 50.0, 30.0, 30.0], atol=1e-10)


def test_states_whole_turns_away_are_the_same_states() -> None:
    grid = make_grid(2, "random", "torus")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 50, beyond=0.0)
    for turns in (-2.0, 1.0, 3.0):
        away, unsure = flow.step(states + turns * grid.box.widths, 1)
        here, sure = flow.step(states, 1)
        assert_same_place(grid.box, away, here)
        np.testing.assert_allclose(unsure, sure, atol=1e-11)


def test_outside_the_box_displacements_are_those_at_its_edge() -> None:
    grid = make_grid(2, "random", "line")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 60, beyond=0.5)
    edge = grid.box.clip(states)
    (out, unsure), (on, sure) = flow.step(states, 2), flow.step(edge, 2)
    np.testing.assert_allclose(out - states, on - edge, atol=1e-12)
    np.testing.assert_allclose(unsure, sure, atol=1e-13)


def test_uncertainty_stays_between_that_of_the_nodes() -> None:
    grid = make_grid(4, "random", "mixed")
    prediction = anything(grid)
    found = Flow.of(grid, prediction).uncertainty(states_around(grid, 500))
    assert (found >= prediction.uncertainty.min(axis=1) - 1e-12).all()
    assert (found <= prediction.uncertainty.max(axis=1) + 1e-12).all()


def test_no_states_lead_nowhere() -> None:
    grid = make_grid(2, "uniform", "line")
    next_states, uncertainty = Flow.of(grid, anything(grid)).step(np.empty((0, 2)), 0)
    assert next_states.shape == (0, 2)
    assert uncertainty.shape == (0,)


def test_states_are_left_as_they_were() -> None:
    grid = make_grid(2, "uniform", "torus")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 10)
    before = states.copy()
    flow.step(states, 0)
    flow.step_all(states)
    np.testing.assert_array_equal(states, before)


def test_states_that_are_not_contiguous_are_followed_like_others() -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 10)
    strided = np.asfortranarray(states)[::2]
    np.testing.assert_array_equal(flow.step(strided, 1)[0], flow.step(states[::2].copy(), 1)[0])


@pytest.mark.parametrize("shape", [(3, 15), (3, 15, 1), (3, 14, 2), (15, 3, 2)])
def test_successors_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")  # 5 x 3
    with pytest.raises(ValueError, match=r"`next_states` must have shape .*; got"):
        Flow.of(grid, Prediction(np.zeros(shape), np.zeros((3, 15))))


@pytest.mark.parametrize("shape", [(15, 3), (3, 1), (1, 15), (2, 15), (3,)])
def test_uncertainty_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=r"`uncertainty` must .*; got"):
        Flow.of(grid, Prediction(np.zeros((3, 15, 2)), np.full(shape, 0.5)))


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan])
def test_uncertainty_outside_zero_to_one_is_refused(value: float) -> None:
    grid = make_grid(2, "uniform", "line")
    prediction = anything(grid)
    prediction.uncertainty[1, 4] = value
    with pytest.raises(ValueError, match=r"`uncertainty` must lie in \[0, 1\]; got"):
        Flow.of(grid, prediction)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_successors_that_are_not_numbers_are_refused(value: float) -> None:
    grid = make_grid(2, "uniform", "line")
    prediction = anything(grid)
    prediction.next_states[1, 4, 0] = value
    task = Task(grid.box, CONTROLS, lambda s, u, n: -np.ones(len(s)), 0.9, 0.0)
    with pytest.raises(ValueError, match="must be finite; got"):
        tabulate_held(Flow.of(grid, prediction), task, 1)


@pytest.mark.parametrize("shape", [(2,), (4, 3), (4, 1), (2, 2, 2)])
def test_states_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        flow.step(np.zeros(shape), 0)
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        flow.step_all(np.zeros(shape))


@pytest.mark.parametrize("action", [3, 1000, -1])
def test_an_action_there_is_not_is_refused(action: int) -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    with pytest.raises((ValueError, IndexError), match=str(action)):
        flow.step(grid.nodes, action)


# --- tables of held controls --------------------------------------------------------------------------


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    first, last = states[:, 0], next_states[:, -1]
    return -1.0 - 0.1 * first**2 + 0.05 * np.sin(last) + 0.2 * controls[:, 0]


def task_on(grid: Grid, *, discount: float = 0.9, max_steps: int = 500, share: float = 0.45) -> Task:
    """Terminal beyond a share of the last axis; V_MAX above 0, where nothing else is."""
    limit = grid.box.low[-1] + share * grid.box.widths[-1]

    def ended(states: FloatArray) -> BoolArray:
        beyond: BoolArray = states[:, -1] > limit
        return beyond

    return Task(grid.box, CONTROLS, cost, discount, 3.0, ended, max_steps)


def places(tables: Tables) -> tuple[FloatArray, FloatArray]:
    """Dense weights of the successors where something follows; rewards and discounts are compared apart."""
    shape = tables.cells.shape
    vertices, weights = tables.grid.expand(
        tables.cells.reshape(-1), tables.fractions.reshape(-1, tables.grid.n_dims).astype(np.float64)
    )
    dense = np.zeros((len(vertices), tables.grid.n_nodes))
    np.add.at(dense, (np.arange(len(vertices))[:, np.newaxis], vertices), weights)
    return dense.reshape(*shape, -1), tables.discounts


def assert_same_tables(found: Tables, expected: Tables) -> None:
    np.testing.assert_allclose(found.rewards, expected.rewards, atol=1e-11)
    np.testing.assert_allclose(found.discounts, expected.discounts, atol=1e-12)
    (weights, discounts), (others, _) = places(found), places(expected)
    alive = discounts > 0.0
    np.testing.assert_allclose(weights[alive], others[alive], atol=1e-5)
    assert found.uncertainty is None


@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_held_for_one_step_is_the_ordinary_table_folded(
    n_dims: int, spacing: str, kind: str, unsure: bool
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction, task = anything(grid, unsure=unsure), task_on(grid)
    found, expected = tabulate_held(Flow.of(grid, prediction), task, 1), tabulate(grid, task, prediction)
    assert task.terminal(grid.nodes).any()
    assert_same_tables(found, optimistic(expected))
    assert found.n_clipped == expected.n_clipped
    assert found.optimistic_value == expected.optimistic_value
    assert found.value_bounds == expected.value_bounds


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_held_steps_are_those_of_a_loop_over_nodes(n_dims: int, spacing: str, kind: str, steps: int) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction, task = anything(grid, seed=steps), task_on(grid)
    tables = tabulate_held(Flow.of(grid, prediction), task, steps)
    nodes, (weights, _) = grid.nodes, places(tables)
    for node in range(0, grid.n_nodes, max(1, grid.n_nodes // 12)):
        for action in range(3):
            path = naive.held(grid, prediction, task, nodes[node], action, steps)
            assert tables.rewards[node, action] == pytest.approx(path.reward, abs=1e-10)
            assert tables.discounts[node, action] == pytest.approx(path.discount, abs=1e-11)
            if path.discount > 0.0:
                cells, fractions, _ = grid.locate(path.end[np.newaxis])
                vertices, expected = grid.expand(cells, fractions)
                dense = np.zeros(grid.n_nodes)
                np.add.at(dense, vertices[0], expected[0])
                np.testing.assert_allclose(weights[node, action], dense, atol=1e-5)


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("steps", [2, 4])
@pytest.mark.parametrize("spacing", ["uniform", "random"])
def test_holding_exact_dynamics_is_holding_their_interpolation_where_that_is_exact(
    spacing: str, steps: int, discount: float
) -> None:
    grid = make_grid(3, spacing, "mixed")

    # a box with room around it: whatever is moved stays inside, where the interpolation is exact
    def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
        return inwards(grid.box, states, controls)

    task = task_on(grid, discount=discount, share=0.9, max_steps=20)
    exact_task, exact = hold(task, dynamics, steps)
    expected = tabulate(grid, exact_task, TrueDynamics(exact, CONTROLS).predict_on(grid))
    flow = Flow.of(grid, TrueDynamics(dynamics, CONTROLS).predict_on(grid))
    found = tabulate_held(flow, task, steps)
    alive = ~task.terminal(grid.nodes)
    assert 0 < alive.sum() < grid.n_nodes
    np.testing.assert_allclose(found.rewards, expected.rewards, atol=1e-10)
    np.testing.assert_allclose(found.discounts, expected.discounts, atol=1e-12)
    (weights, discounts), (others, _) = places(found), places(expected)
    np.testing.assert_allclose(weights[discounts > 0.0], others[discounts > 0.0], atol=1e-5)
    assert expected.n_clipped == found.n_clipped == 0


def inwards(box: Box, states: FloatArray, controls: FloatArray) -> FloatArray:
    """Towards a place in the box that depends on the control, linearly; turning on by a fixed angle."""
    targets = box.low + box.widths * (0.3 + 0.2 * (controls[:, :1] + 1.0))
    moved = states + 0.25 * (targets - states)
    turned = states + 0.1 * box.widths * controls[:, :1]
    return box.wrap(np.where(box.periodic, turned, moved))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("discount", [0.95, 1.0])
def test_where_all_is_unknown_everything_has_the_optimistic_value(steps: int, discount: float) -> None:
    grid = make_grid(2, "random", "mixed")
    prediction = replace(anything(grid), uncertainty=np.ones((3, grid.n_nodes)))
    task = task_on(grid, discount=discount)
    plan = solve(tabulate_held(Flow.of(grid, prediction), task, steps))
    alive = ~task.terminal(grid.nodes)
    np.testing.assert_allclose(plan.q_values[alive], 3.0, atol=1e-12)
    np.testing.assert_array_equal(plan.q_values[~alive], 0.0)
    assert plan.converged


def test_knowing_less_never_makes_a_plan_less_optimistic() -> None:
    grid = make_grid(2, "uniform", "mixed")
    prediction, task = anything(grid, unsure=False), task_on(grid)
    less = replace(prediction, uncertainty=anything(grid).uncertainty)
    fine = Stopping(1e-10, 5000)
    for steps in (1, 4):
        surely = solve(tabulate_held(Flow.of(grid, prediction), task, steps), stopping=fine).q_values
        unsure = solve(tabulate_held(Flow.of(grid, less), task, steps), stopping=fine).q_values
        assert (unsure >= surely - 1e-8).all()
        assert unsure.max() <= 3.0 + 1e-8


def test_paths_may_end_anywhere_on_the_way() -> None:
    """Closed form: x grows by 1 a step at cost 1, the end is beyond 5.5; three steps at a time."""
    box = Box([0.0], [10.0])
    grid = Grid.uniform(box, [11])
    task = Task(box, np.array([1.0]), lambda s, u, n: -np.ones(len(s)), 0.5, 0.0, lambda s: s[:, 0] > 5.5)
    flow = Flow.of(grid, TrueDynamics(lambda s, u: s + u, task.controls).predict_on(grid))
    tables = tabulate_held(flow, task, 3)
    expected_rewards = [-1.75] * 4 + [-1.5, -1.0] + [0.0] * 5
    np.testing.assert_allclose(tables.rewards[:, 0], expected_rewards, atol=1e-12)
    np.testing.assert_allclose(tables.discounts[:, 0], [0.125] * 3 + [0.0] * 8, atol=1e-12)
    values = solve(tables, stopping=Stopping(1e-12, 500)).q_values[:, 0]
    steps_to_go = np.array([6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(values, -2.0 * (1.0 - 0.5**steps_to_go), atol=1e-6)


@settings(max_examples=25)
@given(
    c=st.floats(0.0, 1.0), reward=st.floats(-5.0, 0.0), discount=st.floats(0.1, 0.99), steps=st.integers(1, 6)
)
def test_a_state_that_leads_to_itself_has_its_closed_form(
    c: float, reward: float, discount: float, steps: int
) -> None:
    """Q = (1 - c) (r + g Q) + 2 c whatever the hold."""
    box = Box([0.0], [1.0])
    grid = Grid.uniform(box, [3])
    task = Task(box, np.array([0.0]), lambda s, u, n: np.full(len(s), reward), discount, 2.0)
    still = Prediction(grid.nodes[np.newaxis], np.full((1, 3), c))
    plan = solve(tabulate_held(Flow.of(grid, still), task, steps), stopping=Stopping(1e-12, 5000))
    expected = ((1.0 - c) * reward + 2.0 * c) / (1.0 - (1.0 - c) * discount)
    np.testing.assert_allclose(plan.q_values, expected, rtol=1e-6, atol=1e-6)


def test_values_are_bounded_with_discount_one_only() -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    assert tabulate_held(flow, task_on(grid), 4).value_bounds == (-np.inf, np.inf)
    flat = replace(task_on(grid, discount=1.0, max_steps=40), reward=lambda s, u, n: np.full(len(s), -1.0))
    known = Flow.of(grid, anything(grid, unsure=False))
    for steps in (1, 4):
        low, high = tabulate_held(known, flat, steps).value_bounds
        assert low == pytest.approx(-40.0)
        assert high == 3.0


def test_held_for_one_step_values_are_bounded_as_in_the_ordinary_table() -> None:
    grid = make_grid(2, "uniform", "line")
    prediction, task = anything(grid, unsure=False), task_on(grid, discount=1.0, max_steps=40)
    expected = tabulate(grid, task, prediction).value_bounds
    assert tabulate_held(Flow.of(grid, prediction), task, 1).value_bounds == pytest.approx(expected)


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_undiscounted_values_of_what_never_ends_are_the_lower_bound(steps: int) -> None:
    """Nothing moves, every step costs 1, an episode lasts 42 steps: -42 whatever is held."""
    box = Box([0.0], [1.0])
    grid = Grid.uniform(box, [5])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 1.0, 0.0, lambda s: s[:, 0] > 2.0, 42)
    flow = Flow.of(grid, TrueDynamics(lambda s, u: s, task.controls).predict_on(grid))
    plan = solve(tabulate_held(flow, task, steps))
    np.testing.assert_allclose(plan.q_values, -42.0)


def test_undiscounted_values_are_not_cut_where_an_early_end_costs_much() -> None:
    """Falling at once costs 10 and ends it; the bound must leave room for that, however long the hold."""
    box = Box([0.0], [1.0])
    grid = Grid.uniform(box, [5])
    task = Task(
        box, np.array([0.0]), lambda s, u, n: np.full(len(s), -10.0), 1.0, 0.0, lambda s: s[:, 0] > 1.0, 8
    )
    flow = Flow.of(grid, TrueDynamics(lambda s, u: s + 2.0, task.controls).predict_on(grid))
    plan = solve(tabulate_held(flow, task, 8))
    np.testing.assert_allclose(plan.q_values, -10.0)


@pytest.mark.parametrize("steps", [0, -1, 501])
def test_holding_for_less_than_one_step_or_more_than_an_episode_is_refused(steps: int) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=f"`hold` must be a whole number from 1 to 500; got {steps}"):
        tabulate_held(Flow.of(grid, anything(grid)), task_on(grid), steps)


@pytest.mark.parametrize("n_actions", [2, 4])
def test_a_flow_of_other_actions_than_the_task_is_refused(n_actions: int) -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid, n_actions=n_actions))
    with pytest.raises(ValueError, match=rf"3.*; got.*{n_actions}"):
        tabulate_held(flow, task_on(grid), 1)


def test_a_flow_over_other_axes_than_the_task_is_refused() -> None:
    grid = make_grid(3, "uniform", "line")
    with pytest.raises(ValueError, match=r"2.*; got.*3"):
        tabulate_held(Flow.of(grid, anything(grid)), task_on(make_grid(2, "uniform", "line")), 1)
