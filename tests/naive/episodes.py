"""Following controls through the dynamics, one state and one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from optimist.arrays import FloatArray
from optimist.steps import Dynamics
from optimist.task import Task


@dataclass(frozen=True, eq=False)
class Transition:
    """One step from one state."""

    next_state: FloatArray  # [d]
    reward: float
    ended: bool


def step(task: Task, dynamics: Dynamics, state: FloatArray, control: FloatArray) -> Transition:
    """x_{t+1} = f(x_t, a_t), with its reward."""
    states, controls = state[np.newaxis], control[np.newaxis]
    next_states = dynamics(states, controls)
    reward = float(task.rewards(states, controls, next_states)[0])
    return Transition(next_states[0], reward, bool(task.terminal(next_states)[0]))


def best_sequences(
    task: Task,
    dynamics: Dynamics,
    value: Callable[[FloatArray], FloatArray],
    state: FloatArray,
    depth: int,
) -> FloatArray:
    """For each first action, the best of all sequences of `depth` actions that begin with it:

    sum_{t < depth} g^t r_t + g^depth V(x_depth), the sum ending where the episode does.  [A]
    """
    best = np.full(task.n_actions, -np.inf)
    for sequence in product(range(task.n_actions), repeat=depth):
        x, total, factor = state, 0.0, 1.0
        for action in sequence:
            taken = step(task, dynamics, x, task.controls[action])
            total += factor * taken.reward
            factor = 0.0 if taken.ended else factor * task.discount
            x = taken.next_state
        total += factor * float(value(x[np.newaxis])[0])
        best[sequence[0]] = max(best[sequence[0]], total)
    return best


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode."""

    path: list[FloatArray]
    total_reward: float
    terminated: bool


def episode(
    task: Task, dynamics: Dynamics, choose: Callable[[FloatArray], int], start: FloatArray
) -> Episode:
    """From `start` to the end, or to `max_steps`."""
    path, total = [start], 0.0
    terminated = bool(task.terminal(start[np.newaxis])[0])
    while not terminated and len(path) <= task.max_steps:
        taken = step(task, dynamics, path[-1], task.controls[choose(path[-1])])
        total += taken.reward
        path.append(taken.next_state)
        terminated = taken.ended
    return Episode(path, total, terminated)
