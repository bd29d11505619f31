"""Whether ends stop steps on their way: told from steps that went less far than foreseen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.models import GPDynamics, fit_dynamics
from optimist.models.catching import ends_catch
from optimist.task import Task
from optimist.transitions import Transition, Transitions

BOX = Box([-1.0, -3.0], [1.0, 3.0])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])
USUAL = np.array([0.15, 0.3])
SUBSTEPS = 4


def in_gate(states: FloatArray) -> BoolArray:
    """A strip narrower than many steps are long."""
    return np.asarray(np.abs(states[:, 0] - 0.3) < 0.05)


TASK = Task(BOX, CONTROLS, lambda states, *_: np.full(len(states), -1.0), 1.0, 0.0, in_gate)


def glided(state: FloatArray, control: FloatArray, *, stops: bool) -> FloatArray:
    """In short steps, each of which may be the last."""
    x, rate = state
    for _ in range(SUBSTEPS):
        if stops and in_gate(np.array([[x, rate]]))[0]:
            break
        rate += 0.3 * (control[0] - np.sin(3.0 * x)) / SUBSTEPS
        x += 0.15 * rate / SUBSTEPS
    return np.array([x, rate])


def seen_of(seed: int, *, stops: bool, share: float = 0.0, count: int = 150) -> Transitions:
    """Episodes of at most 12 steps that begin anywhere but in the gate."""
    stream, rows = np.random.default_rng(seed), list[Transition]()
    while len(rows) < count:
        state = stream.uniform([-1.0, -2.0], [1.0, 2.0])
        if in_gate(state[np.newaxis])[0]:
            continue
        for number in range(12):
            action = int(stream.integers(3))
            after = glided(state, CONTROLS[action], stops=stops)
            after = after + share * USUAL * stream.standard_normal(2)
            if not BOX.contains(after):
                break
            over = bool(in_gate(after[np.newaxis])[0])
            rows.append(Transition(state, action, -1.0, after, over, number == 11 and not over))
            state = after
            if over:
                break
    return Transitions.of(rows[:count])


def fitted(seen: Transitions) -> GPDynamics:
    return fit_dynamics(seen, BOX, CONTROLS, fit_seed=0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.02, 0.05])
@pytest.mark.parametrize("stops", [True, False])
def test_ends_that_stop_steps_are_told_from_ends_that_do_not(stops: bool, share: float, seed: int) -> None:
    seen = seen_of(seed, stops=stops, share=share)
    assert ends_catch(TASK, fitted(seen), seen) == stops


def test_one_step_that_went_less_far_is_not_enough() -> None:
    seen = seen_of(0, stops=True, share=0.05)
    ended, model = np.flatnonzero(seen.terminated), fitted(seen)
    assert ends_catch(TASK, model, seen)
    for row in ended:
        kept = ~seen.terminated
        kept[row] = True
        assert not ends_catch(TASK, model, seen.only(kept))


def test_without_an_end_nothing_is_said() -> None:
    seen = seen_of(0, stops=True, share=0.05)
    assert not ends_catch(TASK, fitted(seen), seen.only(~seen.terminated))


def test_of_a_task_without_ends_nothing_is_said() -> None:
    seen = seen_of(0, stops=True, share=0.05)
    assert not ends_catch(replace(TASK, is_terminal=None, discount=0.99), fitted(seen), seen)


def test_what_stopped_where_no_end_is_known_says_nothing_of_ends() -> None:
    seen = seen_of(0, stops=True, share=0.05)
    elsewhere = replace(TASK, is_terminal=lambda states: states[:, 0] > 0.9)
    assert not ends_catch(elsewhere, fitted(seen), seen)


def test_nobody_is_asked_about_nothing() -> None:
    """Where all that is learned from has ended."""
    seen = seen_of(0, stops=True, share=0.05)

    def one_by_one(states: FloatArray) -> BoolArray:
        assert len(states)
        return np.array([bool(in_gate(state[np.newaxis])[0]) for state in states])

    only = replace(TASK, is_terminal=one_by_one)
    assert ends_catch(only, fitted(seen), seen.only(seen.terminated))


def test_without_noise_nobody_asks() -> None:
    seen = seen_of(0, stops=True)
    assert not ends_catch(TASK, fitted(seen), seen)


def test_steps_that_went_through_unharmed_outweigh_those_that_were_stopped() -> None:
    """As many as half of those."""
    seen = seen_of(0, stops=True, share=0.05)
    model = fitted(seen)
    assert ends_catch(TASK, model, seen)
    live = np.flatnonzero(~seen.terminated)[: int(seen.terminated.sum())]
    states, after = seen.states.copy(), seen.next_states.copy()
    states[live], after[live] = [0.2, 2.0], [0.45, 2.0]  # a third of the way lies in the gate
    assert not ends_catch(TASK, model, replace(seen, states=states, next_states=after))


def led_elsewhere(share: float, aside: float) -> tuple[Task, Transitions, GPDynamics]:
    """Every step that ended went so much of its way, and so much across it; where it came is an end."""
    seen = seen_of(0, stops=False, share=0.05)
    model, after = fitted(seen), seen.next_states.copy()
    rows = np.flatnonzero(seen.terminated)
    usual = after[rows] - seen.states[rows]
    across = usual[:, ::-1] * [-0.5, 2.0]  # as far in deviations of the noise, at right angles to the way
    after[rows] = seen.states[rows] + share * usual + aside * across
    ends = after[rows]

    def there(states: FloatArray) -> BoolArray:
        return np.asarray((states[:, np.newaxis] == ends).all(axis=2).any(axis=1))

    return replace(TASK, is_terminal=there), replace(seen, next_states=after), model


@pytest.mark.parametrize(
    ("share", "aside", "told"),
    [(0.5, 0.0, True), (1.0, 0.0, False), (1.5, 0.0, False), (-0.5, 0.0, False), (0.5, 1.0, False)],
)
def test_only_who_went_the_foreseen_way_and_less_far_was_stopped(
    share: float, aside: float, told: bool
) -> None:
    """Not who went as far as foreseen, or further, or back, or aside: there the model is wrong."""
    task, seen, model = led_elsewhere(share, aside)
    assert ends_catch(task, model, seen) == told
