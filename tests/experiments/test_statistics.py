"""Statistics over seeds, against rliable, scipy, all resamples written out, and a known distribution."""

from __future__ import annotations

from itertools import product
from math import erf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu, trim_mean

from optimist.arrays import FloatArray
from optimist.experiments import statistics
from optimist.experiments.statistics import (
    Improvement,
    Interval,
    Near,
    median_transitions,
    probability_of_improvement,
    summarise,
    transitions_until_near,
)
from tests.experiments import make_rliable_reference as reference
from tests.experiments.make_rliable_reference import OURS, THEIRS

# Printed by tests.experiments.make_rliable_reference.
RLIABLE_POINTS = {
    "iqm": -85.16666666666667,
    "median": -87.5,
    "improvement": 0.51875,
}
RLIABLE_INTERVALS = {  # of 50,000 resamples
    "iqm": (-99.66666666666667, -66.33333333333333),
    "median": (-103.0, -59.0),
    "improvement": (0.225, 0.7875),
}
FEW = 200  # resamples, where their number does not matter
ROUNDING = 1e-9


def our_results(n_resamples: int, *, seed: int = 1) -> dict[str, tuple[float, Interval]]:
    summary = summarise(OURS, seed=seed, n_resamples=n_resamples)
    improvement = probability_of_improvement(OURS, THEIRS, seed=seed, n_resamples=n_resamples)
    return {
        "iqm": (float(summary.iqm[0]), summary.iqm_interval),
        "median": (float(summary.median[0]), summary.median_interval),
        "improvement": (float(improvement.probability[0]), improvement.interval),
    }


def test_points_are_those_of_rliable() -> None:
    found = {name: point for name, (point, _) in our_results(FEW).items()}
    assert found == pytest.approx(RLIABLE_POINTS, rel=1e-14)


def test_the_stored_points_are_what_rliable_says() -> None:
    pytest.importorskip("rliable")
    assert reference.points() == pytest.approx(RLIABLE_POINTS, rel=1e-14)


@pytest.mark.parametrize("name", RLIABLE_INTERVALS)
def test_intervals_are_those_of_rliable_within_sampling_error(name: str) -> None:
    _, interval = our_results(20_000)[name]
    low, high = RLIABLE_INTERVALS[name]
    allowed = 0.02 * (high - low)  # a quantile of 20,000 draws scatters by about 0.005 times the width
    assert interval.low[0] == pytest.approx(low, abs=allowed)
    assert interval.high[0] == pytest.approx(high, abs=allowed)


@pytest.mark.parametrize("n_seeds", range(2, 14))
def test_points_are_those_of_scipy_and_numpy(n_seeds: int) -> None:
    totals = np.random.default_rng(n_seeds).normal(size=(n_seeds, 5))
    summary = summarise(totals, seed=0, n_resamples=FEW)
    np.testing.assert_allclose(summary.iqm, trim_mean(totals, 0.25, axis=0), rtol=1e-13)
    np.testing.assert_array_equal(summary.median, np.median(totals, axis=0))
    np.testing.assert_allclose(summary.mean, totals.mean(axis=0), rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(summary.worst, totals.min(axis=0))
    assert summary.n_seeds == n_seeds


@pytest.mark.parametrize(("n_ours", "n_theirs"), [(5, 8), (9, 4)])
def test_the_probability_is_that_of_mann_and_whitney(n_ours: int, n_theirs: int) -> None:
    stream = np.random.default_rng(3)
    a, b = (stream.integers(0, 6, size=(n, 7)).astype(float) for n in (n_ours, n_theirs))
    share = mannwhitneyu(a, b, axis=0).statistic / (n_ours * n_theirs)
    found = probability_of_improvement(a, b, seed=0, n_resamples=FEW)
    np.testing.assert_allclose(found.probability, share, rtol=1e-14)


# All resamples, written out: the bootstrap's own distribution, without chance.

SMALL = np.array([[-7.0], [1.0], [4.0], [2.5]])
SMALL_OTHER = np.array([[-6.0], [3.0], [1.0]])


def all_resamples(scores: FloatArray) -> list[FloatArray]:
    return [np.array(drawn) for drawn in product(scores[:, 0], repeat=len(scores))]


def slow_share(a: FloatArray, b: FloatArray) -> float:
    return float(np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b]))


def assert_is_quantile(value: float, values: FloatArray, share: float) -> None:
    """`value` cuts off this share of the values, or as near to it as they let it."""
    slack = 0.004  # 4 standard deviations of the share among 40,000 draws
    assert np.mean(values < value - ROUNDING) <= share + slack
    assert np.mean(values <= value + ROUNDING) >= share - slack


def assert_is_interval(interval: Interval, values: FloatArray) -> None:
    assert_is_quantile(float(interval.low[0]), values, 0.025)
    assert_is_quantile(float(interval.high[0]), values, 0.975)


def test_intervals_are_quantiles_of_all_resamples() -> None:
    summary = summarise(SMALL, seed=2, n_resamples=40_000)
    drawn = all_resamples(SMALL)
    assert len(drawn) == 4**4
    assert_is_interval(summary.median_interval, np.array([np.median(x) for x in drawn]))
    assert_is_interval(summary.iqm_interval, np.array([trim_mean(x, 0.25) for x in drawn]))


def test_the_interval_of_the_probability_is_quantiles_of_all_resamples() -> None:
    found = probability_of_improvement(SMALL, SMALL_OTHER, seed=2, n_resamples=40_000)
    drawn = product(all_resamples(SMALL), all_resamples(SMALL_OTHER))
    assert_is_interval(found.interval, np.array([slow_share(a, b) for a, b in drawn]))


# A known distribution: every column is an experiment of its own.

EXPERIMENTS = 2000


def coverage(interval: Interval, truth: float) -> float:
    return float(np.mean((interval.low <= truth) & (truth <= interval.high)))


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    totals = np.random.default_rng(7).normal(size=(60, EXPERIMENTS))
    summary = summarise(totals, seed=1, n_resamples=500)
    assert 0.91 < coverage(summary.iqm_interval, 0.0) < 0.97
    assert 0.91 < coverage(summary.median_interval, 0.0) < 0.97


def test_the_interval_of_the_probability_covers_the_truth_about_as_often_as_it_says() -> None:
    stream = np.random.default_rng(8)
    a, b = stream.normal(size=(20, EXPERIMENTS)) + 0.5, stream.normal(size=(30, EXPERIMENTS))
    truth = 0.5 * (1.0 + erf(0.5 / 2.0))  # of a - b > 0, which is normal with variance 2
    found = probability_of_improvement(a, b, seed=1, n_resamples=500)
    assert found.probability.mean() == pytest.approx(truth, abs=0.01)
    assert 0.91 < coverage(found.interval, truth) < 0.97


def test_ten_seeds_cover_somewhat_less() -> None:
    totals = np.random.default_rng(9).normal(size=(10, EXPERIMENTS))
    assert 0.85 < coverage(summarise(totals, seed=1, n_resamples=500).iqm_interval, 0.0) < 0.96


# Properties.

rewards = st.one_of(st.integers(-5, 5).map(float), st.floats(-1e4, 1e4, allow_subnormal=False))


def scores_of(n_episodes: int) -> st.SearchStrategy[FloatArray]:
    seeds = st.integers(2, 12)
    return seeds.flatmap(lambda n_seeds: arrays(np.float64, (n_seeds, n_episodes), elements=rewards))


scores = scores_of(2)
seeds = st.integers(0, 2**32)


def numbers(summary: statistics.Summary) -> FloatArray:
    intervals = (summary.median_interval, summary.iqm_interval)
    ends = [end for interval in intervals for end in (interval.low, interval.high)]
    return np.array([summary.median, summary.iqm, summary.mean, summary.worst, *ends])


def compared(a: FloatArray, b: FloatArray, seed: int) -> Improvement:
    return probability_of_improvement(a, b, seed=seed, n_resamples=FEW)


@given(scores, seeds)
def test_the_order_of_seeds_does_not_matter(totals: FloatArray, seed: int) -> None:
    mixed = np.random.default_rng(seed).permutation(totals)
    one, other = (summarise(these, seed=seed, n_resamples=FEW) for these in (totals, mixed))
    np.testing.assert_array_equal(numbers(one), numbers(other))
    against = totals[::-1] + 1.0
    first, second = compared(totals, against, seed), compared(mixed, against, seed)
    np.testing.assert_array_equal(first.probability, second.probability)
    np.testing.assert_array_equal(first.interval.low, second.interval.low)
    np.testing.assert_array_equal(first.interval.high, second.interval.high)


@given(scores, seeds, st.floats(-1e4, 1e4), st.floats(1e-2, 1e2))
def test_numbers_move_and_scale_with_the_scores(
    totals: FloatArray, seed: int, shift: float, scale: float
) -> None:
    moved = shift + scale * totals
    one, other = (summarise(these, seed=seed, n_resamples=FEW) for these in (totals, moved))
    np.testing.assert_allclose(numbers(other), shift + scale * numbers(one), rtol=1e-9, atol=1e-7)


@given(scores, seeds)
def test_the_intervals_hold_the_points(totals: FloatArray, seed: int) -> None:
    summary = summarise(totals, seed=seed, n_resamples=FEW)
    for point, interval in (
        (summary.median, summary.median_interval),
        (summary.iqm, summary.iqm_interval),
    ):
        assert (interval.low <= point + ROUNDING).all()
        assert (point <= interval.high + ROUNDING).all()


@given(scores, seeds)
def test_the_interquartile_mean_lies_between_the_quartiles(totals: FloatArray, seed: int) -> None:
    summary = summarise(totals, seed=seed, n_resamples=FEW)
    low, high = np.percentile(totals, [25, 75], axis=0)
    assert (low - ROUNDING <= summary.iqm).all()
    assert (summary.iqm <= high + ROUNDING).all()
    assert (summary.worst <= summary.median).all()


@given(scores, scores, seeds)
def test_one_improves_where_the_other_does_not(a: FloatArray, b: FloatArray, seed: int) -> None:
    forth, back = compared(a, b, seed), compared(b, a, seed)
    np.testing.assert_allclose(forth.probability + back.probability, 1.0, rtol=1e-12)
    for found in (forth, back):
        assert (found.interval.low <= found.probability + ROUNDING).all()
        assert (found.probability <= found.interval.high + ROUNDING).all()
        assert (found.interval.low >= -ROUNDING).all()
        assert (found.interval.high <= 1.0 + ROUNDING).all()


@given(rewards, st.integers(2, 40), seeds)
@hypothesis_settings(max_examples=30)
def test_scores_all_the_same_have_no_width(reward: float, n_seeds: int, seed: int) -> None:
    totals = np.full((n_seeds, 3), reward)
    found = numbers(summarise(totals, seed=seed, n_resamples=FEW))
    np.testing.assert_allclose(found, reward, rtol=1e-13)
    draw, won = compared(totals, totals, seed), compared(totals, totals - 1.0, seed)
    for probability, improvement in ((0.5, draw), (1.0, won)):
        ends = [improvement.probability, improvement.interval.low, improvement.interval.high]
        np.testing.assert_allclose(ends, probability, rtol=1e-13)


def test_two_seeds_reach_from_one_to_the_other() -> None:
    summary = summarise(np.array([[-1.0], [3.0]]), seed=0)
    assert numbers(summary)[:, 0].tolist() == [1.0, 1.0, 1.0, -1.0, -1.0, 3.0, -1.0, 3.0]


def test_many_episodes_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = np.random.default_rng(0).normal(size=(10, 50))
    at_once, compared_at_once = summarise(totals, seed=0), compared(totals, -totals, 0)
    monkeypatch.setattr(statistics, "MOST_DRAWN", 50_000)
    np.testing.assert_allclose(numbers(summarise(totals, seed=0)), numbers(at_once), rtol=1e-12)
    again = compared(totals, -totals, 0)
    np.testing.assert_allclose(again.interval.low, compared_at_once.interval.low, rtol=1e-12)


def test_the_bootstrap_is_seeded() -> None:
    totals = np.random.default_rng(0).normal(size=(10, 4))
    one, again, other = (numbers(summarise(totals, seed=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        (np.zeros((1, 5)), "`totals` must have at least two seeds for an interval; got 1."),
        (np.zeros(5), "`totals` must have shape [n_seeds, n_episodes]; got [5]."),
        (np.zeros((5, 0)), "`totals` must have shape [n_seeds, n_episodes]; got [5, 0]."),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "`totals` must be finite; got nan in row 1, column 1."),
    ],
)
def test_scores_that_will_not_do_are_refused(totals: FloatArray, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared
        summarise(totals, seed=0)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (np.zeros((3, 2)), np.zeros((1, 2)), "`b` must have at least two seeds for an interval; got 1."),
        (np.zeros((3, 2)), np.zeros((3, 4)), "`a` and `b` must have as many episodes; got 2 and 4."),
    ],
)
def test_agents_that_cannot_be_compared_are_refused(a: FloatArray, b: FloatArray, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared
        probability_of_improvement(a, b, seed=0)
    assert str(refused.value) == said


def test_no_resamples_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`n_resamples` must be at least 1; got 0\."):
        summarise(np.zeros((3, 2)), seed=0, n_resamples=0)


# Transitions until near the best.


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        ("", Near(None, None, None)),
        ("....", Near(None, None, None)),
        ("x...", Near(10, None, None)),
        ("...x", Near(40, None, 40)),
        (".x.xx", Near(20, None, 40)),
        ("x.xxx.x", Near(10, 30, 70)),
        ("x.xxxx", Near(10, 30, 30)),
        ("xxx", Near(10, 10, 10)),
        ("xx.xxx.", Near(10, 40, None)),
    ],
)
def test_near_for_the_first_time_lasting_and_for_good(near: str, expected: Near) -> None:
    totals = np.array([-105.0 if flag == "x" else -105.1 for flag in near])
    transitions = 10 * np.arange(1, len(near) + 1)
    assert transitions_until_near(totals, transitions, -100.0) == expected


@pytest.mark.parametrize(("best", "bar"), [(-100.0, -105.0), (100.0, 95.0), (0.0, 0.0)])
def test_near_is_a_share_of_the_size_of_the_best(best: float, bar: float) -> None:
    found = transitions_until_near(np.array([bar - 1e-6, bar]), np.array([7, 9]), best, window=1)
    assert found == Near(9, 9, 9)


def slow_near(near: list[bool], window: int) -> list[int | None]:
    episodes = range(len(near))
    first = (start for start in episodes if near[start])
    lasting = (start for start in episodes if near[start : start + window] == [True] * window)
    for_good = (start for start in episodes if all(near[start:]))
    return [next(first, None), next(lasting, None), next(for_good, None)]


@given(st.lists(st.booleans(), max_size=12), st.integers(1, 5))
def test_near_is_what_the_words_say(near: list[bool], window: int) -> None:
    totals = np.where(near, 1.0, -1.0)
    found = transitions_until_near(totals, np.arange(len(near)), 0.0, window=window)
    assert [found.first, found.lasting, found.for_good] == slow_near(near, window)


@pytest.mark.parametrize(
    ("totals", "transitions", "options", "said"),
    [
        ([1.0], [1, 2], {}, r"two lists of equal length; got shapes \[1\] and \[2\]\."),
        ([1.0, np.nan], [1, 2], {}, r"`totals` must be finite; got nan\."),
        ([1.0, 1.0], [2, 1], {}, r"`transitions` must not decrease; got \[2, 1\]\."),
        ([1.0], [1], {"share": -0.1}, r"`share` at least 0; got 1\.0 and -0\.1\."),
        ([1.0], [1], {"window": 0}, r"`window` must be at least 1; got 0\."),
    ],
)
def test_runs_that_will_not_do_are_refused(
    totals: list[float], transitions: list[int], options: dict[str, float], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        transitions_until_near(np.array(totals), np.array(transitions), 1.0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5], 5.0),
        ([None], None),
        ([300, None, 100], 300.0),
        ([None, None, 100], None),
        ([400, 100, 200, 300], 250.0),
        ([100, 200, 300, None], 250.0),
        ([100, 200, None, None], None),
        ([None, None], None),
    ],
)
def test_a_run_that_never_gets_there_counts_as_the_longest(
    counts: list[int | None], expected: float | None
) -> None:
    assert median_transitions(counts) == expected


def test_the_median_of_no_runs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`counts` must have at least one run; got none\."):
        median_transitions([])
