"""Tile coding (Sutton & Barto): overlapping partitions of the box, each point in one tile of each.

A tiling cuts some axes into equal intervals and ignores the others. Tilings of one group differ by an offset:
a random fraction of an interval on each axis (Sutton & Barto 1998, Example 8.2), or evenly, the t-th of n by
(t (1, 3, 5, ...) mod n) / n of an interval (Miller & Glanz 1996; Sutton & Barto 2018, Section 9.5.4). A
shifted axis needs one interval more than it was cut into; a periodic axis wraps and does not.

Every tile has its own place in the table: nothing is hashed, no two tiles share a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from pydantic import Field, PositiveInt

from optimist.arrays import FloatArray, IntArray
from optimist.box import Box
from optimist.compiled.dynamics import compiled_for
from optimist.compiled.sarsa import TILES_OF_ROWS, tiles_of_rows
from optimist.documents import Settings

OFFSET_STREAM = 0x6F6666  # purpose number of random offsets
MOST_TILES = 2**25  # a table of more is refused

# low, high, scales, shifts, cells, strides, firsts, as in `TileCoding`
Geometry = tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray, IntArray, IntArray]


class TilingGroup(Settings):
    """Some tilings over the same axes, alike but for their offsets."""

    axes: tuple[int, ...] = Field(min_length=1)
    intervals: tuple[PositiveInt, ...]  # per axis
    tilings: PositiveInt


@dataclass(frozen=True, eq=False)
class TileCoding:
    """The tilings of a box, as arrays."""

    low: FloatArray  # [d]
    high: FloatArray  # [d]
    scales: FloatArray  # [n_tilings, d], intervals per unit
    shifts: FloatArray  # [n_tilings, d], offsets in intervals, in [0, 1)
    cells: IntArray  # [n_tilings, d], on a periodic axis; 0 on others
    strides: IntArray  # [n_tilings, d]; 0 on an axis the tiling ignores
    firsts: IntArray  # [n_tilings], the first tile of each
    n_tiles: int

    @classmethod
    def of(cls, box: Box, groups: Sequence[TilingGroup], *, offset_seed: int | None) -> TileCoding:
        """The tilings of all `groups`, one after another; their offsets random, or (None) evenly spread."""
        for group in groups:
            _require_fits(group, box)
        if not groups:
            raise ValueError("There must be at least one group of tilings; got none.")
        n_tiles = sum(group.tilings * prod(_counts(group, box)) for group in groups)
        if n_tiles > MOST_TILES:
            raise ValueError(f"There must be at most {MOST_TILES} tiles; got {n_tiles}. Take larger ones.")
        n_tilings = sum(group.tilings for group in groups)
        shifts = np.zeros((n_tilings, box.n_dims))
        if offset_seed is not None:
            shifts = np.random.default_rng([offset_seed, OFFSET_STREAM]).uniform(size=shifts.shape)
        scales = np.zeros((n_tilings, box.n_dims))
        cells, strides = (np.zeros((n_tilings, box.n_dims), dtype=np.int64) for _ in range(2))
        sizes: list[int] = []
        for group in groups:
            counts = _counts(group, box)
            for t in range(group.tilings):
                for place, axis in enumerate(group.axes):
                    row = len(sizes), axis
                    scales[row] = group.intervals[place] / box.widths[axis]
                    if offset_seed is None:
                        shifts[row] = (t * (2 * place + 1) % group.tilings) / group.tilings
                    cells[row] = counts[place] if box.periodic[axis] else 0
                    strides[row] = prod(counts[place + 1 :])
                sizes.append(prod(counts))
        firsts = np.cumsum([0, *sizes[:-1]])
        return cls(box.low, box.high, scales, shifts, cells, strides, firsts, n_tiles)

    @property
    def n_tilings(self) -> int:
        """How many tiles are active at a time."""
        return len(self.firsts)

    @property
    def geometry(self) -> Geometry:
        """As the compiled code takes it."""
        return self.low, self.high, self.scales, self.shifts, self.cells, self.strides, self.firsts

    def tiles(self, states: FloatArray) -> IntArray:
        """The tile of each tiling that `states` [n, d] lie in; from outside, the nearest.  [n, n_tilings]"""
        states = np.ascontiguousarray(states, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != len(self.low):
            raise ValueError(f"States must have shape (n, {len(self.low)}); got {states.shape}.")
        if not np.isfinite(states).all():
            raise ValueError("States must be finite to lie in tiles; got one that is not.")
        found = np.empty((len(states), self.n_tilings), dtype=np.int64)
        compiled_for(tiles_of_rows, TILES_OF_ROWS)(states, self.geometry, found)
        return found


def _counts(group: TilingGroup, box: Box) -> list[int]:
    """Intervals per axis of the group, with the one more of a shifted axis."""
    return [
        intervals + int(not box.periodic[axis])
        for axis, intervals in zip(group.axes, group.intervals, strict=True)
    ]


def _require_fits(group: TilingGroup, box: Box) -> None:
    axes = group.axes
    if len(set(axes)) != len(axes) or not all(0 <= axis < box.n_dims for axis in axes):
        raise ValueError(f"The axes of a tiling must be some of 0 to {box.n_dims - 1}; got {list(axes)}.")
    if len(group.intervals) != len(axes):
        raise ValueError(
            f"A tiling must have one count of intervals per axis ({len(axes)}); got {len(group.intervals)}."
        )
