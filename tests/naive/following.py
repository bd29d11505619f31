"""Following actions from one state, one step at a time: the Bellman equation written out, forwards in time.

A step here is one of a single state, (state [d], number of the action) -> next state [d], uncertainty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.steps import Dynamics
from optimist.task import Task

ScalarStep = Callable[[FloatArray, int], tuple[FloatArray, float]]


def certainly(task: Task, dynamics: Dynamics) -> ScalarStep:
    """Of known dynamics."""
    return lambda state, action: (dynamics(state[np.newaxis], task.controls[action][np.newaxis])[0], 0.0)


@dataclass(frozen=True, eq=False)
class Followed:
    """A held control, followed to its end."""

    end: FloatArray  # [d]
    reward: float  # discounted sum
    discount: float  # how much the value of `end` counts
    uncertainty: float = 0.0  # what is not in reward and discount already


def over(task: Task, state: FloatArray) -> bool:
    """Whether an episode has ended there."""
    return bool(task.terminal(state[np.newaxis])[0])


def reward(task: Task, state: FloatArray, action: int, next_state: FloatArray) -> float:
    """Of one step."""
    control = task.controls[action][np.newaxis]
    return float(task.rewards(state[np.newaxis], control, next_state[np.newaxis])[0])


def follow(task: Task, step: ScalarStep, state: FloatArray, action: int, hold: int) -> Followed:
    """One step with its uncertainty beside it, or several with theirs folded in."""
    if over(task, state):
        return Followed(state, reward(task, state, action, state), 0.0)
    if hold > 1:
        return folded(task, step, state, action, hold)
    next_state, uncertainty = step(state, action)
    earned = reward(task, state, action, next_state)
    return Followed(next_state, earned, 0.0 if over(task, next_state) else task.discount, uncertainty)


def folded(task: Task, step: ScalarStep, state: FloatArray, action: int, hold: int) -> Followed:
    """V = (1 - c) (r + g V') + c V_MAX, written out `hold` times; a path is over where it ends.

    A state that has ended before is worth what entering it pays.
    """
    if over(task, state):
        return Followed(state, reward(task, state, action, state), 0.0)
    next_state, uncertainty = step(state, action)
    rest = Followed(next_state, 0.0, 0.0 if over(task, next_state) else 1.0)
    if hold > 1 and not over(task, next_state):
        rest = folded(task, step, next_state, action, hold - 1)
    share = 1.0 - uncertainty
    earned = reward(task, state, action, next_state) + task.discount * rest.reward
    earned = share * earned + uncertainty * task.optimistic_value
    return Followed(rest.end, earned, share * task.discount * rest.discount)


def crossing(
    task: Task, step: ScalarStep, state: FloatArray, action: int, most: int, widths: FloatArray
) -> tuple[Followed, int]:
    """A control held until the path has moved by `widths` [d] on some axis, ended, or for `most` steps.

    What is uncertain on the way is folded in. It is let go, too, of a path that is too slow to cross anything
    in `most` steps, and of one of which no more than half is known. Also how many steps that took.
    """
    if over(task, state):
        return Followed(state, reward(task, state, action, state), 0.0), 0
    here, total, counts, certain, steps = state, 0.0, 1.0, 1.0, 0
    while steps < most:
        next_state, uncertainty = step(here, action)
        steps += 1
        earned = reward(task, here, action, next_state)
        total += counts * ((1.0 - uncertainty) * earned + uncertainty * task.optimistic_value)
        counts *= (1.0 - uncertainty) * task.discount
        certain *= 1.0 - uncertainty
        here = next_state
        if over(task, here):
            counts = 0.0
        if counts == 0.0:  # nothing of what follows matters
            break
        crossed = 0.0
        for axis, width in enumerate(widths):
            gap = abs(here[axis] - state[axis])
            if task.box.periodic[axis]:
                turns = range(-3, 4)
                period = task.box.high[axis] - task.box.low[axis]
                gap = min(abs(here[axis] - state[axis] + turn * period) for turn in turns)
            crossed = max(crossed, float(gap / width))
        if crossed >= 1.0 or crossed * most < steps or certain <= 0.5:
            break
    return Followed(here, total, counts), steps


def search(
    task: Task, step: ScalarStep, value: Callable[[FloatArray], float], state: FloatArray, depth: int
) -> list[float]:
    """Q(x, a) = (1 - c) (r + g max_b Q(x', b)) + c V_MAX of every action, `depth` times.

    At the end stands `value`; at terminal states 0.
    """
    q_values = []
    for action in range(task.n_actions):
        next_state, uncertainty = step(state, action)
        total = reward(task, state, action, next_state)
        if not over(task, next_state):
            rest = value(next_state) if depth == 1 else max(search(task, step, value, next_state, depth - 1))
            total += task.discount * rest
        q_values.append((1.0 - uncertainty) * total + uncertainty * task.optimistic_value)
    return q_values
