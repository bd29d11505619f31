"""GP-RMAX: the paper's algorithm box (Section 3.1). The only place that sees model and planner.

    act greedily on the current plan (at random before there is one)
    every K transitions, and earlier at the very start:
        update the model with all transitions             fit_dynamics
        stop once it has stopped changing                 measure_drift, StoppingRule
        plan with it, optimistic where it is unsure       tabulate_held, solve, from the previous Q

Learning that has stopped goes on when a transition surprises: a model can settle on what it has seen of one
side of a symmetric problem and be wrong on the other. Drift is measured per planned step (`hold` steps),
since that is where it does harm.

What is chosen on purpose: before the first plan actions are uniformly random, and so are ties (within
1e-9); always taking the first of equals would starve the others of data. Random numbers come from streams
derived of (seed, purpose, number of transitions), so an agent is a function of its settings, seed and
transitions: nothing else needs to be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeVar

import numpy as np

from optimist.agents.settings import AgentSettings, check_settings
from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.models import GPDynamics, fit_dynamics
from optimist.models.drift import Drift, measure_drift
from optimist.models.gp_dynamics import usable
from optimist.models.regressor import Regressor
from optimist.planning import Flow, Plan, QFunction, Search, require_memory, solve, tabulate_held
from optimist.task import Task
from optimist.transitions import Transition, Transitions

ACTION_STREAM = 0x616374  # purpose number of the random streams that choose actions
TIE = 1e-9
UNKNOWN = 0.5  # uncertainty of a state and action from which trying it is news
NOISE_DEVIATIONS = 4.0  # standard deviations of noise that surprise nobody

T = TypeVar("T")


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
    basis_sizes: tuple[tuple[int, ...], ...]  # per action (or one, joint) and coordinate
    hyperparameters: tuple[tuple[tuple[float, ...], ...], ...]  # the same, logarithms
    settled: bool  # learning stopped here


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that an agent has made of its transitions: enough to go on from, or to act on."""

    n_transitions: int
    model: GPDynamics
    plan: Plan
    drifts: tuple[Drift, ...]
    settled: bool


class GPRMaxAgent:
    """Learns a task from its own transitions."""

    def __init__(self, task: Task, settings: AgentSettings, *, seed: int) -> None:
        check_settings(settings, task)
        self.task = task
        self.settings = settings
        self.seed = seed
        self.grid = planning_grid(task, settings)
        self.transitions: list[Transition] = []
        self.knowledge: Knowledge | None = None
        self.flow: Flow | None = None
        self.q_function: QFunction | None = None
        self._tried_unknown = False  # since the last update
        self._policy: Search | QFunction | None = None

    @property
    def n_transitions(self) -> int:
        """How many transitions it has seen."""
        return len(self.transitions)

    @property
    def settled(self) -> bool:
        """Whether it has stopped learning."""
        return self.knowledge is not None and self.knowledge.settled

    @property
    def policy(self) -> Search | QFunction:
        """What it acts on; a ValueError before the first plan."""
        if self._policy is None:
            first = [*self.settings.first_plans, self.settings.replan_every][0]
            raise ValueError(
                f"The agent must have planned before it can be asked; got {self.n_transitions} transitions, "
                f"and the first plan comes after {first}. Call `learn` first."
            )
        return self._policy

    def act(self, state: FloatArray) -> int:
        """The action to try in `state` [d]: greedy, ties and all before the first plan at random."""
        best = np.arange(self.task.n_actions)
        if self._policy is not None:
            values = self._policy(state[np.newaxis])[0]
            best = np.flatnonzero(values >= values.max() - TIE)
        if best.size == 1:
            return int(best[0])
        return int(np.random.default_rng([self.seed, ACTION_STREAM, self.n_transitions]).choice(best))

    def observe(self, transition: Transition) -> None:
        """Remember what happened; wake up if it should not have."""
        self.transitions.append(transition)
        if self.knowledge is not None:
            self._tried_unknown |= self._unknown(transition)
            if self.knowledge.settled and (self._tried_unknown or self._surprises(transition)):
                self.knowledge = replace(self.knowledge, settled=False, drifts=())

    def _unknown(self, transition: Transition) -> bool:
        """Whether the plan held the action tried for unknown there: what it leads to is news."""
        assert self.flow is not None
        _, uncertainty = self.flow.step(transition.state[np.newaxis], transition.action)
        return bool(uncertainty[0] > UNKNOWN)

    def _surprises(self, transition: Transition) -> bool:
        """Whether a successor is far from its prediction, against spread and noise of displacements."""
        assert self.knowledge is not None
        assert self.flow is not None
        model, box = self.knowledge.model, self.task.box
        regressors = model.regressors[0 if model.settings.joint else transition.action]
        if regressors is None or not self.grid.box.contains(transition.state):
            return False
        predicted, _ = self.flow.step(transition.state[np.newaxis], transition.action)
        missed = np.abs(box.displacement(predicted[0], transition.next_state))
        allowed = np.array(
            [_allowance(regressor, self.settings.stopping.surprise) for regressor in regressors]
        )
        free = usable(box, Transitions.of([transition]))[0]
        return bool((missed > allowed)[free].any())

    @property
    def due(self) -> bool:
        """Whether now is the time to update."""
        done = self.knowledge.n_transitions if self.knowledge is not None else 0
        return not self.settled and self.n_transitions > done and self.settings.due(self.n_transitions)

    def update(self) -> Update:
        """Learn from all transitions and plan anew."""
        previous, settings = self.knowledge, self.settings
        began = perf_counter()
        model = fit_dynamics(
            Transitions.of(self.transitions),
            self.task.box,
            self.task.controls,
            settings.model_settings,
            previous=previous.model if previous is not None else None,
            fit_seed=self.seed,
        )
        drifts: tuple[Drift, ...] = ()
        if previous is not None:
            drifts = (*previous.drifts, self._drift(previous.model, model))
        fitted = perf_counter()
        prediction = model.predict_on(self.grid)
        mean_uncertainty = float(prediction.uncertainty.mean())
        flow = Flow.of(self.grid, prediction)
        del prediction
        predicted = perf_counter()
        start = previous.plan.q_values if previous is not None else None
        plan = self._solve(flow, start)
        settled = settings.stopping_rule.settled(drifts) and not self._tried_unknown
        self._take(Knowledge(self.n_transitions, model, plan, drifts, settled), flow)
        return Update(
            n_transitions=self.n_transitions,
            fit_seconds=fitted - began,
            predict_seconds=predicted - fitted,
            plan_seconds=perf_counter() - predicted,
            sweeps=plan.sweeps,
            residual=plan.residual,
            converged=plan.converged,
            drift=drifts[-1] if drifts else None,
            mean_uncertainty=mean_uncertainty,
            basis_sizes=_of_regressors(model, lambda regressor: len(regressor.posterior.basis)),
            hyperparameters=_of_regressors(model, lambda regressor: tuple(regressor.parameters.tolist())),
            settled=settled,
        )

    def restore(self, transitions: Sequence[Transition], knowledge: Knowledge | None) -> None:
        """Go back to a state the agent was in."""
        self.transitions = list(transitions)
        self.knowledge = self.flow = self.q_function = self._policy = None
        if knowledge is not None:
            self._take(knowledge, Flow.of(self.grid, knowledge.model.predict_on(self.grid)))
            self._tried_unknown = any(map(self._unknown, self.transitions[knowledge.n_transitions :]))

    def _drift(self, before: GPDynamics, after: GPDynamics) -> Drift:
        drift = measure_drift(before, after, self.grid)
        return replace(drift, mean_drift=drift.mean_drift * self.settings.grid.hold)

    def _solve(self, flow: Flow, start: FloatArray | None) -> Plan:
        tables = tabulate_held(flow, self.task, self.settings.grid.hold)
        return solve(tables, start=start, stopping=self.settings.solver_stopping(tables))

    def _take(self, knowledge: Knowledge, flow: Flow) -> None:
        q_function = QFunction(self.grid, knowledge.plan.q_values)
        depth = self.settings.planning.search_depth(self.task.n_actions, self.grid)
        self.knowledge, self.flow, self.q_function = knowledge, flow, q_function
        self._tried_unknown = False
        self._policy = Search(self.task, flow, q_function, depth) if depth else q_function


def planning_grid(task: Task, settings: AgentSettings) -> Grid:
    """The grid to plan on: over the task's box, or what of it the settings' limits leave."""
    chosen, box = settings.grid, task.box
    nodes = chosen.nodes_for(box.n_dims)
    require_memory(nodes, task.n_actions)
    if chosen.limits is not None:
        box = box.narrowed(chosen.limits)
    return Grid.spaced(box, nodes, chosen.spacing or (1.0,) * box.n_dims)


def _allowance(regressor: Regressor, surprise: float) -> float:
    """How far a successor may lie from its prediction, in units of the axis."""
    noise = NOISE_DEVIATIONS * float(regressor.posterior.hyperparameters.noise_variance) ** 0.5
    return float(max(surprise, noise) * regressor.target_scale)


def _of_regressors(model: GPDynamics, what: Callable[[Regressor], T]) -> tuple[tuple[T, ...], ...]:
    return tuple(
        tuple(what(regressor) for regressor in group) if group is not None else ()
        for group in model.regressors
    )
