"""Prediction error of the learned models: 120, 300 and 1000 transitions, median over seeds.

    python -m benchmarks.model_error                # all systems, ten seeds, some minutes
    python -m benchmarks.model_error pendulum 2     # one system, two seeds

Transitions come from a policy that draws controls at random and holds them for up to ten steps. The error is
the root mean square over a fixed test set of 2000 such transitions (none of them clipped at an edge), over
the spread of the displacement, the largest over the coordinates.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.exploring import random_transitions
from optimist.models import GPDynamics, GPSettings, fit_dynamics
from optimist.models.edges import usable
from optimist.systems import SYSTEMS
from optimist.systems.system import System
from optimist.transitions import Transitions

COUNTS = (120, 300, 1000)
MODELS = {
    "per action": GPSettings(kind="per-action", subset=150),
    "joint": GPSettings(kind="joint", subset=150),
}


def error(model: GPDynamics, test: Transitions) -> float:
    """Normalised root mean square error of the worst coordinate."""
    box = model.box
    rows = usable(box, test).all(axis=1)
    states, next_states = test.states[rows], test.next_states[rows]
    predicted = model.predict(states, model.controls[test.actions[rows]])
    missed = box.displacement(predicted, next_states)
    spread = box.displacement(states, next_states).std(axis=0)
    return float((np.sqrt((missed**2).mean(axis=0)) / spread).max())


def median_errors(system: System, seeds: int, settings: GPSettings) -> list[float]:
    """Median over seeds for each count."""
    task = system.task
    test = random_transitions(system, 2000, seed=12345)
    found = []
    for count in COUNTS:
        errors = []
        for seed in range(seeds):
            transitions = random_transitions(system, count, seed=seed)
            model = fit_dynamics(transitions, task.box, task.controls, settings, fit_seed=seed)
            errors.append(error(model, test))
        found.append(float(np.median(errors)))
    return found


def main() -> None:
    problems = sys.argv[1:2] or list(SYSTEMS)
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    print("| system | model | " + " | ".join(f"{count} transitions" for count in COUNTS) + " |")
    print("|---|---|" + "---|" * len(COUNTS))
    for problem in problems:
        for name, settings in MODELS.items():
            errors = median_errors(SYSTEMS[problem], seeds, settings)
            print(f"| {problem} | {name} | " + " | ".join(f"{e:.2g}" for e in errors) + " |", flush=True)


if __name__ == "__main__":
    main()
