"""Kind: one entry per kind of agent; how it starts and goes on. The command and campaigns know nothing else.

An agent that follows `agents.Agent` needs no more than `online_kind`. To add one, write its file and name
it in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from optimist.agents import AGENTS, AgentSettings, GPRMaxAgent, settings_of
from optimist.agents.agent import Agent
from optimist.agents.settings import parse_settings
from optimist.documents import first_error
from optimist.experiments.problems import Problem
from optimist.experiments.sarsa_runs import sarsa_kind
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.given import brief
from optimist.learner import GPRMax
from optimist.runs import Session
from optimist.task import Task


@dataclass(frozen=True)
class Kind:
    """A kind of agent."""

    choose: Callable[[Problem, str, Path | None], BaseModel]  # settings, of problem, preset and file
    start: Callable[[Problem, Any, int], Session[Any]]  # of problem, settings, seed; not yet recorded
    reopen: Callable[[Path, Problem, bool], Session[Any]]  # a recorded run, for writing or only to look at


def online_kind(
    name: str,  # of the agent, for the record
    make: Callable[[Task, Any, int], Agent],  # one that knows nothing, of task, settings and seed
    choose: Callable[[Problem, str, Path | None], BaseModel],  # settings, of problem, preset and file
    parse: Callable[[dict[str, Any]], BaseModel],  # settings, of what was recorded
    session: type[Session[Any]] = Session,  # what runs it
) -> Kind:
    """Agents that follow `agents.Agent`: they act, observe and update, and every transition is recorded."""

    def start(problem: Problem, settings: Any, seed: int) -> Session[Any]:
        agent = make(problem.task, settings, seed)
        return session.of(agent, problem.env, name=name, problem=problem.name)

    def reopen(run: Path, problem: Problem, writing: bool) -> Session[Any]:
        def again(document: dict[str, Any], seed: int) -> Agent:
            return make(problem.task, _settings(parse, document), seed)

        return session.reopen(run, problem.env, problem.task, again, writing=writing)

    return Kind(choose, start, reopen)


def _settings(parse: Callable[[dict[str, Any]], BaseModel], document: dict[str, Any]) -> BaseModel:
    try:
        return parse(document)
    except ValidationError as error:
        where, _, said = first_error(error)
        raise ValueError(f"The setting {where!r} {said}") from error


def learning_settings(
    agent: str, problem: Problem, preset: str = "ours", file: Path | None = None
) -> AgentSettings:
    """GP-RMAX's: the preset, on the grid of the recipe of the same name if there is one, then `file`'s."""
    recipe = problem.recipes[preset] if preset != "ours" and preset in problem.recipes else None
    return settings_of(agent, preset=preset, grid=None if recipe is None else recipe.grid, file=file)


def _gp_rmax(name: str) -> Kind:
    def make(task: Task, settings: AgentSettings, seed: int) -> GPRMaxAgent:
        return GPRMaxAgent(task, settings, seed=seed)

    return online_kind(name, make, partial(learning_settings, name), parse_settings, GPRMax)


KINDS: dict[str, Kind] = {name: _gp_rmax(name) for name in AGENTS}
KINDS |= {name: Kind(*sarsa_kind(name)) for name in SARSA_AGENTS}


def find_kind(name: str) -> Kind:
    """The kind of agent called `name`."""
    if name not in KINDS:
        raise ValueError(f"The agent must be one of {', '.join(KINDS)}; got {brief(name)}.")
    return KINDS[name]
