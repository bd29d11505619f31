"""Doubts: which transitions an agent does not learn from: somebody said so, or nothing explains them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from optimist.agents.packed import MarksSaid
from optimist.arrays import BoolArray
from optimist.models.change import ENOUGH, changed_at, shifted_at
from optimist.models.gp_dynamics import untroubled
from optimist.models.model import Model, ModelLearner, noise_of
from optimist.models.readings import Readings
from optimist.task import Task
from optimist.transitions import Transition, Transitions

BY_HAND, UNEXPLAINED = "by hand", "unexplained"  # reasons
MOST_LOOKS = 3  # at what a model without the doubtful ones makes of the others


class Doubts:
    """Numbers, from 1, of transitions that are void: remembered, and not learned from."""

    def __init__(self, task: Task) -> None:
        self.readings = Readings(task.box, task.controls)
        self.by_hand: set[int] = set()
        self.unexplained: set[int] = set()
        self.n_heard = 0  # marks made by hand
        self.n_faded = 0  # so many of the first are not learned from: the system has changed since
        self.unlearn = False  # the model has learned from one that is void by hand now, or not from another

    @property
    def void(self) -> dict[int, str]:
        """All of them, and why."""
        return dict.fromkeys(sorted(self.unexplained), UNEXPLAINED) | dict.fromkeys(self.by_hand, BY_HAND)

    def hear(self, number: int, *, void: bool) -> None:
        """Of a mark made by hand."""
        self.by_hand = self.by_hand | {number} if void else self.by_hand - {number}
        self.n_heard += 1

    def watch(self, transitions: Sequence[Transition], *, since: int) -> None:
        """Doubt those from number `since` on that cannot be true whatever the system does."""
        fresh = Transitions.of(transitions[since - 1 :])
        self.unexplained |= {since + int(row) for row in np.flatnonzero(self.readings.impossible(fresh))}

    def goes_on_without(self, transitions: Sequence[Transition], model: Model) -> bool:
        """Whether the last but one led to a reading that the last one contradicts: then both are doubted."""
        seen, count = Transitions.of(transitions), len(transitions)
        if not self.readings.goes_on_without(seen, self.counting(count), model):
            return False
        self.unexplained |= {count - 1, count}
        return True

    def counting(self, count: int) -> BoolArray:
        """Which of the first `count` may be learned from.  [count]"""
        counting = ~_rows(self.void, count)
        if counting[self.n_faded :].any():
            counting[: self.n_faded] = False
        return counting

    def fade(
        self,
        transitions: Sequence[Transition],
        learner: ModelLearner,
        model: Model,
        *,
        another: bool,
        little: bool,
    ) -> bool:
        """Leave out what was before the system changed, if it has.

        It is asked whether it has become `another`, and whether it does a `little` otherwise.
        """
        controls, n_before = self.readings.controls, 0
        counting = self.counting(len(transitions))
        if another:
            seen, box = Transitions.of(transitions).only(counting), self.readings.box
            free = untroubled(model, box, seen)
            n_before = changed_at(seen, free, lambda some: learner.fit(some, model), box, controls)
        if little and not n_before:
            n_before = self.shifted(transitions, model)
        if n_before:
            self.n_faded = int(np.flatnonzero(counting)[n_before])
        return n_before > 0

    def shifted(self, transitions: Sequence[Transition], model: Model) -> int:
        """How many of what is learned from were before the system did a little otherwise; 0: it does not."""
        if noise_of(model) is None:
            return 0
        seen, box = self.of(transitions), self.readings.box
        since, much = shifted_at(seen, untroubled(model, box, seen), model, box, self.readings.controls)
        return since if much > ENOUGH else 0

    def of(self, transitions: Sequence[Transition]) -> Transitions:
        """Those that are learned from."""
        return Transitions.of(transitions).only(self.counting(len(transitions)))

    def learn(
        self, transitions: Sequence[Transition], learner: ModelLearner, previous: Model | None, n_learned: int
    ) -> Model:
        """The model of all that can be explained; `previous` had seen the first `n_learned`.

        What a model of the others cannot explain is left out, and looked at again with the next model.
        """
        seen, count = Transitions.of(transitions), len(transitions)
        by_hand, impossible = _rows(self.by_hand, count), self.readings.impossible(seen)
        previous = None if self.unlearn else previous
        for look in range(MOST_LOOKS):
            learned = self.counting(count)
            model = learner.fit(seen.only(learned), previous)
            if look == MOST_LOOKS - 1:
                break
            found = self.readings.unexplained(
                seen,
                learned,
                lambda some, model=model: learner.fit(some, model),  # type: ignore[misc]
            )
            found = (found | impossible) & ~by_hand
            changed = found != _rows(self.unexplained, count)
            if not changed.any() or (learned & ~found).sum() == 0:
                break
            if changed[:n_learned].any():
                previous = None  # what was found with the help of a wrong reading is no beginning
            self.unexplained = {int(row) + 1 for row in np.flatnonzero(found)}
        self.unlearn = False
        return model

    def record(self) -> dict[str, int]:
        """What the record of a run says of it."""
        return {"faded": self.n_faded} if self.n_faded else {}

    def pack(self) -> dict[str, Any]:
        """As JSON says it."""
        return {
            "heard": self.n_heard,
            "by_hand": sorted(self.by_hand),
            "unexplained": sorted(self.unexplained),
            "unlearn": self.unlearn,
            **self.record(),
        }

    def restore(self, said: MarksSaid) -> None:
        """The opposite of `pack`."""
        self.n_heard, self.unlearn, self.n_faded = said.heard, said.unlearn, said.faded
        self.by_hand, self.unexplained = set(said.by_hand), set(said.unexplained)


def _rows(numbers: Collection[int], count: int) -> BoolArray:
    """Whether each of the first `count` is one of these numbers (from 1).  [count]"""
    rows = np.zeros(count, dtype=np.bool_)
    rows[[number - 1 for number in numbers if number <= count]] = True
    return rows
