"""Acting on a plan: interpolated Q-values, and looking ahead through any step or a flow.

Looking ahead is compared with a naive recursion, all sequences one by one, the Bellman equation and closed
forms. A flow is followed by compiled code, any other step by numpy; both are held against the same twins.
"""

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
from optimist.planning import Flow, Limits, Lookahead, QFunction, solve, tabulate
from optimist.planning.leaving import Leaving
from optimist.planning.policy import affordable_depth, decide, require_affordable, search
from optimist.steps import Step, Successors, known
from optimist.task import Task
from tests.naive import following as naive
from tests.naive.episodes import best_sequences
from tests.naive.flow import flow as naive_flow
from tests.naive.flow import plan_value
from tests.planning.cases import CONTROLS, GRIDS, anything, inwards, states_around, task_on, uncertainty_of
from tests.test_grid import make_grid

# --- Q-values -----------------------------------------------------------------------------------------


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


# --- looking ahead ------------------------------------------------------------------------------------

flow_or_step = pytest.mark.parametrize("compiled", [True, False], ids=["flow", "step"])


def step_through(grid: Grid, successors: Successors, *, compiled: bool) -> Step:
    """A flow, or a step that says the same and is no flow."""
    flow = Flow.of(grid, successors)
    return flow if compiled else flow.__call__


def looking(
    grid: Grid, successors: Successors, task: Task, depth: int = 1, *, compiled: bool = True
) -> Lookahead:
    """Ahead of a random plan."""
    q_values = np.random.default_rng(5).normal(size=(grid.n_nodes, task.n_actions))
    step = step_through(grid, successors, compiled=compiled)
    return Lookahead(task, step, QFunction(grid, q_values), depth)


def searched(policy: Lookahead, successors: Successors, states: FloatArray) -> FloatArray:
    """The naive recursion.  [n, n_actions]"""
    grid, q_values = policy.q_function.grid, policy.q_function.q_values
    step = naive_flow(grid, successors)
    found = [
        naive.search(policy.task, step, lambda end: plan_value(grid, q_values, end), state, policy.depth)
        for state in states
    ]
    return np.array(found)


@flow_or_step
@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_one_step_is_the_naive_one_inside_the_box_and_out(
    n_dims: int, spacing: str, kind: str, compiled: bool
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    successors = anything(grid)
    policy = looking(grid, successors, task_on(grid), compiled=compiled)
    states = states_around(grid, 10)
    expected = searched(policy, successors, states)
    np.testing.assert_allclose(policy(states), expected, atol=1e-10)
    assert policy.greedy(states).tolist() == [max(range(3), key=row.__getitem__) for row in expected.tolist()]


@flow_or_step
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize(
    ("n_dims", "spacing", "kind"), [(1, "uniform", "line"), (2, "random", "mixed"), (2, "uniform", "torus")]
)
def test_several_steps_are_the_naive_recursion(
    n_dims: int, spacing: str, kind: str, discount: float, depth: int, compiled: bool
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    successors, task = anything(grid, seed=depth), task_on(grid, discount=discount, share=0.7)
    policy = looking(grid, successors, task, depth, compiled=compiled)
    states = states_around(grid, 4)
    np.testing.assert_allclose(policy(states), searched(policy, successors, states), atol=1e-10)


@flow_or_step
@pytest.mark.parametrize("n_actions", [1, 2, 5])
def test_any_number_of_actions_is_searched(n_actions: int, compiled: bool) -> None:
    grid = make_grid(2, "random", "line")
    successors = anything(grid, n_actions=n_actions)
    task = replace(task_on(grid), controls=np.linspace(-1.0, 1.0, n_actions))
    policy = looking(grid, successors, task, 3, compiled=compiled)
    states = states_around(grid, 2)
    np.testing.assert_allclose(policy(states), searched(policy, successors, states), atol=1e-10)


@flow_or_step
@pytest.mark.parametrize("depth", [1, 4])
def test_what_is_unknown_is_worth_the_optimistic_value(depth: int, compiled: bool) -> None:
    grid = make_grid(2, "random", "mixed")
    unknown = anything(grid)._replace(uncertainty=np.ones((3, grid.n_nodes)))
    policy = looking(grid, unknown, task_on(grid), depth, compiled=compiled)
    np.testing.assert_allclose(policy(states_around(grid, 50)), 3.0, atol=1e-12)


@flow_or_step
def test_every_combination_of_unknown_actions_is_mixed_in(compiled: bool) -> None:
    """Each action known or not, told apart."""
    grid = make_grid(1, "uniform", "line")
    for flags in product((0.0, 1.0), repeat=3):
        uncertainty = np.tile(np.array(flags)[:, np.newaxis], grid.n_nodes)
        successors = anything(grid)._replace(uncertainty=uncertainty)
        policy = looking(grid, successors, task_on(grid), 2, compiled=compiled)
        state = grid.nodes[[1]]
        np.testing.assert_allclose(policy(state), searched(policy, successors, state), atol=1e-11)


@flow_or_step
@pytest.mark.parametrize("depth", [1, 3])
def test_a_step_to_an_end_is_worth_its_reward_only(depth: int, compiled: bool) -> None:
    grid = make_grid(2, "random", "line")
    task = replace(task_on(grid), is_terminal=lambda states: np.ones(len(states), dtype=np.bool_))
    policy = looking(grid, anything(grid, unsure=False), task, depth, compiled=compiled)
    states = states_around(grid, 30)
    for action in range(3):
        next_states = policy.step(states, action).next_states
        expected = task.rewards(states, task.controls[[action]], next_states)
        np.testing.assert_allclose(policy(states)[:, action], expected, atol=1e-13)


@flow_or_step
@pytest.mark.parametrize("depth", [1, 3])
def test_of_equal_actions_the_first_is_taken(depth: int, compiled: bool) -> None:
    grid = make_grid(2, "uniform", "line")
    same = anything(grid, unsure=False)
    same.next_states[1:] = same.next_states[0]
    task = replace(task_on(grid), reward=lambda s, u, n: -np.ones(len(s)))
    states = states_around(grid, 40)
    assert (looking(grid, same, task, depth, compiled=compiled).greedy(states) == 0).all()
    better = replace(task, reward=lambda s, u, n: np.where(u[:, 0] > 0.0, 1.0, 0.0) * np.ones(len(s)))
    assert (looking(grid, same, better, depth, compiled=compiled).greedy(states) == 1).all()


@flow_or_step
def test_one_step_at_the_nodes_of_a_solved_plan_is_that_plan(compiled: bool) -> None:
    """The Bellman equation itself: at its fixed point looking one step ahead changes nothing there."""
    grid = make_grid(2, "random", "mixed")
    step, task = step_through(grid, anything(grid), compiled=compiled), task_on(grid)
    plan = solve(tabulate(grid, task, step), limits=Limits(1e-10, 5000))
    policy = Lookahead(task, step, QFunction(grid, plan.q_values), 1)
    alive = ~task.terminal(grid.nodes)
    np.testing.assert_allclose(policy(grid.nodes)[alive], plan.q_values[alive], atol=1e-5)


@flow_or_step
@pytest.mark.parametrize("depth", [1, 5])
def test_one_state_and_many_are_searched_alike(depth: int, compiled: bool) -> None:
    grid = make_grid(2, "random", "mixed")
    policy = looking(grid, anything(grid), task_on(grid), depth, compiled=compiled)
    states = states_around(grid, 30)
    one_by_one = np.vstack([policy(state[np.newaxis]) for state in states])
    np.testing.assert_array_equal(policy(states), one_by_one)
    assert policy(states[:0]).shape == (0, 3)


@flow_or_step
def test_more_states_than_fit_into_one_block_are_searched_alike(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    grid = make_grid(1, "uniform", "line")
    policy = looking(grid, anything(grid), task_on(grid), 6, compiled=compiled)  # 1092 nodes in a tree
    states = states_around(grid, 50)
    whole = policy.foresee(states)
    monkeypatch.setattr("optimist.planning.policy.BLOCK", 8000)  # 7 trees at a time
    for part, expected in zip(policy.foresee(states), whole, strict=True):
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(policy(states)[30:], policy(states[30:]))


@flow_or_step
@pytest.mark.parametrize("beside", ["nothing", "open sides", "costs of noise", "no bonus"])
def test_sights_that_search_together_see_what_each_sees_alone(beside: str, compiled: bool) -> None:
    grid = make_grid(2, "random", "mixed")
    task = task_on(grid)
    policy = looking(grid, anything(grid), task, 4, compiled=compiled)
    if beside == "open sides":
        policy = replace(policy, leaving=Leaving(task, np.ones(2, bool), np.ones(2, bool), worst=-9.0))
    elif beside == "costs of noise":
        costs = grid.pad(np.random.default_rng(8).normal(size=grid.n_nodes))
        policy = replace(policy, noise_costs=costs)
    elif beside == "no bonus":
        policy = replace(policy, optimistic=False)
    states = states_around(grid, 12)
    asked = [
        (policy.looking(depth), states[depth : depth + count]) for depth, count in ((4, 5), (1, 1), (2, 7))
    ]
    assert len({sight.kin for sight, _ in asked}) == 1
    alone = [replace(sight).foresee(some) for sight, some in asked]
    for together, expected in zip(search(asked), alone, strict=True):
        for one, other in zip(together, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    for _ in range(2):  # the second time they remember
        for actions, expected in zip(decide(asked), alone, strict=True):
            np.testing.assert_array_equal(actions, expected.q_values.argmax(axis=1))


@flow_or_step
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_at_every_step_ahead_noise_costs_what_the_plan_says(depth: int, compiled: bool) -> None:
    """A naive recursion, one state at a time: r + discount (cost(z) + best that follows), unless it ends."""
    grid = make_grid(2, "random", "mixed")
    task = task_on(grid)
    costs = np.random.default_rng(8).normal(size=grid.n_nodes)
    policy = looking(grid, anything(grid), task, depth, compiled=compiled)
    noisy = replace(policy, noise_costs=grid.pad(costs), optimistic=False)
    of_noise, worth = QFunction(grid, costs[:, np.newaxis]), noisy.q_function

    def best(state: FloatArray, left: int) -> FloatArray:
        values = np.empty(task.n_actions)
        for action in range(task.n_actions):
            after = noisy.step(state, action).next_states
            values[action] = task.rewards(state, task.controls[action : action + 1], after)[0]
            if not task.terminal(after)[0]:
                then = best(after, left - 1).max() if left > 1 else float(worth.value(after)[0])
                values[action] += task.discount * (float(of_noise(after)[0, 0]) + then)
        return values

    states = states_around(grid, 8)
    assert task.terminal(noisy.foresee(states).next_states.reshape(-1, 2)).any()
    expected = np.stack([best(state[np.newaxis], depth) for state in states])
    np.testing.assert_allclose(noisy(states), expected, atol=1e-9)


def test_what_one_sight_cannot_say_far_out_does_not_touch_the_others() -> None:
    def pay(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        if (states > 3.5).any():
            raise ValueError("nobody knows")
        return -states[:, 0] - 0.1 * controls[:, 0]

    grid = Grid.uniform(Box([0.0], [1.5]), [4])
    task = Task(grid.box, np.array([0.0, 1.0]), pay, 0.9, 0.0)
    policy = looking(grid, Successors(np.stack([grid.nodes + 1.0] * 2)), task, 4)
    policy = replace(policy, leaving=Leaving(task, np.zeros(1, bool), np.ones(1, bool), worst=-9.0))
    asked = [(policy.looking(depth), np.array([[0.0], [0.2]])) for depth in (4, 2)]  # to 4.2, and to 2.2
    for together, (sight, states) in zip(search(asked), asked, strict=True):
        np.testing.assert_array_equal(together.q_values, replace(sight)(states))


def test_plans_that_differ_in_more_than_the_sight_are_no_kin() -> None:
    grid = make_grid(2, "random", "mixed")
    policy = looking(grid, anything(grid), task_on(grid), 2)
    again = looking(grid, anything(grid), task_on(grid), 2)
    others = [
        again,
        replace(policy, optimistic=False),
        replace(policy, noise_costs=grid.pad(np.ones(grid.n_nodes))),
    ]
    assert policy.kin == policy.looking(1).kin
    assert len({policy.kin, *(other.kin for other in others)}) == 4


# --- through known dynamics ---------------------------------------------------------------------------


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Something curved that leaves the box here and there."""
    x, v = states[:, 0], states[:, 1]
    faster = v + 0.5 * controls[:, 0] - 0.3 * np.sin(2.0 * x)
    return np.column_stack([x + 0.7 * faster, faster])


def effort(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -(states[:, 0] ** 2) - 0.1 * controls[:, 0] ** 2 + 0.2 * next_states[:, 1]


def far_right(states: FloatArray) -> BoolArray:
    over: BoolArray = states[:, 0] > 1.2
    return over


def lookahead(depth: int) -> Lookahead:
    q = random_q_function(2, 3)
    task = Task(q.grid.box, np.array([-1.0, 0.0, 1.0]), effort, 0.9, 0.0, far_right)
    return Lookahead(task, known(swing, task.controls), q, depth)


STATES = np.random.default_rng(4).uniform(-1.0, 1.6, (25, 2))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_lookahead_takes_the_first_action_of_the_best_of_all_sequences(depth: int) -> None:
    policy = lookahead(depth)
    values = np.array(
        [best_sequences(policy.task, swing, policy.q_function.value, state, depth) for state in STATES]
    )
    np.testing.assert_allclose(policy(STATES), values, atol=1e-12)
    expected = values.argmax(axis=1)
    np.testing.assert_array_equal(policy.greedy(STATES), expected)
    assert len(set(expected)) == 3, "an example in which one action is always best would show little"


def test_what_was_decided_is_remembered_by_state_and_sight() -> None:
    states = np.random.default_rng(3).uniform(-1.0, 1.0, size=(90, 2))
    policy, asked = lookahead(2), []

    def step(some: FloatArray, action: int) -> Successors:
        asked.append(len(some))
        return lookahead(2).step(some, action)

    remembering = replace(policy, step=step)
    for rows in (slice(5), slice(3, 8), slice(8), slice(90)):  # of many at once nothing is remembered
        for depth in (2, 1):
            expected = policy.looking(depth)(states[rows]).argmax(axis=1)
            np.testing.assert_array_equal(remembering.looking(depth).greedy(states[rows]), expected)
    assert remembering.looking(1) is remembering.looking(1)
    assert {count % 90 for count in asked[-9:]} == {0}
    assert set(asked[:-9]) == {5, 15, 3, 9}  # what was not known yet, and one step further


def test_one_step_ahead_is_reward_and_discounted_value_of_the_successor() -> None:
    policy = lookahead(1)
    scores = []
    for control in policy.task.controls:
        successors = swing(STATES, control[np.newaxis])
        future = np.where(far_right(successors), 0.0, 0.9 * policy.q_function.value(successors))
        scores.append(effort(STATES, control[np.newaxis], successors) + future)
    np.testing.assert_allclose(policy(STATES), np.column_stack(scores), atol=1e-13)
    np.testing.assert_array_equal(policy.greedy(STATES), np.argmax(scores, axis=0))


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("kind", ["line", "mixed"])
def test_through_an_exact_flow_is_through_the_dynamics(kind: str, depth: int) -> None:
    """Linear dynamics are interpolated exactly, so compiled or not, the same tree is grown."""
    grid = make_grid(3, "random", kind)
    step = known(lambda states, controls: inwards(grid.box, states, controls), CONTROLS)
    task, q_values = task_on(grid, share=0.6), np.random.default_rng(5).normal(size=(grid.n_nodes, 3))
    states = states_around(grid, 60, beyond=0.0)
    q_function = QFunction(grid, q_values)
    seen = Lookahead(task, Flow.through(grid, step, 3), q_function, depth).foresee(states)
    exact = Lookahead(task, step, q_function, depth).foresee(states)
    np.testing.assert_allclose(seen.q_values, exact.q_values, atol=1e-10)
    moved = grid.box.displacement(exact.next_states.reshape(-1, 3), seen.next_states.reshape(-1, 3))
    np.testing.assert_allclose(moved, 0.0, atol=1e-11)
    np.testing.assert_array_equal(exact.uncertainty, 0.0)
    np.testing.assert_array_equal(seen.uncertainty, 0.0)
    best = np.sort(exact.q_values, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-9
    assert clear.sum() > 30
    chosen, expected = seen.q_values.argmax(axis=1), exact.q_values.argmax(axis=1)
    np.testing.assert_array_equal(chosen[clear], expected[clear])


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_all_actions_at_once_are_each_action_alone(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    flow, states = Flow.of(grid, anything(grid)), states_around(grid, 20)
    policy = Lookahead(task_on(grid), flow, QFunction(grid, np.zeros((grid.n_nodes, 3))), 1)
    seen = policy.foresee(states)
    for action in range(3):
        alone = flow(states, action)
        np.testing.assert_array_equal(seen.next_states[:, action], alone.next_states)
        np.testing.assert_array_equal(seen.uncertainty[:, action], uncertainty_of(alone))


@pytest.mark.parametrize("through", ["flow", "step", "known"])
@pytest.mark.parametrize("depth", [1, 3])
def test_what_is_foreseen_is_where_the_step_itself_leads(depth: int, through: str) -> None:
    if through == "known":
        policy, states = lookahead(depth), STATES
    else:
        grid = make_grid(2, "random", "mixed")
        policy = looking(grid, anything(grid), task_on(grid), depth, compiled=through == "flow")
        states = states_around(grid, 25)
    seen = policy.foresee(states)
    np.testing.assert_array_equal(seen.q_values, policy(states))
    assert seen.next_states.shape == (25, 3, 2)
    for action in range(3):
        successors = policy.step(states, action)
        np.testing.assert_array_equal(seen.next_states[:, action], successors.next_states)
        expected = 0.0 if through == "known" else uncertainty_of(successors)
        np.testing.assert_array_equal(seen.uncertainty[:, action], expected)


@flow_or_step
def test_a_closed_form_a_walk_to_the_end(compiled: bool) -> None:
    """x goes by its control at cost 1, ends beyond 2.5, the plan says 0: steps within reach count."""
    box = Box([-5.0], [5.0])
    grid = Grid.uniform(box, [11])
    task = Task(
        box, np.array([-1.0, 1.0]), lambda s, u, n: -np.ones(len(s)), 0.5, 0.0, lambda s: s[:, 0] > 2.5
    )
    walk = known(lambda s, u: s + u, task.controls)
    step = Flow.through(grid, walk, 2) if compiled else walk
    policy = Lookahead(task, step, QFunction(grid, np.zeros((11, 2))), 3)
    steps = policy(np.array([[2.0], [1.0], [0.3], [-2.0]]))
    # right: 1 step, 2 steps, 3 steps, out of reach; left: back again takes 2 more
    np.testing.assert_allclose(steps[:, 1], [-1.0, -1.5, -1.75, -1.75], atol=1e-12)
    np.testing.assert_allclose(steps[:, 0], [-1.75, -1.75, -1.75, -1.75], atol=1e-12)


# --- how far, and what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize("n_actions", [1, 2, 3, 4, 5, 7, 16, 17, 32, 33, 256, 257, 1024, 1025, 5000])
def test_the_affordable_depth_is_the_deepest_that_is_allowed(n_actions: int) -> None:
    depth = affordable_depth(n_actions)
    assert depth >= 1
    if n_actions > 1:
        assert n_actions**depth <= max(1024, n_actions)
        assert n_actions ** (depth + 1) > 1024
    require_affordable(n_actions, depth)


@pytest.mark.parametrize(("n_actions", "deepest"), [(1, 18), (2, 18), (3, 11), (8, 6), (512, 2), (2**18, 1)])
def test_no_more_sequences_are_tried_than_are_held_at_a_time(n_actions: int, deepest: int) -> None:
    require_affordable(n_actions, deepest)
    assert n_actions**deepest <= 2**18
    says = rf"must be from 1 to {deepest} steps with {n_actions} actions.*; got {deepest + 1}"
    with pytest.raises(ValueError, match=says):
        require_affordable(n_actions, deepest + 1)


@flow_or_step
@pytest.mark.parametrize("depth", [0, -1, 12, 40])
def test_a_depth_that_cannot_be_searched_is_refused(depth: int, compiled: bool) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=rf"lookahead must be from 1 to 11 steps with 3.*; got {depth}"):
        looking(grid, anything(grid), task_on(grid), depth, compiled=compiled)


@pytest.mark.parametrize("n_actions", [2, 4])
def test_a_flow_of_other_actions_than_the_task_is_refused(n_actions: int) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=rf"3.*; got.*{n_actions}"):
        looking(grid, anything(grid, n_actions=n_actions), task_on(grid))


def test_a_plan_on_another_grid_than_the_flow_is_refused() -> None:
    """Compiled code reads the values with the strides of the flow."""
    grid, other = make_grid(2, "uniform", "line"), Grid.uniform(Box([0.0, 0.0], [1.0, 1.0]), [3, 2])
    with pytest.raises(ValueError, match="grid"):
        Lookahead(task_on(grid), Flow.of(grid, anything(grid)), QFunction(other, np.zeros((6, 3))), 1)


@flow_or_step
@pytest.mark.parametrize("shape", [(2,), (4, 3), (2, 2, 2)])
def test_states_of_the_wrong_shape_are_refused_looking_ahead(shape: tuple[int, ...], compiled: bool) -> None:
    grid = make_grid(2, "uniform", "line")
    policy = looking(grid, anything(grid), task_on(grid), compiled=compiled)
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        policy(np.zeros(shape))
