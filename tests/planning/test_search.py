"""Acting by searching ahead, against a naive recursion, the Bellman equation and closed forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import Prediction, TrueDynamics
from optimist.planning import Flow, Lookahead, QFunction, Search, Stopping, solve, tabulate_held
from optimist.planning.search import affordable_depth
from optimist.task import Task
from tests.naive import flow as naive
from tests.planning.test_flow import CONTROLS, GRIDS, anything, inwards, states_around, task_on
from tests.test_grid import make_grid


def searching(
    grid: Grid, prediction: Prediction, task: Task, depth: int = 1, *, seed: int = 5
) -> tuple[Search, FloatArray]:
    q_values = np.random.default_rng(seed).normal(size=(grid.n_nodes, task.n_actions))
    return Search(task, Flow.of(grid, prediction), QFunction(grid, q_values), depth), q_values


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_one_step_is_the_naive_one_inside_the_box_and_out(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction, task = anything(grid), task_on(grid)
    policy, q_values = searching(grid, prediction, task)
    states = states_around(grid, 10)
    expected = [naive.search(grid, prediction, task, q_values, state, 1) for state in states]
    np.testing.assert_allclose(policy(states), expected, atol=1e-10)
    assert policy.greedy(states).tolist() == [max(range(3), key=row.__getitem__) for row in expected]


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize(
    ("n_dims", "spacing", "kind"), [(1, "uniform", "line"), (2, "random", "mixed"), (2, "uniform", "torus")]
)
def test_several_steps_are_the_naive_recursion(
    n_dims: int, spacing: str, kind: str, discount: float, depth: int
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction, task = anything(grid, seed=depth), task_on(grid, discount=discount, share=0.7)
    policy, q_values = searching(grid, prediction, task, depth)
    states = states_around(grid, 4)
    expected = [naive.search(grid, prediction, task, q_values, state, depth) for state in states]
    np.testing.assert_allclose(policy(states), expected, atol=1e-10)


@pytest.mark.parametrize("n_actions", [1, 2, 5])
def test_any_number_of_actions_is_searched(n_actions: int) -> None:
    grid = make_grid(2, "random", "line")
    prediction = anything(grid, n_actions=n_actions)
    task = replace(task_on(grid), controls=np.linspace(-1.0, 1.0, n_actions))
    policy, q_values = searching(grid, prediction, task, 3)
    states = states_around(grid, 2)
    expected = [naive.search(grid, prediction, task, q_values, state, 3) for state in states]
    np.testing.assert_allclose(policy(states), expected, atol=1e-10)


@pytest.mark.parametrize("depth", [1, 4])
def test_what_is_unknown_is_worth_the_optimistic_value(depth: int) -> None:
    grid = make_grid(2, "random", "mixed")
    prediction = replace(anything(grid), uncertainty=np.ones((3, grid.n_nodes)))
    policy, _ = searching(grid, prediction, task_on(grid), depth)
    np.testing.assert_allclose(policy(states_around(grid, 50)), 3.0, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_step_to_an_end_is_worth_its_reward_only(depth: int) -> None:
    grid = make_grid(2, "random", "line")
    task = replace(task_on(grid), is_terminal=lambda states: np.ones(len(states), dtype=np.bool_))
    policy, _ = searching(grid, anything(grid, unsure=False), task, depth)
    states = states_around(grid, 30)
    for action in range(3):
        next_states, _ = policy.flow.step(states, action)
        expected = task.rewards(states, task.controls[[action]], next_states)
        np.testing.assert_allclose(policy(states)[:, action], expected, atol=1e-13)


def test_of_equal_actions_the_first_is_taken() -> None:
    grid = make_grid(2, "uniform", "line")
    same = anything(grid, unsure=False)
    same.next_states[1:] = same.next_states[0]
    task = replace(task_on(grid), reward=lambda s, u, n: -np.ones(len(s)))
    states = states_around(grid, 40)
    for depth in (1, 3):
        assert (searching(grid, same, task, depth)[0].greedy(states) == 0).all()
        better = replace(task, reward=lambda s, u, n: np.where(u[:, 0] > 0.0, 1.0, 0.0) * np.ones(len(s)))
        assert (searching(grid, same, better, depth)[0].greedy(states) == 1).all()


def test_one_step_at_the_nodes_of_a_solved_plan_is_that_plan() -> None:
    """The Bellman equation itself: at its fixed point looking one step ahead changes nothing there."""
    grid = make_grid(2, "random", "mixed")
    prediction, task = anything(grid), task_on(grid)
    plan = solve(tabulate_held(Flow.of(grid, prediction), task, 1), stopping=Stopping(1e-10, 5000))
    policy = Search(task, Flow.of(grid, prediction), QFunction(grid, plan.q_values), 1)
    alive = ~task.terminal(grid.nodes)
    np.testing.assert_allclose(policy(grid.nodes)[alive], plan.q_values[alive], atol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_through_an_exact_flow_it_finds_what_lookahead_finds(depth: int) -> None:
    grid = make_grid(3, "random", "mixed")

    def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
        return inwards(grid.box, states, controls)

    task = task_on(grid, share=0.6)
    policy, q_values = searching(grid, TrueDynamics(dynamics, CONTROLS).predict_on(grid), task, depth)
    states = states_around(grid, 60, beyond=0.0)
    values = np.sort(policy(states), axis=1)
    clear = values[:, -1] - values[:, -2] > 1e-9
    expected = Lookahead(task, dynamics, QFunction(grid, q_values), depth).greedy(states)
    assert clear.sum() > 30
    np.testing.assert_array_equal(policy.greedy(states)[clear], expected[clear])


def test_a_closed_form_a_walk_to_the_end() -> None:
    """x goes by its control at cost 1, ends beyond 2.5, the plan says 0: steps within reach count."""
    box = Box([-5.0], [5.0])
    grid = Grid.uniform(box, [11])
    task = Task(
        box, np.array([-1.0, 1.0]), lambda s, u, n: -np.ones(len(s)), 0.5, 0.0, lambda s: s[:, 0] > 2.5
    )
    flow = Flow.of(grid, TrueDynamics(lambda s, u: s + u, task.controls).predict_on(grid))
    policy = Search(task, flow, QFunction(grid, np.zeros((11, 2))), 3)
    steps = policy(np.array([[2.0], [1.0], [0.3], [-2.0]]))
    # right: 1 step, 2 steps, 3 steps, out of reach; left: back again takes 2 more
    np.testing.assert_allclose(steps[:, 1], [-1.0, -1.5, -1.75, -1.75], atol=1e-12)
    np.testing.assert_allclose(steps[:, 0], [-1.75, -1.75, -1.75, -1.75], atol=1e-12)


@pytest.mark.parametrize("depth", [1, 5])
def test_one_state_and_many_are_searched_alike(depth: int) -> None:
    grid = make_grid(2, "random", "mixed")
    policy, _ = searching(grid, anything(grid), task_on(grid), depth)
    states = states_around(grid, 30)
    one_by_one = np.vstack([policy(state[np.newaxis]) for state in states])
    np.testing.assert_array_equal(policy(states), one_by_one)
    assert policy(states[:0]).shape == (0, 3)


def test_more_states_than_fit_into_one_block_are_searched_alike() -> None:
    grid = make_grid(1, "uniform", "line")
    policy, _ = searching(grid, anything(grid), task_on(grid), 6)  # 1092 nodes in a tree
    states = states_around(grid, 500)
    np.testing.assert_array_equal(policy(states)[300:], policy(states[300:]))


@pytest.mark.parametrize(("nodes", "leaves"), [((49, 50), 256), ((51, 50), 16), ((25,) * 4, 256)])
@pytest.mark.parametrize("n_actions", [1, 2, 3, 4, 5, 7, 16, 17, 256, 257, 1000])
def test_the_affordable_depth_is_the_deepest_that_is_allowed(
    n_actions: int, nodes: tuple[int, ...], leaves: int
) -> None:
    d = len(nodes)
    depth = affordable_depth(n_actions, Grid.uniform(Box([-1.0] * d, [1.0] * d), nodes))
    assert depth >= 1
    if n_actions > 1:
        assert n_actions**depth <= max(leaves, n_actions)
        assert n_actions ** (depth + 1) > leaves


@pytest.mark.parametrize("depth", [0, -1, 40])
def test_a_depth_that_cannot_be_searched_is_refused(depth: int) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=rf"`depth` must .*; got {depth}"):
        searching(grid, anything(grid), task_on(grid), depth)


@pytest.mark.parametrize("n_actions", [2, 4])
def test_a_flow_of_other_actions_than_the_task_is_refused(n_actions: int) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=rf"3.*; got.*{n_actions}"):
        searching(grid, anything(grid, n_actions=n_actions), task_on(grid))


def test_a_plan_on_another_grid_than_the_flow_is_refused() -> None:
    """The search reads the values with the strides of the flow."""
    grid, other = make_grid(2, "uniform", "line"), Grid.uniform(Box([0.0, 0.0], [1.0, 1.0]), [3, 2])
    with pytest.raises(ValueError, match="grid"):
        Search(task_on(grid), Flow.of(grid, anything(grid)), QFunction(other, np.zeros((6, 3))), 1)


@pytest.mark.parametrize("shape", [(2,), (4, 3), (2, 2, 2)])
def test_states_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")
    policy, _ = searching(grid, anything(grid), task_on(grid))
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        policy(np.zeros(shape))


def test_every_combination_of_unknown_actions_is_mixed_in() -> None:
    """Each action known or not, told apart."""
    grid = make_grid(1, "uniform", "line")
    for flags in product((0.0, 1.0), repeat=3):
        prediction = replace(
            anything(grid), uncertainty=np.tile(np.array(flags)[:, np.newaxis], grid.n_nodes)
        )
        policy, q_values = searching(grid, prediction, task_on(grid), 2)
        state = grid.nodes[1]
        expected = naive.search(grid, prediction, task_on(grid), q_values, state, 2)
        np.testing.assert_allclose(policy(state[np.newaxis])[0], expected, atol=1e-11)
