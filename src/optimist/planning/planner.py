"""Planner: tabulate, solve, make a policy. One assembly, for agents and for known dynamics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optimist.arrays import FloatArray
from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.planning.backups import BackupName
from optimist.planning.between import Between, sight
from optimist.planning.blur import Blur
from optimist.planning.flow import Flow
from optimist.planning.leaving import Leaving
from optimist.planning.memory import require_memory
from optimist.planning.policy import Lookahead, QFunction, require_affordable
from optimist.planning.solve import DEFAULT_LIMITS, Limits, OnSweep, Plan, solve
from optimist.planning.tables import tabulate
from optimist.shown import block, heat, over_two_axes
from optimist.steps import Dynamics, Step
from optimist.task import Task


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan, and how to act on it."""

    task: Task
    layout: Layout
    step: Step
    plan: Plan
    q_function: QFunction
    policy: QFunction | Lookahead
    leaving: Leaving | None = None
    n_clipped: int = 0  # successors outside the planned box when it was tabulated
    mean_hold: float = 1.0  # steps that one planned step stood for
    noise: FloatArray | None = None  # [d] or [n_nodes, d], standard deviation of where a step leads

    @property
    def grid(self) -> Grid:
        """Where it was planned."""
        return self.layout.grid

    def _repr_html_(self) -> str:
        rows = {"layout": self.layout.name, "nodes": " x ".join(map(str, self.grid.shape))}
        box = self.grid.box
        points, shape = over_two_axes(box.low, box.high, (box.low + box.high) / 2.0)
        picture = heat(self.q_function.value(points).reshape(shape), "value over the first axes")
        return block("Plan", rows | self.plan.told() | {"nodes": rows["nodes"]}, picture)

    @property
    def worst(self) -> float:
        """What the worst place is worth."""
        return float(self.plan.q_values.max(axis=1).min())

    def spread(self, grid: Grid) -> FloatArray:
        """Its Q-values at the nodes of another grid over the same box.  [n_nodes, n_actions]"""
        if grid is self.grid:
            return self.plan.q_values
        return np.ascontiguousarray(self.grid.spread(np.ascontiguousarray(self.plan.q_values.T), grid).T)


@dataclass(frozen=True, eq=False)
class Planner:
    """How a task is planned for, whatever predicts its steps, on whatever layout."""

    task: Task
    backup: str = BackupName.V_EXACT
    limits: Limits = DEFAULT_LIMITS

    def plan(
        self,
        step: Step,
        layout: Layout,
        *,
        start: FloatArray | None = None,
        through: Step | None = None,
        leaving: Leaving | None = None,
        optimistic: bool = True,
        on_sweep: OnSweep | None = None,
        directly: Dynamics | None = None,
        noise: FloatArray | None = None,
    ) -> Planned:
        """Plan through `step`, from the Q-values of an earlier plan if there was one.

        `through` is what acting looks ahead through, where that is something quicker than `step`. Not
        `optimistic`, what is uncertain counts as known, in the plan and in acting on it. `directly` predicts
        controls that are not listed, where interpolating between those that are would not do. `noise` [d] or
        [n_nodes, d] is the standard deviation of where a step leads: with it, all is planned in expectation.
        """
        if isinstance(step, Flow):
            step.require_fits(self.task)
        self.require_fits(layout)
        tables = tabulate(
            layout.grid,
            self.task,
            step,
            holding=layout.holding,
            leaving=leaving,
            optimistic=optimistic,
            noise=noise,
        )
        plan = solve(tables, backup=self.backup, start=start, limits=self.limits, on_sweep=on_sweep)
        made = self.acting_on(
            plan,
            through or step,
            layout,
            leaving=leaving,
            optimistic=optimistic,
            directly=directly,
            noise=noise,
        )
        return replace(made, step=step, n_clipped=tables.n_clipped, mean_hold=tables.mean_hold)

    def acting_on(
        self,
        plan: Plan,
        step: Step,
        layout: Layout,
        *,
        leaving: Leaving | None = None,
        optimistic: bool = True,
        directly: Dynamics | None = None,
        noise: FloatArray | None = None,
    ) -> Planned:
        """A plan that was made before, ready to act on."""
        q_function, depth = QFunction(layout.grid, plan.q_values), layout.depth
        depth = sight(self.task, noisy=noise is not None) if depth is None else depth
        policy: QFunction | Lookahead = q_function
        blur = Blur.of(layout.grid, noise) if depth else None
        costs = None if blur is None else blur.cost(plan.q_values.max(axis=1))
        if depth and self.task.control_box is not None:
            policy = Between(self.task, step, q_function, depth, optimistic, leaving, costs, directly)
        elif depth:
            policy = Lookahead(self.task, step, q_function, depth, optimistic, leaving, costs)
        return Planned(self.task, layout, step, plan, q_function, policy, leaving, noise=noise)

    def require_fits(self, layout: Layout) -> None:
        """Raise ValueError when a layout is too large, or none for this task."""
        require_memory(layout.grid.shape, self.task.n_actions)
        layout.holding.require(self.task)
        if layout.depth:
            require_affordable(self.task.n_actions, layout.depth)
