"""Drift, against closed forms with hand-made models; the stopping rule, against all short histories."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import cast

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import Model, StoppingRule
from optimist.models.drift import Drift, Drifting, check_points
from optimist.steps import Successors
from optimist.systems import SYSTEMS
from optimist.transitions import Transitions
from tests.models.learning import learned, of_kind, scattered

BOX = Box([-1.0, 0.0], [1.0, 360.0], periodic=[False, True])
CONTROLS = np.array([[-1.0], [1.0]])


@dataclass(frozen=True)
class Shifting:
    """A model that moves every state by the same, under one control more than under the other."""

    shift: tuple[float, float]
    uncertainty: float = 0.0
    more: tuple[float, float] = (0.0, 0.0)  # times the control

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        moved = states + np.array(self.shift) + controls * np.array(self.more)
        return Successors(BOX.wrap(moved), np.full(len(states), self.uncertainty))


def drift(before: Shifting, after: Shifting, grid: Grid) -> Drift:
    return Drifting()(cast(Model, before), cast(Model, after), grid, CONTROLS)


def test_models_that_agree_have_no_drift() -> None:
    grid = Grid.uniform(BOX, [21, 36])
    one = Shifting((0.1, 50.0), 0.3)
    assert drift(one, one, grid) == Drift(0.0, 0.0)


@pytest.mark.parametrize("counts", [(21, 36), (5, 12), (2, 90)])
@pytest.mark.parametrize("cells", [0.25, 1.0, 1.5])
@pytest.mark.parametrize("axis", [0, 1], ids=["not-periodic", "periodic"])
def test_a_shift_is_measured_in_cells_of_at_most_a_twentieth_of_the_axis(
    counts: tuple[int, int], cells: float, axis: int
) -> None:
    grid = Grid.uniform(BOX, counts)
    shift = [0.0, 0.0]
    cell = min(float(np.diff(grid.axes[axis])[0]), float(BOX.widths[axis]) / 20.0)
    shift[axis] = cells * cell
    found = drift(Shifting((0.0, 0.0)), Shifting((shift[0], shift[1])), grid)
    assert found.mean_drift == pytest.approx(cells)
    assert found.uncertainty_drift == 0.0


@pytest.mark.parametrize(("before", "after", "cells"), [(-17.0, -27.0, 1.0), (17.0, 37.0, 2.0)])
def test_a_shift_across_the_seam_is_measured_the_short_way(before: float, after: float, cells: float) -> None:
    grid = Grid.uniform(BOX, [21, 36])  # cells of 10 degrees
    angles = check_points(grid)[:, 1]
    across = np.floor((angles + before) / 360.0) != np.floor((angles + after) / 360.0)
    assert across.any()
    assert drift(Shifting((0.0, before)), Shifting((0.0, after)), grid).mean_drift == pytest.approx(cells)


def test_drift_is_the_same_forwards_and_backwards() -> None:
    grid = Grid.uniform(BOX, [21, 36])
    one, other = Shifting((0.0, 0.0), 0.7), Shifting((0.03, -7.0), 0.2)
    assert drift(one, other, grid) == drift(other, one, grid)


def test_drift_is_the_mean_over_the_actions() -> None:
    grid = Grid.uniform(BOX, [21, 36])
    # action 0 moves by -10 + 20 = 10 degrees, a cell; action 1 by 30, three cells
    found = drift(Shifting((0.0, 0.0)), Shifting((0.0, 20.0), more=(0.0, 10.0)), grid)
    assert found.mean_drift == pytest.approx(2.0)


@pytest.mark.parametrize(("before", "after"), [(0.2, 0.5), (0.5, 0.2), (1.0, 0.0)])
def test_uncertainty_drift_is_the_mean_change_whatever_its_sign(before: float, after: float) -> None:
    grid = Grid.uniform(BOX, [5, 5])
    found = drift(Shifting((0.0, 0.0), before), Shifting((0.0, 0.0), after), grid)
    assert found.mean_drift == 0.0
    assert found.uncertainty_drift == pytest.approx(abs(after - before))


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
@pytest.mark.parametrize("problem", ["mountain-car", "pendulum"])
def test_a_learned_model_drifts_with_news_and_less_and_less(problem: str, joint: bool) -> None:
    system = SYSTEMS[problem]
    task = system.task
    grid = Grid.uniform(task.box, [30, 30])
    data = scattered(system, 200, seed=0)
    models = []
    for count in (10, 20, 190, 200):
        some = Transitions.stepped(data.states[:count], data.actions[:count], data.next_states[:count])
        models.append(learned(system, some, of_kind(joint)))
    early, late = (
        Drifting()(before, after, grid, task.controls) for before, after in (models[:2], models[2:])
    )
    assert Drifting()(models[0], models[0], grid, task.controls) == Drift(0.0, 0.0)
    assert late.mean_drift > 0.0
    assert late.uncertainty_drift > 0.0
    assert early.mean_drift > 5.0 * late.mean_drift
    assert early.uncertainty_drift > 5.0 * late.uncertainty_drift


@dataclass
class Listened:
    """Counts how often it is asked. It cannot be hashed, and says all in one place."""

    shift: float
    asked: int = 0
    _place: FloatArray = field(default_factory=lambda: np.empty((100, 2)))

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        self.asked += 1
        self._place[:] = BOX.wrap(states + self.shift * (1.0 + controls))
        return Successors(self._place, np.full(len(states), 0.1))


def test_what_a_model_said_is_remembered_for_the_same_question_only() -> None:
    grids = [Grid.uniform(BOX, [21, 36]), Grid.spaced(BOX, [9, 9], [1.0, 1.0])]
    drifting, models = Drifting(), [Listened(0.0), Listened(0.1), Listened(0.3), Listened(0.3)]
    first, second, third, fourth = (cast(Model, model) for model in models)
    assert drifting(first, second, grids[0], CONTROLS) == Drifting()(first, second, grids[0], CONTROLS)
    models[1].asked = 0
    again = drifting(second, third, grids[0], CONTROLS.copy())
    assert models[1].asked == 0
    assert again == Drifting()(second, third, grids[0], CONTROLS)
    assert again.mean_drift > 0.0
    for before, grid, controls in (
        (third, grids[1], CONTROLS),
        (fourth, grids[0], CONTROLS),
        (third, grids[0], CONTROLS[:1]),
    ):
        drifting(second, third, grids[0], CONTROLS)
        models[2].asked = models[3].asked = 0
        expected = Drifting()(before, first, grid, controls)
        assert models[2].asked + models[3].asked == len(controls)
        assert drifting(before, first, grid, controls) == expected
        assert models[2].asked + models[3].asked == 2 * len(controls)


# --- check points -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4, 5])
def test_check_points_are_the_same_few_inside_the_box(n_dims: int) -> None:
    box = Box(np.linspace(-3.0, 1.0, n_dims), np.linspace(2.0, 50.0, n_dims), periodic=[True] * n_dims)
    grid = Grid.uniform(box, [3] * n_dims)
    points = check_points(grid)
    assert points.shape == (min(10**n_dims, 1000), n_dims)
    assert (points > box.low).all()
    assert (points < box.high).all()
    np.testing.assert_array_equal(points, check_points(grid))
    assert len(np.unique(points, axis=0)) == len(points)


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4, 5])
def test_check_points_cover_every_axis_evenly(n_dims: int) -> None:
    box = Box([0.0] * n_dims, [10.0] * n_dims)
    points = check_points(Grid.uniform(box, [2] * n_dims))
    for axis in range(n_dims):
        positions, counts = np.unique(points[:, axis].round(9), return_counts=True)
        np.testing.assert_allclose(positions, np.arange(10) + 0.5)
        assert counts.max() <= 2 * counts.min()


@pytest.mark.parametrize("counts", [(2, 2), (4, 7), (51, 30)])
def test_check_points_do_not_depend_on_how_many_uniform_nodes_there_are(counts: tuple[int, int]) -> None:
    points = check_points(Grid.uniform(BOX, counts))
    np.testing.assert_allclose(points, check_points(Grid.uniform(BOX, [11, 10])), rtol=1e-12, atol=1e-12)


CROWDED = (
    Grid.spaced(BOX, [50, 31], [2.0, 1.0]),
    Grid(BOX, [np.array([-1.0, 0.5, 0.6, 0.65, 0.7, 1.0]), np.array([20.0, 25.0, 30.0, 200.0, 340.0])]),
)


@pytest.mark.parametrize("grid", CROWDED, ids=["spaced", "by-hand"])
def test_check_points_lie_where_the_nodes_are(grid: Grid) -> None:
    """A tenth of the cells between one and the next, on a periodic axis around the seam, too."""
    points = check_points(grid)
    assert points.shape == (100, 2)
    assert (points >= BOX.low).all()
    assert (points <= BOX.high).all()
    for axis, nodes in enumerate(grid.axes):
        ends = np.append(nodes[1:], nodes[0] + BOX.widths[axis]) if BOX.periodic[axis] else nodes[1:]
        begins = nodes[: len(ends)]
        found = np.unique(points[:, axis].round(9))
        if BOX.periodic[axis]:
            found = np.sort(nodes[0] + (found - nodes[0]) % BOX.widths[axis])
        passed = [((place - begins) / (ends - begins)).clip(0.0, 1.0).sum() for place in found]
        np.testing.assert_allclose(passed, (np.arange(10) + 0.5) / 10 * len(ends), atol=1e-6)


def test_what_changes_where_the_nodes_are_counts_for_more() -> None:
    @dataclass(frozen=True)
    class Local:
        """Unsure of one narrow place."""

        uncertainty: float

        def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
            return Successors(states, np.where(np.abs(states[:, 0]) < 0.15, self.uncertainty, 0.0))

    before, after = cast(Model, Local(1.0)), cast(Model, Local(0.0))
    close = [np.array([-1.0, *np.linspace(-0.1, 0.1, 9), 1.0]), np.linspace(0.0, 324.0, 10)]
    even, crowded = (
        Drifting()(before, after, grid, CONTROLS).uncertainty_drift
        for grid in (Grid.uniform(BOX, [11, 10]), Grid(BOX, close))
    )
    assert even == pytest.approx(0.2)
    assert crowded == pytest.approx(0.8)


# --- the stopping rule --------------------------------------------------------------------------

SMALL = Drift(0.049, 0.0099)
LARGE_MEAN = Drift(0.051, 0.0)
LARGE_UNCERTAINTY = Drift(0.0, 0.011)


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_settled_means_that_the_last_few_drifts_were_all_small(patience: int) -> None:
    rule = StoppingRule(patience=patience)
    for length in range(5):
        for history in product([SMALL, LARGE_MEAN, LARGE_UNCERTAINTY], repeat=length):
            in_a_row = 0
            for one in history:
                in_a_row = in_a_row + 1 if one is SMALL else 0
            assert rule.settled(history) == (in_a_row >= patience)


def test_both_tolerances_are_the_ones_given() -> None:
    rule = StoppingRule(mean_drift_tolerance=0.5, uncertainty_drift_tolerance=0.2, patience=1)
    assert rule.settled([Drift(0.49, 0.19)])
    assert not rule.settled([Drift(0.51, 0.19)])
    assert not rule.settled([Drift(0.49, 0.21)])


def test_once_is_not_enough_by_default() -> None:
    assert not StoppingRule().settled([SMALL])
    assert StoppingRule().settled([SMALL, SMALL])


@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan])
@pytest.mark.parametrize(
    "name", ["mean_drift_tolerance", "uncertainty_drift_tolerance", "surprise", "disappointment"]
)
def test_tolerances_that_are_not_positive_are_refused(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=rf"{name}\n.*(greater than 0|finite).*input_value={bad}"):
        StoppingRule.model_validate({name: bad})


@pytest.mark.parametrize("bad", [0, -1])
def test_patience_below_one_is_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=rf"`patience` must be greater than or equal to 1; got {bad}"):
        StoppingRule(patience=bad)
