"""Tables: what the Bellman equation needs, as arrays.

A successor is stored as its cell and fractions; the 2^d weights are recomputed in every sweep, which
is faster than reading them and takes a quarter of the memory: 36 bytes per node and action in 4-D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import BoolArray, FloatArray
from optimist.compiled import sweeps
from optimist.grid import Grid
from optimist.steps import Step, Successors
from optimist.task import Task

BLOCK = 16384
ROUNDING = 1e-12  # by which interpolated uncertainty may leave [0, 1]


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


class Path(NamedTuple):
    """What becomes of states under one action, held for some steps."""

    ends: FloatArray  # [n, d]
    rewards: FloatArray  # [n], discounted sum on the way
    discounts: FloatArray  # [n], how much of what follows counts: nothing after an end
    uncertainty: FloatArray | None  # [n], of a single step; None: all known, or folded into the others


def follow(
    task: Task, step: Step, states: FloatArray, action: int, *, hold: int = 1, ended: BoolArray | None = None
) -> Path:
    """Paths of `hold` steps from `states` [n, d]; nothing is earned from those that `ended` [n] already.

    Of a single step the uncertainty is told. Over several, what is uncertain is optimistic on the way: after
    a step of uncertainty c only the share 1 - c of what follows counts, the rest is V_MAX. A path ends where
    it terminates.
    """
    if not 1 <= hold <= task.max_steps or int(hold) != hold:
        raise ValueError(f"`hold` must be a whole number from 1 to {task.max_steps}; got {hold}.")
    control = task.controls[action : action + 1]
    total, counts = (
        np.zeros(len(states)),
        np.where(task.terminal(states) if ended is None else ended, 0.0, 1.0),
    )
    made = Path(np.empty_like(states), np.zeros(len(states)), np.zeros(len(states)), None)  # paths that ended
    where = np.arange(len(states))  # which paths go on
    for number in range(hold):
        next_states, uncertainty = require_successors(step(states, action), states)
        earned = task.rewards(states, control, next_states)
        if uncertainty is None or hold == 1:
            total = total + counts * earned
            counts = counts * task.discount
        else:
            total = total + counts * ((1.0 - uncertainty) * earned + uncertainty * task.optimistic_value)
            counts = counts * (1.0 - uncertainty) * task.discount
        counts[task.terminal(next_states)] = 0.0
        states = next_states
        if number < hold - 1 and not counts.all():
            # dynamics need not mean anything beyond an end: those paths stay there
            over, going = np.flatnonzero(counts == 0.0), np.flatnonzero(counts)
            made.ends[where[over]], made.rewards[where[over]] = states.take(over, axis=0), total[over]
            states = states.take(going, axis=0)
            where, total, counts = where.take(going), total.take(going), counts.take(going)
            if not where.size:
                break
    if hold == 1 or where.size == len(made.ends):
        return Path(states, total, counts, uncertainty if hold == 1 else None)
    made.ends[where], made.rewards[where], made.discounts[where] = states, total, counts
    return made


def tabulate(grid: Grid, task: Task, step: Step, *, hold: int = 1) -> Tables:
    """Cells, fractions, rewards and discounts of every node and action, each held for `hold` steps.

    Holding is for when a step is short against a cell: interpolation smears the value function a little at
    every planned step, so a path that takes many to cross one cell keeps little of it.

    A terminal successor ends the sum: its discount is 0. A terminal node is worth 0: it is where an
    episode has ended. With discount 1 values are kept above `max_steps` times the worst reward and
    below the optimistic value, since nothing else bounds the value of a state that never terminates.
    """
    if grid.n_dims != task.box.n_dims:
        raise ValueError(
            f"The grid must have as many axes as the task ({task.box.n_dims}); got {grid.n_dims}."
        )
    shape = (grid.n_nodes, task.n_actions)
    cells = np.empty(shape, dtype=np.int32)
    fractions = np.empty((*shape, grid.n_dims), dtype=np.float32)
    rewards, discounts = np.empty(shape), np.empty(shape)
    uncertainty: FloatArray | None = None
    n_clipped = 0
    for first, last in grid.blocks(BLOCK):
        nodes = grid.nodes_between(first, last)
        ended = task.terminal(nodes)
        for action in range(task.n_actions):
            path = follow(task, step, nodes, action, hold=hold, ended=ended)
            rows = slice(first, last), action
            located = grid.locate(path.ends)
            cells[rows], fractions[rows] = located.cells, located.fractions
            rewards[rows], discounts[rows] = path.rewards, path.discounts
            n_clipped += located.n_clipped
            if path.uncertainty is not None and path.uncertainty.any():
                uncertainty = np.zeros(shape) if uncertainty is None else uncertainty
                uncertainty[rows] = np.where(ended, 0.0, path.uncertainty)
    return Tables(
        grid=grid,
        cells=cells,
        fractions=fractions,
        rewards=rewards,
        discounts=discounts,
        uncertainty=uncertainty,
        optimistic_value=task.optimistic_value,
        value_bounds=value_bounds(task, float(rewards.min()) / hold),
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


def require_successors(found: Successors, states: FloatArray) -> Successors:
    """What a step found, if it is one successor per state and its uncertainty lies in [0, 1]."""
    if found.next_states.shape != states.shape:
        raise ValueError(
            f"A step must lead to one state per state, shape {states.shape}; got {found.next_states.shape}."
        )
    if found.uncertainty is not None:
        require_uncertainty(found.uncertainty, states.shape[:1])
    return found


def require_uncertainty(uncertainty: FloatArray, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless it has that shape and lies in [0, 1]."""
    if uncertainty.shape != shape:
        raise ValueError(f"`uncertainty` must have shape {shape}; got {uncertainty.shape}.")
    if uncertainty.size and not (uncertainty.min() >= -ROUNDING and uncertainty.max() <= 1.0 + ROUNDING):
        raise ValueError(
            f"`uncertainty` must lie in [0, 1]; got values from {uncertainty.min()} to {uncertainty.max()}."
        )
