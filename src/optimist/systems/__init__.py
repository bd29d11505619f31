"""The benchmark systems, one file each, and the table of all.

Nothing here is visible to the agent: what it knows is a `Task`. A system called `mountain-car` is the
`SYSTEM` of `mountain_car.py`, loaded when it is first asked for. To add one, write its file and add its name
to `NAMES`.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optimist.systems.system import System

PAPER = ("mountain-car", "pendulum", "bicycle", "acrobot")  # of the paper's Section 4.1
NAMES = (*PAPER, "cart-pole", "cart-pole-rail", "pendulum-continuous", "cart-pole-continuous")


class _Table(UserDict[str, "System"]):
    """Names and systems; one that was not asked for yet is not loaded."""

    def __getitem__(self, name: str) -> System:
        if self.data[name] is None:
            self.data[name] = import_module(f"optimist.systems.{name.replace('-', '_')}").SYSTEM
        return self.data[name]


SYSTEMS = _Table(dict.fromkeys(NAMES))  # type: ignore[arg-type]


def find_system(name: str) -> System:
    """The system called `name`."""
    if name not in SYSTEMS:
        raise ValueError(f"The problem must be one of {', '.join(SYSTEMS)}; got {name!r}.")
    return SYSTEMS[name]


def gymnasium_id(name: str) -> str:
    """What `gymnasium.make` calls the system of that name, such as optimist/MountainCar-v0."""
    return f"optimist/{''.join(part.capitalize() for part in name.split('-'))}-v0"


__all__ = ["NAMES", "PAPER", "SYSTEMS", "find_system", "gymnasium_id"]
