"""Places: where nobody has been, a prize or an end may wait, however well the motion is known.

Dynamics follow from those seen elsewhere; a prize nobody has seen does not. So what is paid is known only
around places that were visited, at a scale that shrinks with need: coarse first, and half of it when nothing
new was found for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.box import Box
from optimist.models.ends import scaled, tree

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

COARSE = 0.2  # of the box
HALVED = 4  # times at most
PATIENCE = 100  # transitions without a new place, before a closer look


@dataclass(frozen=True, eq=False)
class Places:
    """What was visited, and how closely one looks."""

    box: Box
    visited: cKDTree
    scale: float  # of the box

    @classmethod
    def of(cls, box: Box, states: FloatArray) -> Places:
        """After `states` [n, d] were visited, in this order."""
        return cls(box, tree(box, states), needed_scale(scaled(box, states)))

    def unseen(self, states: FloatArray) -> FloatArray:
        """0 near a place that was visited, 1 a scale away from all.  [n]"""
        apart, _ = self.visited.query(scaled(self.box, states), p=np.inf, distance_upper_bound=self.scale)
        apart = np.minimum(apart, self.scale) / self.scale
        return np.asarray(np.clip(2.0 * apart - 1.0, 0.0, 1.0))


def needed_scale(points: FloatArray) -> float:
    """How closely to look after `points` [n, d], in widths of the box, were visited in this order."""
    scale, since = COARSE, 0
    for _ in range(HALVED):
        fresh = _first_visits(points, scale)
        news = np.concatenate([[since], fresh[fresh > since], [len(points)]])
        quiet = np.flatnonzero(np.diff(news) >= PATIENCE)
        if not quiet.size:
            break
        since = int(news[quiet[0]]) + PATIENCE
        scale *= 0.5
    return scale


def _first_visits(points: FloatArray, scale: float) -> IntArray:
    """When each cell of that size was first entered, in order."""
    cells = np.floor(points / scale).astype(np.int64)
    _, first = np.unique(cells, axis=0, return_index=True)
    return np.sort(first)
