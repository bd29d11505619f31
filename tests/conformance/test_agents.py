"""Every agent on every environment: the same contract, whoever made the environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import optimist
from optimist.agents import AGENTS, PRESETS, AgentSettings, GridSettings, settings_of
from optimist.arrays import FloatArray
from optimist.environments.system_environment import SystemEnvironment
from optimist.runs import Event, Stepped
from tests.environments.test_adapter import cart_pole, mountain_car, pendulum

STEPS = 60
ENVIRONMENTS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "mountain-car": lambda: SystemEnvironment("mountain-car"),
    "pendulum": lambda: gymnasium.make("optimist/Pendulum-v0"),
    "bicycle": lambda: gymnasium.make("optimist/Bicycle-v0"),
    "acrobot": lambda: SystemEnvironment("acrobot"),
    "MountainCar-v0": mountain_car,
    "Pendulum-v1": pendulum,
    "CartPole-v1": cart_pole,
}
EVERYTHING = [pytest.param(*chosen, id="-".join(chosen)) for chosen in product(ENVIRONMENTS, AGENTS, PRESETS)]
every_agent_and_environment = pytest.mark.parametrize(("environment", "agent", "preset"), EVERYTHING)
every_environment = pytest.mark.parametrize("environment", list(ENVIRONMENTS))


def tiny(n_dims: int, agent: str, preset: str) -> AgentSettings:
    per_axis = 9 if n_dims <= 2 else 5
    return settings_of(agent, preset=preset, grid=GridSettings(nodes=(per_axis,) * n_dims))


def made(
    environment: str, agent: str = "gp-rmax-exp", preset: str = "ours", *, seed: int = 0
) -> optimist.GPRMax:
    env = ENVIRONMENTS[environment]()
    n_dims = env.get_wrapper_attr("task").box.n_dims
    return optimist.GPRMax(env, settings=tiny(n_dims, agent, preset), agent=agent, seed=seed)


@cache
def learned(
    environment: str, agent: str = "gp-rmax-exp", preset: str = "ours", seed: int = 0
) -> optimist.GPRMax:
    """Not to be changed: shared by the tests."""
    return made(environment, agent, preset, seed=seed).learn(STEPS)


def states_of(learner: optimist.GPRMax, count: int = 25) -> FloatArray:
    """Inside the box and somewhat beyond."""
    box, stream = learner.task.box, np.random.default_rng(3)
    return stream.uniform(box.low - 0.1 * box.widths, box.high + 0.1 * box.widths, size=(count, box.n_dims))


def assert_equal_runs(one: optimist.GPRMax, other: optimist.GPRMax) -> None:
    for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one.transitions, name), getattr(other.transitions, name))
    np.testing.assert_array_equal(one.plan.q_values, other.plan.q_values)
    assert one.episodes == other.episodes


@every_agent_and_environment
def test_it_makes_the_transitions_it_was_told_to(environment: str, agent: str, preset: str) -> None:
    learner = learned(environment, agent, preset)
    seen = learner.transitions
    assert len(seen) == learner.num_timesteps == STEPS
    task = learner.task
    for t in range(1, STEPS):
        if not (seen.terminated[t - 1] or seen.truncated[t - 1]):
            np.testing.assert_array_equal(seen.states[t], seen.next_states[t - 1])
    promised = task.rewards(seen.states, task.controls[seen.actions], seen.next_states)
    np.testing.assert_allclose(seen.rewards, promised, rtol=2e-3, atol=1e-5)
    np.testing.assert_array_equal(seen.terminated, task.terminal(seen.next_states))
    ends = np.flatnonzero(seen.terminated | seen.truncated) + 1
    assert [row.transitions for row in learner.episodes] == ends.tolist()


@every_agent_and_environment
def test_it_answers_for_one_observation_and_for_many(environment: str, agent: str, preset: str) -> None:
    learner = learned(environment, agent, preset)
    states = states_of(learner)
    many, nothing = learner.predict(states)
    assert nothing is None
    assert many.shape == (25,)
    assert np.issubdtype(many.dtype, np.integer)
    for state, action in zip(states[:10], many[:10], strict=True):
        one, nothing = learner.predict(state)
        assert nothing is None
        assert np.ndim(one) == 0
        assert int(one) == action
        assert learner.env is not None
        assert learner.env.action_space.contains(one)
        again, _ = learner.predict(state.tolist(), state=None, episode_start=None, deterministic=False)
        assert again == one
    row, _ = learner.predict(states[:1])
    assert row.shape == (1,)


@every_agent_and_environment
def test_values_and_uncertainties_have_their_shapes_and_ranges(
    environment: str, agent: str, preset: str
) -> None:
    learner = learned(environment, agent, preset)
    states, task = states_of(learner), learner.task
    values, unsure = learner.value(states), learner.uncertainty(states)
    assert values.shape == (25,)
    assert unsure.shape == (25, task.n_actions)
    assert np.isfinite(values).all()
    # the plan is within tolerance / (1 - discount) of its fixed point, which V_MAX bounds
    slack = learner.settings.planning.tolerance / max(1.0 - task.discount, 1e-2)
    assert values.max() <= task.optimistic_value + slack
    assert unsure.min() >= 0.0
    assert unsure.max() <= 1.0 + 1e-12
    if agent == "gp-rmax-noexp":
        assert unsure.max() == 0.0
    else:
        assert unsure.max() > 0.0
    assert learner.value(states[0]).shape == (1,)
    assert learner.uncertainty(states[0]).shape == (1, task.n_actions)
    np.testing.assert_array_equal(learner.uncertainty(states[0]), unsure[:1])


@every_agent_and_environment
def test_what_is_saved_comes_back(environment: str, agent: str, preset: str, tmp_path: Path) -> None:
    learner = learned(environment, agent, preset)
    learner.save(tmp_path / "agent.optimist")
    loaded = optimist.GPRMax.load(tmp_path / "agent.optimist", env=ENVIRONMENTS[environment]())
    states = states_of(learner)
    np.testing.assert_array_equal(loaded.predict(states)[0], learner.predict(states)[0])
    np.testing.assert_array_equal(loaded.value(states), learner.value(states))
    np.testing.assert_array_equal(loaded.uncertainty(states), learner.uncertainty(states))
    np.testing.assert_array_equal(loaded.policy(states), learner.policy(states))
    assert loaded.settings == learner.settings
    assert (loaded.seed, loaded.num_timesteps) == (learner.seed, learner.num_timesteps)


@pytest.mark.parametrize(
    ("environment", "agent", "preset"),
    [(environment, "gp-rmax-exp", "ours") for environment in ENVIRONMENTS]
    + [("CartPole-v1", agent, "paper") for agent in AGENTS]
    + [("mountain-car", agent, "ours") for agent in list(AGENTS)[1:]],
)
def test_stopped_by_a_callback_it_goes_on_as_if_it_had_not_been(
    environment: str, agent: str, preset: str
) -> None:
    """And so two equal seeds give equal runs."""
    learner = made(environment, agent, preset)
    heard = []

    def until_the_23rd(event: Event) -> bool | None:
        heard.append(event)
        return False if isinstance(event, Stepped) and event.number == 23 else None

    learner.learn(STEPS, callback=until_the_23rd)
    assert learner.num_timesteps == 23
    assert [event.number for event in heard if isinstance(event, Stepped)] == list(range(1, 24))
    learner.learn(STEPS - 23)
    assert_equal_runs(learner, learned(environment, agent, preset))


@every_environment
def test_other_seeds_make_other_runs(environment: str) -> None:
    runs = [learned(environment, seed=seed).transitions for seed in (0, 1)]
    assert not np.array_equal(runs[0].actions, runs[1].actions)


@every_environment
def test_another_environment_of_the_same_task_begins_a_fresh_episode(environment: str) -> None:
    learner = made(environment).learn(12)
    other = ENVIRONMENTS[environment]()
    learner.set_env(other)
    assert learner.env is other
    learner.learn(8)
    assert learner.num_timesteps == 20
    starts = learner.transitions.states[12]
    assert not np.array_equal(starts, learner.transitions.next_states[11])
    learner.learn(4)
    assert learner.predict(starts)[0] in range(learner.task.n_actions)


@every_environment
def test_after_loading_it_goes_on_learning(environment: str, tmp_path: Path) -> None:
    learned(environment).save(tmp_path / "agent.optimist")
    loaded = optimist.GPRMax.load(tmp_path / "agent.optimist", env=ENVIRONMENTS[environment]())
    loaded.learn(5)
    assert loaded.num_timesteps == STEPS + 5
    np.testing.assert_array_equal(loaded.transitions.states[:STEPS], learned(environment).transitions.states)
