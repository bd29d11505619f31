"""Flow: a model seen through the grid, displacements and uncertainty interpolated between the nodes.

A learned model is costly to ask and is asked at the nodes anyway. Displacements are smooth, much smoother
than values, so interpolating *them* loses little: following the flow for several steps, or one step from any
state, then costs nanoseconds instead of a prediction. A flow is a `Step`; looking ahead through one is
compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.compiled.interpolation import follow
from optimist.compiled.paths import displace
from optimist.compiled.search import grow_each
from optimist.grid import Grid
from optimist.planning.tables import require_uncertainty
from optimist.steps import Step, Successors
from optimist.task import Task
from optimist.threads import in_parts, shared

NOTHING = np.empty(0)
SHARED = 8192  # nodes of trees that are worth more than one thread


class Trees(NamedTuple):
    """Trees of all sequences of actions, one behind the other, each as deep as it is."""

    roots: FloatArray  # [n, d]
    depths: IntArray  # [n]
    starts: IntArray  # [n + 1], where each begins among the nodes of all, and where the last ends
    leaf_starts: IntArray  # [n + 1], likewise among the leaves


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
        uncertainty = successors.uncertainty
        if uncertainty is None:
            uncertainty = np.zeros(shape[:2])
        require_uncertainty(uncertainty, shape[:2])
        nodes, places = grid.nodes, grid.padded_places
        fields = np.zeros((shape[0], prod(grid.padded_shape) * _width(grid)))

        def fill(action: int) -> None:
            rows, found = fields[action].reshape(-1, _width(grid)), successors.next_states[action]
            displace(nodes, found, uncertainty[action], grid.box.periods, places, rows)
            grid.refresh_ghosts(fields[action])

        shared(fill, range(shape[0]))
        return cls(grid, fields)

    @classmethod
    def through(cls, grid: Grid, step: Step, n_actions: int, *, ended: BoolArray | None = None) -> Flow:
        """Of any step, asked at the nodes; from those that have `ended` [N] nothing leads on."""
        nodes = grid.nodes
        live = np.ones(len(nodes), dtype=np.bool_) if ended is None else ~ended
        next_states, unsure = (
            np.repeat(nodes[np.newaxis], n_actions, axis=0),
            np.zeros((n_actions, len(nodes))),
        )
        for action in range(n_actions if live.any() else 0):
            found, uncertainty = step(nodes[live], action)
            next_states[action, live] = found
            if uncertainty is not None:
                unsure[action, live] = uncertainty
        return cls.of(grid, Successors(next_states, unsure))

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.fields)

    @property
    def mean_uncertainty(self) -> float:
        """Over all nodes and actions."""
        return float(self.uncertainty_at_nodes.mean())

    @property
    def uncertainty_at_nodes(self) -> FloatArray:
        """Of every action at every node.  [n_actions, n_nodes]"""
        rows = self.fields.reshape(self.n_actions, -1, _width(self.grid))
        return np.asarray(rows[:, self.grid.padded_places, self.grid.n_dims])

    def __call__(self, states: FloatArray, action: int) -> Successors:
        """Where one action leads from `states` [n, d]."""
        if not 0 <= action < self.n_actions:
            raise ValueError(f"The action must be one of 0 to {self.n_actions - 1}; got {action}.")
        next_states, uncertainty = self._follow(states, (action, action + 1))
        return Successors(next_states[:, 0], uncertainty[:, 0])

    def of_all(self, states: FloatArray) -> Successors:
        """Where every action leads.  [n, n_actions, d], [n, n_actions]"""
        return Successors(*self._follow(states, (0, self.n_actions)))

    def valued(self, states: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same, and of where it leads what padded `values` of this grid say.  [n, n_actions]"""
        states = self.grid.checked(states)
        shape = (len(states), self.n_actions)
        next_states, uncertainty, futures = (
            np.empty((*shape, self.grid.n_dims)),
            np.empty(shape),
            np.empty(shape),
        )
        every = (0, self.n_actions)
        out = next_states, uncertainty, futures
        follow(states, *self.geometry, every, values, self.strides, *out, NOTHING, NOTHING)
        return next_states, uncertainty, futures

    def uncertainty(self, states: FloatArray) -> FloatArray:
        """Of every action, interpolated.  [n, n_actions]"""
        return self._follow(states, (0, self.n_actions))[1]

    def grow(
        self,
        trees: Trees,
        values: FloatArray,
        out: tuple[FloatArray, ...],
        costs: tuple[FloatArray, FloatArray] = (NOTHING, NOTHING),
    ) -> None:
        """Follow every sequence of actions from every root; `values` are padded, of this grid.

        `out` is what `planning.policy` makes trees of: parents, states, uncertainty, futures. `costs` are
        padded values, and what they are at all nodes of the trees but the leaves (out).
        """

        def some(rows: slice) -> None:
            ends = slice(rows.start, rows.stop + 1)
            mine = trees.roots[rows], trees.depths[rows], trees.starts[ends], trees.leaf_starts[ends]
            grow_each(*mine, self.geometry, values, self.strides, *out, *costs)

        if out[2].size < SHARED:
            some(slice(0, len(trees.roots)))
        else:
            in_parts(some, len(trees.roots), trees.starts)

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
        out = next_states, uncertainty, uncertainty
        follow(states, *self.geometry, actions, None, self.strides, *out, NOTHING, NOTHING)
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
