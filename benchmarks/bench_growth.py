"""How the sweep grows: nanoseconds per node and action from 10^4 to 10^7 nodes, the acrobot in 4-D."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Result, fastest
from benchmarks.problems import build_tables
from optimist.planning.backups import prepare

COUNTS = (10, 18, 32, 56)  # per axis: 1.0e4, 1.0e5, 1.0e6, 9.8e6 nodes


def run() -> dict[str, Result]:
    per_node = {f"{count**4:.1e} nodes": _seconds_per_node(count) for count in COUNTS}
    smallest, *_, largest = per_node.values()
    return {
        "growth of the sweep, seconds per node": {
            "ours_s": largest,
            "peers": per_node,
            "ratio": largest / smallest,
            "against": "10^4 nodes",
        }
    }


def _seconds_per_node(count: int) -> float:
    tables = build_tables("acrobot", (count,) * 4)
    backup = prepare(tables, "v-plain")
    n_nodes = tables.grid.n_nodes
    start = np.random.default_rng(0).uniform(-50.0, 0.0, (n_nodes,))
    values = np.append(tables.grid.pad(start), 0.0)
    out = values.copy()
    rounds = max(5, 2_000_000 // n_nodes)
    best = fastest({"sweep": lambda: backup.sweep((0, n_nodes, 1), values, out, None)}, rounds)
    return best["sweep"] / n_nodes
