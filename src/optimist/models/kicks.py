"""Kicks: single steps that a process has given up on, and that would pass for noise everywhere.

A step that was cut short by something rare (a bump, a slip, a goal that was touched and lost again) lies far
beyond what noise does to the others. A smooth process cannot follow it, so it calls it noise: one step of 150
that is 40 deviations off makes the noise 20 times as large as it is. Whoever plans with that is careful where
there is nothing to fear. So what a process misses by far, of at most one step in a hundred (one, where there
are fewer), it does not learn from. What happens more often belongs to the system: then all is learned from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.models.regressor import Regressor, moves

SURE = 8.0  # times what is usually missed: no noise does that to one in a hundred
LEAST = 0.25  # of the spread of displacements: what is missed by less does no harm
RARE = 100  # one of so many
AT_FIRST = 5  # times as many may be missed: their neighbours, by processes that lean towards them
FEWEST = 30  # data of which that can be said
MOST_LOOKS = 3  # at what processes without them miss

Fit = Callable[[BoolArray], tuple[Regressor, ...]]  # of those coordinates of those transitions [n, d]


def without_kicks(
    points: FloatArray, moved: FloatArray, learned: BoolArray, fit: Fit
) -> tuple[Regressor, ...]:
    """What `fit` makes of all that is to be learned from [n, d], but for kicks.

    At `points` [n, k] the coordinates `moved` so far [n, d].
    """
    first = made = fit(learned)
    out, most = np.zeros(len(points), dtype=np.bool_), _most(learned)
    for _ in range(MOST_LOOKS if most else 0):
        missed = _missed(points, moved, learned, made)
        off = missed > max(1.0, np.partition(missed, -AT_FIRST * most - 1)[-AT_FIRST * most - 1])
        rest = learned & ~off[:, np.newaxis]
        if np.array_equal(off, out) or not rest.any(axis=0).all():
            break
        out, made = off, fit(rest) if off.any() else first
    return made if out.sum() <= most else first


def kicks(
    points: FloatArray, moved: FloatArray, learned: BoolArray, made: tuple[Regressor, ...]
) -> BoolArray:
    """Which of those that were to be learned from these processes left out.  [n]"""
    off = _missed(points, moved, learned, made) > 1.0
    return off if off.sum() <= _most(learned) else np.zeros_like(off)


def _most(learned: BoolArray) -> int:
    """How many kicks there may be, of so many."""
    count = int(learned.any(axis=1).sum())
    return max(1, count // RARE) if count >= FEWEST else 0


def _missed(
    points: FloatArray, moved: FloatArray, learned: BoolArray, made: tuple[Regressor, ...]
) -> FloatArray:
    """How far each is missed in its worst coordinate, where 1 is what is by far.  [n]"""
    missed = np.abs(moves(made, points) - moved) / [one.target_scale for one in made]
    each = zip(missed.T, learned.T, strict=True)
    usual = np.array([np.median(of[rows]) if rows.any() else 0.0 for of, rows in each])
    return np.asarray((learned * missed / np.maximum(SURE * 1.4826 * usual, LEAST)).max(axis=1))
