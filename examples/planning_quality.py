"""How good are the plans? Every recipe of a problem, from the paper's starts and from 50 starts nearby.

python examples/planning_quality.py                 # all problems, a few minutes
python examples/planning_quality.py mountain-car
"""

from __future__ import annotations

import sys

from optimist.experiments.problems import find_problem
from optimist.systems import SYSTEMS


def main() -> None:
    problems = sys.argv[1:] or list(SYSTEMS)
    print(
        "| problem | recipe | nodes | paper's start | mean of 50 nearby | worst | terminated | planned in |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for problem in problems:
        found = find_problem(problem)
        starts = found.nearby_starts(50, seed=0)
        for name, recipe in found.recipes.items():
            made = found.plan(recipe)
            here, around = made.roll_out(found.starts), made.roll_out(starts)
            nodes = " x ".join(map(str, made.grid.shape))
            print(
                f"| {problem} | {name} | {nodes} | {here.total_rewards.min():.4g} "
                f"| {around.total_rewards.mean():.4g} | {around.total_rewards.min():.4g} "
                f"| {around.terminated.sum()} of 50 | {made.seconds:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
