"""Finalists: which of a few ways to act is best, where noise made the best of many look better than it is.

They are tried on many more paths. Where imagination may err, of ways that promise alike the steadier is
taken: what noise upsets, what the model gets wrong upsets, too. Where chance decides between some, they are
tried more often still: of bad luck that is rare a few dozen paths say little, once there was some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.planning.policy import Acting
from optimist.planning.rehearsal import Starts, imagine
from optimist.steps import Noisy
from optimist.task import Task

FINALISTS = 3
MANY, MOST = 64, 256  # paths, and paths of those between which chance decides ...
APART, SURE = 2.0, 0.01  # ... within so many standard errors, where one is more than so much of the total


def steadiest(
    task: Task, acting: Callable[[IntArray], Acting], imagined: Noisy, starts: FloatArray, few: IntArray
) -> IntArray:
    """Which of the `few` [m, n] is best from each of `starts` [n, d], the first of equals.  [n]

    `acting` says how whoever is which of them [k] acts.
    """
    best: IntArray = few[0].copy()
    which, rows = few.reshape(-1), np.tile(np.arange(len(starts)), len(few))
    for number, repeats in enumerate((MANY, MOST)):
        more = replace(imagined, repeats=repeats, seed=imagined.seed + 1 + number)
        heard = imagine(task, acting(which), more, Starts.alike(starts[rows]))
        assert heard.spreads is not None
        with np.errstate(invalid="ignore"):  # of a path that left all bounds
            steady = heard.totals - more.errs * heard.spreads
        steady, errors = np.where(np.isfinite(steady), steady, -np.inf), heard.spreads / np.sqrt(repeats)
        undecided = np.zeros(len(which), dtype=np.bool_)
        for row in np.unique(rows):
            mine = np.flatnonzero(rows == row)
            first = mine[steady[mine].argmax()]
            best[row] = which[first]
            near = mine[steady[mine] >= steady[first] - APART * np.hypot(errors[mine], errors[first])]
            near = near[np.isfinite(steady[near])]  # who left all bounds once is not asked again
            if len(near) > 1 and errors[first] > SURE * np.abs(heard.totals[first]):
                undecided[near] = True
        if not undecided.any():
            break
        which, rows = which[undecided], rows[undecided]
    return best
