"""The three benchmark problems, and the same equation in the shape the peers want."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from quantecon.markov import DiscreteDP

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.planning import Tables, tabulate
from optimist.planning.backups import Backup, prepare
from optimist.planning.rows import NodeRange, Rows
from optimist.steps import known
from optimist.systems import SYSTEMS

SIZES: dict[str, tuple[str, tuple[int, ...]]] = {
    "100x100, 3 actions": ("mountain-car", (100, 100)),
    "20^4, 5 actions": ("bicycle", (20, 20, 20, 20)),
    "25^4, 2 actions": ("acrobot", (25, 25, 25, 25)),
}


def build_tables(problem: str, nodes: tuple[int, ...]) -> Tables:
    """The paper's uniform grid with the true dynamics."""
    system = SYSTEMS[problem]
    grid = Grid.uniform(system.task.box, nodes)
    return tabulate(grid, system.task, known(system.dynamics, system.task.controls))


tables_of = cache(build_tables)


def quantecon_problem(tables: Tables) -> DiscreteDP:
    """The same equation for QuantEcon: rows sum to one, episodes end in an absorbing state, the last."""
    n_nodes, n_actions = tables.cells.shape
    vertices, weights = _expanded(
        tables.grid,
        tables.cells.reshape(-1),
        tables.fractions.reshape(n_nodes * n_actions, -1).astype(np.float64),
    )
    ended = tables.discounts.reshape(-1) == 0.0
    vertices[ended], weights[ended] = n_nodes, 0.0
    weights[ended, 0] = 1.0
    n_rows, width = vertices.shape
    matrix = scipy.sparse.csr_matrix(
        (
            np.append(weights.reshape(-1), 1.0),
            np.append(vertices.reshape(-1), n_nodes),
            np.append(np.arange(0, n_rows * width + 1, width), n_rows * width + 1),
        ),
        shape=(n_rows + 1, n_nodes + 1),
    )
    matrix.eliminate_zeros()
    states = np.append(np.repeat(np.arange(n_nodes), n_actions), n_nodes)
    actions = np.append(np.tile(np.arange(n_actions), n_nodes), 0)
    rewards = np.append(tables.rewards.reshape(-1), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # discount 1: value iteration only by hand
        return DiscreteDP(rewards, matrix, float(tables.discounts.max()), states, actions)


def _expanded(
    grid: Grid, cells: NDArray[np.int32], fractions: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """The vertices and weights that cells and fractions stand for.  [n, 2^d], [n, 2^d]"""
    places = np.array(np.unravel_index(cells, grid.padded_shape))  # [d, n]
    vertices = np.empty((len(cells), 2**grid.n_dims), dtype=np.int64)
    weights = np.empty((len(cells), 2**grid.n_dims))
    for k, corner in enumerate(product((0, 1), repeat=grid.n_dims)):
        upper = np.array(corner)
        corners = (places + upper[:, np.newaxis]) % np.array(grid.shape)[:, np.newaxis]
        vertices[:, k] = np.ravel_multi_index(tuple(corners), grid.shape)
        weights[:, k] = np.where(upper == 1, fractions, 1.0 - fractions).prod(axis=1)
    return vertices, weights


@dataclass(frozen=True, eq=False)
class PlainSweep:
    """Jacobi sweeps as `solve(tables, backup="v-plain", accelerate=False)` makes them after the first."""

    backup: Backup
    rows: Rows
    values: FloatArray  # in the order of the rows
    out: FloatArray

    @classmethod
    def of(cls, tables: Tables, start: FloatArray) -> PlainSweep:
        """From `start` [n_nodes]; in `out`, what ends an episode has been swept once."""
        backup, grid = prepare(tables, "v-plain"), tables.grid
        rows = backup.leading_on(in_streams=True)
        values = np.append(grid.pad(start), 0.0)
        out = values.copy()
        backup.sweep((0, grid.n_nodes, 1), values, out, None)
        return cls(backup, rows, rows.arranged(values), rows.arranged(out))

    def part(self, span: NodeRange) -> float:
        """A range of the rows."""
        return self.backup.sweep(span, self.values, self.out, None, rows=self.rows)

    def whole(self) -> None:
        """All of them, and the ghosts of periodic axes."""
        self.part((0, len(self.rows.places), 1))
        self.rows.refresh_ghosts(self.out)

    def halves(self, pool: ThreadPoolExecutor) -> None:
        """The same on two threads."""
        count = len(self.rows.places)
        list(pool.map(self.part, [(0, count // 2, 1), (count // 2, count, 1)]))
        self.rows.refresh_ghosts(self.out)

    def result(self) -> FloatArray:
        """The new values, in the order of the nodes."""
        return self.rows.restored(self.out)[self.backup.tables.grid.padded_places]
