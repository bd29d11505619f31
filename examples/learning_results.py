"""Learn a problem with several seeds, and say how well and how fast: the table of docs/results/learning.md.

    python examples/learning_results.py mountain-car --seeds 10 --episodes 5 --agent gp-rmax-exp

Every run is recorded; what is recorded already is not run again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from optimist.experiments.efficiency import measure_efficiency
from optimist.experiments.online import open_run, start_run
from optimist.experiments.problems import find_problem
from optimist.runs import RunStore
from optimist.systems import find_system


def recorded(problem: str, agent: str, preset: str, seed: int, episodes: int, directory: Path) -> None:
    """Make the run, or go on with it."""
    if (directory / "run.sqlite").exists():
        learner, _ = open_run(directory, writing=True)
    else:
        learner = start_run(
            find_problem(problem), agent, seed=seed, run=directory, episodes=episodes, preset=preset
        )
    with learner:
        if len(learner.episodes) < episodes:
            learner.learn(episodes=episodes)


def row(problem: str, directory: Path, seed: int, *, efficiency: bool) -> dict[str, object]:
    """What one run shows."""
    with RunStore.open(directory, writing=False) as store:
        episodes, plans = store.episodes(), store.plans()
        near = measure_efficiency(store, find_system(problem)).near.for_good if efficiency else None
        return {
            "seed": seed,
            "totals": [round(episode.total_reward, 2) for episode in episodes],
            "first_ended_at": episodes[0].transitions,
            "near_best_from": near,
            "stopped_learning_at": store.stopped_learning_at(),
            "plans": len(plans),
            "seconds": round(
                sum(p["fit_seconds"] + p["predict_seconds"] + p["plan_seconds"] for p in plans), 1
            ),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem")
    parser.add_argument("--agent", default="gp-rmax-exp")
    parser.add_argument("--preset", default="ours")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/learning"))
    parser.add_argument("--no-efficiency", action="store_true", help="do not plan again with every model")
    given = parser.parse_args()
    rows = []
    for seed in range(given.seeds):
        directory = given.out / given.problem / f"{given.agent}-{given.preset}" / f"seed-{seed}"
        recorded(given.problem, given.agent, given.preset, seed, given.episodes, directory)
        rows.append(row(given.problem, directory, seed, efficiency=not given.no_efficiency))
        print(json.dumps(rows[-1]), flush=True)
    totals = np.array([entry["totals"] for entry in rows])
    print("median per episode:", np.median(totals, axis=0).tolist())
    print("worst per episode: ", totals.min(axis=0).tolist())


if __name__ == "__main__":
    main()
