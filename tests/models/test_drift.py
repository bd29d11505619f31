"""Drift, against closed forms with hand-made models; the stopping rule, against all short histories."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import Model, StoppingRule
from optimist.models.drift import Drift, check_points, measure_drift
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
    return measure_drift(cast(Model, before), cast(Model, after), grid, CONTROLS)


def test_models_that_agree_have_no_drift() -> None:
    grid = Grid.uniform(BOX, [21, 36])
    one = Shifting((0.1, 50.0), 0.3)
    assert drift(one, one, grid) == Drift(0.0, 0.0)


@pytest.mark.parametrize("counts", [(21, 36), (5, 12), (2, 90)])
@pytest.mark.parametrize("cells", [0.25, 1.0, 1.5])
@pytest.mark.parametrize("axis", [0, 1], ids=["not-periodic", "periodic"])
def test_a_shift_is_measured_in_cells(counts: tuple[int, int], cells: float, axis: int) -> None:
    grid = Grid.uniform(BOX, counts)
    shift = [0.0, 0.0]
    shift[axis] = cells * float(np.diff(grid.axes[axis])[0])
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
        measure_drift(before, after, grid, task.controls) for before, after in (models[:2], models[2:])
    )
    assert measure_drift(models[0], models[0], grid, task.controls) == Drift(0.0, 0.0)
    assert late.mean_drift > 0.0
    assert late.uncertainty_drift > 0.0
    assert early.mean_drift > 5.0 * late.mean_drift
    assert early.uncertainty_drift > 5.0 * late.uncertainty_drift


# --- check points -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4, 5])
def test_check_points_are_the_same_few_inside_the_box(n_dims: int) -> None:
    box = Box(np.linspace(-3.0, 1.0, n_dims), np.linspace(2.0, 50.0, n_dims), periodic=[True] * n_dims)
    grid = Grid.uniform(box, [3] * n_dims)
    points = check_points(grid)
    assert points.shape == (min(10**n_dims, 2000), n_dims)
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


def test_check_points_do_not_depend_on_the_nodes() -> None:
    one, other = Grid.uniform(BOX, [4, 4]), Grid.spaced(BOX, [50, 31], [2.0, 1.0])
    np.testing.assert_array_equal(check_points(one), check_points(other))


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
@pytest.mark.parametrize("name", ["mean_drift_tolerance", "uncertainty_drift_tolerance", "surprise"])
def test_tolerances_that_are_not_positive_are_refused(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=rf"{name}\n.*(greater than 0|finite).*input_value={bad}"):
        StoppingRule.model_validate({name: bad})


@pytest.mark.parametrize("bad", [0, -1])
def test_patience_below_one_is_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=rf"patience\n.*greater than or equal to 1.*input_value={bad}"):
        StoppingRule(patience=bad)
