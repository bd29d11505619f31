"""The best possible performance: planning with the true dynamics (the paper's Section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.models import TrueDynamics
from optimist.planning import (
    Certificate,
    Lookahead,
    Plan,
    Policy,
    QFunction,
    Rollouts,
    Stopping,
    certify,
    hold,
    require_memory,
    roll_out,
    solve,
    tabulate,
)
from optimist.planning.q_function import require_searchable
from optimist.planning.solve import DEFAULT_STOPPING, Listener
from optimist.systems import Recipe, System


@dataclass(frozen=True, eq=False)
class OfflinePlan:
    """A plan made with the true dynamics, ready to act."""

    system: System
    recipe: Recipe
    grid: Grid
    plan: Plan
    q_function: QFunction
    policy: Policy
    n_clipped: int  # successors outside the planned box
    seconds: float  # predicting, tabulating and solving

    def roll_out(self, starts: FloatArray) -> Rollouts:
        """Episodes of the system itself under the plan's policy."""
        return roll_out(self.system.task, self.system.dynamics, self.policy, starts)

    def certify(self) -> Certificate:
        """The residual, off the nodes, of the equation that was solved (controls held and all)."""
        task, dynamics = hold(self.system.task, self.system.dynamics, self.recipe.hold)
        return certify(self.q_function, task, dynamics)


def plan_offline(
    system: System,
    recipe: Recipe,
    *,
    backup: str = "v-exact",
    stopping: Stopping = DEFAULT_STOPPING,
    listener: Listener | None = None,
) -> OfflinePlan:
    """Plan `system` as `recipe` says."""
    began = perf_counter()
    task, dynamics = hold(system.task, system.dynamics, recipe.hold)
    require_memory(recipe.nodes, task.n_actions)
    if recipe.lookahead > 0:
        require_searchable(task.n_actions, recipe.lookahead)
    box = system.task.box if recipe.limits is None else system.task.box.narrowed(recipe.limits)
    grid = Grid.spaced(box, recipe.nodes, recipe.spacing)
    prediction = TrueDynamics(dynamics, task.controls).predict_on(grid)
    tables = tabulate(grid, task, prediction)
    del prediction
    plan = solve(tables, backup=backup, stopping=stopping, listener=listener)
    q_function = QFunction(grid, plan.q_values)
    policy: Policy = q_function
    if recipe.lookahead > 0:
        policy = Lookahead(system.task, system.dynamics, q_function, recipe.lookahead)
    seconds = perf_counter() - began
    return OfflinePlan(system, recipe, grid, plan, q_function, policy, tables.n_clipped, seconds)
