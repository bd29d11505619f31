"""Flow: a model seen through the grid, displacements and uncertainty interpolated between the nodes.

A learned model is costly to ask and is asked at the nodes anyway. Displacements are smooth, much smoother
than values, so interpolating *them* loses little: following the flow for several steps, or one step from any
state, then costs nanoseconds instead of a prediction. Two things are made of it:

- tables with each control held for several steps (`tabulate_held`), for when a step is short against a cell
  (see `planning.hold` for why);
- acting by searching ahead (`planning.search`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.compiled.interpolation import follow
from optimist.grid import Grid
from optimist.planning.tables import BLOCK, Successors, Tables, require_uncertainty, value_bounds
from optimist.task import Task


@dataclass(frozen=True, eq=False)
class Flow:
    """Displacements and uncertainty of every action, at any state."""

    grid: Grid
    fields: FloatArray  # [n_actions, n_padded * width], a row of a node: displacement, uncertainty, filling

    @classmethod
    def of(cls, grid: Grid, successors: Successors) -> Flow:
        """From the successors of all nodes under all actions."""
        shape = successors.next_states.shape
        if len(shape) != 3 or shape[1:] != (grid.n_nodes, grid.n_dims):
            raise ValueError(
                f"`next_states` must have shape (n_actions, {grid.n_nodes}, {grid.n_dims}); got {shape}."
            )
        n_actions, n_nodes, n_dims = shape
        require_uncertainty(successors.uncertainty, (n_actions, n_nodes))
        nodes = grid.nodes
        rows = np.zeros((n_nodes, _width(grid)))
        fields = np.empty((n_actions, prod(grid.padded_shape) * _width(grid)))
        for action in range(n_actions):
            rows[:, :n_dims] = grid.box.displacement(nodes, successors.next_states[action])
            rows[:, n_dims] = successors.uncertainty[action]
            fields[action] = grid.pad(rows).reshape(-1)
        return cls(grid, fields)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.fields)

    def step(self, states: FloatArray, action: int) -> tuple[FloatArray, FloatArray]:
        """Successors of `states` [n, d] under one action, and how uncertain they are.  [n, d], [n]"""
        if not 0 <= action < self.n_actions:
            raise ValueError(f"The action must be one of 0 to {self.n_actions - 1}; got {action}.")
        next_states, uncertainty = self._follow(states, (action, action + 1))
        return next_states[:, 0], uncertainty[:, 0]

    def step_all(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same under all actions.  [n, n_actions, d], [n, n_actions]"""
        return self._follow(states, (0, self.n_actions))

    def uncertainty(self, states: FloatArray) -> FloatArray:
        """Of every action, interpolated.  [n, n_actions]"""
        return self.step_all(states)[1]

    def require_fits(self, task: Task) -> None:
        """Raise ValueError when it belongs to another kind of task."""
        if (self.n_actions, self.grid.n_dims) != (task.n_actions, task.box.n_dims):
            raise ValueError(
                f"The flow must have the actions and axes of the task ({task.n_actions}, {task.box.n_dims}); "
                f"got {self.n_actions} and {self.grid.n_dims}."
            )

    def _follow(self, states: FloatArray, actions: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        states = self.grid.checked(states)
        shape = (len(states), actions[1] - actions[0])
        next_states, uncertainty = np.empty((*shape, self.grid.n_dims)), np.empty(shape)
        follow(states, *self.geometry, actions, None, self.strides, next_states, uncertainty, uncertainty)
        return next_states, uncertainty

    @cached_property
    def geometry(self) -> tuple[object, ...]:
        """What the kernels need of it."""
        width = _width(self.grid)
        strides = tuple(stride * np.uint64(width) for stride in self.strides)
        return self.grid.lookup, self.fields, np.uint64(width), strides, self.grid.box.low

    @cached_property
    def strides(self) -> tuple[np.uint64, ...]:
        """Of padded values on the grid."""
        return tuple(np.uint64(stride) for stride in self.grid.padded_strides)


def _width(grid: Grid) -> int:
    """Entries of a row: the kernel reads them in pairs."""
    return 2 * ((grid.n_dims + 2) // 2)


def tabulate_held(flow: Flow, task: Task, steps: int) -> Tables:
    """Tables whose one step is `steps` steps along the flow under a held control.

    On the way rewards are summed, and what is uncertain is optimistic: after a step of uncertainty c only
    the share 1 - c of what follows counts, the rest is V_MAX. Both are folded into rewards and discounts,
    so the tables know no uncertainty any more. A path ends where it terminates.
    """
    if not 1 <= steps <= task.max_steps:
        raise ValueError(f"`hold` must be a whole number from 1 to {task.max_steps}; got {steps}.")
    flow.require_fits(task)
    grid = flow.grid
    shape = (grid.n_nodes, task.n_actions)
    cells = np.empty(shape, dtype=np.int32)
    fractions = np.empty((*shape, grid.n_dims), dtype=np.float32)
    rewards, discounts = np.empty(shape), np.empty(shape)
    n_clipped = 0
    for first, last in grid.blocks(BLOCK):
        nodes = grid.nodes_between(first, last)
        ended = task.terminal(nodes)
        for action in range(task.n_actions):
            rows = slice(first, last), action
            ends, rewards[rows], discounts[rows] = _held(flow, task, nodes, ended, action, steps)
            located = grid.locate(ends)
            cells[rows], fractions[rows] = located.cells, located.fractions
            n_clipped += located.n_clipped
    bounds = value_bounds(task, float(rewards.min()) / steps)
    return Tables(
        grid=grid,
        cells=cells,
        fractions=fractions,
        rewards=rewards,
        discounts=discounts,
        uncertainty=None,
        optimistic_value=task.optimistic_value,
        value_bounds=bounds,
        n_clipped=n_clipped,
    )


def _held(
    flow: Flow, task: Task, states: FloatArray, ended: BoolArray, action: int, steps: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where paths of one held action end, what they earn, and how much what follows counts."""
    control = task.controls[action : action + 1]
    rewards = np.zeros(len(states))
    counts = np.where(ended, 0.0, 1.0)
    for _ in range(steps):
        next_states, uncertainty = flow.step(states, action)
        earned = task.rewards(states, control, next_states)
        rewards += counts * ((1.0 - uncertainty) * earned + uncertainty * task.optimistic_value)
        counts = counts * (1.0 - uncertainty) * task.discount
        counts[task.terminal(next_states)] = 0.0
        # what follows an end counts nothing: where it leads does not matter
        states = next_states
    return states, rewards, counts
