"""One contract for every learned model of the dynamics, and one for every step that can be planned with."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.discretisation import Holding
from optimist.grid import Grid
from optimist.models import KNOWNNESS, LEARNERS, Model, ModelLearner, ModelSettings, fit_dynamics, step_of
from optimist.models.learners import make_learner
from optimist.models.model import DrawnModel
from optimist.planning import Flow, Lookahead, QFunction, roll_out, solve, tabulate
from optimist.steps import Step, Successors, known
from optimist.systems import SYSTEMS
from optimist.systems.system import System
from optimist.transitions import Transition, Transitions
from tests.models.learning import JOINT, PER_ACTION, excursion, of_kind, scattered, unsure

NODES = {"mountain-car": (9, 7), "pendulum": (8, 9), "bicycle": (4, 3, 3, 4)}
# settings that a learner is tested with; one that is not named here, with its defaults
VARIANTS: dict[str, dict[str, ModelSettings]] = {"gp": {"per-action": PER_ACTION, "joint": JOINT}}
SETTINGS = {
    f"{learner}/{variant}": settings
    for learner, kind in LEARNERS.items()
    for variant, settings in VARIANTS.get(
        learner, {"default": kind.settings.model_validate({"learner": learner})}
    ).items()
}
MODELS = [f"{kind}/{rule}" for kind in SETTINGS for rule in KNOWNNESS]
# what is predicted does not depend on the rule of uncertainty, which has a say on grids only
KINDS = [f"{kind}/cell-variance" for kind in SETTINGS]
STEPS = ["known", "flow", *(f"step of {kind}" for kind in KINDS)]

every_model = pytest.mark.parametrize("name", MODELS)
every_kind = pytest.mark.parametrize("name", KINDS)
every_step = pytest.mark.parametrize("name", STEPS)
every_problem = pytest.mark.parametrize("problem", NODES)


def learner_of(problem: str, name: str) -> ModelLearner:
    kind, rule = name.rsplit("/", maxsplit=1)
    return make_learner(SYSTEMS[problem].task, SETTINGS[kind], rule, seed=0)


@cache
def seen_of(problem: str, count: int = 80) -> Transitions:
    return scattered(SYSTEMS[problem], count, seed=0)


@cache
def model_of(problem: str, name: str) -> Model:
    return learner_of(problem, name).fit(seen_of(problem), None)


@cache
def grid_of(problem: str) -> Grid:
    return Grid.uniform(SYSTEMS[problem].task.box, NODES[problem])


@cache
def step_called(problem: str, name: str) -> Step:
    task = SYSTEMS[problem].task
    if name == "known":
        return known(SYSTEMS[problem].dynamics, task.controls)
    if name == "flow":
        return Flow.of(grid_of(problem), model_of(problem, KINDS[0]).predict_on(grid_of(problem)))
    return step_of(model_of(problem, name.removeprefix("step of ")), task.controls)


def states_of(system: System, count: int = 40) -> FloatArray:
    return scattered(system, count, seed=1).states


def apart(system: System, one: FloatArray, other: FloatArray) -> FloatArray:
    """The largest distance, the short way round, in widths of the box."""
    box = system.task.box
    return np.asarray(np.abs(box.displacement(one, other) / box.widths).max(initial=0.0))


def assert_same(one: Successors, other: Successors) -> None:
    """To the last bit."""
    np.testing.assert_array_equal(one.next_states, other.next_states)
    assert (one.uncertainty is None) == (other.uncertainty is None)
    if one.uncertainty is not None:
        np.testing.assert_array_equal(unsure(one), unsure(other))


def assert_unit_interval(uncertainty: FloatArray) -> None:
    assert np.isfinite(uncertainty).all()
    assert uncertainty.min(initial=0.0) >= 0.0
    assert uncertainty.max(initial=0.0) <= 1.0


def assert_wrapped(system: System, states: FloatArray) -> None:
    box = system.task.box
    coordinates = states[:, box.periodic]
    assert (coordinates >= box.low[box.periodic]).all()
    assert (coordinates < box.high[box.periodic]).all()


def assert_same_model(one: Model, other: Model, problem: str) -> None:
    """To the last bit, wherever it is asked."""
    system = SYSTEMS[problem]
    assert_same(one.predict_on(grid_of(problem)), other.predict_on(grid_of(problem)))
    states = states_of(system)
    for control in system.task.controls:
        asked = states, control[np.newaxis]
        np.testing.assert_array_equal(one.predict(*asked), other.predict(*asked))
        assert_same(one.predict_with_uncertainty(*asked), other.predict_with_uncertainty(*asked))
    assert one.record() == other.record()


# --- learned models: what they predict ------------------------------------------------------------------


def test_every_learner_of_the_table_is_tested_under_every_rule() -> None:
    assert {name.split("/")[0] for name in MODELS} == set(LEARNERS)
    assert {name.split("/")[-1] for name in MODELS} == set(KNOWNNESS)
    for name, settings in SETTINGS.items():
        assert settings.learner == name.split("/")[0]
        assert isinstance(settings, LEARNERS[settings.learner].settings)


@every_problem
@every_kind
def test_successors_have_the_shape_of_the_states(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    for count in (0, 1, 7):
        states = states_of(system)[:count]
        next_states = model.predict(states, system.task.controls[:1])
        assert next_states.shape == states.shape
        assert next_states.dtype == np.float64
        assert np.isfinite(next_states).all()


@every_problem
@every_kind
def test_how_unsure_successors_are_is_told_beside_them(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    for count in (0, 1, 7):
        states, controls = states_of(system)[:count], system.task.controls[:1]
        found = model.predict_with_uncertainty(states, controls)
        # another way to the same mean: to rounding
        assert apart(system, found.next_states, model.predict(states, controls)) < 1e-10
        assert unsure(found).shape == (count,)
        assert_unit_interval(unsure(found))


@every_problem
@every_kind
def test_one_control_for_all_is_that_control_for_each(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    states = states_of(system)
    for control in system.task.controls:
        for_all = model.predict(states, control[np.newaxis])
        for_each = model.predict(states, np.tile(control, (len(states), 1)))
        assert apart(system, for_all, for_each) < 1e-12


@every_problem
@every_kind
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
    assert unsure(prediction).shape == (system.task.n_actions, grid.n_nodes)
    assert np.isfinite(prediction.next_states).all()
    assert_unit_interval(unsure(prediction))


@every_problem
@every_model
def test_predictions_on_a_grid_are_those_at_its_nodes(problem: str, name: str) -> None:
    system, grid, model = SYSTEMS[problem], grid_of(problem), model_of(problem, name)
    prediction = model.predict_on(grid)
    for action, control in enumerate(system.task.controls):
        at_nodes = model.predict(grid.nodes, control[np.newaxis])
        assert apart(system, prediction.next_states[action], at_nodes) < 1e-8


@every_problem
@every_kind
def test_periodic_coordinates_are_wrapped_into_the_box(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    box = system.task.box
    assert_wrapped(system, model.predict_on(grid_of(problem)).next_states.reshape(-1, box.n_dims))
    for control in system.task.controls:
        assert_wrapped(system, model.predict(states_of(system, 300), control[np.newaxis]))


@every_problem
@every_kind
def test_a_model_that_may_err_does_so_around_what_it_predicts(problem: str, name: str) -> None:
    """By as much as it is told, in either direction, and not at all if told so."""
    system, model = SYSTEMS[problem], model_of(problem, name)
    if not isinstance(model, DrawnModel):
        return
    states, control, box = states_of(system), system.task.controls[:1], system.task.box
    predicted, draws = model.predict(states, control), np.ones(states.shape)
    assert apart(system, model.predict_drawn(states, control, 0.0 * draws), predicted) < 1e-10
    once, twice, back = (model.predict_drawn(states, control, k * draws) for k in (1.0, 2.0, -1.0))
    assert_wrapped(system, once)
    assert (box.displacement(predicted, once) >= -1e-12).all()
    assert (box.displacement(predicted, once) > 0.0).any()
    assert apart(system, 2.0 * box.displacement(predicted, once), box.displacement(predicted, twice)) < 1e-8
    assert apart(system, -box.displacement(predicted, once), box.displacement(predicted, back)) < 1e-8


@every_problem
@every_kind
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
    assert_same_model(model_of(problem, name), model_of(problem, name), problem)


@every_problem
@every_model
def test_predictions_can_be_planned_with(problem: str, name: str) -> None:
    system, grid = SYSTEMS[problem], grid_of(problem)
    flow = Flow.of(grid, model_of(problem, name).predict_on(grid))
    plan = solve(tabulate(grid, system.task, flow), threads=1)
    assert plan.converged
    assert plan.q_values.max() <= system.task.optimistic_value + 1e-9


# --- learned models: what becomes of them ---------------------------------------------------------------


@every_problem
@every_kind
def test_the_same_transitions_make_the_same_model(problem: str, name: str) -> None:
    again = learner_of(problem, name).fit(seen_of(problem), None)
    assert_same_model(again, model_of(problem, name), problem)


@every_problem
@every_model
def test_a_model_that_was_packed_comes_back_to_the_last_bit(problem: str, name: str) -> None:
    model, learner = model_of(problem, name), learner_of(problem, name)
    arrays, document = model.pack()
    # what a file would make of it
    packed = {key: np.array(array) for key, array in arrays.items()}, json.loads(json.dumps(document))
    assert_same_model(learner.unpack(packed, seen_of(problem)), model, problem)


@every_kind
def test_a_model_that_came_back_is_built_on_as_it_would_have_been(name: str) -> None:
    problem = "mountain-car"
    learner, more = learner_of(problem, name), scattered(SYSTEMS[problem], 90, seed=0)
    model = model_of(problem, name)
    again = learner.unpack(model.pack(), seen_of(problem))
    assert_same_model(learner.fit(more, again), learner.fit(more, model), problem)


@every_kind
def test_a_model_of_nothing_is_a_model(name: str) -> None:
    """Such as of steps that all ended on an edge: it comes back, and is told and planned with."""
    problem = "mountain-car"
    system, learner = SYSTEMS[problem], learner_of(problem, name)
    states = states_of(system, 5)
    seen = Transitions.stepped(states, np.arange(5) % 3, np.tile(system.task.box.high, (5, 1)))
    model = learner.fit(seen, None)
    json.dumps(model.record())
    assert_same_model(learner.unpack(model.pack(), seen), model, problem)
    np.testing.assert_array_equal(unsure(model.predict_on(grid_of(problem))), 1.0)
    for row in seen.rows():
        assert not model.surprised_by(row, row.state, share=0.1)


@every_problem
@every_kind
def test_what_is_recorded_of_a_model_is_json(problem: str, name: str) -> None:
    record = model_of(problem, name).record()
    assert isinstance(record, dict)
    assert json.loads(json.dumps(record)) == record


@every_problem
@every_kind
def test_what_was_predicted_surprises_nobody_and_anything_far_from_it_does(problem: str, name: str) -> None:
    system, model = SYSTEMS[problem], model_of(problem, name)
    box = system.task.box
    centre = 0.5 * (box.low + box.high)
    states = centre + 0.2 * (states_of(system, 30) - centre)  # no edge has a hand in it
    for number, state in enumerate(states):
        action = number % system.task.n_actions
        predicted = model.predict(state[np.newaxis], system.task.controls[[action]])[0]

        def surprises(
            next_state: FloatArray,
            share: float,
            *,
            state: FloatArray = state,
            action: int = action,
            predicted: FloatArray = predicted,
        ) -> bool:
            seen = Transition(state, action, 0.0, next_state, False, False)
            found = model.surprised_by(seen, predicted, share=share)
            assert isinstance(found, bool)
            return found

        assert not surprises(predicted, 1e-9)
        far = box.wrap(predicted + np.where(predicted < centre, 0.3, -0.3) * box.widths)
        assert surprises(far, 0.2)
        assert not surprises(far, 1e9)
        halfway = [surprises(far, share) for share in (1e-3, 0.1, 1.0, 10.0, 1e3)]
        assert halfway == sorted(halfway, reverse=True)  # the more is allowed, the less surprises


@every_problem
@every_kind
def test_a_model_as_a_step_is_the_model_under_the_control_of_the_action(problem: str, name: str) -> None:
    task, model = SYSTEMS[problem].task, model_of(problem, name)
    step, states = step_of(model, task.controls), states_of(SYSTEMS[problem])
    for action, control in enumerate(task.controls):
        assert_same(step(states, action), model.predict_with_uncertainty(states, control[np.newaxis]))


# --- steps: whatever predicts, for whatever plans -------------------------------------------------------


@every_problem
@every_step
def test_a_step_leads_from_every_state_to_one_of_the_same_kind(problem: str, name: str) -> None:
    system, step = SYSTEMS[problem], step_called(problem, name)
    for action in range(system.task.n_actions):
        for count in (0, 1, 7):
            states = states_of(system)[:count]
            found = step(states, action)
            assert isinstance(found, Successors)
            assert found.next_states.shape == states.shape
            assert found.next_states.dtype == np.float64
            assert np.isfinite(found.next_states).all()
            assert_wrapped(system, found.next_states)
            if found.uncertainty is not None:
                assert found.uncertainty.shape == (count,)
                assert_unit_interval(found.uncertainty)
    assert (step(states_of(system), 0).uncertainty is None) == (name == "known")


@every_problem
def test_known_dynamics_step_under_one_control_for_all_as_under_that_control_for_each(problem: str) -> None:
    system, step = SYSTEMS[problem], step_called(problem, "known")
    states = states_of(system)
    for action, control in enumerate(system.task.controls):
        for_each = system.dynamics(states, np.tile(control, (len(states), 1)))
        assert apart(system, step(states, action).next_states, for_each) < 1e-12


@every_problem
@every_step
def test_every_state_is_stepped_from_on_its_own(problem: str, name: str) -> None:
    system, step = SYSTEMS[problem], step_called(problem, name)
    states = states_of(system)
    together = step(states, 0)
    order = np.random.default_rng(3).permutation(len(states))
    shuffled = step(states[order], 0)
    assert apart(system, shuffled.next_states, together.next_states[order]) < 1e-8
    for row in range(len(states)):
        alone = step(states[row : row + 1], 0)
        assert apart(system, together.next_states[row : row + 1], alone.next_states) < 1e-8
        if together.uncertainty is not None:
            np.testing.assert_allclose(unsure(alone)[0], together.uncertainty[row], atol=1e-8)


@every_problem
@every_step
def test_a_step_does_not_touch_what_it_is_given(problem: str, name: str) -> None:
    step, states = step_called(problem, name), states_of(SYSTEMS[problem])
    kept = states.copy()
    first = step(states, 1)
    expected = first.next_states.copy()
    first.next_states[:] += 1.0  # the answer is the caller's own
    np.testing.assert_array_equal(states, kept)
    states.setflags(write=False)
    np.testing.assert_array_equal(step(states, 1).next_states, expected)


@every_problem
@every_step
def test_the_same_step_leads_to_the_same_place(problem: str, name: str) -> None:
    step, states = step_called(problem, name), states_of(SYSTEMS[problem])
    assert_same(step(states, 1), step(states, 1))


@every_problem
@every_step
def test_an_action_that_is_not_there_is_refused(problem: str, name: str) -> None:
    step, states = step_called(problem, name), states_of(SYSTEMS[problem])
    for action in (-1, SYSTEMS[problem].task.n_actions):
        with pytest.raises(ValueError, match=r"must|broadcast"):
            step(states, action)


@every_problem
@every_step
def test_a_flow_through_a_step_is_that_step_at_the_nodes(problem: str, name: str) -> None:
    system, grid, step = SYSTEMS[problem], grid_of(problem), step_called(problem, name)
    flow = Flow.through(grid, step, system.task.n_actions)
    for action in range(system.task.n_actions):
        found, expected = flow(grid.nodes, action), step(grid.nodes, action)
        assert apart(system, found.next_states, expected.next_states) < 1e-6
        certain = np.zeros(grid.n_nodes) if expected.uncertainty is None else expected.uncertainty
        np.testing.assert_allclose(unsure(found), certain, atol=1e-6)


@every_problem
@every_step
@pytest.mark.parametrize("hold", [1, 3])
def test_a_step_can_be_planned_with(problem: str, name: str, hold: int) -> None:
    task, grid, step = SYSTEMS[problem].task, grid_of(problem), step_called(problem, name)
    plan = solve(tabulate(grid, task, step, holding=Holding(hold)), threads=1)
    assert plan.converged
    assert np.isfinite(plan.q_values).all()
    assert plan.q_values.max() <= task.optimistic_value + 1e-9


@every_problem
@every_step
def test_a_step_can_be_looked_ahead_through(problem: str, name: str) -> None:
    """One step ahead: what it earns and what the plan says of where it leads, as far as that is known."""
    task, grid, step = SYSTEMS[problem].task, grid_of(problem), step_called(problem, name)
    q_function = QFunction(grid, solve(tabulate(grid, task, step), threads=1).q_values)
    states = states_of(SYSTEMS[problem], 12)
    seen = Lookahead(task, step, q_function, depth=1).foresee(states)
    for action in range(task.n_actions):
        found = step(states, action)
        np.testing.assert_allclose(seen.next_states[:, action], found.next_states, rtol=0.0, atol=1e-8)
        certain = np.zeros(12) if found.uncertainty is None else found.uncertainty
        np.testing.assert_allclose(seen.uncertainty[:, action], certain, atol=1e-8)
        ahead = np.where(task.terminal(found.next_states), 0.0, q_function.value(found.next_states))
        earned = task.rewards(states, task.controls[[action]], found.next_states) + task.discount * ahead
        expected = (1.0 - certain) * earned + certain * task.optimistic_value
        np.testing.assert_allclose(seen.q_values[:, action], expected, rtol=1e-6, atol=1e-6)


# --- from random transitions to a policy ---------------------------------------------------------


def steps_to_goal(system: System, model: Model) -> int:
    grid = Grid.uniform(system.task.box, [50, 50])
    flow = Flow.of(grid, model.predict_on(grid))
    plan = solve(tabulate(grid, system.task, flow), threads=1)
    rollouts = roll_out(system.task, system.dynamics, QFunction(grid, plan.q_values), system.starts)
    assert rollouts.terminated.all()
    return int(rollouts.steps[0])


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_a_mountain_car_model_of_200_transitions_drives_to_the_goal(joint: bool) -> None:
    system = SYSTEMS["mountain-car"]
    box, controls = system.task.box, system.task.controls
    steps = []
    for seed in range(3):
        data = excursion(system, 200, held=5, seed=seed)
        # it was not shown the way
        assert not system.task.terminal(data.next_states).any()
        model = fit_dynamics(data, box, controls, of_kind(joint), knownness="none", fit_seed=seed)
        steps.append(steps_to_goal(system, model))
    assert np.median(steps) <= 130
