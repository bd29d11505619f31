"""Chooser: which layouts a planner tries. Rehearsal says which of them is kept.

Nobody knows beforehand where the nodes of a stranger's system belong, whether its controls are best held,
how far to look ahead. So a few different layouts take turns as challengers of the one in use; each is made of
what is known by then: the states that were visited or rehearsed, the plan's own shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optimist.arrays import FloatArray
from optimist.discretisation import ONE_STEP, Discretisation, Layout
from optimist.planning.memory import require_memory
from optimist.planning.placement import CLOSE, LOOSE, allot, place, resized, roughness
from optimist.planning.planner import Planned
from optimist.task import Task

POLISH = 3.0  # times the nodes, for a last polish
POLISHED = "polished"  # a kind, too, but never in turn


@dataclass(frozen=True, eq=False)
class Chooser:
    """The layouts that settings leave open, for one task."""

    task: Task
    discretisation: Discretisation
    depth: int | None = None

    def first(self) -> Layout:
        """Before anything is known."""
        require_memory(self.discretisation.nodes_for(self.task.box.n_dims), self.task.n_actions)
        given = self.discretisation
        placement = "uniform" if given.spacing is None or set(given.spacing) == {1.0} else "spaced"
        grid, holding = given.grid_over(self.task.box), given.holding_for(self.task)
        return Layout(grid, holding, self.depth, placement)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The challengers, in the order of their turns."""
        uniform = ("uniform",) if self.placed else ()
        single = ("single steps",) if self.discretisation.hold is None else ()
        return (*self.placed, *uniform, *single)

    @property
    def placed(self) -> tuple[str, ...]:
        """Those that place nodes by states."""
        if self.discretisation.spacing is not None:
            return ()
        need = ("placed by need",) if self.discretisation.nodes is None else ()
        return ("closely placed", "loosely placed", *need)

    @property
    def last(self) -> tuple[str, ...]:
        """The others, and those that are tried only once the model has settled."""
        others = tuple(kind for kind in self.kinds if kind not in self.placed)
        return (*others, POLISHED) if self.kinds else ()

    def challenger(self, kind: str, kept: Planned, states: FloatArray) -> Layout | None:
        """The layout in use but for one thing; nodes are placed by `states` [n, d] that were visited.

        None where there is no such layout.
        """
        layout, first = kept.layout, self.first()
        if kind == "single steps":  # or back
            return replace(layout, holding=ONE_STEP if layout.holding != ONE_STEP else first.holding)
        if kind == POLISHED:
            return self._polished(layout)
        grid = first.grid
        if kind == "placed by need":
            weights = roughness(layout.grid, kept.plan.q_values.max(axis=1))
            counts = allot(np.sqrt(weights / weights.mean()), grid.n_nodes, least=min(5, *grid.shape))
            grid = place(grid.box, counts, states, 0.5)
        elif kind != "uniform":
            share, smoothing = (0.8, CLOSE) if kind == "closely placed" else (0.75, LOOSE)
            grid = place(grid.box, grid.shape, states, share, smoothing=smoothing)
        elif layout.placement == "uniform":
            return None
        return replace(layout, grid=grid, placement=kind, polished=False)

    def _polished(self, layout: Layout) -> Layout | None:
        """The same with more nodes, for when all is learned; None where their number is fixed."""
        if self.discretisation.nodes is not None or layout.polished:
            return None
        factor = POLISH ** (1.0 / layout.grid.n_dims)
        counts = [round(count * factor) for count in layout.grid.shape]
        return replace(layout, grid=resized(layout.grid, counts), polished=True)

    def unpolished(self, layout: Layout) -> Layout:
        """Back to the budget, once there is something to learn again."""
        if not layout.polished:
            return layout
        factor = POLISH ** (-1.0 / layout.grid.n_dims)
        counts = [max(2, round(count * factor)) for count in layout.grid.shape]
        return replace(layout, grid=resized(layout.grid, counts), polished=False)
