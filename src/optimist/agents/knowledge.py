"""Knowledge: all that a GP-RMAX agent has made of its transitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from optimist.agents.choosing import Choosing
from optimist.models import Model
from optimist.models.drift import Drift
from optimist.models.model import imagined_by
from optimist.planning import Flow, Plan, Planned
from optimist.planning.rehearsal import Expectation
from optimist.planning.sights import Sights
from optimist.transitions import Transitions


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that an agent has made of its transitions: enough to go on from, or to act on."""

    n_transitions: int
    model: Model
    planned: Planned
    flow: Flow
    drifts: tuple[Drift, ...]
    settled: bool
    expectation: Expectation
    n_updates: int
    choosing: Choosing
    seen: Transitions  # what it was made of
    sights: Sights  # the plan it explores with, acted on with the sight that is best from where it begins

    @property
    def plan(self) -> Plan:
        """Its Q-values, and how they were found."""
        return self.planned.plan

    @cached_property
    def best(self) -> Planned:
        """The same without any bonus: the best it knows, found when it is first asked for."""
        return self.choosing.best(self.model, self.seen, self.planned, polish=not self.settled)

    @cached_property
    def best_sights(self) -> Sights:
        """The best it knows, acted on in the same way."""
        return Sights.of(self.best, imagined_by(self.model))
