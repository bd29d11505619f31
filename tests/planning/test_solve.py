from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import Limits, Tables, solve, tabulate
from optimist.planning.tables import optimistic
from optimist.steps import known
from optimist.systems import find_system
from optimist.task import Task
from tests.naive.backups import BACKUPS, iterate, value_iteration
from tests.naive.random_tables import as_problem, random_tables, small_tables

CLOSE = Limits(tolerance=1e-9, max_sweeps=5000)
V_FORMS = ("v-plain", "v-exact")

every_backup = pytest.mark.parametrize("backup", list(BACKUPS))
fast_or_plain = pytest.mark.parametrize("accelerate", [True, False])
NO_SHRINKING = (Phase.explicit, Phase.generate)  # simpler seeds do not make simpler tables
examples = settings(max_examples=40, deadline=None, database=None, phases=NO_SHRINKING)


def never(states: FloatArray) -> BoolArray:
    return np.zeros(len(states), dtype=np.bool_)


def by_right_edge(states: FloatArray) -> BoolArray:
    reached: BoolArray = states[:, 0] >= 9.0
    return reached


def chain(discount: float) -> Tables:
    """Ten nodes in a row; go one to the right or stay, -1 a step, over at the last."""
    box = Box([0.0], [9.0])
    task = Task(
        box, np.array([0.0, 1.0]), lambda s, u, n: np.full(len(s), -1.0), discount, 0.0, by_right_edge
    )
    grid = Grid.uniform(box, [10])
    return tabulate(grid, task, known(lambda s, u: np.minimum(s + u, 9.0), task.controls))


def standing(discount: float, reward: float, max_steps: int = 50) -> Tables:
    """Every node leads to itself."""
    box = Box([0.0, 0.0], [1.0, 1.0], [False, True])
    constant = np.array([0.0])
    task = Task(box, constant, lambda s, u, n: np.full(len(s), reward), discount, 0.0, never, max_steps)
    grid = Grid.uniform(box, [3, 4])
    return tabulate(grid, task, known(lambda s, u: s, task.controls))


def mountain_car(count: int = 20) -> Tables:
    system = find_system("mountain-car")
    grid = Grid.uniform(system.task.box, [count, count])
    return tabulate(grid, system.task, known(system.dynamics, system.task.controls))


# Closed forms


@every_backup
@fast_or_plain
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_a_chain_is_worth_a_geometric_series(backup: str, accelerate: bool, discount: float) -> None:
    plan = solve(chain(discount), backup=backup, accelerate=accelerate, limits=CLOSE)
    assert plan.converged
    steps = np.maximum(np.arange(9, -1, -1), 1)  # the end itself is worth what entering it pays
    series = -(1.0 - discount**steps) / (1.0 - discount)
    np.testing.assert_allclose(plan.q_values.max(axis=1), series, atol=1e-6)
    np.testing.assert_allclose(plan.q_values[:, 1], series, atol=1e-6)


@every_backup
@fast_or_plain
def test_with_discount_one_a_chain_is_worth_minus_the_steps_to_its_end(backup: str, accelerate: bool) -> None:
    plan = solve(chain(1.0), backup=backup, accelerate=accelerate, limits=CLOSE)
    assert plan.converged
    np.testing.assert_allclose(plan.q_values.max(axis=1), -np.maximum(np.arange(9, -1, -1), 1.0), atol=1e-9)


@every_backup
@fast_or_plain
@pytest.mark.parametrize("reward", [-1.0, 0.0, 0.3])
def test_staying_forever_is_worth_the_geometric_series(backup: str, accelerate: bool, reward: float) -> None:
    plan = solve(standing(0.95, reward), backup=backup, accelerate=accelerate, limits=CLOSE)
    assert plan.converged
    np.testing.assert_allclose(plan.q_values, reward / 0.05, atol=1e-6)


@every_backup
@fast_or_plain
@pytest.mark.parametrize(("reward", "value"), [(-1.0, -50.0), (-0.1, -5.0), (0.0, 0.0), (1.0, 0.0)])
def test_with_discount_one_staying_forever_is_bounded(
    backup: str, accelerate: bool, reward: float, value: float
) -> None:
    """From below by `max_steps` times the worst reward, from above by the optimistic value."""
    plan = solve(standing(1.0, reward), backup=backup, accelerate=accelerate, limits=CLOSE)
    assert plan.converged
    np.testing.assert_allclose(plan.q_values, value, atol=1e-9)


def zero_reward_loop(rewards: FloatArray, targets: list[tuple[int, int]]) -> Tables:
    """Three nodes and one that is terminal, two actions; `targets` are the nodes they lead to."""
    box = Box([0.0], [3.0])

    def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return np.asarray(rewards[np.rint(states[:, 0]).astype(int), int(controls[0, 0])])

    def lead(states: FloatArray, controls: FloatArray) -> FloatArray:
        table = np.array([*targets, (3, 3)], dtype=np.float64)
        rows = np.rint(states[:, 0]).astype(int)
        return np.asarray(table[rows, int(controls[0, 0])][:, np.newaxis])

    def ended(states: FloatArray) -> BoolArray:
        over: BoolArray = states[:, 0] >= 3.0
        return over

    task = Task(box, np.array([0.0, 1.0]), reward, 1.0, 0.0, ended)
    grid = Grid.uniform(box, [4])
    return tabulate(grid, task, known(lead, task.controls))


@every_backup
@fast_or_plain
def test_with_discount_one_a_free_loop_is_found_though_leaving_it_looks_as_good(
    backup: str, accelerate: bool
) -> None:
    """Nodes 0 and 1 can go to and fro for nothing, so both are worth 0. Node 2 must pay 5 to end.

    At the start all look worth 0, and the first action of nodes 0 and 1 leads to node 2 for nothing.
    """
    rewards = np.array([[0.0, 0.0], [0.0, 0.0], [-5.0, -5.0], [0.0, 0.0]])
    tables = zero_reward_loop(rewards, [(2, 1), (2, 0), (3, 3)])
    plan = solve(tables, backup=backup, accelerate=accelerate)
    assert plan.converged
    np.testing.assert_allclose(plan.q_values.max(axis=1), [0.0, 0.0, -5.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("backup", ["v-exact", "eq7-exact"])
@fast_or_plain
@pytest.mark.parametrize("leak", [1e-6, 1e-9])
def test_with_discount_one_a_loop_that_hardly_leaks_never_falls_below_what_it_leaks_to(
    backup: str, accelerate: bool, leak: float
) -> None:
    """Node 0 stays for nothing, but for a share `leak` that goes to node 1, worth -5.

    A monotone backup started from above stays above its fixed point, here -5.
    """
    tables = replace(
        standing(1.0, -1.0),
        grid=Grid.uniform(Box([0.0], [1.0]), [2]),
        cells=np.zeros((2, 1), dtype=np.int32),
        fractions=np.array([[[leak]], [[1.0]]], dtype=np.float32),
        rewards=np.array([[0.0], [-5.0]]),
        discounts=np.array([[1.0], [0.0]]),
        value_bounds=(-500.0, 0.0),
    )
    plan = solve(tables, backup=backup, accelerate=accelerate, limits=Limits(1e-4, 200))
    assert plan.residual <= 5.0
    assert -5.0 - 1e-6 <= plan.q_values[0, 0] <= 0.0


@pytest.mark.parametrize("backup", ["v-plain", "v-exact", "eq7", "eq7-exact"])
@examples
@given(tables=small_tables(uncertain=False), seed=st.integers(0, 2**32 - 1))
def test_with_discount_one_and_costs_every_start_ends_at_the_same_fixed_point(
    backup: str, tables: Tables, seed: int
) -> None:
    """When every step costs something, the bounded equation has one solution (no loop is free)."""
    stream = np.random.default_rng(seed)
    costly = replace(
        tables,
        rewards=-stream.uniform(0.5, 1.0, tables.rewards.shape),
        discounts=np.where(tables.discounts > 0.0, 1.0, 0.0),
        optimistic_value=0.0,
        value_bounds=(-20.0, 0.0),
    )
    plain = solve(costly, backup=backup, accelerate=False, limits=CLOSE)
    fast = solve(costly, backup=backup, limits=CLOSE)
    start = stream.uniform(-20.0, 0.0, tables.rewards.shape)
    warm = solve(costly, backup=backup, start=start, limits=CLOSE)
    for plan in (plain, fast, warm):
        assert plan.converged
        np.testing.assert_allclose(plan.q_values, plain.q_values, atol=1e-6)
    assert (plain.q_values >= -20.0).all()


# Other libraries


@pytest.mark.parametrize("seed", range(5))
def test_v_plain_agrees_with_quantecon(seed: int) -> None:
    markov = pytest.importorskip("quantecon.markov")
    tables = random_tables(seed, (4, 3), 3, periodic=[True, False], endings=0.0)
    weights = as_problem(tables).weights
    process = markov.DiscreteDP(tables.rewards, weights.transpose(1, 0, 2), 0.9)
    oracle = process.solve(method="policy_iteration")
    plan = solve(tables, backup="v-plain", limits=CLOSE)
    np.testing.assert_allclose(plan.q_values.max(axis=1), oracle.v, atol=1e-7)
    np.testing.assert_array_equal(plan.q_values.argmax(axis=1), oracle.sigma)


@pytest.mark.parametrize("backup", V_FORMS)
@pytest.mark.parametrize("uncertain", [True, False])
def test_the_values_solve_the_linear_equation_of_their_policy(backup: str, uncertain: bool) -> None:
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import spsolve

    tables = random_tables(7, (5, 4), 3, uncertain=uncertain, discount=0.97)
    plan = solve(tables, backup=backup, limits=CLOSE)
    policy, nodes = plan.q_values.argmax(axis=1), np.arange(tables.grid.n_nodes)
    folded, weights = optimistic(tables), as_problem(tables).weights
    chosen = folded.discounts[nodes, policy, np.newaxis] * weights[policy, nodes]
    values = spsolve((eye_array(len(nodes)) - csr_array(chosen)).tocsc(), folded.rewards[nodes, policy])
    np.testing.assert_allclose(plan.q_values.max(axis=1), values, atol=1e-6)


# How it is solved


@every_backup
@examples
@given(tables=small_tables())
def test_accelerated_sweeps_end_where_plain_ones_do(backup: str, tables: Tables) -> None:
    plain = solve(tables, backup=backup, accelerate=False, limits=CLOSE)
    fast = solve(tables, backup=backup, limits=CLOSE)
    assert plain.converged
    assert fast.converged
    np.testing.assert_allclose(fast.q_values, plain.q_values, atol=1e-6)


@every_backup
@fast_or_plain
@pytest.mark.parametrize("seed", [15, 35, 40])
def test_a_node_may_be_its_own_neighbour_across_the_seam(backup: str, accelerate: bool, seed: int) -> None:
    """On a small torus much of w_ii lies on ghosts, which an in-place sweep sees as they were before it.

    What is subtracted as the self term must be what was added.
    """
    periodic = [True, True]
    tables = random_tables(seed, (3, 3), 2, periodic=periodic, discount=0.97, staying=1.0, endings=0.0)
    plan = solve(tables, backup=backup, accelerate=accelerate, limits=CLOSE)
    assert plan.converged
    expected = value_iteration(BACKUPS["v-plain" if backup in V_FORMS else backup], as_problem(tables))
    np.testing.assert_allclose(plan.q_values, expected, atol=1e-4)


@every_backup
@examples
@given(tables=small_tables(), seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1.0, 1e3, 1e6]))
def test_any_warm_start_ends_where_the_cold_one_does(
    backup: str, tables: Tables, seed: int, scale: float
) -> None:
    """Policy evaluation from a bad start may go the wrong way; its safeguards must notice."""
    cold = solve(tables, backup=backup, limits=CLOSE)
    start = np.random.default_rng(seed).normal(scale=scale, size=tables.rewards.shape)
    warm = solve(tables, backup=backup, start=start, limits=CLOSE)
    assert warm.converged
    np.testing.assert_allclose(warm.q_values, cold.q_values, atol=1e-6)


@every_backup
@fast_or_plain
def test_starting_from_the_solution_takes_one_or_two_sweeps(backup: str, accelerate: bool) -> None:
    tables = mountain_car()
    first = solve(tables, backup=backup, accelerate=accelerate)
    again = solve(tables, backup=backup, accelerate=accelerate, start=first.q_values)
    assert first.converged
    assert again.converged
    assert again.sweeps <= 2 < first.sweeps


@pytest.mark.parametrize("backup", V_FORMS)
def test_acceleration_takes_fewer_sweeps(backup: str) -> None:
    tables = mountain_car()
    fast, plain = solve(tables, backup=backup), solve(tables, backup=backup, accelerate=False)
    assert fast.sweeps < plain.sweeps


@every_backup
@pytest.mark.parametrize("periodic", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_number_of_threads_changes_no_bit(
    backup: str, periodic: tuple[bool, bool], accelerate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("optimist.planning.rows")
    tables = random_tables(11, (7, 5), 3, periodic=periodic, uncertain=True)
    whole = solve(tables, backup=backup, accelerate=accelerate, threads=1, limits=CLOSE)
    monkeypatch.setattr(module, "SMALLEST_BLOCK", 1)
    assert len(module.blocks_of(tables.grid, tables.n_actions)) == 2
    one = solve(tables, backup=backup, accelerate=accelerate, threads=1, limits=CLOSE)
    two = solve(tables, backup=backup, accelerate=accelerate, threads=2, limits=CLOSE)
    np.testing.assert_array_equal(one.q_values, two.q_values)
    assert (one.sweeps, one.residual) == (two.sweeps, two.residual)
    np.testing.assert_allclose(one.q_values, whole.q_values, atol=1e-7)


@examples
@given(tables=small_tables(), backup=st.sampled_from(list(BACKUPS)), blocks=st.integers(1, 5))
def test_any_number_of_blocks_ends_at_the_same_fixed_point(tables: Tables, backup: str, blocks: int) -> None:
    module = import_module("optimist.planning.rows")
    whole = solve(tables, backup=backup, accelerate=False, limits=CLOSE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALLEST_BLOCK", 1)
        patch.setattr(module, "BLOCKS", blocks)
        cut = solve(tables, backup=backup, limits=CLOSE)
    assert cut.converged
    np.testing.assert_allclose(cut.q_values, whole.q_values, atol=1e-7)


# What is told about it


@every_backup
@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_plain_sweeps_are_the_papers_jacobi_iteration(backup: str, sweeps: int) -> None:
    """`sweeps` of them, and the one that confirms: its change is the residual reported."""
    tables = random_tables(3, (4, 3), 3, periodic=[False, True], uncertain=True)
    problem, step = as_problem(tables), BACKUPS[backup]
    start = np.random.default_rng(0).normal(size=tables.rewards.shape)
    before = iterate(step, start, problem, sweeps)
    confirm = BACKUPS["v-plain"] if backup in V_FORMS else step
    after = confirm(before, problem)
    plan = solve(
        tables, backup=backup, start=start, accelerate=False, limits=Limits(1e-12, max_sweeps=sweeps)
    )
    np.testing.assert_allclose(plan.q_values, after, atol=1e-6)
    if backup in V_FORMS:
        before, after = before.max(axis=1), after.max(axis=1)
    assert plan.residual == pytest.approx(np.abs(after - before).max(), abs=1e-6)


@every_backup
@fast_or_plain
@pytest.mark.parametrize("sweeps", [1, 3, 10])
def test_running_out_of_sweeps_is_told_not_raised(backup: str, accelerate: bool, sweeps: int) -> None:
    heard: list[int] = []
    plan = solve(
        mountain_car(),
        backup=backup,
        accelerate=accelerate,
        limits=Limits(1e-9, max_sweeps=sweeps),
        on_sweep=lambda count, change: heard.append(count),
    )
    assert not plan.converged
    assert plan.residual > 1e-9
    assert plan.sweeps == sweeps
    assert heard == list(range(1, sweeps + 1))
    assert np.isfinite(plan.q_values).all()


@every_backup
@fast_or_plain
@examples
@given(tables=small_tables(), tolerance=st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_the_residual_told_bounds_the_naive_one(
    backup: str, accelerate: bool, tables: Tables, tolerance: float
) -> None:
    plan = solve(tables, backup=backup, accelerate=accelerate, limits=Limits(tolerance, 5000))
    step = BACKUPS["v-plain" if backup in V_FORMS else backup]
    backed_up = step(plan.q_values, as_problem(tables))
    assert plan.converged == (plan.residual <= tolerance)
    assert np.abs(plan.q_values - backed_up).max() <= plan.residual + 1e-6


@pytest.mark.parametrize("start", [np.zeros((3, 2)), np.zeros(12), np.full((12, 2), np.nan)])
def test_a_start_that_does_not_fit_is_refused(start: FloatArray) -> None:
    with pytest.raises(ValueError, match=r"`start` must be finite and of shape \(12, 2\); got"):
        solve(random_tables(0, (4, 3), 2), start=start)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan])
def test_a_tolerance_that_is_not_positive_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="`tolerance` must be positive; got"):
        Limits(tolerance=tolerance)


def test_no_sweeps_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="`max_sweeps` must be at least 1; got 0"):
        Limits(max_sweeps=0)


def test_the_start_is_left_as_it_was() -> None:
    tables = random_tables(0, (4, 3), 2)
    start = np.ones((12, 2))
    solve(tables, backup="eq7", start=start)
    np.testing.assert_array_equal(start, 1.0)
