from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.planning import BackupName, Limits, Plan, QFunction, Tables, solve, tabulate
from optimist.planning.backups import prepare
from optimist.planning.tables import optimistic
from optimist.steps import known
from optimist.systems import find_system
from tests.naive import backups as naive
from tests.naive.backups import BACKUPS
from tests.naive.random_tables import as_problem, random_tables, small_tables

V_FORMS = ("v-plain", "v-exact")
CLOSE = Limits(tolerance=1e-10, max_sweeps=5000)
ROUNDING = 1e-6  # self weights are float32

every_backup = pytest.mark.parametrize("backup", list(BACKUPS))
NO_SHRINKING = (Phase.explicit, Phase.generate)  # simpler seeds do not make simpler tables
examples = settings(max_examples=40, deadline=None, database=None, phases=NO_SHRINKING)
seeds = st.integers(0, 2**32 - 1)


def jacobi(tables: Tables, backup: str, q: FloatArray) -> FloatArray:
    """One Jacobi sweep of the kernel: from Q to Q [N, A], or in the V form to V [N, 1]."""
    ready = prepare(tables, backup)
    start = q.max(axis=1, keepdims=True) if ready.interpolates_values else q
    values = np.append(tables.grid.pad(start), 0.0)
    out = values.copy()
    ready.sweep((0, tables.grid.n_nodes, 1), values, out, None)
    return np.asarray(out[:-1].reshape(-1, start.shape[1])[tables.grid.padded_places])


def fixed_point(tables: Tables, backup: str) -> FloatArray:
    plan = solve(tables, backup=backup, limits=CLOSE)
    assert plan.converged
    return plan.q_values


def random_q(tables: Tables, seed: int) -> FloatArray:
    return np.random.default_rng(seed).normal(scale=3.0, size=tables.rewards.shape)


def test_every_backup_has_a_twin() -> None:
    assert set(BACKUPS) == {str(name) for name in BackupName}


def test_an_unknown_backup_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`backup` must be one of v-exact, .*; got 'eq8'"):
        prepare(random_tables(0, (3,), 2), "eq8")


@every_backup
@examples
@given(tables=small_tables(), seed=seeds)
def test_one_sweep_is_the_equation(backup: str, tables: Tables, seed: int) -> None:
    q = random_q(tables, seed)
    expected = BACKUPS[backup](q, as_problem(tables))
    if backup in V_FORMS:
        expected = expected.max(axis=1, keepdims=True)
    np.testing.assert_allclose(jacobi(tables, backup, q), expected, rtol=ROUNDING, atol=ROUNDING)


@every_backup
@examples
@given(tables=small_tables(), seed=seeds)
def test_one_sweep_contracts_by_the_discount(backup: str, tables: Tables, seed: int) -> None:
    q, other = random_q(tables, seed), random_q(tables, seed + 1)
    before = np.abs(q - other).max()
    after = np.abs(jacobi(tables, backup, q) - jacobi(tables, backup, other)).max()
    assert after <= tables.discounts.max() * before * (1.0 + ROUNDING) + 1e-12


@every_backup
@examples
@given(tables=small_tables(), seed=seeds)
def test_one_sweep_is_monotone(backup: str, tables: Tables, seed: int) -> None:
    q = random_q(tables, seed)
    above = q + np.random.default_rng(seed + 1).exponential(size=q.shape)
    assert (jacobi(tables, backup, q) <= jacobi(tables, backup, above) + ROUNDING).all()


@every_backup
@examples
@given(tables=small_tables())
def test_the_fixed_point_is_that_of_the_twin(backup: str, tables: Tables) -> None:
    problem = as_problem(tables)
    twin = "v-plain" if backup == "v-exact" else backup  # Q-values that follow from V are reported
    expected = naive.value_iteration(BACKUPS[twin], problem)
    np.testing.assert_allclose(fixed_point(tables, backup), expected, atol=1e-5)


@examples
@given(tables=small_tables())
def test_solving_the_self_loop_leaves_the_fixed_points_alone(tables: Tables) -> None:
    plain, exact = fixed_point(tables, "v-plain"), fixed_point(tables, "v-exact")
    np.testing.assert_allclose(exact, plain, atol=1e-8)
    plain, exact = fixed_point(tables, "eq7"), fixed_point(tables, "eq7-exact")
    np.testing.assert_allclose(exact, plain, atol=1e-8)


@examples
@given(tables=small_tables())
def test_interpolating_v_is_worth_at_least_interpolating_q(tables: Tables) -> None:
    """Max of sums <= sum of maxima, and both backups are monotone."""
    assert (fixed_point(tables, "v-plain") >= fixed_point(tables, "eq7") - 1e-8).all()


@pytest.mark.parametrize("backup", V_FORMS)
def test_with_one_action_the_two_forms_are_one(backup: str) -> None:
    tables = random_tables(5, (4, 4), 1, uncertain=True, staying=0.5)
    expected = fixed_point(tables, "eq7")
    np.testing.assert_allclose(fixed_point(tables, backup), expected, atol=1e-8)
    known = replace(tables, uncertainty=None)
    expected = fixed_point(known, "eq7")
    np.testing.assert_allclose(fixed_point(known, "eq7-printed"), expected, atol=1e-5)


@every_backup
@pytest.mark.parametrize("accelerate", [True, False])
def test_fully_uncertain_pairs_are_worth_exactly_the_optimistic_value(backup: str, accelerate: bool) -> None:
    tables = random_tables(1, (4, 3), 3, uncertain=True, optimistic_value=2.7)
    assert tables.uncertainty is not None
    unknown = tables.uncertainty == 1.0
    assert unknown.any()
    plan = solve(tables, backup=backup, accelerate=accelerate)
    np.testing.assert_array_equal(plan.q_values[unknown], 2.7)
    assert (plan.q_values[~unknown] != 2.7).all()


@examples
@given(tables=small_tables(uncertain=True))
def test_printed_mixing_is_the_folded_mixture_without_self_loops(tables: Tables) -> None:
    """Eq. 7'' mixes after the division, which is by 1 when w_ii = 0: whatever C, it is Eq. 7 folded."""
    apart = replace(tables, discounts=np.where(tables.self_weights > 0.0, 0.0, tables.discounts))
    printed, folded = fixed_point(apart, "eq7-printed"), fixed_point(optimistic(apart), "eq7")
    np.testing.assert_allclose(printed, folded, atol=1e-8)


@examples
@given(tables=small_tables(uncertain=True))
def test_printed_mixing_is_the_folded_mixture_where_all_is_known_or_unknown(tables: Tables) -> None:
    """[1 - (1-C) g w_ii]^-1 [(1-C) (R + g S) + C V_MAX] equals Eq. 7'' for C = 0 and C = 1."""
    assert tables.uncertainty is not None
    extreme = replace(tables, uncertainty=np.round(tables.uncertainty))
    printed, folded = fixed_point(extreme, "eq7-printed"), fixed_point(optimistic(extreme), "eq7-printed")
    np.testing.assert_allclose(printed, folded, atol=1e-8)


def test_printed_mixing_differs_from_the_folded_mixture_in_between() -> None:
    tables = random_tables(2, (4, 4), 2, staying=1.0)
    between = replace(tables, uncertainty=np.full(tables.rewards.shape, 0.5))
    printed = fixed_point(between, "eq7-printed")
    folded = fixed_point(optimistic(between), "eq7-printed")
    assert np.abs(printed - folded).max() > 0.1


def mountain_car_plan(backup: str) -> tuple[Grid, Plan]:
    system = find_system("mountain-car")
    grid = Grid.uniform(system.task.box, [30, 30])
    tables = tabulate(grid, system.task, known(system.dynamics, system.task.controls))
    return grid, solve(tables, backup=backup, limits=Limits(1e-8, 100_000))


def test_eq7_as_printed_has_a_fixed_point_of_its_own_on_mountain_car() -> None:
    """PAPER_NOTES, 1: the self term belongs to the maximising action, not to the action taken."""
    grid, eq7 = mountain_car_plan("eq7")
    _, exact = mountain_car_plan("eq7-exact")
    _, printed = mountain_car_plan("eq7-printed")
    assert eq7.converged
    assert exact.converged
    assert printed.converged
    np.testing.assert_allclose(exact.q_values, eq7.q_values, atol=1e-5)
    assert np.abs(printed.q_values - eq7.q_values).max() > 1.0
    right, wrong = QFunction(grid, eq7.q_values), QFunction(grid, printed.q_values)
    assert 0.0 < np.mean(right.greedy(grid.nodes) != wrong.greedy(grid.nodes)) < 0.05


def test_eq7_as_printed_is_wrong_in_an_example_by_hand() -> None:
    """Two nodes, two actions, both staying where they are: r = -1 and 0, discount 1/2.

    Eq. 7: Q(stay, 0) = 0 and Q(stay, -1) = -1 + 1/2 * 0 = -1. Eq. 7': -1 / (1 - 1/2) = -2.
    """
    tables = random_tables(0, (2,), 2)
    at_home = replace(
        tables,
        cells=np.zeros((2, 2), dtype=np.int32),
        fractions=np.array([[[0.0], [0.0]], [[1.0], [1.0]]], dtype=np.float32),
        rewards=np.array([[0.0, -1.0], [0.0, -1.0]]),
        discounts=np.full((2, 2), 0.5),
    )
    for backup in ("v-plain", "v-exact", "eq7", "eq7-exact"):
        np.testing.assert_allclose(fixed_point(at_home, backup), [[0.0, -1.0]] * 2, atol=1e-9)
    np.testing.assert_allclose(fixed_point(at_home, "eq7-printed"), [[0.0, -2.0]] * 2, atol=1e-9)


# --- nodes from which nothing leads on ---


def with_ends(seed: int, shape: tuple[int, ...] = (7, 6), n_actions: int = 3) -> Tables:
    """Tables in which a third of the nodes, and some other actions, end the episode."""
    tables = random_tables(seed, shape, n_actions)
    stream = np.random.default_rng(seed)
    discounts = np.where(stream.uniform(size=tables.discounts.shape) < 0.2, 0.0, tables.discounts)
    discounts[stream.uniform(size=len(discounts)) < 0.3] = 0.0
    return replace(tables, discounts=discounts)


def test_rows_that_lead_on_are_those_of_a_loop_and_are_found_in_any_range() -> None:
    tables = with_ends(3)
    ready = prepare(tables, "v-plain")
    rows = ready.leading_on(in_streams=False)
    assert rows.nodes is not None
    expected = [i for i, row in enumerate(tables.discounts) if any(g != 0.0 for g in row)]
    assert rows.nodes.tolist() == expected
    n = tables.grid.n_nodes
    for first in range(n + 1):
        for last in range(first, n + 1):
            inside = [i for i in expected if first <= i < last]
            found = [expected[k] for k in range(*rows.span((first, last, 1)))]
            assert found == inside
            found = [expected[k] for k in range(*rows.span((last - 1, first - 1, -1)))]
            assert found == inside[::-1]


def test_where_all_nodes_lead_on_or_values_are_those_of_actions_nothing_is_packed() -> None:
    tables = random_tables(0, (5, 4), 2)
    whole = replace(tables, discounts=np.full_like(tables.discounts, 0.9))
    assert prepare(whole, "v-exact").leading_on(in_streams=False).nodes is None
    assert prepare(with_ends(0), "eq7").leading_on(in_streams=True).nodes is None


@pytest.mark.parametrize("backup", V_FORMS)
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("warm", [True, False])
def test_leaving_out_what_leads_nowhere_changes_no_bit(
    monkeypatch: pytest.MonkeyPatch, backup: str, accelerate: bool, warm: bool
) -> None:
    for seed in range(5):
        tables = with_ends(seed)
        start = random_q(tables, seed) if warm else None
        plans = []
        for share in (0.95, 0.0):  # pack what can be packed; nothing
            monkeypatch.setattr("optimist.planning.rows.WORTH_PACKING", share)
            monkeypatch.setattr("optimist.planning.rows.WORTH_TURNING", np.inf)
            plans.append(solve(tables, backup=backup, accelerate=accelerate, start=start, limits=CLOSE))
        packed, whole = plans
        np.testing.assert_array_equal(packed.q_values, whole.q_values)
        assert (packed.sweeps, packed.residual) == (whole.sweeps, whole.residual)
