"""Acting on a plan: greedily on the interpolated Q-values, or by looking ahead through a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from optimist.arrays import Actions, FloatArray
from optimist.compiled.interpolation import interpolate_many
from optimist.dynamics import Dynamics, successors
from optimist.grid import Grid
from optimist.task import Task

MOST_LEAVES = 2**18  # states that a lookahead holds at a time


class Policy(Protocol):
    """Chooses actions."""

    def greedy(self, states: FloatArray) -> Actions:
        """The best action in each of `states` [n, d]; the first of equals.  [n]"""
        ...


@dataclass(frozen=True, eq=False)
class QFunction:
    """Q-values at the nodes, interpolated in between. Outside the box: as at its edge."""

    grid: Grid
    q_values: FloatArray  # [n_nodes, n_actions]

    def __post_init__(self) -> None:
        if self.q_values.ndim != 2 or len(self.q_values) != self.grid.n_nodes:
            raise ValueError(
                f"`q_values` must have one row per node ({self.grid.n_nodes}); "
                f"got shape {self.q_values.shape}."
            )
        if not np.isfinite(self.q_values).all():
            raise ValueError("`q_values` must be finite; got NaN or infinity.")

    def __call__(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d].  [n, n_actions]"""
        return _interpolated(self.grid, self._padded, states)

    def greedy(self, states: FloatArray) -> Actions:
        """The action with the highest Q-value; the first of equals.  [n]"""
        return np.asarray(self(states).argmax(axis=1))

    def value(self, states: FloatArray) -> FloatArray:
        """The best value at the nodes, interpolated.  [n]"""
        return _interpolated(self.grid, self.padded_values[:, np.newaxis], states)[:, 0]

    @cached_property
    def _padded(self) -> FloatArray:
        return self.grid.pad(self.q_values)

    @cached_property
    def padded_values(self) -> FloatArray:
        """The best value of every node, padded.  [n_padded]"""
        return self.grid.pad(self.q_values.max(axis=1))


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Tries all action sequences of length `depth` through the dynamics; the plan values the ends.

    Costs n_actions^depth predictions per decision. Depth 1 already spares one interpolation.
    """

    task: Task
    dynamics: Dynamics
    q_function: QFunction
    depth: int

    def __post_init__(self) -> None:
        require_searchable(self.task.n_actions, self.depth)

    def greedy(self, states: FloatArray) -> Actions:
        """The first action of the best sequence; the first of equals.  [n]"""
        actions = np.empty(len(states), dtype=np.int64)
        block = max(1, MOST_LEAVES // self.task.n_actions**self.depth)
        for first in range(0, len(states), block):
            rows = slice(first, first + block)
            actions[rows] = self._search(states[rows], self.depth).argmax(axis=1)
        return actions

    def _search(self, states: FloatArray, depth: int) -> FloatArray:
        n_actions = self.task.n_actions
        repeated = np.repeat(states, n_actions, axis=0)
        controls = np.tile(self.task.controls, (len(states), 1))
        next_states = successors(self.dynamics, repeated, controls)
        if depth == 1:
            future = self.q_function.value(next_states)
        else:
            future = self._search(next_states, depth - 1).max(axis=1)
        rewards = self.task.rewards(repeated, controls, next_states)
        discounts = np.where(self.task.terminal(next_states), 0.0, self.task.discount)
        return (rewards + discounts * future).reshape(-1, n_actions)


def require_searchable(n_actions: int, depth: int) -> None:
    """Raise ValueError when looking `depth` steps ahead is impossible or would never end."""
    deepest = int(np.log(MOST_LEAVES) / np.log(max(n_actions, 2)) + 1e-9)
    if not 1 <= depth <= deepest:
        raise ValueError(
            f"The lookahead must be from 1 to {deepest} steps with {n_actions} actions, since it tries all "
            f"sequences; got {depth}."
        )


def _interpolated(grid: Grid, padded: FloatArray, states: FloatArray) -> FloatArray:
    cells, fractions, _ = grid.locate(states)
    values = np.empty((len(cells), padded.shape[1]))
    interpolate_many(padded, cells, fractions, tuple(grid.padded_strides.tolist()), values)
    return values
