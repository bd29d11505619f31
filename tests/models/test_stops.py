"""Stops inside the box: hard ones, bounces, buffers. What is smooth stays smooth, and jolts are learned."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.models import fit_dynamics
from optimist.models.fitting import GPLearner
from optimist.models.gp_dynamics import DEFAULT_SETTINGS, GPDynamics, untroubled
from optimist.models.stops import Stop, find_stops, find_turns, place_all
from optimist.transitions import Transition, Transitions

BOX = Box([-1.2, -3.0], [1.2, 3.0])
CONTROLS = np.array([[-5.0], [0.0], [5.0]])
PLACE = 0.9
KINDS = ["held", "bounced a little", "bounced", "buffered"]
BACK = {"held": 0.0, "bounced a little": 0.3, "bounced": 1.0}  # of the speed


def slid(states: FloatArray, controls: FloatArray, kind: str = "free") -> FloatArray:
    """A mass on a rail with a dent in the middle, for a tenth of a second."""
    x, v = states.T.copy()
    for _ in range(50):
        force = controls[:, 0] - 0.2 * v - np.sin(2 * x)
        if kind == "buffered":
            pressed = np.maximum(np.abs(x) - PLACE, 0.0)
            force = force - 4000.0 * np.sign(x) * pressed - 10.0 * v * (pressed > 0.0)
        v = v + 0.002 * force
        x = x + 0.002 * v
        if kind in BACK:
            hit = (np.abs(x) >= PLACE) & (x * v > 0.0)
            v, x = np.where(hit, -BACK[kind] * v, v), np.where(hit, np.clip(x, -PLACE, PLACE), x)
    return np.column_stack([x, v])


@cache
def seen_of(kind: str, count: int = 200, seed: int = 0, noise: float = 0.0) -> Transitions:
    stream, rows = np.random.default_rng(seed), []
    state, action = np.zeros(2), 0
    for number in range(count):
        if number % 40 == 0:
            state = stream.uniform([-0.5, -1.0], [0.5, 1.0])
        if number % 3 == 0:
            action = int(stream.integers(3))
        after = slid(state[np.newaxis], CONTROLS[[action]], kind)[0]
        after = after + noise * np.array([0.1, 0.2]) * stream.standard_normal(2)
        rows.append((state, action, after))
        state = after
    states, actions, next_states = zip(*rows, strict=True)
    return Transitions.stepped(np.array(states), np.array(actions), np.array(next_states))


@cache
def fitted(kind: str, noise: float = 0.0, count: int = 200) -> GPDynamics:
    return fit_dynamics(seen_of(kind, count, noise=noise), BOX, CONTROLS, fit_seed=0)


def off(model: GPDynamics, kind: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of new steps: what predictions miss of the free ones, of those that touch, and what jolts are.  [d]"""
    test = seen_of(kind, 600, 1)
    applied = test.controls(CONTROLS)
    free = slid(test.states, applied)
    touched = np.abs(free - test.next_states).max(axis=1) > 1e-6
    missed = model.predict(test.states, applied) - test.next_states
    jolts = (free - test.next_states)[touched]
    size = [np.sqrt((some**2).mean(axis=0)) for some in (missed[~touched], missed[touched], jolts)]
    return size[0], size[1], size[2]


@pytest.mark.parametrize("kind", KINDS)
def test_stops_are_found_and_the_smooth_model_stays_smooth(kind: str) -> None:
    model = fitted(kind)
    places = sorted((stop.axis, stop.side, stop.place) for stop in model.stops)
    np.testing.assert_allclose(places, [(0, -1, -PLACE), (0, 1, PLACE)], atol=0.05)
    assert {stop.hard for stop in model.stops} == {kind == "held"}
    assert model.noise is None  # jolts are none
    smooth, touched, jolts = off(model, kind)
    usual = np.abs(BOX.displacement(model.seen.states, model.seen.next_states)).mean(axis=0)
    assert (smooth < (0.2 if kind == "buffered" else 0.02) * usual).all()
    assert (touched < 0.5 * jolts).all()


def test_a_hard_stop_holds_what_is_pushed_against_it() -> None:
    model = fitted("held")
    states = np.array([[0.85, 1.5], [0.9, 0.0], [-0.9, 0.0], [-0.9, 0.0]])
    controls = np.array([[5.0], [5.0], [-5.0], [5.0]])
    after = slid(states, controls, "held")
    np.testing.assert_allclose(after[:3], [[0.9, 0.0], [0.9, 0.0], [-0.9, 0.0]])
    np.testing.assert_allclose(model.predict(states, controls), after, atol=0.02)
    found = model.predict_with_uncertainty(states, controls)
    np.testing.assert_allclose(found.next_states, model.predict(states, controls), atol=1e-7)


def test_where_hardly_anything_was_felt_it_is_unsure_what_a_stop_does() -> None:
    model = fitted("bounced a little")
    felt = model.touched(model.seen) & (model.seen.next_states[:, 0] > 0.0)
    slower = model.seen.states[[felt.argmax()]]
    apart = []
    for states in (np.array([[0.8, 2.9]]), slower):  # faster than any that came there; one of those
        drawn = [model.predict_drawn(states, np.zeros((1, 1)), np.full((1, 2), by)) for by in (-1.0, 1.0)]
        apart.append(np.abs(drawn[1] - drawn[0])[0, 1])
    assert apart[0] > max(0.05, apart[1])


@pytest.mark.parametrize("kind", ["held", "bounced"])
def test_stops_are_told_from_noise(kind: str) -> None:
    model = fitted(kind, 0.05, 250)
    assert sorted((stop.axis, stop.side) for stop in model.stops) == [(0, -1), (0, 1)]
    assert model.noise is not None
    ratios = (model.noise / (0.05 * np.array([0.1, 0.2]))) ** 2
    assert (ratios > 1 / 1.5).all()
    assert (ratios < 1.5).all()


def test_who_is_fast_is_soon_at_a_stop_and_no_speed_is_one() -> None:
    """With noise the speed, too, turns back sharply where it is highest: by the stops that are there."""
    seen = seen_of("held", 250, noise=0.05)
    assert any(turn.axis == 1 for turn in find_turns(BOX, seen))
    assert all(stop.axis == 0 for stop in fitted("held", 0.05, 250).stops)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_free_systems_have_no_stops(noise: float) -> None:
    assert fitted("free", noise).stops == ()


def test_a_few_steps_do_not_say_what_is_usual() -> None:
    """A young model is wrong, and is not asked: a stop that is none would leave out all that comes."""
    seen = seen_of("bounced", 45)
    assert find_turns(BOX, seen)
    assert fit_dynamics(seen, BOX, CONTROLS, fit_seed=0).stops == ()


def test_being_felt_for_a_while_is_being_felt_once() -> None:
    turn, count = Stop(0, 1, 1.0, hard=False), 12
    places = np.where(np.arange(count + 1) < 6, 0.0, 0.9)[:, np.newaxis] * np.array([1.0, 0.0])
    seen = Transitions.stepped(places[:-1], np.zeros(count, dtype=int), places[1:])
    smooth, free = places[1:] + np.array([0.2, 0.0]), np.arange(count) < 5
    assert place_all((turn,), BOX, seen, smooth, free) == []
    free[[7, 9]] = True
    smooth[[7, 9], 0] = 0.0
    apart = Transitions.stepped(np.zeros((count, 2)), np.zeros(count, dtype=int), places[1:])
    assert len(place_all((turn,), BOX, apart, smooth, free)) == 1


def test_what_touched_a_stop_neither_surprises_nor_is_evidence() -> None:
    model, fresh = fitted("bounced"), seen_of("bounced", 120, 3)
    jolted = np.abs(slid(fresh.states, fresh.controls(CONTROLS)) - fresh.next_states).max(axis=1) > 0.5
    assert jolted.sum() > 3
    assert not untroubled(model, BOX, fresh)[jolted].any()
    for row in np.flatnonzero(jolted):
        given = fresh.states[row], int(fresh.actions[row]), 0.0, fresh.next_states[row], False, False
        assert not model.surprised_by(Transition(*given), fresh.states[row], share=0.2)
    free = int(np.flatnonzero(untroubled(model, BOX, fresh))[0])
    given = fresh.states[free], int(fresh.actions[free]), 0.0, fresh.next_states[free] + 1.0, False, False
    assert model.surprised_by(Transition(*given), fresh.states[free], share=0.2)


def test_a_stop_that_was_known_is_known_to_a_model_of_a_few_and_no_longer_once_it_gives_way() -> None:
    seen = seen_of("held")
    few = seen.only(np.arange(len(seen)) < 40)
    known = find_stops(BOX, seen)
    assert [(stop.side, stop.place) for stop in known] == [(-1, -PLACE), (1, PLACE)]
    assert find_stops(BOX, few) != known
    assert fit_dynamics(few, BOX, CONTROLS, previous=fitted("held"), fit_seed=0).stops == known
    beyond = Transitions.stepped(np.array([[0.85, 1.0]]), np.array([1]), np.array([[0.95, 1.0]]))
    assert find_stops(BOX, beyond, known) == known[:1]


@pytest.mark.parametrize("kind", ["held", "bounced"])
def test_stops_are_packed_and_brought_back(kind: str) -> None:
    model = fitted(kind)
    learner = GPLearner(BOX, CONTROLS, DEFAULT_SETTINGS, "cell-variance", 0)
    again = learner.unpack(model.pack(), model.seen)
    assert again.stops == model.stops
    test = seen_of(kind, 100, 4)
    found = [one.predict(test.states, test.controls(CONTROLS)) for one in (model, again)]
    np.testing.assert_array_equal(found[0], found[1])
    arrays, document = model.pack()
    for wrong in ({"axis": 2}, {"place": 5.0}, {"side": 0}):
        stops = [document["stops"][0] | wrong]
        with pytest.raises(ValueError, match="must be"):
            learner.unpack((arrays, document | {"stops": stops}), model.seen)
    assert "stops" not in fitted("free").pack()[1]


def test_how_far_beyond_is_counted_to_its_side() -> None:
    states = np.array([[0.5, 0.0], [-0.5, 0.0]])
    assert Stop(0, 1, 0.2).beyond(states).tolist() == pytest.approx([0.3, -0.7])
    assert Stop(0, -1, -0.2).beyond(states).tolist() == pytest.approx([-0.7, 0.3])


def bounced(wall: float, seed: int) -> Transitions:
    """Short walks with a bounce at a wall."""
    stream, rows = np.random.default_rng(seed), []
    for _ in range(25):
        x, v = stream.uniform(-0.5, 0.3), stream.choice([0.4, 2.3]) + stream.uniform(-0.1, 0.2)
        for step in range(4):
            action = int(stream.integers(2))
            faster = v + 0.05 * (2 * action - 1)
            after = x + 0.2 * faster
            if after > wall:
                after, faster = 2.0 * wall - after, -faster
            rows.append(
                Transition(np.array([x, v]), action, 0.0, np.array([after, faster]), False, step == 3)
            )
            x, v = after, faster
    return Transitions.of(rows)


TWO = np.array([[-1.0], [1.0]])


def test_who_takes_the_same_step_again_comes_to_the_same_place_and_nothing_holds_it() -> None:
    """Steps of one length: the farthest place was come to from one place only, again and again."""
    stream, rows = np.random.default_rng(0), []
    places, number = 0.05 + 0.3 * np.arange(-2, 3), 2
    for _ in range(120):
        action = int(stream.integers(3))
        after = number + action - 1
        if 0 <= after < len(places):  # nobody pushed on from the ends
            ends = [np.array([places[one], 0.0]) for one in (number, after)]
            rows.append(Transition(ends[0], action, 0.0, ends[1], False, False))
            number = after
    assert find_stops(BOX, Transitions.of(rows)) == ()
    cut_short = Transition(np.array([-0.4, 0.0]), 0, 0.0, np.array([places[0], 0.0]), False, False)
    assert find_stops(BOX, Transitions.of([*rows, cut_short])) == (Stop(0, -1, float(places[0])),)


def test_a_coordinate_that_never_leaves_its_edge_is_no_reason_to_stop() -> None:
    box, stream, rows = Box([-1.0, -3.0, 0.0], [1.0, 3.0, 1.0]), np.random.default_rng(0), []
    x, v = 0.0, 0.5
    for _ in range(150):
        here, action = np.array([x, v, 0.0]), int(stream.integers(2))
        v += 0.03 * (2 * action - 1)
        x += 0.1 * v
        if abs(x) > 0.6:
            x, v = np.sign(x) * (1.2 - abs(x)), -v
        rows.append(Transition(here, action, 0.0, np.array([x, v, 0.0]), False, False))
    model = fit_dynamics(Transitions.of(rows), box, TWO, fit_seed=0)
    assert model.regressors == (None,)  # of the third coordinate nothing was seen


@pytest.mark.parametrize("seed", range(6))
def test_a_stop_beside_the_edge_is_inside_the_box_and_comes_back(seed: int) -> None:
    box, seen = Box([-1.0, -3.0], [1.0, 3.0]), bounced(0.995, seed)
    model = fit_dynamics(seen, box, TWO, fit_seed=0)
    assert all(box.low[stop.axis] < stop.place < box.high[stop.axis] for stop in model.stops)
    again = GPLearner(box, TWO, model.settings, model.knownness, 0).unpack(model.pack(), seen)
    assert again.stops == model.stops
