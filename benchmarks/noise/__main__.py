"""Problems x noise x seeds; what was measured before is not measured again.

`python -m benchmarks.noise totals --problems pendulum --noise 0.05 --seeds 5-9`. Parts:
best, mean, totals, settled (our problems), estimate, sensors, read, unfiltered, uneven, misled (cliff,
rocks), member (those of benchmarks/suite), changed, worn, stopped (stops, free), closed, sweep. Results go to
results.json beside this file, one entry per measurement, as soon as it is there; several may measure at the
same time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

from benchmarks.noise import members, runs, sensed, strangers

FILE = Path(__file__).with_name("results.json")
PROBLEMS = "mountain-car,pendulum,cart-pole,acrobot,bicycle"
Part = Callable[[str, float, int], dict[str, Any]]
PARTS: dict[str, Part] = {
    "best": lambda problem, share, _: runs.best(problem, share),
    "mean": lambda problem, share, _: runs.best(problem, share, planned=0.0),
    "totals": runs.learned,
    "settled": runs.settled,
    "estimate": strangers.estimate,
    "sensors": sensed.sensors,
    "read": sensed.read,
    "uneven": sensed.uneven,
    "unfiltered": sensed.unfiltered,
    "misled": strangers.misled,
    "member": members.member,
    "changed": strangers.changed,
    "worn": strangers.worn,
    "stopped": strangers.stopped,
    "closed": lambda *_: strangers.closed_forms(),
    "sweep": lambda *_: strangers.sweep_price(),
}
ALONE = ("best", "mean", "closed", "sweep")  # without seeds


def results() -> dict[str, Any]:
    """What was measured so far."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--problems", default=PROBLEMS)
    parser.add_argument("--noise", default="0.01,0.05,0.1")
    parser.add_argument("--seeds", default="5-9")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(1) if given.part in ALONE else range(int(first), int(last or first) + 1)
    for problem in given.problems.split(","):
        for share in map(float, given.noise.split(",")):
            for seed in seeds:
                name = f"{given.part}/{problem}/{share}/{seed}"
                if name in results() and not given.again:
                    continue
                said = PARTS[given.part](problem, share, seed)
                print(name, json.dumps(said), flush=True)
                with FileLock(FILE.with_suffix(".lock")):
                    FILE.write_text(json.dumps(results() | {name: said}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
