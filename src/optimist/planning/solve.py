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

Why the fixed point is the same: every backup T here is monotone, and for discount < 1 a contraction
in the sup norm. In-place sweeps of T, in any order and any fixed blocks, contract at least as fast
(Bertsekas & Tsitsiklis 1989, Sec. 6.2). Policy evaluation is the only step that could undo progress;
when the change fails to fall over `PATIENCE` rounds it is given up, and what remains is the
contraction. With discount 1 it is left out unless every step costs something. The loop ends only
when a whole plain sweep confirms the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from os import cpu_count, environ

import numpy as np
from numpy.typing import NDArray

from optimist.box import FloatArray
from optimist.compiled import sweeps as kernels
from optimist.planning.backups import Backup, NodeRange, Rows, prepare
from optimist.planning.tables import Tables

BLOCKS = 2
SMALLEST_BLOCK = 100_000  # nodes times actions; below that a thread costs more than it saves
MAX_EVALUATIONS = 12
EVALUATED = 0.1  # evaluation has done its part when its change is this share of the improvement's
PATIENCE = 10

Listener = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Plan:
    """A solution, as good as it got. Not having converged is told, not raised."""

    q_values: FloatArray  # [n_nodes, n_actions]
    sweeps: int  # of all kinds
    residual: float  # largest |Q - TQ| at the nodes
    converged: bool  # residual <= tolerance


@dataclass(frozen=True)
class Stopping:
    """When to stop."""

    tolerance: float = 1e-4
    max_sweeps: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < self.tolerance < np.inf:
            raise ValueError(f"`tolerance` must be positive; got {self.tolerance}.")
        if self.max_sweeps < 1:
            raise ValueError(f"`max_sweeps` must be at least 1; got {self.max_sweeps}.")


DEFAULT_STOPPING = Stopping()


def solve(
    tables: Tables,
    *,
    backup: str = "v-exact",
    start: FloatArray | None = None,
    stopping: Stopping = DEFAULT_STOPPING,
    accelerate: bool = True,
    threads: int | None = None,
    listener: Listener | None = None,
) -> Plan:
    """The fixed point of `backup` on `tables`.

    Args:
        tables: the discretised problem.
        backup: which Bellman equation; see `optimist.planning.backups`.
        start: Q-values to start from [n_nodes, n_actions], such as those of the previous plan.
        stopping: tolerance of the largest change, and limit on the number of sweeps.
        accelerate: False gives the paper's plain Jacobi sweeps.
        threads: at most so many; by default what the environment variable OPTIMIST_THREADS says, else all
            cores. The result does not depend on it.
        listener: called after every sweep with their number and the largest change.

    """
    if threads is not None and threads < 1:
        raise ValueError(f"`threads` must be at least 1; got {threads}.")
    ready = prepare(tables, backup)
    values = _start_values(ready, start)
    with ThreadPoolExecutor(threads or _default_threads()) as pool:
        sweeper = _Sweeper(ready, pool)
        iterate = _accelerated if accelerate else _jacobi
        count = 0
        for change in iterate(sweeper, values):
            count += 1
            if listener is not None:
                listener(count, change)
            # A small change of an in-place sweep is only a hint: a plain sweep decides.
            if change <= stopping.tolerance or count >= stopping.max_sweeps:
                q_values, residual = sweeper.confirm(values)
                if residual <= stopping.tolerance or count >= stopping.max_sweeps:
                    break
    return Plan(q_values, count, residual, residual <= stopping.tolerance)


def _default_threads() -> int | None:
    """As many as there are cores, unless whoever shares them among processes says otherwise."""
    said = environ.get("OPTIMIST_THREADS", "")
    return int(said) if said.isdigit() and int(said) > 0 else cpu_count()


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


def _jacobi(sweeper: _Sweeper, values: FloatArray) -> Iterator[float]:
    """Plain sweeps, each from the values of the one before."""
    while True:
        yield sweeper.jacobi(values)


def _accelerated(sweeper: _Sweeper, values: FloatArray) -> Iterator[float]:
    """In-place sweeps in alternating directions; in the V form, policy evaluation in between.

    Yields an infinite change where the sweep only evaluated: that says nothing of convergence.
    """
    best, failures = np.inf, 0
    while True:
        change = sweeper.improve(values)
        yield change
        failures = 0 if change < best else failures + 1
        best = min(best, change)
        if sweeper.can_evaluate and failures < PATIENCE and change > 0.0:
            sweeper.take_policy()
            for _ in range(MAX_EVALUATIONS):
                evaluated = sweeper.evaluate(values)
                yield np.inf
                if evaluated <= EVALUATED * change:
                    break


class _Sweeper:
    """Sweeps over blocks of nodes on a thread pool; knows in which direction to go next."""

    def __init__(self, ready: Backup, pool: ThreadPoolExecutor) -> None:
        tables = ready.tables
        self._ready = ready
        self._pool = pool
        self._blocks = _blocks(tables)
        self._private: list[FloatArray] = []
        self._forwards = True
        self._swept = False  # whether every node was, once
        self.can_evaluate = ready.interpolates_values and _every_step_counts(tables)
        self._policy: NDArray[np.uint16] | None = None
        self._packed: tuple[NDArray[np.generic] | None, ...] = ()

    def improve(self, values: FloatArray) -> float:
        """One in-place sweep over all actions; the largest change."""
        ready, rows = self._ready, self._next_rows()
        policy = np.zeros(len(rows.places), dtype=np.uint16) if ready.interpolates_values else None
        change = self._in_place(values, lambda nodes, own: ready.sweep(nodes, own, own, policy, rows=rows))
        kept = ready.leading_on
        self._policy = policy if policy is None or kept is rows else policy[kept.nodes]
        return change

    def evaluate(self, values: FloatArray) -> float:
        """One in-place sweep over the actions packed by `take_policy`; the largest change."""
        ready, rows = self._ready, self._ready.leading_on
        return self._in_place(
            values,
            lambda nodes, own: kernels.sweep_policy(
                *self._packed, *ready.geometry(rows), rows.span(nodes), own, ready.ahead
            ),
        )

    def take_policy(self) -> None:
        """Pack the rows of the best actions, so that `evaluate` reads them in one stream."""
        ready, tables = self._ready, self._ready.tables
        rows = ready.leading_on
        if not self._packed:
            count = len(rows.places)
            self._packed = (
                np.empty(count, dtype=np.int32),
                np.empty((count, tables.grid.n_dims), dtype=np.float32),
                np.empty(count),
                np.empty(count),
                np.empty(count, dtype=np.float32) if ready.selfs is not None else None,
            )
        self._on_blocks(
            lambda nodes: kernels.take_policy(*rows.arrays, self._policy, rows.span(nodes), self._packed)
        )

    def jacobi(self, values: FloatArray) -> float:
        """One plain sweep; the largest change."""
        if not self._private:
            self._private = [values.copy()]
        out, rows = self._private[0], self._next_rows()
        changes = self._on_blocks(lambda nodes: self._ready.sweep(nodes, values, out, None, rows=rows))
        values[:] = out
        self._ready.tables.grid.refresh_ghosts(values[:-1])
        return max(changes)

    def _next_rows(self) -> Rows:
        """All at first, then those from which something leads on: the others stay as they are."""
        rows = self._ready.leading_on if self._swept else self._ready.rows
        self._swept = True
        return rows

    def confirm(self, values: FloatArray) -> tuple[FloatArray, float]:
        """Q-values one plain backup after `values`, and the largest change that backup made."""
        ready, tables = self._ready, self._ready.tables
        grid = tables.grid
        if not ready.interpolates_values:
            places = grid.padded_places
            residual = self.jacobi(values)
            return values[:-1].reshape(-1, tables.n_actions)[places], residual
        q_values = np.empty((grid.n_nodes, tables.n_actions))
        arrays = tables.cells, tables.fractions, tables.rewards, tables.discounts
        changes = self._on_blocks(
            lambda nodes: kernels.backup_q(*arrays, *ready.geometry(ready.rows), nodes, values, q_values)
        )
        return q_values, max(changes)

    def _in_place(self, values: FloatArray, sweep: Callable[[NodeRange, FloatArray], float]) -> float:
        """Sweep every block in place, against the values the others had before."""
        grid = self._ready.tables.grid
        step = 1 if self._forwards else -1
        self._forwards = not self._forwards
        if len(self._blocks) == 1:
            changes = [sweep(_directed(self._blocks[0], step), values)]
        else:
            if not self._private:
                self._private = [np.empty_like(values) for _ in self._blocks]

            def sweep_own(block: tuple[int, int], own: FloatArray) -> float:
                own[:] = values
                return sweep(_directed(block, step), own)

            changes = list(self._pool.map(sweep_own, self._blocks, self._private))
            per_plane = values.size // grid.padded_shape[0]
            nodes_per_plane = grid.n_nodes // grid.shape[0]
            for (first, last), own in zip(self._blocks, self._private, strict=True):
                rows = slice(first // nodes_per_plane * per_plane, last // nodes_per_plane * per_plane)
                values[rows] = own[rows]
        grid.refresh_ghosts(values[:-1])
        return max(changes)

    def _on_blocks(self, work: Callable[[NodeRange], float]) -> list[float]:
        spans = [(first, last, 1) for first, last in self._blocks]
        if len(spans) == 1:
            return [work(spans[0])]
        return list(self._pool.map(work, spans))


def _every_step_counts(tables: Tables) -> bool:
    """Whether no policy can go round for ever for nothing.

    With discount 1 a loop without cost keeps whatever value an earlier policy gave it: there only full
    sweeps, from above, find the best.
    """
    endless = tables.discounts == 1.0
    return not endless.any() or bool((tables.rewards[endless] < 0.0).all())


def _directed(block: tuple[int, int], step: int) -> NodeRange:
    first, last = block
    return (first, last, 1) if step > 0 else (last - 1, first - 1, -1)


def _blocks(tables: Tables) -> list[tuple[int, int]]:
    """Ranges of whole planes of the first axis; how many depends on the problem, not the machine."""
    planes = tables.grid.shape[0]
    per_plane = tables.grid.n_nodes // planes
    affordable = max(1, tables.grid.n_nodes * tables.n_actions // SMALLEST_BLOCK)
    count = min(BLOCKS, planes, affordable)
    edges = [planes * k // count * per_plane for k in range(count + 1)]
    return list(pairwise(edges))
