"""Knowledge: all that a GP-RMAX agent has made of its transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optimist.arrays import Action, FloatArray
from optimist.filtering import Filter
from optimist.models import Model
from optimist.models.drift import Drift, measure_drift
from optimist.models.model import filtering_of, imagined_by
from optimist.planning import Flow, Plan, Planned, Planner
from optimist.planning.between import Between
from optimist.planning.contest import TryOut
from optimist.planning.rehearsal import Expectation, better
from optimist.planning.sights import Sights


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
    planner: Planner
    try_out: TryOut
    sights: Sights  # the plan it explores with, acted on with the sight that is best from where it begins

    @property
    def plan(self) -> Plan:
        """Its Q-values, and how they were found."""
        return self.planned.plan

    @property
    def filtering(self) -> Filter | None:
        """How readings are put together with what went before; None: they are taken as they are."""
        return filtering_of(self.model)

    @cached_property
    def best(self) -> Planned:
        """The same without any bonus: the best it knows, found when it is first asked for.

        Where the plan with a bonus, tried out, clearly earns more, it is the best: no two plans on a grid err
        alike, and it was chosen for what it earns.
        """
        made, planner = self.planned, self.planner
        plain = planner.plan(
            self.flow,
            made.layout,
            start=made.plan.q_values,
            leaving=made.leaving,
            optimistic=False,
            directly=made.policy.directly if isinstance(made.policy, Between) else None,
            noise=made.noise,
        )
        heard = self.try_out(plain, None)
        return made if better(self.try_out(made, heard), heard) else plain

    def led(self, here: FloatArray, action: Action) -> tuple[FloatArray, float]:
        """Where an `action`, which need not be listed, leads from `here` [d], and how unsure that is."""
        acting, task = self.planned.policy, self.planned.task
        if task.control_box is None:
            assert isinstance(action, int | np.integer)
            found = self.flow(here[np.newaxis], int(action))
        else:
            if not isinstance(acting, Between):
                acting = Between(task, self.flow, self.planned.q_function)
            found = acting.towards(here[np.newaxis], task.applied(np.array([action])))
        assert found.uncertainty is not None
        return found.next_states[0], float(found.uncertainty[0])

    def drift_to(self, after: Model) -> Drift:
        """How much the model has changed until another, over the steps that are planned with."""
        planned = self.planned
        drift = measure_drift(self.model, after, planned.grid, planned.task.controls)
        return replace(drift, mean_drift=drift.mean_drift * planned.mean_hold)

    @cached_property
    def best_sights(self) -> Sights:
        """The best it knows, acted on in the same way."""
        return Sights.of(self.best, imagined_by(self.model), self.filtering)
