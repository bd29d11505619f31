"""Planner: tabulate, solve, make a policy. One assembly, for agents and for known dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

from optimist.arrays import FloatArray
from optimist.discretisation import Discretisation
from optimist.grid import Grid
from optimist.planning.backups import BackupName
from optimist.planning.certificate import Certificate, certify
from optimist.planning.flow import Flow
from optimist.planning.memory import require_memory
from optimist.planning.policy import Lookahead, QFunction, affordable_depth, require_affordable
from optimist.planning.rollout import Rollouts, roll_out
from optimist.planning.solve import DEFAULT_LIMITS, Limits, OnSweep, Plan, solve
from optimist.planning.tables import tabulate
from optimist.steps import Dynamics, Step, known
from optimist.task import Task

DEFAULT_DISCRETISATION = Discretisation()


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan, and how to act on it."""

    step: Step
    plan: Plan
    q_function: QFunction
    policy: QFunction | Lookahead
    n_clipped: int  # successors outside the planned box when it was tabulated


@dataclass(frozen=True, eq=False)
class Planner:
    """How a task is planned for, whatever predicts its steps."""

    task: Task
    discretisation: Discretisation = DEFAULT_DISCRETISATION
    depth: int | None = None  # steps looked ahead when acting; None: affordable; 0: act on Q-values
    backup: str = BackupName.V_EXACT
    limits: Limits = DEFAULT_LIMITS

    def __post_init__(self) -> None:
        require_memory(self.discretisation.nodes_for(self.task.box.n_dims), self.task.n_actions)
        if self.depth:
            require_affordable(self.task.n_actions, self.depth)
        if self.discretisation.hold > self.task.max_steps:
            raise ValueError(
                f"`grid.hold` must be at most {self.task.max_steps}; got {self.discretisation.hold}."
            )

    @cached_property
    def grid(self) -> Grid:
        """Where it plans."""
        return self.discretisation.grid_over(self.task.box)

    def plan(
        self, step: Step, *, start: FloatArray | None = None, on_sweep: OnSweep | None = None
    ) -> Planned:
        """Plan through `step`, from the Q-values of an earlier plan if there was one."""
        if isinstance(step, Flow):
            step.require_fits(self.task)
        tables = tabulate(self.grid, self.task, step, hold=self.discretisation.hold)
        plan = solve(tables, backup=self.backup, start=start, limits=self.limits, on_sweep=on_sweep)
        return self.acting_on(plan, step, n_clipped=tables.n_clipped)

    def acting_on(self, plan: Plan, step: Step, *, n_clipped: int = 0) -> Planned:
        """A plan that was made before, ready to act on."""
        q_function = QFunction(self.grid, plan.q_values)
        depth = affordable_depth(self.task.n_actions, self.grid) if self.depth is None else self.depth
        policy = Lookahead(self.task, step, q_function, depth) if depth else q_function
        return Planned(step, plan, q_function, policy, n_clipped)


@dataclass(frozen=True, eq=False)
class KnownPlan(Planned):
    """A plan made with known dynamics: the best possible performance (the paper's Section 4.2)."""

    planner: Planner
    dynamics: Dynamics
    seconds: float  # predicting, tabulating and solving

    @property
    def grid(self) -> Grid:
        """Where it was planned."""
        return self.planner.grid

    def roll_out(self, starts: FloatArray) -> Rollouts:
        """Episodes of the system itself under the plan's policy."""
        return roll_out(self.planner.task, self.dynamics, self.policy, starts)

    def certify(self) -> Certificate:
        """The residual, off the nodes, of the equation that was solved (controls held and all)."""
        hold = self.planner.discretisation.hold
        return certify(self.q_function, self.planner.task, self.step, hold=hold)


def plan(
    task: Task,
    dynamics: Dynamics,
    discretisation: Discretisation = DEFAULT_DISCRETISATION,
    *,
    depth: int | None = None,
    backup: str = BackupName.V_EXACT,
    limits: Limits = DEFAULT_LIMITS,
    on_sweep: OnSweep | None = None,
) -> KnownPlan:
    """Plan a task whose dynamics are known.

    Args:
        task: what is wanted.
        dynamics: (states [n, d], controls [n, k] or [1, k]) -> next states [n, d].
        discretisation: nodes, spacing, limits and hold; by default a uniform grid that suits the dimension.
        depth: steps looked ahead when acting; by default what is affordable, 0 acts on interpolated Q-values.
        backup: which Bellman equation; see `optimist.planning.backups`.
        limits: tolerance and most sweeps of the solver.
        on_sweep: called after every sweep with their number and the largest change.

    """
    began = perf_counter()
    planner = Planner(task, discretisation, depth, backup, limits)
    made = planner.plan(known(dynamics, task.controls), on_sweep=on_sweep)
    parts = made.step, made.plan, made.q_function, made.policy, made.n_clipped
    return KnownPlan(*parts, planner, dynamics, perf_counter() - began)
