"""Mirrors: against the process whose covariance has the symmetry, and against systems that have none."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.exploring import random_transitions

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.gp.basis import choose_basis
from optimist.gp.covariance import Hyperparameters, covariance
from optimist.gp.posterior import projected_posterior
from optimist.models import GPDynamics, GPSettings, fit_dynamics
from optimist.models.fitting import GPLearner
from optimist.models.mirrors import Mirror, mirrors
from optimist.models.regressor import Data
from optimist.systems import SYSTEMS
from optimist.transitions import Transitions

BOX = Box([-2.0, -3.0], [2.0, 3.0])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])


def swing(states: FloatArray, controls: FloatArray, *, tilt: float = 0.0) -> FloatArray:
    """A spring that stiffens; tilted, it has another side than its other."""
    position, velocity = states.T
    velocity = velocity + 0.1 * (controls[:, 0] - position - 0.5 * position**3 + tilt)
    return np.column_stack([position + 0.1 * velocity, velocity])


def seen(count: int, *, tilt: float = 0.0, seed: int = 0) -> Transitions:
    random = np.random.default_rng(seed)
    states = random.uniform(BOX.low, BOX.high, (count, 2)) * 0.6
    actions = random.integers(3, size=count)
    return Transitions.stepped(states, actions, swing(states, CONTROLS[actions], tilt=tilt))


def learned(transitions: Transitions, settings: GPSettings | None = None) -> GPDynamics:
    """Twice: a mirror is looked for by what was known before."""
    settings = settings or GPSettings()
    half = transitions.only(np.arange(len(transitions)) < len(transitions) // 2)
    before = fit_dynamics(half, BOX, CONTROLS, settings, fit_seed=0)
    return fit_dynamics(transitions, BOX, CONTROLS, settings, previous=before, fit_seed=0)


def test_what_swings_alike_on_both_sides_is_seen_to() -> None:
    mirror = learned(seen(30)).mirror
    assert mirror is not None
    assert mirror.signs.tolist() == [-1.0, -1.0, -1.0]


@pytest.mark.parametrize("tilt", [0.5, 0.05])
def test_what_is_tilted_has_no_mirror(tilt: float) -> None:
    assert learned(seen(30, tilt=tilt)).mirror is None


def test_it_is_looked_for_only_if_settings_say_so() -> None:
    assert learned(seen(30), GPSettings(mirror=False)).mirror is None
    assert learned(seen(60), GPSettings(kind="per-action")).mirror is None


def test_predictions_are_the_same_in_the_mirror() -> None:
    made = learned(seen(30), GPSettings(basis_tolerance=0.0))  # or the choice of a basis has a side
    assert made.mirror is not None
    points = np.random.default_rng(1).uniform(-1.0, 1.0, (50, 3)) * [2.0, 3.0, 1.0]
    image = made.mirror.image(points)
    found, uncertainty = made.predict_with_uncertainty(points[:, :2], points[:, 2:])
    there, as_uncertain = made.predict_with_uncertainty(image[:, :2], image[:, 2:])
    np.testing.assert_allclose(there, -found, atol=1e-6)
    assert uncertainty is not None
    assert as_uncertain is not None
    np.testing.assert_allclose(as_uncertain, uncertainty, atol=1e-6)


def test_one_side_teaches_the_other() -> None:
    """All but a few transitions on one side: the other is predicted as well as that."""
    all_of = seen(400)
    right = all_of.states[:, 0] > 0.0
    few = all_of.only((right & (np.arange(400) < 100)) | (np.arange(400) < 24))
    test = all_of.only(~right & (np.arange(400) >= 100))
    errors = []
    for settings in (GPSettings(), GPSettings(mirror=False)):
        predicted = learned(few, settings).predict(test.states, CONTROLS[test.actions])
        errors.append(float(np.abs(predicted - test.next_states).max()))
    assert errors[0] < 0.2 * errors[1]


def test_one_transition_that_differs_is_enough_against_it() -> None:
    made, all_of = learned(seen(30)), seen(31)
    assert made.mirror is not None
    next_states = all_of.next_states.copy()
    next_states[-1] += 0.05
    differs = Transitions.stepped(all_of.states, all_of.actions, next_states)
    assert fit_dynamics(differs, BOX, CONTROLS, previous=made, fit_seed=0).mirror is None
    assert fit_dynamics(all_of, BOX, CONTROLS, previous=made, fit_seed=0).mirror is not None


@pytest.mark.parametrize(
    ("name", "signs"),
    [
        ("mountain-car", None),  # its valley lies beside 0
        ("pendulum", [-1, -1, -1]),
        ("acrobot", [-1] * 5),
        ("cart-pole", [-1] * 5),
    ],
)
def test_of_our_systems(name: str, signs: list[int] | None) -> None:
    system = SYSTEMS[name]
    rows = random_transitions(system, 76, seed=0).rows()
    model = None
    for count in (26, 50, 76):
        task = system.task
        model = fit_dynamics(
            Transitions.of(rows[:count]), task.box, task.controls, previous=model, fit_seed=0
        )
    assert model is not None
    assert (None if model.mirror is None else model.mirror.signs.tolist()) == signs


def test_images_of_data_make_the_process_that_has_the_symmetry() -> None:
    """Closed form: with images the mean is that of half the symmetric covariance, noise not halved."""
    random = np.random.default_rng(3)
    at, new = random.normal(size=(12, 2)), random.normal(size=(20, 2))
    targets, sign, noise = random.normal(size=12), -1.0, 0.3
    hyper = Hyperparameters(1.3, 0.2, noise, np.diag([0.9, 1.7]), np.array([0.81, 2.89]), 0.4)
    turn = np.array([-1.0, 1.0])
    both = Data(at, targets).mirrored(at * turn, sign)
    assert len(both) == 12
    basis = choose_basis(both.points, hyper, tolerance=0.0)
    made = projected_posterior(both.points, both.targets, hyper, basis, copies=both.copies)

    def half(left: FloatArray, right: FloatArray) -> FloatArray:
        same, across = covariance(left, right, hyper), covariance(left, right * turn, hyper)
        return 0.5 * (same + sign * across)

    weights = np.linalg.solve(half(at, at) + noise * np.eye(12), targets)
    np.testing.assert_allclose(made.mean(new), half(new, at) @ weights, atol=1e-8)


def test_a_subset_keeps_images_beside_what_they_are_images_of() -> None:
    at = np.arange(10.0)[:, np.newaxis]
    both = Data(at, at[:, 0]).mirrored(-at, -1.0)
    some = both.some(6, np.random.default_rng(0))
    assert len(some) == 3
    np.testing.assert_array_equal(some.points[3:], -some.points[:3])
    np.testing.assert_array_equal(some.targets[3:], -some.targets[:3])


def test_where_zero_is_not_inside_coordinates_turn_round_the_middle() -> None:
    box = Box([0.0, -1.0], [4.0, 3.0])
    mirror = Mirror.of([-1, -1, -1], box, np.array([[0.0], [1.0]]))
    assert mirror.image(np.array([[1.0, 1.0, 0.0]])).tolist() == [[3.0, -1.0, 1.0]]
    assert len(mirrors(box, np.array([[0.0], [1.0]]))) == 6  # a control alone turns nothing round
    assert len(mirrors(box, np.array([[1.0], [1.0]]))) == 3  # nor does one that is always the same
    assert len(mirrors(box, np.random.default_rng(0).normal(size=(4, 9)))) == 6  # many turn together
    wide = np.column_stack([np.arange(3.0), np.ones((3, 8))])
    assert [len(mirror.signs) for mirror in mirrors(box, wide)] == [11] * 6


def one_sided(states: FloatArray, controls: FloatArray) -> FloatArray:
    """A force that is smooth on the right of 0, and another on the left."""
    position, velocity = states.T
    force = np.where(position > 0.0, np.sin(3.0 * position), -6.0 * position)
    velocity = velocity + 0.1 * (controls[:, 0] + force - 0.3 * velocity)
    return np.column_stack([position + 0.1 * velocity, velocity])


@pytest.mark.parametrize("count", [26, 40, 60, 90])
def test_one_side_says_nothing_of_the_other(count: int) -> None:
    """No offset is seen there, which the symmetric process explains better: still nobody was on the left."""
    random = np.random.default_rng(0)
    states = np.column_stack([random.uniform(0.4, 1.9, count), random.uniform(-2.0, 2.0, count)])
    actions = random.integers(3, size=count)
    right = Transitions.stepped(states, actions, one_sided(states, CONTROLS[actions]))
    made = learned(right)
    assert made.mirror is None
    left = states * [-1.0, 1.0]
    _, here = made.predict_with_uncertainty(states, CONTROLS[actions])
    _, there = made.predict_with_uncertainty(left, CONTROLS[actions])
    assert here is not None
    assert there is not None
    assert there.mean() > 100.0 * here.mean()


def test_what_knows_nothing_is_not_asked() -> None:
    """Processes of a narrow cluster cannot say anything of places far away, for a mirror or against it."""
    states = np.random.default_rng(0).uniform(-0.01, 0.01, (10, 2))
    narrow = Transitions.stepped(states, np.zeros(10, dtype=np.int64), swing(states, CONTROLS[[0] * 10]))
    before = fit_dynamics(narrow, BOX, CONTROLS, fit_seed=0)
    assert fit_dynamics(seen(30), BOX, CONTROLS, previous=before, fit_seed=0).mirror is None
    assert fit_dynamics(seen(30), BOX, CONTROLS, fit_seed=0).mirror is not None  # who understands it is


def test_a_few_transitions_say_nothing() -> None:
    """Of a plane that goes through 0 all is symmetric."""
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (11, 2))
    plane = Transitions.stepped(states, np.arange(11) % 3, 0.9 * states)
    assert learned(plane).mirror is None


def test_without_a_predecessor_it_is_found_at_once() -> None:
    assert fit_dynamics(seen(30), BOX, CONTROLS, fit_seed=0).mirror is not None
    assert fit_dynamics(seen(30, tilt=0.05), BOX, CONTROLS, fit_seed=0).mirror is None


def test_it_comes_back_from_what_was_packed() -> None:
    transitions = seen(30)
    made = learned(transitions)
    learner = GPLearner(BOX, CONTROLS, GPSettings(), "cell-variance", 0)
    back = learner.unpack(made.pack(), transitions)
    assert back.mirror is not None
    assert made.mirror is not None
    np.testing.assert_array_equal(back.mirror.signs, made.mirror.signs)
    np.testing.assert_array_equal(back.mirror.centres, made.mirror.centres)
    more = seen(31)
    assert learner.fit(more, back).pack()[1] == learner.fit(more, made).pack()[1]


@pytest.mark.parametrize("signs", [[1, -1], [-1, -1, -1, -1], [0, -1, -1], "turned"])
def test_a_mirror_that_is_none_is_refused(signs: object) -> None:
    transitions = seen(30)
    arrays, document = learned(transitions).pack()
    learner = GPLearner(BOX, CONTROLS, GPSettings(), "cell-variance", 0)
    with pytest.raises(ValueError, match="mirror"):
        learner.unpack((arrays, document | {"mirror": signs}), transitions)
