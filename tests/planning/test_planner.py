"""One call plans: the same, bit for bit, as tabulating, solving and looking ahead by hand."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import optimist
from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.discretisation import ONE_STEP, Discretisation, Holding, Layout
from optimist.grid import Grid
from optimist.planning import (
    Flow,
    KnownPlan,
    Limits,
    Lookahead,
    Planner,
    QFunction,
    plan,
    roll_out,
    solve,
    tabulate,
)
from optimist.planning.certificate import certify
from optimist.planning.policy import affordable_depth
from optimist.steps import Successors, known
from optimist.task import Task
from tests.planning.cases import anything


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    """An angle and its rate, which may leave the box."""
    rates = 0.95 * states[:, 1] + 0.3 * np.sin(states[:, 0]) + 0.2 * controls[:, 0]
    return np.column_stack([states[:, 0] + 0.2 * rates, rates])


def effort(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - 0.1 * next_states[:, 1] ** 2 - 0.01 * controls[:, 0] ** 2


def upright(states: FloatArray) -> BoolArray:
    done: BoolArray = np.cos(states[:, 0]) < -0.95
    return done


BOX = Box([-np.pi, -3.0], [np.pi, 3.0], periodic=[True, False])
TASK = Task(BOX, np.array([-1.0, 0.0, 1.0]), effort, 0.95, 0.0, upright, max_steps=40)
STEP = known(swing, TASK.controls)
SMALL = Discretisation(nodes=(14, 11), hold=1)
GRID = Grid.uniform(BOX, (14, 11))
HOLDS = [(1, Holding(1)), (3, Holding(3)), (None, Holding(16, until_crossed=True))]
STATES = np.random.default_rng(0).uniform(BOX.low, BOX.high, (50, 2))


@pytest.mark.parametrize(("hold", "holding"), HOLDS)
@pytest.mark.parametrize("depth", [0, 2, None])
@pytest.mark.parametrize("backup", ["v-exact", "eq7"])
def test_one_call_is_the_assembly_by_hand(
    backup: str, depth: int | None, hold: int | None, holding: Holding
) -> None:
    discretisation = Discretisation(nodes=(14, 11), spacing=(1.0, 1.5), limits=(1.0, 2.5), hold=hold)
    limits = Limits(1e-6, 300)
    made = plan(TASK, swing, discretisation, depth=depth, backup=backup, limits=limits)

    box = Box([-np.pi, -2.5], [np.pi, 2.5], periodic=[True, False])
    grid = Grid.spaced(box, (14, 11), (1.0, 1.5))
    tables = tabulate(grid, TASK, STEP, holding=holding)
    expected = solve(tables, backup=backup, limits=limits)
    q_function = QFunction(grid, expected.q_values)

    assert made.grid.box == box
    for nodes, same in zip(made.grid.axes, grid.axes, strict=True):
        np.testing.assert_array_equal(nodes, same)
    np.testing.assert_array_equal(made.plan.q_values, expected.q_values)
    assert (made.plan.sweeps, made.plan.residual) == (expected.sweeps, expected.residual)
    assert made.plan.converged
    assert made.n_clipped == tables.n_clipped > 0
    assert made.mean_hold == tables.mean_hold
    assert made.layout.holding == holding
    assert (made.expected, made.tried) == (None, ())
    np.testing.assert_array_equal(made.q_function(STATES), q_function(STATES))
    if depth == 0:
        assert made.policy is made.q_function
    else:
        flow = Flow.through(grid, STEP, 3)  # quicker than the dynamics themselves
        by_hand = Lookahead(TASK, flow, QFunction(flow.grid, expected.q_values), depth or affordable_depth(3))
        assert isinstance(made.policy, Lookahead)
        assert made.policy.depth == by_hand.depth
        np.testing.assert_array_equal(made.policy(STATES), by_hand(STATES))


@pytest.mark.parametrize(("hold", "holding"), HOLDS)
def test_a_known_plan_acts_and_is_certified_as_by_hand(hold: int | None, holding: Holding) -> None:
    made = plan(TASK, swing, SMALL.model_copy(update={"hold": hold}), depth=1)
    rollouts, expected = made.roll_out(STATES), roll_out(TASK, swing, made.policy, STATES)
    np.testing.assert_array_equal(rollouts.paths, expected.paths)
    np.testing.assert_array_equal(rollouts.total_rewards, expected.total_rewards)
    assert rollouts.terminated.any()
    certificate, same = made.certify(), certify(made.q_function, TASK, STEP, holding=holding)
    np.testing.assert_array_equal(certificate.cell_residuals, same.cell_residuals)
    assert (certificate.lower, certificate.upper) == (same.lower, same.upper)


def test_the_seconds_told_are_those_it_took() -> None:
    began = perf_counter()
    made = plan(TASK, swing, SMALL)
    assert 0.0 < made.seconds <= perf_counter() - began


def test_the_package_itself_plans() -> None:
    assert optimist.plan is plan
    assert isinstance(optimist.plan(TASK, swing, optimist.Discretisation(nodes=(5, 5))), KnownPlan)


def test_by_default_the_grid_is_uniform_over_all_of_the_box_and_controls_are_held() -> None:
    box = Box([-1.0], [1.0])
    task = replace(TASK, box=box, is_terminal=None, reward=lambda s, u, n: -np.abs(s[:, 0]), max_steps=9)
    made = plan(task, lambda s, u: np.clip(s + 0.1 * u, -1.0, 1.0))
    assert made.grid.shape == (101,)
    assert made.grid.box == box
    np.testing.assert_allclose(np.diff(made.grid.axes[0]), 0.02)
    assert made.layout.holding == Holding(9, until_crossed=True)
    assert made.layout.name == "uniform"


def test_a_planner_plans_through_a_flow_as_through_any_step() -> None:
    planner, layout = Planner(TASK), Layout(GRID, depth=2)
    flow = Flow.through(GRID, STEP, TASK.n_actions)
    made, plain = planner.plan(flow, layout), planner.plan(flow.__call__, layout)
    assert made.step is flow
    np.testing.assert_array_equal(made.plan.q_values, plain.plan.q_values)
    assert isinstance(made.policy, Lookahead)
    assert isinstance(plain.policy, Lookahead)
    np.testing.assert_allclose(made.policy(STATES), plain.policy(STATES), atol=1e-12)


def test_a_planner_is_optimistic_of_what_a_step_does_not_know() -> None:
    planner = Planner(replace(TASK, optimistic_value=5.0))
    unknown = anything(GRID)._replace(uncertainty=np.ones((3, GRID.n_nodes)))
    made = planner.plan(Flow.of(GRID, unknown), Layout(GRID, depth=1))
    alive = ~upright(GRID.nodes)
    np.testing.assert_allclose(made.plan.q_values[alive], 5.0, atol=1e-12)
    assert isinstance(made.policy, Lookahead)
    np.testing.assert_allclose(made.policy(STATES), 5.0, atol=1e-12)


@pytest.mark.parametrize("holding", [ONE_STEP, Holding(3), Holding(8, until_crossed=True)])
def test_without_optimism_what_is_uncertain_counts_as_known(holding: Holding) -> None:
    """In the plan and in acting on it."""
    planner, layout = Planner(replace(TASK, optimistic_value=5.0)), Layout(GRID, holding, depth=2)
    surely = Flow.through(GRID, STEP, 3)

    def unsure(states: FloatArray, action: int) -> Successors:
        return Successors(surely(states, action).next_states, np.full(len(states), 0.3 + 0.2 * action))

    found = planner.plan(unsure, layout, optimistic=False)
    expected = planner.plan(surely.__call__, layout)
    hopeful = planner.plan(unsure, layout)
    np.testing.assert_array_equal(found.plan.q_values, expected.plan.q_values)
    assert isinstance(found.policy, Lookahead)
    assert isinstance(expected.policy, Lookahead)
    np.testing.assert_array_equal(found.policy(STATES), expected.policy(STATES))
    assert (hopeful.plan.q_values[~upright(GRID.nodes)] > found.plan.q_values[~upright(GRID.nodes)]).all()


def test_planning_from_an_earlier_plan_takes_fewer_sweeps() -> None:
    planner, layout = Planner(TASK), Layout(GRID, depth=0)
    heard: list[tuple[int, float]] = []
    first = planner.plan(STEP, layout, on_sweep=lambda count, change: heard.append((count, change)))
    assert [count for count, _ in heard] == list(range(1, first.plan.sweeps + 1))
    again = planner.plan(STEP, layout, start=first.plan.q_values)
    assert again.plan.sweeps <= 2 < first.plan.sweeps
    np.testing.assert_allclose(again.plan.q_values, first.plan.q_values, atol=2e-3)


def test_a_plan_made_before_is_acted_on_alike() -> None:
    planner, layout = Planner(TASK), Layout(GRID, depth=2)
    made = planner.plan(STEP, layout)
    again = planner.acting_on(made.plan, STEP, layout)
    assert again.plan is made.plan
    assert again.grid is GRID
    assert isinstance(made.policy, Lookahead)
    assert isinstance(again.policy, Lookahead)
    np.testing.assert_array_equal(again.policy(STATES), made.policy(STATES))
    np.testing.assert_array_equal(again.q_function.q_values, made.q_function.q_values)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"discretisation": Discretisation(nodes=(5,))}, r"`grid.nodes` must have one .* \(2\); got 1"),
        ({"discretisation": Discretisation(spacing=(1.0,) * 3)}, r"`grid.spacing` .* \(2\); got 3"),
        ({"discretisation": Discretisation(limits=(1.0,))}, r"`grid.limits` .* \(2\); got 1"),
        ({"discretisation": Discretisation(budget=8)}, "`grid.budget` must be at least 9, three .*; got 8"),
        pytest.param({"discretisation": Discretisation(hold=41)}, "`hold` .* from 1 to 40; got 41"),
        pytest.param({"depth": 12}, "from 1 to 11 steps with 3 actions.*; got 12"),
        pytest.param({"depth": -1}, "from 1 to 11 steps with 3 actions.*; got -1"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_anything_is_asked(changes: Any, says: str) -> None:
    def never(states: FloatArray, controls: FloatArray) -> FloatArray:
        raise AssertionError("was asked")

    with pytest.raises(ValueError, match=says):
        plan(TASK, never, **changes)


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (Layout(GRID, Holding(41)), "`hold` must be a whole number from 1 to 40; got 41"),
        (Layout(GRID, Holding(0)), "`hold` must be a whole number from 1 to 40; got 0"),
        (Layout(GRID, depth=12), "must be from 1 to 11 steps with 3 actions.*; got 12"),
        (Layout(GRID, depth=-1), "must be from 1 to 11 steps with 3 actions.*; got -1"),
    ],
)
def test_a_layout_that_does_not_fit_the_task_is_refused(layout: Layout, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Planner(TASK).require_fits(layout)
    with pytest.raises(ValueError, match=says):
        Planner(TASK).plan(STEP, layout)


def test_a_grid_that_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimist.planning.memory.available_bytes", lambda: 10**6)
    Planner(TASK).require_fits(Layout(GRID))
    with pytest.raises(ValueError, match="must fit in memory; 101 x 101 nodes with 3 actions need about"):
        plan(TASK, swing)


def test_an_unknown_backup_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`backup` must be one of v-exact, .*; got 'eq8'"):
        plan(TASK, swing, SMALL, backup="eq8")


def test_limits_that_leave_nothing_are_refused() -> None:
    off = replace(TASK, box=Box([1.0, -3.0], [2.0, 3.0]))
    with pytest.raises(ValueError, match="`limits` must leave some of the box"):
        plan(off, swing, Discretisation(nodes=(5, 5), limits=(0.5, 1.0)))


@pytest.mark.parametrize("n_actions", [2, 4])
def test_a_flow_of_other_actions_than_the_task_is_refused(n_actions: int) -> None:
    flow = Flow.of(GRID, anything(GRID, n_actions=n_actions))
    with pytest.raises(ValueError, match=r"must .*; got"):
        Planner(TASK).plan(flow, Layout(GRID, depth=1))


def test_a_flow_on_another_grid_cannot_be_looked_ahead_through() -> None:
    other = Grid.uniform(BOX, (14, 11))
    with pytest.raises(ValueError, match="must lie on the grid of the flow; got two grids"):
        Planner(TASK).plan(Flow.of(other, Successors(np.stack([other.nodes] * 3))), Layout(GRID, depth=1))


@pytest.mark.parametrize("depth", [0, 1])
def test_dynamics_need_not_mean_anything_beyond_an_end(depth: int) -> None:
    def undefined(states: FloatArray, controls: FloatArray) -> FloatArray:
        return np.where(upright(states)[:, np.newaxis], np.nan, swing(states, controls))

    made, expected = (plan(TASK, dynamics, SMALL, depth=depth) for dynamics in (undefined, swing))
    np.testing.assert_array_equal(made.plan.q_values, expected.plan.q_values)


# --- plans from one grid to another -------------------------------------------------------------------


def test_a_plan_is_spread_to_another_grid_by_interpolation() -> None:
    made = Planner(TASK).plan(STEP, Layout(GRID, depth=0))
    other = Grid.spaced(BOX, (9, 16), (1.5, 1.3))
    np.testing.assert_allclose(made.spread(other), made.q_function(other.nodes), atol=1e-10)
    assert made.spread(other).flags.c_contiguous
    assert made.spread(GRID) is made.plan.q_values
    assert made.worst == made.plan.q_values.max(axis=1).min()
