"""One measurement each: totals after learning, the learned noise, updates after settling."""

from __future__ import annotations

from time import process_time
from typing import Any

import gymnasium
import numpy as np

import optimist
from optimist.arrays import FloatArray
from optimist.models.model import noise_of
from optimist.planning.rollout import roll_out
from optimist.runs.loop import Updated
from optimist.systems import find_system

PLAYED, PLAY_SEED = 200, 12345
EPISODES = {"mountain-car": 5, "pendulum": 5, "cart-pole": 8, "acrobot": 8, "bicycle": 8}
AFTER = 3000  # transitions after settling


def made(problem: str, share: float) -> gymnasium.Env[Any, Any]:
    """The environment, episodes as long as the task says."""
    system = find_system(problem)
    return gymnasium.make(system.gymnasium_id, noise=share, max_episode_steps=system.task.max_steps)


def played(problem: str, share: float, policy: Any) -> FloatArray:
    """Totals of noisy episodes from the starts in turn.  [PLAYED]"""
    system = find_system(problem)
    starts = system.starts[np.arange(PLAYED) % len(system.starts)]
    noise, box = system.noise(share), system.observation_box
    found = roll_out(
        system.task, system.dynamics, policy, starts, noise=noise if share else None, box=box, seed=PLAY_SEED
    )
    return found.total_rewards


def best(problem: str, share: float, *, planned: float | None = None) -> dict[str, Any]:
    """The planner with the true dynamics and the true noise, or with the mean (`planned` 0)."""
    began, system = process_time(), find_system(problem)
    planned = share if planned is None else planned
    plan = optimist.plan(system.task, system.dynamics, starts=system.starts, noise=system.noise(planned))
    totals = played(problem, share, plan.sights)
    return said(totals) | {"layout": plan.layout.name, "seconds": round(process_time() - began, 1)}


def learned(problem: str, share: float, seed: int) -> dict[str, Any]:
    """Learning from nothing, then episodes without learning."""
    began = process_time()
    agent = optimist.GPRMax(made(problem, share), seed=seed)
    updates: list[Updated] = []

    def listen(event: object) -> None:
        if isinstance(event, Updated):
            updates.append(event)

    agent.learn(episodes=EPISODES[problem], callback=listen)
    noise, true = noise_of(agent.model), find_system(problem).noise(share)
    return said(played(problem, share, agent.policy)) | {
        "episodes": [round(row.total_reward, 3) for row in agent.episodes],
        "settled_at": agent.stopped_learning_at,
        "updates": len(updates),
        "transitions": agent.num_timesteps,
        "variance_ratios": None if noise is None or not share else np.round((noise / true) ** 2, 3).tolist(),
        "expected": None if agent.expected is None else round(float(agent.expected), 3),
        "ends_catch": agent._agent.known().planned.task.ends_catch,
        "seconds": round(process_time() - began, 1),
    }


def settled(problem: str, share: float, seed: int, *, most: int = 1500) -> dict[str, Any]:
    """Updates in 3,000 transitions after it has settled for the first time."""
    agent = optimist.GPRMax(made(problem, share), seed=seed)
    counts: list[int] = []

    def listen(event: object) -> bool:
        if isinstance(event, Updated):
            counts.append(agent.num_timesteps)
        return not (agent.stopped_learning_at is not None and len(counts) > 0)

    agent.learn(most, callback=listen)
    if agent.stopped_learning_at is None:
        return {"settled_at": None, "further": None}
    first, at = len(counts), agent.stopped_learning_at

    def go_on(event: object) -> None:
        if isinstance(event, Updated):
            counts.append(agent.num_timesteps)

    agent.learn(AFTER, callback=go_on)
    return {"settled_at": at, "further": len(counts) - first, "when": counts[first:]}


def said(totals: FloatArray) -> dict[str, Any]:
    error = totals.std(ddof=1) / len(totals) ** 0.5
    return {"mean": round(float(totals.mean()), 3), "error": round(float(error), 3)}
