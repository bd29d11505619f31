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

With noise all of them read what noise makes of the values (`planning.blur`): the expectation over where a
step leads. Of a node's own value at least the share `blur.own` of w_ii is in there, and that is solved for;
`eq7-printed` divides by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.compiled import sweeps
from optimist.planning.blur import Blur
from optimist.planning.rows import NodeRange, Rows, all_rows, leading_on
from optimist.planning.tables import Tables, optimistic

FETCH_AHEAD = 64  # nodes: what memory takes to answer; 32 to 128 are as good
CACHED_NODES = 500_000  # up to so many, prefetching costs more than it saves
FEW_ACTIONS = 8
FEW_NODES = 5_000  # a kernel of their own takes longer to compile than they take to sweep
SMALLEST_DENOMINATOR = 1e-12  # of 1 - g w_ii; only discount 1 comes below, and is bounded anyway


class BackupName(StrEnum):
    """The names by which backups are asked for."""

    V_EXACT = "v-exact"
    V_PLAIN = "v-plain"
    EQ7 = "eq7"
    EQ7_EXACT = "eq7-exact"
    EQ7_PRINTED = "eq7-printed"


@dataclass(frozen=True, eq=False)
class Backup:
    """Tables made ready for one kernel."""

    tables: Tables  # uncertainty folded in
    rewards: FloatArray  # [N, A]; for `eq7-printed` divided by 1 - g w_ii
    discounts: FloatArray  # [N, A], likewise
    selfs: NDArray[np.floating] | None  # [N, A], or None when self-loops are left in
    interpolates_values: bool  # V form
    kernel: Callable[..., float]
    blur: Blur | None = None  # what noise makes of values; None: there is none

    @cached_property
    def rows(self) -> Rows:
        """All nodes."""
        tables = self.tables
        fractions = np.ascontiguousarray(tables.fractions)  # what the kernels go by
        return all_rows(tables.grid, (tables.cells, fractions, self.rewards, self.discounts, self.selfs))

    def leading_on(self, *, in_streams: bool) -> Rows:
        """What is left to sweep once every node was, perhaps in another order."""
        return leading_on(self.rows, in_streams=in_streams) if self.interpolates_values else self.rows

    def geometry(self, rows: Rows) -> tuple[object, ...]:
        """Strides of the flat values the kernel works on, places of the nodes there, bounds of the values."""
        width = 1 if self.interpolates_values else self.tables.n_actions
        strides = tuple(np.uint64(stride * width) for stride in rows.grid.padded_strides)
        return strides, rows.places, self.tables.value_bounds

    @property
    def ahead(self) -> int | None:
        """How many nodes ahead the V kernels prefetch; None when the values fit in a cache anyway."""
        return FETCH_AHEAD if self.tables.grid.n_nodes > CACHED_NODES else None

    @property
    def actions(self) -> tuple[int, ...] | None:
        """For the V kernel to know their number when it is compiled; None: not worth it."""
        worth = self.tables.n_actions <= FEW_ACTIONS and self.tables.grid.n_nodes > FEW_NODES
        return (0,) * self.tables.n_actions if worth else None

    def sweep(
        self,
        span: NodeRange,
        values: FloatArray,
        out: FloatArray,
        policy: NDArray[np.uint16] | None,
        *,
        rows: Rows | None = None,
        exact: FloatArray | None = None,
        keeps: float | None = None,
    ) -> float:
        """Back up a range of `rows`, which are all nodes unless given; the largest change.

        Ghosts must be refreshed afterwards (`rows.refresh_ghosts`).
        `policy`, one entry per row, is filled by the V form only. With noise, `values` are those that it
        makes of the `exact` ones; see the kernels.
        """
        rows = rows or self.rows
        if not self.interpolates_values:
            noisy = () if exact is None else (exact,)
            return self.kernel(*rows.arrays, *self.geometry(rows), span, values, out, *noisy)
        more: tuple[object, ...] = (policy, self.ahead, self.actions, rows.ghosts, rows.palette)
        if exact is not None:
            more = (*more, exact, keeps)
        return self.kernel(*rows.arrays, *self.geometry(rows), span, values, out, *more)


def prepare(tables: Tables, name: str) -> Backup:
    """The backup called `name`, ready to sweep `tables`, in expectation where there is noise."""
    try:
        chosen = BackupName(name)
    except ValueError:
        known = ", ".join(BackupName)
        raise ValueError(f"`backup` must be one of {known}; got {name!r}.") from None
    blur = Blur.of(tables.grid, tables.noise, net=True)
    if chosen is BackupName.EQ7_PRINTED:
        return _printed(tables, blur)
    tables = optimistic(tables)
    rewards, discounts = tables.rewards, tables.discounts
    if chosen is BackupName.V_PLAIN:
        return Backup(tables, rewards, discounts, None, True, sweeps.sweep_v, blur)
    if chosen is BackupName.EQ7:
        return Backup(tables, rewards, discounts, None, False, sweeps.sweep_q, blur)
    selfs = _towards_zero(_own_weights(tables, blur))
    if chosen is BackupName.EQ7_EXACT:
        return Backup(tables, rewards, discounts, selfs, False, sweeps.sweep_q_exact, blur)
    return Backup(tables, rewards, discounts, selfs, True, sweeps.sweep_v, blur)


def _own_weights(tables: Tables, blur: Blur | None) -> FloatArray:
    """Of each node in its own future, noise and all: at least so much.  [N, A]"""
    return tables.self_weights if blur is None else blur.own * tables.self_weights


def _towards_zero(weights: FloatArray) -> NDArray[np.float32]:
    """As float32, never more than they are.

    A backup with a little less than its self-loop solved is still monotone and has the same fixed point;
    with a little more it has neither when the discount is 1.
    """
    rounded = weights.astype(np.float32)
    return np.where(rounded > weights, np.nextafter(rounded, np.float32(0.0)), rounded)


def _printed(tables: Tables, blur: Blur | None) -> Backup:
    """Eq. 7', or with uncertainty Eq. 7'': divide first, then mix with V_MAX."""
    selfs = _own_weights(tables, blur)
    division = 1.0 / np.maximum(1.0 - tables.discounts * selfs, SMALLEST_DENOMINATOR)
    rewards, discounts = tables.rewards * division, tables.discounts * division
    if tables.uncertainty is not None:
        known = 1.0 - tables.uncertainty
        rewards = known * rewards + tables.uncertainty * tables.optimistic_value
        discounts = known * discounts
    return Backup(tables, rewards, discounts, selfs, False, sweeps.sweep_q, blur)
