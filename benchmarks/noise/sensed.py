"""Noisy sensors: told from noise of the motion, and totals of who acts on what they say, filtered or not."""

from __future__ import annotations

from time import process_time
from typing import Any

import gymnasium
import numpy as np

import optimist
from benchmarks.noise import changing, runs, strangers
from optimist.arrays import FloatArray
from optimist.environments.system_environment import SystemEnvironment
from optimist.models import fit_dynamics, sensing
from optimist.models import uneven as places_of_noise
from optimist.models.gp_dynamics import GPDynamics
from optimist.planning.policy import Policy, begun
from optimist.runs.loop import Updated
from optimist.systems import find_system


def sensors(problem: str, share: float, seed: int, *, n_transitions: int = 300) -> dict[str, Any]:
    """Variances of sensors and motion, each against the true one, where one or the other or both are noisy.

    Of noise that is not there, against what it would be if it were.
    """
    said: dict[str, Any] = {}
    for name, noise, reads in (("motion", share, 0.0), ("sensors", 0.0, share), ("both", share, share)):
        env = SystemEnvironment(problem, noise=noise, sensor_noise=reads)
        seen = strangers.wandered(env, seed, n_transitions)
        model = fit_dynamics(seen, env.task.box, env.task.controls, fit_seed=seed)
        true, nothing = env.system.noise(share), np.zeros(env.task.box.n_dims)
        found = {"sensors": model.sensors, "motion": model.motion}
        said[name] = {
            which: np.round(((nothing if one is None else one) / true) ** 2, 3).tolist()
            for which, one in found.items()
        }
    return said


def read(problem: str, share: float, seed: int) -> dict[str, Any]:
    """Learning from nothing with noisy sensors, then episodes without learning."""
    began, system = process_time(), find_system(problem)
    env = gymnasium.make(system.gymnasium_id, sensor_noise=share, max_episode_steps=system.task.max_steps)
    agent = optimist.GPRMax(env, seed=seed)
    updates: list[int] = []

    def listen(event: object) -> None:
        if isinstance(event, Updated):
            updates.append(agent.num_timesteps)

    agent.learn(episodes=runs.EPISODES[problem], callback=listen)
    model, true = agent.model, system.noise(share)
    assert isinstance(model, GPDynamics)
    found = model.sensors
    return runs.said(played(problem, share, agent.policy)) | {
        "episodes": [round(row.total_reward, 3) for row in agent.episodes],
        "settled_at": agent.stopped_learning_at,
        "updates": len(updates),
        "last": updates[-1],
        "transitions": agent.num_timesteps,
        "sensors": None if found is None else np.round((found / true) ** 2, 3).tolist(),
        "motion": None if model.motion is None else np.round((model.motion / true) ** 2, 3).tolist(),
        "seconds": round(process_time() - began, 1),
    }


def unfiltered(problem: str, share: float, seed: int) -> dict[str, Any]:
    """The same of an agent that takes all noise for the motion's."""
    sure, sensing.SURE = sensing.SURE, np.inf
    try:
        return read(problem, share, seed)
    finally:
        sensing.SURE = sure


def uneven(_problem: str, _share: float, seed: int) -> dict[str, Any]:
    """A cliff where noise is largest: who learns that it depends on the place, and who takes it as even."""
    said: dict[str, Any] = {}
    level = places_of_noise.LEVEL
    for name, chance in (("by the place", level), ("even", -1.0)):
        places_of_noise.LEVEL = chance
        env = changing.Stranger(changing.CLIFF, changing.walk, changing.CLIFF_START)
        env.noise_at = changing.rough
        agent = changing.agent_of(env, seed)
        agent.learn(episodes=strangers.EPISODES)
        totals = walked(agent.policy, seed)
        assert isinstance(agent.model, GPDynamics)
        said[name] = runs.said(totals) | {
            "failures": round(float((totals <= -30.0).mean()), 4),
            "found": agent.model.uneven is not None,
            "transitions": agent.num_timesteps,
        }
    places_of_noise.LEVEL = level
    return said


def walked(policy: Policy, seed: int) -> FloatArray:
    """Totals of walks beside that cliff.  [PLAYED]"""
    task, stream = changing.CLIFF, np.random.default_rng([runs.PLAY_SEED, seed])
    states = np.repeat(changing.CLIFF_START, runs.PLAYED, axis=0)
    acting, going, totals = begun(policy, states), np.arange(runs.PLAYED), np.zeros(runs.PLAYED)
    for _ in range(task.max_steps):
        controls = task.applied(acting(states, going))
        noise = changing.rough(states) * stream.standard_normal(states.shape)
        after = task.box.wrap(changing.walk(states, controls) + noise)
        totals[going] += task.rewards(states, controls, after)
        on = ~task.terminal(after)
        going, states = going[on], after[on]
        if not going.size:
            break
    return totals


def played(problem: str, share: float, policy: Policy) -> FloatArray:
    """Totals of episodes from the starts in turn, of which only readings are seen.  [PLAYED]"""
    system, stream = find_system(problem), np.random.default_rng(runs.PLAY_SEED)
    states = system.starts[np.arange(runs.PLAYED) % len(system.starts)]
    noise, box, task = system.noise(share), system.observation_box, system.task

    def readings(states: FloatArray) -> FloatArray:
        return box.clip(states + noise * stream.standard_normal(states.shape))

    shown = readings(states)
    acting, going, totals = begun(policy, shown), np.arange(runs.PLAYED), np.zeros(runs.PLAYED)
    for _ in range(task.max_steps):
        controls = task.applied(acting(shown, going))
        after = system.dynamics(states, controls)
        totals[going] += task.rewards(states, controls, after)
        on = ~task.terminal(after)
        going, states = going[on], after[on]
        if not going.size:
            break
        shown = readings(states)
    return totals
