"""One Jacobi sweep of the same equation, V = max_a R + g W V: ours, scipy's CSR, QuantEcon's DiscreteDP.

All are given the same numbers; all return the new values. The peers read a matrix without explicit zeros;
QuantEcon's episodes end in an absorbing state. One thread each; ours with both cores is shown beside.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.measuring import Result, compared, fastest
from benchmarks.problems import SIZES, PlainSweep, quantecon_problem, tables_of
from optimist.planning import Tables

ROUNDS = 40
IN_A_ROW = 5  # in a solve a sweep follows a sweep


def run() -> dict[str, Result]:
    return {
        f"one sweep, {size}": _measure(tables_of(problem, nodes)) for size, (problem, nodes) in SIZES.items()
    }


def _measure(tables: Tables) -> Result:
    n_nodes, n_actions = tables.cells.shape
    peer = quantecon_problem(tables)
    matrix, rewards, discount = peer.Q[:-1, :-1], peer.R[:-1], peer.beta
    start = np.random.default_rng(0).uniform(-50.0, 0.0, (n_nodes,))
    absorbing, theirs = np.append(start, 0.0), np.empty(n_nodes + 1)
    ours = PlainSweep.of(tables, start)

    with ThreadPoolExecutor(2) as pool:
        seconds = fastest(
            {
                "optimist": ours.whole,
                "optimist, both cores": lambda: ours.halves(pool),
                "scipy CSR": lambda: (
                    (rewards + discount * (matrix @ start)).reshape(n_nodes, n_actions).max(axis=1)
                ),
                "QuantEcon": lambda: peer.bellman_operator(absorbing, Tv=theirs),
            },
            ROUNDS,
            IN_A_ROW,
        )
    floor = tables.value_bounds[0]
    assert np.abs(ours.result() - np.maximum(theirs[:-1], floor)).max() < 1e-9
    return compared(
        seconds,
        "optimist",
        "QuantEcon",
        ratio_both_cores=seconds["QuantEcon"] / seconds["optimist, both cores"],
        ratio_scipy=seconds["scipy CSR"] / seconds["optimist"],
    )
