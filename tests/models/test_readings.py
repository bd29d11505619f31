"""Which readings cannot be true: judged here by models that know the system, or half of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.models.readings import Readings
from optimist.transitions import Transitions

BOX = Box([-4.0, -4.0], [4.0, 4.0])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])
READINGS = Readings(BOX, CONTROLS)
N = 64


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    """A damped oscillator that is pushed."""
    rate = states[:, 1] + 0.1 * (3.0 * controls[:, 0] - states[:, 0] - 0.1 * states[:, 1])
    return np.column_stack([states[:, 0] + 0.1 * rate, rate])


@dataclass(frozen=True)
class Knowing:
    """A model that is off by some share of every displacement."""

    wrong: float = 0.0

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        return np.asarray(states + (1.0 + self.wrong) * (swing(states, controls) - states))


def seen(seed: int = 0, jump: int | None = None) -> Transitions:
    """An episode under random actions; in step `jump` something really kicks it."""
    stream = np.random.default_rng(seed)
    actions = stream.integers(0, 3, N)
    path = [np.array([0.5, 0.0])]
    for step, action in enumerate(actions):
        after = swing(path[-1][np.newaxis], CONTROLS[[action]])[0]
        path.append(after + (np.array([0.0, 2.0]) if step == jump else 0.0))
    states = np.array(path)
    return Transitions.stepped(states[:-1], actions, states[1:])


def misread(rows: Transitions, number: int, axis: int, value: float) -> Transitions:
    """The same with one reading wrong: row `number` leads to it, the next goes on from it."""
    states, after = rows.states.copy(), rows.next_states.copy()
    after[number, axis] = states[number + 1, axis] = value
    return Transitions.stepped(states, rows.actions, after)


def doubted(rows: Transitions, model: Knowing) -> list[int]:
    every = np.ones(len(rows), dtype=np.bool_)
    found: NDArray[np.bool_] = READINGS.unexplained(rows, every, lambda _: model)  # type: ignore[arg-type, return-value]
    return np.flatnonzero(found).tolist()


@pytest.mark.parametrize("number", [0, 6, 7, 8, 31, N - 2])
@pytest.mark.parametrize("value", [-3.5, 3.5])
@pytest.mark.parametrize("wrong", [0.0, 0.05])
def test_a_wrong_reading_spoils_two_transitions(number: int, value: float, wrong: float) -> None:
    """At the ends of blocks, too, and with a model that is not quite right."""
    assert doubted(misread(seen(), number, 1, value), Knowing(wrong)) == [number, number + 1]


@pytest.mark.parametrize("number", [0, 6, 7, 31, N - 3])
@pytest.mark.parametrize("values", [(0.0, 0.0), (3.5, -3.5), (3.0, 3.0), (1e200, 3.0), (-3.0, 1e200)])
def test_two_wrong_readings_in_a_row_spoil_three_transitions(
    number: int, values: tuple[float, float]
) -> None:
    rows = seen() if values[0] else seen(2)  # one that moves, or what is read as 0 is true
    spoilt = misread(misread(rows, number, 1, values[0]), number + 1, 1, values[1])
    if values[0] == 0.0 and np.abs(rows.next_states[number : number + 2, 1]).min() < 0.3:
        pytest.skip("hardly wrong")
    found = doubted(spoilt, Knowing(0.02))
    assert set(found) | set(np.flatnonzero(READINGS.impossible(spoilt))) == {number, number + 1, number + 2}


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.5, 2.0])
def test_what_happened_is_not_doubted_however_wrong_the_model(wrong: float) -> None:
    assert doubted(seen(), Knowing(wrong)) == []


@pytest.mark.parametrize("jump", [5, 20, 40])
def test_a_real_jump_is_not_doubted(jump: int) -> None:
    """No model foresees it, but what follows goes on from it."""
    assert doubted(seen(jump=jump), Knowing()) == []


def test_the_last_reading_is_not_doubted_before_the_next_is_there() -> None:
    rows = seen()
    after = rows.next_states.copy()
    after[-1, 1] = 3.9
    assert doubted(Transitions.stepped(rows.states, rows.actions, after), Knowing()) == []


def test_nothing_is_doubted_across_episodes() -> None:
    """A reset looks like a reading that was gone on without."""
    first, second = seen(0), seen(1)
    both = Transitions.stepped(
        np.vstack([first.states, second.states]),
        np.append(first.actions, second.actions),
        np.vstack([first.next_states, second.next_states]),
    )
    assert doubted(both, Knowing()) == []


def test_every_reading_is_judged_by_a_model_that_has_not_learned_from_it() -> None:
    rows = seen()
    asked: list[Transitions] = []

    def fit(some: Transitions) -> Knowing:
        asked.append(some)
        return Knowing()

    READINGS.unexplained(rows, np.ones(N, dtype=np.bool_), fit)  # type: ignore[arg-type]
    assert len(asked) == 2
    halves = [{row.tobytes() for row in some.states} for some in asked]
    for number in range(N - 1):
        pair = {rows.states[number].tobytes(), rows.states[number + 1].tobytes()}
        assert any(not (pair & half) for half in halves)


@pytest.mark.parametrize("value", [9.0, 1e4, 1e200, -1e308])
def test_what_no_step_can_do_is_impossible_without_any_model(value: float) -> None:
    rows = misread(seen(), 20, 1, value)
    assert np.flatnonzero(READINGS.impossible(rows)).tolist() == [20, 21]
    assert not READINGS.impossible(seen()).any()


def test_on_a_periodic_axis_no_step_is_too_long() -> None:
    turning = Readings(Box([-1.0, -4.0], [1.0, 4.0], periodic=[True, False]), CONTROLS)
    rows = Transitions.stepped(np.array([[0.9, 0.0]]), np.array([1]), np.array([[57.3, 0.0]]))
    assert not turning.impossible(rows).any()


def test_a_reading_to_act_on_lies_where_something_can_be_planned() -> None:
    inside, beyond, away = np.array([1.0, 2.0]), np.array([1.0, 60.0]), np.array([1.0, 1e200])
    assert READINGS.plausible(inside) is inside
    assert READINGS.plausible(beyond) is beyond
    assert READINGS.plausible(away).tolist() == [1.0, 4.0]


def test_the_last_but_one_is_found_out_by_the_last() -> None:
    rows = misread(seen(), N - 2, 1, 3.5)
    every = np.ones(N, dtype=np.bool_)
    assert READINGS.goes_on_without(rows, every, Knowing())  # type: ignore[arg-type]
    assert not READINGS.goes_on_without(seen(), every, Knowing())  # type: ignore[arg-type]
    assert not READINGS.goes_on_without(seen(jump=N - 2), every, Knowing())  # type: ignore[arg-type]
