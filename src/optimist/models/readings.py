"""Readings: which of them cannot be true.

A sensor that reads wrong once spoils two transitions: the one that leads to the reading, and the one that
leads on from it. One that reads wrong twice in a row spoils three. What gives it away is that the system goes
on as if nothing had happened: the next reading follows from the state that was *predicted* in its place, and
does not follow from the reading itself. A real surprise, where a model is wrong or knows nothing, is the
other way round, and a jump that really happens is no wrong reading however large it is. So nothing need be
known of sensors, nor of how good the model is.

Every reading is judged by a model that has not learned from it: the rows are cut into two halves, blocks of
them in turn, and each half is judged by a model of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.models.model import Model
from optimist.transitions import Transitions

BLOCK = 8  # rows that are judged by the same half: more than wrong readings spoil
IN_A_ROW = 2  # wrong readings that are gone on without, at most
FEWEST = 2 * BLOCK  # rows to judge by
SURE = 8.0  # times what predictions usually miss: further off a reading is in doubt
LEAST = 0.25  # of a usual displacement: nothing nearer is
BRIDGED = 0.25  # of what the reading is off: the next may miss so much of what follows without it
USUAL = 0.9  # quantile of displacements that is called usual
SMALLEST = 1e-6  # of the width of the box, a usual displacement


@dataclass(frozen=True, eq=False)
class Readings:
    """Judges what was read of a system with this box, under these controls."""

    box: Box
    controls: FloatArray  # [n_actions, k]

    def impossible(self, seen: Transitions) -> BoolArray:
        """Which transitions cross the whole box in one step, or lie where nothing can be planned.  [n]"""
        box = self.box
        with np.errstate(all="ignore"):
            moved = np.abs(box.displacement(seen.states, seen.next_states)) / box.widths
        near = box.near(seen.states) & box.near(seen.next_states)
        return np.asarray(~(near & (moved <= 1.0).all(axis=1)))

    def plausible(self, state: FloatArray) -> FloatArray:
        """A reading to act on: one that lies where nothing can be planned is moved to the box.  [d]"""
        return state if self.box.near(state) else self.box.clip(state)

    def unexplained(
        self, seen: Transitions, learned: BoolArray, fit: Callable[[Transitions], Model]
    ) -> BoolArray:
        """Which transitions lead to, or on from, a reading that cannot be true.  [n]

        `learned` [n] are those that may be learned from. `fit` makes a model of some of them.
        """
        wrong = np.zeros(len(seen), dtype=np.bool_)
        if learned.sum() < FEWEST:
            return wrong
        half = (np.arange(len(seen)) // BLOCK) % 2 == 0
        usual, possible = self._usual(seen, learned), ~self.impossible(seen)
        for judged in (half, ~half):
            others = learned & ~_and_after(judged, IN_A_ROW)  # what goes on from wrong ones is wrong, too
            if not others.any():
                continue
            model = fit(seen.only(others))
            for count in range(1, IN_A_ROW + 1):
                among = judged & possible if count == 1 else judged
                wrong |= _and_after(self._misread(seen, model, among, usual, count=count), count)
        return wrong

    def goes_on_without(self, seen: Transitions, learned: BoolArray, model: Model) -> bool:
        """Whether the last transition goes on as if the one before it had led where the model says."""
        last = np.zeros(len(seen), dtype=np.bool_)
        last[-2:-1] = True
        return bool(self._misread(seen, model, last, self._usual(seen, learned), sure=0.0).any())

    def _misread(
        self,
        seen: Transitions,
        model: Model,
        judged: BoolArray,
        usual: FloatArray,
        *,
        sure: float = SURE,
        count: int = 1,
    ) -> BoolArray:
        """Which of the `judged` [n] lead to the first of `count` wrong readings in a row, all of them off.

        The model has not learned from them.
        """
        wrong = np.zeros(len(seen), dtype=np.bool_)
        gone_on = judged.copy()  # from the last of the readings, in the same episode
        for ahead in range(1, count + 1):
            gone_on[-ahead:] = False
            gone_on[:-ahead] &= ~seen.begins[ahead:]
        rows = np.flatnonzero(gone_on)
        if not rows.size:
            return wrong
        applied = seen.controls(self.controls)
        with np.errstate(all="ignore"):
            expected, doubted = seen.states[rows], np.ones(rows.size, dtype=np.bool_)
            limit, nearest = np.zeros(self.box.n_dims), np.full(rows.size, np.inf)
            for at in range(count):
                expected = model.predict(expected, applied[rows + at])
                off = self._between(expected, seen.next_states[rows + at], usual)
                if at == 0:
                    limit = np.maximum(sure * 1.4826 * np.median(off, axis=0), LEAST)
                doubted &= (off > limit).any(axis=1)
                nearest = np.minimum(nearest, off.max(axis=1))
            reading, later = seen.next_states[rows + count - 1], seen.next_states[rows + count]
            then = applied[rows + count]
            without = self._between(model.predict(expected, then), later, usual).max(axis=1)
            direct = self._between(model.predict(reading, then), later, usual).max(axis=1)
            wrong[rows] = doubted & (without < BRIDGED * np.minimum(nearest, direct))
        return wrong

    def _between(self, states: FloatArray, others: FloatArray, usual: FloatArray) -> FloatArray:
        """How far apart, in usual displacements.  [n, d]"""
        return np.asarray(np.abs(self.box.displacement(states, others)) / usual)

    def _usual(self, seen: Transitions, learned: BoolArray) -> FloatArray:
        """A usual displacement of each coordinate.  [d]"""
        moved = np.abs(self.box.displacement(seen.states[learned], seen.next_states[learned]))
        return np.asarray(np.maximum(np.quantile(moved, USUAL, axis=0), SMALLEST * self.box.widths))


def _and_after(rows: BoolArray, count: int) -> BoolArray:
    """Those rows [n] and `count` that follow each of them."""
    both = rows.copy()
    for ahead in range(1, count + 1):
        both[ahead:] |= rows[:-ahead]
    return both
