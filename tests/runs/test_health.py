"""A task that was told wrongly shows in the record, and is complained of once."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from optimist import GPRMax
from optimist.box import Box
from optimist.environments.system_environment import SystemEnvironment
from optimist.planning.rehearsal import Expectation
from optimist.runs import health
from optimist.runs.health import Complaining, Complaint, complaints
from optimist.runs.record import EpisodeRow
from optimist.transitions import Transitions

BOX = Box([-np.pi, -8.0], [np.pi, 8.0])


def wandering(n: int = 200, *, scale: float = 1.0, turn: bool = False) -> Transitions:
    """An angle that goes round and round (wrapped or not), and a rate."""
    steps = np.linspace(0.0, 12.0, n + 1)
    angle = (steps + np.pi) % (2.0 * np.pi) - np.pi if turn else np.sin(steps)
    states = scale * np.column_stack([angle, 4.0 * np.cos(steps)])
    return Transitions.stepped(states[:-1], np.zeros(n, dtype=np.int64), states[1:])


def episodes(*pairs: tuple[float, float | None]) -> list[EpisodeRow]:
    return [
        EpisodeRow(number, 10, total, 10 * number, "truncated", expected)
        for number, (total, expected) in enumerate(pairs, 1)
    ]


def kinds(
    seen: Transitions | None,
    rows: list[EpisodeRow] | None = None,
    *,
    box: Box = BOX,
    n_actions: int = 3,
    settled: bool = True,
) -> list[str]:
    return [one.kind for one in complaints(box, n_actions, seen, rows or [], settled=settled)]


def test_of_a_task_that_was_told_rightly_nothing_is_said() -> None:
    assert kinds(wandering()) == []
    assert kinds(wandering(turn=True), box=Box(BOX.low, BOX.high, periodic=[True, False])) == []
    assert kinds(None) == []


def test_an_angle_that_was_not_said_to_be_one() -> None:
    assert kinds(wandering(turn=True)) == ["periodic 0"]


def test_a_box_in_degrees() -> None:
    degrees = Box([-180.0, -450.0], [180.0, 450.0])
    assert kinds(wandering(), box=degrees) == ["sliver 0", "sliver 1"]
    assert kinds(wandering(50), box=degrees) == []  # too early to say


def test_a_box_that_is_left_most_of_the_time() -> None:
    assert kinds(wandering(), box=Box([-4.0, -1.0], [4.0, 1.0])) == ["outside"]


def test_one_control() -> None:
    assert kinds(None, n_actions=1) == ["controls"]


def test_learning_that_never_ends() -> None:
    many = episodes(*[(-1.0, -1.0)] * 10)
    assert kinds(wandering(2000), many, settled=False) == ["restless"]
    assert kinds(wandering(2000), many) == []
    assert kinds(wandering(1000), many, settled=False) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(-100.0, -10.0)] * 5, ["disappointed"]),
        ([(-100.0, -10.0)] * 4, []),
        ([(-100.0, -10.0)] * 3 + [(-11.0, -10.0), (-100.0, -10.0)], []),
        ([(-100.0, None)] * 5, []),
        ([(3.0, 10.0)] * 5, ["disappointed"]),
        ([(9.0, 10.0)] * 5, []),
        ([(0.0, 0.0)] * 5, []),
    ],
)
def test_earning_far_less_than_expected(rows: list[tuple[float, float | None]], said: list[str]) -> None:
    assert kinds(None, episodes(*rows)) == said


def test_what_was_not_imagined_to_its_end_disappoints_nobody() -> None:
    rows = [EpisodeRow(k, 5000, -5000.0, 5000 * k, "truncated", Expectation(-1000.0)) for k in range(1, 6)]
    assert kinds(None, rows) == []
    assert kinds(None, [replace(row, steps=1000) for row in rows]) == ["disappointed"]


def test_each_kind_is_said_once() -> None:
    complaining = Complaining()
    with pytest.warns(UserWarning, match="degrees"):
        complaining.hear([Complaint("sliver 0", "Is the box in degrees?")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        complaining.hear([Complaint("sliver 0", "Is the box in degrees?")])


def test_who_is_stirred_and_will_sleep_on_is_not_restless(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = GPRMax(
        SystemEnvironment("mountain-car"), settings={"grid": {"nodes": [7, 7]}, "planning": {"depth": 1}}
    )
    learner.learn(120)
    monkeypatch.setattr(health, "FOREVER", 100)
    monkeypatch.setattr(health, "RESTLESS", 0)
    agent = learner._agent
    for stirred, said in ((True, False), (False, True)):
        agent.knowledge = replace(agent.known(), settled=False, stirred=stirred)
        assert ("restless" in [one.kind for one in learner.complaints]) == said
