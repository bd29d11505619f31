"""Solving the discretised Bellman equation.

The plain way is the paper's: Jacobi sweeps from the previous solution until the largest change is
below the tolerance. The default reaches the same fixed point in a fraction of the time:

1. Sweeps are in place (Gauss-Seidel), forwards and backwards in turn: news of a reward travels through
   the whole grid in one sweep when the dynamics run with it.
2. In the V form, a sweep over all actions is followed by cheap ones that only evaluate the actions just
   found best (modified policy iteration), until evaluation has done its part.
3. The nodes are cut into a fixed number of blocks. Each is swept in place against the others' last
   values, on a thread of its own. The result does not depend on how many threads there are.
4. Nodes from which nothing leads on are swept once: their values depend on no other.

On grids of some size the plain sweeps and, on large ones, those in place go through the nodes in the order
that reads values in streams (`optimist.planning.rows`).

Why the fixed point is the same: every backup T here is monotone, and for discount < 1 a contraction
in the sup norm. In-place sweeps of T, in any order and any fixed blocks, contract at least as fast
(Bertsekas & Tsitsiklis 1989, Sec. 6.2). Policy evaluation is the only step that could undo progress;
when the change fails to fall over `PATIENCE` rounds it is given up, and what remains is the
contraction. With discount 1 it is left out unless every step costs something. The loop ends only
when a whole plain sweep confirms the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.compiled import sweeps as kernels
from optimist.planning.backups import FEW_NODES, Backup, prepare
from optimist.planning.rows import NodeRange, Rows, backwards, blocks_of
from optimist.planning.tables import Tables
from optimist.shown import block
from optimist.threads import default_threads

MANY_NODES = 1_500_000  # from here on, in-place sweeps read in streams too
MAX_EVALUATIONS = 12
EVALUATED = 0.1  # evaluation has done its part when its change is this share of the improvement's
PATIENCE = 10

OnSweep = Callable[[int, float], None]  # number of sweeps so far, largest change


@dataclass(frozen=True, eq=False)
class Plan:
    """A solution, as good as it got. Not having converged is told, not raised."""

    q_values: FloatArray  # [n_nodes, n_actions]
    sweeps: int  # of all kinds
    residual: float  # largest |Q - TQ| at the nodes
    converged: bool  # residual <= tolerance

    def _repr_html_(self) -> str:
        return block("Plan", self.told())

    def told(self) -> dict[str, object]:
        """What there is to say of it, by name."""
        values = self.q_values.max(axis=1)
        return {
            "nodes": self.q_values.shape[0],
            "actions": self.q_values.shape[1],
            "values": f"{values.min():.5g} to {values.max():.5g}",
            "sweeps": self.sweeps,
            "residual": self.residual,
            "converged": "yes" if self.converged else "no",
        }


@dataclass(frozen=True)
class Limits:
    """When a solver stops."""

    tolerance: float = 1e-4  # of the largest change
    max_sweeps: int = 2000
    relative: bool = False  # the tolerance is against the mean size of a reward, whatever its unit

    def __post_init__(self) -> None:
        if not 0.0 < self.tolerance < np.inf:
            raise ValueError(f"`tolerance` must be positive; got {self.tolerance}.")
        if self.max_sweeps < 1:
            raise ValueError(f"`max_sweeps` must be at least 1; got {self.max_sweeps}.")

    def tolerance_for(self, rewards: FloatArray) -> float:
        """In the unit of the rewards."""
        size = float(np.abs(rewards).mean()) if self.relative else 1.0
        return self.tolerance * (size or 1.0)


DEFAULT_LIMITS = Limits()


def solve(
    tables: Tables,
    *,
    backup: str = "v-exact",
    start: FloatArray | None = None,
    limits: Limits = DEFAULT_LIMITS,
    accelerate: bool = True,
    threads: int | None = None,
    on_sweep: OnSweep | None = None,
) -> Plan:
    """The fixed point of `backup` on `tables`.

    Args:
        tables: the discretised problem.
        backup: which Bellman equation; see `optimist.planning.backups`.
        start: Q-values to start from [n_nodes, n_actions], such as those of the previous plan.
        limits: tolerance of the largest change, and limit on the number of sweeps.
        accelerate: False gives the paper's plain Jacobi sweeps.
        threads: at most so many; by default what the environment variable OPTIMIST_THREADS says, else all
            cores. The result does not depend on it.
        on_sweep: called after every sweep with their number and the largest change.

    """
    if threads is not None and threads < 1:
        raise ValueError(f"`threads` must be at least 1; got {threads}.")
    ready = prepare(tables, backup)
    values, tolerance = _start_values(ready, start), limits.tolerance_for(ready.rewards)
    n_threads = threads or default_threads()
    with nullcontext() if n_threads == 1 else ThreadPoolExecutor(n_threads) as pool:
        in_place = accelerate and (ready.blur is None or ready.interpolates_values)
        sweeper = _InPlace(ready, values, pool) if in_place else _Plain(ready, values, pool)
        count = 0
        for change in sweeper.sweeps():
            count += 1
            if on_sweep is not None:
                on_sweep(count, change)
            # A small change of an in-place sweep is only a hint: a plain sweep decides.
            if change <= tolerance or count >= limits.max_sweeps:
                q_values, residual = sweeper.confirm()
                if residual <= tolerance or count >= limits.max_sweeps:
                    break
    return Plan(q_values, count, residual, residual <= tolerance)


def _start_values(ready: Backup, start: FloatArray | None) -> FloatArray:
    """Padded and flat, with a spare entry at the end: the Q form reads actions in pairs."""
    grid, n_actions = ready.tables.grid, ready.tables.n_actions
    if start is None:
        width = 1 if ready.interpolates_values else n_actions
        # From above: with discount 1 the only side from which the sweeps surely converge.
        return np.full(prod(grid.padded_shape) * width + 1, ready.tables.optimistic_value)
    if start.shape != (grid.n_nodes, n_actions) or not np.isfinite(start).all():
        raise ValueError(
            f"`start` must be finite and of shape {(grid.n_nodes, n_actions)}; got {start.shape}."
        )
    values = start.max(axis=1) if ready.interpolates_values else start
    return np.append(grid.pad(values), 0.0)


class _Sweeper:
    """The values, and sweeps of them over blocks of nodes on a thread pool."""

    def __init__(self, ready: Backup, values: FloatArray, pool: ThreadPoolExecutor | None) -> None:
        self._ready = ready
        self._pool = pool
        self._rows = ready.rows
        self._values = values  # padded, in the order of the rows
        self._blocks = blocks_of(self._rows.grid, ready.tables.n_actions)
        self._streams = ready.blur is None  # whether the order of axes may change

    def _read(self, values: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """What sweeps read of values: with noise, what it makes of them, and themselves."""
        blur = self._ready.blur
        return (values, None) if blur is None else (blur.padded(values), values)

    def confirm(self) -> tuple[FloatArray, float]:
        """Q-values one plain backup after the values, and the largest change that backup made."""
        ready, tables = self._ready, self._ready.tables
        grid, rows = tables.grid, ready.rows
        values, exact = self._read(self._rows.restored(self._values))
        blocks = blocks_of(grid, tables.n_actions)
        if not ready.interpolates_values:
            out = (values if exact is None else exact).copy()
            changes = self._together(lambda nodes: ready.sweep(nodes, values, out, None, exact=exact), blocks)
            rows.refresh_ghosts(out)
            self._adopt(out)
            return out[:-1].reshape(-1, tables.n_actions)[grid.padded_places], max(changes)
        q_values = np.empty((grid.n_nodes, tables.n_actions))
        arrays = rows.arrays[:-1]
        noisy = () if exact is None else (exact,)
        changes = self._together(
            lambda nodes: kernels.backup_q(*arrays, *ready.geometry(rows), nodes, values, q_values, *noisy),
            blocks,
        )
        return q_values, max(changes)

    def _go_on_with(self, rows: Rows) -> None:
        """Sweep these from now on."""
        if rows is not self._rows:
            self._rows = rows
            self._blocks = blocks_of(rows.grid, self._ready.tables.n_actions)
            self._adopt(rows.arranged(self._values))

    def _adopt(self, values: FloatArray) -> None:
        """Go on from these."""
        self._values = values

    def _together(self, work: Callable[..., float], *arguments: Sequence[object]) -> list[float]:
        """One thing for every block, at once if there are threads."""
        if self._pool is None or len(arguments[0]) == 1:
            return list(map(work, *arguments))
        return list(self._pool.map(work, *arguments))


class _Plain(_Sweeper):
    """Jacobi sweeps, each from the values of the one before."""

    def sweeps(self) -> Iterator[float]:
        """Endlessly; the largest change of each."""
        out = self._values.copy()
        yield self._sweep(out)
        many = self._streams and self._rows.grid.n_nodes > FEW_NODES
        self._go_on_with(self._ready.leading_on(in_streams=many))
        out = self._values.copy()
        while True:
            before = self._values
            yield self._sweep(out)
            out = before

    def _sweep(self, out: FloatArray) -> float:
        """One, into `out`, which holds the values then."""
        ready, rows, (values, exact) = self._ready, self._rows, self._read(self._values)
        changes = self._together(
            lambda nodes: ready.sweep(rows.span(nodes), values, out, None, rows=rows, exact=exact),
            self._blocks,
        )
        rows.refresh_ghosts(out)
        self._values = out
        return max(changes)


class _InPlace(_Sweeper):
    """Gauss-Seidel sweeps in alternating directions; in the V form, policy evaluation in between.

    Every block is swept in a copy of its own, against the values that the others had before. With noise the
    copies are of what it makes of the values: a node's new value counts there at once, as far as it keeps its
    own, and for its neighbours after the sweep. All that is read then lies between old values and new ones,
    blurred, and the sweeps contract as those without noise do.
    """

    def __init__(self, ready: Backup, values: FloatArray, pool: ThreadPoolExecutor | None) -> None:
        super().__init__(ready, values, pool)
        self._copies: list[FloatArray] = []  # of the values, one per block; the first are the values
        self._forwards = True
        self._can_evaluate = ready.interpolates_values and _every_step_counts(ready.tables)
        self._policy: NDArray[np.uint16] | None = None
        self._packed: tuple[NDArray[np.generic] | None, ...] = ()

    def sweeps(self) -> Iterator[float]:
        """Endlessly; the largest change of each.

        Yields an infinite change where the sweep only evaluated: that says nothing of convergence.
        """
        best, failures, swept = np.inf, 0, False
        while True:
            change = self._improve()
            yield change
            if not swept:
                swept = True
                self._leave_out_ends()
            failures = 0 if change < best else failures + 1
            best = min(best, change)
            if self._can_evaluate and failures < PATIENCE and change > 0.0:
                self._take_policy()
                for _ in range(MAX_EVALUATIONS):
                    evaluated = self._evaluate()
                    yield np.inf
                    if evaluated <= EVALUATED * change:
                        break

    def _leave_out_ends(self) -> None:
        """Every node was swept: from now on, only those from which something leads on.

        In place, the order of the nodes is part of the method. Where another one reads in streams it takes a
        tenth to a quarter more sweeps, and gains more than that on large grids.
        """
        many = self._streams and self._rows.grid.n_nodes > MANY_NODES
        self._go_on_with(self._ready.leading_on(in_streams=many))
        if self._policy is not None and self._rows.nodes is not None:
            self._policy = self._policy[self._rows.nodes]

    def _improve(self) -> float:
        """One sweep over all actions; the largest change."""
        ready, rows = self._ready, self._rows
        policy = np.zeros(len(rows.places), dtype=np.uint16) if ready.interpolates_values else None
        self._policy = policy
        exact, keeps = self._noisy()
        return self._sweep(
            lambda nodes, own: ready.sweep(
                rows.span(nodes), own, own, policy, rows=rows, exact=exact, keeps=keeps
            )
        )

    def _evaluate(self) -> float:
        """One sweep over the actions packed by `_take_policy`; the largest change."""
        ready, rows = self._ready, self._rows
        exact, keeps = self._noisy()
        noisy = () if exact is None else (exact, keeps)
        return self._sweep(
            lambda nodes, own: kernels.sweep_policy(
                *self._packed, *ready.geometry(rows), rows.span(nodes), own, ready.ahead, *noisy
            ),
        )

    def _noisy(self) -> tuple[FloatArray | None, float | None]:
        """With noise the values themselves, and what a node keeps of its own."""
        blur = self._ready.blur
        return (None, None) if blur is None else (self._values, blur.own)

    def _take_policy(self) -> None:
        """Pack the rows of the best actions, so that `_evaluate` reads them in one stream."""
        rows = self._rows
        if not self._packed:
            count = len(rows.places)
            self._packed = (
                np.empty(count, dtype=np.int32),
                np.empty((count, rows.grid.n_dims), dtype=np.float32),
                np.empty(count),
                np.empty(count),
                np.empty(count, dtype=np.float32) if self._ready.selfs is not None else None,
            )
        self._together(
            lambda nodes: kernels.take_policy(
                *rows.arrays, self._policy, rows.span(nodes), self._packed, rows.palette
            ),
            self._blocks,
        )

    def _sweep(self, sweep: Callable[[NodeRange, FloatArray], float]) -> float:
        """Every block in its own copy, and then the news from the others; the largest change."""
        spans = [block if self._forwards else backwards(block) for block in self._blocks]
        self._forwards = not self._forwards
        if len(self._copies) != len(self._blocks):
            first = self._read(self._values)[0]
            self._copies = [first, *(first.copy() for _ in self._blocks[1:])]
        changes = self._together(sweep, spans, self._copies)
        blur = self._ready.blur
        if blur is None:
            self._together(self._hear, range(len(self._copies)))
            return max(changes)
        self._rows.grid.refresh_ghosts(self._values[:-1])
        blur.padded(self._values, self._copies[0])
        for other in self._copies[1:]:
            other[:] = self._copies[0]
        return max(changes)

    def _hear(self, listening: int) -> float:
        """Copy what the other blocks have found, and refresh the ghosts.

        A block whose ghosts are just being refreshed may be copied with old ones: they are replaced here.
        """
        grid, own = self._rows.grid, self._copies[listening]
        per_plane = own.size // grid.padded_shape[0]
        nodes_per_plane = grid.n_nodes // grid.shape[0]
        for telling, (first, last, _) in enumerate(self._blocks):
            if telling != listening:
                planes = slice(first // nodes_per_plane * per_plane, last // nodes_per_plane * per_plane)
                own[planes] = self._copies[telling][planes]
        grid.refresh_ghosts(own[:-1])
        return 0.0

    def _adopt(self, values: FloatArray) -> None:
        super()._adopt(values)
        self._copies = []


def _every_step_counts(tables: Tables) -> bool:
    """Whether no policy can go round for ever for nothing.

    With discount 1 a loop without cost keeps whatever value an earlier policy gave it: there only full
    sweeps, from above, find the best.
    """
    endless = tables.discounts == 1.0
    return not endless.any() or bool((tables.rewards[endless] < 0.0).all())
