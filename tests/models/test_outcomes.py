"""What is learned of rewards, ends, places and the box, against formulas that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.found import Found
from optimist.models.curves import Agreed, Curve, _terms, _widest, learn_curve, polynomial
from optimist.models.ends import Near, _telling, learn_ends
from optimist.models.outcomes import LIVES, OpenTask, believed_box
from optimist.models.places import COARSE, PATIENCE, Places, needed_scale
from optimist.models.rewards import learn_reward
from optimist.transitions import Transition, Transitions

BOX = Box([-1.0, -2.0], [1.0, 2.0])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])


def walked(
    reward: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    ends: Callable[[FloatArray], BoolArray] | None = None,
    *,
    n: int = 200,
    seed: int = 0,
    box: Box = BOX,
    boxed: bool = False,
) -> Transitions:
    """Short steps from anywhere alive."""
    stream = np.random.default_rng(seed)
    states = stream.uniform(box.low, box.high, size=(4 * n, box.n_dims))
    states = states if ends is None else states[~ends(states)]
    states = states[:n]
    after = box.wrap(states + stream.normal(0.0, 0.05, size=states.shape) * box.widths)
    actions = stream.uniform(-1.0, 1.0, size=(n, 1)) if boxed else stream.integers(3, size=n)
    controls = np.asarray(actions if boxed else CONTROLS[actions], dtype=np.float64)
    ended = np.zeros(n, dtype=np.bool_) if ends is None else ends(after)
    paid = np.broadcast_to(reward(states, controls, after), n)
    return Transitions(states, actions, paid, after, ended, np.zeros(n, dtype=np.bool_))


FORMULAS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {
    "constant": lambda x, u, y: np.full(len(x), -1.0),
    "of the control alone": lambda x, u, y: -0.1 * u[:, 0] ** 2,
    "of few terms, before the step": lambda x, u, y: (
        -(x[:, 0] ** 2) - 0.1 * x[:, 1] ** 2 - 0.01 * u[:, 0] ** 2
    ),
    "of few terms, after the step": lambda x, u, y: 1.0 - y[:, 0] * y[:, 1] + u[:, 0] * y[:, 0],
    "a distance, before the step": lambda x, u, y: -np.abs(x[:, 0] - 0.3),
    "a distance, after the step": lambda x, u, y: -np.hypot(y[:, 0] - 0.2, 2.0 * y[:, 1] + 0.1),
}


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("boxed", [False, True])
def test_the_kind_of_reward_is_recognised_and_its_formula_found(kind: str, boxed: bool) -> None:
    learned = learn_reward(walked(FORMULAS[kind], boxed=boxed), BOX, CONTROLS)
    assert learned.name == kind
    fresh = walked(FORMULAS[kind], n=50, seed=1)
    said = learned(fresh.states, fresh.controls(CONTROLS), fresh.next_states)
    np.testing.assert_allclose(said, fresh.rewards, atol=1e-5)


def test_a_polynomial_of_many_terms_is_found_of_many_payments() -> None:
    box = Box([-1.0] * 4, [1.0] * 4)
    learned = learn_reward(walked(lambda x, u, y: -((x.sum(axis=1) + u[:, 0]) ** 2), box=box), box, CONTROLS)
    assert learned.name == "quadratic, before the step"
    fresh = walked(lambda x, u, y: -((x.sum(axis=1) + u[:, 0]) ** 2), n=50, seed=1, box=box)
    said = learned(fresh.states, fresh.controls(CONTROLS), fresh.next_states)
    np.testing.assert_allclose(said, fresh.rewards, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_what_depends_on_one_coordinate_is_known_of_few_payments(axis: int) -> None:
    """A polynomial of all terms has more weights than there are payments."""
    learned = learn_reward(walked(lambda x, u, y: -(x[:, axis] ** 2), n=8), BOX, CONTROLS)
    fresh = walked(lambda x, u, y: -(x[:, axis] ** 2), n=50, seed=1)
    said = learned.formula(fresh.states, fresh.controls(CONTROLS), fresh.next_states)
    np.testing.assert_allclose(said, fresh.rewards, atol=1e-9)


def test_an_exact_formula_is_believed_where_nobody_was_and_one_that_is_not_only_nearby() -> None:
    """A bicycle that had only leaned by 0.17 to 0.21 believed that upright pays no more than 0.08 does."""
    narrow = Box([0.15, -2.0], [0.2, 2.0])
    upright, other = np.zeros((1, 2)), np.array([[0.9, 0.0]])
    given = np.vstack([upright, other]), CONTROLS[[1, 1]], np.vstack([upright, other])

    def lean(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return -(x[:, 0] ** 2)

    learned = learn_reward(walked(lean, box=narrow), BOX, CONTROLS)
    np.testing.assert_allclose(learned(*given), [0.0, -0.81], atol=1e-9)

    def rough(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return lean(x, u, y) + 5e-4 * np.sin(1e4 * x[:, 0])

    def round_(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return -np.cos(x[:, 0]) - 0.1 * np.cos(3.0 * x[:, 1])  # a polynomial to four digits where one was

    short = Box([0.15, -0.02], [0.2, 0.02])
    for reward, box, least, most in ((rough, narrow, 1e-3, 1.0), (round_, short, 1e-9, 1e-3)):
        seen = walked(reward, box=box)
        spread, found = float(np.ptp(seen.rewards)), learn_reward(seen, BOX, CONTROLS)
        assert least < found.error < most
        said = found(*given)
        assert (said <= seen.rewards.max() + 2.0 * spread + 1e-12).all()
        assert (said >= seen.rewards.min() - 2.0 * spread - 1e-12).all()


def test_what_an_action_pays_that_nobody_tried_is_no_matter_of_exactness() -> None:
    seen = walked(lambda x, u, y: 1.05 + 0.05 * u[:, 0])
    seen = seen.only(seen.actions != 1)
    learned = learn_reward(seen, BOX, CONTROLS)
    assert learned.name == "of the control alone"
    here = np.zeros((1, 2))
    assert learned(here, CONTROLS[1:2], here)[0] >= 0.8 - 1e-9  # 1.0 and 1.1 were paid


def test_of_terms_that_explain_the_same_the_simplest_is_taken() -> None:
    """A coordinate that has not moved yet makes another one and their product alike."""
    for still, seed in product((0.02, 0.5, -1.7), range(5)):
        seen = walked(lambda x, u, y: -x[:, 0] - 1.0, n=12, seed=seed)
        states = np.column_stack([seen.states[:, 0], np.full(12, still)])
        learned = learn_reward(replace(seen, states=states), BOX, CONTROLS)
        there = np.array([[0.5, 1.6]])
        np.testing.assert_allclose(learned(there, CONTROLS[:1], there), [-1.5], atol=1e-6)


def test_the_square_of_an_angle_is_learned_across_the_seam() -> None:
    box = Box([-np.pi, -8.0], [np.pi, 8.0], [True, False])
    swung = walked(lambda x, u, y: -(x[:, 0] ** 2) - 0.1 * x[:, 1] ** 2, box=box)
    learned = learn_reward(swung, box, CONTROLS)
    asked = np.array([[3.1, 0.0], [-3.1, 1.0], [0.0, -8.0]])
    np.testing.assert_allclose(learned(asked, CONTROLS[:1], asked), [-9.61, -9.71, -6.4], atol=1e-3)


def test_a_reward_that_is_no_polynomial_is_learned_by_a_process() -> None:
    def saturating(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.exp(-4.0 * x[:, 0] ** 2 - x[:, 1] ** 2) - 1.0

    learned = learn_reward(walked(saturating, n=150), BOX, CONTROLS)
    assert learned.name == "smooth"
    fresh = walked(saturating, n=80, seed=1)
    said = learned(fresh.states, fresh.controls(CONTROLS), fresh.next_states)
    assert np.abs(said - fresh.rewards).mean() < 0.02


def test_a_prize_that_is_paid_beyond_a_side_is_recognised() -> None:
    def prize(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(y[:, 0] >= 0.5, 1.0, 0.0)

    learned = learn_reward(walked(prize), BOX, CONTROLS)
    assert learned.name == "0, elsewhere 1"
    fresh = walked(prize, n=300, seed=1)
    said = learned(fresh.states, fresh.controls(CONTROLS), fresh.next_states)
    assert (said == fresh.rewards).mean() > 0.97


def test_a_prize_at_an_end_is_told_apart() -> None:
    seen = walked(
        lambda x, u, y: np.where(y[:, 0] >= 0.7, 100.0, 0.0) - 0.1 * u[:, 0] ** 2, lambda x: x[:, 0] >= 0.7
    )
    learned = learn_reward(seen, BOX, CONTROLS)
    assert learned.name == "of the control alone"
    assert learned.jumps == pytest.approx((100.0,))


def test_a_crash_and_a_goal_are_two_kinds_of_end() -> None:
    def paid(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(y[:, 0] <= -0.8, -50.0, np.where(y[:, 1] >= 1.5, 10.0, -1.0))

    seen = walked(paid, lambda x: (x[:, 0] <= -0.8) | (x[:, 1] >= 1.5), n=400)
    task = OpenTask.of(open_found(low=BOX.low, high=BOX.high), seen)
    asked = np.array([[-0.95, 0.0], [0.0, 1.9], [0.0, 0.0]])
    assert task.terminal(asked).tolist() == [True, True, False]
    np.testing.assert_allclose(task.rewards(asked, CONTROLS[:1], asked), [-50.0, 10.0, -1.0])


SIDES: list[tuple[str, Callable[[FloatArray], BoolArray], int]] = [
    ("one", lambda x: x[:, 0] >= 0.7, 1),
    ("two", lambda x: np.abs(x[:, 0]) >= 0.7, 2),
    ("of two coordinates", lambda x: (x[:, 0] >= 0.8) | (x[:, 1] <= -1.5), 2),
]


@pytest.mark.parametrize(("name", "ends", "count"), SIDES)
@pytest.mark.parametrize("failures", [False, True])
def test_sides_are_found(
    name: str, ends: Callable[[FloatArray], BoolArray], count: int, failures: bool
) -> None:
    seen = walked(FORMULAS["constant"], ends, n=400)
    learned = learn_ends(seen, BOX, failures=failures)
    assert learned is not None
    assert learned.near is None
    assert len({(side.axis, side.sign) for side in learned.sides if side.n_ends}) == count
    fresh = np.random.default_rng(5).uniform(BOX.low, BOX.high, size=(2000, 2))
    assert (learned(fresh) != ends(fresh)).mean() < 0.04
    assert (learned(seen.next_states) == seen.terminated).all()


def test_a_failure_is_feared_on_the_other_side_until_somebody_lived_there() -> None:
    states = np.array([[0.0, 0.0], [0.4, 0.0], [0.6, 0.0]])
    after = np.array([[0.4, 0.0], [0.6, 0.0], [0.8, 0.0]])
    ended = np.array([False, False, True])
    nothing = np.zeros(3, dtype=np.bool_)
    seen = Transitions(states, np.zeros(3, dtype=np.int64), np.ones(3), after, ended, nothing)
    asked = np.array([[-0.75, 0.0]])
    failures = learn_ends(seen, BOX, failures=True)
    goals = learn_ends(seen, BOX, failures=False)
    assert failures is not None
    assert goals is not None
    assert failures(asked)[0]
    assert not goals(asked)[0]
    lived = Transitions(
        np.vstack([states, asked]), np.zeros(4, dtype=np.int64), np.ones(4), np.vstack([after, asked]),
        np.append(ended, False), np.append(nothing, False),
    )  # fmt: skip
    again = learn_ends(lived, BOX, failures=True)
    assert again is not None
    assert not again(asked)[0]


def test_an_edge_that_only_ends_reached_explains_them_alone() -> None:
    """Of a coordinate that was nowhere near its own edge nothing follows."""
    states = np.array([[0.0, 0.0], [0.4, 0.3], [0.7, 0.7]])
    after = np.array([[0.4, 0.3], [0.7, 0.7], [1.05, 1.2]])  # the box ends at 1 and 2
    ended, nothing = np.array([False, False, True]), np.zeros(3, dtype=np.bool_)
    seen = Transitions(states, np.zeros(3, dtype=np.int64), np.ones(3), after, ended, nothing)
    learned = learn_ends(seen, BOX, failures=True)
    assert learned is not None
    assert {(side.axis, side.sign) for side in learned.sides if side.n_ends} == {(0, 1.0)}
    inside = learn_ends(replace(seen, next_states=after - [0.1, 0.0]), BOX, failures=True)
    assert inside is not None
    assert {side.axis for side in inside.sides} == {0, 1}


def swung_up(states: FloatArray) -> BoolArray:
    """The tip of two links above a line, as an acrobot's."""
    one, two = states[:, 0], states[:, 1]
    return np.asarray(-np.cos(one) - np.cos(one + two) > 1.0)


def test_a_curve_in_two_coordinates_is_found_of_few_ends() -> None:
    box = Box([-np.pi, -np.pi, -4.0], [np.pi, np.pi, 4.0], [True, True, False])
    seen = walked(FORMULAS["constant"], swung_up, n=400, box=box)
    learned = learn_ends(seen, box, failures=False)
    assert learned is not None
    assert isinstance(learned.curve, Agreed)
    assert {curve.axes for curve in learned.curve.curves} == {(0, 1)}
    fresh = np.random.default_rng(5).uniform(box.low, box.high, size=(2000, 3))
    assert (learned(fresh) == swung_up(fresh)).mean() > 0.97
    feared = learn_ends(seen, box, failures=True)  # one that is believed wrongly is never found out
    assert feared is not None
    assert not isinstance(feared.curve, Agreed)


@pytest.mark.parametrize("seed", range(4))
def test_of_two_goals_no_more_is_believed_than_all_likely_curves_say(seed: int) -> None:
    box = Box([-np.pi, -np.pi, -4.0], [np.pi, np.pi, 4.0], [True, True, False])
    seen = walked(FORMULAS["constant"], swung_up, n=400, box=box, seed=seed)
    upto = int(np.flatnonzero(seen.terminated)[1]) + 1
    learned = learn_ends(seen.only(np.arange(len(seen)) < upto), box, failures=False)
    assert learned is not None
    fresh = np.random.default_rng(5).uniform(box.low, box.high, size=(2000, 3))
    believed, true = learned(fresh), swung_up(fresh)
    assert (believed & ~true).mean() < 0.03
    assert learned(seen.next_states[:upto][seen.terminated[:upto]]).all()
    assert not learned(seen.states[:upto]).any()


def test_where_an_angle_begins_does_not_matter() -> None:
    box = Box([-np.pi, -np.pi, -4.0], [np.pi, np.pi, 4.0], [True, True, False])
    turned = np.array([1.0, 0.5, 0.0])
    begun = Box(box.low + turned, box.high + turned, box.periodic)
    fresh = np.random.default_rng(5).uniform(box.low, box.high, size=(2000, 3))
    said = []
    for one in (box, begun):
        seen = walked(FORMULAS["constant"], swung_up, n=400, box=box)
        seen = replace(seen, states=one.wrap(seen.states), next_states=one.wrap(seen.next_states))
        learned = learn_ends(seen, one, failures=False)
        assert learned is not None
        said.append(learned(one.wrap(fresh)))
    np.testing.assert_array_equal(said[0], said[1])


def test_where_curves_agree_on_next_to_nothing_a_goal_is_near_where_it_was() -> None:
    """In six coordinates two ends are explained by very many curves."""
    box = Box([-1.0] * 6, [1.0] * 6)
    seen = walked(FORMULAS["constant"], lambda x: np.hypot(x[:, 0] - 0.3, x[:, 1]) < 0.2, n=300, box=box)
    upto = int(np.flatnonzero(seen.terminated)[1]) + 1
    seen = seen.only(np.arange(len(seen)) < upto)
    ended, lived = seen.next_states[seen.terminated], np.vstack([seen.states, seen.next_states[:-1]])
    lived = lived[(np.abs(lived[:, np.newaxis] - ended).max(axis=2) > 0.0).all(axis=1)]
    learned = learn_ends(seen, box, failures=False)
    assert learned is not None
    anywhere = np.random.default_rng(1).uniform(-1.0, 1.0, size=(5000, 6))
    near = Near.of(box, _telling(ended, lived, box), ended, lived)
    assert learned(anywhere).sum() >= 0.9 * near(anywhere).sum()
    assert learned(ended).all()


def test_what_was_never_a_gain_is_none_at_an_end() -> None:
    box = Box([-1.0, -1.0], [1.0, 1.0])

    def paid(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(y[:, 0] > 0.6, 0.0, -(1.0 + (y**2).sum(axis=1)))

    seen = walked(paid, lambda x: x[:, 0] > 0.6, n=300, box=box)
    believed = OpenTask.of(
        Found(box.low, box.high, np.zeros(2, np.bool_), CONTROLS, discount=0.99, max_steps=100), seen
    )
    fresh = np.random.default_rng(2).uniform(-1.0, 1.0, size=(500, 2))
    assert believed.optimistic_value == 0.0
    assert believed.rewards(fresh, CONTROLS[:1], fresh + 0.05).max() <= 0.0


@pytest.mark.parametrize("periodic", list(product([True, False], repeat=2)))
def test_terms_of_a_curve_are_what_they_are_called(periodic: tuple[bool, bool]) -> None:
    box = Box([-np.pi, -np.pi], [np.pi, np.pi], periodic)
    states = np.random.default_rng(3).uniform(box.low, box.high, size=(50, 2))
    found = polynomial(box, (0, 1), states) @ _terms(box, (0, 1)).T
    turns, places = states, states / np.pi
    alone: list[FloatArray] = []
    squares: list[FloatArray] = []
    for axis in range(2):
        turn, place = turns[:, axis], places[:, axis]
        alone += [np.cos(turn), np.sin(turn)] if periodic[axis] else [place]
        squares += [] if periodic[axis] else [place**2]
    both, apart = turns.sum(axis=1), turns[:, 0] - turns[:, 1]
    together = [np.cos(both), np.sin(both), np.cos(apart), np.sin(apart)]
    if not all(periodic):
        half = 2 if periodic[0] else 1
        together = [one * other for one in alone[:half] for other in alone[half:]]
    np.testing.assert_allclose(found, np.column_stack([*alone, *squares, *together]), atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_widest_gap_is_that_of_a_plain_search(seed: int) -> None:
    stream = np.random.default_rng(seed)
    lived, ended = stream.uniform(-1.0, 1.0, (200, 2)), stream.uniform(-1.0, 1.0, (2, 2))
    normal = stream.normal(size=2)
    normal /= np.linalg.norm(normal)
    ended += (0.3 * (seed % 4) + (lived @ normal).max() - (ended @ normal).min()) * normal
    ended = np.clip(ended, -1.0, 1.0)
    turns = np.linspace(0.0, 2.0 * np.pi, 20_000)
    every = np.array([np.cos(turns), np.sin(turns)])
    plain = ((ended @ every).min(axis=0) - (lived @ every).max(axis=0)).max()
    gap, direction = _widest(ended, lived)
    assert (gap > 0.0) == (plain > 0.0)
    assert np.hypot(*direction) == pytest.approx(1.0)
    if plain > 0.0:
        assert gap == pytest.approx(plain, abs=1e-3)


def test_outside_of_the_box_a_curve_says_what_it_says_at_the_edge() -> None:
    """Where nobody can be, a polynomial comes back from the other side."""
    square = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # of the first coordinate
    curve = Curve(BOX, (0, 1), square, 1.2, 3)
    asked = np.random.default_rng(0).uniform(2.0 * BOX.low, 2.0 * BOX.high, size=(200, 2))
    assert not curve(asked).any()
    tilted = Curve(BOX, (0, 1), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0]), 0.5, 3)
    np.testing.assert_array_equal(tilted(asked), tilted(BOX.clip(asked)))
    assert tilted(asked).any()


def test_of_one_goal_two_coordinates_are_believed_and_a_failure_is_feared_just_there() -> None:
    """The tip of two links is above a line; how fast it came there is luck."""
    box = Box([-np.pi, -np.pi, -4.0, -4.0], [np.pi, np.pi, 4.0, 4.0], [True, True, False, False])
    lived = np.array([[0.1 * k, 0.05 * k, np.sin(k), np.cos(k)] for k in range(20)])
    goal = np.array([[2.6, 0.3, 0.5, 0.2]])
    count = len(lived)
    after, ended = np.vstack([lived[1:], goal]), np.arange(count) == count - 1
    seen = Transitions(
        lived, np.zeros(count, np.int64), -np.ones(count), after, ended, np.zeros(count, np.bool_)
    )
    faster = goal + np.array([0.0, 0.0, -2.0, 1.5])
    goals = learn_ends(seen, box, failures=False)
    failures = learn_ends(seen, box, failures=True)
    assert goals is not None
    assert failures is not None
    assert goals.near is not None
    assert goals.near.axes.tolist() == [0, 1]
    assert (goals(goal)[0], goals(faster)[0]) == (True, True)
    assert (failures(goal)[0], failures(faster)[0]) == (True, False)
    assert not goals(lived).any()


def test_ends_at_random_are_no_curve() -> None:
    stream = np.random.default_rng(0)
    ended, lived = (stream.uniform(BOX.low, BOX.high, size=(count, 2)) for count in (8, 400))
    assert learn_curve(ended, lived, BOX, failures=False) is None


def test_ends_that_no_side_explains_are_known_where_they_happened() -> None:
    box = Box([-1.0, -1.0], [1.0, 1.0])
    stripes = walked(FORMULAS["constant"], lambda x: np.sin(12.0 * x).prod(axis=1) > 0.6, n=600, box=box)
    seen = stripes
    learned = learn_ends(seen, box, failures=False)
    assert learned is not None
    assert learned.near is not None
    assert learned(seen.next_states[seen.terminated]).all()
    assert not learned(seen.states).any()
    assert learned(seen.next_states[seen.terminated] + 1e-3).mean() > 0.9


def test_places_are_unseen_at_a_distance_and_looked_at_more_closely_when_nothing_is_new() -> None:
    places = Places.of(BOX, np.zeros((3, 2)))
    asked = np.array([[0.0, 0.0], [0.05, 0.0], [0.9, 0.0]])
    np.testing.assert_allclose(places.unseen(asked), [0.0, 0.0, 1.0])
    assert places.scale == COARSE
    assert needed_scale(np.full((PATIENCE - 1, 2), 0.5)) == COARSE
    assert needed_scale(np.full((PATIENCE + 1, 2), 0.5)) == COARSE / 2.0


def open_found(**changes: object) -> Found:
    given: dict[str, object] = {
        "low": np.array([-1.0, -np.inf]),
        "high": np.array([1.0, np.inf]),
        "periodic": np.zeros(2, dtype=np.bool_),
        "controls": CONTROLS,
        "discount": 0.99,
        "max_steps": 100,
    }
    return Found(**(given | changes))  # type: ignore[arg-type]


def test_open_sides_hold_what_was_seen_with_room_and_change_seldom() -> None:
    found, boxes = open_found(), set()
    for largest in np.linspace(0.5, 4.0, 60):
        states = np.array([[0.0, -largest], [0.0, largest]])
        box = believed_box(found, Transitions.stepped(states, np.zeros(2, dtype=np.int64), states))
        assert box.low[1] <= -1.25 * largest
        assert box.high[1] >= 1.25 * largest
        assert box.high[1] <= 2.0 * 1.25 * largest
        boxes.add(box)
    assert len(boxes) <= 8


@pytest.mark.parametrize(("bound", "believed"), [(10.0, True), (1000.0, False)])
def test_bounds_that_are_far_too_wide_are_none(bound: float, believed: bool) -> None:
    found = open_found(low=np.array([-1.0, -bound]), high=np.array([1.0, bound]))
    seen = walked(FORMULAS["constant"])
    assert bool(believed_box(found, seen).high[1] == bound) is believed
    assert believed_box(found, seen.only(np.arange(200) < 20)).high[1] == bound  # too early to say


def test_a_coordinate_that_leaps_by_a_turn_is_an_angle() -> None:
    angles = np.mod(0.3 * np.arange(60.0), 2.0 * np.pi) - np.pi
    states = np.column_stack([np.zeros(60), angles])
    seen = Transitions.stepped(states[:-1], np.zeros(59, dtype=np.int64), states[1:])
    box = believed_box(open_found(), seen)
    assert box.periodic.tolist() == [False, True]
    np.testing.assert_allclose([box.low[1], box.high[1]], [-np.pi, np.pi])


def along(values: list[float]) -> Transitions:
    """Of the second coordinate, one after another."""
    states = np.column_stack([np.zeros(len(values)), values])
    return Transitions.stepped(states[:-1], np.zeros(len(values) - 1, dtype=np.int64), states[1:])


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 0.0, 0.931, 1.039, -0.166, 0.103],  # a pendulum's rate, once taken for an angle of one turn
        [0.0, 0.9, 0.0, 0.9, 0.1],
        [0.0, 0.2, 0.9, 0.95, 0.1, 0.15, 0.2, 0.1, -0.1, -0.05, 0.95, 0.9],  # -0.1 and 0.95: more than a turn
    ],
)
def test_who_swings_to_and_fro_is_no_angle(values: list[float]) -> None:
    assert not believed_box(open_found(), along(values)).periodic.any()


def test_what_was_told_is_so_whatever_is_seen() -> None:
    angles = np.mod(0.3 * np.arange(60.0), 2.0 * np.pi) - np.pi
    seen = along(list(angles))
    wide = {"low": np.array([-1.0, -1e6]), "high": np.array([1.0, 1e6])}
    assert believed_box(open_found(), seen).periodic[1]
    assert not believed_box(open_found(periodic_told=True), seen).periodic[1]
    told = believed_box(open_found(low_told=True, high_told=True, **wide), seen)
    assert (told.low[1], told.high[1], told.periodic[1]) == (-1e6, 1e6, False)
    for angles_told in (True, False):
        half = believed_box(open_found(low_told=True, periodic_told=angles_told, **wide), seen)
        assert half.low[1] == -1e6
        assert half.high[1] < 10.0
    # of an axis that was left open nothing was told
    assert believed_box(open_found(low_told=True, high_told=True), seen).periodic[1]


def test_a_side_that_was_found_stays_where_the_other_is_open() -> None:
    found = open_found(low=np.array([-1.0, 0.0]), high=np.array([1.0, np.inf]))
    box = believed_box(found, along(list(0.2 + 0.1 * np.sin(np.arange(80.0)))))
    assert box.low[1] == 0.0


def test_what_is_only_believed_to_be_an_angle_is_recorded_as_it_was_read() -> None:
    angles = np.mod(0.3 * np.arange(60.0), 2.0 * np.pi) - np.pi
    open_one = OpenTask.of(open_found(), along(list(angles)))
    assert open_one.box.periodic[1]
    assert open_one.as_read(np.array([0.5, 4.0])).tolist() == [0.5, 4.0]
    sure = OpenTask.of(
        open_found(low=-np.pi * np.ones(2), high=np.pi * np.ones(2), periodic=np.ones(2, dtype=np.bool_)),
        None,
    )
    np.testing.assert_allclose(sure.as_read(np.array([0.5, 4.0])), [0.5, 4.0 - 2.0 * np.pi])


def test_what_a_crash_costs_promises_nothing() -> None:
    found = open_found(low=BOX.low, high=BOX.high)
    crashed = walked(lambda x, u, y: np.where(y[:, 0] > 0.9, -100.0, -1.0), lambda s: s[:, 0] > 0.9)
    assert crashed.terminated.any()
    assert OpenTask.of(found, crashed).optimistic_value == 0.0
    arrived = walked(lambda x, u, y: -0.1 * u[:, 0] ** 2, lambda s: s[:, 0] > 0.9)
    assert arrived.terminated.any()
    assert OpenTask.of(found, arrived).optimistic_value == 0.0  # a goal was seen: nothing is to be looked for


@pytest.mark.parametrize("row", [4, 5])
def test_a_single_payment_that_differs_is_no_crash_wherever_it_is(row: int) -> None:
    """The fifth that a formula is judged by may have all that there is of a level."""
    seen = walked(FORMULAS["constant"], n=30)
    seen = replace(seen, rewards=np.where(np.arange(30) == row, 5.0, -1.0))
    learned = learn_reward(seen, BOX, CONTROLS)
    said = learned(seen.states, seen.controls(CONTROLS), seen.next_states)
    assert np.isfinite(said).all()


def test_costs_are_searched_for_an_end_and_gains_are_not() -> None:
    found = open_found(low=BOX.low, high=BOX.high)
    costs = OpenTask.of(found, walked(FORMULAS["constant"], n=30))
    gains = OpenTask.of(found, walked(lambda x, u, y: np.ones(len(x)), n=30))
    free = OpenTask.of(found, walked(FORMULAS["of the control alone"], n=30))
    smooth = OpenTask.of(found, walked(FORMULAS["of few terms, before the step"]))
    assert [task.searching for task in (costs, gains, free, smooth)] == [True, False, True, False]
    assert costs.optimistic_value == 0.0
    assert gains.optimistic_value == pytest.approx(100.0)
    assert free.optimistic_value == pytest.approx(10.0)  # more than any way there can cost
    assert smooth.optimistic_value == 0.0
    nearly = OpenTask.of(found, walked(lambda x, u, y: -0.1 * u[:, 0] ** 2 - 1e-6, n=30))
    assert nearly.optimistic_value == pytest.approx(10.0, rel=1e-4)  # who hardly moves is not content
    dear = OpenTask.of(found, walked(lambda x, u, y: -1.0 - 0.1 * u[:, 0] ** 2, n=30))
    assert dear.optimistic_value == 0.0  # to do nothing is dear
    assert costs.unseen(BOX.low[np.newaxis]) is not None
    assert gains.unseen(BOX.low[np.newaxis]) is None


def test_where_all_plans_earn_the_same_none_is_followed_for_long() -> None:
    found = open_found(low=BOX.low, high=BOX.high, max_steps=5000)
    costs = OpenTask.of(found, walked(FORMULAS["constant"], n=30))
    assert costs.imagined_steps == LIVES
    assert costs.most == pytest.approx(-LIVES)
    assert costs.most <= -LIVES  # what every plan earns is enough
    goal = OpenTask.of(found, walked(FORMULAS["constant"], lambda x: x[:, 0] >= 0.7))
    free = OpenTask.of(found, walked(FORMULAS["of the control alone"], n=30))
    for task in (goal, free):
        assert task.imagined_steps == 1000
        assert task.most == np.inf


def test_a_goal_ends_the_search_and_a_prize_raises_what_is_possible() -> None:
    found = open_found(low=BOX.low, high=BOX.high)
    goal = OpenTask.of(found, walked(FORMULAS["constant"], lambda x: x[:, 0] >= 0.7))
    assert not goal.searching
    assert goal.optimistic_value == 0.0
    assert goal.terminal(np.array([[0.9, 0.0], [0.0, 0.0]])).tolist() == [True, False]
    prize = OpenTask.of(
        found, walked(lambda x, u, y: np.where(y[:, 0] >= 0.7, 100.0, 0.0), lambda x: x[:, 0] >= 0.7)
    )
    assert prize.optimistic_value == 100.0


def test_a_belief_is_a_function_of_what_was_seen() -> None:
    found, seen = open_found(), walked(FORMULAS["constant"], lambda x: x[:, 0] >= 0.7)
    one, other = OpenTask.of(found).after(seen), OpenTask.of(found, walked(FORMULAS["constant"])).after(seen)
    assert str(one) == str(other)
    assert one.box == other.box


def test_it_says_what_is_believed_and_from_what() -> None:
    said = str(OpenTask.of(open_found(), walked(FORMULAS["constant"], lambda x: x[:, 0] >= 0.7)))
    assert "reward: constant -1 (learned from" in said
    assert "ends: coordinate 0 >= 0.7" in said
    assert "seen in 200 transitions" in said


@pytest.mark.parametrize(
    ("reward", "terminated", "surprises"), [(-1.0, False, False), (-3.0, False, True), (-1.0, True, True)]
)
def test_surprises(reward: float, terminated: bool, surprises: bool) -> None:
    task = OpenTask.of(open_found(), walked(FORMULAS["constant"], lambda x: x[:, 0] >= 0.7))
    here = np.zeros(2)
    assert task.surprised_by(Transition(here, 0, reward, here, terminated, False)) is surprises


def test_a_payment_that_differs_surprises_however_dear_ends_are() -> None:
    """A crash of -10 made every smaller difference seem small, and 500 of these are a lot."""
    cost = FORMULAS["of few terms, before the step"]
    seen = walked(cost, lambda x: x[:, 0] >= 0.7)
    task = OpenTask.of(open_found(), replace(seen, rewards=np.where(seen.terminated, -10.0, seen.rewards)))
    here = np.array([0.5, 0.0])
    paid = float(cost(here[np.newaxis], CONTROLS[1:2], here[np.newaxis])[0])
    for off, surprises in ((0.0, False), (0.01, False), (0.05, True)):  # rewards spread over 1.4
        assert task.surprised_by(Transition(here, 1, paid + off, here, False, False)) is surprises


def test_an_end_where_it_was_told_to_be_is_news_only_by_what_it_pays() -> None:
    """The first one, too, of which nobody knows what it pays besides."""
    cost = FORMULAS["of few terms, before the step"]
    found = replace(open_found(), is_terminal=lambda x: x[:, 0] >= 0.7)
    task = OpenTask.of(found, walked(cost, n=100))
    here, there = np.array([0.6, 0.0]), np.array([0.8, 0.0])
    paid = float(cost(here[np.newaxis], CONTROLS[1:2], there[np.newaxis])[0])
    assert not task.surprised_by(Transition(here, 1, paid, there, True, False))
    assert task.surprised_by(Transition(here, 1, paid - 10.0, there, True, False))


def test_noisy_payments_surprise_nobody_however_many_there_are() -> None:
    stream = np.random.default_rng(0)
    cost = FORMULAS["of few terms, before the step"]
    seen = walked(cost, lambda x: x[:, 0] >= 0.7, n=1000)
    noisy = seen.rewards + stream.normal(0.0, 0.03, size=len(seen))
    seen = replace(seen, rewards=np.where(seen.terminated, -10.0, noisy))
    task = OpenTask.of(open_found(), seen.only(np.arange(len(seen)) < 300))
    live = [row for row in np.flatnonzero(~seen.terminated) if row >= 300]
    rows = [
        Transition(
            seen.states[row], int(seen.actions[row]), float(noisy[row]), seen.states[row], False, False
        )
        for row in live
    ]
    assert not any(task.surprised_by(row) for row in rows)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e8])
def test_units_of_controls_do_not_matter_and_no_more_terms_are_taken_than_payments_allow(unit: float) -> None:
    def reward(x: FloatArray, u: FloatArray, y: FloatArray) -> FloatArray:
        return -1.0 - x[:, 0] ** 2 - (u[:, 0] / unit) ** 2

    seen = walked(FORMULAS["constant"], n=60)
    controls = CONTROLS * unit
    seen = replace(seen, rewards=reward(seen.states, controls[seen.actions], seen.next_states))
    learned = learn_reward(seen, BOX, controls)
    assert learned.name == "of few terms, before the step"
    said = learned(seen.states, seen.controls(controls), seen.next_states)
    np.testing.assert_allclose(said, seen.rewards, atol=1e-6)
    one = learned(seen.states[:1], seen.controls(controls)[:1], seen.next_states[:1])
    assert one[0] == said[0]  # whoever is asked with it changes no bit
