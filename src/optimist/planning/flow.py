"""Flow: a model seen through the grid, displacements and uncertainty interpolated between the nodes.

A learned model is costly to ask and is asked at the nodes anyway. Displacements are smooth, much smoother
than values, so interpolating *them* loses little: following the flow for several steps, or one step from any
state, then costs nanoseconds instead of a prediction. Two things are made of it:

- tables with each control held for several steps (`tabulate_held`), for when a step is short against a cell
  (see `planning.hold` for why);
- acting by looking one step ahead (`OneStep`), which spares one interpolation of values at every decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optimist.box import BoolArray, FloatArray
from optimist.compiled.interpolation import follow, interpolate_many
from optimist.grid import Grid
from optimist.planning.q_function import Actions, QFunction
from optimist.planning.tables import BLOCK, Successors, Tables, value_bounds
from optimist.task import Task


@dataclass(frozen=True, eq=False)
class Flow:
    """Displacements and uncertainty of every action, at any state."""

    grid: Grid
    padded: FloatArray  # [n_padded, n_actions * (d + 1)]: per action the displacement, then the uncertainty

    @classmethod
    def of(cls, grid: Grid, successors: Successors) -> Flow:
        """From the successors of all nodes under all actions."""
        n_actions, n_nodes, n_dims = successors.next_states.shape
        if n_nodes != grid.n_nodes or n_dims != grid.n_dims:
            raise ValueError(
                f"`next_states` must have shape (n_actions, {grid.n_nodes}, {grid.n_dims}); "
                f"got {successors.next_states.shape}."
            )
        columns = np.empty((n_nodes, n_actions, n_dims + 1))
        nodes = grid.nodes
        for action in range(n_actions):
            columns[:, action, :-1] = grid.box.displacement(nodes, successors.next_states[action])
        columns[:, :, -1] = successors.uncertainty.T
        return cls(grid, grid.pad(columns.reshape(n_nodes, -1)))

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.padded.shape[1] // (self.grid.n_dims + 1))

    def step(self, states: FloatArray, action: int) -> tuple[FloatArray, FloatArray]:
        """Successors of `states` [n, d] under one action, and how uncertain they are.  [n, d], [n]"""
        width = self.grid.n_dims + 1
        columns = self._at(states, action * width, width)
        return self._followed(states, columns[:, :-1]), columns[:, -1]

    def step_all(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same under all actions, states before actions.  [n * n_actions, d], [n * n_actions]"""
        columns = self._at(states, 0, self.padded.shape[1]).reshape(-1, self.grid.n_dims + 1)
        repeated = np.repeat(states, self.n_actions, axis=0)
        return self._followed(repeated, columns[:, :-1]), columns[:, -1]

    def uncertainty(self, states: FloatArray) -> FloatArray:
        """Of every action, interpolated.  [n, n_actions]"""
        columns = self._at(states, 0, self.padded.shape[1])
        return columns[:, self.grid.n_dims :: self.grid.n_dims + 1]

    def _at(self, states: FloatArray, first: int, count: int) -> FloatArray:
        cells, fractions, _ = self.grid.locate(states)
        columns = np.empty((len(states), count))
        interpolate_many(self.padded, cells, fractions, self._strides, columns, first)
        return columns

    def _followed(self, states: FloatArray, displacements: FloatArray) -> FloatArray:
        next_states = np.empty(displacements.shape)
        follow(states, displacements, self.grid.box.low, self._periods, next_states)
        return next_states

    @cached_property
    def _strides(self) -> tuple[int, ...]:
        return tuple(self.grid.padded_strides.tolist())

    @cached_property
    def _periods(self) -> FloatArray:
        return np.where(self.grid.box.periodic, self.grid.box.widths, 0.0)


@dataclass(frozen=True, eq=False)
class OneStep:
    """Acting by one step through the flow: the reward of it, and the plan's value of where it leads.

    Q(x, a) = (1 - c) (r + discount V(x')) + c V_MAX, with the model's x' and c interpolated. Outside the
    box: displacements as at its edge.
    """

    task: Task
    flow: Flow
    q_function: QFunction

    def __call__(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d].  [n, n_actions]"""
        task = self.task
        next_states, uncertainty = self.flow.step_all(states)
        repeated = np.repeat(states, task.n_actions, axis=0)
        controls = np.tile(task.controls, (len(states), 1))
        rewards = task.rewards(repeated, controls, next_states)
        future = np.where(task.terminal(next_states), 0.0, task.discount * self.q_function.value(next_states))
        values = (1.0 - uncertainty) * (rewards + future) + uncertainty * task.optimistic_value
        return np.asarray(values.reshape(-1, task.n_actions))

    def greedy(self, states: FloatArray) -> Actions:
        """The action with the highest value; the first of equals.  [n]"""
        return np.asarray(self(states).argmax(axis=1))


def tabulate_held(flow: Flow, task: Task, steps: int) -> Tables:
    """Tables whose one step is `steps` steps along the flow under a held control.

    On the way rewards are summed, and what is uncertain is optimistic: after a step of uncertainty c only
    the share 1 - c of what follows counts, the rest is V_MAX. Both are folded into rewards and discounts,
    so the tables know no uncertainty any more. A path ends where it terminates.
    """
    if not 1 <= steps <= task.max_steps:
        raise ValueError(f"`hold` must be a whole number from 1 to {task.max_steps}; got {steps}.")
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
