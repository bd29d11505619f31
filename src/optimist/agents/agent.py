"""Agent: what whoever runs, records, resumes or looks at an agent may ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from optimist.agents.plan_map import PlanMap
from optimist.arrays import Action, FloatArray
from optimist.models.drift import Drift
from optimist.models.model import Packed
from optimist.planning import Policy
from optimist.task import Task
from optimist.transitions import Transition


@dataclass(frozen=True, eq=False)
class Update:
    """What one update did: a row of the run's record."""

    n_transitions: int
    fit_seconds: float
    predict_seconds: float
    plan_seconds: float
    sweeps: int
    residual: float
    converged: bool
    drift: Drift | None  # None: there was no model before
    mean_uncertainty: float
    model: dict[str, Any]  # what the model says of itself, as JSON can say it
    settled: bool  # learning stopped here
    # the layout that won, what was tried, what an episode is expected to earn
    rehearsal: dict[str, Any] = field(default_factory=dict)
    plan_map: PlanMap | None = None  # to be looked at; None: this kind of agent has nothing to show


class Agent(Protocol):
    """Learns from its own transitions: a function of its settings, its seed and them."""

    task: Task
    seed: int
    transitions: list[Transition]

    @property
    def settings(self) -> BaseModel:
        """All its choices."""
        ...

    @property
    def policy(self) -> Policy:
        """The best it knows; a ValueError before it knows anything."""
        ...

    @property
    def due(self) -> bool:
        """Whether now is the time to update."""
        ...

    @property
    def settled_at(self) -> int | None:
        """Transitions after which it stopped learning; None while it goes on."""
        ...

    def act(self, state: FloatArray) -> Action:
        """The action to try in `state` [d]: a number of the list, or a control [k] where they are a box."""
        ...

    def observe(self, transition: Transition) -> None:
        """Remember what happened."""
        ...

    def mark(self, number: int, *, void: bool) -> None:
        """Learn no more from the transition of that number (from 1), or (not void) do so after all."""
        ...

    def update(self) -> Update:
        """Learn from all transitions that are not void."""
        ...

    def pack(self) -> Packed | None:
        """What it has made of its first `n_transitions` (the document says so); None: nothing.

        Of an agent that was told of marks the document says also `marks`, how many were `heard`.
        """
        ...

    def restore(self, transitions: Sequence[Transition], packed: Packed | None) -> None:
        """Go back to a state it was in."""
        ...
