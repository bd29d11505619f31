"""Acting by searching ahead: all short sequences of actions through the flow; the plan values where they end.

Interpolated Q-values are blurred by a cell in every direction, and near a decision that is what decides. A
search of a few steps looks past the blur. Through a flow the whole tree takes microseconds, so it can be
afforded always: see `affordable_depth`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optimist.arrays import Actions, FloatArray
from optimist.compiled.search import grow, value_backwards
from optimist.grid import Grid
from optimist.planning.flow import Flow
from optimist.planning.q_function import QFunction
from optimist.task import Task

# Sequences tried at one decision. The blur is a cell wide: on a coarse grid it pays to look far past it (8
# steps with 2 actions, 5 with 3, 3 with 5), on a fine one a step or two are enough.
COARSE_BELOW = 50  # nodes per axis
MOST_LEAVES_COARSE = 256
MOST_LEAVES_FINE = 16
BLOCK = 2**18  # tree nodes held at a time


def affordable_depth(n_actions: int, grid: Grid) -> int:
    """How many steps to search ahead of a plan on this grid; at least one."""
    coarse = grid.n_nodes ** (1.0 / grid.n_dims) < COARSE_BELOW
    leaves = MOST_LEAVES_COARSE if coarse else MOST_LEAVES_FINE
    return max(1, int(np.log(leaves) / np.log(max(n_actions, 2)) + 1e-9))


def require_affordable(n_actions: int, depth: int) -> None:
    """Raise ValueError when a search of `depth` steps is impossible or would never end."""
    if depth < 1 or depth > 64 or n_actions**depth > BLOCK:
        raise ValueError(
            f"`depth` must be at least 1, with at most {BLOCK} sequences of actions; "
            f"got {depth} with {n_actions} actions."
        )


@dataclass(frozen=True, eq=False)
class Search:
    """Q(x, a) by a search of `depth` steps: (1 - c) (r + discount max ...) + c V_MAX on the way.

    Successors and uncertainty are the flow's. Outside the box: displacements as at its edge.
    """

    task: Task
    flow: Flow
    q_function: QFunction
    depth: int = 1

    def __post_init__(self) -> None:
        require_affordable(self.task.n_actions, self.depth)
        self.flow.require_fits(self.task)
        if self.q_function.grid is not self.flow.grid:
            raise ValueError("The Q-values must lie on the grid of the flow; got two grids.")

    def __call__(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d].  [n, n_actions]"""
        states = self.flow.grid.checked(states)
        q_values = np.empty((len(states), self.task.n_actions))
        size = max(1, BLOCK // self._n_tree)
        for first in range(0, len(states), size):
            q_values[first : first + size] = self._search(states[first : first + size])
        return q_values

    def greedy(self, states: FloatArray) -> Actions:
        """The action with the highest value; the first of equals.  [n]"""
        return np.asarray(self(states).argmax(axis=1))

    def _search(self, roots: FloatArray) -> FloatArray:
        task, n_dims = self.task, roots.shape[1]
        shape = (len(roots), self._n_tree)
        parents, states = np.empty((*shape, n_dims)), np.empty((*shape, n_dims))
        uncertainty, futures = np.empty(shape), np.empty((len(roots), task.n_actions**self.depth))
        flow, values = self.flow, self.q_function.padded_values
        grow(roots, self.depth, *flow.geometry, values, flow.strides, parents, states, uncertainty, futures)
        controls = self._controls if len(roots) == 1 else np.tile(self._controls, (len(roots), 1))
        reached = states.reshape(-1, n_dims)
        rewards = task.rewards(parents.reshape(-1, n_dims), controls, reached).reshape(shape)
        ended = task.terminal(reached).reshape(shape)
        q_values = np.empty((len(roots), task.n_actions))
        value_backwards(
            rewards,
            ended,
            uncertainty,
            futures,
            task.discount,
            task.optimistic_value,
            task.n_actions,
            q_values,
        )
        return q_values

    @cached_property
    def _n_tree(self) -> int:
        return sum(self.task.n_actions**level for level in range(1, self.depth + 1))

    @cached_property
    def _controls(self) -> FloatArray:
        """The control that leads to each node of a tree.  [n_tree, k]"""
        return np.tile(self.task.controls, (self._n_tree // self.task.n_actions, 1))
