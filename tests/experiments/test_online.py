"""Runs by name: evaluating them, and opening what is recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from optimist import GPRMax, adapt
from optimist.agents import settings_of
from optimist.arrays import Actions, FloatArray
from optimist.experiments.kinds import KINDS, find_kind
from optimist.experiments.online import evaluate, open_run, start_run
from optimist.experiments.problems import Problem, find_problem
from optimist.planning import roll_out
from optimist.runs import RunError, RunStore, Session
from optimist.runs.loop import reset_seed
from optimist.runs.playing import play
from tests.experiments.own_problem import STEPS, write_my_cart
from tests.runs.recording import Line, with_header


class Brake:
    """A policy: against the velocity, or else against the position."""

    def greedy(self, states: FloatArray) -> Actions:
        against = np.where(states[:, 1] == 0.0, states[:, 0], states[:, 1])
        chosen: NDArray[np.int64] = (against < 0.0).astype(np.int64)
        return chosen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_my_cart(tmp_path_factory.mktemp("own")).parent


@pytest.fixture(scope="module")
def cart(folder: Path) -> Problem:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", sys.path.copy())
        return find_problem(f"{folder / 'my_cart.py'}:make_env")


@pytest.fixture(scope="module")
def learned(cart: Problem, folder: Path) -> Session[Any]:
    settings = folder / "quick.toml"
    with start_run(cart, "gp-rmax-exp", seed=0, run=folder / "run", file=settings) as run:
        return run.learn(episodes=1)


def test_episodes_played_in_the_environment_are_those_of_its_dynamics(cart: Problem) -> None:
    played = play(cart.env, cart.task, Brake(), 4, seed=3)
    starts = np.array([cart.env.reset(seed=reset_seed(3, episode))[0] for episode in (1, 2, 3, 4)])
    assert cart.dynamics is not None
    expected = roll_out(cart.task, cart.dynamics, Brake(), starts)
    np.testing.assert_array_equal(played.starts, starts)
    np.testing.assert_allclose(played.paths, expected.paths, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(played.total_rewards, expected.total_rewards, rtol=1e-13)
    assert played.steps.tolist() == expected.steps.tolist() == [STEPS] * 4
    assert played.terminated.tolist() == expected.terminated.tolist() == [False] * 4


class Ending(Line):
    """Ends where the speed is high; its episodes have different lengths."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        state, _, _, _, info = super().step(action)
        return state, -1.0, bool(abs(state[1]) > 0.3), False, info


def test_played_episodes_end_where_the_environment_ends_them_and_nothing_follows() -> None:
    env = adapt(
        Ending(),
        low=[-1.0, -1.0],
        high=[1.0, 1.0],
        controls=[-0.1, 0.1],
        reward=lambda states, controls, next_states: np.full(len(states), -1.0),
        is_terminal=lambda states: np.abs(states[:, 1]) > 0.3,
        max_steps=6,
    )
    played = play(env, env.task, Brake(), 12, seed=0)
    assert len(set(played.steps.tolist())) > 1
    assert played.terminated.any()
    assert not played.terminated.all()
    for k, steps in enumerate(played.steps):
        assert np.isfinite(played.paths[: steps + 1, k]).all()
        assert np.isnan(played.paths[steps + 1 :, k]).all()
        assert played.total_rewards[k] == -steps
        assert played.terminated[k] == (abs(played.paths[steps, k, 1]) > 0.3)
        assert played.terminated[k] or steps == 6
    assert play(env, env.task, Brake(), 2, seed=0).steps.tolist() == played.steps[:2].tolist()


def test_ones_own_is_evaluated_as_its_environment_begins_episodes(
    cart: Problem, learned: Session[Any]
) -> None:
    ((kind, found),) = evaluate(learned, cart, seed=5)
    assert (kind, len(found.steps)) == ("reset", 5)
    expected = play(cart.env, cart.task, learned.policy, 5, seed=5)
    np.testing.assert_array_equal(found.total_rewards, expected.total_rewards)


def test_random_states_are_followed_through_known_dynamics(
    cart: Problem, learned: Session[Any], folder: Path
) -> None:
    _, (kind, found) = evaluate(learned, cart, n_random=30, seed=5)
    assert (kind, found.starts.shape) == ("random", (30, 2))
    assert all(learned.box.contains(start) for start in found.starts)
    assert (np.ptp(found.starts, axis=0) > 0.7 * learned.box.widths).all()
    blind = find_problem(f"{folder / 'my_cart.py'}:make_blind_env")
    with pytest.raises(ValueError, match=r"known dynamics .*; got my_cart\.py:make_blind_env"):
        evaluate(learned, blind, n_random=1)


def test_a_run_is_opened_to_look_at_by_naming_its_problem(learned: Session[Any], folder: Path) -> None:
    run = folder / "run"
    with pytest.raises(ValueError, match="must be named again, since it is somebody's own code"):
        open_run(run, writing=False)
    opened, problem = open_run(run, f"{folder / 'my_cart.py'}:make_env", writing=False)
    with opened:
        assert problem.name == "my_cart.py:make_env"
        assert opened.episodes == learned.episodes
        starts = problem.starts
        assert np.array_equal(opened.policy.greedy(starts), learned.policy.greedy(starts))


def test_an_id_may_be_named_again_with_its_arguments_and_no_other_may(tmp_path: Path) -> None:
    """A run recorded from Python knows the id of its environment, not what it was made with."""
    settings = settings_of("gp-rmax-exp", preset="paper")
    env = gymnasium.make("CartPole-v1", sutton_barto_reward=True)
    with GPRMax(env, settings=settings, seed=0, run=tmp_path / "run") as learner:
        learner.learn(3)
    opened, problem = open_run(tmp_path / "run", "CartPole-v1[sutton_barto_reward=true]", writing=False)
    with opened:
        assert problem.name == "CartPole-v1[sutton_barto_reward=true]"
        assert opened.num_timesteps == 3
    with pytest.raises(
        ValueError, match=r"--problem must be the one .* is of, CartPole-v1; got 'pendulum'\.$"
    ):
        open_run(tmp_path / "run", "pendulum", writing=False)


def test_a_record_without_an_agent_is_damaged_and_one_of_an_unknown_agent_is_refused(
    tmp_path: Path,
) -> None:
    RunStore.create(tmp_path / "none", {"problem": "pendulum", "seed": 0}).close()
    with pytest.raises(RunError, match="is damaged: no agent"):
        open_run(tmp_path / "none", writing=False)
    RunStore.create(tmp_path / "unknown", {"problem": "pendulum", "agent": "dqn", "seed": 0}).close()
    with pytest.raises(ValueError, match=r"agent must be one of .*; got 'dqn'"):
        open_run(tmp_path / "unknown", writing=False)


@pytest.mark.parametrize("agent", ["gp-rmax-exp", "sarsa-fine"])
def test_a_record_without_settings_is_damaged(agent: str, tmp_path: Path) -> None:
    problem = find_problem("mountain-car")
    start_run(problem, agent, seed=0, run=tmp_path / "run").close()
    with_header(tmp_path / "run", lambda header: header.pop("settings"))
    with pytest.raises(RunError, match="is damaged"):
        open_run(tmp_path / "run", writing=False)


@pytest.mark.parametrize("agent", KINDS)
def test_a_negative_seed_is_refused_whatever_the_agent(agent: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`seed` must be a whole number, not negative; got -1"):
        start_run(find_problem("mountain-car"), agent, seed=-1, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_agent_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"agent must be one of gp-rmax-exp, .*sarsa-coarse; got 'dqn'"):
        find_kind("dqn")
