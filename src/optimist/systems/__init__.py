"""The four benchmark systems of the paper's Section 4.1, one file each.

Dynamics are pure and batched. Nothing here is visible to the agent: what it knows is a `Task`.
"""

from __future__ import annotations

from optimist.systems.acrobot import ACROBOT
from optimist.systems.bicycle import BICYCLE
from optimist.systems.mountain_car import MOUNTAIN_CAR
from optimist.systems.pendulum import PENDULUM
from optimist.systems.system import Recipe, System

SYSTEMS: dict[str, System] = {system.name: system for system in (MOUNTAIN_CAR, PENDULUM, BICYCLE, ACROBOT)}


def find_system(name: str) -> System:
    """The system called `name`."""
    if name not in SYSTEMS:
        raise ValueError(f"The problem must be one of {', '.join(SYSTEMS)}; got {name!r}.")
    return SYSTEMS[name]


__all__ = ["SYSTEMS", "Recipe", "System", "find_system"]
