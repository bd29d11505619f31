"""Less to do where a test is not about how much: rehearsing whole episodes at every plan takes time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from optimist.agents import PRESETS
from optimist.agents.settings import PlanningOptions
from optimist.discretisation import Discretisation
from optimist.systems import NAMES, SYSTEMS


@contextmanager
def short_episodes(max_steps: int) -> Iterator[None]:
    """In this process, meanwhile, no system of ours has longer ones, by whatever way it is found."""
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            system = SYSTEMS[name]
            task = replace(system.task, max_steps=min(max_steps, system.task.max_steps))
            patch.setitem(SYSTEMS, name, replace(system, task=task))
        yield


@contextmanager
def quick_defaults() -> Iterator[None]:
    """In this process, meanwhile, whoever chooses no settings plans seldom and on few nodes."""
    quick = PRESETS["ours"].model_copy(
        update={
            "first_plans": (5, 12, 40),
            "replan_every": 100,
            "grid": Discretisation(budget=900),
            "planning": PlanningOptions(depth=1),
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "ours", quick)
        yield


@contextmanager
def hurried() -> Iterator[None]:
    """Short episodes besides, hardly any plans, none rehearsed: for whoever only wants to get through."""
    with quick_defaults(), short_episodes(20), pytest.MonkeyPatch.context() as patch:
        few = {
            "first_plans": (5, 15),
            "replan_every": 500,
            "grid": Discretisation(budget=300),
            "planning": PlanningOptions(depth=1, rehearse=False),
        }
        patch.setitem(PRESETS, "ours", PRESETS["ours"].model_copy(update=few))
        yield
