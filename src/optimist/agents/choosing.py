"""Choosing: what an agent plans on. Layouts take turns, are tried out in its model, and the best is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from optimist.agents.settings import AgentSettings
from optimist.arrays import FloatArray
from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.models import Model
from optimist.models.model import DrawnModel, imagined_by, imagined_if, motion_on
from optimist.planning import Chooser, Flow, Plan, Planned, Planner, Policy, rehearse
from optimist.planning.between import BENT, Between, bend
from optimist.planning.contest import Contest, TryOut, Won
from optimist.planning.leaving import Leaving, seen_leaving
from optimist.planning.rehearsal import Expectation, Rehearsal, Starts, from_around, kinds_of
from optimist.planning.sights import Sights
from optimist.steps import Dynamics, Step, Successors
from optimist.task import Task
from optimist.threads import shared
from optimist.transitions import Transitions

DRAW_STREAM = 0x647277  # purpose number of the random streams that draw possible models
DRAWS = 4


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """The plan that won, and how long predicting at all their nodes took."""

    won: Won
    predict_seconds: float
    # what its longest sight earns from the starts seen, by the start, where that was heard and is all costs
    heard: Mapping[bytes, float] = field(default_factory=dict)

    @property
    def planned(self) -> Planned:
        """The plan itself."""
        return self.won.planned

    def record(self) -> dict[str, Any]:
        """For the record: what was chosen, and from what."""
        layout = self.planned.layout
        return {
            "layout": layout.name,
            "nodes": list(layout.grid.shape),
            "hold": layout.holding.most,
            "until_crossed": layout.holding.until_crossed,
            "mean_hold": self.planned.mean_hold,
            "lookahead": getattr(self.planned.policy, "depth", 0),
            **self._between(),
            "tried": [[name, total if np.isfinite(total) else None] for name, total in self.won.tried],
        }

    def _between(self) -> dict[str, Any]:
        """Of controls that are a box: whether those between the listed ones are interpolated."""
        policy = self.planned.policy
        return {"interpolated": policy.directly is None} if isinstance(policy, Between) else {}


@dataclass(frozen=True, eq=False)
class Choosing:
    """How an agent with these settings chooses."""

    task: Task
    settings: AgentSettings
    seed: int
    planner: Planner
    chooser: Chooser

    def choose(
        self,
        model: Model,
        seen: Transitions,
        before: Planned | None,
        n_updates: int,
        *,
        polish: bool,
        woken: bool = False,
    ) -> Rehearsed:
        """Plan on the layout in use and on a challenger; the one that earns clearly more is kept.

        Who was just `woken` has more to choose from: what was good so far may not be any more. When the model
        has settled (`polish`), all kinds are tried and the best is taken as it is.
        """
        leaving = None if before is None else self.leaving(seen, before.worst)
        predicting, flow = 0.0, None

        def attempt(layout: Layout) -> Planned:
            nonlocal predicting, flow
            began = perf_counter()
            if flow is None or flow.grid is not layout.grid:  # or it is the same that was asked last
                flow = flow_of(model, layout.grid, self.task)
            predicting += perf_counter() - began
            start = None if before is None else before.spread(layout.grid)
            directly = self.directly(model, layout.grid)
            return self.planner.plan(
                flow,
                layout,
                start=start,
                leaving=leaving,
                directly=directly,
                noise=motion_on(model, layout.grid),
            )

        made = attempt(self.chooser.first() if before is None else self.chooser.unpolished(before.layout))
        polish = polish and self.settings.planning.rehearse
        contest = Contest(self.chooser, attempt, self.stage(model, seen, sights=polish), seen.states)
        if polish:
            return Rehearsed(contest.among_all(made), predicting)
        more = woken or bool(seen.terminated[-1] or seen.truncated[-1])
        won = contest.between(made, self._turns(n_updates, more=more))
        if not won.rehearsal.costs:
            return Rehearsed(won, predicting)
        kinds = kinds_of(seen.states[seen.begins], self.task.box)  # the first of those it was tried from
        heard = zip((start.tobytes() for start in kinds), won.rehearsal.totals.tolist(), strict=False)
        return Rehearsed(won, predicting, dict(heard))

    def acting_on(
        self, plan: Plan, layout: Layout, model: Model, leaving: Leaving | None, flow: Step | None = None
    ) -> Planned:
        """A plan that was made before, acted on through a model, or its `flow` on the same grid."""
        grid = layout.grid
        return self.planner.acting_on(
            plan,
            flow or flow_of(model, grid, self.task),
            layout,
            leaving=leaving,
            directly=self.directly(model, grid),
            noise=motion_on(model, grid),
        )

    def seen_anew(self, acting: Planned, model: Model, made: Planned, second: Planned | None) -> Planned:
        """A plan that is acted on, through another model, beside those that were made with that."""
        flows = [one.step for one in (made, second) if one is not None and one.grid is acting.grid]
        again = self.acting_on(acting.plan, acting.layout, model, made.leaving, flows[0] if flows else None)
        return replace(again, mean_hold=acting.mean_hold)

    def _turns(self, n_updates: int, *, more: bool) -> Sequence[str]:
        """Whose turn it is to challenge the layout in use. Between two episodes there is time for `more`."""
        options, kinds = self.settings.planning, self.chooser.kinds
        if not options.rehearse:
            return []
        if more:
            return kinds[: max(options.challengers, len(self.chooser.placed))]
        first, count = n_updates * options.challengers, min(options.challengers, len(kinds))
        return [kinds[(first + turn) % len(kinds)] for turn in range(count)]

    def directly(self, model: Model, grid: Grid) -> Dynamics | None:
        """The model itself, for controls between those of the list, where a straight line does not do."""
        if self.task.control_box is None or bend(self.task, model.predict, grid) <= BENT:
            return None
        return model.predict

    def leaving(self, seen: Transitions, worst: float) -> Leaving | None:
        """Through which sides of the box it has been seen to leave; an episode that ended has not left."""
        return seen_leaving(self.task, seen.next_states[~seen.terminated], worst)

    def stage(self, model: Model, seen: Transitions, *, sights: bool = True) -> TryOut:
        """Where plans are tried out: in the model, from starts that were seen and around them, and, from
        those that were seen, in some models that the data leave possible, too. Each counts a third.

        Without `sights` they are followed with the longest only, at a third of the price.
        """
        starts, mean = from_around(self.task, seen.states[seen.begins]), imagined_by(model)
        imagined = mean
        if isinstance(model, DrawnModel):
            drawn = self._draws(len(seen))
            states = np.concatenate([starts.states, starts.states[np.arange(DRAWS) % starts.n_seen]])
            weights = np.concatenate([2.0 * starts.weights, np.full(DRAWS, 1.0 / DRAWS)]) / 3.0
            imagined = imagined_if(model, np.concatenate([np.zeros_like(starts.states), drawn]))
            starts = Starts(states, weights, starts.n_seen)

        def try_out(made: Planned, against: Rehearsal | None) -> Rehearsal:
            policy = Sights.of(made, mean, rough=True) if sights else made.policy
            return rehearse(self.task, policy, imagined, starts, against=against)

        return try_out

    def _draws(self, n_seen: int) -> FloatArray:
        """How possible models err, after so many transitions, in standard deviations.  [DRAWS, d]"""
        stream = np.random.default_rng([self.seed, DRAW_STREAM, n_seen])
        return stream.standard_normal((DRAWS, self.task.box.n_dims))

    def foretell(self, model: Model, policy: Policy, starts: FloatArray, n_seen: int) -> Foretold:
        """What `policy` earns from `starts` [n, d] in the model, and in some that the data leave possible."""
        drawn = np.zeros((1, self.task.box.n_dims))
        imagined = imagined_by(model)
        if isinstance(model, DrawnModel):
            drawn = np.vstack([drawn, self._draws(n_seen)])
            imagined = imagined_if(model, np.tile(drawn, (len(starts), 1)))
        everywhere = Starts.alike(np.repeat(starts, len(drawn), axis=0))
        heard = rehearse(self.task, policy, imagined, everywhere)
        totals, spreads = heard.totals.reshape(len(starts), len(drawn)), heard.spreads
        return Foretold(totals, heard.path, None if spreads is None else spreads.reshape(totals.shape))

    def from_seen(self, model: Model, policy: Policy, seen: Transitions) -> Foretold:
        """The same from all kinds of starts that were seen."""
        return self.foretell(model, policy, kinds_of(seen.states[seen.begins], self.task.box), len(seen))


@dataclass(frozen=True, eq=False)
class Foretold:
    """What a policy will earn from some starts."""

    totals: FloatArray  # [n_starts, 1 + n_draws]: in the model itself, then in others that are possible
    path: FloatArray  # [t, d], from the first start on, in the model itself
    spreads: FloatArray | None = None  # as `totals`: what noise does to them; None: there is none

    def agree(self, allowed: float, *, hoped: float | None = None) -> bool:
        """Whether none says that it is much less than the model itself says, or than what is `hoped` for.

        `allowed` is a share of that.
        """
        against = self.totals[:, :1] if hoped is None else np.full((1, 1), hoped)
        return bool((self.totals >= against - allowed * np.abs(against)).all())

    @property
    def expectation(self) -> Expectation:
        """Of an episode from any of the starts, with an interval where other models are possible."""
        total, *drawn = self.totals.mean(axis=0).tolist()
        spread = None if self.spreads is None else float(self.spreads[:, 0].mean())
        if not drawn:
            return Expectation(total, spread=spread)
        return Expectation(total, min(total, *drawn), max(total, *drawn), spread)


def flow_of(model: Model, grid: Grid, task: Task | None = None) -> Flow:
    """The model seen through a grid. What it cannot say is unknown; further than a width nothing is out.

    A young model may predict anything, and nobody's reward need mean anything there. Places where nobody
    knows what is paid are unknown, too, however well the motion is known.
    """
    next_states, uncertainty = model.predict_on(grid)
    assert uncertainty is not None
    bounds = grid.box.low - grid.box.widths, grid.box.high + grid.box.widths
    near, sound = np.empty_like(next_states), np.ones(uncertainty.shape, dtype=np.bool_)

    def tidy(action: int) -> None:
        found = next_states[action]
        np.clip(found, *bounds, out=near[action])
        finite = np.isfinite(found)
        if not finite.all():
            sound[action] = finite.all(axis=1)
            near[action] = np.where(sound[action][:, np.newaxis], near[action], grid.nodes)

    shared(tidy, range(len(next_states)))
    if not sound.all():
        uncertainty = np.where(sound, uncertainty, 1.0)
    unseen = None if task is None else task.unseen(grid.nodes)
    if unseen is not None:
        uncertainty = np.maximum(uncertainty, unseen)
    return Flow.of(grid, Successors(near, uncertainty))
