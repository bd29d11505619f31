"""An environment may be given by its id, or as a vector environment of one: the run is the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from optimist import GPRMax
from optimist.runs.given_environment import OnlyOne, environment_of
from tests.runs.recording import LINE, SMALL, Line, ShortLine, ShortSystem

LENGTH = 7  # steps of an episode


class Ending(Line):
    """Some episodes end soon, as their start says; others are cut off after a few steps, by itself."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        self.n_steps = 0
        state, info = super().reset(seed=seed, options=options)
        self.short = int(abs(state[0]) * 100.0) % 2 == 0
        return state, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        state, reward, _, _, info = super().step(action)
        return state, reward, self.n_steps == 4 and self.short, self.n_steps >= LENGTH, info


class Sb3Shaped:
    """What Stable-Baselines3's DummyVecEnv of one does, as its documentation has it."""

    num_envs = 1

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.next_seed: int | None = None
        self.actions: Any = None

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.next_seed = seed
        return [seed]

    def reset(self) -> Any:
        observation, _ = self.env.reset(seed=self.next_seed)
        self.next_seed = None
        return np.array([observation])

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.env.step(self.actions[0])
        info = dict(info) | {"TimeLimit.truncated": truncated and not terminated}
        if terminated or truncated:
            info["terminal_observation"] = observation
            observation, _ = self.env.reset()
        return np.array([observation]), np.array([reward]), np.array([terminated or truncated]), [info]

    def step(self, actions: Any) -> Any:
        self.step_async(actions)
        return self.step_wait()

    def get_attr(self, name: str) -> list[Any]:
        return [self.env.get_wrapper_attr(name)]

    def close(self) -> None:
        self.env.close()


MODES: Any = getattr(gymnasium.vector, "AutoresetMode", ())  # Gymnasium 1.0 has but one, without a name
VECTORS: dict[str, Callable[[], Any]] = {
    **{str(mode.value): partial(SyncVectorEnv, [Ending], autoreset_mode=mode) for mode in MODES},
    "wrapped": lambda: gymnasium.wrappers.vector.RecordEpisodeStatistics(SyncVectorEnv([Ending])),
    "Stable-Baselines3's shape": lambda: Sb3Shaped(Ending()),
}


@pytest.mark.parametrize("kind", VECTORS)
def test_a_vector_environment_of_one_is_learned_as_the_one_in_it(kind: str) -> None:
    vector = VECTORS[kind]()
    one, other = GPRMax(vector, settings=SMALL, seed=3), GPRMax(Ending(), settings=SMALL, seed=3)
    for learner in (one, other):
        learner.learn(20)
        learner.learn(episodes=5)
    for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one.transitions, name), getattr(other.transitions, name))
    assert one.episodes == other.episodes
    assert {row.ending for row in one.episodes} == {"terminated", "truncated"}
    assert one.get_env() is vector
    assert one.action_space == gymnasium.spaces.Discrete(2)
    assert one.task is LINE


def test_a_vector_environment_of_ours_brings_its_name(tmp_path: Any) -> None:
    with GPRMax(
        SyncVectorEnv([partial(ShortSystem, "mountain-car")]), settings=SMALL, run=tmp_path / "run"
    ) as learner:
        assert learner._problem == "mountain-car"


def test_a_vector_environment_of_two_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must have one environment, since .* one at a time; got 2"):
        GPRMax(SyncVectorEnv([ShortLine, ShortLine]))


def test_an_id_is_an_environment() -> None:
    learner = GPRMax("optimist/Pendulum-v0", settings=SMALL, seed=2)
    assert learner.env is not None
    assert learner.env.spec is not None
    assert learner.env.spec.id == "optimist/Pendulum-v0"
    assert learner.learn(3).num_timesteps == 3
    learner.set_env("optimist/Pendulum-v0")


def test_the_task_of_an_id_that_says_nothing_of_it_is_found() -> None:
    task = GPRMax("CartPole-v1").task
    assert task.n_actions == 2
    assert task.max_steps == 500
    assert task.box.n_dims == 4
    assert "to be learned" in str(task)


@pytest.mark.parametrize("name", ["optimist/Nothing-v0", "no such module:Nothing-v0", ""])
def test_an_id_that_is_none_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"`env` must be an environment, or the id of one.*; got "
    ) as refused:
        GPRMax(name)
    assert "\n" not in str(refused.value)


def test_other_environments_are_left_as_they_are() -> None:
    env = ShortLine()
    assert environment_of(env) is env
    assert environment_of(None) is None
    vector = SyncVectorEnv([ShortLine])
    made = environment_of(vector)
    assert isinstance(made, OnlyOne)
    made.close()
    assert vector.closed
