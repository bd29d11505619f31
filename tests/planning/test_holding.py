"""Controls held until a cell is crossed, against a loop over nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.discretisation import LONGEST_HOLD, ONE_STEP, Discretisation, Holding
from optimist.grid import Grid
from optimist.planning import Limits, QFunction, solve, tabulate
from optimist.planning.certificate import certify
from optimist.planning.tables import follow
from optimist.steps import Step, Successors, known
from optimist.task import Task
from tests.naive import following as naive
from tests.naive.interpolation import dense_weights, expand, interpolants
from tests.test_grid import make_grid

KINDS = [
    pytest.param(d, spacing, kind, id=f"{d}d-{spacing}-{kind}")
    for d in (1, 2, 3)
    for spacing in ("uniform", "random")
    for kind in ("line", "mixed", "torus")
]
CONTROLS = np.array([[-1.0], [0.4], [1.5]])


class Smooth:
    """Random smooth dynamics over a box, and a random smooth uncertainty that is 0 and 1 in places."""

    def __init__(self, box: Box, seed: int, *, speed: float = 0.03) -> None:
        stream = np.random.default_rng([seed, box.n_dims])
        self.box, self.speed = box, speed
        self.waves = stream.normal(size=(box.n_dims, box.n_dims))
        self.phases = stream.uniform(0.0, 6.0, size=box.n_dims)

    def __call__(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        angles = 2.0 * np.pi * (states - self.box.low) / self.box.widths
        pushes = np.sin(angles @ self.waves + self.phases + controls[:, :1])
        return self.box.wrap(states + self.speed * self.box.widths * (pushes + 0.3 * controls[:, :1]))

    def unsure(self, states: FloatArray) -> FloatArray:
        angles = 2.0 * np.pi * (states - self.box.low) / self.box.widths
        return np.asarray(np.clip(0.7 * np.sin(angles.sum(axis=1)) + 0.1, 0.0, 1.0))

    def step(self, *, unsure: bool) -> Step:
        def step(states: FloatArray, action: int) -> Successors:
            after = self(states, CONTROLS[action : action + 1])
            return Successors(after, self.unsure(states) if unsure else None)

        return step

    def scalar(self, *, unsure: bool) -> naive.ScalarStep:
        def step(state: FloatArray, action: int) -> tuple[FloatArray, float]:
            here = state[np.newaxis]
            doubt = float(self.unsure(here)[0]) if unsure else 0.0
            return self(here, CONTROLS[action : action + 1])[0], doubt

        return step


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - np.sin(states[:, 0]) + 0.3 * next_states[:, -1] - 0.1 * controls[:, 0] ** 2


def task_over(box: Box, *, discount: float = 0.97, ends: bool = True) -> Task:
    limit = box.low[0] + 0.7 * box.widths[0]

    def ended(states: FloatArray) -> BoolArray:
        over: BoolArray = states[:, 0] > limit
        return over

    return Task(box, CONTROLS, cost, discount, 2.0, ended if ends else None, 200)


def widths_of(grid: Grid, node: int) -> FloatArray:
    """Half the distance of the neighbours; at an edge the distance of the only one."""
    widths = []
    for axis, where in enumerate(np.unravel_index(node, grid.shape)):
        place = int(where)
        nodes, period = grid.axes[axis], float(grid.box.widths[axis])
        if grid.box.periodic[axis]:
            before = nodes[place - 1] - (period if place == 0 else 0.0)
            after = nodes[0] + period if place == len(nodes) - 1 else nodes[place + 1]
            widths.append(0.5 * (after - before))
            continue
        low, high = max(place - 1, 0), min(place + 1, len(nodes) - 1)
        widths.append((nodes[high] - nodes[low]) / (high - low))
    return np.array(widths)


# --- against the twin ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
@pytest.mark.parametrize(("n_dims", "spacing", "kind"), KINDS)
def test_tables_are_those_of_a_loop_over_nodes(n_dims: int, spacing: str, kind: str, unsure: bool) -> None:
    grid = make_grid(n_dims, spacing, kind, seed=n_dims)
    smooth, task = Smooth(grid.box, 1, speed=0.05), task_over(grid.box, discount=0.9999 if unsure else 0.97)
    tables = tabulate(grid, task, smooth.step(unsure=unsure), holding=Holding(9, until_crossed=True))
    fractions = tables.fractions.reshape(-1, n_dims).astype(np.float64)
    weights = dense_weights(grid, *expand(grid, tables.cells.reshape(-1), fractions))
    weights = weights.reshape(grid.n_nodes, 3, -1)
    total, n_live, held = 0, 0, set()
    for node, state in enumerate(grid.nodes):
        for action in range(3):
            scalar = smooth.scalar(unsure=unsure)
            twin, steps = naive.crossing(task, scalar, state, action, 9, widths_of(grid, node))
            assert tables.rewards[node, action] == pytest.approx(twin.reward, abs=1e-12)
            assert tables.discounts[node, action] == pytest.approx(twin.discount, abs=1e-12)
            expected = dense_weights(grid, *interpolants(grid, twin.end[np.newaxis]))[0]
            np.testing.assert_allclose(weights[node, action], expected, atol=1e-5)
            total, n_live = total + steps, n_live + (steps > 0)
            held.add(steps)
    assert tables.uncertainty is None
    assert tables.mean_hold == pytest.approx(total / n_live, abs=1e-12)
    assert 0 in held  # some have ended
    assert len(held) > 3


@pytest.mark.parametrize("most", [1, 2, 5, 16])
@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
@pytest.mark.parametrize("periodic", [(False, False), (True, False), (True, True)])
def test_paths_are_those_of_a_loop_over_states(periodic: tuple[bool, bool], unsure: bool, most: int) -> None:
    box = Box([-2.0, 1.0], [3.0, 1.5], periodic)
    smooth, task = Smooth(box, 2), task_over(box, discount=0.9999 if unsure else 0.97)
    stream = np.random.default_rng(0)
    states = stream.uniform(box.low, box.high, size=(50, 2))
    widths = stream.uniform(0.02, 0.3, size=(50, 2)) * box.widths
    holding = Holding(most, until_crossed=True)
    for action in range(3):
        path = follow(task, smooth.step(unsure=unsure), states, action, holding=holding, widths=widths)
        n_steps = 0
        for row, state in enumerate(states):
            doubtful = unsure and most > 1  # of a single step the uncertainty is told
            scalar = smooth.scalar(unsure=doubtful)
            twin, steps = naive.crossing(task, scalar, state, action, most, widths[row])
            n_steps += steps
            np.testing.assert_allclose(path.ends[row], twin.end, atol=1e-12)
            assert path.rewards[row] == pytest.approx(twin.reward, abs=1e-12)
            assert path.discounts[row] == pytest.approx(twin.discount, abs=1e-12)
        assert path.n_steps == n_steps
        if unsure and most == 1:
            assert path.uncertainty is not None
            live = ~task.terminal(states)
            np.testing.assert_array_equal(path.uncertainty, np.where(live, smooth.unsure(states), 0.0))
        else:
            assert path.uncertainty is None


def test_doubt_accumulates_on_the_way() -> None:
    """After k steps of uncertainty c the share (1 - c)^k of what follows counts."""
    box = Box([0.0], [10.0])
    task = Task(box, np.array([0.25]), lambda s, u, n: np.zeros(len(s)), 0.99, 1.0)
    holding = Holding(16, until_crossed=True)

    def doubtful(states: FloatArray, action: int) -> Successors:
        return Successors(states + 0.25, np.full(len(states), 0.02))

    for width, steps in ((0.25, 1), (0.3, 2), (1.0, 4), (3.9, 16), (4.0, 16)):
        path = follow(task, doubtful, np.zeros((1, 1)), 0, holding=holding, widths=np.array([[width]]))
        assert path.n_steps == steps
        assert path.discounts[0] == pytest.approx(0.99**steps * 0.98**steps, rel=1e-12)
        hoped = sum(0.02 * (0.99 * 0.98) ** k for k in range(steps))
        assert path.rewards[0] == pytest.approx(hoped, rel=1e-12)
        np.testing.assert_allclose(path.ends, 0.25 * steps)


@pytest.mark.parametrize("holding", [ONE_STEP, Holding(4), Holding(9, until_crossed=True)])
def test_without_optimism_doubt_is_ignored(holding: Holding) -> None:
    grid = make_grid(2, "random", "mixed")
    smooth, task = Smooth(grid.box, 3), task_over(grid.box)
    unsure, surely = smooth.step(unsure=True), smooth.step(unsure=False)
    found = tabulate(grid, task, unsure, holding=holding, optimistic=False)
    expected = tabulate(grid, task, surely, holding=holding)
    hopeful = tabulate(grid, task, unsure, holding=holding)
    for name in ("cells", "fractions", "rewards", "discounts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.uncertainty is None
    assert found.mean_hold == expected.mean_hold
    assert hopeful.uncertainty is not None or (hopeful.rewards != found.rewards).any()


# --- what follows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speed", "steps"), [(2.0, 1), (1.0, 1), (0.6, 2), (0.26, 4), (0.126, 8), (0.12, 1), (0.0, 1)]
)
def test_a_steady_path_is_held_until_it_crosses_unless_it_never_would(speed: float, steps: int) -> None:
    """Cells of 0.5, at most 8 steps, speed in cells a step: below an eighth there is no point."""
    box = Box([0.0], [50.0])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.99, 0.0)
    states, widths = np.array([[3.0], [20.0]]), np.full((2, 1), 0.5)
    step = known(lambda s, u: s + 0.5 * speed, task.controls)
    path = follow(task, step, states, 0, holding=Holding(8, until_crossed=True), widths=widths)
    assert path.n_steps == 2 * steps
    np.testing.assert_allclose(path.ends, states + 0.5 * speed * steps)
    np.testing.assert_allclose(path.discounts, 0.99**steps)


@pytest.mark.parametrize(("doubt", "steps"), [(0.0, 8), (0.05, 8), (0.1, 7), (0.2, 4), (0.3, 2), (0.5, 1)])
def test_a_path_that_is_mostly_guessed_is_held_no_further(doubt: float, steps: int) -> None:
    """As soon as no more than half of it is known."""
    box = Box([0.0], [50.0])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.9999, 0.0)

    def doubtful(states: FloatArray, action: int) -> Successors:
        return Successors(states + 0.13, np.full(len(states), doubt))

    holding, widths = Holding(8, until_crossed=True), np.ones((1, 1))
    assert follow(task, doubtful, np.zeros((1, 1)), 0, holding=holding, widths=widths).n_steps == steps


def test_a_path_that_is_known_is_held_however_much_is_discounted() -> None:
    box = Box([0.0], [50.0])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.8, 0.0)
    step, holding = known(lambda s, u: s + 0.13, task.controls), Holding(8, until_crossed=True)
    assert follow(task, step, np.zeros((1, 1)), 0, holding=holding, widths=np.ones((1, 1))).n_steps == 8


def test_where_every_step_crosses_a_cell_holding_changes_nothing() -> None:
    grid = make_grid(2, "random", "mixed")
    task = task_over(grid.box)
    far = known(lambda s, u: grid.box.wrap(s + 0.45 * grid.box.widths), CONTROLS)
    crossed = tabulate(grid, task, far, holding=Holding(16, until_crossed=True))
    once = tabulate(grid, task, far)
    assert crossed.mean_hold == once.mean_hold == 1.0
    for name in ("cells", "fractions", "rewards", "discounts"):
        np.testing.assert_array_equal(getattr(crossed, name), getattr(once, name))


def test_blocks_of_nodes_are_tabulated_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = make_grid(3, "random", "mixed")
    step, task, holding = Smooth(grid.box, 5).step(unsure=True), task_over(grid.box), Holding(7, True)
    whole = tabulate(grid, task, step, holding=holding)
    monkeypatch.setattr("optimist.planning.tables.BLOCK", 7)
    blocks = tabulate(grid, task, step, holding=holding)
    for name in ("cells", "fractions", "rewards", "discounts", "n_clipped", "mean_hold", "value_bounds"):
        np.testing.assert_array_equal(getattr(blocks, name), getattr(whole, name))


@pytest.mark.parametrize("until_crossed", [True, False])
def test_nobody_is_asked_beyond_an_end_nor_without_states(until_crossed: bool) -> None:
    grid = make_grid(2, "uniform", "line")
    task, smooth = task_over(grid.box), Smooth(grid.box, 4, speed=0.2)
    sizes = []

    def step(states: FloatArray, action: int) -> Successors:
        sizes.append(len(states))
        assert not task.terminal(states).any()
        return smooth.step(unsure=False)(states, action)

    tabulate(grid, task, step, holding=Holding(16, until_crossed))
    assert min(sizes) > 0


@pytest.mark.parametrize("holding", [ONE_STEP, Holding(3), Holding(16, until_crossed=True)])
def test_where_all_have_ended_no_step_is_asked_for(holding: Holding) -> None:
    """Somebody's functions need not know what to do with no states at all."""

    def never(states: FloatArray, action: int) -> Successors:
        raise AssertionError("was asked")

    def picky(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        assert len(states)
        return -states[:, 0]

    box = Box([0.0], [1.0])
    task = Task(box, np.array([0.0]), picky, 0.9, 0.0, lambda s: s[:, 0] > -1.0)
    states = np.array([[0.2], [0.7]])
    path = follow(task, never, states, 0, holding=holding, widths=np.ones((2, 1)))
    np.testing.assert_array_equal(path.ends, states)
    np.testing.assert_array_equal(path.rewards, [-0.2, -0.7])
    np.testing.assert_array_equal(path.discounts, 0.0)


def test_a_line_crossed_cell_by_cell_is_worth_what_it_is_step_by_step() -> None:
    """Steps of a tenth of a cell: held, ten of them land on the next node and nothing is smeared."""
    box = Box([0.0], [4.0])
    grid = Grid.uniform(box, [5])
    task = Task(
        box, np.array([0.125]), lambda s, u, n: -np.ones(len(s)), 0.99, 0.0, lambda s: s[:, 0] >= 4.0, 200
    )
    step = known(lambda s, u: s + u, task.controls)
    tables = tabulate(grid, task, step, holding=Holding(16, until_crossed=True))
    assert tables.mean_hold == 8.0
    values = solve(tables, limits=Limits(1e-12, 1000)).q_values[:, 0]
    to_go = np.array([32, 24, 16, 8, 1])
    np.testing.assert_allclose(values, -(1.0 - 0.99**to_go) / 0.01, atol=1e-6)


def test_paths_let_go_at_a_crossing_are_certified_by_the_equation_that_was_solved() -> None:
    """Where V is linear and paid back on the way, any holding leaves no residual."""
    box = Box([-1.0, -1.0], [1.0, 1.0])
    grid = Grid.spaced(box, [5, 6], [1.0, 1.4])

    def value(states: FloatArray) -> FloatArray:
        x, y = states[:, 0], states[:, 1]
        best: FloatArray = 3.0 + 2.0 * x - y + 0.7 * x * y
        return best

    task = Task(box, np.array([0.0, 1.0]), lambda s, u, n: value(s) - 0.9 * value(n), 0.9, 10.0)
    step = known(lambda s, u: 0.9 * s + 0.05 * u, task.controls)
    q_function = QFunction(grid, np.repeat(value(grid.nodes)[:, np.newaxis], 2, axis=1))
    certificate = certify(q_function, task, step, holding=Holding(12, True), points_per_cell=4)
    assert certificate.residual < 1e-12
    off = QFunction(grid, q_function.q_values + 0.5)
    certificate = certify(off, task, step, holding=Holding(12, True), points_per_cell=4)
    assert certificate.lower <= 0.5 <= certificate.upper


# --- what is told and refused --------------------------------------------------------------------------


def test_controls_are_held_as_told_else_until_a_cell_is_crossed() -> None:
    task = task_over(Box([0.0], [1.0]))
    assert Discretisation(hold=5).holding_for(task) == Holding(5)
    assert Discretisation().holding_for(task) == Holding(LONGEST_HOLD, until_crossed=True)
    assert Discretisation().holding_for(replace(task, max_steps=3)) == Holding(3, until_crossed=True)


@pytest.mark.parametrize("most", [0, -1, 201, 2.5])
@pytest.mark.parametrize("until_crossed", [True, False])
def test_holding_for_less_than_a_step_or_more_than_an_episode_is_refused(
    most: float, until_crossed: bool
) -> None:
    task = task_over(Box([0.0], [1.0]))
    with pytest.raises(ValueError, match=rf"`hold` must be a whole number from 1 to 200; got {most}"):
        Holding(most, until_crossed).require(task)  # type: ignore[arg-type]
