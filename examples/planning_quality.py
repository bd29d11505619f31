"""How good are the plans? Every recipe of a problem, from the paper's starts and from 50 starts nearby.

python examples/planning_quality.py                 # all four problems, about a minute
python examples/planning_quality.py mountain-car
"""

from __future__ import annotations

import sys

from optimist.experiments.offline import plan_offline
from optimist.systems import SYSTEMS, find_system


def main() -> None:
    problems = sys.argv[1:] or list(SYSTEMS)
    print(
        "| problem | recipe | nodes | paper's start | mean of 50 nearby | worst | terminated | planned in |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for problem in problems:
        system = find_system(problem)
        starts = system.nearby_starts(50, seed=0)
        for name, recipe in system.recipes.items():
            made = plan_offline(system, recipe)
            here, around = made.roll_out(system.starts), made.roll_out(starts)
            nodes = " x ".join(map(str, recipe.nodes))
            print(
                f"| {problem} | {name} | {nodes} | {here.total_rewards.min():.4g} "
                f"| {around.total_rewards.mean():.4g} | {around.total_rewards.min():.4g} "
                f"| {around.terminated.sum()} of 50 | {made.seconds:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
