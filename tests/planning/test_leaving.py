"""Beyond the sides of the box that are known to be open."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.discretisation import ONE_STEP, Holding, Layout
from optimist.grid import Grid
from optimist.planning import BackupName, Limits, Planner, solve, tabulate
from optimist.planning.leaving import Leaving, seen_leaving
from optimist.planning.policy import Lookahead, QFunction
from optimist.steps import Successors, known
from optimist.task import Task

BOX = Box([-1.0, 0.0, 0.0], [1.0, 8.0, 1.0], periodic=[False, False, True])
GRID = Grid.uniform(BOX, [5, 9, 4])
FREE = Task(BOX, np.array([0.0, 1.0]), lambda s, u, n: np.zeros(len(s)), 0.9, 0.0)
OPEN = Leaving(FREE, np.array([False, True, False]), np.array([True, True, False]), worst=-50.0)
IDLE = np.zeros((1, 1))


def inside(count: int) -> FloatArray:
    return np.random.default_rng(0).uniform(BOX.low, BOX.high, size=(count, 3))


# --- values out there ----------------------------------------------------------------------------------


def test_inside_and_on_the_edges_nothing_changes() -> None:
    states = np.concatenate([inside(50), [[1.0, 8.0, 0.5], [-1.0, 0.0, 0.0]]])
    values = np.random.default_rng(1).normal(size=52) * 100.0
    np.testing.assert_array_equal(OPEN.shares(GRID, states), 0.0)
    np.testing.assert_array_equal(OPEN.valued(GRID, states, IDLE, values), values)


def test_through_closed_sides_and_along_periodic_axes_nothing_changes() -> None:
    states = np.array([[-1.5, 4.0, 0.5], [-99.0, 4.0, 0.5], [0.0, 4.0, 7.3], [0.0, 4.0, -55.0]])
    np.testing.assert_array_equal(OPEN.shares(GRID, states), 0.0)
    np.testing.assert_array_equal(OPEN.valued(GRID, states, IDLE, np.full(4, 3.0)), 3.0)


@pytest.mark.parametrize(("axis", "edge", "way"), [(0, 1.0, 1.0), (1, 8.0, 1.0), (1, 0.0, -1.0)])
def test_out_there_values_fall_with_the_distance_towards_the_worst(
    axis: int, edge: float, way: float
) -> None:
    distances = np.array([0.0, 1e-6, 0.01, 0.3, 1.0, 2.0, 10.0, 1e4])  # cells
    cell = (0.5, 1.0)[axis]
    states = np.tile([0.3, 4.0, 0.5], (len(distances), 1))
    states[:, axis] = edge + way * distances * cell
    found = OPEN.valued(GRID, states, IDLE, np.full(len(distances), 10.0))
    assert (np.diff(found) < 0.0).all()
    np.testing.assert_allclose(found, 10.0 - 60.0 * distances / (1.0 + distances), rtol=1e-9)
    assert found[4] == pytest.approx(-20.0)  # one cell out: half the way
    assert found.min() > -50.0


def test_what_is_worse_than_the_worst_stays_as_it_is() -> None:
    out = np.array([[3.0, 4.0, 0.5]])
    assert OPEN.valued(GRID, out, IDLE, np.array([-80.0])).tolist() == [-80.0]


def test_out_through_two_sides_counts_the_farther() -> None:
    both, one = np.array([[2.0, 9.0, 0.5]]), np.array([[2.0, 4.0, 0.5]])
    assert OPEN.shares(GRID, both) == OPEN.shares(GRID, one) == pytest.approx(2.0 / 3.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1e30, 1e300, np.inf])
def test_however_far_out_it_is_worth_the_worst(far: float) -> None:
    states = np.array([[far, 4.0, 0.5], [0.0, -far, 0.5], [far, far, 0.5], [-far, 4.0, 0.5]])
    assert OPEN.shares(GRID, states).tolist() == [1.0, 1.0, 1.0, 0.0]  # the last side is closed
    assert OPEN.valued(GRID, states, IDLE, np.full(4, 10.0)).tolist() == [-50.0, -50.0, -50.0, 10.0]


def test_a_cell_is_one_of_a_uniform_grid_wherever_the_nodes_are() -> None:
    """So that how far out something is does not hang on where nodes were placed."""
    spaced = Grid.spaced(BOX, [5, 9, 4], [2.0, 0.5, 1.0])
    states = np.random.default_rng(2).uniform(BOX.low - 3.0, BOX.high + 3.0, size=(40, 3))
    np.testing.assert_array_equal(OPEN.shares(spaced, states), OPEN.shares(GRID, states))
    twice = OPEN.shares(Grid.uniform(BOX, [9, 17, 4]), np.array([[1.5, 4.0, 0.5]]))
    assert twice == pytest.approx(2.0 / 3.0)  # two cells of half the width


def test_staying_out_there_for_ever_is_worth_what_it_pays() -> None:
    """Where that is worse than the worst inside: 1 / (1 - discount) times the reward there."""
    task = Task(BOX, np.array([0.0, 1.0]), lambda s, u, n: -7.0 - u[:, 0] + 0.0 * s[:, 0], 0.9, 0.0)
    leaving = Leaving(task, OPEN.low, OPEN.high, worst=-50.0)
    out = np.array([[1.5, 4.0, 0.5], [1.5, 4.0, 0.5], [0.0, 4.0, 0.5]])  # one cell out; inside
    found = leaving.valued(GRID, out, np.array([[0.0], [1.0], [1.0]]), np.full(3, -10.0))
    np.testing.assert_allclose(found, [-10.0 - 0.5 * 60.0, -10.0 - 0.5 * 70.0, -10.0])


def test_where_no_reward_can_be_said_it_is_the_worst() -> None:
    task = Task(BOX, np.array([0.0]), lambda s, u, n: np.where(n[:, 0] > 1.0, -np.inf, 0.0), 0.9, 0.0)
    leaving = Leaving(task, OPEN.low, OPEN.high, worst=-50.0)
    assert leaving.valued(GRID, np.array([[1.5, 4.0, 0.5]]), IDLE, np.zeros(1)).tolist() == [-25.0]


# --- what was seen -------------------------------------------------------------------------------------


def test_sides_are_open_once_something_went_out_there() -> None:
    seen = np.concatenate([inside(20), [[1.2, 3.0, 0.5], [0.0, -0.1, 0.5]]])
    found = seen_leaving(FREE, seen, -7.0)
    assert found is not None
    assert found.low.tolist() == [False, True, False]
    assert found.high.tolist() == [True, False, False]
    assert found.worst == -7.0


def test_nothing_left_means_nothing_is_open() -> None:
    assert seen_leaving(FREE, inside(20), 0.0) is None
    edges = np.array([[1.0, 8.0, 0.5], [-1.0, 0.0, 0.5]])
    assert seen_leaving(FREE, edges, 0.0) is None
    assert seen_leaving(FREE, np.array([[0.0, 4.0, 5.0], [0.0, 4.0, -5.0]]), 0.0) is None
    assert seen_leaving(FREE, np.empty((0, 3)), 0.0) is None


# --- plans ---------------------------------------------------------------------------------------------

LINE = Box([0.0], [10.0])
LINE_GRID = Grid.uniform(LINE, [11])


def dearer_inside(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Staying at 2 costs a little, at the edge still less, everywhere else much."""
    x = states[:, 0]
    return np.where(np.abs(x - 2.0) < 0.75, -0.2, np.where(np.abs(x - 10.0) < 0.5, -0.1, -1.0))


WALK = Task(LINE, np.array([-1.0, 0.0, 1.0]), dearer_inside, 0.9, 0.0, max_steps=50)
STEP = known(lambda s, u: s + u, WALK.controls)
TO_THE_RIGHT = Leaving(WALK, np.array([False]), np.array([True]), worst=-10.0)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("backup", list(BackupName))
def test_a_side_that_looked_free_is_no_longer_left_through(backup: str, depth: int) -> None:
    """Clipped to the edge, pushing outwards for ever was as good as standing there."""
    planner, layout = Planner(WALK, backup, Limits(1e-10, 5000)), Layout(LINE_GRID, ONE_STEP, depth)
    free, open_ = planner.plan(STEP, layout), planner.plan(STEP, layout, leaving=TO_THE_RIGHT)
    edge = len(LINE_GRID.nodes) - 1
    assert free.plan.q_values[edge, 2] == pytest.approx(-1.0, abs=1e-6)  # -0.1 a step for ever
    assert free.plan.q_values[edge, 1] == pytest.approx(-1.0, abs=1e-6)
    # one cell out: half of what follows is the worst
    expected = -0.1 + 0.9 * (0.5 * -1.0 + 0.5 * -10.0)
    if backup is BackupName.EQ7_PRINTED:  # divides by its own self-loop, which is of the half that is left
        expected = (-0.1 + 0.9 * 0.5 * -10.0) / (1.0 - 0.9 * 0.5)
    assert open_.plan.q_values[edge, 2] == pytest.approx(expected, abs=1e-6)
    starts = np.arange(0.0, 11.0)[:, np.newaxis]
    for _ in range(30):
        starts = starts + WALK.controls[open_.policy.greedy(starts)]
        assert (starts <= 10.0 + 1e-9).all()


@pytest.mark.parametrize("holding", [ONE_STEP, Holding(3), Holding(8, until_crossed=True)])
def test_through_closed_sides_tables_are_as_they_were(holding: Holding) -> None:
    to_the_left = Leaving(WALK, np.array([True]), np.array([False]), worst=-10.0)
    plain, found = (
        tabulate(LINE_GRID, WALK, STEP, holding=holding, leaving=leaving) for leaving in (None, to_the_left)
    )
    right = LINE_GRID.nodes[:, 0] > 5.0
    np.testing.assert_array_equal(found.rewards[right], plain.rewards[right])
    np.testing.assert_array_equal(found.discounts[right], plain.discounts[right])
    assert (found.rewards[0] <= plain.rewards[0]).all()
    assert (found.rewards[0] < plain.rewards[0]).any()


@pytest.mark.parametrize("holding", [ONE_STEP, Holding(3), Holding(8, until_crossed=True)])
def test_tables_say_what_valued_says_of_the_ends(holding: Holding) -> None:
    """r + discount V(end), V as it is out there, of any values above the worst."""
    values = np.random.default_rng(3).uniform(-9.0, 0.0, size=(11, 3))
    q_function = QFunction(LINE_GRID, values)
    plain = tabulate(LINE_GRID, WALK, STEP, holding=holding)
    found = tabulate(LINE_GRID, WALK, STEP, holding=holding, leaving=TO_THE_RIGHT)
    for node, x in enumerate(LINE_GRID.nodes[:, 0]):
        for action, control in enumerate(WALK.controls[:, 0]):
            steps = 1 if holding.until_crossed else holding.most  # a step is a cell
            end = np.array([[x + steps * control]])
            clipped = q_function.value(LINE.clip(end))
            expected = plain.rewards[node, action] + plain.discounts[node, action] * TO_THE_RIGHT.valued(
                LINE_GRID, end, WALK.controls[action : action + 1], clipped
            )
            backed_up = found.rewards[node, action] + found.discounts[node, action] * clipped
            np.testing.assert_allclose(backed_up, expected, rtol=1e-12)


def test_an_end_out_there_is_worth_what_it_pays() -> None:
    task = Task(LINE, np.array([1.0]), lambda s, u, n: -n[:, 0], 0.9, 0.0, lambda s: s[:, 0] > 9.5)
    step = known(lambda s, u: s + u, task.controls)
    plain, found = (tabulate(LINE_GRID, task, step, leaving=leaving) for leaving in (None, TO_THE_RIGHT))
    np.testing.assert_array_equal(found.rewards, plain.rewards)
    np.testing.assert_array_equal(found.discounts, plain.discounts)


def test_looking_ahead_values_the_leaves_as_they_are_out_there() -> None:
    q_function = QFunction(LINE_GRID, np.random.default_rng(4).uniform(-9.0, 0.0, size=(11, 3)))
    policy = Lookahead(WALK, STEP, q_function, 1, leaving=TO_THE_RIGHT)
    states = np.array([[4.3], [9.5], [10.0], [13.0]])
    found = policy(states)
    for row, state in enumerate(states):
        for action, control in enumerate(WALK.controls):
            end = (state + control)[np.newaxis]
            rest = TO_THE_RIGHT.valued(LINE_GRID, end, control[np.newaxis], q_function.value(LINE.clip(end)))[
                0
            ]
            earned = dearer_inside(state[np.newaxis], control[np.newaxis], end)[0]
            assert found[row, action] == pytest.approx(earned + 0.9 * rest, rel=1e-12)
    # whoever is outside comes home
    far = np.array([[14.0]])
    level = Lookahead(WALK, STEP, QFunction(LINE_GRID, np.full((11, 3), -1.0)), 2, leaving=TO_THE_RIGHT)
    assert level.greedy(far).tolist() == [0]


def test_what_is_unknown_out_there_promises_little() -> None:
    def unknown(states: FloatArray, action: int) -> Successors:
        return Successors(states + WALK.controls[action], np.ones(len(states)))

    q_function = QFunction(LINE_GRID, np.full((11, 3), -5.0))
    policy = Lookahead(WALK, unknown, q_function, 1, leaving=TO_THE_RIGHT)
    found = policy(np.array([[5.0], [11.0], [12.0], [20.0]]))
    np.testing.assert_allclose(found[0], 0.0, atol=1e-12)  # V_MAX
    assert (np.diff(found[:, 1]) < 0.0).all()


def test_the_worst_can_be_that_of_a_plan() -> None:
    """A second plan that knows of the open side is nowhere better than the first."""
    layout = Layout(LINE_GRID, ONE_STEP, 0)
    first = Planner(WALK).plan(STEP, layout)
    leaving = seen_leaving(WALK, np.array([[10.4]]), first.worst)
    assert leaving is not None
    second = solve(tabulate(LINE_GRID, WALK, STEP, leaving=leaving), limits=Limits(1e-10, 5000))
    best = solve(tabulate(LINE_GRID, WALK, STEP), limits=Limits(1e-10, 5000))
    assert (second.q_values <= best.q_values + 1e-8).all()
