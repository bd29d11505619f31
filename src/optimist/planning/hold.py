"""Holding each control for several steps while planning.

Interpolation smears the value function a little at every step of a path. When a step is short against
the cells of the grid (the bicycle's 0.01 s), a path takes many steps to cross one cell and little of the
value function survives. The cure is to plan with longer steps: the same task and dynamics, each control
held for `steps` steps, rewards summed on the way. What comes out is again a task and dynamics: the
planner need not know. (Action at every single step is then taken by looking one step ahead.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.dynamics import Dynamics, successors
from optimist.task import Task


class _Held(NamedTuple):
    states: FloatArray  # [n, d]
    rewards: FloatArray  # [n], discounted sum so far
    ended: BoolArray  # [n]


def hold(task: Task, dynamics: Dynamics, steps: int) -> tuple[Task, Dynamics]:
    """Task and dynamics whose one step is `steps` steps under a held control.

    States stay where they terminate.
    """
    if not 1 <= steps <= task.max_steps or int(steps) != steps:
        raise ValueError(f"`hold` must be a whole number from 1 to {task.max_steps}; got {steps}.")
    if steps == 1:
        return task, dynamics

    def run(states: FloatArray, controls: FloatArray) -> _Held:
        *_, last = _run(task, dynamics, states, controls, steps)
        return last

    def held_dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
        return run(states, controls).states

    def held_reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return run(states, controls).rewards

    held_task = replace(
        task,
        reward=held_reward,
        discount=task.discount**steps,
        max_steps=-(-task.max_steps // steps),
    )
    return held_task, held_dynamics


def _run(
    task: Task, dynamics: Dynamics, states: FloatArray, controls: FloatArray, steps: int
) -> Iterator[_Held]:
    rewards = np.zeros(len(states))
    ended = task.terminal(states)
    for step in range(steps):
        next_states = successors(dynamics, states, controls)
        earned = task.discount**step * task.rewards(states, controls, next_states)
        rewards = rewards + np.where(ended, 0.0, earned)
        states = np.where(ended[:, np.newaxis], states, next_states)
        ended = ended | task.terminal(states)
        yield _Held(states, rewards, ended)
