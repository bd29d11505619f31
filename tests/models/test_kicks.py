"""Rare steps that no noise explains: they are not learned from, and everything else is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.models import GPDynamics, fit_dynamics
from optimist.models.kicks import without_kicks
from optimist.models.model import noise_of
from optimist.models.regressor import Regressor
from optimist.transitions import Transitions
from tests.models.test_noise import BOX, CONTROLS, USUAL, seen_of, swing

COUNT, SHARE = 150, 0.05


def kicked(seen: Transitions, rows: list[int], size: float = 2.0) -> Transitions:
    """Those steps led so many usual displacements too far, and all went on from there."""
    after = seen.next_states.copy()
    after[rows] += size * USUAL
    return replace(seen, next_states=after)


def fitted(seen: Transitions, previous: GPDynamics | None = None) -> GPDynamics:
    return fit_dynamics(seen, BOX, CONTROLS, fit_seed=0, previous=previous)


def ratios(model: GPDynamics) -> FloatArray:
    """Learned variances of noise by the true ones.  [d]"""
    noise = noise_of(model)
    assert noise is not None
    return np.asarray((noise / (SHARE * USUAL)) ** 2)


def n_learned(model: GPDynamics) -> set[int]:
    (group,) = model.regressors
    assert group is not None
    return {one.n_data for one in group}


@pytest.mark.parametrize("row", [3, 50, 77, 149])
def test_one_kick_is_not_taken_for_noise(row: int) -> None:
    """In either coordinate; it was 40 deviations, and would make the variance ten times as large."""
    seen = seen_of(COUNT, 1, SHARE)
    model = fitted(kicked(seen, [row]))
    assert n_learned(model) == {COUNT - 1}
    assert (np.abs(np.log(ratios(model))) < np.log(1.5)).all()
    near = seen.states[[row]] + [[0.05, -0.05], [0.0, 0.0], [-0.05, 0.0]]
    applied = CONTROLS[seen.actions[[row] * 3]]
    np.testing.assert_allclose(model.predict(near, applied), swing(near, applied), atol=0.02)


def test_a_kick_in_one_coordinate_spoils_the_step_in_all() -> None:
    seen = seen_of(COUNT, 1, SHARE)
    after = seen.next_states.copy()
    after[40, 1] -= 2.0 * USUAL[1]
    assert n_learned(fitted(replace(seen, next_states=after))) == {COUNT - 1}


def test_going_on_from_a_model_it_is_the_same() -> None:
    """Hyperparameters are those of before: the kick must not bend what is known."""
    seen = seen_of(COUNT + 10, 1, SHARE)
    before = fitted(seen.only(np.arange(len(seen)) < COUNT))
    after = fitted(kicked(seen, [COUNT + 4]), before)
    assert n_learned(after) == {COUNT + 9}
    np.testing.assert_allclose(ratios(after), ratios(before), rtol=0.05)


@pytest.mark.parametrize("share", [0.0, SHARE, 0.5])
def test_where_nothing_is_kicked_all_is_learned_from(share: float) -> None:
    for seed in range(4):
        assert n_learned(fitted(seen_of(120, seed, share))) == {120}


def test_what_happens_often_belongs_to_the_system() -> None:
    model = fitted(kicked(seen_of(COUNT, 1, SHARE), list(range(5, COUNT, 12))))
    assert n_learned(model) == {COUNT}
    assert (ratios(model) > 10.0).all()


def test_of_few_steps_nobody_can_say_that_one_is_rare() -> None:
    assert n_learned(fitted(kicked(seen_of(29, 1, SHARE), [7]))) == {29}


def test_a_place_that_is_new_is_no_kick() -> None:
    """One step, where it is as steep as nowhere else: processes follow it, and must go on doing so."""
    seen = seen_of(COUNT, 1, SHARE)
    states, after = seen.states.copy(), seen.next_states.copy()
    states[60] = [1.9, 1.9]
    after[60] = swing(states[[60]], CONTROLS[seen.actions[[60]]])[0] - [0.3, 0.4]
    model = fitted(replace(seen, states=states, next_states=after))
    assert n_learned(model) == {COUNT}
    np.testing.assert_allclose(
        model.predict(states[[60]], CONTROLS[seen.actions[[60]]]), after[[60]], atol=0.05
    )


RAIL = Box([-4.0, -4.0], [4.0, 4.0])
PUSHES = np.array([[-1.0], [1.0]])


def swung(count: int, seed: int, noise: float, kick: tuple[int, float]) -> Transitions:
    """A pendulum in steps as long as its box is wide; at one of them its rate is changed, and it goes on."""
    stream, state, rows = np.random.default_rng(seed), np.zeros(2), []
    for number in range(count):
        action = int(stream.integers(2))
        rate = -np.sin(state[0]) - 0.2 * state[1] + PUSHES[action, 0]
        after = state + 0.3 * np.array([state[1], rate]) + noise * stream.standard_normal(2)
        after[1] += kick[1] if number == kick[0] else 0.0
        rows.append((state, action, after))
        state = after
    states, actions, next_states = (np.array(part) for part in zip(*rows, strict=True))
    return Transitions.stepped(states, actions, next_states)


@pytest.mark.parametrize(("seed", "followed"), [(0, False), (1, False), (2, True), (3, False), (4, False)])
def test_a_kick_that_was_left_out_stays_out_whoever_is_missed_beside_it(seed: int, followed: bool) -> None:
    """Processes lean towards it whenever they are asked again, and miss six and more of its neighbours.

    In one of these runs they can follow it, as if it led to a new place. The noise is what it is in all.
    """
    seen, model = swung(185, seed, 0.01, (100, -1.2)), None
    for count in (150, 155, 160, 170, 185):
        model = fit_dynamics(seen.only(np.arange(185) < count), RAIL, PUSHES, fit_seed=0, previous=model)
        assert n_learned(model) == {count if followed else count - 1}
        noise = noise_of(model)
        assert noise is not None
        assert (noise < 0.015).all()


def test_a_kick_is_no_evidence_against_a_mirror() -> None:
    seen = swung(120, 1, 0.0, (70, -0.8))
    before = fit_dynamics(seen, RAIL, PUSHES, fit_seed=0)
    model = fit_dynamics(seen, RAIL, PUSHES, fit_seed=0, previous=before)
    assert before.mirror is not None
    assert model.mirror is not None


# --- how often it is fitted ---


class Told:
    """In place of fitting: always the same processes, and what was to be learned from."""

    def __init__(self, model: GPDynamics) -> None:
        assert model.regressors[0] is not None
        self.made, self.asked = model.regressors[0], list[BoolArray]()

    def __call__(self, learned: BoolArray) -> tuple[Regressor, ...]:
        self.asked.append(learned)
        return self.made


def test_where_there_are_none_it_is_asked_once() -> None:
    seen = seen_of(COUNT, 1, SHARE)
    fit, all_of_it = Told(fitted(seen)), np.ones((COUNT, 2), dtype=np.bool_)
    points = np.hstack([seen.states, CONTROLS[seen.actions]])
    moved = seen.next_states - seen.states
    assert without_kicks(points, moved, all_of_it, fit) is fit.made
    (learned,) = fit.asked
    assert learned is all_of_it


def test_what_was_not_to_be_learned_from_is_no_kick() -> None:
    seen = kicked(seen_of(COUNT, 1, SHARE), [20])
    fit, learned = Told(fitted(seen)), np.ones((COUNT, 2), dtype=np.bool_)
    learned[20] = False
    points = np.hstack([seen.states, CONTROLS[seen.actions]])
    without_kicks(points, seen.next_states - seen.states, learned, fit)
    assert len(fit.asked) == 1
