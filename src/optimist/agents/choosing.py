"""Choosing: what an agent plans on. Layouts take turns, are tried out in its model, and the best is kept."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from optimist.agents.settings import AgentSettings
from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.models import Model
from optimist.models.model import DrawnModel, imagined_by, imagined_if
from optimist.planning import Chooser, Flow, Planned, Planner, Rehearsal, rehearse
from optimist.planning.leaving import Leaving, seen_leaving
from optimist.planning.rehearsal import Expectation, better, from_around, kinds_of
from optimist.steps import Successors
from optimist.task import Task
from optimist.transitions import Transitions

DRAW_STREAM = 0x647277  # purpose number of the random streams that draw possible models
DRAWS = 6


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """The plan that won, what it came to, what was tried."""

    planned: Planned
    rehearsal: Rehearsal
    tried: list[tuple[str, float]]
    predict_seconds: float

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
            "tried": [[name, total if np.isfinite(total) else None] for name, total in self.tried],
        }


@dataclass(frozen=True, eq=False)
class Choosing:
    """How an agent with these settings chooses."""

    task: Task
    settings: AgentSettings
    seed: int
    planner: Planner
    chooser: Chooser

    def choose(
        self, model: Model, seen: Transitions, before: Planned | None, n_updates: int, *, polish: bool
    ) -> Rehearsed:
        """Plan on the layout in use and on a challenger; the one that earns clearly more is kept.

        When the model has settled (`polish`), all kinds are tried once and the best is taken as it is.
        """
        leaving = None if before is None else self.leaving(seen, before.worst)
        predicting = 0.0

        def attempt(layout: Layout, like: Planned | None = None) -> Planned:
            nonlocal predicting
            again = self.planner.replanned(like, layout)
            if again is not None:
                return again
            began = perf_counter()
            flow = flow_of(model, layout.grid)
            predicting += perf_counter() - began
            start = None if before is None else before.spread(layout.grid)
            return self.planner.plan(flow, layout, start=start, leaving=leaving)

        made = attempt(self.chooser.first() if before is None else self.chooser.unpolished(before.layout))
        starts = from_around(self.task, seen.states[seen.begins])
        heard = rehearse(self.task, made.policy, imagined_by(model), starts)
        tried = [(made.layout.name, heard.total)]
        for kind in self._turns(n_updates, polish=polish):
            states = np.concatenate([seen.states, heard.states])
            layout = self.chooser.challenger(kind, made, states)
            if layout is None:
                continue
            other = attempt(layout, made)
            promised = rehearse(self.task, other.policy, imagined_by(model), starts)
            tried.append((other.layout.name, promised.total))
            wins = promised.total > heard.total if polish else better(promised, heard)
            if wins:
                made, heard = other, promised
        return Rehearsed(made, heard, tried, predicting)

    def _turns(self, n_updates: int, *, polish: bool) -> list[str]:
        """Whose turn it is to challenge the layout in use."""
        options, kinds = self.settings.planning, self.chooser.kinds
        if not options.rehearse:
            return []
        if polish:
            return list(self.chooser.last)
        first, count = n_updates * options.challengers, min(options.challengers, len(kinds))
        return [kinds[(first + turn) % len(kinds)] for turn in range(count)]

    def leaving(self, seen: Transitions, worst: float) -> Leaving | None:
        """Through which sides of the box it has been seen to leave; an episode that ended has not left."""
        return seen_leaving(self.task, seen.next_states[~seen.terminated], worst)

    def expect(self, model: Model, rehearsed: Rehearsed, seen: Transitions) -> Expectation:
        """What an episode will earn, with an interval from models that the data leave possible."""
        heard = rehearsed.rehearsal
        n_seen = len(kinds_of(seen.states[seen.begins], self.task.box))  # the others are from around
        total = float(heard.totals[:n_seen].mean())
        if not isinstance(model, DrawnModel):
            return Expectation(total)
        stream = np.random.default_rng([self.seed, DRAW_STREAM, len(seen)])
        imagined = imagined_if(model, stream.standard_normal((DRAWS, self.task.box.n_dims)))
        starts = heard.states[np.arange(DRAWS) % n_seen]
        drawn = rehearse(self.task, rehearsed.planned.policy, imagined, starts).totals
        return Expectation(total, float(drawn.min()), float(drawn.max()))


def flow_of(model: Model, grid: Grid) -> Flow:
    """The model seen through a grid. What it cannot say is unknown; further than a width nothing is out.

    A young model may predict anything, and nobody's reward need mean anything there.
    """
    next_states, uncertainty = model.predict_on(grid)
    assert uncertainty is not None
    low, high, widths = grid.box.low, grid.box.high, grid.box.widths
    sound = np.asarray(np.isfinite(next_states).all(axis=2))
    next_states = np.clip(next_states, low - widths, high + widths)
    if not sound.all():
        nodes = np.broadcast_to(grid.nodes, next_states.shape)
        next_states = np.where(sound[:, :, np.newaxis], next_states, nodes)
        uncertainty = np.where(sound, uncertainty, 1.0)
    return Flow.of(grid, Successors(next_states, uncertainty))
