"""How the sweep grows: time per node from 10^4 to 10^7 nodes, in 2-D (mountain car) and in 4-D (acrobot)."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Result, fastest
from benchmarks.problems import PlainSweep, build_tables

COUNTS = {  # per axis: about 1e4, 1e5, 1e6 and 1e7 nodes
    "mountain-car": (100, 316, 1000, 3162),
    "acrobot": (10, 18, 32, 56),
}
ROUNDS = 30
IN_A_ROW = 5  # in a solve a sweep follows a sweep


def run() -> dict[str, Result]:
    return {f"growth of the sweep per node, {problem}": _measure(problem) for problem in COUNTS}


def _measure(problem: str) -> Result:
    dims = 2 if problem == "mountain-car" else 4
    sweeps = {count**dims: _sweep(problem, (count,) * dims) for count in COUNTS[problem]}
    seconds = fastest({f"{n:.1e} nodes": sweep.whole for n, sweep in sweeps.items()}, ROUNDS, IN_A_ROW)
    per_node = {name: s / n for n, (name, s) in zip(sweeps, seconds.items(), strict=True)}
    smallest, *_, largest = per_node.values()
    return {"ours_s": largest, "peers": per_node, "ratio": largest / smallest, "against": "10^4 nodes"}


def _sweep(problem: str, nodes: tuple[int, ...]) -> PlainSweep:
    tables = build_tables(problem, nodes)
    return PlainSweep.of(tables, np.random.default_rng(0).uniform(-50.0, 0.0, (tables.grid.n_nodes,)))
