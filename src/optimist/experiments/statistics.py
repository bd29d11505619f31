"""Statistics over seeds: what a few runs say about an agent, and how sure that is.

Scores are total rewards, an array [n_seeds, n_episodes] for every agent and problem; each episode is looked
at on its own.

The interquartile mean leaves out the lowest and the highest quarter of the scores: a single bad seed moves it
as little as the median, and it is less noisy. Intervals are percentile intervals of the bootstrap: draw as
many seeds as there are, with replacement; compute the statistic; repeat; cut off 2.5 % on either side
(Agarwal et al., Deep reinforcement learning at the edge of the statistical precipice, NeurIPS 2021). All is
as in rliable, save that its `aggregate_median` takes the mean over the seeds first; here the median is that
of all scores.

Seeds are drawn by their rank in an episode, not by their place in the array. For a single episode that is the
same draw, and the result does not depend on the order of the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray

N_RESAMPLES = 2000
TRIMMED = 0.25  # on either side
PERCENTILES = (2.5, 97.5)
NEAR = 0.05
WINDOW = 3  # episodes
MOST_DRAWN = 2**22  # numbers drawn at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Interval:
    """A 95 % interval for every episode."""

    low: FloatArray  # [n_episodes]
    high: FloatArray  # [n_episodes]


@dataclass(frozen=True, eq=False)
class Summary:
    """The scores of an agent, episode by episode."""

    n_seeds: int
    median: FloatArray  # [n_episodes]
    iqm: FloatArray  # [n_episodes], interquartile mean
    mean: FloatArray  # [n_episodes]
    worst: FloatArray  # [n_episodes]
    median_interval: Interval
    iqm_interval: Interval


@dataclass(frozen=True, eq=False)
class Improvement:
    """How probably a run of one agent beats a run of another, episode by episode."""

    probability: FloatArray  # [n_episodes]
    interval: Interval


@dataclass(frozen=True)
class Near:
    """Transitions when a run came near the best, at the end of the episode that did; None: never.

    `lasting` and `for_good` count up to the first episode of the stretch. A last episode that is near makes a
    stretch `for_good`, however short.
    """

    first: int | None  # for the first time
    lasting: int | None  # for several episodes in a row
    for_good: int | None  # and never left again


def summarise(totals: FloatArray, *, seed: int, n_resamples: int = N_RESAMPLES) -> Summary:
    """Summarise an agent's scores [n_seeds, n_episodes]; `seed` is that of the bootstrap."""
    ordered = _checked(totals, "totals")
    _require_resamples(n_resamples)
    median_interval, iqm_interval = _bootstrapped(ordered, seed, n_resamples)
    return Summary(
        n_seeds=ordered.shape[1],
        median=_middle(ordered),
        iqm=_middle_mean(ordered),
        mean=ordered.mean(axis=1),
        worst=ordered[:, 0],
        median_interval=median_interval,
        iqm_interval=iqm_interval,
    )


def probability_of_improvement(
    a: FloatArray, b: FloatArray, *, seed: int, n_resamples: int = N_RESAMPLES
) -> Improvement:
    """The probability that a run of `a` beats one of `b` (ties count half): Mann-Whitney's U over all pairs.

    `seed` is that of the bootstrap, which draws the seeds of `a` and of `b` independently.
    """
    ours, theirs = _checked(a, "a"), _checked(b, "b")
    _require_resamples(n_resamples)
    if len(ours) != len(theirs):
        raise ValueError(f"`a` and `b` must have as many episodes; got {len(ours)} and {len(theirs)}.")
    wins = _wins(ours, theirs)
    return Improvement(wins.mean(axis=(1, 2)), _bootstrapped_wins(wins, seed, n_resamples))


def transitions_until_near(
    totals: FloatArray,
    transitions: NDArray[np.integer],
    best: float,
    *,
    share: float = NEAR,
    window: int = WINDOW,
) -> Near:
    """How long one run took to come within a `share` of the `best` total, and to stay there.

    `totals` [n_episodes] are the run's totals, `transitions` [n_episodes] the transitions it had seen by the
    end of each episode; `lasting` wants `window` episodes in a row.
    """
    totals, transitions = np.asarray(totals, dtype=np.float64), np.asarray(transitions)
    _check_run(totals, transitions)
    if not (np.isfinite(best) and np.isfinite(share) and share >= 0.0):
        raise ValueError(f"`best` must be finite and `share` at least 0; got {best} and {share}.")
    if window < 1:
        raise ValueError(f"`window` must be at least 1; got {window}.")
    near = totals >= best - share * abs(best)
    starts, lengths = _stretches(near)

    def at(chosen: NDArray[np.bool_]) -> int | None:
        return int(transitions[starts[chosen][0]]) if chosen.any() else None

    return Near(at(lengths > 0), at(lengths >= window), at(starts + lengths == near.size))


def median_transitions(counts: Sequence[int | None]) -> float | None:
    """The median over runs, where None is a run that never got there; None if the median run never does.

    With an even number of runs both runs in the middle must have got there.
    """
    if not counts:
        raise ValueError("`counts` must have at least one run; got none.")
    median = float(np.median([np.inf if count is None else float(count) for count in counts]))
    return median if np.isfinite(median) else None


def _checked(scores: FloatArray, name: str) -> FloatArray:
    """Scores [n_seeds, n_episodes] as [n_episodes, n_seeds], every episode in increasing order."""
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(f"`{name}` must have shape [n_seeds, n_episodes]; got {list(scores.shape)}.")
    if len(scores) < 2:
        raise ValueError(f"`{name}` must have at least two seeds for an interval; got {len(scores)}.")
    bad = np.argwhere(~np.isfinite(scores))
    if bad.size:
        row, episode = bad[0]
        raise ValueError(
            f"`{name}` must be finite; got {scores[row, episode]} in row {row}, column {episode}."
        )
    return np.sort(scores.T, axis=1)


def _require_resamples(n_resamples: int) -> None:
    if n_resamples < 1:
        raise ValueError(f"`n_resamples` must be at least 1; got {n_resamples}.")


def _middle(ordered: FloatArray) -> FloatArray:
    """Median of the last axis, which is in increasing order."""
    n = ordered.shape[-1]
    middle: FloatArray = ordered[..., (n - 1) // 2 : n // 2 + 1].mean(axis=-1)
    return middle


def _middle_mean(ordered: FloatArray) -> FloatArray:
    """Interquartile mean of the last axis, which is in increasing order."""
    n = ordered.shape[-1]
    cut = int(TRIMMED * n)
    mean: FloatArray = ordered[..., cut : n - cut].mean(axis=-1)
    return mean


def _bootstrapped(ordered: FloatArray, seed: int, n_resamples: int) -> tuple[Interval, Interval]:
    """Intervals of the median and of the interquartile mean."""
    n_seeds = ordered.shape[1]
    ranks = np.random.default_rng(seed).integers(n_seeds, size=(n_resamples, n_seeds))
    medians, means = [], []
    for block in _blocks(len(ordered), n_resamples * n_seeds):
        drawn = np.sort(ordered[block][:, ranks], axis=-1)  # [block, n_resamples, n_seeds]
        medians.append(_percentiles(_middle(drawn)))
        means.append(_percentiles(_middle_mean(drawn)))
    return _joined(medians), _joined(means)


def _bootstrapped_wins(wins: FloatArray, seed: int, n_resamples: int) -> Interval:
    """Interval of the share of pairs won."""
    stream = np.random.default_rng(seed)
    ours, theirs = (_drawn_weights(stream, n, n_resamples) for n in wins.shape[1:])
    blocks = _blocks(len(wins), n_resamples * wins.shape[2])
    return _joined([_percentiles(((ours @ wins[block]) * theirs).sum(axis=-1)) for block in blocks])


def _wins(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """For every pair 1 if ours is higher, 0.5 if they tie, else 0; [n_episodes, n_ours, n_theirs]."""
    return 0.5 + 0.5 * np.sign(ours[:, :, np.newaxis] - theirs[:, np.newaxis, :])


def _drawn_weights(stream: np.random.Generator, n_seeds: int, n_resamples: int) -> FloatArray:
    """How often each seed is drawn, as a share; [n_resamples, n_seeds]."""
    ranks = stream.integers(n_seeds, size=(n_resamples, n_seeds))
    places = ranks + n_seeds * np.arange(n_resamples)[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=n_resamples * n_seeds)
    return counts.reshape(n_resamples, n_seeds) / n_seeds


def _blocks(n_episodes: int, n_drawn: int) -> Iterator[slice]:
    """Episodes a few at a time, so that many of them take no more memory."""
    step = max(1, MOST_DRAWN // n_drawn)
    return (slice(first, first + step) for first in range(0, n_episodes, step))


def _percentiles(values: FloatArray) -> FloatArray:
    """Of the last axis, [2, ...]."""
    ends: FloatArray = np.percentile(values, PERCENTILES, axis=-1)
    return ends


def _joined(blocks: list[FloatArray]) -> Interval:
    low, high = np.concatenate(blocks, axis=1)
    return Interval(low, high)


def _check_run(totals: FloatArray, transitions: NDArray[np.integer]) -> None:
    if totals.ndim != 1 or totals.shape != transitions.shape:
        raise ValueError(
            "`totals` and `transitions` must be two lists of equal length; "
            f"got shapes {list(totals.shape)} and {list(transitions.shape)}."
        )
    if not np.isfinite(totals).all():
        raise ValueError(f"`totals` must be finite; got {totals[~np.isfinite(totals)][0]}.")
    if (np.diff(transitions) < 0).any():
        raise ValueError(f"`transitions` must not decrease; got {transitions.tolist()}.")


def _stretches(flags: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the stretches of true flags begin, and how long they are."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).astype(np.int64)
    return edges[::2], edges[1::2] - edges[::2]
