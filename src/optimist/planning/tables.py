"""Tables: what the Bellman equation needs, as arrays.

A successor is stored as its cell and fractions; the 2^d weights are recomputed in every sweep, which
is faster than reading them and takes a quarter of the memory: 36 bytes per node and action in 4-D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.compiled import sweeps
from optimist.grid import Grid
from optimist.task import Task

BLOCK = 16384


class Successors(Protocol):
    """Where each action leads from each node (a `models.Prediction`)."""

    @property
    def next_states(self) -> FloatArray:
        """[n_actions, n_nodes, d]"""
        ...

    @property
    def uncertainty(self) -> FloatArray:
        """[n_actions, n_nodes], 0 known to 1 unknown."""
        ...


@dataclass(frozen=True, eq=False)
class Tables:
    """The discretised problem. Node before action: what one vertex needs lies together."""

    grid: Grid
    cells: NDArray[np.int32]  # [n_nodes, n_actions], padded index of the successor's cell
    fractions: NDArray[np.float32]  # [n_nodes, n_actions, d], where in that cell
    rewards: FloatArray  # [n_nodes, n_actions], 0 at terminal nodes
    discounts: FloatArray  # [n_nodes, n_actions], 0 at terminal nodes and before terminal successors
    uncertainty: FloatArray | None  # [n_nodes, n_actions], the paper's C; None: all known
    optimistic_value: float  # the paper's V_MAX
    value_bounds: tuple[float, float]  # values are kept between these; infinite below discount 1
    n_clipped: int  # successors that lay outside the box

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.cells.shape[1])

    @property
    def self_weights(self) -> FloatArray:
        """The weight of each node in the interpolation of its own successor (w_ii).  [N, A]"""
        weights = np.empty(self.cells.shape)
        shapes = self.grid.shape, self.grid.padded_shape
        span = (0, self.grid.n_nodes, 1)
        sweeps.self_weights(self.cells, self.fractions, *shapes, span, weights)
        return weights


def tabulate(grid: Grid, task: Task, successors: Successors) -> Tables:
    """Cells, fractions, rewards and discounts of every node and action.

    A terminal successor ends the sum: its discount is 0. A terminal node is worth 0: it is where an
    episode has ended. With discount 1 values are kept above `max_steps` times the worst reward and
    below the optimistic value, since nothing else bounds the value of a state that never terminates.
    """
    if grid.n_dims != task.box.n_dims:
        raise ValueError(
            f"The grid must have as many axes as the task ({task.box.n_dims}); got {grid.n_dims}."
        )
    shape = (grid.n_nodes, task.n_actions)
    expected = (task.n_actions, grid.n_nodes, grid.n_dims)
    if successors.next_states.shape != expected:
        raise ValueError(f"`next_states` must have shape {expected}; got {successors.next_states.shape}.")
    uncertainty = _by_node(successors.uncertainty, expected[:2])
    cells = np.empty(shape, dtype=np.int32)
    fractions = np.empty((*shape, grid.n_dims), dtype=np.float32)
    rewards = np.empty(shape)
    discounts = np.empty(shape)
    n_clipped = 0
    for first, last in grid.blocks(BLOCK):
        states = grid.nodes_between(first, last)
        ended = task.terminal(states)
        if uncertainty is not None:
            uncertainty[first:last][ended] = 0.0
        for action in range(task.n_actions):
            control = task.controls[action : action + 1]
            next_states = successors.next_states[action, first:last]
            rows = slice(first, last), action
            located = grid.locate(next_states)
            cells[rows], fractions[rows] = located.cells, located.fractions
            n_clipped += located.n_clipped
            rewards[rows] = np.where(ended, 0.0, task.rewards(states, control, next_states))
            ending = ended | task.terminal(next_states)
            discounts[rows] = np.where(ending, 0.0, task.discount)
    return Tables(
        grid=grid,
        cells=cells,
        fractions=fractions,
        rewards=rewards,
        discounts=discounts,
        uncertainty=uncertainty,
        optimistic_value=task.optimistic_value,
        value_bounds=value_bounds(task, float(rewards.min())),
        n_clipped=n_clipped,
    )


def value_bounds(task: Task, worst_reward: float) -> tuple[float, float]:
    """What values are kept between: with discount 1 nothing else bounds one that never terminates."""
    if task.discount < 1.0:
        return -np.inf, np.inf
    worst = task.max_steps * min(worst_reward, 0.0)
    return worst, max(task.optimistic_value, worst)


def optimistic(tables: Tables) -> Tables:
    """The mixture (1 - C) (R + g V) + C V_MAX, folded into rewards and discounts.

    What follows (plain sweeps, exact self-loops) then needs to know nothing of uncertainty.
    """
    if tables.uncertainty is None:
        return tables
    known = 1.0 - tables.uncertainty
    return replace(
        tables,
        rewards=known * tables.rewards + tables.uncertainty * tables.optimistic_value,
        discounts=known * tables.discounts,
        uncertainty=None,
    )


def require_uncertainty(uncertainty: FloatArray, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless it has that shape and lies in [0, 1]."""
    if uncertainty.shape != shape:
        raise ValueError(f"`uncertainty` must have shape {shape}; got {uncertainty.shape}.")
    if not (uncertainty.min() >= 0.0 and uncertainty.max() <= 1.0):
        raise ValueError(
            f"`uncertainty` must lie in [0, 1]; got values from {uncertainty.min()} to {uncertainty.max()}."
        )


def _by_node(uncertainty: FloatArray, shape: tuple[int, ...]) -> FloatArray | None:
    """Checked and transposed: [n_nodes, n_actions], a copy; None when all is known."""
    require_uncertainty(uncertainty, shape)
    return np.array(uncertainty.T, order="C") if uncertainty.any() else None
