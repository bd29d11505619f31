"""Rehearsal: plans are tried out in imagination before they are used, and the best is kept.

Whoever has a model has a simulator. A plan on some grid, held and searched in some way, is followed through
the model from the starts that were seen; what it earns there says more about it than any theory of grids.
Nothing is told and nothing is peeked at: the model is learned, the starts were observed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.box import Box
from optimist.planning.policy import Acting, Policy, begun
from optimist.steps import Imagined, Noisy
from optimist.task import Task

MOST_STARTS = 4
BETTER = 0.01  # of what is expected: a challenger that does not promise so much more does not win
AROUND = 0.0125  # of the box, how far from a start that was seen others are tried: a quarter of a coarse cell
AROUND_SEED = 0
SAME = 0.5  # of a usual step's cost: an end that costs so little more is no failure
FAR = 1e3  # widths of the box: a path that is imagined so far away has left all bounds


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What following a plan through a model came to."""

    totals: FloatArray  # [n_starts], sums of rewards; -inf where the model left all bounds
    states: FloatArray  # [n, d], where it went
    weights: FloatArray  # [n_starts], how much each start counts, 1 in all
    # [t, d], from the first start on
    path: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    spreads: FloatArray | None = None  # [n_starts], standard deviation of a single episode; None: no noise
    worst: FloatArray | None = None  # [n_starts], what the worst of all paths came to; None: no noise
    costs: bool = False  # whether nothing above 0 was earned, nor can be
    steps: FloatArray | None = None  # [n_starts], how long it took in the mean
    # [n_starts], whether all came to an end that was no worse than a step, and steps paid nothing: the sooner
    # it comes the better
    aimed: BoolArray | None = None

    @property
    def total(self) -> float:
        """The mean over the starts."""
        return float(self.weights @ self.totals)


class Starts(NamedTuple):
    """Where rehearsals begin."""

    states: FloatArray  # [n, d]
    weights: FloatArray  # [n], how much each counts, 1 in all
    n_seen: int  # so many were seen, the first

    @classmethod
    def alike(cls, states: FloatArray) -> Starts:
        """All were seen, and count the same."""
        return cls(states, np.full(len(states), 1.0 / len(states)), len(states))


# Totals so far [n_starts], and from which starts all is over [n_starts] -> which need not be gone on with
GiveUp = Callable[[FloatArray, BoolArray], BoolArray]


def rehearse(
    task: Task, policy: Policy, imagined: Imagined, starts: Starts, *, against: Rehearsal | None = None
) -> Rehearsal:
    """Episodes in imagination, as long as real ones, or 1000 steps; or until `against` was clearly better.

    Given up, the total is more than it would have been, and still less than that of `against`.
    """

    def lost(totals: FloatArray, _over: BoolArray) -> BoolArray:
        return np.full(len(totals), against is not None and float(starts.weights @ totals) < against.total)

    give_up = None if against is None else lost
    acting = begun(policy, starts.states, imagining=True)
    return imagine(task, acting, imagined, starts, give_up)


def imagine(
    task: Task, acting: Acting, imagined: Imagined, starts: Starts, give_up: GiveUp | None = None
) -> Rehearsal:
    """The same of a policy that has prepared.

    A path that becomes infinite, leaves all bounds or earns what cannot be said is over: nothing good is
    expected of it. With noise several paths begin at each start, and their mean is what counts. Where all
    there is are costs, totals only fall, and who has lost may `give_up` early.
    """
    noisy = imagined if isinstance(imagined, Noisy) else None
    box, repeats, unsaid = task.box, 1 if noisy is None else noisy.repeats, [np.nan] * task.controls.shape[1]
    n_starts, far = len(starts.states) * repeats, FAR * box.widths
    states = box.wrap(np.tile(np.array(starts.states, dtype=np.float64), (repeats, 1)))
    totals, going = np.zeros(n_starts), np.flatnonzero(~task.terminal(states))
    (steps, last), ended = np.zeros((2, n_starts)), np.zeros(n_starts, dtype=np.bool_)
    seen, path = [states], [states[0]]
    states, falling = states[going], task.optimistic_value <= 0.0
    for number in range(task.imagined_steps):
        if not going.size:
            break
        which = going if noisy is None else going % len(starts.states)
        steps[going] += 1.0
        controls = by_rows(lambda *asked: task.applied(acting(*asked)), unsaid, states, which)
        acted = np.isfinite(controls)
        if not acted.all():
            controls = np.where(acted.all(axis=1)[:, np.newaxis], controls, task.controls[-1])
        with np.errstate(all="ignore"):
            after = task.caught(states, imagined(states, controls, which))
            if noisy is not None:
                after = box.wrap(after + noisy.astray(number, going // len(starts.states), states))
            near = np.abs(after - box.low) <= far  # what is not finite is not
            if not (near.all() and acted.all()):
                sound = acted.all(axis=1) & near.all(axis=1)
                totals[going[~sound]] = -np.inf
                going, states, controls, after = going[sound], states[sound], controls[sound], after[sound]
                if not going.size:
                    break
            earned = by_rows(task.rewards, -np.inf, states, controls, after)
            sums = totals[going] + earned
        totals[going], said = sums, np.isfinite(sums)
        if not said.all():  # nor is a sum that overflows good for anything
            totals[going[~said]] = -np.inf
            going, after = going[said], after[said]
        seen.append(after)
        path += [after[0]] if going.size and going[0] == 0 else []
        on = ~task.terminal(after)
        ended[going[~on]], last[going] = True, earned[said] if not said.all() else earned
        falling = falling and bool((earned <= 0.0).all())
        if give_up is not None and falling and on.any():
            on &= ~_given_up(give_up, totals, going[on], repeats)[going % len(starts.states)]
        going, states = (going, after) if on.all() else (going[on], after[on])
    gone, aimed = (np.concatenate(seen), starts.weights, np.array(path)), _aimed(totals, steps, last, ended)
    if noisy is None:
        return Rehearsal(totals, *gone, costs=falling, steps=steps, aimed=aimed)
    each = totals.reshape(repeats, -1)  # by noise, by start
    with np.errstate(invalid="ignore"):
        spreads = np.nan_to_num(each.std(axis=0, ddof=1), nan=np.inf)
    taken = steps.reshape(each.shape).mean(axis=0)
    aimed = np.asarray(aimed.reshape(each.shape).all(axis=0))
    return Rehearsal(each.mean(axis=0), *gone, spreads, each.min(axis=0), steps=taken, aimed=aimed)


def _aimed(totals: FloatArray, steps: FloatArray, last: FloatArray, ended: BoolArray) -> BoolArray:
    """Which episodes ended where it is good to end: the last reward is no worse than the costs before.

    Whoever falls pays for it, or was paid for every step before.  [n]
    """
    before, count = totals - last, np.maximum(steps - 1.0, 1.0)
    usual = np.where(steps > 1.0, before / count, last)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            ended & np.isfinite(totals) & (usual <= 0.0) & (last >= usual - SAME * np.abs(usual))
        )


def _given_up(give_up: GiveUp, totals: FloatArray, going: IntArray, repeats: int) -> BoolArray:
    """Which starts need not be gone on with: what their paths have come to so far is a mean of `repeats`."""
    over = np.ones(len(totals), dtype=np.bool_)
    over[going] = False
    by_start = np.asarray(over.reshape(repeats, -1).all(axis=0))
    return give_up(totals.reshape(repeats, -1).mean(axis=0), by_start)


def by_rows(
    ask: Callable[..., NDArray[Any]], nothing: float | list[float], *arrays: NDArray[Any]
) -> NDArray[Any]:
    """What `ask` says of rows [n, ...]; `nothing` for those of which it cannot say anything.  [n, ...]"""
    try:
        return ask(*arrays)
    except ValueError:
        n_rows = len(arrays[0])
        if n_rows == 1:
            return np.array([nothing])
    rows = [slice(row, row + 1) for row in range(n_rows)]
    return np.concatenate([by_rows(ask, nothing, *(array[row] for array in arrays)) for row in rows])


class Expectation(float):
    """A total that is expected, a number, with an interval where there is one: `low` and `high`.

    With noise there is a `spread` of single episodes, too, a standard deviation.
    """

    low: float | None
    high: float | None
    spread: float | None

    def __new__(
        cls,
        total: float,
        low: float | None = None,
        high: float | None = None,
        spread: float | None = None,
    ) -> Self:
        """Of a total and, if known, what it lies between, and how single episodes differ from it."""
        made = super().__new__(cls, total)
        made.low = low if low is not None and np.isfinite(low) else None
        made.high = high if high is not None and np.isfinite(high) else None
        made.spread = spread if spread is not None and np.isfinite(spread) else None
        return made

    def record(self) -> dict[str, float | None]:
        """As JSON says it: what is not finite is not said."""
        total = float(self) if np.isfinite(self) else None
        noisy = {} if self.spread is None else {"spread": self.spread}
        return {"expected": total, "low": self.low, "high": self.high, **noisy}

    @classmethod
    def recorded(cls, said: Mapping[str, float | None]) -> Self:
        """The opposite of `record`: what was not said is the worst."""
        total = said["expected"]
        return cls(-np.inf if total is None else total, said["low"], said["high"], said.get("spread"))


def better(challenger: Rehearsal, kept: Rehearsal) -> bool:
    """Whether the challenger promises clearly more, also against the scatter over the starts."""
    if not (np.isfinite(kept.total) and np.isfinite(challenger.total)):
        return challenger.total > kept.total
    gains, weights = challenger.totals - kept.totals, kept.weights
    gain = float(weights @ gains)
    luck = float(np.sqrt(weights @ (gains - gain) ** 2 * (weights @ weights)))
    return gain > max(BETTER * abs(kept.total), luck)


def from_around(task: Task, seen: FloatArray) -> Starts:
    """Starts to rehearse from: kinds of those that were `seen` [n, d], then some that are nearly the same.

    What earns most from exactly one place may be luck; from places nearby, too, it hardly is. Still an
    episode will begin where others began: those count as much as all around them.
    """
    kinds = kinds_of(seen, task.box)
    stream = np.random.default_rng(AROUND_SEED)
    offsets = stream.uniform(-1.0, 1.0, size=(MOST_STARTS - len(kinds), task.box.n_dims))
    near = kinds[np.arange(len(offsets)) % len(kinds)] + offsets * AROUND * task.box.widths
    near = task.box.clip(near)
    near = near[~task.terminal(near)] if len(near) else near
    weights = np.repeat([1.0 / len(kinds), 1.0 / max(len(near), 1)], [len(kinds), len(near)])
    return Starts(np.concatenate([kinds, near]), weights / weights.sum(), len(kinds))


def kinds_of(starts: FloatArray, box: Box, most: int = MOST_STARTS) -> FloatArray:
    """At most so many of `starts` [n, d], as different as can be: the last seen first, then the farthest."""
    chosen = [len(starts) - 1]
    while len(chosen) < most:
        gaps = box.displacement(starts[chosen], starts[:, np.newaxis]) / box.widths
        nearest = (gaps**2).sum(axis=2).min(axis=1)
        if nearest.max() == 0.0:
            break
        chosen.append(int(nearest.argmax()))
    return np.asarray(starts[chosen])
