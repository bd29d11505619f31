"""Learn every member of the suite with default settings, and compare with plans that know the true dynamics.

    python -m benchmarks.suite                          # ten members, ten seeds, six episodes: 1.5 to 2 hours
    python -m benchmarks.suite dubins-car --seeds 2     # one of them, two seeds

What is compared: the mean total of ten episodes from the same seeded starts, acted by what was learned
(without exploring), and by the same planner given the true dynamics and three times the nodes. Writes
results.json and the table of README.md beside this file when all members were run.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

HERE = Path(__file__).parent
NEAR = 0.1  # of the true-model plan: so near counts as learned


def run(members: list[str], seeds: int, episodes: int, jobs: int) -> dict[str, Any]:
    """Everything, on `jobs` processes."""
    from benchmarks.suite.runs import learn, plan_with_truth

    os.environ |= {"OPTIMIST_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # one core each
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        plans = [pool.submit(plan_with_truth, member) for member in members]
        runs = [pool.submit(learn, member, seed, episodes) for seed in range(seeds) for member in members]
        waiting = as_completed([*plans, *runs])
        for _ in track(waiting, "learning the suite", total=len(plans) + len(runs)):
            pass
    return {"truth": [plan.result() for plan in plans], "runs": [made.result() for made in runs]}


def table(found: dict[str, Any]) -> Iterator[str]:
    """Line by line: medians over the seeds, with the worst."""
    runs = found["runs"]
    episodes = max(len(row["totals"]) for row in runs)
    heads = " | ".join(f"episode {k}" for k in range(1, episodes + 1))
    yield f"| member | axes, actions | true model | learned: median (worst) | near | {heads} | settled at |"
    yield "|---" * (6 + episodes) + "|"
    n_near = 0
    for truth in found["truth"]:
        mine = [row for row in runs if row["member"] == truth["member"]]
        outcomes = np.array([row["outcome"] for row in mine])
        near = outcomes >= truth["outcome"] - NEAR * abs(truth["outcome"])
        n_near += bool(near.mean() >= 0.5)
        totals = np.median([row["totals"] for row in mine], axis=0)
        settled = [row["settled_at"] for row in mine if row["settled_at"] is not None]
        last = f"{np.median(settled):.0f} ({len(settled)} of {len(mine)})" if settled else "never"
        middle = " | ".join(f"{total:.4g}" for total in totals)
        yield (
            f"| {truth['member']} | {truth['n_dims']}, {truth['n_actions']} | {truth['outcome']:.4g} "
            f"| {np.median(outcomes):.4g} ({outcomes.min():.4g}) | {near.sum()} of {len(mine)} "
            f"| {middle} | {last} |"
        )
    yield ""
    many = f"{n_near} of {len(found['truth'])} members"
    yield f"Within {NEAR:.0%} of the true-model plan in the median seed: {many}."


def write(found: dict[str, Any]) -> None:
    """The results, and the table between the marks of README.md."""
    (HERE / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition("<!-- table -->\n")
    after = rest.partition("<!-- end -->")[2]
    readme.write_text(before + "<!-- table -->\n" + "\n".join(table(found)) + "\n<!-- end -->" + after)


def main() -> None:
    """Parse, run, print."""
    from benchmarks.suite.members import MEMBERS

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = f"some of {', '.join(MEMBERS)}; by default all"
    parser.add_argument("members", nargs="*", metavar="MEMBER", help=names)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    given = parser.parse_args()
    unknown = sorted(set(given.members) - set(MEMBERS))
    if unknown:
        parser.error(f"members must be some of {', '.join(MEMBERS)}; got {', '.join(unknown)}.")
    if min(given.seeds, given.episodes, given.jobs) < 1:
        parser.error("--seeds, --episodes and --jobs must be at least 1.")
    found = run(given.members or list(MEMBERS), given.seeds, given.episodes, given.jobs)
    print("\n".join(table(found)))
    if not given.members:
        write(found)


if __name__ == "__main__":
    main()
