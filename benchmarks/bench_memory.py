"""Peak memory of a whole `optimist plan acrobot`, 25^4 nodes, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measuring import Result

# VmHWM, not ru_maxrss: the latter remembers the process that started this one
PROGRAM = """
{work}
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""
IMPORTS = "import optimist.experiments.problems"
PLAN = """
from optimist.discretisation import Discretisation
from optimist.experiments.problems import find_problem
from optimist.systems.system import Recipe
problem = find_problem("acrobot")
chosen = Recipe(Discretisation(nodes=(25,) * 4), lookahead=None)  # all but the number of nodes
made = problem.plan(problem.recipes["paper"] if {paper} else chosen)
assert made.grid.shape == (25,) * 4
"""


def run() -> dict[str, Result]:
    peaks = {recipe: peak_bytes(PLAN.format(paper=recipe == "paper")) for recipe in ("paper", "ours")}
    imports = peak_bytes(IMPORTS)
    return {
        "peak memory of planning at 25^4, 2 actions": {
            "ours_mb": max(peaks.values()) / 1e6,
            "paper_recipe_mb": peaks["paper"] / 1e6,
            "imports_alone_mb": imports / 1e6,
        }
    }


def peak_bytes(work: str) -> int:
    """Peak resident memory of a new process that does `work`."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work)], capture_output=True, text=True, check=True
    )
    return int(ran.stdout.split()[-1])
