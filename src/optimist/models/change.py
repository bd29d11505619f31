"""Change: whether the system itself is no longer what it was (wear, a load added), and since when.

A model of what was seen before says what later transitions should have been, and how unsure that is: by
noise, and by what it did not know. A transition far outside of that is a surprise, and there are many reasons
for one. But where the system has changed, nearly all of them are, from some transition on. So what each is
off is counted against what would still be usual, and summed up from the last one backwards (a CUSUM): the
largest sum says since when, and whether it is enough. How far a single one is off counts little: a few are
far off without any change (wrong readings, each of which spoils two), so evidence must come from many.

Nothing can be said of a change where nobody was before: a model that is wrong there had no data, however sure
it is. So only transitions count that are near one from before.

With noise a change may do less to any single step than noise does (a mass of 1.3 instead of 1: 2 deviations
at most). But it does the same again in the same place. So a model that knows noise is asked, too, how much
likelier all is if what was seen lately is a little off, as smoothly as the system itself goes (`shifted_at`).

What was seen before the change is then not learned from any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.box import Box
from optimist.gp.lapack import cholesky_of, inverted, solved
from optimist.models.model import CovaryingModel, DrawnModel, Model, noise_of, uneven_of
from optimist.models.regressor import FEWEST_DATA
from optimist.threads import single_blas
from optimist.transitions import Transitions

EPISODES = 4  # the last ones, in which a change is looked for
FEWEST_BEFORE = 40  # transitions that a model of what was before needs
FEWEST_SINCE = 8
MISFIT = 0.03  # of a usual displacement: what a good model may be off
OFF_ANYWAY = 0.05  # of all transitions, at most, are far off for other reasons: wrong readings
WIDER = 9.0  # times the variance: what a change is taken to do to how far predictions are off
ENOUGH = 20.0  # logarithm of how much likelier a change must be
NEAR = 0.1  # of the range of what was seen before, in every coordinate of state and control
RANGE = 1e-5  # of the box, at least
SHIFTED = 0.03  # of the prior covariance of what the system does: that of what a change does to it
LATELY = (50, 100, 200)  # a change may have been so many transitions ago, if not when an episode began
STRETCHES = 4  # as long, before: they must not differ as much
MOST_SHARED = 0.95  # correlation of what is off from one step to the next
LITTLE = 0.01  # of a usual displacement: what processes may be off, where noise is hardly more
LAST_ASKED, MOST_ASKED = 200, 400  # all of the last ones, and blocks of those before, so many in all
BLOCK = 10
UNEXPLAINED = 5.5  # deviations: a single step that is so far off is evidence of something else
MOST_LOOKS = 3  # for such steps


def foreseen(
    seen: Transitions, model: Model, box: Box, controls: FloatArray, usual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Where a model says that each transition leads, and the variance of that; a `usual` displacement [d].

    [n, d], [n, d]
    """
    applied = seen.controls(controls)
    mean = model.predict(seen.states, applied)
    variance = (MISFIT * usual) ** 2 + np.zeros(mean.shape)
    noise = noise_of(model)
    uneven = uneven_of(model)
    if noise is not None:
        variance += noise**2 if uneven is None else uneven(seen.states) ** 2
    if isinstance(model, DrawnModel):
        moved = model.predict_drawn(seen.states, applied, np.ones(mean.shape))
        variance += box.displacement(mean, moved) ** 2
    return mean, variance


def deviations(
    seen: Transitions, model: Model, box: Box, controls: FloatArray, usual: FloatArray
) -> FloatArray:
    """How far each transition is from what a model says, squared, in standard deviations.  [n, d]"""
    mean, variance = foreseen(seen, model, box, controls, usual)
    with np.errstate(all="ignore"):
        squared = box.displacement(mean, seen.next_states) ** 2 / variance
    return np.asarray(np.nan_to_num(squared, nan=np.inf))


def been_near(seen: Transitions, before: Transitions, box: Box, controls: FloatArray) -> BoolArray:
    """Which transitions begin where one from `before` did, with about the same control.  [n]"""
    were, applied = before.states, before.controls(controls)
    ranges = np.ptp(box.displacement(were[:1], were), axis=0)  # across the seam of an angle, too
    reach, room = NEAR * np.maximum(ranges, RANGE * box.widths), NEAR * np.ptp(controls, axis=0)
    found = np.empty(len(seen), dtype=np.bool_)
    for row, (state, control) in enumerate(zip(seen.states, seen.controls(controls), strict=True)):
        same_place = (np.abs(box.displacement(were, state)) <= reach).all(axis=1)
        same_control = (np.abs(applied - control) <= room).all(axis=1)
        found[row] = (same_place & same_control).any()
    return found


def evidence(off: FloatArray, free: BoolArray) -> tuple[int, float]:
    """Since which transition there is most evidence of a change, and how much: a log likelihood ratio.

    Of `off` [n, d], the squared deviations; those that are not `free` [n] say nothing. However far off one
    is, a change makes that likelier by no more than by how rarely it happens anyway.
    """
    each = 0.5 * (1.0 - 1.0 / WIDER) * off - 0.5 * np.log(WIDER)
    each = np.minimum(each, -np.log(OFF_ANYWAY))
    sums = np.cumsum(np.where(free[:, np.newaxis], each, 0.0)[::-1], axis=0)[::-1].max(axis=1)
    sums[max(0, len(sums) - FEWEST_SINCE + 1) :] = 0.0
    since = len(sums) - 1 - int(sums[::-1].argmax())  # the last of equals: before it was nothing that counts
    return since, float(sums[since])


def changed_at(
    seen: Transitions,
    free: BoolArray,
    fit: Callable[[Transitions], Model],
    box: Box,
    controls: FloatArray,
) -> int:
    """How many of the first transitions were before a change; 0: there was none.

    `free` [n] are those that an edge had no hand in. `fit` makes a model of some.
    """
    begins = np.flatnonzero(seen.begins)[-EPISODES:]
    begins = begins[begins >= FEWEST_BEFORE]
    if not begins.size or len(seen) - begins[0] < FEWEST_SINCE:
        return 0
    first = int(begins[0])
    before = np.arange(len(seen)) < first
    usual = np.quantile(np.abs(box.displacement(seen.states, seen.next_states)), 0.9, axis=0)
    after, earlier = seen.only(~before), seen.only(before)
    off = deviations(after, fit(earlier), box, controls, usual)
    since, much = evidence(off, free[first:] & been_near(after, earlier, box, controls))
    return first + since if much > ENOUGH else 0


@single_blas()  # matrices are small, and what comes of it depends on nobody's threads
def shifted_at(
    seen: Transitions, free: BoolArray, model: Model, box: Box, controls: FloatArray
) -> tuple[int, float]:
    """How many of the first transitions were before a small change, and how much evidence there is of one.

    The evidence is a logarithm of how much likelier what is known of one coordinate is if it differs by a
    smooth function since some time, less the same of stretches as long before that time: where every stretch
    differs a little from the others nothing has changed. Asked of every time at which one of the last
    episodes began, and of some between; of models that know noise and say how they explain (others: 0, 0.0).
    `free` [n] are those that an edge had no hand in.
    """
    count, rows = len(seen), _asked(np.flatnonzero(free))
    begins = np.flatnonzero(seen.begins)[-EPISODES:].tolist()
    asked = [
        since
        for since in sorted({*begins, *(count - lately for lately in LATELY)})
        if FEWEST_DATA <= (rows >= since).sum() <= (rows < since).sum() >= FEWEST_BEFORE
    ]
    if not asked or noise_of(model) is None or not isinstance(model, CovaryingModel):
        return 0, 0.0
    some = seen.only(_among(rows, count))
    usual = np.sqrt((box.displacement(some.states, some.next_states) ** 2).mean(axis=0))
    known = [_Known.of(rows, *one) for one in model.covariances(some, LITTLE * usual)]
    best, most = 0, 0.0
    for since in asked:
        late = rows >= since
        earlier, later = (seen.only(_among(rows[part], count)) for part in (~late, late))
        near = ~late
        near[late] = been_near(later, earlier, box, controls)
        for one in known:
            much = one.off(since, count, near)
            if much > max(most, ENOUGH):  # or it is no evidence anyway
                calm = one.lasting(since)
                much = calm.off(since, count, near) - calm.off_before(since, count - since)
            best, most = (since, much) if much > most else (best, most)
    return best, most


@dataclass(frozen=True, eq=False)
class _Known:
    """One coordinate of some transitions."""

    rows: IntArray  # [n], their numbers among all
    covariance: FloatArray  # [n, n], but for noise
    noise: FloatArray  # [n], variance
    targets: FloatArray  # [n]
    explained: BoolArray  # [n], by the others: a kick is no evidence of what came after it

    @classmethod
    def of(cls, rows: IntArray, covariance: FloatArray, noise: FloatArray, targets: FloatArray) -> _Known:
        """With what is explained."""
        return cls(rows, covariance, noise, targets, _explained(covariance, noise, targets))

    def off(self, first: int, last: int, asked: BoolArray) -> float:
        """How much likelier those `asked` [n] are if those from `first` to `last` differ; a logarithm."""
        some = asked & self.explained
        on = ((self.rows >= first) & (self.rows < last))[some]
        if on.sum() < FEWEST_SINCE or (~on).sum() < FEWEST_SINCE:
            return 0.0
        within = np.ix_(some, some)
        plain = self.covariance[within] + np.diag(self.noise[some])
        same = _density(plain, self.targets[some])
        differs = _density(plain + SHIFTED * self.covariance[within] * np.outer(on, on), self.targets[some])
        return differs - same if np.isfinite(same) else 0.0

    def off_before(self, since: int, length: int) -> float:
        """The same of what was before: the most of some stretches of that length, each against the others."""
        before = self.rows < since
        first = [since - number * length for number in range(1, STRETCHES + 1)]
        return max([0.0, *(self.off(begin, begin + length, before) for begin in first)])

    def lasting(self, since: int) -> _Known:
        """The same with as much noise as it counts for if what was off `since` then lasted from step to step.

        Noise with a correlation of r says as much as independent noise that is (1 + r) / (1 - r) times as
        large; a system that is a little different every time looks alike.
        """
        some = np.flatnonzero((self.rows < since) & self.explained)
        plain = self.covariance[np.ix_(some, some)] + np.diag(self.noise[some])
        left_out = _left_out(plain, self.targets[some])
        if left_out is None:
            return self
        follows = np.diff(self.rows[some]) == 1
        first, second = left_out[:-1][follows], left_out[1:][follows]
        shared = first @ second / max(np.sqrt((first @ first) * (second @ second)), 1e-300)
        shared = float(np.clip(shared, 0.0, MOST_SHARED))
        return replace(self, noise=self.noise * (1.0 + shared) / (1.0 - shared))


def _asked(rows: IntArray) -> IntArray:
    """The last of so many, and of those before as many blocks as there is room for, from all times."""
    before, last = rows[:-LAST_ASKED], rows[-LAST_ASKED:]
    n_blocks, room = len(before) // BLOCK, (MOST_ASKED - LAST_ASKED) // BLOCK
    if len(before) <= room * BLOCK:
        return rows
    kept = np.linspace(0, n_blocks - 1, room).round().astype(np.intp)
    within = kept[:, np.newaxis] * BLOCK + np.arange(BLOCK) + len(before) % BLOCK
    return np.concatenate([before[within.reshape(-1)], last])


def _left_out(covariance: FloatArray, targets: FloatArray) -> FloatArray | None:
    """How far each of `targets` [n] is from what the others say, in deviations; None: nobody knows."""
    try:
        factor = cholesky_of(covariance)
    except np.linalg.LinAlgError:
        return None
    weights, inverse = solved(factor, targets), inverted(factor)
    return np.asarray(weights / np.sqrt(np.diag(inverse)))


def _explained(covariance: FloatArray, noise: FloatArray, targets: FloatArray) -> BoolArray:
    """Which targets [n] the others explain; none where rounding leaves nothing that can be said."""
    explained = np.ones(len(targets), dtype=np.bool_)
    for _ in range(MOST_LOOKS):
        plain = covariance[np.ix_(explained, explained)] + np.diag(noise[explained])
        left_out = _left_out(plain, targets[explained])
        if left_out is None:
            return np.zeros_like(explained)
        off = np.abs(left_out) > UNEXPLAINED
        if not off.any() or off.all():
            break
        explained[np.flatnonzero(explained)[off]] = False
    return explained


def _density(covariance: FloatArray, targets: FloatArray) -> float:
    """The logarithm of how likely `targets` [n] are, but for a constant."""
    try:
        factor = cholesky_of(covariance)
    except np.linalg.LinAlgError:
        return -np.inf
    return float(-0.5 * targets @ solved(factor, targets) - np.log(np.diag(factor)).sum())


def _among(rows: IntArray, count: int) -> BoolArray:
    """Which of so many are these `rows`.  [count]"""
    among = np.zeros(count, dtype=np.bool_)
    among[rows] = True
    return among
