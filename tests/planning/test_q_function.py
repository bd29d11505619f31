from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from optimist.arrays import BoolArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import Lookahead, QFunction
from optimist.task import Task
from tests.naive.episodes import best_sequences

FloatArray = NDArray[np.float64]


def random_q_function(dims: int, n_actions: int, seed: int = 0) -> QFunction:
    stream = np.random.default_rng([seed, dims, n_actions])
    grid = Grid.spaced(Box([-1.0] * dims, [2.0] * dims), [4, 3, 5, 3][:dims], [1.0, 1.5, 2.0, 1.0][:dims])
    return QFunction(grid, stream.normal(size=(grid.n_nodes, n_actions)))


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("n_actions", [1, 3])
def test_nodes_are_given_back_exactly(dims: int, n_actions: int) -> None:
    q = random_q_function(dims, n_actions)
    np.testing.assert_array_equal(q(q.grid.nodes), q.q_values)
    np.testing.assert_array_equal(q.value(q.grid.nodes), q.q_values.max(axis=1))
    np.testing.assert_array_equal(q.greedy(q.grid.nodes), q.q_values.argmax(axis=1))


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
def test_interpolation_agrees_with_scipy(dims: int) -> None:
    from scipy.interpolate import RegularGridInterpolator

    q = random_q_function(dims, 3)
    points = np.random.default_rng(1).uniform(-1.0, 2.0, (200, dims))
    oracle = RegularGridInterpolator(q.grid.axes, q.q_values.reshape(*q.grid.shape, 3))(points)
    np.testing.assert_allclose(q(points), oracle, atol=1e-12)
    np.testing.assert_array_equal(q.greedy(points), oracle.argmax(axis=1))
    best = q.q_values.max(axis=1).reshape(q.grid.shape)
    np.testing.assert_allclose(
        q.value(points), RegularGridInterpolator(q.grid.axes, best)(points), atol=1e-12
    )


def test_a_periodic_axis_is_an_unwrapped_one() -> None:
    from scipy.interpolate import RegularGridInterpolator

    grid = Grid.uniform(Box([0.0, -1.0], [1.0, 1.0], [False, True]), [3, 6])
    stream = np.random.default_rng(2)
    q = QFunction(grid, stream.normal(size=(grid.n_nodes, 2)))
    angles = np.concatenate([grid.axes[1] - 2.0, grid.axes[1], grid.axes[1] + 2.0, [3.0]])
    table = q.q_values.reshape(3, 6, 2)
    unwrapped = np.concatenate([table, table, table, table[:, :1]], axis=1)
    points = np.column_stack([stream.uniform(0.0, 1.0, 200), stream.uniform(-3.0, 3.0, 200)])
    oracle = RegularGridInterpolator((grid.axes[0], angles), unwrapped)(points)
    np.testing.assert_allclose(q(points), oracle, atol=1e-12)


@settings(max_examples=40, deadline=None, database=None)
@given(seed=st.integers(0, 2**32 - 1), dims=st.integers(1, 4))
def test_values_lie_between_the_highest_and_the_lowest_node(seed: int, dims: int) -> None:
    q = random_q_function(dims, 2, seed)
    points = np.random.default_rng(seed).uniform(-1.0, 2.0, (20, dims))
    assert (q(points) <= q.q_values.max(axis=0) + 1e-12).all()
    assert (q(points) >= q.q_values.min(axis=0) - 1e-12).all()
    assert (q.value(points) >= q(points).max(axis=1) - 1e-12).all(), "max of sums <= sum of maxima"


def test_outside_the_box_it_is_as_at_the_edge() -> None:
    q = random_q_function(2, 2)
    points = np.random.default_rng(3).uniform(-5.0, 6.0, (50, 2))
    np.testing.assert_array_equal(q(points), q(np.clip(points, -1.0, 2.0)))


def test_the_first_of_equal_actions_is_taken() -> None:
    grid = Grid.uniform(Box([0.0], [1.0]), [2])
    q = QFunction(grid, np.array([[1.0, 2.0, 2.0], [2.0, 2.0, 2.0]]))
    np.testing.assert_array_equal(q.greedy(np.array([[0.0], [1.0], [0.5]])), [1, 0, 1])


@pytest.mark.parametrize("shape", [(12,), (11, 2), (2, 12), (12, 2, 1)])
def test_q_values_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = Grid.uniform(Box([0.0, 0.0], [1.0, 1.0]), [4, 3])
    with pytest.raises(ValueError, match=r"`q_values` must have one row per node \(12\); got shape"):
        QFunction(grid, np.zeros(shape))


@pytest.mark.parametrize("shape", [(2,), (5, 1), (5, 3)])
def test_states_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        random_q_function(2, 2)(np.zeros(shape))


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Something curved that leaves the box here and there."""
    x, v = states[:, 0], states[:, 1]
    faster = v + 0.5 * controls[:, 0] - 0.3 * np.sin(2.0 * x)
    return np.column_stack([x + 0.7 * faster, faster])


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -(states[:, 0] ** 2) - 0.1 * controls[:, 0] ** 2 + 0.2 * next_states[:, 1]


def far_right(states: FloatArray) -> BoolArray:
    over: BoolArray = states[:, 0] > 1.2
    return over


def lookahead(depth: int) -> Lookahead:
    q = random_q_function(2, 3)
    task = Task(q.grid.box, np.array([-1.0, 0.0, 1.0]), cost, 0.9, 0.0, far_right)
    return Lookahead(task, swing, q, depth)


STATES = np.random.default_rng(4).uniform(-1.0, 1.6, (25, 2))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_lookahead_takes_the_first_action_of_the_best_of_all_sequences(depth: int) -> None:
    policy = lookahead(depth)
    expected = [
        int(best_sequences(policy.task, swing, policy.q_function.value, state, depth).argmax())
        for state in STATES
    ]
    np.testing.assert_array_equal(policy.greedy(STATES), expected)
    assert len(set(expected)) == 3, "an example in which one action is always best would show little"


def test_one_step_ahead_is_reward_and_discounted_value_of_the_successor() -> None:
    policy = lookahead(1)
    scores = []
    for control in policy.task.controls:
        successors = swing(STATES, control[np.newaxis])
        future = np.where(far_right(successors), 0.0, 0.9 * policy.q_function.value(successors))
        scores.append(cost(STATES, control[np.newaxis], successors) + future)
    np.testing.assert_array_equal(policy.greedy(STATES), np.argmax(scores, axis=0))


def test_lookahead_takes_the_first_of_equal_actions() -> None:
    grid = Grid.uniform(Box([0.0], [1.0]), [3])
    task = Task(grid.box, np.array([-1.0, 1.0]), lambda s, u, n: np.zeros(len(s)), 0.9, 0.0)
    policy = Lookahead(task, lambda s, u: s, QFunction(grid, np.zeros((3, 2))), 3)
    np.testing.assert_array_equal(policy.greedy(grid.nodes), 0)


def test_looking_nowhere_ahead_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be from 1 to .*; got 0"):
        lookahead(0)
