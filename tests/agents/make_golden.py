"""Makes the golden data anew: `python -m tests.agents.make_golden`. Look at the difference first.

A change of the agent that is meant to change what it does changes this file; any other must not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from optimist import GPRMax
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.online import learning_settings
from optimist.planning import QFunction
from optimist.runs import Event, Updated

FILE = Path(__file__).parent / "golden_200.json"
STEPS, SEED = 200, 0
ASKED = [[-0.52, 0.0], [-1.0, 0.03], [0.2, 0.05], [-0.3, -0.04], [0.4, 0.0]]


def golden_run() -> dict[str, Any]:
    """A seeded mountain-car run of 200 steps with default settings, in numbers."""
    plans: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, Updated):
            plans.append(event.update.n_transitions)

    settings = learning_settings("mountain-car", "gp-rmax-exp")
    learner = GPRMax(SystemEnvironment("mountain-car"), settings=settings, seed=SEED)
    learner.learn(STEPS, callback=note)
    seen = learner.transitions
    return {
        "nodes": list(learner.grid.shape),
        "actions": "".join(map(str, seen.actions.tolist())),
        "states": np.vstack([seen.states, seen.next_states[-1:]]).tolist(),
        "episodes": [[row.episode, row.steps, row.total_reward, row.ending] for row in learner.episodes],
        "plans": plans,
        "q_values": QFunction(learner.grid, learner.plan.q_values)(np.array(ASKED)).tolist(),
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(golden_run(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
