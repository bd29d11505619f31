"""Steps followed and tabulated, against naive loops, closed forms and what theory says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.discretisation import Holding
from optimist.grid import Grid
from optimist.planning import Flow, Limits, Tables, solve, tabulate
from optimist.planning.tables import Path, follow, optimistic
from optimist.steps import Step, Successors, known
from optimist.task import Task
from tests.naive import flow as naive_flow
from tests.naive import following as naive
from tests.naive.backups import fold
from tests.naive.interpolation import dense_weights, expand, interpolants, weights_of_point
from tests.naive.random_tables import as_problem, small_tables
from tests.planning.cases import CONTROLS, GRIDS, anything, at_nodes, inwards, task_on, uncertainty_of
from tests.test_grid import make_grid

BACKUPS = ["v-plain", "v-exact", "eq7", "eq7-exact", "eq7-printed"]
BOX = Box([0.0, -1.0], [4.0, 1.0], [False, True])
GRID = Grid.uniform(BOX, [5, 4])

known_or_flow = pytest.mark.parametrize("flowing", [False, True], ids=["known", "flow"])


def drift(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One control pushes along both axes."""
    return np.asarray(states + controls * np.array([1.0, 0.3]))


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return states[:, 0] - 0.1 * controls[:, 0] ** 2 + 0.01 * next_states[:, 1]


def at_right_edge(states: FloatArray) -> BoolArray:
    reached: BoolArray = states[:, 0] >= 4.0
    return reached


TASK = Task(BOX, np.array([-0.4, 0.0, 0.7]), reward, 0.9, 7.0, at_right_edge)
STEP = known(drift, TASK.controls)


def drifting(uncertainty: FloatArray) -> Step:
    """The same, said to be uncertain at the nodes.  [n_actions, n_nodes]"""
    next_states = np.stack([STEP(GRID.nodes, action).next_states for action in range(TASK.n_actions)])
    return at_nodes(GRID, Successors(next_states, uncertainty))


def step_of(task: Task, grid: Grid, dynamics: Step, *, flowing: bool) -> Step:
    """Itself, or seen through the grid."""
    return Flow.through(grid, dynamics, task.n_actions) if flowing else dynamics


# --- what is tabulated --------------------------------------------------------------------------------


def test_cells_and_fractions_are_the_weights_of_the_successors() -> None:
    weights = as_problem(tabulate(GRID, TASK, STEP)).weights
    for action, control in enumerate(TASK.controls):
        for node, state in enumerate(GRID.nodes):
            ended = state[0] >= 4.0  # and stays there
            successor = state if ended else drift(state[np.newaxis], control[np.newaxis])[0]
            expected = weights_of_point(GRID.axes, [None, 2.0], successor)
            np.testing.assert_allclose(weights[action, node], expected, atol=1e-6)


def test_rewards_are_those_of_the_task_and_at_terminal_nodes_what_entering_pays() -> None:
    tables = tabulate(GRID, TASK, STEP)
    for node, state in enumerate(GRID.nodes):
        for action, control in enumerate(TASK.controls):
            here = state[np.newaxis]
            next_state = here if state[0] >= 4.0 else drift(here, control[np.newaxis])
            expected = reward(here, control[np.newaxis], next_state)[0]
            assert tables.rewards[node, action] == pytest.approx(expected, abs=1e-15)


def test_discount_is_zero_at_terminal_nodes_and_before_terminal_successors_only() -> None:
    tables = tabulate(GRID, TASK, STEP)
    for node, state in enumerate(GRID.nodes):
        for action, control in enumerate(TASK.controls):
            ends = state[0] >= 4.0 or state[0] + control[0] >= 4.0
            assert tables.discounts[node, action] == (0.0 if ends else 0.9)


def entering(task: Task, nodes: FloatArray) -> FloatArray:
    """What ending at each of these nodes pays, by every action.  [n, n_actions]"""
    return np.column_stack([task.rewards(nodes, control[np.newaxis], nodes) for control in task.controls])


@pytest.mark.parametrize("backup", BACKUPS)
def test_terminal_nodes_are_worth_what_entering_them_pays(backup: str) -> None:
    plan = solve(tabulate(GRID, TASK, STEP), backup=backup)
    ended = at_right_edge(GRID.nodes)
    expected = entering(TASK, GRID.nodes[ended])
    assert (expected > 3.9).all()
    np.testing.assert_allclose(plan.q_values[ended], expected, atol=1e-14)
    assert (plan.q_values[~ended] > 4.1).any()


@pytest.mark.parametrize("backup", ["v-exact", "eq7-printed"])
def test_terminal_nodes_are_worth_the_same_however_uncertain_the_model_is_there(backup: str) -> None:
    everywhere = np.full((TASK.n_actions, GRID.n_nodes), 0.5)
    plan = solve(tabulate(GRID, TASK, drifting(everywhere)), backup=backup)
    ended = at_right_edge(GRID.nodes)
    np.testing.assert_allclose(plan.q_values[ended], entering(TASK, GRID.nodes[ended]), atol=1e-14)


def test_clipped_successors_are_counted_and_periodic_ones_are_not_clipped() -> None:
    live = GRID.nodes[~at_right_edge(GRID.nodes)]
    expected = sum(
        int(not 0.0 <= state[0] + control[0] <= 4.0) for state in live for control in TASK.controls
    )
    assert expected > 0
    assert tabulate(GRID, TASK, STEP).n_clipped == expected


@pytest.mark.parametrize(("d", "bytes_each"), [(2, 28), (4, 36)])
def test_tables_take_four_bytes_per_axis_and_twenty_more(d: int, bytes_each: int) -> None:
    box = Box([0.0] * d, [1.0] * d)
    grid = Grid.uniform(box, [3] * d)
    task = Task(box, np.array([0.0, 1.0]), lambda s, u, n: np.zeros(len(s)), 0.9, 0.0)
    tables = tabulate(grid, task, known(lambda s, u: s, task.controls))
    arrays = tables.cells, tables.fractions, tables.rewards, tables.discounts
    assert sum(array.nbytes for array in arrays) == bytes_each * grid.n_nodes * 2
    with_selfs = bytes_each + tables.self_weights.itemsize
    assert with_selfs * grid.n_nodes * 2 <= 44 * grid.n_nodes * 2


def test_all_known_is_kept_as_none() -> None:
    assert tabulate(GRID, TASK, STEP).uncertainty is None
    assert tabulate(GRID, TASK, drifting(np.zeros((TASK.n_actions, GRID.n_nodes)))).uncertainty is None


def test_uncertainty_is_turned_to_node_before_action() -> None:
    given_uncertainty = np.random.default_rng(3).random((TASK.n_actions, GRID.n_nodes))
    given_uncertainty[1] = 0.0
    tables = tabulate(GRID, TASK, drifting(given_uncertainty))
    assert tables.uncertainty is not None
    inner = ~at_right_edge(GRID.nodes)
    np.testing.assert_array_equal(tables.uncertainty[inner], given_uncertainty.T[inner])


@pytest.mark.parametrize("hold", [1, 3])
@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
def test_a_grid_of_several_blocks_is_tabulated_like_one(
    monkeypatch: pytest.MonkeyPatch, unsure: bool, hold: int
) -> None:
    grid = make_grid(2, "random", "mixed")
    task, flow = task_on(grid), Flow.of(grid, anything(grid, unsure=unsure))
    whole = tabulate(grid, task, flow, holding=Holding(hold))
    monkeypatch.setattr("optimist.planning.tables.BLOCK", 4)
    blocks = tabulate(grid, task, flow, holding=Holding(hold))
    for name in ("cells", "fractions", "rewards", "discounts", "uncertainty"):
        np.testing.assert_array_equal(getattr(blocks, name), getattr(whole, name))
    assert (blocks.uncertainty is not None) == (unsure and hold == 1)
    assert blocks.n_clipped == whole.n_clipped > 0


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
    assert tabulate(GRID, TASK, STEP).value_bounds == (-np.inf, np.inf)
    task = replace(TASK, discount=1.0, max_steps=50, reward=lambda s, u, n: -1.0 - s[:, 0])
    worst = -1.0 - GRID.axes[0][-1]  # of entering the end
    assert tabulate(GRID, task, STEP).value_bounds == (50 * worst, 7.0)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [1, 3])
def test_successors_of_other_axes_are_refused(n_columns: int) -> None:
    def wrong(states: FloatArray, action: int) -> Successors:
        return Successors(np.zeros((len(states), n_columns)))

    with pytest.raises(ValueError, match=rf"one state per state, shape \(16, 2\); got \(16, {n_columns}\)"):
        tabulate(GRID, replace(TASK, reward=lambda s, u, n: np.zeros(len(s))), wrong)


@pytest.mark.parametrize("hold", [1, 3])
def test_successors_that_are_not_numbers_are_refused(hold: int) -> None:
    def broken(states: FloatArray, action: int) -> Successors:
        return Successors(np.where((states == GRID.nodes[7]).all(axis=1)[:, np.newaxis], np.nan, states))

    constant = replace(TASK, reward=lambda s, u, n: np.zeros(len(s)))
    with pytest.raises(ValueError, match=r"must be finite; got \[nan"):
        tabulate(GRID, constant, broken, holding=Holding(hold))


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (lambda s, u, n: np.full(len(s), np.nan), "must be finite; got nan"),
        (lambda s, u, n: np.full(len(s), np.inf), "must be finite; got inf"),
        (lambda s, u, n: s, r"must return one number per state, shape \(4,\); got shape \(4, 2\)"),
        (lambda s, u, n: -1.0, r"must return one number per state, shape \(4,\); got shape \(\)"),
    ],
)
def test_bad_rewards_are_refused(bad: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tabulate(GRID, replace(TASK, reward=bad), STEP)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan])
def test_uncertainty_outside_zero_to_one_is_refused(value: float) -> None:
    uncertainty = np.zeros((3, 20))
    uncertainty[1, 4] = value
    with pytest.raises(ValueError, match=r"`uncertainty` must lie in \[0, 1\]; got"):
        tabulate(GRID, TASK, drifting(uncertainty))


@pytest.mark.parametrize("shape", [(16, 1), (1, 16), (15,), (20,), (1,), ()])
def test_uncertainty_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`uncertainty` must have shape \(16,\); got"):
        tabulate(GRID, TASK, lambda states, action: Successors(states, np.full(shape, 0.5)))


@pytest.mark.parametrize("hold", [0, -1, 501, 1.5])
def test_holding_for_less_than_one_step_or_more_than_an_episode_is_refused(hold: float) -> None:
    with pytest.raises(ValueError, match=f"`hold` must be a whole number from 1 to 500; got {hold}"):
        tabulate(GRID, TASK, STEP, holding=Holding(hold))  # type: ignore[arg-type]


def test_a_flow_of_fewer_actions_than_the_task_is_refused() -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match="must be one of 0 to 1; got 2"):
        tabulate(grid, task_on(grid), Flow.of(grid, anything(grid, n_actions=2)))


def test_a_grid_or_a_flow_over_other_axes_than_the_task_is_refused() -> None:
    wide, flat = make_grid(3, "uniform", "line"), make_grid(2, "uniform", "line")
    flow = Flow.of(wide, anything(wide))
    with pytest.raises(ValueError, match=r"as many axes as the task \(2\); got 3"):
        tabulate(wide, task_on(flat), flow)
    with pytest.raises(ValueError, match=r"must have shape \(n, 3\); got"):
        tabulate(flat, task_on(flat), flow)


# --- steps followed -----------------------------------------------------------------------------------


def push(states: FloatArray, controls: FloatArray) -> FloatArray:
    x, v = states[:, 0], states[:, 1]
    faster = 0.9 * v + 0.2 * controls[:, 0]
    return np.column_stack([x + faster, faster])


def effort(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - states[:, 0] ** 2 + controls[:, 0] * next_states[:, 1]


def over_the_edge(states: FloatArray) -> BoolArray:
    over: BoolArray = np.abs(states[:, 0]) > 1.0
    return over


def doubt(states: FloatArray) -> FloatArray:
    """Nothing here and there, all here and there, and all in between."""
    return np.clip(0.4 + 1.2 * np.sin(4.0 * states[:, 0] + states[:, 1]), 0.0, 1.0)


PUSHED = Task(Box([-1.0, -1.0], [1.0, 1.0]), np.array([-1.0, 0.5]), effort, 0.8, 2.0, over_the_edge, 500)
STATES = np.random.default_rng(0).uniform(-1.1, 1.1, (60, 2))
SURELY = known(push, PUSHED.controls)


def doubtfully(states: FloatArray, action: int) -> Successors:
    return Successors(SURELY(states, action).next_states, doubt(states))


def scalar(unsure: bool) -> naive.ScalarStep:
    surely = naive.certainly(PUSHED, push)
    if not unsure:
        return surely
    return lambda state, action: (surely(state, action)[0], float(doubt(state[np.newaxis])[0]))


@pytest.mark.parametrize("hold", [1, 2, 3, 7])
@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
@pytest.mark.parametrize("action", [0, 1])
def test_a_path_is_that_of_the_naive_twin(action: int, unsure: bool, hold: int) -> None:
    path = follow(PUSHED, doubtfully if unsure else SURELY, STATES, action, holding=Holding(hold))
    twins = [naive.follow(PUSHED, scalar(unsure), state, action, hold) for state in STATES]
    discounts = np.array([twin.discount for twin in twins])
    np.testing.assert_allclose(path.rewards, [twin.reward for twin in twins], atol=1e-13)
    np.testing.assert_allclose(path.discounts, discounts, atol=1e-13)
    alive = ~over_the_edge(STATES)
    # where all is unknown on the way, it does not matter where a path leads
    clear = discounts > 0.0 if unsure else alive
    ends = np.array([twin.end for twin in twins])
    np.testing.assert_allclose(path.ends[clear], ends[clear], atol=1e-13)
    if unsure and hold == 1:
        assert path.uncertainty is not None
        expected = np.array([twin.uncertainty for twin in twins])
        np.testing.assert_array_equal(path.uncertainty[alive], expected[alive])
    else:
        assert path.uncertainty is None


def test_the_examples_end_before_during_and_after_the_steps_and_are_known_and_unknown() -> None:
    """Or the test above would show less than it seems to."""
    after_one = over_the_edge(push(STATES, PUSHED.controls[:1]))
    twins = [naive.follow(PUSHED, scalar(unsure=False), state, 0, 7) for state in STATES]
    after_seven = np.array([twin.discount == 0.0 for twin in twins])
    assert over_the_edge(STATES).any()
    assert (after_one & ~over_the_edge(STATES)).any()
    assert (after_seven & ~after_one).any()
    assert not after_seven.all()
    assert {0.0, 1.0} < set(doubt(STATES).tolist())


def test_paths_that_end_on_the_way_stay_at_their_end() -> None:
    path = follow(PUSHED, SURELY, STATES[~over_the_edge(STATES)], 0, holding=Holding(7))
    finished = path.discounts == 0.0
    assert over_the_edge(path.ends[finished]).all()
    assert not over_the_edge(path.ends[~finished]).any()


def test_nothing_is_asked_beyond_an_end() -> None:
    """Dynamics need not mean anything there."""

    def step(states: FloatArray, action: int) -> Successors:
        assert not over_the_edge(states).any()
        return SURELY(states, action)

    alive = STATES[~over_the_edge(STATES)]
    found, expected = (follow(PUSHED, f, alive, 1, holding=Holding(7)) for f in (step, SURELY))
    np.testing.assert_array_equal(found.rewards, expected.rewards)


@pytest.mark.parametrize("hold", [1, 3])
def test_states_that_are_said_to_have_ended_stay_and_are_worth_what_entering_them_pays(hold: int) -> None:
    ended = np.random.default_rng(1).random(len(STATES)) < 0.5
    path, usual = (
        follow(PUSHED, SURELY, STATES, 0, holding=Holding(hold), ended=given) for given in (ended, None)
    )
    expected = effort(STATES[ended], PUSHED.controls[:1], STATES[ended])
    np.testing.assert_array_equal(path.rewards[ended], expected)
    np.testing.assert_array_equal(path.discounts[ended], 0.0)
    np.testing.assert_array_equal(path.ends[ended], STATES[ended])
    others = ~ended & ~over_the_edge(STATES)
    np.testing.assert_array_equal(path.rewards[others], usual.rewards[others])
    np.testing.assert_array_equal(path.discounts[others], usual.discounts[others])


@pytest.mark.parametrize("hold", [1, 2, 3, 500])
def test_the_discount_of_a_path_without_end_is_that_of_so_many_steps(hold: int) -> None:
    task = replace(PUSHED, is_terminal=None)
    path = follow(task, known(lambda s, u: s, task.controls), STATES, 0, holding=Holding(hold))
    np.testing.assert_allclose(path.discounts, 0.8**hold, rtol=1e-13)


def folded(task: Task, path: Path) -> tuple[FloatArray, FloatArray]:
    """Rewards and discounts with the uncertainty in them."""
    unsure = np.zeros(len(path.ends)) if path.uncertainty is None else path.uncertainty
    mixed = (1.0 - unsure) * path.rewards + unsure * task.optimistic_value
    return mixed, (1.0 - unsure) * path.discounts


@settings(max_examples=30, deadline=None, database=None)
@given(first=st.integers(1, 4), times=st.integers(1, 4), seed=st.integers(0, 2**32 - 1), unsure=st.booleans())
def test_holding_again_and_again_is_holding_for_the_product(
    first: int, times: int, seed: int, unsure: bool
) -> None:
    step = doubtfully if unsure else SURELY
    states = np.random.default_rng(seed).uniform(-1.0, 1.0, (10, 2))
    rewards, discounts, ends = np.zeros(10), np.ones(10), states
    for _ in range(times):
        path = follow(PUSHED, step, ends, 0, holding=Holding(first))
        earned, counts = folded(PUSHED, path)
        rewards, discounts, ends = rewards + discounts * earned, discounts * counts, path.ends
    once = follow(PUSHED, step, states, 0, holding=Holding(first * times))
    expected, counts = folded(PUSHED, once)
    np.testing.assert_allclose(rewards, expected, atol=1e-12)
    np.testing.assert_allclose(discounts, counts, rtol=1e-13)
    leading_on = counts > 0.0
    np.testing.assert_allclose(ends[leading_on], once.ends[leading_on], atol=1e-13)


# --- tables of held controls, through the grid and exact ----------------------------------------------


def places(tables: Tables) -> FloatArray:
    """The weight of every node for every successor.  [n_nodes, n_actions, n_nodes]"""
    grid = tables.grid
    fractions = tables.fractions.reshape(-1, grid.n_dims).astype(np.float64)
    weights = dense_weights(grid, *expand(grid, tables.cells.reshape(-1), fractions))
    return weights.reshape(*tables.cells.shape, -1)


def assert_same_tables(found: Tables, expected: Tables) -> None:
    """The same, but for where paths lead after which nothing counts."""
    np.testing.assert_allclose(found.rewards, expected.rewards, atol=1e-11)
    np.testing.assert_allclose(found.discounts, expected.discounts, atol=1e-12)
    alive = found.discounts > 0.0
    np.testing.assert_allclose(places(found)[alive], places(expected)[alive], atol=1e-5)
    assert (found.uncertainty is None) == (expected.uncertainty is None)
    if found.uncertainty is not None and expected.uncertainty is not None:
        np.testing.assert_allclose(found.uncertainty, expected.uncertainty, atol=1e-12)
    assert found.n_clipped == expected.n_clipped
    assert found.optimistic_value == expected.optimistic_value
    assert found.value_bounds == pytest.approx(expected.value_bounds)


@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_through_a_flow_the_tables_are_those_of_the_successors_it_was_made_of(
    n_dims: int, spacing: str, kind: str, unsure: bool
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    successors, task = anything(grid, unsure=unsure), task_on(grid)
    found = tabulate(grid, task, Flow.of(grid, successors))
    assert task.terminal(grid.nodes).any()
    assert (found.uncertainty is not None) == unsure
    assert_same_tables(found, tabulate(grid, task, at_nodes(grid, successors)))


def test_through_a_flow_values_are_bounded_as_by_the_successors_it_was_made_of() -> None:
    grid = make_grid(2, "uniform", "line")
    successors, task = anything(grid, unsure=False), task_on(grid, discount=1.0, max_steps=40)
    expected = tabulate(grid, task, at_nodes(grid, successors)).value_bounds
    assert np.isfinite(expected).all()
    assert tabulate(grid, task, Flow.of(grid, successors)).value_bounds == pytest.approx(expected)


@pytest.mark.parametrize("hold", [1, 2, 5])
@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_held_steps_are_those_of_a_loop_over_nodes(n_dims: int, spacing: str, kind: str, hold: int) -> None:
    grid = make_grid(n_dims, spacing, kind)
    successors, task = anything(grid, seed=hold), task_on(grid)
    tables = optimistic(tabulate(grid, task, Flow.of(grid, successors), holding=Holding(hold)))
    twin = naive_flow.flow(grid, successors)
    nodes, weights = grid.nodes, places(tables)
    for node in range(0, grid.n_nodes, max(1, grid.n_nodes // 12)):
        for action in range(3):
            path = naive.folded(task, twin, nodes[node], action, hold)
            assert tables.rewards[node, action] == pytest.approx(path.reward, abs=1e-10)
            assert tables.discounts[node, action] == pytest.approx(path.discount, abs=1e-11)
            if path.discount > 0.0:
                expected = dense_weights(grid, *interpolants(grid, path.end[np.newaxis]))[0]
                np.testing.assert_allclose(weights[node, action], expected, atol=1e-5)


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("hold", [2, 4])
@pytest.mark.parametrize("spacing", ["uniform", "random"])
def test_holding_exact_dynamics_is_holding_their_interpolation_where_that_is_exact(
    spacing: str, hold: int, discount: float
) -> None:
    grid = make_grid(3, spacing, "mixed")
    task = task_on(grid, discount=discount, share=0.9, max_steps=20)
    # a box with room around it: whatever is moved stays inside, where the interpolation is exact
    exact = known(lambda states, controls: inwards(grid.box, states, controls), CONTROLS)
    expected = tabulate(grid, task, exact, holding=Holding(hold))
    found = tabulate(grid, task, Flow.through(grid, exact, 3), holding=Holding(hold))
    alive = ~task.terminal(grid.nodes)
    assert 0 < alive.sum() < grid.n_nodes
    assert_same_tables(found, expected)
    assert expected.n_clipped == found.n_clipped == 0


@pytest.mark.parametrize("hold", [1, 3])
@pytest.mark.parametrize("discount", [0.95, 1.0])
def test_where_all_is_unknown_everything_has_the_optimistic_value(hold: int, discount: float) -> None:
    grid = make_grid(2, "random", "mixed")
    unknown = anything(grid)._replace(uncertainty=np.ones((3, grid.n_nodes)))
    task = task_on(grid, discount=discount)
    plan = solve(tabulate(grid, task, Flow.of(grid, unknown), holding=Holding(hold)))
    alive = ~task.terminal(grid.nodes)
    np.testing.assert_allclose(plan.q_values[alive], 3.0, atol=1e-12)
    np.testing.assert_allclose(plan.q_values[~alive], entering(task, grid.nodes[~alive]), atol=1e-12)
    assert plan.converged


def test_knowing_less_never_makes_a_plan_less_optimistic() -> None:
    grid = make_grid(2, "uniform", "mixed")
    sure, task = anything(grid, unsure=False), task_on(grid)
    less = sure._replace(uncertainty=uncertainty_of(anything(grid)))
    fine = Limits(1e-10, 5000)
    for hold in (1, 4):
        surely, unsure = (
            solve(tabulate(grid, task, Flow.of(grid, made), holding=Holding(hold)), limits=fine).q_values
            for made in (sure, less)
        )
        assert (unsure >= surely - 1e-8).all()
        assert unsure.max() <= 3.0 + 1e-8


@known_or_flow
def test_paths_may_end_anywhere_on_the_way(flowing: bool) -> None:
    """Closed form: x grows by 1 a step at cost 1, the end is beyond 5.5; three steps at a time."""
    box = Box([0.0], [10.0])
    grid = Grid.uniform(box, [11])
    task = Task(box, np.array([1.0]), lambda s, u, n: -np.ones(len(s)), 0.5, 0.0, lambda s: s[:, 0] > 5.5)
    step = step_of(task, grid, known(lambda s, u: s + u, task.controls), flowing=flowing)
    tables = tabulate(grid, task, step, holding=Holding(3))
    expected_rewards = [-1.75] * 4 + [-1.5, -1.0] + [-1.0] * 5  # an end costs what its last step does
    np.testing.assert_allclose(tables.rewards[:, 0], expected_rewards, atol=1e-12)
    np.testing.assert_allclose(tables.discounts[:, 0], [0.125] * 3 + [0.0] * 8, atol=1e-12)
    values = solve(tables, limits=Limits(1e-12, 500)).q_values[:, 0]
    steps_to_go = np.array([6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(values, -2.0 * (1.0 - 0.5**steps_to_go), atol=1e-6)


@settings(max_examples=25)
@given(
    c=st.floats(0.0, 1.0), reward=st.floats(-5.0, 0.0), discount=st.floats(0.1, 0.99), hold=st.integers(1, 6)
)
def test_a_state_that_leads_to_itself_has_its_closed_form(
    c: float, reward: float, discount: float, hold: int
) -> None:
    """Q = (1 - c) (r + g Q) + 2 c whatever the hold."""
    box = Box([0.0], [1.0])
    grid = Grid.uniform(box, [3])
    task = Task(box, np.array([0.0]), lambda s, u, n: np.full(len(s), reward), discount, 2.0)
    still = Flow.of(grid, Successors(grid.nodes[np.newaxis], np.full((1, 3), c)))
    plan = solve(tabulate(grid, task, still, holding=Holding(hold)), limits=Limits(1e-12, 5000))
    expected = ((1.0 - c) * reward + 2.0 * c) / (1.0 - (1.0 - c) * discount)
    np.testing.assert_allclose(plan.q_values, expected, rtol=1e-6, atol=1e-6)


def test_held_values_are_bounded_with_discount_one_only() -> None:
    grid = make_grid(2, "uniform", "line")
    bounds = tabulate(grid, task_on(grid), Flow.of(grid, anything(grid)), holding=Holding(4)).value_bounds
    assert bounds == (-np.inf, np.inf)
    flat = replace(task_on(grid, discount=1.0, max_steps=40), reward=lambda s, u, n: np.full(len(s), -1.0))
    surely = Flow.of(grid, anything(grid, unsure=False))
    for hold in (1, 4):
        low, high = tabulate(grid, flat, surely, holding=Holding(hold)).value_bounds
        assert low == pytest.approx(-40.0)
        assert high == 3.0


@known_or_flow
@pytest.mark.parametrize("hold", [1, 2, 3, 5, 7])
def test_undiscounted_values_of_what_never_ends_are_the_lower_bound(hold: int, flowing: bool) -> None:
    """Nothing moves, every step costs 1, an episode lasts 42 steps: -42 whatever is held."""
    box = Box([0.0], [1.0])
    grid = Grid.uniform(box, [5])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 1.0, 0.0, lambda s: s[:, 0] > 2.0, 42)
    step = step_of(task, grid, known(lambda s, u: s, task.controls), flowing=flowing)
    np.testing.assert_allclose(solve(tabulate(grid, task, step, holding=Holding(hold))).q_values, -42.0)


@known_or_flow
def test_undiscounted_values_are_not_cut_where_an_early_end_costs_much(flowing: bool) -> None:
    """Falling at once costs 10 and ends it; the bound must leave room for that, however long the hold."""
    box = Box([0.0], [1.0])
    grid = Grid.uniform(box, [5])
    task = Task(
        box, np.array([0.0]), lambda s, u, n: np.full(len(s), -10.0), 1.0, 0.0, lambda s: s[:, 0] > 1.0, 8
    )
    step = step_of(task, grid, known(lambda s, u: s + 2.0, task.controls), flowing=flowing)
    np.testing.assert_allclose(solve(tabulate(grid, task, step, holding=Holding(8))).q_values, -10.0)


def test_once_all_paths_have_ended_nobody_is_asked_any_more() -> None:
    """Somebody's function need not know what to do with no states at all."""
    sizes = []

    def off_the_edge(states: FloatArray, controls: FloatArray) -> FloatArray:
        sizes.append(len(states))
        return np.full_like(states, BOX.high[0])

    tabulate(GRID, TASK, known(off_the_edge, TASK.controls), holding=Holding(4))
    assert min(sizes) > 0
