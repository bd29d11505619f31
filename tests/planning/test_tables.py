from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from optimist.arrays import BoolArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import Prediction, TrueDynamics
from optimist.planning import Tables, optimistic, solve, tabulate
from optimist.task import Task
from tests.naive.backups import fold
from tests.naive.interpolation import weights_of_point
from tests.naive.random_tables import as_problem, small_tables

FloatArray = NDArray[np.float64]

BACKUPS = ["v-plain", "v-exact", "eq7", "eq7-exact", "eq7-printed"]
BOX = Box([0.0, -1.0], [4.0, 1.0], [False, True])
GRID = Grid.uniform(BOX, [5, 4])


def drift(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One control pushes along both axes."""
    return np.asarray(states + controls * np.array([1.0, 0.3]))


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return states[:, 0] - 0.1 * controls[:, 0] ** 2 + 0.01 * next_states[:, 1]


def at_right_edge(states: FloatArray) -> BoolArray:
    reached: BoolArray = states[:, 0] >= 4.0
    return reached


TASK = Task(BOX, np.array([-0.4, 0.0, 0.7]), reward, 0.9, 7.0, at_right_edge)


def predicted(task: Task = TASK, grid: Grid = GRID) -> Prediction:
    return TrueDynamics(drift, task.controls).predict_on(grid)


def uncertain(uncertainty: FloatArray) -> Prediction:
    return replace(predicted(), uncertainty=uncertainty)


def test_cells_and_fractions_are_the_weights_of_the_successors() -> None:
    weights = as_problem(tabulate(GRID, TASK, predicted())).weights
    for action, control in enumerate(TASK.controls):
        for node, state in enumerate(GRID.nodes):
            successor = drift(state[np.newaxis], control[np.newaxis])[0]
            expected = weights_of_point(GRID.axes, [None, 2.0], successor)
            np.testing.assert_allclose(weights[action, node], expected, atol=1e-6)


def test_rewards_are_those_of_the_task_and_zero_at_terminal_nodes() -> None:
    tables = tabulate(GRID, TASK, predicted())
    for node, state in enumerate(GRID.nodes):
        for action, control in enumerate(TASK.controls):
            next_state = drift(state[np.newaxis], control[np.newaxis])
            earned = reward(state[np.newaxis], control[np.newaxis], next_state)[0]
            expected = 0.0 if state[0] >= 4.0 else earned
            assert tables.rewards[node, action] == pytest.approx(expected, abs=1e-15)


def test_discount_is_zero_at_terminal_nodes_and_before_terminal_successors_only() -> None:
    tables = tabulate(GRID, TASK, predicted())
    for node, state in enumerate(GRID.nodes):
        for action, control in enumerate(TASK.controls):
            ends = state[0] >= 4.0 or state[0] + control[0] >= 4.0
            assert tables.discounts[node, action] == (0.0 if ends else 0.9)


@pytest.mark.parametrize("backup", BACKUPS)
def test_terminal_nodes_are_worth_zero(backup: str) -> None:
    plan = solve(tabulate(GRID, TASK, predicted()), backup=backup)
    np.testing.assert_array_equal(plan.q_values[at_right_edge(GRID.nodes)], 0.0)
    assert (plan.q_values[~at_right_edge(GRID.nodes)] != 0.0).any()


@pytest.mark.parametrize("backup", ["v-exact", "eq7-printed"])
def test_terminal_nodes_are_worth_zero_however_uncertain_the_model_is_there(backup: str) -> None:
    everywhere = np.full((TASK.n_actions, GRID.n_nodes), 0.5)
    plan = solve(tabulate(GRID, TASK, uncertain(everywhere)), backup=backup)
    np.testing.assert_array_equal(plan.q_values[at_right_edge(GRID.nodes)], 0.0)


def test_clipped_successors_are_counted_and_periodic_ones_are_not_clipped() -> None:
    nodes = GRID.nodes
    expected = sum(
        int(not 0.0 <= state[0] + control[0] <= 4.0) for state in nodes for control in TASK.controls
    )
    assert expected > 0
    assert tabulate(GRID, TASK, predicted()).n_clipped == expected


@pytest.mark.parametrize(("d", "bytes_each"), [(2, 28), (4, 36)])
def test_tables_take_four_bytes_per_axis_and_twenty_more(d: int, bytes_each: int) -> None:
    box = Box([0.0] * d, [1.0] * d)
    grid = Grid.uniform(box, [3] * d)
    task = Task(box, np.array([0.0, 1.0]), lambda s, u, n: np.zeros(len(s)), 0.9, 0.0)
    tables = tabulate(grid, task, TrueDynamics(lambda s, u: s, task.controls).predict_on(grid))
    arrays = tables.cells, tables.fractions, tables.rewards, tables.discounts
    assert sum(array.nbytes for array in arrays) == bytes_each * grid.n_nodes * 2
    with_selfs = bytes_each + tables.self_weights.itemsize
    assert with_selfs * grid.n_nodes * 2 <= 44 * grid.n_nodes * 2


def test_all_known_is_kept_as_none() -> None:
    assert tabulate(GRID, TASK, predicted()).uncertainty is None


def test_uncertainty_is_turned_to_node_before_action() -> None:
    given_uncertainty = np.random.default_rng(3).random((TASK.n_actions, GRID.n_nodes))
    tables = tabulate(GRID, TASK, uncertain(given_uncertainty))
    assert tables.uncertainty is not None
    inner = ~at_right_edge(GRID.nodes)
    np.testing.assert_array_equal(tables.uncertainty[inner], given_uncertainty.T[inner])


@settings(max_examples=30, deadline=None, database=None)
@given(tables=small_tables(uncertain=True))
def test_optimistic_is_the_mixture_folded(tables: Tables) -> None:
    folded, expected = optimistic(tables), fold(as_problem(tables))
    np.testing.assert_allclose(folded.rewards, expected.rewards, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(folded.discounts, expected.discounts, rtol=1e-14, atol=1e-14)
    assert folded.uncertainty is None
    assert optimistic(folded) is folded


@settings(max_examples=30, deadline=None, database=None)
@given(tables=small_tables())
def test_self_weights_are_the_diagonals(tables: Tables) -> None:
    np.testing.assert_allclose(tables.self_weights, as_problem(tables).selfs, rtol=2e-7, atol=1e-7)


def test_values_are_bounded_with_discount_one_only() -> None:
    assert tabulate(GRID, TASK, predicted()).value_bounds == (-np.inf, np.inf)
    task = replace(TASK, discount=1.0, max_steps=50, reward=lambda s, u, n: -1.0 - s[:, 0])
    tables = tabulate(GRID, task, predicted())
    worst = -1.0 - GRID.axes[0][-2]
    assert tables.value_bounds == (50 * worst, 7.0)


@pytest.mark.parametrize("shape", [(3, 20), (3, 20, 1), (20, 3, 2), (2, 20, 2)])
def test_successors_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    wrong = Prediction(np.zeros(shape), np.zeros((3, 20)))
    with pytest.raises(ValueError, match=r"`next_states` must have shape \(3, 20, 2\); got"):
        tabulate(GRID, TASK, wrong)


def test_successors_that_are_not_numbers_are_refused() -> None:
    prediction = predicted()
    prediction.next_states[1, 7, 0] = np.nan
    with pytest.raises(ValueError, match=r"must be finite; got \[nan"):
        tabulate(GRID, TASK, prediction)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (lambda s, u, n: np.full(len(s), np.nan), "must be finite; got nan"),
        (lambda s, u, n: np.full(len(s), np.inf), "must be finite; got inf"),
        (lambda s, u, n: s, r"must return one number per state, shape \(20,\); got shape \(20, 2\)"),
        (lambda s, u, n: -1.0, r"must return one number per state, shape \(20,\); got shape \(\)"),
    ],
)
def test_bad_rewards_are_refused(bad: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tabulate(GRID, replace(TASK, reward=bad), predicted())  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan])
def test_uncertainty_outside_zero_to_one_is_refused(value: float) -> None:
    uncertainty = np.zeros((3, 20))
    uncertainty[1, 4] = value
    with pytest.raises(ValueError, match=r"`uncertainty` must lie in \[0, 1\]; got"):
        tabulate(GRID, TASK, uncertain(uncertainty))


@pytest.mark.parametrize("shape", [(20, 3), (3, 1), (1, 20), (3,)])
def test_uncertainty_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`uncertainty` must .*; got"):
        tabulate(GRID, TASK, uncertain(np.full(shape, 0.5)))
