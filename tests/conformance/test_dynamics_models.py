"""One contract for everything that predicts successors, learned or true; and planning with it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.models import KNOWNNESS, DynamicsModel, ModelSettings, TrueDynamics, fit_dynamics
from optimist.planning import QFunction, roll_out, solve, tabulate
from optimist.systems import SYSTEMS, System
from tests.models.learning import excursion, learned, scattered

MODELS = ["true", *(f"{kind}/{rule}" for kind in ("per-action", "joint") for rule in KNOWNNESS)]
NODES = {"mountain-car": (9, 7), "pendulum": (8, 9), "bicycle": (4, 3, 3, 4)}

every_model = pytest.mark.parametrize("name", MODELS)
every_problem = pytest.mark.parametrize("problem", NODES)


@cache
def model_of(problem: str, name: str) -> DynamicsModel:
    system = SYSTEMS[problem]
    if name == "true":
        return TrueDynamics(system.dynamics, system.task.controls)
    kind, rule = name.split("/")
    data = scattered(system, 80, seed=0)
    return learned(system, data, ModelSettings(joint=kind == "joint", knownness=rule))


def grid_of(problem: str) -> Grid:
    return Grid.uniform(SYSTEMS[problem].task.box, NODES[problem])


def states_of(system: System, count: int = 40) -> FloatArray:
    return scattered(system, count, seed=1).states


def apart(system: System, one: FloatArray, other: FloatArray) -> FloatArray:
    """The largest distance, the short way round, in widths of the box."""
    box = system.task.box
    return np.asarray(np.abs(box.displacement(one, other) / box.widths).max(initial=0.0))


@every_problem
@every_model
def test_successors_have_the_shape_of_the_states(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    for count in (0, 1, 7):
        states = states_of(system)[:count]
        next_states = model.predict(states, system.task.controls[:1])
        assert next_states.shape == states.shape
        assert next_states.dtype == np.float64
        assert np.isfinite(next_states).all()


@every_problem
@every_model
def test_one_control_for_all_is_that_control_for_each(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    states = states_of(system)
    for control in system.task.controls:
        for_all = model.predict(states, control[np.newaxis])
        for_each = model.predict(states, np.tile(control, (len(states), 1)))
        assert apart(system, for_all, for_each) < 1e-12


@every_problem
@every_model
def test_every_row_is_predicted_on_its_own(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    states = states_of(system)
    actions = np.random.default_rng(2).integers(system.task.n_actions, size=len(states))
    controls = system.task.controls[actions]
    together = model.predict(states, controls)
    for row in range(len(states)):
        alone = model.predict(states[row : row + 1], controls[row : row + 1])
        assert apart(system, together[row : row + 1], alone) < 1e-8
    order = np.random.default_rng(3).permutation(len(states))
    assert apart(system, model.predict(states[order], controls[order]), together[order]) < 1e-8


@every_problem
@every_model
def test_predictions_on_a_grid_have_action_before_node(problem: str, name: str) -> None:
    system, grid = SYSTEMS[problem], grid_of(problem)
    prediction = model_of(problem, name).predict_on(grid)
    assert prediction.next_states.shape == (system.task.n_actions, grid.n_nodes, grid.n_dims)
    assert prediction.uncertainty.shape == (system.task.n_actions, grid.n_nodes)
    assert np.isfinite(prediction.next_states).all()
    assert np.isfinite(prediction.uncertainty).all()
    assert prediction.uncertainty.min() >= 0.0
    assert prediction.uncertainty.max() <= 1.0


@every_problem
@every_model
def test_predictions_on_a_grid_are_those_at_its_nodes(problem: str, name: str) -> None:
    system, grid, model = SYSTEMS[problem], grid_of(problem), model_of(problem, name)
    prediction = model.predict_on(grid)
    for action, control in enumerate(system.task.controls):
        at_nodes = model.predict(grid.nodes, control[np.newaxis])
        assert apart(system, prediction.next_states[action], at_nodes) < 1e-8


@every_problem
@every_model
def test_periodic_coordinates_are_wrapped_into_the_box(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    box = system.task.box
    found = [model.predict_on(grid_of(problem)).next_states.reshape(-1, box.n_dims)]
    found += [model.predict(states_of(system, 300), control[np.newaxis]) for control in system.task.controls]
    coordinates = np.vstack(found)[:, box.periodic]
    assert (coordinates >= box.low[box.periodic]).all()
    assert (coordinates < box.high[box.periodic]).all()


@every_problem
@every_model
def test_what_is_given_is_not_touched(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    states, controls = states_of(system), np.array(system.task.controls[:1])
    kept = states.copy(), controls.copy()
    first = model.predict(states, controls)
    first += 1.0  # the answer is the caller's own
    np.testing.assert_array_equal(states, kept[0])
    np.testing.assert_array_equal(controls, kept[1])
    states.setflags(write=False)
    controls.setflags(write=False)
    np.testing.assert_allclose(model.predict(states, controls) + 1.0, first)


@every_problem
@every_model
def test_the_same_question_has_the_same_answer(problem: str, name: str) -> None:
    system, grid, model = SYSTEMS[problem], grid_of(problem), model_of(problem, name)
    states, control = states_of(system), system.task.controls[:1]
    np.testing.assert_array_equal(model.predict(states, control), model.predict(states, control))
    one, other = model.predict_on(grid), model.predict_on(grid)
    np.testing.assert_array_equal(one.next_states, other.next_states)
    np.testing.assert_array_equal(one.uncertainty, other.uncertainty)


@every_problem
@every_model
def test_predictions_can_be_planned_with(problem: str, name: str) -> None:
    system, grid = SYSTEMS[problem], grid_of(problem)
    plan = solve(tabulate(grid, system.task, model_of(problem, name).predict_on(grid)), threads=1)
    assert plan.converged
    assert plan.q_values.max() <= system.task.optimistic_value + 1e-9


# --- from random transitions to a policy ---------------------------------------------------------


def steps_to_goal(system: System, model: DynamicsModel) -> int:
    grid = Grid.uniform(system.task.box, [50, 50])
    plan = solve(tabulate(grid, system.task, model.predict_on(grid)), threads=1)
    rollouts = roll_out(system.task, system.dynamics, QFunction(grid, plan.q_values), system.starts)
    assert rollouts.terminated.all()
    return int(rollouts.steps[0])


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_a_mountain_car_model_of_200_transitions_drives_to_the_goal(joint: bool) -> None:
    system = SYSTEMS["mountain-car"]
    settings = ModelSettings(joint=joint, knownness="none")
    steps = []
    for seed in range(3):
        data = excursion(system, 200, held=5, seed=seed)
        # it was not shown the way
        assert not system.task.terminal(data.next_states).any()
        model = fit_dynamics(data, system.task.box, system.task.controls, settings, fit_seed=seed)
        steps.append(steps_to_goal(system, model))
    assert np.median(steps) <= 130
