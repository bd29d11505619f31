"""Golden data: `python -m tests.agents.make_golden` makes it anew, with `--check` compares all runs.

A change of an agent that is meant to change what it does changes these files; any other must not. Look at the
difference first. `golden_200.json` is one run in numbers. `golden_runs.json` is every kind of agent on every
system of the paper, and our default on the cart-pole, two episodes each; in four dimensions on `FEW` nodes,
since rehearsals take time. Tests compare actions, plans, layouts and total rewards of those that are quick.
Digests are of every bit, so another processor or BLAS may have others: they are compared here only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist import Discretisation, GPRMax
from optimist.agents import AgentSettings
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.kinds import KINDS, find_kind, learning_settings
from optimist.experiments.problems import find_problem
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.planning import QFunction
from optimist.runs import Event, Updated
from optimist.systems import PAPER

FILE = Path(__file__).parent / "golden_200.json"
STEPS, SEED = 200, 0
ASKED = [[-0.52, 0.0], [-1.0, 0.03], [0.2, 0.05], [-0.3, -0.04], [0.4, 0.0]]

RUNS_FILE = Path(__file__).parent / "golden_runs.json"
RUNS = [
    *(f"{system}/{agent}/ours" for system in PAPER for agent in KINDS),
    "mountain-car/gp-rmax-exp/paper",
    "pendulum/gp-rmax-exp/paper",
    "cart-pole/gp-rmax-exp/ours",
]
FEW = Discretisation(budget=7**4)
EPISODES, SARSA_EPISODES = 2, 20
DIGESTS = ("transitions", "q_values")


def golden_run() -> dict[str, Any]:
    """A seeded mountain-car run of 200 steps with default settings, in numbers."""
    plans: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, Updated):
            plans.append(event.update.n_transitions)

    settings = learning_settings("gp-rmax-exp", find_problem("mountain-car"))
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


def short_run(name: str, most: int | None = None) -> dict[str, Any]:
    """The first episodes of one of `RUNS`, or only `most` transitions; of Sarsa, which is fast, more."""
    system, agent, preset = name.split("/")
    problem, kind = find_problem(system), find_kind(agent)
    plans: list[int] = []
    layouts: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, Updated):
            plans.append(event.update.n_transitions)
            layouts.append(event.update.rehearsal["layout"])

    settings = kind.choose(problem, preset, None)
    if isinstance(settings, AgentSettings) and problem.task.box.n_dims > 2:
        settings = settings.model_copy(update={"grid": FEW})
    run = kind.start(problem, settings, SEED)
    run.learn(most, episodes=SARSA_EPISODES if agent in SARSA_AGENTS else EPISODES, callback=note)
    found: dict[str, Any] = {
        "episodes": [
            [row.episode, row.steps, row.total_reward, row.transitions, row.ending] for row in run.episodes
        ]
    }
    if isinstance(run, GPRMax):
        seen = run.transitions
        columns = (getattr(seen, column) for column in seen.__dataclass_fields__ if column != "begun")
        found |= {
            "actions": "".join(map(str, seen.actions.tolist())),
            "plans": plans,
            "layouts": layouts,
            "transitions": digest(*columns),
            "q_values": digest(run.plan.q_values),
        }
    return found


def recorded_runs() -> dict[str, dict[str, Any]]:
    """What `RUNS` were like."""
    document: dict[str, dict[str, Any]] = json.loads(RUNS_FILE.read_text(encoding="utf-8"))
    return document


def digest(*arrays: NDArray[Any]) -> str:
    """Of types, shapes and every bit."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def write() -> None:
    """Make both files."""
    FILE.write_text(json.dumps(golden_run(), indent=1) + "\n", encoding="utf-8")
    lines = [f" {json.dumps(name)}: {json.dumps(short_run(name))}" for name in RUNS]
    RUNS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def check() -> bool:
    """Compare `RUNS`, to the last bit, and say how that went."""
    recorded = recorded_runs()
    same = set(recorded) == set(RUNS)
    for name in RUNS:
        began = process_time()
        found = short_run(name)
        wrong = [part for part, value in found.items() if value != recorded.get(name, {}).get(part)]
        verdict = f"differs in {', '.join(wrong)}" if wrong else "same"
        print(f"{name:40} {process_time() - began:6.1f} s  {verdict}", flush=True)
        same &= not wrong
    return same


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if check() else 1)
    write()
