"""The three benchmark problems, and the same equation in the shape the peers want."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from optimist.grid import Grid
from optimist.models import TrueDynamics
from optimist.planning import Tables, tabulate
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
    prediction = TrueDynamics(system.dynamics, system.task.controls).predict_on(grid)
    return tabulate(grid, system.task, prediction)


tables_of = cache(build_tables)


def transition_matrix(tables: Tables) -> scipy.sparse.csr_matrix:
    """Discount times interpolation weights, one row per node and action; terminal rows are empty."""
    n_nodes, n_actions = tables.cells.shape
    vertices, weights = tables.grid.expand(
        tables.cells.reshape(-1), tables.fractions.reshape(n_nodes * n_actions, -1).astype(np.float64)
    )
    weights *= tables.discounts.reshape(-1, 1)
    pointers = np.arange(0, vertices.size + 1, vertices.shape[1])
    matrix = scipy.sparse.csr_matrix(
        (weights.reshape(-1), vertices.reshape(-1), pointers), shape=(n_nodes * n_actions, n_nodes)
    )
    matrix.eliminate_zeros()
    return matrix


def pairs(tables: Tables) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """State and action number of every row of `transition_matrix`."""
    n_nodes, n_actions = tables.cells.shape
    return np.repeat(np.arange(n_nodes), n_actions), np.tile(np.arange(n_actions), n_nodes)
