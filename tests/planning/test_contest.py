"""Who stays in use and who wins, of plans that were never made and totals that are made up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count, repeat

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.discretisation import Discretisation, Layout
from optimist.planning import Chooser, Plan, Planned, QFunction, Rehearsal
from optimist.planning.contest import MOST_ROUNDS, Contest, Won
from optimist.steps import known
from optimist.task import Task

TASK = Task(Box([-1.0], [1.0]), np.array([-1.0, 1.0]), lambda s, u, n: -np.ones(len(s)), 0.9, 0.0)
STEP = known(lambda s, u: s, TASK.controls)
VISITED = np.linspace(-0.2, 0.1, 7)[:, np.newaxis]
OPEN = Discretisation(budget=11)
PLACED = ["closely placed", "loosely placed", "placed by need"]
# against the first, which is uniform already; half of the ten steps that are affordable
OTHERS = ["uniform, single steps", "uniform, polished"]


@dataclass(frozen=True, eq=False)
class Watched(Chooser):
    """A chooser who remembers whose turn it was, against whom, and by which states."""

    handed: list[tuple[str, Planned, FloatArray]] = field(default_factory=list)

    def challenger(self, kind: str, kept: Planned, states: FloatArray) -> Layout | None:
        self.handed.append((kind, kept, states))
        return super().challenger(kind, kept, states)


@dataclass(frozen=True, eq=False)
class Fake:
    """A contest in which nothing is planned, and rehearsals come to `totals`, one after the other."""

    totals: Iterable[float]
    discretisation: Discretisation = OPEN
    depth: int | None = None
    attempts: list[Planned] = field(default_factory=list)
    heard: list[Rehearsal] = field(default_factory=list)
    against: list[Rehearsal | None] = field(default_factory=list)  # of whom each was tried out

    def contest(self) -> tuple[Contest, Planned, Watched]:
        """It, whom it begins with, and who chooses."""
        chooser, rest = Watched(TASK, self.discretisation, self.depth), iter(self.totals)

        def attempt(layout: Layout) -> Planned:
            self.attempts.append(on(layout))
            return self.attempts[-1]

        def try_out(made: Planned, against: Rehearsal | None) -> Rehearsal:
            self.against.append(against)
            path = np.full((3, 1), 0.01 * len(self.heard))
            self.heard.append(Rehearsal(np.array([next(rest)]), path, np.ones(1)))
            return self.heard[-1]

        return Contest(chooser, attempt, try_out, VISITED), on(chooser.first()), chooser

    def among_all(self) -> tuple[Won, Planned]:
        contest, first, _ = self.contest()
        return contest.among_all(first), first

    def between(self, *turns: str) -> tuple[Won, Planned]:
        contest, first, _ = self.contest()
        return contest.between(first, turns), first


def on(layout: Layout) -> Planned:
    """A plan that says nothing."""
    q_values = np.zeros((layout.grid.n_nodes, TASK.n_actions))
    q_function = QFunction(layout.grid, q_values)
    return Planned(TASK, layout, STEP, Plan(q_values, 0, 0.0, True), q_function, q_function)


def names(won: Won) -> list[str]:
    return [name for name, _ in won.tried]


# --- a few challengers ---------------------------------------------------------------------------------


def test_without_challengers_the_one_in_use_is_tried_out_and_stays() -> None:
    fake = Fake([-100.0])
    won, first = fake.between()
    assert won.planned is first
    assert won.rehearsal is fake.heard[0]
    assert won.tried == (("uniform", -100.0),)
    assert fake.attempts == []


def test_challengers_are_tried_out_against_the_best_so_far() -> None:
    fake = Fake([-100.0, -50.0, -80.0, -10.0])
    fake.between(*PLACED)
    assert fake.against == [None, fake.heard[0], fake.heard[1], fake.heard[1]]


@pytest.mark.parametrize("promised", [-np.inf, -200.0, -100.0, -99.9, -99.01])
def test_the_one_in_use_stays_unless_another_is_clearly_better(promised: float) -> None:
    fake = Fake([-100.0, promised])
    won, first = fake.between("closely placed")
    assert won.planned is first
    assert won.rehearsal is fake.heard[0]
    assert won.tried == (("uniform", -100.0), ("closely placed", promised))


@pytest.mark.parametrize(("kept", "promised"), [(-100.0, -98.9), (-100.0, 0.0), (-np.inf, -1e9)])
def test_one_that_is_clearly_better_is_taken(kept: float, promised: float) -> None:
    fake = Fake([kept, promised])
    won, _ = fake.between("closely placed")
    assert won.planned is fake.attempts[0]
    assert won.rehearsal is fake.heard[1]
    assert won.tried == (("uniform", kept), ("closely placed", promised))


def test_the_next_challenges_whoever_has_won_by_then() -> None:
    """Little by little nobody wins: -98.5 is better than -100, but not than -98.9."""
    fake = Fake([-100.0, -99.5, -98.9, -98.5])
    contest, first, chooser = fake.contest()
    won = contest.between(first, ["closely placed", "loosely placed", "single steps"])
    second = fake.attempts[1]
    assert won.planned is second
    assert [kept for _, kept, _ in chooser.handed] == [first, first, second]
    assert names(won) == ["uniform", "closely placed", "loosely placed", "loosely placed, single steps"]
    assert [total for _, total in won.tried] == [-100.0, -99.5, -98.9, -98.5]


def test_the_best_of_those_who_did_not_win_is_second() -> None:
    """Who was in use and lost, or a challenger: whoever came to most."""
    fake = Fake([-100.0, -99.5, -120.0])
    won, first = fake.between("closely placed", "loosely placed")
    assert (won.planned, won.second) == (first, fake.attempts[0])
    fake = Fake([-100.0, -50.0, -80.0])
    won, first = fake.between("closely placed", "loosely placed")
    assert (won.planned, won.second) == (fake.attempts[0], fake.attempts[1])
    fake = Fake([-100.0, -50.0, -180.0])
    won, first = fake.between("closely placed", "loosely placed")
    assert (won.planned, won.second) == (fake.attempts[0], first)
    assert Fake([-100.0]).between()[0].second is None


def test_who_does_not_exist_is_neither_planned_nor_tried() -> None:
    """The one in use is uniform."""
    fake = Fake([-100.0, -50.0])
    won, _ = fake.between("uniform", "loosely placed")
    assert names(won) == ["uniform", "loosely placed"]
    assert len(fake.attempts) == 1


def test_nodes_are_placed_by_what_was_visited_and_by_the_paths_of_the_best() -> None:
    fake = Fake([-100.0, -200.0, -50.0, -60.0])
    contest, first, chooser = fake.contest()
    contest.between(first, PLACED)
    best_by_then = [fake.heard[0], fake.heard[0], fake.heard[2]]
    for (_, _, states), heard in zip(chooser.handed, best_by_then, strict=True):
        np.testing.assert_array_equal(states, np.concatenate([VISITED, heard.states]))


# --- all of them ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("promised", [-np.inf, -200.0, -100.0])
def test_a_round_that_brings_nothing_is_the_last(promised: float) -> None:
    won, first = Fake([-100.0, *repeat(promised, 6)]).among_all()
    assert won.planned is first
    assert names(won) == ["uniform", *PLACED, *OTHERS]


def test_a_round_that_brings_something_is_followed_by_another() -> None:
    """The second brings nothing, and the others are tried against the best of the first."""
    fake = Fake([-100.0, -200.0, -90.0, -95.0, *repeat(-91.0, 6)])
    contest, first, chooser = fake.contest()
    won = contest.among_all(first)
    best = fake.attempts[1]
    assert won.planned is best
    assert names(won)[:7] == ["uniform", *PLACED, *PLACED]
    assert names(won)[7:] == [
        "uniform",  # to come back to
        "loosely placed, single steps",
        "loosely placed, polished",
    ]
    assert all(kept is best for _, kept, _ in chooser.handed[2:])


@pytest.mark.parametrize("useful", range(MOST_ROUNDS + 2))
def test_nodes_are_placed_again_as_long_as_that_helps_but_not_for_ever(useful: int) -> None:
    """Each of so many rounds brings something, always by its last."""
    totals = [-100.0]
    for turn in range(useful):
        totals += [-200.0, -200.0, -99.0 + turn]
    won, _ = Fake([*totals, *repeat(-200.0, 20)]).among_all()
    rounds = min(useful + 1, MOST_ROUNDS)
    assert names(won)[1 : 1 + 3 * rounds] == PLACED * rounds
    assert not set(names(won)[1 + 3 * rounds :]) & set(PLACED)


def test_if_everything_is_better_than_what_was_before_the_last_is_taken() -> None:
    """Even by next to nothing: the best is taken as it is."""
    fake = Fake(count(-100.0, 1e-9))
    won, _ = fake.among_all()
    assert won.planned is fake.attempts[-1]
    assert won.rehearsal is fake.heard[-1]
    assert names(won) == [
        "uniform",
        *PLACED * MOST_ROUNDS,
        "uniform",
        "uniform, single steps",
        "uniform, single steps, polished",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_that_were_tried_is_taken(seed: int) -> None:
    totals = np.random.default_rng(seed).normal(-100.0, 1.0, 20).tolist()
    fake = Fake(totals)
    won, first = fake.among_all()
    tried = [total for _, total in won.tried]
    assert tried == totals[: len(tried)]
    assert won.rehearsal.total == max(tried)
    assert won.planned is [first, *fake.attempts][int(np.argmax(tried))]


def test_nodes_are_placed_again_by_the_paths_of_the_best_by_then() -> None:
    fake = Fake([-100.0, -90.0, -95.0, -80.0, *repeat(-200.0, 7)])
    contest, first, chooser = fake.contest()
    contest.among_all(first)
    for turn, best in enumerate([0, 1, 1, 3, 3, 3]):
        kind, _, states = chooser.handed[turn]
        assert kind == PLACED[turn % 3]
        np.testing.assert_array_equal(states, np.concatenate([VISITED, fake.heard[best].states]))


def test_what_is_fixed_is_not_tried() -> None:
    won, _ = Fake([-100.0, *repeat(-200.0, 9)], Discretisation(nodes=(11,), hold=2)).among_all()
    held = ["uniform", *PLACED[:2]]
    assert [name.replace(", 2 steps held", "") for name in names(won)] == held
    assert all("2 steps held" in name for name in names(won))
    fixed = Discretisation(nodes=(11,), spacing=(1.5,), hold=1)
    won, first = Fake([-100.0], fixed, depth=1).among_all()
    assert won.planned is first
    assert won.tried == (("spaced, single steps, looking 1 ahead", -100.0),)
