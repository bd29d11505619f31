"""Sights against a plain loop that tries every one of them, and what is remembered of episodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optimist.arrays import Actions, FloatArray, IntArray
from optimist.box import Box
from optimist.discretisation import Layout
from optimist.filtering import Around, Filter
from optimist.grid import Grid
from optimist.planning import Planned, Planner, rehearse, roll_out
from optimist.planning.filtered import Memory
from optimist.planning.finalists import MANY, MOST
from optimist.planning.policy import Lookahead, QFunction, affordable_depth
from optimist.planning.rehearsal import Starts
from optimist.planning.sights import MOST_SIGHTS, Sights, remembered
from optimist.steps import REPEATS, Imagined, Noisy, imagined_through, known, shaken
from optimist.task import Task
from tests.naive.episodes import episode

BOX = Box([-np.pi, -6.0], [np.pi, 6.0], periodic=[True, False])
CONTROLS = np.array([-1.5, 0.0, 1.5])


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    """A pendulum too weak to go straight up: plans on few nodes err, and sights differ."""
    rate = states[:, 1] + 0.2 * (3.0 * np.sin(states[:, 0]) + controls[:, 0])
    return np.column_stack([BOX.wrap(np.column_stack([states[:, 0] + 0.2 * rate, rate]))[:, 0], rate])


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -(states[:, 0] ** 2) - 0.1 * states[:, 1] ** 2 - 0.01 * controls[:, 0] ** 2


TASK = Task(BOX, CONTROLS, cost, 0.97, 0.0, max_steps=40)
STARTS = np.column_stack([np.linspace(-3.0, 3.0, 9), np.linspace(1.0, -1.0, 9)])


@pytest.fixture(scope="module")
def made() -> Planned:
    return Planner(TASK).plan(known(swing, TASK.controls), Layout(Grid.uniform(BOX, [9, 9])))


@pytest.fixture(scope="module")
def sights(made: Planned) -> Sights:
    return Sights.of(made, imagined_through(swing))


def alone(sights: Sights, number: int, start: FloatArray) -> float:
    """What one sight earns, by a plain loop."""
    sight = sights.sights[number]
    return episode(TASK, swing, lambda state: int(sight.greedy(state[np.newaxis])[0]), start).total_reward


@pytest.fixture(scope="module")
def totals(sights: Sights) -> FloatArray:
    """What every sight earns from every start.  [n_sights, n_starts]"""
    return np.array(
        [[alone(sights, number, start) for start in STARTS] for number in range(len(sights.sights))]
    )


def test_there_is_every_sight_up_to_what_is_affordable(made: Planned, sights: Sights) -> None:
    depths = [sight.depth for sight in sights.sights if isinstance(sight, Lookahead)]
    most = affordable_depth(TASK.n_actions)
    assert depths == list(range(most, most - MOST_SIGHTS, -1))[:most]
    assert sights.depth == most
    np.testing.assert_array_equal(sights(STARTS), made.policy(STARTS))
    np.testing.assert_array_equal(sights.greedy(STARTS), made.policy.greedy(STARTS))


@pytest.mark.parametrize("depth", [0, 2])
def test_a_sight_that_is_fixed_is_the_only_one(depth: int) -> None:
    layout = Layout(Grid.uniform(BOX, [5, 5]), depth=depth)
    fixed = Sights.of(Planner(TASK).plan(known(swing, TASK.controls), layout), imagined_through(swing))
    assert len(fixed.sights) == 1
    assert fixed.depth == depth
    assert isinstance(fixed.sights[0], Lookahead if depth else QFunction)
    assert fixed.best_from(STARTS).tolist() == [0] * len(STARTS)


def test_from_every_start_the_best_is_taken_and_the_longest_of_equals(
    sights: Sights, totals: FloatArray
) -> None:
    best = sights.best_from(STARTS)
    for start, number, earned in zip(STARTS, best, totals.T, strict=True):
        assert earned[number] == pytest.approx(earned.max(), rel=1e-12)
        assert sights.looking_from(start) is sights.sights[number]
    assert len(set(best.tolist())) > 1  # or the test would show nothing
    still = sights.best_from(np.zeros((1, 2)))  # upright, at rest: whoever looks, nothing need be done
    assert still.tolist() == [0]


def test_of_two_plans_the_better_is_acted_on_from_every_start(made: Planned, sights: Sights) -> None:
    layout = Layout(Grid.uniform(BOX, [8, 9]))
    other = Planner(TASK).plan(known(swing, TASK.controls), layout)
    others = Sights.of(other, imagined_through(swing))
    both = Sights.of(made, imagined_through(swing), others=(None, other))
    assert [one.q_function for one in both.sights if isinstance(one, Lookahead)] == [
        *[made.q_function] * len(sights.sights),
        *[other.q_function] * len(others.sights),
    ]
    np.testing.assert_array_equal(both.greedy(STARTS), sights.greedy(STARTS))  # asked for an action only
    first, second = (roll_out(TASK, swing, one, STARTS).total_rewards for one in (sights, others))
    found = roll_out(TASK, swing, both, STARTS).total_rewards
    np.testing.assert_allclose(found, np.maximum(first, second), rtol=1e-12)
    assert set(both.best_from(STARTS) < len(sights.sights)) == {True, False}  # or it would show nothing


def test_episodes_are_followed_to_their_end_with_the_sight_they_began_with(
    sights: Sights, totals: FloatArray
) -> None:
    found, best = roll_out(TASK, swing, sights, STARTS).total_rewards, totals.max(axis=0)
    np.testing.assert_allclose(found, best, rtol=1e-12)
    heard = rehearse(TASK, sights, imagined_through(swing), Starts.alike(STARTS))
    np.testing.assert_allclose(heard.totals, best, rtol=1e-12)


def test_starts_that_repeat_are_tried_once_and_answered_alike(sights: Sights) -> None:
    again = np.concatenate([STARTS, STARTS[::-1], STARTS[:1]])
    best = sights.best_from(STARTS)
    assert sights.best_from(again).tolist() == [*best, *best[::-1], best[0]]


def test_a_start_that_was_tried_is_not_tried_again(made: Planned) -> None:
    asked = []

    def swinging(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        asked.append(len(states))
        return swing(states, controls)

    sights = Sights.of(made, swinging)
    first = sights.best_from(STARTS)
    assert asked
    asked.clear()
    assert sights.best_from(STARTS[::-1]).tolist() == first[::-1].tolist()
    assert sights.looking_from(STARTS[3]) is sights.sights[first[3]]
    assert not asked
    sights.best_from(STARTS[:2] + 0.01)
    assert asked


def test_what_the_longest_earns_is_not_found_out_twice(
    made: Planned, sights: Sights, totals: FloatArray
) -> None:
    steps = 0

    def counting(states: FloatArray, controls: FloatArray, _: IntArray) -> FloatArray:
        nonlocal steps
        steps += len(states)
        return swing(states, controls)

    heard = dict(zip((start.tobytes() for start in STARTS[::2]), totals[0, ::2].tolist(), strict=True))
    told = Sights.of(made, counting, heard=heard)
    assert told.best_from(STARTS).tolist() == sights.best_from(STARTS).tolist()
    known, steps = steps, 0
    Sights.of(made, counting).best_from(STARTS)
    assert known < steps - len(heard) * TASK.max_steps  # those of the longest, and of others that had lost
    lost = dict.fromkeys((start.tobytes() for start in STARTS), -np.inf)
    assert 0 not in Sights.of(made, counting, heard=lost).best_from(STARTS)


def test_not_more_is_remembered_than_there_is_room_for(
    sights: Sights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optimist.planning.sights.MOST_REMEMBERED", 4)
    fresh = replace(sights, remembered={})
    for starts in (STARTS[:3], STARTS[2:5], STARTS):
        assert fresh.best_from(starts).tolist() == sights.best_from(starts).tolist()
        assert len(fresh.remembered) <= 4


def test_where_the_model_goes_out_of_bounds_the_longest_sight_is_taken(made: Planned) -> None:
    lost = Sights.of(made, lambda states, controls, rows: np.full_like(states, np.nan))
    assert lost.best_from(STARTS).tolist() == [0] * len(STARTS)


def test_what_is_remembered_of_episodes_is_the_sight_they_began_with(sights: Sights) -> None:
    """As Stable-Baselines3 asks: flags where episodes begin, and what came with the last actions."""
    states, memory, count = STARTS, None, len(STARTS)
    totals = np.zeros(count)
    for number in range(TASK.max_steps):
        actions, memory = remembered(sights, states, memory, np.full(count, number == 0))
        controls = TASK.controls[actions]
        after = swing(states, controls)
        totals += TASK.rewards(states, controls, after)
        states = after
    np.testing.assert_allclose(totals, roll_out(TASK, swing, sights, STARTS).total_rewards, rtol=1e-12)


def test_without_a_word_about_episodes_the_longest_sight_is_taken(sights: Sights) -> None:
    actions, memory = remembered(sights, STARTS, None, None)
    assert actions.tolist() == sights.greedy(STARTS).tolist()
    assert isinstance(memory, np.ndarray)
    assert memory[:, 0].tolist() == [0] * len(STARTS)
    assert memory[:, 1].min() > TASK.max_steps  # nothing was promised


def test_a_policy_that_does_not_prepare_remembers_nothing(made: Planned) -> None:
    actions, memory = remembered(made.q_function, STARTS, None, True)
    assert actions.tolist() == made.q_function.greedy(STARTS).tolist()
    assert memory is None


@pytest.mark.parametrize(
    "memory",
    [[0], np.zeros(9, int), np.full((9, 3), 99), np.full((9, 3), -1), np.zeros((9, 3)), "nine", object()],
)
def test_a_memory_that_is_none_is_refused(sights: Sights, memory: object) -> None:
    with pytest.raises(ValueError, match="`state` must be what the last call returned; got"):
        remembered(sights, STARTS, memory, None)


@pytest.mark.parametrize("starts", [[True, False], np.ones(9), "yes", [None] * 9])
def test_flags_that_are_none_are_refused(sights: Sights, starts: object) -> None:
    with pytest.raises(ValueError, match="`episode_start` must be 9 flags, True or False; got"):
        remembered(sights, STARTS, None, starts)  # type: ignore[arg-type]


def test_the_sight_of_a_policy_can_be_changed_and_nothing_else(made: Planned) -> None:
    policy = made.policy
    assert isinstance(policy, Lookahead)
    assert policy.looking(policy.depth) is policy
    np.testing.assert_array_equal(policy.looking(2)(STARTS), replace(policy, depth=2)(STARTS))


def test_who_was_lucky_with_little_noise_is_tried_with_more() -> None:
    """One control never fails; the other earns more, unless noise is larger than in all the first tries."""
    shaking = Noisy(lambda states, controls, rows: np.zeros_like(states), np.ones(1))
    most = np.abs(shaking.noise_of(0)).max()
    assert (np.abs(replace(shaking, seed=1, repeats=MANY).noise_of(0)) > most).any()

    def paid(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        falls = np.abs(next_states[:, 0]) > most
        return np.where(controls[:, 0] > 0.0, np.where(falls, -100.0, 0.0), -0.5)

    task = Task(Box([-9.0], [9.0]), [0.0, 1.0], paid, 0.9, 0.0, max_steps=1)
    grid = Grid.uniform(task.box, [3])
    safe, risky = (QFunction(grid, np.tile(values, (3, 1))) for values in ([1.0, 0.0], [0.0, 1.0]))
    start = Starts.alike(np.zeros((1, 1)))
    assert rehearse(task, risky, shaking, start).total > rehearse(task, safe, shaking, start).total
    assert Sights(task, (safe, risky), shaking).best_from(start.states).tolist() == [0]
    assert Sights(task, (risky, safe), shaking).best_from(start.states).tolist() == [1]
    # where plans are compared, luck is let be; on the paths on which they are not compared
    lucky = np.abs(replace(shaking, seed=1).noise_of(0)).max() <= most
    rough = Sights(task, (safe, risky), shaking, rough=True)
    assert rough.best_from(start.states).tolist() == [int(lucky)]
    several = Sights(task, (safe, safe, risky, safe), shaking)
    assert several.best_from(start.states).tolist() == [0]


def farthest(seed: int) -> tuple[Noisy, float, float, float]:
    """Of the noise of all sights, of finalists, and of those between which chance decides."""
    shaking = Noisy(lambda states, controls, rows: np.zeros_like(states), np.ones(1), seed=seed)
    tries = (replace(shaking, seed=seed + k, repeats=n) for k, n in enumerate((REPEATS, MANY, MOST)))
    first, second, third = (float(np.abs(one.noise_of(0)).max()) for one in tries)
    return shaking, first, second, third


def test_bad_luck_that_is_rare_is_found_where_chance_decides() -> None:
    """One falls by more noise than in all tries of finalists; where it matters they are tried more often."""
    shaking, *both, _ = next(found for found in map(farthest, range(20)) if found[3] > max(found[1:3]))
    most = max(both)
    grid = Grid.uniform(Box([-9.0], [9.0]), [3])
    safe, risky = (QFunction(grid, np.tile(values, (3, 1))) for values in ([1.0, 0.0], [0.0, 1.0]))
    for least, best in ((0.0, 1), (100.0, 0)):  # of what both earn: chance is then a small part of it

        def paid(
            states: FloatArray, controls: FloatArray, after: FloatArray, least: float = least
        ) -> FloatArray:
            falls = np.where(np.abs(after[:, 0]) > most, -1000.0, 0.1)
            return after[:, 0] - least + np.where(controls[:, 0] > 0.0, falls, 0.0)

        task = Task(grid.box, [0.0, 1.0], paid, 0.9, 0.0, max_steps=1)
        chosen = Sights(task, (risky, safe), shaking).best_from(np.zeros((1, 1))).tolist()
        assert chosen == [best]


def test_who_left_all_bounds_once_is_not_asked_again() -> None:
    """It earns more than the other, on all paths but one."""
    shaking, first, second, third = next(
        found for found in map(farthest, range(20)) if found[2] > max(found[1], found[3])
    )
    limit = 0.5 * (second + max(first, third))

    def paid(states: FloatArray, controls: FloatArray, after: FloatArray) -> FloatArray:
        over = np.where(np.abs(after[:, 0]) > limit, np.inf, 0.3)
        return after[:, 0] + np.where(controls[:, 0] > 0.0, over, 0.0)

    grid = Grid.uniform(Box([-9.0], [9.0]), [3])
    safe, risky = (QFunction(grid, np.tile(values, (3, 1))) for values in ([1.0, 0.0], [0.0, 1.0]))
    task = Task(grid.box, [0.0, 1.0], paid, 0.9, 0.0, max_steps=1)
    assert Sights(task, (risky, safe, safe), shaking).best_from(np.zeros((1, 1))).tolist() == [1]


def test_as_many_go_on_as_are_looked_for_though_one_was_better_early() -> None:
    """Who has given up has earned less than it would have: nobody can tell whether it is second or last."""
    ways = {0: 1.0, 1: 0.9, 2: 0.8, 3: 0.5}  # how fast
    box = Box([0.0], [10.0])
    task = Task(
        box,
        np.array(list(ways.values())),
        lambda states, controls, after: np.full(len(states), -1.0),
        0.99,
        0.0,
        is_terminal=lambda states: states[:, 0] >= 8.0,
        max_steps=40,
    )
    shaking = Noisy(lambda states, controls, rows: states + controls, np.array([1e-9]))
    sights: Any = tuple(Pushing(way, optimistic=False) for way in (3, 2, 1, 0))
    tried: list[list[int]] = []

    class Watched(Sights):
        def _best_of_few(self, starts: FloatArray, totals: FloatArray) -> list[int]:
            tried.append(np.argsort(-totals[:, 0], kind="stable").tolist())
            return super()._best_of_few(starts, totals)

    assert Watched(task, sights, shaking).best_from(np.zeros((1, 1))).tolist() == [3]
    assert tried == [[3, 2, 1, 0]]


def test_where_plans_are_compared_a_sight_is_chosen_on_other_paths(made: Planned) -> None:
    noisy = Planner(TASK).plan(known(swing, TASK.controls), made.layout, noise=np.array([0.1, 0.3]))
    shaking = shaken(imagined_through(swing), noisy.noise)
    assert isinstance(shaking, Noisy)
    rough = Sights.of(noisy, shaking, rough=True)
    assert rough.rough
    others = replace(shaking, seed=shaking.seed + 1)
    each = [rehearse(TASK, sight, others, Starts.alike(STARTS)).totals for sight in rough.sights]
    assert rough.best_from(STARTS).tolist() == np.argmax(each, axis=0).tolist()
    assert len(set(rough.best_from(STARTS).tolist())) > 1


def test_with_noise_the_few_best_from_each_start_go_on(made: Planned) -> None:
    """Of each start its own few: the same as if every start were alone."""
    noisy = Planner(TASK).plan(known(swing, TASK.controls), made.layout, noise=np.array([0.1, 0.3]))
    sights = Sights.of(noisy, shaken(imagined_through(swing), noisy.noise))
    alone = [int(Sights.of(noisy, sights.imagined).best_from(start[np.newaxis])[0]) for start in STARTS[:4]]
    assert sights.best_from(STARTS[:4]).tolist() == alone
    assert len(set(alone)) > 1


class Pushing:
    """Always does the same."""

    def __init__(self, action: int, *, optimistic: bool) -> None:
        self.action, self.optimistic = action, optimistic

    def greedy(self, states: FloatArray) -> Actions:
        return np.full(len(states), self.action)


AIM = Task(
    Box([0.0], [10.0]),
    [0.0, 1.0],
    lambda states, controls, after: np.full(len(states), -1.0),
    0.99,
    0.0,
    is_terminal=lambda states: states[:, 0] >= 4.5,
    max_steps=40,
)


def promised(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
    """Control 0 gets there in three steps, 1 in five."""
    return states + np.where(controls == 0.0, 2.0, 1.0)


def true(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Control 0 does nothing."""
    return states + controls


def aiming(*sights: Pushing, task: Task = AIM) -> Sights:
    some: Any = sights
    return Sights(task, some, hardly_noisy(promised))


def hardly_noisy(imagined: Imagined) -> Noisy:
    """With so little noise that nothing depends on it."""
    return Noisy(imagined, np.array([1e-9]))


def paid(each: float, end: float) -> Task:
    """The same, for so much a step, and at the end."""
    return replace(AIM, reward=lambda states, controls, after: np.where(after[:, 0] >= 4.5, end, each))


EXPLORING, SOBER = Pushing(0, optimistic=True), Pushing(1, optimistic=False)


def test_who_takes_twice_as_long_as_promised_goes_on_with_what_does_not_explore() -> None:
    start = np.zeros((1, 1))
    found = roll_out(AIM, true, aiming(EXPLORING, SOBER), start)
    assert found.total_rewards.tolist() == [-(2 * 3 + 5)]
    assert roll_out(AIM, true, aiming(EXPLORING, EXPLORING), start).total_rewards.tolist() == [-40]
    assert roll_out(AIM, true, aiming(EXPLORING), start).total_rewards.tolist() == [-40]
    # of those that do not explore the best once more, and again in vain
    stuck = Pushing(0, optimistic=False)
    assert roll_out(AIM, true, aiming(EXPLORING, SOBER, stuck), start).total_rewards.tolist() == [-40]
    endless = replace(AIM, is_terminal=None)
    sights = aiming(EXPLORING, SOBER, task=endless)
    assert sights.chosen_from(start)[1][0] > endless.max_steps
    sure = replace(aiming(EXPLORING, SOBER), imagined=promised)  # without noise everything is as it was
    assert roll_out(AIM, true, sure, start).total_rewards.tolist() == [-40]


def test_every_episode_has_its_own_patience_and_what_is_promised_is_asked_once() -> None:
    starts = np.array([[0.0], [3.0], [0.0], [4.0]])
    asked = []

    def counting(*given: Any) -> FloatArray:
        asked.append(len(given[0]))
        return promised(*given)

    sights = replace(aiming(EXPLORING, SOBER), imagined=hardly_noisy(counting))
    sights.chosen_from(starts)
    before = len(asked)
    assert sights.chosen_from(starts)[1].tolist() == [6, 2, 6, 2]
    assert len(asked) == before
    assert roll_out(AIM, true, sights, starts).total_rewards.tolist() == [-11, -4, -11, -3]
    states, memory, totals, going = starts, None, np.zeros(4), np.ones(4, dtype=np.bool_)
    for number in range(AIM.max_steps):
        actions, memory = remembered(sights, states, memory, np.full(4, number == 0))
        totals -= going
        states = np.where(going[:, np.newaxis], true(states, AIM.controls[actions]), states)
        going &= ~AIM.terminal(states)
    assert totals.tolist() == [-11, -4, -11, -3]


@pytest.mark.parametrize(
    ("each", "end", "late"),
    [
        (-1.0, -1.0, True),
        (-1.0, 0.0, True),
        (-1.0, 100.0, True),
        (0.0, 1.0, True),
        (-1.0, -100.0, False),  # a fall: who has not fallen yet is not late
        (1.0, 1.0, False),  # paid for every step
        (1.0, 0.0, False),
        (0.0, -1.0, False),
    ],
)
def test_late_is_who_has_not_arrived_not_who_has_not_fallen(each: float, end: float, late: bool) -> None:
    start, task = np.zeros((1, 1)), paid(each, end)
    assert (aiming(EXPLORING, SOBER, task=task).chosen_from(start)[1][0] < task.max_steps) == late
    heard = rehearse(task, aiming(EXPLORING), promised, Starts.alike(start))
    assert heard.aimed is not None
    assert heard.aimed.tolist() == [late]


def test_with_noise_one_path_that_falls_is_enough_to_wait() -> None:
    def falls(states: FloatArray, controls: FloatArray, after: FloatArray) -> FloatArray:
        return np.where(after[:, 0] < 0.0, -9.0, -1.0)

    task = replace(AIM, reward=falls, is_terminal=lambda states: np.abs(states[:, 0] - 2.0) >= 3.0)
    for noise, aimed in ((1e-3, True), (2.0, False)):
        shaking = Noisy(promised, np.array([noise]))
        heard = rehearse(task, aiming(SOBER), shaking, Starts.alike(np.zeros((1, 1))))
        assert heard.aimed is not None
        assert heard.aimed.tolist() == [aimed]


def test_a_promise_without_end_or_of_a_path_that_leaves_all_bounds_is_none() -> None:
    start = np.zeros((1, 1))
    for model in (lambda states, controls, rows: states, lambda states, controls, rows: states + np.inf):
        sights = replace(aiming(EXPLORING, SOBER), imagined=hardly_noisy(model))
        assert sights.chosen_from(start)[1][0] > AIM.max_steps


def test_of_no_episodes_there_is_nothing_to_say() -> None:
    sights, none = aiming(EXPLORING, SOBER), np.zeros((0, 1))
    for begins in (None, True, np.zeros(0, dtype=np.bool_)):
        actions, memory = remembered(sights, none, None, begins)
        assert actions.shape == (0,)
        assert memory is not None
        assert remembered(sights, none, memory, begins)[0].shape == (0,)


def test_who_chooses_again_has_twice_as_long_as_before() -> None:
    """Held where it is, for ever: 6, 12 and 24 steps, however little is promised."""
    sights, start = aiming(EXPLORING, SOBER, Pushing(0, optimistic=False)), np.zeros((1, 1))
    chosen = []

    class Counting(Sights):
        def chosen_again(self, states: FloatArray) -> tuple[IntArray, IntArray]:
            chosen.append(len(states))
            return super().chosen_again(states)

    counting = Counting(sights.task, sights.sights, sights.imagined)
    roll_out(replace(AIM, max_steps=200), lambda states, controls: states, counting, start)
    assert len(chosen) == 5  # after 6, 18, 42, 90 and 186 steps


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_a_memory_of_any_whole_numbers_goes_on(kind: type) -> None:
    memory: Any = np.zeros((2, 3), dtype=kind)
    sights, states = aiming(EXPLORING, SOBER), np.zeros((2, 1))
    for begins in (np.array([True, False]), np.zeros(2, dtype=np.bool_)):
        _, memory = remembered(sights, states, memory, begins)
    assert memory[:, 0].tolist() == [
        0,
        1,
    ]  # the second had no steps left: it goes on with what does not explore
    assert memory[0].tolist() == [0, 4, 6]


def test_patience_counts_where_readings_are_filtered_too() -> None:
    def going(states: FloatArray, controls: FloatArray) -> Around:
        slopes = np.ones((len(states), 1, 1))
        return Around(states + controls, slopes, np.zeros_like(states))

    exact = Filter(AIM.box, going, np.array([1e-9]), np.array([1e-9]))
    sights, states = replace(aiming(EXPLORING, SOBER), filtering=exact), np.zeros((2, 1))
    assert roll_out(AIM, true, sights, states).total_rewards.tolist() == [-11, -11]
    memory, steps = None, 0
    while not AIM.terminal(states).any() and steps < AIM.max_steps:
        actions, memory = remembered(sights, states, memory, np.full(2, memory is None))
        states, steps = true(states, AIM.controls[actions]), steps + 1
    assert steps == 11
    assert isinstance(memory, Memory)
    with pytest.raises(ValueError, match="what the last call returned"):
        remembered(sights, states, memory._replace(left=np.full(2, -1)), None)


def test_in_imagination_nobody_chooses_again() -> None:
    """What a plan promises is what it does by itself: many paths begin at one start."""
    stuck = rehearse(
        AIM,
        aiming(EXPLORING, SOBER),
        lambda states, controls, rows: states + controls,
        Starts.alike(np.zeros((1, 1))),
    )
    assert stuck.totals.tolist() == [-40]
    assert stuck.steps is not None
    assert stuck.steps.tolist() == [40]


def test_how_long_it_takes_is_the_mean_over_paths() -> None:
    """One of two paths begins at the end already after its first step."""
    shaking = Noisy(lambda states, controls, rows: states + 1.0, np.array([9.0]), repeats=2)
    first = shaking.noise_of(0)[:, 0]
    assert first.max() > 4.0
    assert first.min() < 0.0
    paths = []
    for path in range(2):
        state, steps = 0.0, 0
        while state < 4.5 and steps < AIM.max_steps:
            state, steps = state + 1.0 + float(shaking.noise_of(steps)[path, 0]), steps + 1
        paths.append(steps)
    sight: Any = SOBER
    heard = rehearse(AIM, sight, shaking, Starts.alike(np.zeros((1, 1))))
    assert heard.steps is not None
    assert heard.steps.tolist() == [np.mean(paths)]
    assert heard.total == -np.mean(paths)


def test_of_the_few_best_the_steadier_is_taken_where_imagination_may_err() -> None:
    """One control earns a little more, and is upset by noise; the other is not."""

    def paid(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return np.where(controls[:, 0] > 0.0, 0.2 + next_states[:, 0], 0.0)

    task = Task(Box([-9.0], [9.0]), [0.0, 1.0], paid, 0.9, 0.0, max_steps=1)
    grid = Grid.uniform(task.box, [3])
    steady, upset = (QFunction(grid, np.tile(values, (3, 1))) for values in ([1.0, 0.0], [0.0, 1.0]))
    for errs, best in ((0.0, 1), (0.1, 1), (0.3, 0)):
        shaking = shaken(lambda states, controls, rows: np.zeros_like(states), np.ones(1), errs=errs)
        assert Sights(task, (steady, upset), shaking).best_from(np.zeros((1, 1))).tolist() == [best]
