"""Runs by name: starting, opening and evaluating them, for the command and for campaigns.

What is handed to an agent is the problem's task; the dynamics stay behind the environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optimist.arrays import FloatArray
from optimist.experiments.gymnasium_ids import is_registered
from optimist.experiments.kinds import find_kind
from optimist.experiments.problems import Problem, find_problem
from optimist.given import blamed, brief
from optimist.planning import Policy, Rollouts, roll_out
from optimist.runs import RunError, RunStore, Session
from optimist.runs.headers import of_run
from optimist.runs.playing import play
from optimist.systems import SYSTEMS

PLAYED = 5  # episodes of an evaluation in an environment that cannot be put into a state


def start_run(
    problem: Problem,
    agent: str,
    *,
    seed: int,
    run: Path,
    episodes: int = 1,
    preset: str = "ours",
    file: Path | None = None,
) -> Session[Any]:
    """A new recorded run that shall have so many episodes."""
    if seed < 0:
        raise ValueError(f"`seed` must be a whole number, not negative; got {seed}.")
    kind = find_kind(agent)
    with blamed(f"The agent {agent}"):
        made = kind.start(problem, kind.choose(problem, preset, file), seed)
    made.record(run, episodes=episodes)
    return made


def open_run(run: Path, problem: str | None = None, *, writing: bool) -> tuple[Session[Any], Problem]:
    """A recorded run, to go on with or to look at; `problem` names it again where it is not ours."""
    with RunStore.open(run, writing=False) as store:
        header = store.header
    recorded, agent = header.get("problem"), header.get("agent")
    if agent is None:
        raise RunError(f"The record of the run in {run} is damaged: no agent.")
    if problem is None:
        if not _is_known(str(recorded)):
            raise ValueError(
                f"The problem of the run in {run} must be named again, since it is somebody's own code "
                f"({brief(recorded)}): --problem FILE.py:FUNCTION; got none."
            )
        problem = str(recorded)
    elif recorded is not None and _is_known(problem) and _bare(problem) != _bare(recorded):
        raise ValueError(
            f"--problem must be the one the run in {run} is of, {recorded}; got {brief(problem)}."
        )
    with of_run(run):
        kind = find_kind(agent)
    found = find_problem(problem)
    with blamed(f"The agent {agent}"):
        return kind.reopen(run, found, writing), found


def _bare(problem: str) -> str:
    """Without arguments of the environment, which runs recorded from Python do not know."""
    return problem.partition("[")[0]


def _is_known(problem: str) -> bool:
    """Whether a name says all: it is ours, or Gymnasium's."""
    return problem in SYSTEMS or is_registered(problem)


def evaluate(
    run: Session[Any], problem: Problem, *, n_random: int = 0, seed: int = 0
) -> list[tuple[str, Rollouts]]:
    """Greedy episodes, nothing learned, each kind of start with its name.

    Of ours from its starts; of others as the environment begins them. Random states need known dynamics.
    """
    with blamed("The agent's `policy`"):
        return _evaluated(run, problem, n_random, seed)


def _evaluated(run: Session[Any], problem: Problem, n_random: int, seed: int) -> list[tuple[str, Rollouts]]:
    if problem.system is None:
        found = [("reset", play(problem.env, run.task, run.policy, PLAYED, seed=seed))]
    else:
        found = [("paper", _followed(problem, run.policy, problem.starts))]
    if n_random:
        stream = np.random.default_rng([seed, n_random])
        states = stream.uniform(run.box.low, run.box.high, size=(n_random, run.box.n_dims))
        states = states[~run.task.terminal(states)]
        found.append(("random", _followed(problem, run.policy, states)))
    return found


def _followed(problem: Problem, policy: Policy, starts: FloatArray) -> Rollouts:
    if problem.dynamics is None:
        raise ValueError(
            f"Random states must come with known dynamics (`adapt(..., dynamics=...)`); got {problem.name}."
        )
    return roll_out(problem.task, problem.dynamics, policy, starts)
