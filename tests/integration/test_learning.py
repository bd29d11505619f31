"""Learning from nothing, within generous bounds: what the issue asks of every seed."""

from __future__ import annotations

from optimist import GPRMax
from optimist.agents.settings import settings_of
from optimist.experiments.kinds import learning_settings
from optimist.experiments.online import evaluate
from optimist.experiments.problems import find_problem


def learned(name: str, agent: str, *, seed: int, episodes: int) -> GPRMax:
    problem = find_problem(name)
    learner = GPRMax(problem.env, settings=learning_settings(agent, problem), seed=seed)
    return learner.learn(episodes=episodes)


def test_mountain_car_is_driven_up_in_113_steps_from_the_second_episode_on() -> None:
    learner = learned("mountain-car", "gp-rmax-exp", seed=0, episodes=3)
    assert all(row.ending == "terminated" for row in learner.episodes)
    assert max(row.steps for row in learner.episodes[1:]) <= 113
    assert learner.n_outside == 0


def test_mountain_car_is_learned_without_exploration_too() -> None:
    """With the paper's settings: by ours every plan is rehearsed, whether or not it explores."""
    settings = settings_of("gp-rmax-noexp", preset="paper")
    learner = GPRMax(find_problem("mountain-car").env, settings=settings, seed=0).learn(episodes=3)
    assert max(row.steps for row in learner.episodes[2:]) <= 113


def test_pendulum_is_swung_up_at_the_second_episode() -> None:
    learner = learned("pendulum", "gp-rmax-exp", seed=0, episodes=2)
    assert [row.steps for row in learner.episodes] == [500] * 2
    assert learner.episodes[1].total_reward >= -20.5
    # and what was learned is worth as much when nothing is learned any more
    ((kind, greedy),) = evaluate(learner, find_problem("pendulum"))
    assert kind == "paper"
    assert greedy.total_rewards.min() >= -20.5
