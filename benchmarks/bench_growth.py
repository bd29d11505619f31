"""How the sweep grows: time per node from 10^4 to 10^7 nodes, in 2-D (mountain car) and in 4-D (acrobot)."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Result, fastest
from benchmarks.problems import build_tables
from optimist.planning.backups import prepare

COUNTS = {  # per axis: about 1e4, 1e5, 1e6 and 1e7 nodes
    "mountain-car": (100, 316, 1000, 3162),
    "acrobot": (10, 18, 32, 56),
}


def run() -> dict[str, Result]:
    return {f"growth of the sweep per node, {problem}": _measure(problem) for problem in COUNTS}


def _measure(problem: str) -> Result:
    dims = 2 if problem == "mountain-car" else 4
    per_node = {f"{count**dims:.1e} nodes": _seconds(problem, (count,) * dims) for count in COUNTS[problem]}
    smallest, *_, largest = per_node.values()
    return {"ours_s": largest, "peers": per_node, "ratio": largest / smallest, "against": "10^4 nodes"}


def _seconds(problem: str, nodes: tuple[int, ...]) -> float:
    tables = build_tables(problem, nodes)
    backup = prepare(tables, "v-plain")
    n_nodes = tables.grid.n_nodes
    start = np.random.default_rng(0).uniform(-50.0, 0.0, (n_nodes,))
    values = np.append(tables.grid.pad(start), 0.0)
    out, rows = values.copy(), backup.leading_on
    rounds = max(8, 4_000_000 // n_nodes)
    best = fastest({"sweep": lambda: backup.sweep((0, n_nodes, 1), values, out, None, rows=rows)}, rounds)
    return best["sweep"] / n_nodes
