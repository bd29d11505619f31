"""A model seen through the grid, against naive loops and exact dynamics."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import Flow, tabulate
from optimist.steps import Successors, known
from optimist.task import Task
from tests.naive import flow as naive
from tests.planning.cases import (
    CONTROLS,
    GRIDS,
    anything,
    assert_same_place,
    at_nodes,
    states_around,
    task_on,
    uncertainty_of,
)
from tests.test_grid import make_grid


def multilinear(grid: Grid) -> tuple[FloatArray, FloatArray]:
    """Coefficients of displacements that are multilinear in the axes that do not turn.  [corners, d]"""
    stream = np.random.default_rng([7, grid.n_dims])
    exponents = np.array(list(product((0, 1), repeat=grid.n_dims)))
    exponents = exponents[(exponents[:, grid.box.periodic] == 0).all(axis=1)]
    return exponents, stream.uniform(-0.05, 0.05, size=(len(exponents), grid.n_dims)) * grid.box.widths


def moved_multilinearly(grid: Grid, states: FloatArray, controls: FloatArray) -> FloatArray:
    exponents, coefficients = multilinear(grid)
    places = (states - grid.box.low) / grid.box.widths
    terms = (places[:, np.newaxis, :] ** exponents).prod(axis=2)
    return grid.box.wrap(states + (terms @ coefficients) * controls[:, :1])


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_at_the_nodes_a_step_is_the_prediction(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction = anything(grid)
    flow = Flow.of(grid, prediction)
    assert flow.n_actions == 3
    for action in range(3):
        found = flow(grid.nodes, action)
        assert_same_place(grid.box, found.next_states, prediction.next_states[action])
        expected = uncertainty_of(prediction)[action]
        np.testing.assert_allclose(uncertainty_of(found), expected, atol=1e-13)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_a_step_from_anywhere_is_the_naive_one(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)
    prediction = anything(grid)
    flow, twin = Flow.of(grid, prediction), naive.flow(grid, prediction)
    for state in states_around(grid, 12):
        for action in range(3):
            expected, unsure = twin(state, action)
            found = flow(state[np.newaxis], action)
            assert_same_place(grid.box, found.next_states[0], expected)
            assert uncertainty_of(found)[0] == pytest.approx(unsure, abs=1e-12)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_multilinear_displacements_are_followed_exactly(n_dims: int, spacing: str, kind: str) -> None:
    grid = make_grid(n_dims, spacing, kind)

    def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
        return moved_multilinearly(grid, states, controls)

    flow = Flow.through(grid, known(dynamics, CONTROLS), 3)
    states = states_around(grid, 50, beyond=0.0)
    for action, control in enumerate(CONTROLS):
        found = flow(states, action)
        assert_same_place(grid.box, found.next_states, dynamics(states, np.tile(control, (50, 1))))
        np.testing.assert_array_equal(uncertainty_of(found), 0.0)


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_uncertainty_of_all_actions_at_once_is_that_of_each_alone(
    n_dims: int, spacing: str, kind: str
) -> None:
    grid = make_grid(n_dims, spacing, kind)
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 20)
    every = flow.uncertainty(states)
    assert every.shape == (20, 3)
    for action in range(3):
        np.testing.assert_array_equal(every[:, action], uncertainty_of(flow(states, action)))


@pytest.mark.parametrize("unsure", [True, False], ids=["unsure", "known"])
def test_a_flow_through_a_step_is_the_flow_of_its_answers(unsure: bool) -> None:
    grid = make_grid(2, "random", "mixed")
    successors = anything(grid)
    if not unsure:
        successors = successors._replace(uncertainty=None)
    through = Flow.through(grid, at_nodes(grid, successors), 3)
    np.testing.assert_array_equal(through.fields, Flow.of(grid, successors).fields)
    assert through.uncertainty(grid.nodes).any() == unsure


def test_a_step_may_know_some_actions_and_not_others() -> None:
    grid = make_grid(2, "random", "line")
    successors = anything(grid)
    asked = at_nodes(grid, successors)

    def step(states: FloatArray, action: int) -> Successors:
        return asked(states, action) if action == 1 else Successors(asked(states, action).next_states)

    found = Flow.through(grid, step, 3).uncertainty(grid.nodes)
    np.testing.assert_array_equal(found[:, [0, 2]], 0.0)
    np.testing.assert_allclose(found[:, 1], uncertainty_of(successors)[1], atol=1e-13)


@pytest.mark.parametrize("spacing", ["uniform", "random"])
def test_periodic_coordinates_end_inside_and_others_may_leave(spacing: str) -> None:
    grid = make_grid(3, spacing, "mixed")
    flow = Flow.of(grid, anything(grid))
    next_states, _ = flow(states_around(grid, 400), 0)
    assert (next_states[:, 0] >= grid.box.low[0]).all()
    assert (next_states[:, 0] < grid.box.high[0]).all()
    assert (next_states[:, 1] > grid.box.high[1]).any()


def test_a_turn_goes_the_short_way_across_the_seam() -> None:
    grid = Grid.uniform(Box([0.0], [360.0], [True]), [8])
    turned = (grid.nodes + 40.0) % 360.0
    flow = Flow.of(grid, Successors(turned[np.newaxis], np.zeros((1, 8))))
    next_states, _ = flow(np.array([[350.0], [330.0], [10.0], [-10.0], [710.0]]), 0)
    np.testing.assert_allclose(next_states[:, 0], [30.0, 10.0, 50.0, 30.0, 30.0], atol=1e-10)


def test_states_whole_turns_away_are_the_same_states() -> None:
    grid = make_grid(2, "random", "torus")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 50, beyond=0.0)
    for turns in (-2.0, 1.0, 3.0):
        away, here = flow(states + turns * grid.box.widths, 1), flow(states, 1)
        assert_same_place(grid.box, away.next_states, here.next_states)
        np.testing.assert_allclose(uncertainty_of(away), uncertainty_of(here), atol=1e-11)


def test_outside_the_box_displacements_are_those_at_its_edge() -> None:
    grid = make_grid(2, "random", "line")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 60, beyond=0.5)
    edge = grid.box.clip(states)
    out, on = flow(states, 2), flow(edge, 2)
    np.testing.assert_allclose(out.next_states - states, on.next_states - edge, atol=1e-12)
    np.testing.assert_allclose(uncertainty_of(out), uncertainty_of(on), atol=1e-13)


def test_uncertainty_stays_between_that_of_the_nodes() -> None:
    grid = make_grid(4, "random", "mixed")
    prediction = anything(grid)
    found = Flow.of(grid, prediction).uncertainty(states_around(grid, 500))
    at_the_nodes = uncertainty_of(prediction)
    assert (found >= at_the_nodes.min(axis=1) - 1e-12).all()
    assert (found <= at_the_nodes.max(axis=1) + 1e-12).all()


def test_no_states_lead_nowhere() -> None:
    grid = make_grid(2, "uniform", "line")
    found = Flow.of(grid, anything(grid))(np.empty((0, 2)), 0)
    assert found.next_states.shape == (0, 2)
    assert uncertainty_of(found).shape == (0,)


def test_states_are_left_as_they_were() -> None:
    grid = make_grid(2, "uniform", "torus")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 10)
    before = states.copy()
    flow(states, 0)
    flow.uncertainty(states)
    np.testing.assert_array_equal(states, before)


def test_states_that_are_not_contiguous_are_followed_like_others() -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    states = states_around(grid, 10)
    strided = np.asfortranarray(states)[::2]
    np.testing.assert_array_equal(flow(strided, 1)[0], flow(states[::2].copy(), 1)[0])


@pytest.mark.parametrize("shape", [(3, 15), (3, 15, 1), (3, 14, 2), (15, 3, 2)])
def test_successors_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")  # 5 x 3
    with pytest.raises(ValueError, match=r"`next_states` must have shape .*; got"):
        Flow.of(grid, Successors(np.zeros(shape), np.zeros((3, 15))))


@pytest.mark.parametrize("shape", [(15, 3), (3, 1), (1, 15), (2, 15), (3,)])
def test_uncertainty_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")
    with pytest.raises(ValueError, match=r"`uncertainty` must .*; got"):
        Flow.of(grid, Successors(np.zeros((3, 15, 2)), np.full(shape, 0.5)))


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan])
def test_uncertainty_outside_zero_to_one_is_refused(value: float) -> None:
    grid = make_grid(2, "uniform", "line")
    prediction = anything(grid)
    uncertainty_of(prediction)[1, 4] = value
    with pytest.raises(ValueError, match=r"`uncertainty` must lie in \[0, 1\]; got"):
        Flow.of(grid, prediction)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_successors_that_are_not_numbers_are_refused(value: float) -> None:
    grid = make_grid(2, "uniform", "line")
    prediction = anything(grid)
    prediction.next_states[1, 4, 0] = value
    task = Task(grid.box, CONTROLS, lambda s, u, n: -np.ones(len(s)), 0.9, 0.0)
    with pytest.raises(ValueError, match="must be finite; got"):
        tabulate(grid, task, Flow.of(grid, prediction))


@pytest.mark.parametrize("shape", [(2,), (4, 3), (4, 1), (2, 2, 2)])
def test_states_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        flow(np.zeros(shape), 0)
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got"):
        flow.uncertainty(np.zeros(shape))


@pytest.mark.parametrize("action", [3, 1000, -1])
def test_an_action_there_is_not_is_refused(action: int) -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid))
    with pytest.raises((ValueError, IndexError), match=str(action)):
        flow(grid.nodes, action)


@pytest.mark.parametrize("n_actions", [2, 4])
def test_a_flow_of_other_actions_than_the_task_does_not_fit(n_actions: int) -> None:
    grid = make_grid(2, "uniform", "line")
    flow = Flow.of(grid, anything(grid, n_actions=n_actions))
    with pytest.raises(ValueError, match=rf"3.*; got.*{n_actions}"):
        flow.require_fits(task_on(grid))


def test_a_flow_over_other_axes_than_the_task_does_not_fit() -> None:
    grid = make_grid(3, "uniform", "line")
    with pytest.raises(ValueError, match=r"2.*; got.*3"):
        Flow.of(grid, anything(grid)).require_fits(task_on(make_grid(2, "uniform", "line")))


@pytest.mark.parametrize(("n_dims", "spacing", "kind"), GRIDS)
def test_the_mean_uncertainty_is_that_of_all_nodes_and_actions(n_dims: int, spacing: str, kind: str) -> None:
    """Ghosts are not counted twice."""
    grid = make_grid(n_dims, spacing, kind)
    successors = anything(grid)
    expected = float(uncertainty_of(successors).mean())
    assert Flow.of(grid, successors).mean_uncertainty == pytest.approx(expected, rel=1e-12)
    assert Flow.of(grid, anything(grid, unsure=False)).mean_uncertainty == 0.0
