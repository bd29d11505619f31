"""Learning: the latency of a decision, a whole mountain-car run, one replan of the acrobot.

Mountain car is learned as anybody's problem is; in 4-D the number of nodes is fixed, so that the figures of
one version can be compared with those of another.

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

NODES = {"bicycle": (20,) * 4, "acrobot": (25,) * 4}


def run() -> dict[str, Result]:
    return {
        "learn mountain car, 5 episodes": {"ours_s": _mountain_car(), "peers": {}, "ratio": None},
        "replan acrobot 25^4 after 500 transitions": {"ours_s": _replan(), "peers": {}, "ratio": None},
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


def _latency(problem: str) -> float:
    agent = _taught(problem, 60)
    learner = GPRMax.of(agent, SystemEnvironment(problem), name="gp-rmax-exp")
    observation = SYSTEMS[problem].starts[0] + 0.01
    times = []
    for _ in range(2000):
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
