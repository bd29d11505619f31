"""Knowledge: all that a GP-RMAX agent has made of its transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optimist.arrays import Action, FloatArray
from optimist.filtering import Filter
from optimist.models import Model
from optimist.models.drift import Drift, Drifting
from optimist.models.model import filtering_of, imagined_by
from optimist.planning import Flow, Lookahead, Plan, Planned, Planner, QFunction
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
    second: Planned | None  # the plan that came second when they were tried out, with a bonus, too
    sights: Sights  # the plans it explores with, acted on with the sight that is best from where it begins
    begun: Planned | None = None  # what the episode that was going on then was acted in by, seen anew
    kept: Planned | None = None  # what it had slept on when it learned once and slept on, seen anew
    stirred: bool = False  # woken by what noise does not explain: it learns once, and sleeps on

    @property
    def plan(self) -> Plan:
        """Its Q-values, and how they were found."""
        return self.planned.plan

    @property
    def filtering(self) -> Filter | None:
        """How readings are put together with what went before; None: they are taken as they are."""
        return filtering_of(self.model)

    @cached_property
    def _plain(self) -> Planned:
        """The plan without any bonus, found when it is first asked for."""
        made, planner = self.planned, self.planner
        return planner.plan(
            self.flow,
            made.layout,
            start=made.plan.q_values,
            leaving=made.leaving,
            optimistic=False,
            directly=made.policy.directly if isinstance(made.policy, Between) else None,
            noise=made.noise,
        )

    @cached_property
    def best(self) -> Planned:
        """The best single plan it knows: the one without bonus.

        Where the plan with a bonus, tried out, clearly earns more, it is the best: no two plans on a grid err
        alike, and it was chosen for what it earns.
        """
        heard = self.try_out(self._plain, None)
        return self.planned if better(self.try_out(self.planned, heard), heard) else self._plain

    @cached_property
    def going_on(self) -> Sights:
        """How to act in the episode that was going on when it planned: it may go on as it began."""
        if self.begun is None:
            return self.sights
        same = self.kept is not None and np.array_equal(self.kept.plan.q_values, self.begun.plan.q_values)
        others = self.second, self.begun, None if same else self.kept
        return Sights.of(self.planned, imagined_by(self.model), others=others)

    def acted_by(self, policy: QFunction | Lookahead) -> Planned:
        """Which of its plans a policy of its own acts on."""
        plan = policy if isinstance(policy, QFunction) else policy.q_function
        others = [one for one in (self.second, self.begun, self.kept) if one and one.q_function is plan]
        return others[0] if others else self.planned

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

    def drift_to(self, after: Model, drifting: Drifting) -> Drift:
        """How much the model has changed until another, over the steps that are planned with."""
        planned = self.planned
        drift = drifting(self.model, after, planned.grid, planned.task.controls)
        return replace(drift, mean_drift=drift.mean_drift * planned.mean_hold)

    @cached_property
    def best_sights(self) -> Sights:
        """The best it knows: from where an episode begins whichever plan, and sight, earns most."""
        other = self._plain if self.best is self.planned else self.planned
        # the paper's agents act on one
        others = () if isinstance(self.best.policy, QFunction) else (other, self.second, self.kept)
        return Sights.of(self.best, imagined_by(self.model), self.filtering, others=others)
