"""What a reward and ends that are told are worth: `python -m benchmarks.untold.against`.

The paper's four problems, learned twice: the agent is told all of its task, or all but the reward, the ends
and the best value (and a discount of 0.999 where it is 1: only tasks that are told may have that). After
every plan the best policy it knows acts with the true dynamics from the problem's starts and 20 nearby
(`totals`), and from the problem's starts alone, where its episodes began (`own`). The number of transitions
from which on that stays within 5 % of the same planner with the true dynamics is compared. Results are kept
in against.json beside this file; what is there already is not run again.
`--how told` measures sample efficiency alone, also of the cart-pole (`--only`).
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import optimist
from optimist.agents import AgentSettings
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.efficiency import mean_total, total_with_truth
from optimist.experiments.statistics import transitions_until_near
from optimist.runs.loop import Updated
from optimist.systems import find_system

RESULTS = Path(__file__).with_name("against.json")
PAPER = {"mountain-car": 400, "pendulum": 150, "bicycle": 300, "acrobot": 500}  # transitions
MOST = PAPER | {"cart-pole": 250}
HOW = ("told", "untold")


def learned(problem: str, seed: int, *, told: bool) -> dict[str, list[float]]:
    """Transitions after which it planned, and what the policy it knew then earns in the mean."""
    system, environment = find_system(problem), SystemEnvironment(problem)
    task = system.task
    env: gymnasium.Env[Any, Any] = environment
    if not told:
        env = optimist.find(
            environment,
            low=task.box.low,
            high=task.box.high,
            periodic=task.box.periodic,
            state=np.array,
            controls=task.controls,
            discount=min(task.discount, 0.999),
            max_steps=task.max_steps,
        )
    agent = optimist.GPRMax(env, seed=seed)
    counts: list[float] = []
    totals: list[float] = []
    own: list[float] = []

    def judge(event: object) -> None:
        if isinstance(event, Updated):
            counts.append(agent.num_timesteps)
            totals.append(round(mean_total(system, agent.policy), 3))
            own.append(round(mean_total(system, agent.policy, n_nearby=0), 3))

    agent.learn(MOST[problem], judge)
    return {"transitions": counts, "totals": totals, "own": own}


def main() -> None:
    """Run what is missing, then say from when on each was near."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(10)))
    parser.add_argument("--only", nargs="*", choices=list(MOST), default=list(PAPER))
    parser.add_argument("--how", nargs="*", choices=HOW, default=list(HOW))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    results: dict[str, Any] = json.loads(given.results.read_text()) if given.results.exists() else {}
    for problem in given.only:
        entry = results.setdefault(problem, {})
        if "best" not in entry:
            entry["best"] = total_with_truth(find_system(problem), AgentSettings())
        if "best own" not in entry:
            entry["best own"] = total_with_truth(find_system(problem), AgentSettings(), n_nearby=0)
        for seed in given.seeds:
            for how in given.how:
                name = f"{how}/{seed}"
                if name not in entry:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        entry[name] = learned(problem, seed, told=how == "told")
                    given.results.write_text(json.dumps(results, indent=1) + "\n")
                row = entry[name]
                counts = np.array(row["transitions"])
                for kind, best in (("totals", entry["best"]), ("own", entry["best own"])):
                    if kind in row:
                        near = transitions_until_near(np.array(row[kind]), counts, best)
                        print(problem, name, kind, "near for good after", near.for_good, flush=True)


if __name__ == "__main__":
    main()
