"""Learn environments of which nothing is told, and say how good the policy is: `python -m benchmarks.untold`.

For every environment and seed the agent learns for the stated numbers of transitions. After each its best
policy (nothing learned, no exploring) acts from the same 100 seeded starts, in another environment. Results
are kept in results.json beside this file; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np

import optimist
from optimist.runs.playing import play

RESULTS = Path(__file__).with_name("results.json")
# transitions after which the policy is judged; at least so much, by then
ENVIRONMENTS: dict[str, tuple[tuple[int, ...], float]] = {
    "CartPole-v1": ((300,), 475.0),
    "MountainCar-v0": ((500,), -110.0),
    "MountainCarContinuous-v0": ((500,), 90.0),
    "Pendulum-v1": ((400,), -180.0),
    "Acrobot-v1": ((500, 1000), -90.0),
}
STARTS = 100
START_SEED = 20_000


def judged(name: str, seed: int, marks: tuple[int, ...]) -> list[dict[str, Any]]:
    """What was earned after each number of transitions."""
    agent, rows = optimist.GPRMax(name, seed=seed), []
    apart = optimist.find(gymnasium.make(name))
    seconds = 0.0
    for mark in marks:
        began = perf_counter()
        agent.learn(mark - agent.num_timesteps)
        seconds += perf_counter() - began
        totals = play(apart, agent.task, agent.policy, STARTS, seed=START_SEED).total_rewards
        rows.append(
            {
                "transitions": mark,
                "mean": round(float(totals.mean()), 2),
                "worst": round(float(totals.min()), 2),
                "seconds": round(seconds, 1),
                "settled": agent.stopped_learning_at,
                "episodes": [round(row.total_reward, 2) for row in agent.episodes],
                "believed": str(agent.task).splitlines(),
            }
        )
    return rows


def table(results: dict[str, Any]) -> str:
    """One row per environment and number of transitions."""
    lines = ["| environment | transitions | mean of seeds | worst seed | seeds | at least | seconds |"]
    lines.append("|" + "---|" * 7)
    for name, (_, least) in ENVIRONMENTS.items():
        by_mark: dict[int, list[dict[str, Any]]] = {}
        for rows in results.get(name, {}).values():
            for row in rows:
                by_mark.setdefault(row["transitions"], []).append(row)
        for mark, rows in sorted(by_mark.items()):
            means = [row["mean"] for row in rows]
            taken = np.mean([row["seconds"] for row in rows])
            lines.append(
                f"| {name} | {mark} | {np.mean(means):.1f} | {min(means):.1f} | {len(means)} | {least:g} | "
                f"{taken:.0f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(10)))
    parser.add_argument("--only", nargs="*", choices=list(ENVIRONMENTS), default=list(ENVIRONMENTS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    results: dict[str, Any] = json.loads(given.results.read_text()) if given.results.exists() else {}
    for seed in given.seeds:
        for name in given.only:
            if str(seed) in results.get(name, {}):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = judged(name, seed, ENVIRONMENTS[name][0])
            results.setdefault(name, {})[str(seed)] = rows
            given.results.write_text(json.dumps(results, indent=1) + "\n")
            print(name, seed, [(row["transitions"], row["mean"]) for row in rows], flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
