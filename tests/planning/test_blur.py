"""Planning in expectation, against closed forms, whole matrices and sampled noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import plan, roll_out
from optimist.planning.blur import Blur
from optimist.planning.certificate import certify
from optimist.planning.policy import QFunction
from optimist.planning.solve import Limits, solve
from optimist.planning.tables import tabulate
from optimist.steps import known
from optimist.task import Task
from tests.naive import backups
from tests.naive.noise import in_expectation, matrix_of, whole_matrix
from tests.naive.random_tables import as_problem, random_tables

CLOSE = Limits(1e-10, 20_000)
UNEVEN = np.array([-1.0, -0.8, -0.75, -0.6, -0.3, -0.1, 0.0, 0.05, 0.1, 0.3, 0.5, 0.55, 0.8, 1.0])


def axis(nodes: FloatArray, *, periodic: bool = False) -> Grid:
    return Grid(Box([-1.0], [1.0], [periodic]), [nodes[:-1] if periodic else nodes])


# --- the matrices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("deviation", [1e-3, 0.02, 0.06])
def test_mean_and_variance_are_those_of_the_noise_on_uneven_nodes(deviation: float) -> None:
    grid = axis(UNEVEN)
    blur = Blur.of(grid, [deviation])
    assert blur is not None
    x = grid.nodes[:, 0]
    inner = np.abs(x) < 0.6
    np.testing.assert_allclose(blur(x)[inner], x[inner], atol=3e-3 * deviation)
    np.testing.assert_allclose(
        (blur(x**2) - x**2)[inner], deviation**2, rtol=0.2 if deviation < 0.01 else 0.05
    )


def test_rows_are_shares_and_periodic_axes_go_round() -> None:
    for periodic in (False, True):
        for deviation in (0.01, 0.1, 0.7, 5.0):
            blur = Blur.of(axis(UNEVEN, periodic=periodic), [deviation])
            assert blur is not None
            matrix = matrix_of(blur, 0)
            assert matrix.min() >= 0.0
            np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
            assert np.diag(matrix).min() >= blur.own - 1e-15
    far = Blur.of(axis(np.linspace(-1.0, 1.0, 21), periodic=True), [0.2])
    assert far is not None
    assert matrix_of(far, 0)[0, -1] == pytest.approx(matrix_of(far, 0)[0, 1], rel=1e-9)


@pytest.mark.parametrize("start", [0, 3, 20])
def test_what_is_blown_over_an_edge_counts_as_at_the_edge(start: int) -> None:
    grid = axis(np.linspace(-1.0, 1.0, 41))
    blur = Blur.of(grid, [0.2])
    assert blur is not None
    ends = grid.nodes[start, 0] + 0.2 * np.random.default_rng(0).standard_normal(200_000)
    for values in (np.cos, np.abs, lambda x: np.where(x > -0.9, x, 3.0)):
        sampled = np.interp(np.clip(ends, -1.0, 1.0), grid.axes[0], values(grid.axes[0])).mean()
        assert blur(values(grid.nodes[:, 0]))[start] == pytest.approx(sampled, abs=0.01)


def test_an_axis_at_a_time_is_the_whole_matrix() -> None:
    box = Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [True, False, True])
    grid = Grid.uniform(box, [5, 4, 6])
    stream = np.random.default_rng(0)
    for noise in (
        np.array([0.2, 0.1, 0.3]),
        stream.uniform(0.0, 0.3, (grid.n_nodes, 3)),
        np.array([0.0, 0.2, 0.0]),
    ):
        blur = Blur.of(grid, noise)
        assert blur is not None
        values = stream.standard_normal((grid.n_nodes, 2))
        np.testing.assert_allclose(blur(values), whole_matrix(blur) @ values, atol=1e-12)
        padded = blur.padded(np.append(grid.pad(values).reshape(-1), 7.0))
        np.testing.assert_allclose(padded[:-1], grid.pad(blur(values)).reshape(-1), atol=1e-12)
        assert padded[-1] == 7.0


def test_no_noise_is_no_blur_and_noise_must_be_deviations() -> None:
    grid = axis(UNEVEN)
    assert Blur.of(grid, None) is None
    assert Blur.of(grid, [0.0]) is None
    assert Blur.of(grid, [1e-6], net=True) is None  # less than reading between nodes blurs
    for wrong in ([-0.1], [np.nan], [0.1, 0.1]):
        with pytest.raises(ValueError, match="`noise` must"):
            Blur.of(grid, wrong)


# --- solving --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("name", ["v-exact", "v-plain", "eq7", "eq7-exact"])
@pytest.mark.parametrize("periodic", [(False, False), (True, False), (True, True)])
def test_every_backup_has_its_expected_form(name: str, periodic: tuple[bool, bool], accelerate: bool) -> None:
    tables = random_tables(3, (6, 5), 3, periodic=periodic, uncertain=True)
    tables = replace(tables, noise=0.5 * tables.grid.box.widths / np.array(tables.grid.shape))
    blur = Blur.of(tables.grid, tables.noise, net=True)
    assert blur is not None
    twin = backups.v_plain if name.startswith("v") else backups.eq7
    expected = backups.value_iteration(twin, in_expectation(as_problem(tables), blur))
    found = solve(tables, backup=name, limits=CLOSE, accelerate=accelerate)
    assert found.converged
    np.testing.assert_allclose(found.q_values, expected, atol=1e-7)


def test_threads_and_blocks_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimist.planning.rows.SMALLEST_BLOCK", 1)
    tables = random_tables(5, (7, 5), 3, periodic=(True, False), uncertain=True)
    tables = replace(tables, noise=0.6 * tables.grid.box.widths / np.array(tables.grid.shape))
    one, two = (solve(tables, threads=count, limits=CLOSE) for count in (1, 2))
    np.testing.assert_array_equal(one.q_values, two.q_values)


def test_noise_of_zero_changes_no_bit() -> None:
    tables = random_tables(5, (7, 5), 3, periodic=(True, False), uncertain=True)
    for name in ("v-exact", "eq7"):
        clean, zero = solve(tables, backup=name), solve(replace(tables, noise=np.zeros(2)), backup=name)
        np.testing.assert_array_equal(clean.q_values, zero.q_values)
        assert (clean.sweeps, clean.residual) == (zero.sweeps, zero.residual)


def test_a_linear_system_with_quadratic_cost_is_worth_what_the_riccati_equation_says() -> None:
    a, b, deviation, cost, discount = 0.95, 0.1, 0.05, 0.1, 0.95
    weight = 1.0
    for _ in range(10_000):
        gain = (discount * a * b * weight) ** 2 / (cost + discount * b**2 * weight)
        weight = 1.0 + discount * a**2 * weight - gain
    task = Task(
        box=Box([-2.0], [2.0]),
        controls=np.linspace(-2.0, 2.0, 801),
        reward=lambda states, controls, _: -(states[:, 0] ** 2 + cost * controls[:, 0] ** 2),
        discount=discount,
        optimistic_value=0.0,
    )
    grid = Grid.uniform(task.box, [401])
    tables = tabulate(
        grid, task, known(lambda states, u: a * states + b * u, task.controls), noise=np.array([deviation])
    )
    values = solve(tables, limits=Limits(1e-9, 20_000)).q_values.max(axis=1)
    x = grid.nodes[:, 0]
    true = -weight * (x**2 + discount / (1.0 - discount) * deviation**2)
    inner = np.abs(x) < 1.0
    np.testing.assert_allclose(values[inner], true[inner], rtol=1.2e-3)


def test_a_chain_that_drifts_and_stumbles_is_worth_what_linear_equations_say() -> None:
    """Nodes a unit apart, one control, noise of two units: (I - g P) V = R with Gaussian shares as P."""
    n, drift, deviation, discount = 61, 1.0, 2.0, 0.9
    task = Task(
        box=Box([0.0], [n - 1.0]),
        controls=np.array([drift]),
        reward=lambda states, _controls, _after: -np.exp(-(((states[:, 0] - 40.0) / 8.0) ** 2)),
        discount=discount,
        optimistic_value=0.0,
    )
    grid = Grid.uniform(task.box, [n])
    tables = tabulate(
        grid,
        task,
        known(lambda states, controls: states + controls, task.controls),
        noise=np.array([deviation]),
    )
    values = solve(tables, limits=CLOSE).q_values[:, 0]
    fine = np.linspace(0.0, n - 1.0, 10 * (n - 1) + 1)
    from scipy.stats import norm

    halfway = np.concatenate([[-np.inf], 0.5 * (fine[1:] + fine[:-1]), [np.inf]])
    shares = np.diff(norm.cdf((halfway - fine[:, np.newaxis] - drift) / deviation), axis=1)
    rewards = task.rewards(fine[:, np.newaxis], task.controls, fine[:, np.newaxis])
    true = np.linalg.solve(np.eye(len(fine)) - discount * shares, rewards)[::10]
    assert np.abs(values - true).max() < 0.01 * np.abs(true).max()


def test_the_residual_between_the_nodes_is_that_of_the_noisy_equation() -> None:
    grid = Grid.uniform(Box([-1.0], [1.0]), [101])
    task = Task(
        box=grid.box,
        controls=np.array([-0.05, 0.05]),
        reward=lambda states, _controls, _after: -np.abs(states[:, 0]),
        discount=0.9,
        optimistic_value=0.0,
    )
    step = known(lambda states, controls: states + controls, task.controls)
    noise = np.array([0.1])
    found = solve(tabulate(grid, task, step, noise=noise), limits=CLOSE)
    q_function = QFunction(grid, found.q_values)
    assert (
        certify(q_function, task, step, noise=noise).residual < 0.1 * certify(q_function, task, step).residual
    )


# --- acting ---------------------------------------------------------------------------------------------


def _cliff(states: FloatArray) -> BoolArray:
    return np.asarray((states[:, 1] < 0.2) & (states[:, 0] > 0.2) & (states[:, 0] < 0.8))


def test_whoever_plans_in_expectation_keeps_away_from_the_cliff() -> None:
    turns = np.arange(8) * np.pi / 4
    task = Task(
        box=Box([0.0, 0.0], [1.0, 1.0]),
        controls=0.06 * np.column_stack([np.cos(turns), np.sin(turns)]),
        reward=lambda _states, _controls, after: np.where(_cliff(after), -30.0, -1.0),
        is_terminal=lambda states: _cliff(states) | (states[:, 0] > 0.9),
        discount=0.99,
        optimistic_value=0.0,
        max_steps=60,
    )
    starts, noise = np.array([[0.1, 0.24]]), np.array([0.015, 0.03])

    def step(states: FloatArray, controls: FloatArray) -> FloatArray:
        return np.clip(states + controls, 0.0, 1.0)

    falls = {}
    for name, given in (("mean", None), ("expectation", noise)):
        made = plan(task, step, starts=starts, depth=2, noise=given)
        many = np.repeat(starts, 100, axis=0)
        falls[name] = (roll_out(task, step, made.sights, many, noise=noise).total_rewards <= -30.0).mean()
        assert made.expected is not None
    assert falls["expectation"] < 0.25 * falls["mean"]


def test_noise_as_wide_as_the_box_is_refused() -> None:
    task = Task(
        box=Box([-1.0, 0.0], [1.0, 5.0]),
        controls=np.array([-0.1, 0.1]),
        reward=lambda states, _controls, _after: -np.abs(states[:, 0]),
        discount=0.9,
        optimistic_value=0.0,
    )
    with pytest.raises(ValueError, match=r"`noise` must be narrower than the box.*\[2\.0, 5\.0\]; got"):
        plan(task, lambda states, controls: states, noise=[0.1, 1e10])
