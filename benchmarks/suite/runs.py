"""One run of the suite, and one plan with the truth: what a worker does."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import optimist
from benchmarks.suite.members import MEMBERS
from optimist.runs.loop import begin
from optimist.runs.playing import play

N_PLAYED = 10  # episodes an outcome is the mean of
PLAY_SEED = 1000
N_PLANNED_FROM = 3  # starts the true-model plan is rehearsed from


def learn(member: str, seed: int, episodes: int) -> dict[str, Any]:
    """One run: the totals of its episodes, and what it earns afterwards."""

    env, began = MEMBERS[member](), perf_counter()
    agent = optimist.GPRMax(env, seed=seed)
    agent.learn(episodes=episodes)
    took = perf_counter() - began
    rows = agent.episodes
    return {
        "member": member,
        "seed": seed,
        "totals": [row.total_reward for row in rows],
        "expected": [row.expected for row in rows],
        "transitions": agent.num_timesteps,
        "settled_at": agent.stopped_learning_at,
        "layout": agent.layout.name,
        "outcome": float(play(env, agent.task, agent.policy, N_PLAYED, seed=PLAY_SEED).total_rewards.mean()),
        "seconds": round(took, 1),
    }


def plan_with_truth(member: str) -> dict[str, Any]:
    """The same planner given the true dynamics."""

    env = MEMBERS[member]()
    task, dynamics = env.get_wrapper_attr("task"), env.get_wrapper_attr("dynamics")
    starts = [begin(env, task, 0, episode) for episode in range(1, N_PLANNED_FROM + 1)]
    made = optimist.plan(task, dynamics, starts=np.array(starts))
    outcome = float(play(env, task, made.sights, N_PLAYED, seed=PLAY_SEED).total_rewards.mean())
    return {
        "member": member,
        "n_dims": task.box.n_dims,
        "n_actions": task.n_actions,
        "outcome": outcome,
        "layout": made.layout.name,
        "nodes": list(made.grid.shape),
    }
