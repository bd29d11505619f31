"""The strangers of the suite with noise: learned by default, against planning with dynamics and noise."""

from __future__ import annotations

from time import process_time
from typing import Any

import gymnasium
import numpy as np

import optimist
from benchmarks.suite.members import MEMBERS
from benchmarks.suite.runs import N_PLANNED_FROM
from optimist.arrays import FloatArray
from optimist.models.model import noise_of
from optimist.planning.rollout import roll_out
from optimist.runs.loop import Updated, begin

EPISODES, PLAYED, PLAY_SEED, USUAL = 8, 100, 12345, 1000


def usual(env: gymnasium.Env[Any, Any]) -> FloatArray:
    """The displacement of a step under random controls, root mean square.  [d]"""
    task, random = env.get_wrapper_attr("task"), np.random.default_rng(0)
    moved: list[FloatArray] = []
    while len(moved) < USUAL:
        state, ended, count = begin(env, task, 0, len(moved) + 1), False, 0
        while not ended and count < task.max_steps:
            control = task.controls[[random.integers(task.n_actions)]]
            after = env.get_wrapper_attr("dynamics")(state[np.newaxis], control)
            moved.append(task.box.displacement(state[np.newaxis], after)[0])
            state, ended, count = after[0], bool(task.terminal(after)[0]), count + 1
    return np.asarray(np.sqrt(np.mean(np.square(moved), axis=0)))


def member(name: str, share: float, seed: int) -> dict[str, Any]:
    """Totals of noisy episodes: learned, and planned with the truth; whether noise was found at all."""
    began, env = process_time(), MEMBERS[name]()
    task, dynamics = env.get_wrapper_attr("task"), env.get_wrapper_attr("dynamics")
    noise, inner = share * usual(env), env.unwrapped
    exact = inner._dynamics  # type: ignore[attr-defined]

    def shaken(states: FloatArray, controls: FloatArray) -> FloatArray:
        after = exact(states, controls)
        return np.asarray(task.box.wrap(after + noise * env.np_random.standard_normal(after.shape)))

    inner._dynamics = shaken  # type: ignore[attr-defined]
    found: list[bool] = []

    def listen(event: object) -> None:
        if isinstance(event, Updated):
            found.append(noise_of(agent.model) is not None)

    agent = optimist.GPRMax(env, seed=seed)
    agent.learn(episodes=EPISODES, callback=listen)
    starts = np.array([begin(env, task, 0, episode) for episode in range(1, PLAYED + 1)])
    made = optimist.plan(task, dynamics, starts=starts[:N_PLANNED_FROM], noise=noise)
    true, mine = (
        roll_out(task, dynamics, policy, starts, noise=noise, seed=PLAY_SEED).total_rewards
        for policy in (made.sights, agent.policy)
    )
    learned = noise_of(agent.model)
    return {
        "true": round(float(true.mean()), 3),
        "error": round(float(true.std(ddof=1)) / PLAYED**0.5, 3),
        "learned": round(float(mine.mean()), 3),
        "settled_at": agent.stopped_learning_at,
        "transitions": agent.num_timesteps,
        "noisy": f"{sum(found)} of {len(found)} updates",
        "ratios": None if learned is None or not share else np.round((learned / noise) ** 2, 2).tolist(),
        "seconds": round(process_time() - began, 1),
    }
