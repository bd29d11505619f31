"""Leaving: what lies beyond a side of the box that is known to be open.

Nothing can be planned outside the box. As long as nobody was seen out there, a side may be a wall, and
successors are moved to the edge. Once somebody was, leaving through that side is no way out: the further
away, the more it is worth what staying there for ever pays, and no more than the worst place inside. What is
near stays nearly what the edge is, and every step back pays, so that whoever is outside comes home.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.compiled.outside import shares_outside
from optimist.grid import Grid
from optimist.task import Task


@dataclass(frozen=True, eq=False)
class Leaving:
    """The open sides of a task's box, and what being far outside is worth at most."""

    task: Task
    low: BoolArray  # [d], whether something went out there
    high: BoolArray  # [d]
    worst: float

    def shares(self, grid: Grid, states: FloatArray) -> FloatArray:
        """How far out `states` [n, d] are: 0 inside, a half one cell beyond the edge, then towards 1.  [n]"""
        cells = grid.box.widths / np.maximum(np.array(grid.shape) - 1, 1)
        shares = np.empty(len(states))
        shares_outside(states, grid.box.low, grid.box.high, self.low, self.high, cells, shares)
        return shares

    def lost(self, grid: Grid, states: FloatArray, controls: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares of `states` [n, d], and what those outside are worth under `controls` [n or 1, k].  [n]"""
        shares = self.shares(grid, states)
        worth = np.full(len(states), self.worst)
        out = np.flatnonzero(shares)
        if out.size:
            there = states[out]
            mine = controls if len(controls) == 1 else controls[out]
            try:
                stays = self.task.rewards(there, mine, there)
            except ValueError:  # so far away that no reward can be said
                return shares, worth
            steps = 1.0 / (1.0 - self.task.discount) if self.task.discount < 1.0 else self.task.max_steps
            worth[out] = np.minimum(self.worst, steps * stays)
        return shares, worth

    def valued(self, grid: Grid, states: FloatArray, controls: FloatArray, values: FloatArray) -> FloatArray:
        """`values` [n] of the nearest places inside, as they are out there.  [n]"""
        shares, worth = self.lost(grid, states, controls)
        return np.asarray(values + shares * np.minimum(worth - values, 0.0))


def seen_leaving(task: Task, next_states: FloatArray, worst: float) -> Leaving | None:
    """Through which sides `next_states` [n, d] have left; None if through none."""
    box = task.box
    low = (next_states < box.low).any(axis=0) & ~box.periodic
    high = (next_states > box.high).any(axis=0) & ~box.periodic
    return Leaving(task, low, high, worst) if (low | high).any() else None
