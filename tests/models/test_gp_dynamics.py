"""Learned dynamics: what is learned from, what comes out, on the grid and off it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.gp.covariance import Metric
from optimist.grid import Grid
from optimist.models import KNOWNNESS, GPDynamics, GPSettings, fit_dynamics
from optimist.models.edges import usable
from optimist.models.regressor import Regressor
from optimist.systems import SYSTEMS
from optimist.systems.system import System
from optimist.transitions import Transition, Transitions
from tests.models.learning import (
    JOINT,
    PER_ACTION,
    error_of_no_change,
    inside,
    learned,
    normalised_error,
    of_kind,
    scattered,
    unsure,
)

both_kinds = pytest.mark.parametrize("settings", [PER_ACTION, JOINT], ids=["per-action", "joint"])
two_systems = pytest.mark.parametrize("problem", ["mountain-car", "pendulum"])

# A wheel in degrees that turns on by 35 to 45 with control 1 and back with -1, and a coordinate beside it.
WHEEL = Box([0.0, -1.0], [360.0, 1.0], periodic=[True, False])
WHEEL_CONTROLS = np.array([[-1.0], [1.0]])


def turned(states: FloatArray, controls: FloatArray) -> FloatArray:
    angle = np.radians(states[:, 0])
    on = (40.0 + 5.0 * np.sin(angle)) * controls[:, 0]
    beside = 0.8 * states[:, 1] + 0.1 * np.cos(angle)
    return np.column_stack([(states[:, 0] + on) % 360.0, beside])


def wheel_data(count: int = 80, *, seed: int = 0) -> Transitions:
    stream = np.random.default_rng(seed)
    states = stream.uniform(WHEEL.low, WHEEL.high, size=(count, 2))
    actions = stream.integers(2, size=count)
    return Transitions.stepped(states, actions, turned(states, WHEEL_CONTROLS[actions]))


def taken(transitions: Transitions, rows: BoolArray | slice) -> Transitions:
    return Transitions.stepped(
        transitions.states[rows], transitions.actions[rows], transitions.next_states[rows]
    )


def joined(one: Transitions, other: Transitions) -> Transitions:
    return Transitions.stepped(
        np.vstack([one.states, other.states]),
        np.append(one.actions, other.actions),
        np.vstack([one.next_states, other.next_states]),
    )


def on_wheel(
    transitions: Transitions,
    settings: GPSettings,
    previous: GPDynamics | None = None,
    *,
    knownness: str = "gp-variance",
    seed: int = 0,
) -> GPDynamics:
    return fit_dynamics(
        transitions,
        WHEEL,
        WHEEL_CONTROLS,
        settings,
        knownness=knownness,
        previous=previous,
        fit_seed=seed,
    )


@cache
def model_of(problem: str, count: int, *, joint: bool, seed: int) -> GPDynamics:
    system = SYSTEMS[problem]
    return learned(system, scattered(system, count, seed=seed), of_kind(joint))


@cache
def held_out(system: System) -> Transitions:
    return inside(system.task.box, scattered(system, 2000, seed=77))


def fitted(regressors: tuple[Regressor, ...] | None) -> tuple[Regressor, ...]:
    assert regressors is not None
    return regressors


# --- periodic axes ------------------------------------------------------------------------------


@both_kinds
def test_a_wheel_is_learned_on_both_sides_of_the_seam(settings: GPSettings) -> None:
    model = on_wheel(wheel_data(), settings)
    angles = np.concatenate([np.linspace(315.0, 359.9, 30), np.linspace(0.0, 45.0, 30)])
    states = np.column_stack([angles, np.tile(np.linspace(-0.9, 0.9, 15), 4)])
    for control in WHEEL_CONTROLS:
        predicted = model.predict(states, control[np.newaxis])
        truth = turned(states, control[np.newaxis])
        apart = np.radians(predicted[:, 0] - truth[:, 0])
        # the angle between two directions, whatever the numbers that stand for them
        assert np.abs(np.arctan2(np.sin(apart), np.cos(apart))).max() < np.radians(0.5)
        assert np.abs(predicted[:, 1] - truth[:, 1]).max() < 0.01
        assert ((predicted[:, 0] >= 0.0) & (predicted[:, 0] < 360.0)).all()


@both_kinds
def test_predictions_do_not_jump_at_the_seam(settings: GPSettings) -> None:
    model = on_wheel(wheel_data(), settings)
    for control in WHEEL_CONTROLS:
        at_zero, at_full_turn = model.predict(np.array([[0.0, 0.2], [360.0, 0.2]]), control[np.newaxis])
        np.testing.assert_allclose(at_zero, at_full_turn, atol=1e-6)


@both_kinds
def test_whole_turns_in_the_data_make_no_difference(settings: GPSettings) -> None:
    data = wheel_data(30)
    turns = np.random.default_rng(1).integers(-2, 3, size=(30, 2)) * [360.0, 0.0]
    wound = Transitions.stepped(data.states, data.actions, data.next_states + turns)
    states = wheel_data(50, seed=2).states
    for control in WHEEL_CONTROLS:
        expected = on_wheel(data, settings).predict(states, control[np.newaxis])
        found = on_wheel(wound, settings).predict(states, control[np.newaxis])
        np.testing.assert_allclose(WHEEL.displacement(expected, found), 0.0, atol=1e-3)


# --- what is learned from -----------------------------------------------------------------------

ROOM = Box([-1.2, 0.0, -0.07], [0.5, 360.0, 0.07], periodic=[False, True, False])


@pytest.mark.parametrize(
    ("next_state", "kept"),
    [
        ([0.0, 180.0, 0.0], True),
        ([-1.2, 180.0, 0.0], False),
        ([0.5, 180.0, 0.0], False),
        ([0.0, 180.0, -0.07], False),
        ([0.0, 180.0, 0.07], False),
        ([0.5, 180.0, 0.07], False),
        ([0.0, 0.0, 0.0], True),
        ([0.0, 360.0, 0.0], True),
        ([-1.2, 0.0, 0.0], False),
        ([-1.3, 180.0, 0.0], True),
        ([0.6, 180.0, 0.0], True),
        ([0.0, 180.0, 0.08], True),
        ([0.6, 180.0, 0.07], False),
        ([np.nextafter(0.5, 0.0), 180.0, 0.0], False),
        ([0.5 - 1e-6, 180.0, 0.0], True),
        ([0.5 + 1e-6, 180.0, 0.0], True),
    ],
)
def test_only_successors_on_an_edge_that_is_not_periodic_are_left_out(
    next_state: list[float], kept: bool
) -> None:
    inner = [0.1, 90.0, 0.01]
    transitions = Transitions.stepped(
        np.tile(inner, (3, 1)), np.zeros(3, dtype=np.int64), np.array([inner, next_state, inner])
    )
    assert usable(ROOM, transitions).tolist() == [[True] * 3, [kept] * 3, [True] * 3]


def test_states_on_an_edge_are_learned_from_when_their_successors_are_not() -> None:
    transitions = Transitions.stepped(
        np.array([[-1.2, 0.0, 0.07]]), np.array([0]), np.array([[-1.1, 0.0, 0.06]])
    )
    assert usable(ROOM, transitions).tolist() == [[True] * 3]


def test_staying_on_an_edge_leaves_out_that_coordinate_only() -> None:
    transitions = Transitions.stepped(
        np.array([[0.0, 90.0, 0.07], [0.0, 90.0, 0.07]]),
        np.array([0, 0]),
        np.array([[0.07, 90.0, 0.07], [0.5, 90.0, 0.07]]),
    )
    # the second stays on one edge and arrives on another
    assert usable(ROOM, transitions).tolist() == [[True, True, False], [False, False, False]]


@both_kinds
def test_what_ends_on_an_edge_changes_nothing_in_any_coordinate(settings: GPSettings) -> None:
    system = SYSTEMS["mountain-car"]
    data = inside(system.task.box, scattered(system, 80, seed=0))
    stream = np.random.default_rng(1)
    # at the wall the velocity is lost: nonsense to a smooth model
    at_wall = Transitions.stepped(
        np.column_stack([stream.uniform(-1.2, -1.15, 20), stream.uniform(-0.07, -0.05, 20)]),
        stream.integers(3, size=20),
        np.tile([-1.2, 0.0], (20, 1)),
    )
    without, with_wall = (learned(system, some, settings) for some in (data, joined(at_wall, data)))
    assert len(with_wall.seen) == len(data) + 20
    grid = Grid.uniform(system.task.box, [7, 7])
    one, other = without.predict_on(grid), with_wall.predict_on(grid)
    np.testing.assert_array_equal(one.next_states, other.next_states)
    np.testing.assert_array_equal(unsure(one), unsure(other))


@both_kinds
def test_being_cut_off_changes_nothing(settings: GPSettings) -> None:
    data = wheel_data(30)
    cut = replace(data, truncated=np.ones(30, dtype=np.bool_))
    grid = Grid.uniform(WHEEL, [5, 4])
    one, other = (on_wheel(some, settings).predict_on(grid) for some in (data, cut))
    np.testing.assert_array_equal(one.next_states, other.next_states)


@both_kinds
def test_the_step_that_ends_an_episode_is_left_out(settings: GPSettings) -> None:
    """The end may have cut it short: here it goes nowhere at all, and must not spoil what is known."""
    data = wheel_data(40)
    ends = np.arange(40) % 10 == 9
    stuck = np.where(ends[:, np.newaxis], data.states, data.next_states)
    spoilt = replace(data, next_states=stuck, terminated=ends)
    grid = Grid.uniform(WHEEL, [5, 4])
    one, other = (on_wheel(some, settings).predict_on(grid) for some in (taken(data, ~ends), spoilt))
    np.testing.assert_array_equal(one.next_states, other.next_states)


# --- actions without data -----------------------------------------------------------------------


def test_an_action_never_tried_leads_nowhere_and_is_unknown() -> None:
    data = wheel_data()
    model = on_wheel(taken(data, data.actions == 1), PER_ACTION)
    grid = Grid.uniform(WHEEL, [6, 5])
    prediction = model.predict_on(grid)
    np.testing.assert_array_equal(prediction.next_states[0], grid.nodes)
    np.testing.assert_array_equal(unsure(prediction)[0], 1.0)
    assert unsure(prediction)[1].max() < 0.5
    states = wheel_data(20, seed=3).states
    next_states, uncertainty = model.predict_with_uncertainty(states, WHEEL_CONTROLS[:1])
    np.testing.assert_allclose(next_states, states, rtol=1e-14)
    np.testing.assert_array_equal(uncertainty, 1.0)


@both_kinds
@pytest.mark.parametrize("knownness", KNOWNNESS)
def test_a_model_without_data_knows_nothing_unless_told_to_believe_itself(
    settings: GPSettings, knownness: str
) -> None:
    model = on_wheel(taken(wheel_data(), slice(0, 0)), settings, knownness=knownness)
    grid = Grid.uniform(WHEEL, [4, 3])
    prediction = model.predict_on(grid)
    np.testing.assert_array_equal(prediction.next_states, [grid.nodes, grid.nodes])
    np.testing.assert_array_equal(unsure(prediction), 0.0 if knownness == "none" else 1.0)


def test_an_action_of_which_all_was_left_out_is_unknown() -> None:
    data = wheel_data()
    on_edge = Transitions.stepped(data.states[:5], np.zeros(5, dtype=np.int64), np.tile([10.0, 1.0], (5, 1)))
    model = on_wheel(joined(taken(data, data.actions == 1), on_edge), PER_ACTION)
    prediction = model.predict_on(Grid.uniform(WHEEL, [4, 3]))
    np.testing.assert_array_equal(unsure(prediction)[0], 1.0)


@both_kinds
def test_with_knownness_none_nothing_is_uncertain(settings: GPSettings) -> None:
    data = wheel_data(10)
    model = on_wheel(taken(data, data.actions == 1), settings, knownness="none")
    assert not unsure(model.predict_on(Grid.uniform(WHEEL, [5, 5]))).any()


def test_a_joint_model_carries_over_to_controls_never_tried() -> None:
    system = SYSTEMS["mountain-car"]
    data = inside(system.task.box, scattered(system, 120, seed=0))
    data = taken(data, data.actions != 1)
    test = held_out(system)
    test = taken(test, test.actions == 1)
    joint = normalised_error(learned(system, data, JOINT), test)
    assert (joint < 0.1).all()
    assert (joint < error_of_no_change(system.task.box, test)).all()


def test_actions_with_the_same_control_are_moved_once() -> None:
    data = wheel_data()
    controls = np.array([[1.0], [1.0]])
    data = Transitions.stepped(data.states, data.actions, turned(data.states, controls[data.actions]))
    model = fit_dynamics(data, WHEEL, controls, PER_ACTION, knownness="gp-variance", fit_seed=0)
    states = wheel_data(50, seed=4).states
    errors = WHEEL.displacement(turned(states, controls[:1]), model.predict(states, controls[:1]))
    assert np.abs(errors[:, 0]).max() < 5.0  # of steps of 40


# --- the grid and its nodes ---------------------------------------------------------------------


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("problem", ["mountain-car", "pendulum", "bicycle"])
def test_the_grid_is_predicted_as_its_nodes_are(problem: str, metric: Metric, joint: bool) -> None:
    system = SYSTEMS[problem]
    box = system.task.box
    settings = of_kind(joint).model_copy(update={"metric": metric})
    model = learned(system, scattered(system, 60, seed=0), settings)
    grid = Grid.spaced(box, [9, 8, 4, 3][: box.n_dims], [1.0, 1.5, 1.0, 2.0][: box.n_dims])
    prediction = model.predict_on(grid)
    for action, control in enumerate(system.task.controls):
        at_nodes = model.predict_with_uncertainty(grid.nodes, control[np.newaxis])
        apart = box.displacement(at_nodes.next_states, prediction.next_states[action])
        np.testing.assert_allclose(apart, 0.0, atol=1e-8)
        np.testing.assert_allclose(unsure(prediction)[action], unsure(at_nodes), atol=1e-5)
        assert np.isfinite(unsure(prediction)).all()
        assert unsure(prediction).min() >= 0.0
        assert unsure(prediction).max() <= 1.0


@both_kinds
def test_uncertainty_is_the_largest_variance_of_the_coordinates(settings: GPSettings) -> None:
    model = on_wheel(wheel_data(12), settings)
    states = wheel_data(40, seed=5).states
    for action, control in enumerate(WHEEL_CONTROLS):
        regressors = fitted(model.regressors[0 if settings.joint else action])
        points = np.hstack([states, np.tile(control, (40, 1))]) if settings.joint else states
        each = np.array([regressor.predict(points)[1] for regressor in regressors])
        found = model.predict_with_uncertainty(states, control[np.newaxis])
        np.testing.assert_array_equal(unsure(found), np.maximum(each[0], each[1]))


@both_kinds
def test_more_data_make_a_model_surer(settings: GPSettings) -> None:
    data = wheel_data(80)
    grid = Grid.uniform(WHEEL, [8, 8])
    few, many = (on_wheel(taken(data, slice(0, n)), settings).predict_on(grid) for n in (6, 80))
    assert unsure(many).mean() < 0.2 * unsure(few).mean()


# --- accuracy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
@two_systems
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_150_transitions_suffice_for_successors_within_a_twentieth(
    problem: str, joint: bool, seed: int
) -> None:
    system = SYSTEMS[problem]
    errors = normalised_error(model_of(problem, 150, joint=joint, seed=seed), held_out(system))
    assert (errors < 0.05).all()
    assert (errors < error_of_no_change(system.task.box, held_out(system))).all()


@two_systems
def test_a_joint_model_beats_one_per_action_while_data_are_few(problem: str) -> None:
    test = held_out(SYSTEMS[problem])
    errors = {
        joint: np.median(
            [normalised_error(model_of(problem, 60, joint=joint, seed=seed), test) for seed in range(3)],
            axis=0,
        )
        for joint in (False, True)
    }
    assert errors[True].mean() < errors[False].mean()


@two_systems
def test_errors_are_small_where_the_model_is_sure(problem: str) -> None:
    system = SYSTEMS[problem]
    model, test = model_of(problem, 60, joint=False, seed=0), held_out(system)
    controls = system.task.controls[test.actions]
    found = model.predict_with_uncertainty(test.states, controls)
    predicted, uncertainty = found.next_states, unsure(found)
    errors = np.abs(system.task.box.displacement(test.next_states, predicted)).max(axis=1)
    sure = uncertainty < np.quantile(uncertainty, 0.25)
    doubtful = uncertainty > np.quantile(uncertainty, 0.75)
    assert errors[sure].mean() < errors[doubtful].mean()


def test_velocity_is_found_irrelevant_to_the_acceleration_of_the_mountain_car() -> None:
    model = model_of("mountain-car", 150, joint=False, seed=0)
    ratios = []
    for regressors in model.regressors:
        precisions = fitted(regressors)[1].posterior.hyperparameters.precisions
        assert precisions is not None
        ratios.append(precisions[1] / precisions[0])
    assert np.median(ratios) < 0.01


# --- growing data -------------------------------------------------------------------------------


@both_kinds
def test_a_model_keeps_what_it_found_until_the_data_grew(settings: GPSettings) -> None:
    data = wheel_data(80)
    first = on_wheel(taken(data, slice(0, 40)), settings)
    second = on_wheel(taken(data, slice(0, 42)), settings, first)
    third = on_wheel(data, settings, second)
    counts = [40, 42, 80]
    for before, after, refits in ((first, second, False), (second, third, True)):
        for olds, news in zip(before.regressors, after.regressors, strict=True):
            for old, new in zip(fitted(olds), fitted(news), strict=True):
                assert np.array_equal(old.parameters, new.parameters) is not refits
                assert new.n_fitted == (new.n_data if refits else old.n_fitted)
    for model, count in zip((first, second, third), counts, strict=True):
        assert len(model.seen) == count
        assert sum(fitted(group)[0].n_data for group in model.regressors) == count


def test_an_action_seen_for_the_first_time_is_fitted_beside_the_others() -> None:
    data = wheel_data(40)
    ones = taken(data, data.actions == 1)
    first = on_wheel(ones, PER_ACTION)
    assert first.regressors[0] is None
    second = on_wheel(joined(ones, taken(data, data.actions == 0)), PER_ACTION, first)
    n_zeros = int((data.actions == 0).sum())
    assert fitted(second.regressors[0])[0].n_fitted == n_zeros
    assert np.array_equal(
        fitted(second.regressors[1])[0].parameters, fitted(first.regressors[1])[0].parameters
    )


@both_kinds
def test_the_same_seed_gives_the_same_model(settings: GPSettings) -> None:
    settings = settings.model_copy(update={"subset": 10})
    data = wheel_data(60)
    grid = Grid.uniform(WHEEL, [6, 6])
    made = [on_wheel(data, settings, seed=seed).predict_on(grid) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(made[0].next_states, made[1].next_states)
    np.testing.assert_array_equal(unsure(made[0]), unsure(made[1]))
    assert not np.array_equal(made[0].next_states, made[2].next_states)


# --- bad input ----------------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("n_dims", [1, 3])
def test_states_of_another_dimension_are_refused(settings: GPSettings, n_dims: int) -> None:
    states = np.zeros((4, n_dims))
    transitions = Transitions.stepped(states, np.zeros(4, dtype=np.int64), states)
    with pytest.raises(ValueError, match=rf"States must have 2 coordinates; got {n_dims}\."):
        on_wheel(transitions, settings)


@both_kinds
def test_an_action_number_without_control_is_refused_with_its_row(settings: GPSettings) -> None:
    data = wheel_data(8)
    actions = np.array([0, 1, 0, 1, 1, 2, 0, 1])
    with pytest.raises(ValueError, match=r"`actions` must be below 2.*; got 2 in row 5\."):
        on_wheel(Transitions.stepped(data.states, actions, data.next_states), settings)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_never_reach_a_model(bad: float) -> None:
    data = wheel_data(8)
    next_states = data.next_states.copy()
    next_states[6, 1] = bad
    with pytest.raises(ValueError, match=r"`next_states` must be finite; got .* in row 6\."):
        on_wheel(Transitions.stepped(data.states, data.actions, next_states), PER_ACTION)


def test_an_unknown_knownness_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`knownness` must be one of gp-variance, .*; got 'certain'"):
        on_wheel(wheel_data(8), PER_ACTION, knownness="certain")


# --- a world with a stop --------------------------------------------------------------------------------

# A slide that is pushed to and fro between two stops, and a needle beside it that turns as fast as the slide
# stands away from the middle, at the stops too. Arriving at a stop jolts the needle.
SLIDE = Box([-1.0, -4.0], [1.0, 4.0])
SLIDE_CONTROLS = np.array([[-1.0], [1.0]])
JOLT = 1.5


def slid(states: FloatArray, controls: FloatArray) -> FloatArray:
    place, needle = states.T
    pushed = place + 0.3 * controls[:, 0]
    stopped = np.clip(pushed, -1.0, 1.0)
    arrived = (np.abs(stopped) == 1.0) & (np.abs(place) < 1.0)
    turned = needle + 0.2 * stopped + 0.05 * np.sin(needle) + JOLT * arrived
    return np.column_stack([stopped, turned])


def slide_data(count: int, *, at_stop: float, seed: int = 0) -> Transitions:
    """Half of the steps free and a share of them at a stop, where half of them push on."""
    stream = np.random.default_rng(seed)
    states = stream.uniform([-1.0, -3.0], [1.0, 2.0], size=(count, 2))
    stuck = stream.uniform(size=count) < at_stop
    states[stuck, 0] = np.sign(states[stuck, 0])
    actions = stream.integers(2, size=count)
    return Transitions.stepped(states, actions, slid(states, SLIDE_CONTROLS[actions]))


def on_slide(transitions: Transitions, settings: GPSettings) -> GPDynamics:
    return fit_dynamics(transitions, SLIDE, SLIDE_CONTROLS, settings, knownness="gp-variance", fit_seed=0)


def pushing_on(count: int = 40, *, seed: int = 9) -> tuple[FloatArray, FloatArray]:
    """States at a stop, with the control that keeps them there."""
    stream = np.random.default_rng(seed)
    sides = np.where(np.arange(count) % 2 == 0, -1.0, 1.0)
    return np.column_stack([sides, stream.uniform(-2.5, 1.5, count)]), sides[:, np.newaxis]


@both_kinds
def test_what_is_free_is_learned_while_the_other_coordinate_is_at_its_stop(settings: GPSettings) -> None:
    data = slide_data(120, at_stop=0.4)
    states, controls = pushing_on()
    predicted = on_slide(data, settings).predict(states, controls)
    needle = slid(states, controls)[:, 1]
    moved = np.abs(needle - states[:, 1]).mean()
    assert np.abs(predicted[:, 1] - needle).max() < 0.1 * moved


@both_kinds
def test_only_steps_at_the_stop_can_teach_it(settings: GPSettings) -> None:
    """Or the test above would show less than it seems to: without them the model is less sure there."""
    data = slide_data(120, at_stop=0.4)
    before, after = np.abs(data.states[:, 0]) == 1.0, np.abs(data.next_states[:, 0]) == 1.0
    assert (before & after).sum() > 10
    with_them, without = (
        fitted(on_slide(chosen, settings).regressors[0])[1]
        for chosen in (data, taken(data, ~(before & after)))
    )
    assert with_them.n_data > without.n_data


@both_kinds
def test_arriving_at_a_stop_teaches_nothing_of_any_coordinate(settings: GPSettings) -> None:
    data = slide_data(120, at_stop=0.3)
    before, after = np.abs(data.states[:, 0]) == 1.0, np.abs(data.next_states[:, 0]) == 1.0
    arriving = after & ~before
    assert arriving.sum() > 5
    one, other = on_slide(data, settings), on_slide(taken(data, ~arriving), settings)
    grid = Grid.uniform(SLIDE, [7, 9])
    found, expected = one.predict_on(grid), other.predict_on(grid)
    np.testing.assert_array_equal(found.next_states, expected.next_states)
    np.testing.assert_array_equal(unsure(found), unsure(expected))


def test_each_coordinate_is_learned_from_the_rows_no_edge_had_a_hand_in() -> None:
    data = slide_data(200, at_stop=0.4)
    before, after = np.abs(data.states[:, 0]) == 1.0, np.abs(data.next_states[:, 0]) == 1.0
    expected = np.column_stack([~after, ~after | before])
    np.testing.assert_array_equal(usable(SLIDE, data), expected)
    place, needle = fitted(on_slide(data, JOINT).regressors[0])
    assert (place.n_data, needle.n_data) == (expected[:, 0].sum(), expected[:, 1].sum())


def test_from_one_stop_to_the_other_is_arriving() -> None:
    """It was moved to that edge as much as from anywhere else, jolt and all."""
    states, next_states = np.array([[-1.0, 0.0]]), np.array([[1.0, 0.5]])
    crossing = Transitions.stepped(states, np.array([1]), next_states)
    np.testing.assert_array_equal(usable(SLIDE, crossing), [[False, False]])


def test_arriving_at_one_stop_while_at_another_leaves_out_both() -> None:
    box = Box([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])
    step = Transitions.stepped(np.array([[1.0, 0.5, 0.0]]), np.array([0]), np.array([[1.0, 1.0, 0.1]]))
    np.testing.assert_array_equal(usable(box, step), [[False, False, False]])
    stay = Transitions.stepped(np.array([[1.0, 1.0, 0.0]]), np.array([0]), np.array([[1.0, 1.0, 0.1]]))
    np.testing.assert_array_equal(usable(box, stay), [[False, False, True]])


# --- surprises ------------------------------------------------------------------------------------------


def stepped(
    state: list[float], action: int, next_state: list[float], *, terminated: bool = False
) -> Transition:
    return Transition(np.array(state), action, 0.0, np.array(next_state), terminated, False)


@both_kinds
def test_a_step_far_from_its_prediction_surprises_in_any_coordinate(settings: GPSettings) -> None:
    model, state = on_wheel(wheel_data(), settings), [100.0, 0.2]
    predicted = model.predict(np.array([state]), WHEEL_CONTROLS[1:])[0]
    displacements = WHEEL.displacement(wheel_data().states, wheel_data().next_states)
    rows = wheel_data().actions == 1 if not settings.joint else slice(None)
    spread = displacements[rows].std(axis=0)
    for axis in range(2):
        for share, surprises in ((0.9, False), (1.1, True)):
            off = predicted + share * 0.5 * spread * (np.arange(2) == axis)
            found = model.surprised_by(stepped(state, 1, off.tolist()), predicted, share=0.5)
            assert found is surprises


@both_kinds
def test_a_prediction_on_the_other_side_of_the_seam_is_near(settings: GPSettings) -> None:
    model = on_wheel(wheel_data(), settings)
    predicted = np.array([359.9, 0.2])
    near, far = (stepped([319.0, 0.2], 1, [angle, 0.2]) for angle in (0.1, 180.0))
    assert not model.surprised_by(near, predicted, share=0.5)
    assert model.surprised_by(far, predicted, share=0.5)


@both_kinds
def test_what_is_not_learned_from_surprises_nobody(settings: GPSettings) -> None:
    """Edges that had a hand in it, and the step that ended an episode."""
    model, far = on_wheel(wheel_data(), settings), np.array([10.0, -0.9])
    state = [200.0, 0.9]
    assert model.surprised_by(stepped(state, 1, [240.0, 0.7]), far, share=0.5)
    assert not model.surprised_by(stepped(state, 1, [240.0, 1.0]), far, share=0.5)
    assert not model.surprised_by(stepped(state, 1, [240.0, 0.7], terminated=True), far, share=0.5)
    # at the edge all along: the other coordinate is as free as ever
    resting = stepped([200.0, 1.0], 1, [240.0, 1.0])
    assert not model.surprised_by(resting, np.array([240.0, -0.9]), share=0.5)
    assert model.surprised_by(resting, np.array([10.0, 1.0]), share=0.5)


def test_of_an_action_never_tried_nothing_surprises() -> None:
    data = wheel_data()
    model = on_wheel(taken(data, data.actions == 1), PER_ACTION)
    predicted = np.array([10.0, -0.9])
    assert not model.surprised_by(stepped([200.0, 0.9], 0, [240.0, 0.7]), predicted, share=0.5)
    assert model.surprised_by(stepped([200.0, 0.9], 1, [240.0, 0.7]), predicted, share=0.5)


@both_kinds
def test_the_record_of_a_model_tells_of_every_process(settings: GPSettings) -> None:
    data = wheel_data()
    model = on_wheel(taken(data, data.actions == 1), settings)
    record = model.record()
    of_one = fitted(model.regressors[-1])
    groups = [of_one] if settings.joint else [(), of_one]  # of action 0 there is nothing
    assert record == {
        "basis_sizes": [[len(one.posterior.basis) for one in group] for group in groups],
        "hyperparameters": [[one.parameters.tolist() for one in group] for group in groups],
    }
