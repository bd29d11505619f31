"""Sleep: bad luck is no reason to wake up, a plan that earns less than it should is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from optimist.agents import sleep
from optimist.agents.sleep import FEW, MANY, Sleep, last_two
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.planning.rehearsal import Rehearsal
from optimist.steps import REPEATS, Noisy
from optimist.transitions import Transition

NOISE = np.array([0.1])


def episode(total: float) -> list[Transition]:
    state = np.zeros(1)
    return [Transition(state, 0, total, state, False, True)]


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says whether it is disappointed; a few paths hardly differ, of many the worst earns -20."""
    asked: list[int] = []

    def rehearse(_task: object, _policy: object, imagined: object, _starts: object) -> Rehearsal:
        repeats = imagined.repeats if isinstance(imagined, Noisy) else 1
        asked.append(repeats)
        ones, state = np.ones(1), np.zeros((1, 1))
        if repeats == 1:
            return Rehearsal(-10.0 * ones, state, ones)
        spread, worst = (2.0, -20.0) if repeats == MANY else (0.1, -10.1)
        return Rehearsal(-10.0 * ones, state, ones, spreads=spread * ones, worst=worst * ones)

    def ask(*episodes: float, noise: bool = True) -> tuple[bool, list[int]]:
        imagined = Noisy(lambda *_: np.zeros((1, 1)), NOISE) if noise else object()
        monkeypatch.setattr(sleep, "rehearse", rehearse)
        monkeypatch.setattr(sleep, "imagined_by", lambda _model: imagined)
        monkeypatch.setattr(sleep, "noise_of", lambda _model: NOISE if noise else None)
        settings = SimpleNamespace(stopping=SimpleNamespace(disappointment=0.1))
        choosing: Any = SimpleNamespace(task=SimpleNamespace(imagined_steps=1000), settings=settings)
        knowledge: Any = SimpleNamespace(model=None, sights=None)
        asked.clear()
        return Sleep(choosing).disappointed(knowledge, *map(episode, episodes)), list(asked)

    return ask


def test_without_noise_a_single_episode_disappoints(asleep: Any) -> None:
    assert asleep(-10.9, noise=False) == (False, [1])
    assert asleep(-11.1, noise=False) == (True, [1])


def test_with_noise_what_one_of_many_rehearsals_came_to_is_bad_luck(asleep: Any) -> None:
    assert asleep(-10.5, -30.0) == (False, [REPEATS])
    assert asleep(-19.0, -30.0) == (False, [REPEATS, MANY])


def test_with_noise_only_the_second_of_two_bad_episodes_disappoints(asleep: Any) -> None:
    assert asleep(-21.0) == (False, [REPEATS, MANY])
    assert asleep(-21.0, -12.0) == (False, [REPEATS, MANY, REPEATS, MANY])
    assert asleep(-21.0, -30.0) == (True, [REPEATS, MANY, REPEATS, MANY])


def test_the_episode_before_counts_if_it_went_by_the_same_plan() -> None:
    rows = []
    for number in range(3):
        places = 10.0 * number + np.arange(4.0)
        rows += [
            Transition(places[[at]], 0, 0.0, places[[at + 1]], False, at == 2)  # three steps each
            for at in range(3)
        ]
    assert last_two(rows, 6, 0) == (rows[6:], rows[3:6])
    assert last_two(rows, 6, 3) == (rows[6:], rows[3:6])
    assert last_two(rows, 6, 4) == (rows[6:], [])
    assert last_two(rows[:3], 0, 0) == (rows[:3], [])


class Jumpy:
    """Is surprised by what moved; predicts that nothing does."""

    def surprised_by(self, transition: Transition, predicted: FloatArray, *, share: float) -> bool:
        assert share == 0.2
        return bool(np.abs(transition.next_state - predicted).max() > share)


@pytest.mark.parametrize(
    ("moved", "noisy", "wakes"),
    [
        ([0.0] * 5 + [1.0], False, True),
        ([0.0] * 5 + [1.0], True, False),
        ([1.0] + [0.0] * 5, True, False),  # long settled: the last one is as it should be
        ([0.0, 1.0, 0.0, 0.0, 0.0, 1.0], True, True),
        ([1.0] + [0.0] * FEW + [1.0], True, False),  # too long ago
        ([1.0], True, False),  # nothing came before it
        ([7.0, 1.0], True, True),
    ],
)
def test_with_noise_a_single_surprise_is_luck(
    monkeypatch: pytest.MonkeyPatch, moved: list[float], noisy: bool, wakes: bool
) -> None:
    monkeypatch.setattr(sleep, "noise_of", lambda _model: NOISE if noisy else None)
    rows = [Transition(np.zeros(1), 0, 0.0, np.array([far]), False, False) for far in moved]
    settings = SimpleNamespace(stopping=SimpleNamespace(surprise=0.2))
    choosing: Any = SimpleNamespace(settings=settings)
    planned = SimpleNamespace(grid=SimpleNamespace(box=Box([-1.0], [1.0])))
    knowledge: Any = SimpleNamespace(
        model=Jumpy(), planned=planned, led=lambda state, action: (np.zeros(1), 0.0)
    )
    assert Sleep(choosing).surprised(knowledge, rows[-1], np.zeros(1), rows[:-1]) is wakes


@pytest.mark.parametrize(
    ("done", "count", "faded", "again"),
    [
        (40, 299, 0, False),
        (40, 300, 0, True),
        (200, 399, 0, False),
        (200, 400, 0, True),
        (299, 597, 0, False),
        (299, 598, 0, True),
        (300, 10_000, 0, False),  # has seen enough
        (560, 799, 500, False),  # of a system that changed after 500
        (560, 800, 500, True),
    ],
)
def test_who_settled_early_learns_again_from_twice_as_many_if_there_is_noise(
    monkeypatch: pytest.MonkeyPatch, done: int, count: int, faded: int, again: bool
) -> None:
    for noise, rehearse, settled, learns in (
        (NOISE, True, True, again),
        (None, True, True, False),
        (NOISE, False, True, False),  # the paper's agents stop for good
        (NOISE, True, False, False),  # who is awake learns anyway
    ):
        knowledge: Any = SimpleNamespace(model=None, n_transitions=done, settled=settled)
        settings = SimpleNamespace(planning=SimpleNamespace(rehearse=rehearse))
        choosing: Any = SimpleNamespace(settings=settings)
        monkeypatch.setattr(sleep, "noise_of", lambda _model, noise=noise: noise)
        assert Sleep(choosing).learns_once_more(knowledge, count, faded) is learns


@pytest.mark.parametrize(
    ("begun", "elsewhere"),
    [
        ([[0.5]], False),
        ([[0.54]], False),  # nearly there
        ([[0.4]], True),
        ([[0.4], [0.2], [0.0]], True),
        ([[0.4], [0.2], [0.0], [-0.2]], False),  # as many kinds of starts as are rehearsed
        ([[0.4], [0.2], [0.0], [0.02]], True),  # two of them are one
    ],
)
def test_who_never_planned_for_such_a_start_plans_for_a_few_kinds(
    monkeypatch: pytest.MonkeyPatch, begun: list[list[float]], elsewhere: bool
) -> None:
    for noise, rehearse, settled, plans in (
        (NOISE, True, True, elsewhere),
        (None, True, True, False),
        (NOISE, False, True, False),  # the paper's agents stop for good
        (NOISE, True, False, False),  # who is awake plans anyway
    ):
        knowledge: Any = SimpleNamespace(model=None, settled=settled)
        settings = SimpleNamespace(planning=SimpleNamespace(rehearse=rehearse))
        choosing: Any = SimpleNamespace(settings=settings, task=SimpleNamespace(box=Box([-1.0], [1.0])))
        monkeypatch.setattr(sleep, "noise_of", lambda _model, noise=noise: noise)
        start = np.array([0.51])
        assert Sleep(choosing).begins_elsewhere(knowledge, np.array(begun), start) is plans
