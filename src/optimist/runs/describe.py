"""What a run says about itself: its header."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pydantic import BaseModel

from optimist.agents.agent import Agent
from optimist.box import Box
from optimist.given import brief
from optimist.task import Task


def run_header(
    name: str, problem: str | None, task: Task, settings: BaseModel, *, seed: int
) -> dict[str, Any]:
    """What a run of the agent called `name` says about itself."""
    return {
        "optimist_version": version("optimist"),
        "agent": name,
        "problem": problem,
        "seed": seed,
        "settings": settings.model_dump(mode="json"),
        "task": describe_task(task),
    }


BOUNDS = {"control_low", "control_high"}  # of controls that are a box


def told_to(agent: Agent) -> Task:
    """What an agent was told before its first transition, whatever it believes by now."""
    told: Task = getattr(agent, "told", agent.task)
    return told


def describe_task(task: Task) -> dict[str, Any]:
    """What of a task can be written down; its functions cannot."""
    return {
        "low": task.box.low.tolist(),
        "high": task.box.high.tolist(),
        "periodic": task.box.periodic.tolist(),
        "controls": task.controls.tolist(),
        "discount": task.discount,
        "optimistic_value": task.optimistic_value,
        "max_steps": task.max_steps,
        **({} if task.control_box is None else _bounds(task.control_box)),
    }


def _bounds(box: Box) -> dict[str, Any]:
    return {"control_low": box.low.tolist(), "control_high": box.high.tolist()}


def require_same_task(described: dict[str, Any], task: Task, place: object) -> None:
    """Raise ValueError when `task` is not the one that was learned."""
    given = describe_task(task)
    boxes = [set(said) >= BOUNDS for said in (described, given)]
    if boxes[0] != boxes[1]:
        kinds = ["a box" if box else "a list" for box in boxes]
        raise ValueError(f"The task must be the one of {place}; its controls are {kinds[0]}, got {kinds[1]}.")
    if set(described) != set(given):
        raise ValueError(f"The task of {place} must say {', '.join(given)}; got others, or not all of them.")
    for name, value in described.items():
        if given[name] != value:
            raise ValueError(
                f"The task must be the one of {place}; its `{name}` is {brief(value)}, "
                f"got {brief(given[name])}."
            )
