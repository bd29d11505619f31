"""Playing: whole episodes on a policy, in an environment that is only reset and stepped; nothing learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimist.arrays import FloatArray
from optimist.planning import Policy, Rollouts
from optimist.planning.policy import begun
from optimist.runs.loop import Environment, Place, begin, stepped
from optimist.task import Task


def play(env: Environment, task: Task, policy: Policy, episodes: int, *, seed: int) -> Rollouts:
    """Episodes in the environment itself."""
    paths, ended = [], []
    for episode in range(1, episodes + 1):
        start = begin(env, task, seed, episode)
        place, act = Place(episode, state=start), _acting(policy, start)
        path = [place.state]
        while place.state is not None:
            made = stepped(env, task, act, place, number=len(path))
            path.append(made.transition.next_state)
            place = made.place
        paths.append(np.array(path))
        ended.append(made.ended)
    rows = [row for row in ended if row is not None]
    steps = np.array([row.steps for row in rows])
    padded = np.full((steps.max() + 1, episodes, task.box.n_dims), np.nan)
    for k, found in enumerate(paths):
        padded[: len(found), k] = found
    totals = np.array([row.total_reward for row in rows])
    terminated = np.array([row.ending == "terminated" for row in rows])
    return Rollouts(padded[0], totals, steps, terminated, padded)


def _acting(policy: Policy, start: FloatArray) -> Callable[[FloatArray], int]:
    """How `policy` acts in an episode from `start` [d]."""
    acting, first = begun(policy, start[np.newaxis]), np.zeros(1, dtype=np.intp)
    return lambda state: int(acting(state[np.newaxis], first)[0])
