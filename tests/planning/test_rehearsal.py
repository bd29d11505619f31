"""Plans followed in imagination, against following them for real."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import Actions, BoolArray, FloatArray, IntArray
from optimist.box import Box
from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.planning import Planner, Rehearsal, rehearse, roll_out
from optimist.planning.rehearsal import MOST_STARTS, Expectation, Starts, better, from_around, kinds_of
from optimist.steps import imagined_through, known
from optimist.task import Task

BOX = Box([-np.pi, -2.0], [np.pi, 2.0], periodic=[True, False])


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    rates = 0.97 * states[:, 1] + 0.2 * np.sin(states[:, 0]) + 0.15 * controls[:, 0]
    return BOX.wrap(np.column_stack([states[:, 0] + 0.2 * rates, rates]))


def effort(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - 0.3 * next_states[:, 1] ** 2 - 0.1 * controls[:, 0] ** 2 + 0.2 * np.cos(states[:, 0])


def upright(states: FloatArray) -> BoolArray:
    done: BoolArray = np.cos(states[:, 0]) < -0.8
    return done


TASK = Task(BOX, np.array([-1.0, 0.0, 1.0]), effort, 0.95, 0.0, upright, max_steps=30)
STARTS = np.random.default_rng(0).uniform(BOX.low, BOX.high, (40, 2))
ALIKE = Starts.alike(STARTS)


@dataclass(frozen=True)
class Pushing:
    """Some policy: with the motion, or not at all where it is slow."""

    def greedy(self, states: FloatArray) -> Actions:
        return np.where(np.abs(states[:, 1]) < 0.1, 1, np.where(states[:, 1] > 0.0, 2, 0))


def truly(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
    return swing(states, controls)


# --- the same as for real ------------------------------------------------------------------------------


def test_imagined_through_the_dynamics_themselves_totals_are_those_of_real_episodes() -> None:
    found, expected = rehearse(TASK, Pushing(), truly, ALIKE), roll_out(TASK, swing, Pushing(), STARTS)
    assert expected.terminated.any()
    assert not expected.terminated.all()
    np.testing.assert_array_equal(found.totals, expected.total_rewards)
    assert found.total == pytest.approx(expected.total_rewards.mean(), rel=1e-12)
    visited = expected.paths[np.isfinite(expected.paths).all(axis=2)]
    np.testing.assert_array_equal(np.sort(found.states, axis=0), np.sort(visited, axis=0))


@dataclass
class Counting:
    """Counts the steps that were imagined."""

    n_steps: int = 0

    def __call__(self, states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        self.n_steps += len(states)
        return swing(states, controls)


@pytest.mark.parametrize("share", [1.2, 1.0])
def test_who_can_still_win_is_followed_to_the_end(share: float) -> None:
    whole = rehearse(TASK, Pushing(), truly, ALIKE)
    other = Rehearsal(np.full(40, share * whole.total), STARTS, ALIKE.weights)
    np.testing.assert_array_equal(rehearse(TASK, Pushing(), truly, ALIKE, against=other).totals, whole.totals)


def test_who_has_lost_is_given_up_and_still_has_lost() -> None:
    whole, every, some = rehearse(TASK, Pushing(), truly, ALIKE), Counting(), Counting()
    rehearse(TASK, Pushing(), every, ALIKE)
    other = Rehearsal(np.full(40, 0.5 * whole.total), STARTS, ALIKE.weights)
    found = rehearse(TASK, Pushing(), some, ALIKE, against=other)
    assert whole.total < found.total < other.total
    assert not better(found, other)
    assert some.n_steps < 0.8 * every.n_steps


def test_nobody_is_given_up_where_something_is_to_be_won() -> None:
    """What was lost on the way may be earned back, whether or not the task says so."""

    def swings(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return effort(states, controls, next_states) + 3.0 * (np.abs(next_states[:, 1]) > 1.0)

    for task in (replace(TASK, optimistic_value=1.0), replace(TASK, reward=swings)):
        whole = rehearse(task, Pushing(), truly, ALIKE)
        other = Rehearsal(np.full(40, whole.total + 1.0), STARTS, ALIKE.weights)
        found = rehearse(task, Pushing(), truly, ALIKE, against=other)
        np.testing.assert_array_equal(found.totals, whole.totals)


def test_it_is_said_whether_all_that_was_earned_were_costs() -> None:
    assert rehearse(TASK, Pushing(), truly, ALIKE).costs

    def prized(states: FloatArray, controls: FloatArray, after: FloatArray) -> FloatArray:
        return effort(states, controls, after) + 5.0 * upright(after)

    assert not rehearse(replace(TASK, reward=prized), Pushing(), truly, ALIKE).costs
    assert not rehearse(replace(TASK, optimistic_value=1.0), Pushing(), truly, ALIKE).costs


def test_from_a_single_start_it_is_the_same_as_from_many() -> None:
    together = rehearse(TASK, Pushing(), truly, ALIKE).totals
    alone = [rehearse(TASK, Pushing(), truly, Starts.alike(start[np.newaxis])).total for start in STARTS]
    np.testing.assert_array_equal(together, alone)


def test_who_imagines_is_told_which_start_a_state_belongs_to() -> None:
    """Each start with a model of its own: as if each were rehearsed with it alone."""
    drifts = np.random.default_rng(1).normal(scale=0.05, size=len(STARTS))

    def imagined(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        assert len(rows) == len(states) == len(controls)
        return BOX.wrap(swing(states, controls) + drifts[rows, np.newaxis])

    found = rehearse(TASK, Pushing(), imagined, ALIKE)
    for row in range(0, len(STARTS), 5):

        def drifting(states: FloatArray, controls: FloatArray, drift: float = drifts[row]) -> FloatArray:
            return BOX.wrap(swing(states, controls) + drift)

        expected = roll_out(TASK, drifting, Pushing(), STARTS[row : row + 1])
        assert found.totals[row] == pytest.approx(expected.total_rewards[0], rel=1e-12)


def test_starts_that_have_ended_earn_nothing() -> None:
    starts = np.array([[np.pi, 0.0], [0.0, 0.5], [-3.1, 1.0]])
    asked = []

    def imagined(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        asked.append(rows.tolist())
        return swing(states, controls)

    found = rehearse(TASK, Pushing(), imagined, Starts.alike(starts))
    assert found.totals[0] == found.totals[2] == 0.0
    assert found.totals[1] < 0.0
    assert all(rows == [1] for rows in asked)
    ended = Starts.alike(starts[[0, 2]])
    assert rehearse(TASK, Pushing(), imagined, ended).totals.tolist() == [0.0, 0.0]


def test_starts_are_not_changed_and_angles_are_wrapped() -> None:
    starts = np.array([[0.3 + 2.0 * np.pi, 0.5]])
    kept = starts.copy()
    turned = rehearse(TASK, Pushing(), truly, Starts.alike(starts))
    np.testing.assert_array_equal(starts, kept)
    straight = Starts.alike(np.array([[0.3, 0.5]]))
    assert turned.total == pytest.approx(rehearse(TASK, Pushing(), truly, straight).total)


def test_the_total_is_the_mean_over_the_starts_as_each_of_them_counts() -> None:
    weights = np.random.default_rng(2).dirichlet(np.ones(len(STARTS)))
    found = rehearse(TASK, Pushing(), truly, Starts(STARTS, weights, len(STARTS)))
    np.testing.assert_array_equal(found.totals, rehearse(TASK, Pushing(), truly, ALIKE).totals)
    np.testing.assert_array_equal(found.weights, weights)
    assert found.total == pytest.approx(np.average(found.totals, weights=weights), rel=1e-12)


# --- models that break ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e9, -1e5])
@pytest.mark.parametrize("after", [0, 3])
def test_a_path_that_leaves_all_bounds_is_worth_minus_infinity(bad: float, after: int) -> None:
    calls = []

    def imagined(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        calls.append(0)
        broken = swing(states, controls)
        if len(calls) > after:
            broken[rows == 1, 1] = bad
        return broken

    starts = Starts.alike(np.array([[0.0, 0.5], [0.1, 0.2], [0.5, -0.5]]))
    found = rehearse(TASK, Pushing(), imagined, starts)
    sound = rehearse(TASK, Pushing(), truly, starts)
    assert found.totals[1] == found.total == -np.inf
    np.testing.assert_array_equal(found.totals[[0, 2]], sound.totals[[0, 2]])
    assert np.isfinite(found.states).all()


@pytest.mark.filterwarnings("error")
def test_a_model_that_explodes_breaks_nothing() -> None:
    def exploding(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        return np.exp(1e3 * np.abs(states))

    found = rehearse(TASK, Pushing(), exploding, ALIKE)
    live = ~upright(STARTS)
    assert (found.totals[live] == -np.inf).all()
    assert (found.totals[~live] == 0.0).all()


def test_once_no_path_is_left_nobody_is_asked_any_more() -> None:
    """Somebody's reward need not know what to do with no states at all."""

    def picky(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        assert len(states)
        return -np.ones(len(states))

    task = Task(BOX, TASK.controls, picky, 0.95, 0.0, upright, max_steps=5)
    starts = Starts.alike(np.zeros((2, 2)))
    found = rehearse(task, Pushing(), lambda s, u, rows: np.full_like(s, np.nan), starts)
    assert found.total == -np.inf


def blown_up(x: FloatArray) -> FloatArray:
    """More than can be said from 10 on, with a warning."""
    return np.exp(x**2 * 8.0)


def quietly_blown_up(x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return blown_up(x)


def unsaid(x: FloatArray) -> FloatArray:
    return np.where(np.abs(x) > 10.0, np.nan, x)


def refused(x: FloatArray) -> FloatArray:
    if (np.abs(x) > 10.0).any():
        raise ArithmeticError("Nobody goes there.")
    return x


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("said", [blown_up, quietly_blown_up, unsaid, refused])
def test_a_reward_that_cannot_be_said_where_the_model_goes_is_worth_minus_infinity(
    said: Callable[[FloatArray], FloatArray], sign: float
) -> None:
    """A model may go where no reward was meant to be asked for; however high it is, nobody is to go there."""
    task = Task(BOX, TASK.controls, lambda s, u, n: sign * said(n[:, 1]), 0.95, 0.0, max_steps=20)
    rates = []

    def growing(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        rates.append(2.0 * states[0, 1])
        return np.column_stack([states[:, 0], 2.0 * states[:, 1]])

    found = rehearse(task, Pushing(), growing, Starts.alike(np.array([[0.3, 1.0]])))
    assert found.total == -np.inf
    assert rates == [2.0, 4.0, 8.0, 16.0]
    assert np.abs(found.states).max() == 8.0  # as far as it could be said


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_looking_ahead_to_what_cannot_be_said_is_worth_minus_infinity_too(depth: int) -> None:
    """The same with the policy of a plan, which asks for rewards before anybody goes there."""
    line = Box([-1.0], [1.0])
    task = Task(line, np.array([-1.0, 1.0]), lambda s, u, n: -quietly_blown_up(n[:, 0]), 0.9, 0.0)
    made = Planner(task).plan(known(tripled, task.controls), Layout(Grid.uniform(line, [5]), depth=depth))
    found = rehearse(task, made.policy, imagined_through(tripled), Starts.alike(np.array([[0.9], [-7.0]])))
    assert found.totals.tolist() == [-np.inf, -np.inf]
    assert np.isfinite(found.states).all()


def tripled(states: FloatArray, controls: FloatArray) -> FloatArray:
    return 3.0 * states + 0.5 * controls


# --- which is better -----------------------------------------------------------------------------------


def of(*totals: float, weights: Sequence[float] | None = None) -> Rehearsal:
    """That came to these; every start counts the same unless told."""
    count = len(totals)
    counted = np.full(count, 1.0 / count) if weights is None else np.array(weights)
    return Rehearsal(np.array(totals), np.empty((0, 2)), counted)


def test_a_challenger_must_promise_clearly_more() -> None:
    assert better(of(-90.0), of(-100.0))
    assert not better(of(-100.0), of(-100.0))
    assert not better(of(-99.1), of(-100.0))  # nine thousandths
    assert better(of(-98.9), of(-100.0))  # eleven
    assert not better(of(-100.0), of(-90.0))
    assert better(of(5.0, 7.0), of(5.0, 5.0))
    assert better(of(1e-9), of(0.0))


def test_gains_from_a_single_start_and_losses_from_others_may_be_luck() -> None:
    """The same mean gain, once from everywhere, once from one start at the cost of the others."""
    kept = of(-100.0, -50.0, -100.0, -50.0)
    assert better(of(-95.0, -45.0, -95.0, -45.0), kept)  # however different the starts themselves are
    assert not better(of(-50.0, -60.0, -110.0, -60.0), kept)
    assert not better(of(-105.0, -55.0, -105.0, -55.0), kept)


def test_anything_is_better_than_a_model_that_broke_and_nothing_is_worse() -> None:
    broken = of(3.0, -np.inf)
    assert better(of(-1e9), broken)
    assert not better(broken, of(-1e9))
    assert not better(broken, broken)


def test_gains_count_as_much_as_their_starts() -> None:
    """A start that counts as much as all the others can make or break a challenger."""
    halves = [0.5, 1 / 6, 1 / 6, 1 / 6]
    kept = of(-100.0, -100.0, -100.0, -100.0, weights=halves)
    assert better(of(-90.0, -99.0, -99.0, -99.0, weights=halves), kept)
    assert not better(of(-100.9, -99.0, -99.0, -99.0, weights=halves), kept)  # 0.05 in all
    assert better(of(-100.9, -95.0, -95.0, -95.0, weights=halves), kept)  # 2.05
    mixed = -102.4, -97.0, -97.0, -97.0
    assert not better(of(*mixed, weights=halves), kept)  # 0.3
    assert better(of(*mixed), of(*kept.totals.tolist()))  # counted alike, 1.65, and that is hardly luck


@pytest.mark.parametrize(("gain", "wins"), [(6.1, False), (6.2, True)])
def test_scatter_counts_as_much_as_the_starts(gain: float, wins: bool) -> None:
    """Half of the weight gains 10 more, half 10 less: a deviation of 10, over 8/3 starts in effect."""
    weights = [0.5, 0.25, 0.25]
    kept = of(-100.0, -100.0, -100.0, weights=weights)
    gains = np.array([10.0, -10.0, -10.0]) + gain
    assert better(of(*(gains - 100.0).tolist(), weights=weights), kept) == wins


@settings(max_examples=60, deadline=None, database=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 6))
def test_better_is_what_a_naive_count_says(seed: int, count: int) -> None:
    stream = np.random.default_rng(seed)
    weights = stream.dirichlet(np.ones(count))
    totals = stream.normal(-100.0, 20.0, count)
    others = totals + stream.normal(1.0, 3.0, count)
    gain = sum(weight * (b - a) for weight, a, b in zip(weights, totals, others, strict=True))
    scatter = sum(
        weight * ((b - a) - gain) ** 2 for weight, a, b in zip(weights, totals, others, strict=True)
    )
    mean = sum(weight * a for weight, a in zip(weights, totals, strict=True))
    told = weights.tolist()
    found = better(of(*others.tolist(), weights=told), of(*totals.tolist(), weights=told))
    assert found == (gain > 0.01 * abs(mean) and gain > (scatter * (weights**2).sum()) ** 0.5)


# --- kinds of starts -----------------------------------------------------------------------------------

UNIT = Box([0.0, 0.0], [1.0, 1.0])


@settings(max_examples=40, deadline=None, database=None)
@given(seed=st.integers(0, 2**32 - 1), n_kinds=st.integers(1, 4), n_dims=st.integers(1, 4))
def test_all_kinds_of_starts_are_picked(seed: int, n_kinds: int, n_dims: int) -> None:
    """As many crowds as may be picked, each far from the others: one of every crowd."""
    stream = np.random.default_rng(seed)
    widths = stream.uniform(0.1, 100.0, n_dims)
    centres = widths * 10.0 * stream.permutation(np.arange(n_kinds))[:, np.newaxis]
    crowds = stream.integers(n_kinds, size=60)
    crowds[:n_kinds] = np.arange(n_kinds)
    starts = centres[crowds] + 0.01 * widths * stream.normal(size=(60, n_dims))
    found = kinds_of(starts, Box(np.zeros(n_dims), widths), most=n_kinds)
    nearest = np.abs((found[:, np.newaxis] - centres) / widths).sum(axis=2).argmin(axis=1)
    assert sorted(nearest.tolist()) == list(range(n_kinds))
    assert {row.tobytes() for row in found} <= {row.tobytes() for row in starts}
    np.testing.assert_array_equal(found[0], starts[-1])


def test_few_starts_are_all_picked_each_once() -> None:
    starts = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 5.0]])
    found = kinds_of(starts, UNIT)
    assert sorted(found.tolist()) == [[0.0, 5.0], [1.0, 2.0]]
    assert kinds_of(starts[:1], UNIT).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("count", [3, 10])
def test_a_start_that_was_seen_again_and_again_is_one_kind(count: int) -> None:
    starts = np.tile([1.0, 2.0], (count, 1))
    assert kinds_of(starts, UNIT).tolist() == [[1.0, 2.0]]


def test_how_different_starts_are_is_counted_in_widths_of_the_box() -> None:
    """Five of a hundred are less than a third of one."""
    starts = np.array([[55.0, 0.5], [50.0, 0.8], [50.0, 0.5]])
    found = kinds_of(starts, Box([0.0, 0.0], [100.0, 1.0]), most=2)
    assert found.tolist() == [[50.0, 0.5], [50.0, 0.8]]


@pytest.mark.parametrize("turns", [-1, 0, 2])
def test_starts_on_both_sides_of_the_seam_are_the_same_kind(turns: int) -> None:
    last, over, far = [np.pi - 0.01, 0.0], [-np.pi + 0.01 + 2.0 * np.pi * turns, 0.0], [1.5, 0.0]
    assert kinds_of(np.array([over, far, last]), BOX, most=2).tolist() == [last, far]
    apart = Box(BOX.low, BOX.high)  # without a seam
    assert kinds_of(np.array([[-np.pi + 0.01, 0.0], far, last]), apart, most=2)[1][0] < -3.0


@pytest.mark.parametrize("count", [1, 3, 10])
def test_starts_around_are_near_those_that_were_seen(count: int) -> None:
    seen = np.tile([0.3, 0.5], (count, 1))
    around, weights, n_seen = from_around(TASK, seen)
    assert len(around) == MOST_STARTS
    assert n_seen == 1
    np.testing.assert_array_equal(around[0], [0.3, 0.5])
    gaps = np.abs(around[1:] - [0.3, 0.5]) / BOX.widths
    assert (gaps > 0.0).all()
    assert gaps.max() < 0.02
    again = from_around(TASK, seen)
    np.testing.assert_array_equal(again.states, around)
    np.testing.assert_array_equal(again.weights, weights)


def test_what_never_ends_is_not_followed_for_ever() -> None:
    calls = []

    def counted(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        calls.append(len(states))
        return states

    endless = Task(BOX, TASK.controls, lambda s, u, n: np.full(len(s), -1.0), 0.9, 0.0, max_steps=10**12)
    heard = rehearse(endless, Pushing(), counted, Starts.alike(np.zeros((1, 2))))
    assert len(calls) == endless.imagined_steps == -heard.total == 1000


def test_starts_around_have_not_ended() -> None:
    edge = np.array([[np.arccos(-0.8) - 1e-6, 0.0]])
    around = from_around(TASK, edge).states
    assert not upright(around).any()


def test_many_kinds_of_starts_leave_no_room_for_others() -> None:
    around, weights, n_seen = from_around(TASK, STARTS)
    assert n_seen == MOST_STARTS
    assert len(around) == MOST_STARTS
    assert {row.tobytes() for row in around} <= {row.tobytes() for row in STARTS}
    assert weights.tolist() == [0.25, 0.25, 0.25, 0.25]


@pytest.mark.parametrize(
    ("n_seen", "weights"),
    [
        (1, [1 / 2, 1 / 6, 1 / 6, 1 / 6]),
        (2, [1 / 4, 1 / 4, 1 / 4, 1 / 4]),
        (3, [1 / 6, 1 / 6, 1 / 6, 1 / 2]),
        (4, [1 / 4, 1 / 4, 1 / 4, 1 / 4]),  # none around
        (9, [1 / 4, 1 / 4, 1 / 4, 1 / 4]),
    ],
)
def test_starts_that_were_seen_count_as_much_as_all_those_around_them(
    n_seen: int, weights: list[float]
) -> None:
    seen = np.column_stack([np.linspace(-1.0, 1.0, n_seen), np.zeros(n_seen)])
    found = from_around(TASK, seen)
    known_kinds = min(n_seen, MOST_STARTS)
    rows = {row.tobytes() for row in seen}
    assert [state.tobytes() in rows for state in found.states] == [
        row < known_kinds for row in range(MOST_STARTS)
    ]
    np.testing.assert_allclose(found.weights, weights, rtol=1e-15)


def test_where_all_around_has_ended_the_seen_start_is_all_there_is() -> None:
    def nearly_everywhere(states: FloatArray) -> BoolArray:
        ended: BoolArray = states[:, 0] != 0.3
        return ended

    task = Task(BOX, TASK.controls, effort, 0.95, 0.0, nearly_everywhere)
    found = from_around(task, np.array([[0.3, 0.5]]))
    assert found.states.tolist() == [[0.3, 0.5]]
    assert found.weights.tolist() == [1.0]


def test_where_some_around_has_ended_those_that_are_left_share_a_half() -> None:
    free = from_around(TASK, np.array([[0.3, 0.5]])).states
    middle = np.sort(free[1:, 0])[1]

    def to_the_right(states: FloatArray) -> BoolArray:
        ended: BoolArray = (states[:, 0] >= middle) & (states[:, 0] != 0.3)
        return ended

    task = Task(BOX, TASK.controls, effort, 0.95, 0.0, to_the_right)
    found = from_around(task, np.array([[0.3, 0.5]]))
    assert found.weights.tolist() == [0.5, 0.5]
    np.testing.assert_array_equal(found.states[1], free[1:][free[1:, 0] < middle][0])


@pytest.mark.parametrize("count", [1, 3, 7])
def test_starts_that_are_alike_count_the_same(count: int) -> None:
    found = Starts.alike(STARTS[:count])
    np.testing.assert_array_equal(found.states, STARTS[:count])
    np.testing.assert_array_equal(found.weights, 1.0 / count)


# --- expectations --------------------------------------------------------------------------------------


def test_an_expectation_is_a_number() -> None:
    expected = Expectation(-12.5, -20.0, -10.0)
    assert isinstance(expected, float)
    assert expected == -12.5
    assert expected + 1.0 == -11.5
    assert expected < 0.0
    assert f"{expected:.1f}" == "-12.5"
    assert json.dumps({"expected": expected}) == '{"expected": -12.5}'
    assert (expected.low, expected.high) == (-20.0, -10.0)
    assert (Expectation(3.0).low, Expectation(3.0).high) == (None, None)


@pytest.mark.parametrize(
    ("total", "low", "high"),
    [(-12.5, -20.0, -10.0), (1.0, None, None), (0.0, 0.0, 0.0), (-np.inf, None, None)],
)
def test_an_expectation_is_recorded_and_read_again(
    total: float, low: float | None, high: float | None
) -> None:
    written = json.dumps(Expectation(total, low, high).record(), allow_nan=False)
    again = Expectation.recorded(json.loads(written))
    assert again == total
    assert (again.low, again.high) == (low, high)


def test_what_is_not_finite_is_not_said() -> None:
    said = Expectation(-np.inf, -np.inf, 3.0).record()
    assert said == {"expected": None, "low": None, "high": 3.0}
    assert Expectation.recorded(said) == -np.inf
