"""The three benchmark problems, and the same equation in the shape the peers want."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import scipy.sparse
from quantecon.markov import DiscreteDP

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


def quantecon_problem(tables: Tables) -> DiscreteDP:
    """The same equation for QuantEcon: rows sum to one, episodes end in an absorbing state, the last."""
    n_nodes, n_actions = tables.cells.shape
    vertices, weights = tables.grid.expand(
        tables.cells.reshape(-1), tables.fractions.reshape(n_nodes * n_actions, -1).astype(np.float64)
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
