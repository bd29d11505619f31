"""Following a policy through known dynamics from several starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.planning.policy import Policy, begun
from optimist.steps import NOISE_STREAM, Dynamics, successors
from optimist.task import Task


@dataclass(frozen=True, eq=False)
class Rollouts:
    """One episode from each start."""

    starts: FloatArray  # [n, d]
    total_rewards: FloatArray  # [n], undiscounted
    steps: NDArray[np.int64]  # [n]
    terminated: BoolArray  # [n]; the others were cut off after `max_steps`
    paths: FloatArray  # [longest + 1, n, d], NaN after the end of an episode

    def rows(self) -> list[dict[str, Any]]:
        """One by one, as JSON says it."""
        return [
            {
                "start": self.starts[k].tolist(),
                "total_reward": float(self.total_rewards[k]),
                "steps": int(self.steps[k]),
                "terminated": bool(self.terminated[k]),
            }
            for k in range(len(self.steps))
        ]

    @staticmethod
    def told(row: dict[str, Any]) -> str:
        """One of `rows` in words."""
        start = ", ".join(f"{x:.3g}" for x in row["start"])
        end = "terminated" if row["terminated"] else "cut off"
        return f"from ({start}): total reward {row['total_reward']:.4g} in {row['steps']} steps ({end})"


def roll_out(
    task: Task,
    dynamics: Dynamics,
    policy: Policy,
    starts: FloatArray,
    *,
    noise: FloatArray | None = None,
    box: Box | None = None,
    seed: int = 0,
) -> Rollouts:
    """Episodes of at most `task.max_steps` steps from `starts` [n, d].

    With `noise` [d], the standard deviation of where a step leads, drawn from a stream of `seed`; what it
    moves out of the `box` that states can reach is moved to its edge.
    """
    stream = np.random.default_rng([seed, NOISE_STREAM])
    states = np.array(starts, dtype=np.float64)
    total_rewards = np.zeros(len(states))
    steps = np.zeros(len(states), dtype=np.int64)
    terminated = task.terminal(states).copy()
    paths, acting = [states], begun(policy, states)
    for _ in range(task.max_steps):
        running = np.flatnonzero(~terminated)
        if running.size == 0:
            break
        before = states[running]
        controls = task.applied(acting(before, running))
        after = successors(dynamics, before, controls)
        if noise is not None:
            after = (box or task.box).astray(after, noise * stream.standard_normal(after.shape))
        total_rewards[running] += task.rewards(before, controls, after)
        steps[running] += 1
        states = np.full_like(states, np.nan)
        states[running] = after
        paths.append(states)
        terminated[running] = task.terminal(after)
    return Rollouts(np.array(starts), total_rewards, steps, terminated, np.stack(paths))
