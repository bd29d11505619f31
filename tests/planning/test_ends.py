"""Ends are worth what entering them pays: lines whose exact solution is known, by every backup."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import BackupName, Limits, Lookahead, QFunction, roll_out, solve, tabulate
from optimist.steps import known
from optimist.task import Task

CLOSE = Limits(tolerance=1e-12, max_sweeps=20_000)
every_backup = pytest.mark.parametrize("backup", list(BackupName))
FAILURE, GOAL = -100.0, 10.0


def step_by(states: FloatArray, controls: FloatArray) -> FloatArray:
    return states + controls


def solved(task: Task, grid: Grid, backup: str) -> FloatArray:
    plan = solve(tabulate(grid, task, known(step_by, task.controls)), backup=backup, limits=CLOSE)
    assert plan.converged
    return plan.q_values


# --- steps from node to node ---------------------------------------------------------------------------


def between_goal_and_wall(*, discount: float, per_step: float = -1.0) -> Task:
    """Integers from -5 to 5: the goal is below -3.5, failure above 2.5, paid by where one arrives only."""

    def ended(states: FloatArray) -> BoolArray:
        over: BoolArray = (states[:, 0] < -3.5) | (states[:, 0] > 2.5)
        return over

    def arriving(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        x = next_states[:, 0]
        return np.where(x > 2.5, FAILURE, np.where(x < -3.5, GOAL, per_step))

    return Task(Box([-5.0], [5.0]), np.array([-1.0, 1.0]), arriving, discount, GOAL, ended, 100)


@every_backup
@pytest.mark.parametrize("discount", [0.5, 0.95, 1.0])
def test_between_a_goal_and_a_wall_every_value_is_exact(backup: str, discount: float) -> None:
    grid = Grid.uniform(Box([-5.0], [5.0]), [11])
    q_values = solved(between_goal_and_wall(discount=discount), grid, backup)
    best = {}
    for x in range(-3, 3):  # all alive go left
        steps = x + 4
        best[x] = -sum(discount**k for k in range(steps - 1)) + discount ** (steps - 1) * GOAL
    expected = np.empty((11, 2))
    for row, x in enumerate(range(-5, 6)):
        if x <= -4 or x >= 3:
            expected[row] = GOAL if x < 0 else FAILURE
            continue
        left = GOAL if x == -3 else -1.0 + discount * best[x - 1]
        right = FAILURE if x == 2 else -1.0 + discount * best[x + 1]
        expected[row] = left, right
    np.testing.assert_allclose(q_values, expected, atol=1e-8)
    assert (q_values[2:8].argmax(axis=1) == 0).all()


@every_backup
def test_the_wall_is_entered_where_even_that_is_cheaper_than_going_on(backup: str) -> None:
    """Ends are not to be shunned as such: at 30 a step the nearer of the two is the better."""
    grid = Grid.uniform(Box([-5.0], [5.0]), [11])
    q_values = solved(between_goal_and_wall(discount=1.0, per_step=-30.0), grid, backup)
    # left from x: 30 (x + 3) - 10; right: 30 (2 - x) + 100
    lefts = [-30.0 * (x + 3) + GOAL for x in range(-3, 3)]
    rights = [-30.0 * (2 - x) + FAILURE for x in range(-3, 3)]
    np.testing.assert_allclose(q_values[2:8].max(axis=1), np.maximum(lefts, rights), atol=1e-8)
    np.testing.assert_array_equal(q_values[2:8].argmax(axis=1), np.greater(rights, lefts))
    assert np.greater(rights, lefts).any()


# --- successors in cells that are half alive -----------------------------------------------------------


@every_backup
@pytest.mark.parametrize("step", [0.1, 0.2])
def test_a_live_successor_beside_a_wall_sees_no_prize(backup: str, step: float) -> None:
    """Living costs 1 a step, 10 in all; the wall is beyond 2.25, and 2 + step lies before it."""

    def paid(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return np.where(next_states[:, 0] > 2.25, FAILURE, -1.0)

    task = Task(Box([-3.0], [5.0]), np.array([-step, step]), paid, 0.9, 0.0, lambda s: s[:, 0] > 2.25)
    q_values = solved(task, Grid.uniform(task.box, [9]), backup)
    np.testing.assert_allclose(q_values[:6].max(axis=1), -10.0, atol=1e-6)  # float32 fractions
    np.testing.assert_allclose(q_values[6:], FAILURE, atol=1e-12)
    expected = -1.0 + 0.9 * ((1.0 - step) * -10.0 + step * FAILURE)
    if backup is BackupName.EQ7_PRINTED:  # its own equation: the other nodes, divided
        expected = (-1.0 + 0.9 * step * FAILURE) / (1.0 - 0.9 * (1.0 - step))
    assert q_values[5, 1] == pytest.approx(expected, rel=1e-6)
    assert q_values[5, 1] < -10.0  # with an end worth nothing it was more
    assert q_values[5].argmax() == 0


@every_backup
@settings(max_examples=8, deadline=None, database=None)
@given(
    step=st.floats(0.05, 0.9),
    discount=st.sampled_from([0.5, 0.9, 1.0]),
    slope=st.floats(-3.0, 3.0),
    offset=st.floats(-10.0, -1.0),
)
def test_a_reward_that_is_linear_in_where_one_arrives_is_interpolated_exactly_in_the_last_cell(
    backup: str, step: float, discount: float, slope: float, offset: float
) -> None:
    """One action, to the right: V(n) = r(n + s) + g ((1 - s) V(n) + s V(n + 1)), V = r at the end."""
    high = offset + 4.0 * abs(slope)

    def linear(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return np.asarray(offset + slope * next_states[:, 0] - max(high, 0.0))

    def pays(x: float) -> float:
        return offset + slope * x - max(high, 0.0)

    wall = 2.0 + 0.5 * (step + 1.0)  # 2 + step is alive, 3 is not
    task = Task(Box([0.0], [4.0]), np.array([step]), linear, discount, 0.0, lambda s: s[:, 0] > wall, 500)
    found = solved(task, Grid.uniform(task.box, [5]), backup)[:, 0]
    # the step as it is stored
    share = float(np.float32(step))
    expected = {4: pays(4.0), 3: pays(3.0)}
    for n in (2, 1, 0):
        expected[n] = (pays(n + step) + discount * share * expected[n + 1]) / (1.0 - discount * (1.0 - share))
    np.testing.assert_allclose(found, [expected[n] for n in range(5)], rtol=1e-5, atol=1e-5)


@every_backup
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_wall_that_can_be_avoided_is_never_entered(backup: str, depth: int) -> None:
    """Living costs 1 a step, the walls are beyond 1.1 on both sides, in the middle of a cell."""

    def paid(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return np.where(np.abs(next_states[:, 0]) > 1.1, FAILURE, -1.0)

    def over(states: FloatArray) -> BoolArray:
        crashed: BoolArray = np.abs(states[:, 0]) > 1.1
        return crashed

    task = Task(Box([-2.0], [2.0]), np.array([-0.08, 0.08]), paid, 0.9, 0.0, over, max_steps=100)
    grid = Grid.uniform(task.box, [17])
    q_function = QFunction(grid, solved(task, grid, backup))
    policy = Lookahead(task, known(step_by, task.controls), q_function, depth) if depth else q_function
    starts = np.linspace(-1.099, 1.099, 201)[:, np.newaxis]
    rollouts = roll_out(task, step_by, policy, starts)
    assert not rollouts.terminated.any()
    np.testing.assert_array_equal(rollouts.total_rewards, -100.0)


# --- goals ---------------------------------------------------------------------------------------------


@every_backup
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_goal_is_gone_to_from_everywhere_in_the_fewest_steps(backup: str, discount: float) -> None:
    """-1 a step, the goal beyond 2.25, 0.6 a step: ends that cost what the last step costs are no trap."""
    task = Task(
        Box([-4.0], [4.0]),
        np.array([-0.6, 0.6]),
        lambda s, u, n: -np.ones(len(s)),
        discount,
        0.0,
        lambda s: s[:, 0] > 2.25,
        max_steps=60,
    )
    grid = Grid.uniform(task.box, [9])
    q_function = QFunction(grid, solved(task, grid, backup))
    starts = np.linspace(-3.97, 2.24, 60)[:, np.newaxis]
    fewest = np.floor((2.25 - starts[:, 0]) / 0.6) + 1
    for policy in (q_function, Lookahead(task, known(step_by, task.controls), q_function, 2)):
        rollouts = roll_out(task, step_by, policy, starts)
        assert rollouts.terminated.all()
        np.testing.assert_array_equal(rollouts.steps, fewest)


@every_backup
def test_steps_of_a_cell_are_counted_to_the_last(backup: str) -> None:
    """V(x) = -(steps to go), at nodes from which a whole number of steps leads onto the goal's edge."""
    task = Task(
        Box([-4.0], [4.0]),
        np.array([-1.0, 1.0]),
        lambda s, u, n: -np.ones(len(s)),
        1.0,
        0.0,
        lambda s: s[:, 0] >= 2.0,
        max_steps=60,
    )
    q_values = solved(task, Grid.uniform(task.box, [9]), backup)
    expected = [-6.0, -5.0, -4.0, -3.0, -2.0, -1.0, -1.0, -1.0, -1.0]
    np.testing.assert_allclose(q_values[:, 1], expected, atol=1e-9)
    np.testing.assert_allclose(q_values.max(axis=1), expected, atol=1e-9)
