"""The named backups: five discretisations and solutions of the Bellman equation.

Two discretisations. *Q form*, the paper's Eq. 7: interpolate the Q-values of each action at the
successor, then take the maximum. *V form*: take the maximum at the nodes, then interpolate V; less
work by a factor of the number of actions. The two have different fixed points (max of sums <= sum
of maxima), both consistent as the grid is refined.

In each, node i is often a corner of its own successor's cell, with weight w_ii. Solving for that
term gives faster sweeps:

| name          | form | self-loop                 | fixed point |
|---------------|------|---------------------------|-------------|
| `v-exact`     | V    | solved (Gruene 1997)      | that of `v-plain` |
| `v-plain`     | V    | left in                   | |
| `eq7`         | Q    | left in                   | |
| `eq7-exact`   | Q    | solved, exactly           | that of `eq7` |
| `eq7-printed` | Q    | Eq. 7', 7'' as printed    | its own: divides by the wrong action's term |

With uncertainty all of them mix in the optimistic value, (1 - C) (R + g V) + C V_MAX; only
`eq7-printed` does so after the division (Eq. 7''), which differs for 0 < C < 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optimist.box import FloatArray
from optimist.compiled import sweeps
from optimist.planning.tables import Tables, optimistic

NodeRange = tuple[int, int, int]  # first, last, step

FETCH_AHEAD = 16  # nodes; 8 to 32 are as good
CACHED_NODES = 1_500_000  # below that many, prefetching costs more than it saves
WORTH_PACKING = 0.95  # of the nodes; packing costs as much as a few sweeps
FEW_ACTIONS = 8
SMALLEST_DENOMINATOR = 1e-12  # of 1 - g w_ii; only discount 1 comes below, and is bounded anyway


class BackupName(StrEnum):
    """The names by which backups are asked for."""

    V_EXACT = "v-exact"
    V_PLAIN = "v-plain"
    EQ7 = "eq7"
    EQ7_EXACT = "eq7-exact"
    EQ7_PRINTED = "eq7-printed"


@dataclass(frozen=True, eq=False)
class Rows:
    """What is read at every node, or at some of them, in the kernels' order."""

    arrays: tuple[NDArray[np.generic] | None, ...]  # cells, fractions, rewards, discounts, selfs
    places: NDArray[np.int32]  # of the nodes in the padded values
    nodes: NDArray[np.int64] | None  # which, in increasing order; None: all

    def span(self, nodes: NodeRange) -> NodeRange:
        """The range of rows of a range of nodes."""
        if self.nodes is None:
            return nodes
        first, last, step = nodes
        low, high = (first, last) if step > 0 else (last + 1, first + 1)
        below, above = (int(edge) for edge in np.searchsorted(self.nodes, (low, high)))
        return (below, above, step) if step > 0 else (above - 1, below - 1, step)

    def only(self, nodes: NDArray[np.int64]) -> Rows:
        """Some of all rows, packed."""
        arrays = tuple(None if array is None else array[nodes] for array in self.arrays)
        return Rows(arrays, self.places[nodes], nodes)


@dataclass(frozen=True, eq=False)
class Backup:
    """Tables made ready for one kernel."""

    tables: Tables  # uncertainty folded in
    rewards: FloatArray  # [N, A]; for `eq7-printed` divided by 1 - g w_ii
    discounts: FloatArray  # [N, A], likewise
    selfs: NDArray[np.floating] | None  # [N, A], or None when self-loops are left in
    interpolates_values: bool  # V form
    kernel: Callable[..., float]

    @cached_property
    def rows(self) -> Rows:
        """All nodes."""
        tables = self.tables
        arrays = (tables.cells, tables.fractions, self.rewards, self.discounts, self.selfs)
        return Rows(arrays, tables.grid.padded_places, None)

    @cached_property
    def leading_on(self) -> Rows:
        """The nodes from which some action leads on: what the others are worth, a single sweep finds."""
        nodes = np.flatnonzero((self.discounts != 0.0).any(axis=1))
        worth_it = self.interpolates_values and nodes.size < WORTH_PACKING * len(self.discounts)
        return self.rows.only(nodes) if worth_it else self.rows

    @cached_property
    def strides(self) -> tuple[np.uint64, ...]:
        """Distance between neighbouring nodes in the flat values the kernel works on."""
        width = 1 if self.interpolates_values else self.tables.n_actions
        return tuple(np.uint64(stride * width) for stride in self.tables.grid.padded_strides)

    def geometry(self, rows: Rows) -> tuple[object, ...]:
        """Strides, places of the nodes in the padded values, and bounds of the values."""
        return self.strides, rows.places, self.tables.value_bounds

    @property
    def ahead(self) -> int | None:
        """How many nodes ahead the V kernels prefetch; None when the values fit in a cache anyway."""
        return FETCH_AHEAD if self.tables.grid.n_nodes > CACHED_NODES else None

    @property
    def actions(self) -> tuple[int, ...] | None:
        """For the V kernel to know their number when it is compiled; None: too many to be worth it."""
        return (0,) * self.tables.n_actions if self.tables.n_actions <= FEW_ACTIONS else None

    def sweep(
        self,
        nodes: NodeRange,
        values: FloatArray,
        out: FloatArray,
        policy: NDArray[np.uint16] | None,
        *,
        rows: Rows | None = None,
    ) -> float:
        """Back up the given nodes, or those of them in `rows`; the largest change.

        `policy`, one entry per row, is filled by the V form only.
        """
        rows = rows or self.rows
        more = (policy, self.ahead, self.actions) if self.interpolates_values else ()
        return self.kernel(*rows.arrays, *self.geometry(rows), rows.span(nodes), values, out, *more)


def prepare(tables: Tables, name: str) -> Backup:
    """The backup called `name`, ready to sweep `tables`."""
    try:
        chosen = BackupName(name)
    except ValueError:
        known = ", ".join(BackupName)
        raise ValueError(f"`backup` must be one of {known}; got {name!r}.") from None
    if chosen is BackupName.EQ7_PRINTED:
        return _printed(tables)
    tables = optimistic(tables)
    rewards, discounts = tables.rewards, tables.discounts
    if chosen is BackupName.V_PLAIN:
        return Backup(tables, rewards, discounts, None, True, sweeps.sweep_v)
    if chosen is BackupName.EQ7:
        return Backup(tables, rewards, discounts, None, False, sweeps.sweep_q)
    selfs = _towards_zero(tables.self_weights)
    if chosen is BackupName.EQ7_EXACT:
        return Backup(tables, rewards, discounts, selfs, False, sweeps.sweep_q_exact)
    return Backup(tables, rewards, discounts, selfs, True, sweeps.sweep_v)


def _towards_zero(weights: FloatArray) -> NDArray[np.float32]:
    """As float32, never more than they are.

    A backup with a little less than its self-loop solved is still monotone and has the same fixed point;
    with a little more it has neither when the discount is 1.
    """
    rounded = weights.astype(np.float32)
    return np.where(rounded > weights, np.nextafter(rounded, np.float32(0.0)), rounded)


def _printed(tables: Tables) -> Backup:
    """Eq. 7', or with uncertainty Eq. 7'': divide first, then mix with V_MAX."""
    selfs = tables.self_weights
    division = 1.0 / np.maximum(1.0 - tables.discounts * selfs, SMALLEST_DENOMINATOR)
    rewards, discounts = tables.rewards * division, tables.discounts * division
    if tables.uncertainty is not None:
        known = 1.0 - tables.uncertainty
        rewards = known * rewards + tables.uncertainty * tables.optimistic_value
        discounts = known * discounts
    return Backup(tables, rewards, discounts, selfs, False, sweeps.sweep_q)
