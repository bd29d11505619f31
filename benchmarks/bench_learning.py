"""Learning: the latency of a decision, a whole mountain-car run, updates of problems with four coordinates.

Mountain car and updates are by default settings, as anybody's problem is learned; where it is said how many
nodes there are, they are fixed, so that the figures of one version can be compared with those of another.

No peer does the same work; the figures are here so that they are measured and not asserted.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.exploring import random_transitions
from benchmarks.measuring import Result
from optimist.agents import GPRMaxAgent
from optimist.discretisation import Discretisation
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.kinds import learning_settings
from optimist.experiments.online import start_run
from optimist.experiments.problems import find_problem
from optimist.learner import GPRMax
from optimist.systems import SYSTEMS
from optimist.transitions import Transition

UPDATED = ("bicycle", "acrobot", "cart-pole")
ROUNDS = 5
NODES = {"bicycle": (20,) * 4, "acrobot": (25,) * 4}


def run() -> dict[str, Result]:
    return {
        "learn mountain car, 5 episodes": {"ours_s": _mountain_car(), "peers": {}, "ratio": None},
        "replan acrobot 25^4 after 500 transitions": {"ours_s": _replan(), "peers": {}, "ratio": None},
        **{f"update, {name}, 500 transitions": _as_row(_updates(name)) for name in UPDATED},
        "predict, bicycle 20^4, one observation": {"ours_s": _latency("bicycle"), "peers": {}, "ratio": None},
        "predict, acrobot 25^4, one observation": {"ours_s": _latency("acrobot"), "peers": {}, "ratio": None},
    }


def _mountain_car() -> float:
    """The whole run, recorded on disk; the second time, so that everything is compiled."""
    problem = find_problem("mountain-car")
    for _ in range(2):
        with TemporaryDirectory() as name:
            began = perf_counter()
            with start_run(problem, "gp-rmax-exp", seed=0, run=Path(name) / "run") as learner:
                learner.learn(episodes=5)
            took = perf_counter() - began
    return took


def _replan() -> float:
    """A full update: fit with hyperparameters, evaluate, plan, rehearse, try a challenger.

    After one that leaves a start.
    """
    agent = _taught("acrobot", 400)
    agent.transitions = _seen("acrobot", 500)
    began = perf_counter()
    agent.update()
    return perf_counter() - began


def _updates(problem: str) -> list[float]:
    """Updates with everything, default settings: the model refitted, two layouts planned on and tried out.

    After 500 transitions of random controls, and one update before that leaves a start, at 400.
    """
    problem_of, rows, times = find_problem(problem), _seen(problem, 500), []
    for _ in range(ROUNDS):
        agent = GPRMaxAgent(SYSTEMS[problem].task, learning_settings("gp-rmax-exp", problem_of), seed=0)
        agent.transitions = rows[:400]
        agent.update()
        agent.transitions = rows
        began = perf_counter()
        agent.update()
        times.append(perf_counter() - began)
    return times


def _as_row(times: list[float]) -> Result:
    """Not the fastest: what one waits for is the usual one."""
    spread = {"fastest_s": min(times), "slowest_s": max(times)}
    return {"ours_s": float(np.median(times)), "peers": {}, "ratio": None, **spread}


def _latency(problem: str) -> float:
    agent = _taught(problem, 60)
    learner = GPRMax.of(agent, SystemEnvironment(problem), name="gp-rmax-exp")
    # always another one: what was decided before is remembered
    around = np.random.default_rng(0).uniform(0.01, 0.02, size=(2000, agent.task.box.n_dims))
    times = []
    for observation in SYSTEMS[problem].starts[0] + around:
        began = perf_counter()
        learner.predict(observation)
        times.append(perf_counter() - began)
    return float(np.median(times))


def _taught(problem: str, count: int) -> GPRMaxAgent:
    settings = learning_settings("gp-rmax-exp", find_problem(problem))
    settings = settings.model_copy(update={"grid": Discretisation(nodes=NODES[problem])})
    agent = GPRMaxAgent(SYSTEMS[problem].task, settings, seed=0)
    agent.transitions = _seen(problem, count)
    agent.update()
    assert agent.grid.shape == NODES[problem]
    return agent


def _seen(problem: str, count: int) -> list[Transition]:
    return random_transitions(SYSTEMS[problem], count, seed=0).rows()
