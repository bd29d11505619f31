"""What is found of an environment that says nothing of its task."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit, TransformObservation

import optimist
from optimist.box import Box
from optimist.environments.finding import discount_of, find
from optimist.environments.observing import find_observing


class Shown(gymnasium.Env[Any, Any]):
    """Shows what it is given, at every reset something else."""

    def __init__(self, space: spaces.Space[Any], show: Any, actions: spaces.Space[Any] | None = None) -> None:
        self.observation_space, self._show = space, show
        self.action_space = spaces.Discrete(2) if actions is None else actions

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._show(self.np_random), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._show(self.np_random), 0.0, False, False, {}


def unbounded(count: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape=(count,), dtype=np.float64)


@pytest.mark.parametrize(
    ("name", "n_dims", "periodic", "is_open"),
    [
        ("CartPole-v1", 4, [False] * 4, [False, True, False, True]),
        ("MountainCar-v0", 2, [False] * 2, [False] * 2),
        ("Pendulum-v1", 2, [True, False], [False] * 2),
        ("Acrobot-v1", 4, [True, True, False, False], [False] * 4),
        ("MountainCarContinuous-v0", 2, [False] * 2, [False] * 2),
    ],
)
def test_gymnasiums_own(name: str, n_dims: int, periodic: list[bool], is_open: list[bool]) -> None:
    found = find(gymnasium.make(name)).found
    assert found.low.shape == (n_dims,)
    assert found.periodic.tolist() == periodic
    assert (~np.isfinite(found.high)).tolist() == is_open
    assert isinstance(found.controls, Box) is (name in {"Pendulum-v1", "MountainCarContinuous-v0"})


def test_an_angle_is_what_its_cosine_and_sine_say() -> None:
    env = find(gymnasium.make("Pendulum-v1"))
    state, _ = env.reset(seed=3)
    raw, _ = gymnasium.make("Pendulum-v1").reset(seed=3)
    np.testing.assert_allclose([np.cos(state[0]), np.sin(state[0]), state[1]], raw, atol=1e-6)


def test_copies_are_left_out_with_a_word_and_constants_are_kept() -> None:
    env = find(Shown(unbounded(3), lambda random: np.array([x := random.normal(), 5.0, 2.0 * x - 1.0])))
    assert env.observing.kept == [0, 1]  # type: ignore[union-attr]
    assert env.observing.told() == ["coordinate 2 follows from 0: left out"]


@pytest.mark.parametrize("radius", [1.0, 1.3])
def test_what_was_found_by_luck_is_noticed(radius: float) -> None:
    def show(random: np.random.Generator) -> Any:
        turn = random.uniform(0.0, 6.0)
        return np.array([np.cos(turn), np.sin(turn)])

    env = find(Shown(unbounded(2), show))
    assert env.found.periodic.tolist() == [True]
    env.env._show = lambda random: radius * show(random)  # type: ignore[attr-defined]
    if radius == 1.0:
        env.reset(seed=0)
    else:
        with pytest.raises(ValueError, match="must lie on a circle"):
            env.reset(seed=0)


def test_no_angle_without_evidence() -> None:
    same = np.tile([1.0, 0.0], (8, 1))
    assert find_observing(same, np.full(2, -1.0), np.full(2, 1.0)).is_identity
    turns = np.linspace(0.0, 6.0, 8)
    circle = np.column_stack([np.cos(turns), np.sin(turns)])
    assert find_observing(circle, np.full(2, -5.0), np.full(2, 5.0)).is_identity  # bounds of no cosine
    assert find_observing(circle, np.full(2, -1.0), np.full(2, 1.0)).circles == ((0, 1),)


def test_wrappers_of_a_user_work() -> None:
    scaled = TransformObservation(
        gymnasium.make("MountainCar-v0"),
        lambda observation: 2.0 * observation,
        spaces.Box(-10.0, 10.0, shape=(2,), dtype=np.float32),
    )
    env = find(TimeLimit(scaled, 30))
    assert env.found.max_steps == 30
    assert env.found.high.tolist() == [10.0, 10.0]


@pytest.mark.parametrize(("limit", "discount"), [(None, 0.99), (200, 0.99), (10, 0.95), (10_000, 0.995)])
def test_the_discount_follows_the_time_limit(limit: int | None, discount: float) -> None:
    assert discount_of(limit) == pytest.approx(discount)


def test_what_is_told_is_used() -> None:
    env = optimist.find(gymnasium.make("CartPole-v1"), low=[-3, -3, -1, -4], high=[3, 3, 1, 4], discount=0.9)
    assert env.found.high.tolist() == [3.0, 3.0, 1.0, 4.0]
    assert env.found.discount == 0.9
    assert "discount" not in env.found.sources
    short = optimist.find(gymnasium.make("CartPole-v1"), state=lambda seen: seen[2:])
    assert short.reset(seed=0)[0].shape == (2,)
    assert not np.isfinite(short.found.low).any()


def test_what_is_no_environment_or_no_box_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"`env` must be a gymnasium.Env, .*; got None"):
        find(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`low` must be below `high` on every axis; got low"):
        find(gymnasium.make("CartPole-v1"), low=[3, -3, -1, -4], high=[3, 3, 1, 4])


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"discount": 2}, "`discount` must be between 0 and 1; got 2"),
        ({"axis_names": ["x", "v"]}, r"`axis_names` must have one name per coordinate .*\(4\); got"),
        ({"axis_names": 3}, "`axis_names` must be a list; got 3"),
        ({"reward": 3}, "`reward` must be a function; got 3"),
        ({"max_steps": 0}, "`max_steps` must be at least 1; got 0"),
        ({"max_steps": 2.5}, "`max_steps` must be a whole number; got 2.5"),
        ({"optimistic_value": np.nan}, "`optimistic_value` must be finite; got nan"),
        ({"is_terminal": 0.5}, "`is_terminal` must be a function; got 0.5"),
    ],
)
def test_what_is_told_wrongly_is_refused_at_once(told: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        find(gymnasium.make("CartPole-v1"), **told)


def test_names_may_come_one_by_one() -> None:
    assert find(gymnasium.make("CartPole-v1"), axis_names=iter("abcd")).axis_names == ("a", "b", "c", "d")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (spaces.Box(-1, 1, (1, 1), np.float64), "images or tables.*numpy.ravel"),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), "does not learn from images"),
        (spaces.Discrete(3), "one-dimensional arrays of numbers"),
        (spaces.Text(5), "one-dimensional arrays of numbers"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), "one-dimensional arrays of numbers"),
        (unbounded(7), "at most 6 coordinates"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_sentence(space: spaces.Space[Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        find(Shown(space, lambda random: random.normal(size=space.shape)))
    assert "optimist.find(env, state=" in str(refused.value)
    assert "\n" not in str(refused.value)


class Counted(Shown):
    """Takes the numbers of its own space, and no others."""

    def __init__(self, start: int) -> None:
        space = spaces.Box(-1.0, 1.0, (1,), np.float64)
        super().__init__(space, lambda stream: stream.uniform(-1.0, 1.0, 1), spaces.Discrete(3, start=start))
        self.taken: list[int] = []
        self.start = start

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.taken.append(int(action))
        return np.array([0.3 * (int(action) - self.start - 1)]), 1.0, False, False, {}


@pytest.mark.parametrize("start", [0, 5, -1])
def test_actions_are_counted_as_the_environment_counts(start: int) -> None:
    env = Counted(start)
    agent = optimist.GPRMax(TimeLimit(env, 10), seed=0).learn(12)
    assert set(env.taken) == {start, start + 1, start + 2}
    one, _ = agent.predict(np.zeros(1))
    many, _ = agent.predict(np.linspace(-1.0, 1.0, 5)[:, np.newaxis])
    assert env.action_space.contains(one)
    assert all(env.action_space.contains(action) for action in many)
    assert agent.action_space == env.action_space
    assert {int(row.action) for row in agent.transitions.rows()} == {0, 1, 2}  # the record counts from 0
    np.testing.assert_allclose(find(env).step(start + 2)[0], [0.3])
