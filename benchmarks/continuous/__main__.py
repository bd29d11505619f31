"""Learn with any control and with a list, from nothing.

`python -m benchmarks.continuous two-tanks --seeds 5`.

Prints one line of JSON per run: the totals of its episodes, and what it earns afterwards, without exploring,
from seeded starts.
"""

from __future__ import annotations

import argparse
import json
from time import process_time
from typing import Any

import numpy as np

import optimist
from benchmarks.continuous.members import MEMBERS
from optimist.runs.playing import play

PLAY_SEED = 1000
TRANSITIONS = {"Pendulum-v1": 1000, "MountainCarContinuous-v0": 500}  # others learn for so many episodes:
EPISODES = {"pendulum": 3, "cart-pole": 5, "planar-mass": 4, "two-tanks": 4}


def run(name: str, *, listed: bool, seed: int, played: int) -> dict[str, Any]:
    """One run, and what it came to."""
    began, env = process_time(), MEMBERS[name](listed)
    agent = optimist.GPRMax(env, seed=seed)
    agent.learn(TRANSITIONS.get(name), episodes=EPISODES.get(name))
    totals = play(env, agent.task, agent.policy, played, seed=PLAY_SEED).total_rewards
    return {
        "member": name,
        "controls": "list" if listed else "box",
        "seed": seed,
        "totals": [round(row.total_reward, 3) for row in agent.episodes],
        "settled_at": agent.stopped_learning_at,
        "played": round(float(np.mean(totals)), 3),
        "worst": round(float(np.min(totals)), 3),
        "cpu_seconds": round(process_time() - began, 1),
    }


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("members", nargs="+", choices=list(MEMBERS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--played", type=int, default=100, help="episodes played afterwards")
    parser.add_argument("--controls", choices=["box", "list", "both"], default="both")
    chosen = parser.parse_args()
    kinds = {"box": [False], "list": [True], "both": [False, True]}[chosen.controls]
    for name in chosen.members:
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            for listed in kinds:
                print(json.dumps(run(name, listed=listed, seed=seed, played=chosen.played)), flush=True)


if __name__ == "__main__":
    main()
