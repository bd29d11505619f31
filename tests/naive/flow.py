"""Following an interpolated model one state, one action and one step at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from optimist.grid import Grid
from optimist.planning.tables import Successors
from optimist.task import Task
from tests.naive.interpolation import weights_of_point

FloatArray = NDArray[np.float64]


def wrapped(x: float, low: float, period: float) -> float:
    """The same place in [low, low + period)."""
    turned = x - floor((x - low) / period) * period
    return low if turned >= low + period else turned


def node_displacements(grid: Grid, next_states: FloatArray) -> FloatArray:
    """From every node to its successor [N, d], the short way round on periodic axes."""
    table = np.empty(next_states.shape)
    for node, start in enumerate(grid.nodes):
        for axis in range(grid.n_dims):
            moved = float(next_states[node, axis]) - float(start[axis])
            period = float(grid.box.widths[axis])
            table[node, axis] = wrapped(moved, -period / 2.0, period) if grid.box.periodic[axis] else moved
    return table


def step(grid: Grid, model: Successors, state: FloatArray, action: int) -> tuple[FloatArray, float]:
    """The successor of one state under one action, and how uncertain it is."""
    periods = [
        float(width) if turns else None
        for width, turns in zip(grid.box.widths, grid.box.periodic, strict=True)
    ]
    weights = weights_of_point(grid.axes, periods, state)
    successor = state + weights @ node_displacements(grid, model.next_states[action])
    for axis, period in enumerate(periods):
        if period is not None:
            successor[axis] = wrapped(float(successor[axis]), float(grid.box.low[axis]), period)
    return successor, float(weights @ model.uncertainty[action])


@dataclass(frozen=True, eq=False)
class Held:
    """A held control, followed to its end."""

    end: FloatArray  # [d]
    reward: float  # optimistic, discounted sum
    discount: float  # how much the value of `end` counts


def held(grid: Grid, model: Successors, task: Task, state: FloatArray, action: int, steps: int) -> Held:
    """V = (1 - c) (r + g V') + c V_MAX, written out `steps` times; a terminal state is worth nothing."""
    if task.terminal(state[np.newaxis])[0]:
        return Held(state, 0.0, 0.0)
    next_state, uncertainty = step(grid, model, state, action)
    control = task.controls[action][np.newaxis]
    reward = float(task.rewards(state[np.newaxis], control, next_state[np.newaxis])[0])
    if task.terminal(next_state[np.newaxis])[0]:
        rest = Held(next_state, 0.0, 0.0)
    elif steps == 1:
        rest = Held(next_state, 0.0, 1.0)
    else:
        rest = held(grid, model, task, next_state, action, steps - 1)
    known = 1.0 - uncertainty
    earned = known * (reward + task.discount * rest.reward) + uncertainty * task.optimistic_value
    return Held(rest.end, earned, known * task.discount * rest.discount)


def search(
    grid: Grid, model: Successors, task: Task, q_values: FloatArray, state: FloatArray, depth: int
) -> list[float]:
    """Q(x, a) = (1 - c) (r + g max_b Q(x', b)) + c V_MAX of every action, `depth` times.

    At the end stands the value of the plan, interpolated between the best at the nodes; at terminal states 0.
    """
    periods = [
        float(width) if turns else None
        for width, turns in zip(grid.box.widths, grid.box.periodic, strict=True)
    ]
    best = np.array([max(row) for row in q_values.tolist()])
    values = []
    for action in range(task.n_actions):
        next_state, uncertainty = step(grid, model, state, action)
        control = task.controls[action][np.newaxis]
        total = float(task.rewards(state[np.newaxis], control, next_state[np.newaxis])[0])
        if not task.terminal(next_state[np.newaxis])[0]:
            if depth == 1:
                future = float(weights_of_point(grid.axes, periods, next_state) @ best)
            else:
                future = max(search(grid, model, task, q_values, next_state, depth - 1))
            total += task.discount * future
        values.append((1.0 - uncertainty) * total + uncertainty * task.optimistic_value)
    return values
