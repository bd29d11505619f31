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
from optimist.planning import Limits, QFunction, solve, tabulate
from optimist.planning.certificate import certify
from optimist.steps import Successors, known
from optimist.task import Task

DISCOUNT = 0.9


def shrink(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Stays inside [-1, 1]^2."""
    return 0.5 * states + 0.4 * controls


def best_value(states: FloatArray) -> FloatArray:
    """A function that multilinear interpolation reproduces exactly."""
    x, y = states[:, 0], states[:, 1]
    value: FloatArray = 3.0 + 2.0 * x - y + 0.7 * x * y
    return value


def q_star(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Q*: control 0 is as good as the best, the others are worse by their size."""
    return best_value(states) - np.abs(controls[:, 0])


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """What makes `q_star` the solution of Eq. 1: r(x, a) = Q*(x, a) - g max_a' Q*(f(x, a), a')."""
    return q_star(states, controls) - DISCOUNT * best_value(next_states)


BOX = Box([-1.0, -1.0], [1.0, 1.0])
CONTROLS = np.array([[0.0, 0.0], [1.0, 0.0], [-0.5, 1.0]])
TASK = Task(BOX, CONTROLS, reward, DISCOUNT, 10.0)
GRID = Grid.spaced(BOX, [5, 7], [1.0, 1.4])
STEP = known(shrink, CONTROLS)


def exact_q(grid: Grid = GRID) -> FloatArray:
    return np.column_stack([q_star(grid.nodes, control[np.newaxis]) for control in CONTROLS])


def test_the_solution_has_no_residual() -> None:
    certificate = certify(QFunction(GRID, exact_q()), TASK, STEP, points_per_cell=5)
    assert certificate.residual < 1e-12
    assert certificate.upper < 1e-11
    assert certificate.cell_shape == (4, 6)
    assert certificate.cell_residuals.shape == (24,)
    assert certificate.n_points == 24 * 5


@pytest.mark.parametrize("shift", [0.5, -2.0])
def test_a_constant_error_leaves_the_same_residual_everywhere(shift: float) -> None:
    """T(Q + c) = TQ + g c, so |Q + c - T(Q + c)| = |c| (1 - g), and the upper bound is |c| itself."""
    certificate = certify(QFunction(GRID, exact_q() + shift), TASK, STEP)
    residual = abs(shift) * (1.0 - DISCOUNT)
    np.testing.assert_allclose(certificate.cell_residuals, residual, rtol=1e-10)
    assert certificate.residual == pytest.approx(residual, rel=1e-10)
    assert certificate.lower == pytest.approx(residual / (1.0 + DISCOUNT), rel=1e-10)
    assert certificate.upper == pytest.approx(abs(shift), rel=1e-10)
    assert certificate.lower <= abs(shift)


@settings(max_examples=40, deadline=None, database=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-3, 10.0))
def test_the_bounds_hold_where_the_optimum_is_known(seed: int, scale: float) -> None:
    """The largest error of a piecewise multilinear function is at a node."""
    error = np.random.default_rng(seed).normal(scale=scale, size=(GRID.n_nodes, 3))
    certificate = certify(QFunction(GRID, exact_q() + error), TASK, STEP, points_per_cell=8)
    true_error = np.abs(error).max()
    assert certificate.lower <= true_error
    assert certificate.upper >= true_error


def test_the_bounds_hold_for_a_plan() -> None:
    tables = tabulate(GRID, TASK, STEP)
    for backup in ("v-exact", "eq7-exact"):
        plan = solve(tables, backup=backup, limits=Limits(1e-3))
        certificate = certify(QFunction(GRID, plan.q_values), TASK, STEP, points_per_cell=8)
        error = np.abs(plan.q_values - exact_q()).max()
        assert certificate.lower <= error + 1e-12
        assert error <= certificate.upper + 1e-5  # of float32 fractions


def test_the_worst_state_is_where_the_largest_residual_is() -> None:
    q_values = exact_q()
    bad = 17
    q_values[bad] += 5.0
    q = QFunction(GRID, q_values)
    certificate = certify(q, TASK, STEP, points_per_cell=4)
    state = certificate.worst_state[np.newaxis]
    gaps = []
    for action, control in enumerate(CONTROLS[:, np.newaxis]):
        successor = shrink(state, control)
        backed_up = reward(state, control, successor) + DISCOUNT * q(successor).max(axis=1)
        gaps.append(abs(q(state)[0, action] - backed_up[0]))
    assert max(gaps) == pytest.approx(certificate.residual, rel=1e-12)
    assert certificate.residual == certificate.cell_residuals.max()
    cell = [int(np.searchsorted(axis, x)) - 1 for axis, x in zip(GRID.axes, state[0], strict=True)]
    worst_cell = np.unravel_index(certificate.cell_residuals.argmax(), certificate.cell_shape)
    assert tuple(cell) == tuple(int(place) for place in worst_cell)


def test_more_points_only_find_more() -> None:
    q = QFunction(GRID, exact_q() + np.random.default_rng(0).normal(size=(GRID.n_nodes, 3)))
    found = [certify(q, TASK, STEP, points_per_cell=n).cell_residuals for n in (1, 2, 6)]
    assert (found[0] <= found[1]).all()
    assert (found[1] <= found[2]).all()


def at_right(states: FloatArray) -> BoolArray:
    over: BoolArray = states[:, 0] >= 1.0
    return over


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_a_chain_is_certified_and_with_discount_one_has_no_upper_bound(discount: float) -> None:
    """One cell a step: in between nodes the last reward comes sooner, which the residual finds."""
    box = Box([-5.0], [1.0])
    task = Task(box, np.array([1.0]), lambda s, u, n: np.full(len(s), -1.0), discount, 0.0, at_right)
    grid = Grid.uniform(box, [7])
    steps = 1.0 - grid.nodes
    q_values = -steps if discount == 1.0 else -(1.0 - discount**steps) / (1.0 - discount)
    certificate = certify(QFunction(grid, q_values), task, known(lambda s, u: s + u, task.controls))
    np.testing.assert_allclose(certificate.cell_residuals[:-1], 0.0, atol=1e-12)
    assert 0.0 < certificate.residual == certificate.cell_residuals[-1] <= 1.0
    assert certificate.lower == pytest.approx(certificate.residual / (1.0 + discount))
    if discount == 1.0:
        assert certificate.upper == np.inf
    else:
        assert certificate.upper == pytest.approx(certificate.residual * 10.0)


def test_terminal_points_are_left_out() -> None:
    everywhere = replace(TASK, is_terminal=lambda s: np.ones(len(s), dtype=np.bool_))
    certificate = certify(QFunction(GRID, exact_q() + 3.0), everywhere, STEP)
    assert certificate.residual == 0.0


def test_a_periodic_axis_has_as_many_cells_as_nodes() -> None:
    box = Box([-1.0, -1.0], [1.0, 1.0], [False, True])
    grid = Grid.uniform(box, [4, 5])
    task = Task(box, CONTROLS, lambda s, u, n: np.full(len(s), -1.0), DISCOUNT, 0.0)
    walk = known(lambda s, u: s + u, task.controls)
    certificate = certify(QFunction(grid, np.full((20, 3), -10.0)), task, walk)
    assert certificate.cell_shape == (3, 5)
    np.testing.assert_allclose(certificate.cell_residuals, 0.0, atol=1e-12)
    assert box.contains(certificate.worst_state)


@pytest.mark.parametrize("hold", [1, 2, 5])
@pytest.mark.parametrize("unsure", [None, 0.0, 0.3])
def test_held_and_uncertain_steps_are_certified_by_the_equation_that_was_solved(
    hold: int, unsure: float | None
) -> None:
    """Every step costs 1, and the plan says -4 everywhere: Q' = (1 - c) (-1 + g Q) + 10 c, `hold` times."""
    task = replace(TASK, reward=lambda s, u, n: np.full(len(s), -1.0))

    def step(states: FloatArray, action: int) -> Successors:
        next_states, _ = STEP(states, action)
        return Successors(next_states, None if unsure is None else np.full(len(states), unsure))

    c, backed_up = unsure or 0.0, -4.0
    for _ in range(hold):
        backed_up = (1.0 - c) * (-1.0 + DISCOUNT * backed_up) + 10.0 * c
    residual = abs(-4.0 - backed_up)
    certificate = certify(
        QFunction(GRID, np.full((GRID.n_nodes, 3), -4.0)), task, step, holding=Holding(hold)
    )
    np.testing.assert_allclose(certificate.cell_residuals, residual, rtol=1e-12)
    assert certificate.lower == pytest.approx(residual / (1.0 + DISCOUNT**hold))
    assert certificate.upper == pytest.approx(residual / (1.0 - DISCOUNT**hold))


@pytest.mark.parametrize("hold", [1, 3])
def test_the_solution_of_the_held_equation_has_no_residual(hold: int) -> None:
    """Its reward is what makes it so: of all steps but the last the value is paid back on the way."""
    paid = replace(TASK, reward=lambda s, u, n: best_value(s) - DISCOUNT * best_value(n))
    q_values = np.repeat(best_value(GRID.nodes)[:, np.newaxis], 3, axis=1)
    certificate = certify(QFunction(GRID, q_values), paid, STEP, holding=Holding(hold), points_per_cell=4)
    assert certificate.residual < 1e-12


def test_no_points_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="`points_per_cell` must be at least 1; got 0"):
        certify(QFunction(GRID, exact_q()), TASK, STEP, points_per_cell=0)
