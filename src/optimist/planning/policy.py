"""Acting on a plan: greedily on the interpolated Q-values, or by looking ahead through a step.

Interpolated Q-values are blurred by a cell in every direction, and near a decision that is what decides.
Trying all short sequences of actions, and valuing their ends by the plan, looks past the blur. Through a flow
the whole tree takes microseconds, so it can be afforded always: see `affordable_depth`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from optimist.arrays import Actions, FloatArray, IntArray
from optimist.compiled.interpolation import interpolate_many
from optimist.compiled.search import value_backwards
from optimist.grid import Grid
from optimist.planning.flow import Flow
from optimist.planning.leaving import Leaving
from optimist.planning.tables import require_successors
from optimist.steps import Step
from optimist.task import Task

# Sequences tried at one decision: 10 steps with 2 actions, 6 with 3, 4 with 5, 3 with 9. The blur of an
# interpolated plan is a cell wide, and it pays to look far past it.
MOST_LEAVES = 1024
FEW, MOST_DECIDED = 64, 2**16  # states that are asked for together, and in all, to be remembered
BLOCK = 2**18  # tree nodes held at a time; more sequences than that are never tried


class Policy(Protocol):
    """Chooses actions."""

    def greedy(self, states: FloatArray) -> Actions:
        """The best action in each of `states` [n, d]; the first of equals.  [n]"""
        ...


# Acting in some episodes: states [n, d], and which of the episodes each belongs to [n]
Acting = Callable[[FloatArray, IntArray], Actions]


@runtime_checkable
class Preparing(Policy, Protocol):
    """A policy that prepares for an episode when it sees where it begins."""

    def begin(self, starts: FloatArray) -> Acting:
        """How to act in episodes from `starts` [n, d]."""
        ...


def begun(policy: Policy, starts: FloatArray) -> Acting:
    """How `policy` acts in episodes from `starts` [n, d]."""
    if isinstance(policy, Preparing):
        return policy.begin(starts)
    return lambda states, _episodes: policy.greedy(states)


@dataclass(frozen=True, eq=False)
class QFunction:
    """Q-values at the nodes, interpolated in between. Outside the box: as at its edge."""

    grid: Grid
    q_values: FloatArray  # [n_nodes, n_actions]

    def __post_init__(self) -> None:
        if self.q_values.ndim != 2 or len(self.q_values) != self.grid.n_nodes:
            raise ValueError(
                f"`q_values` must have one row per node ({self.grid.n_nodes}); "
                f"got shape {self.q_values.shape}."
            )
        if not np.isfinite(self.q_values).all():
            raise ValueError("`q_values` must be finite; got NaN or infinity.")

    def __call__(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d].  [n, n_actions]"""
        return _interpolated(self.grid, self._padded, states)

    def greedy(self, states: FloatArray) -> Actions:
        """The action with the highest Q-value; the first of equals.  [n]"""
        return np.asarray(self(states).argmax(axis=1))

    def value(self, states: FloatArray) -> FloatArray:
        """The best value at the nodes, interpolated.  [n]"""
        return _interpolated(self.grid, self.padded_values[:, np.newaxis], states)[:, 0]

    @cached_property
    def _padded(self) -> FloatArray:
        return self.grid.pad(self.q_values)

    @cached_property
    def padded_values(self) -> FloatArray:
        """The best value of every node, padded.  [n_padded]"""
        return self.grid.pad(self.q_values.max(axis=1))


class Foresight(NamedTuple):
    """What was seen at a decision: the values of the actions, and where each leads next."""

    q_values: FloatArray  # [n, n_actions]
    next_states: FloatArray  # [n, n_actions, d]
    uncertainty: FloatArray  # [n, n_actions]


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Q(x, a) by trying all sequences of `depth` actions: (1 - c) (r + discount max ...) + c V_MAX each.

    Successors and uncertainty are the step's; the plan values the ends. Costs n_actions^depth predictions per
    decision; depth 1 already spares one interpolation.
    """

    task: Task
    step: Step
    q_function: QFunction
    depth: int = 1
    optimistic: bool = True  # False: what is uncertain counts as known
    leaving: Leaving | None = None  # what lies beyond open sides
    noise_costs: FloatArray | None = None  # [n_padded], of being there with noise instead of exactly there
    _decided: dict[bytes, int] = field(default_factory=dict, init=False, repr=False)  # by the state
    _others: dict[int, Lookahead] = field(default_factory=dict, init=False, repr=False)  # by their depth

    def __post_init__(self) -> None:
        require_affordable(self.task.n_actions, self.depth)
        if isinstance(self.step, Flow):
            self.step.require_fits(self.task)
            if self.q_function.grid is not self.step.grid:
                raise ValueError("The Q-values must lie on the grid of the flow; got two grids.")

    def __call__(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d].  [n, n_actions]"""
        return self.foresee(states).q_values

    def greedy(self, states: FloatArray) -> Actions:
        """The action with the highest value; the first of equals.  [n]

        Rehearsals go the same way again and again: what was decided for a few states is remembered.
        """
        states = self.q_function.grid.checked(states)
        if len(states) > FEW:
            return np.asarray(self(states).argmax(axis=1))
        keys = [state.tobytes() for state in states]
        actions = [self._decided.get(key) for key in keys]
        new = [row for row, action in enumerate(actions) if action is None]
        if new:
            if len(self._decided) > MOST_DECIDED:
                self._decided.clear()
            found = self(states if len(new) == len(keys) else states[new]).argmax(axis=1)
            for row, action in zip(new, found.tolist(), strict=True):
                actions[row] = self._decided[keys[row]] = action
        return np.array(actions, dtype=np.intp)

    def looking(self, depth: int) -> Lookahead:
        """The same with another sight, always the same one."""
        if depth == self.depth:
            return self
        if depth not in self._others:
            self._others[depth] = replace(self, depth=depth)
        return self._others[depth]

    def foresee(self, states: FloatArray) -> Foresight:
        """The same with the first step of every sequence."""
        states = self.q_function.grid.checked(states)
        size = max(1, BLOCK // self.n_tree)
        if len(states) <= size:
            return self._search(states)
        blocks = [self._search(states[first : first + size]) for first in range(0, len(states), size)]
        return Foresight(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _search(self, roots: FloatArray) -> Foresight:
        task, n_dims = self.task, roots.shape[1]
        shape = (len(roots), self.n_tree)
        parents, states = np.empty((*shape, n_dims)), np.empty((*shape, n_dims))
        unsure, futures = np.zeros(shape), np.empty((len(roots), task.n_actions**self.depth))
        tree = parents, states, unsure, futures
        if isinstance(self.step, Flow):
            self.step.grow(roots, self.depth, self.q_function.padded_values, tree)
        else:
            self.grow(roots, tree)
        if self.leaving is not None:
            leaves = states[:, -futures.shape[1] :].reshape(-1, n_dims)
            last = np.tile(task.controls, (len(leaves) // task.n_actions, 1))
            valued = self.leaving.valued(self.q_function.grid, leaves, last, futures.reshape(-1))
            futures[:] = valued.reshape(futures.shape)
            faded = 1.0 - self.leaving.shares(self.q_function.grid, parents.reshape(-1, n_dims))
            unsure *= faded.reshape(shape)  # what is unknown out there promises nothing
        controls = self.controls if len(roots) == 1 else np.tile(self.controls, (len(roots), 1))
        reached = states.reshape(-1, n_dims)
        rewards = task.rewards(parents.reshape(-1, n_dims), controls, reached).reshape(shape)
        ended = task.terminal(reached).reshape(shape)
        if self.noise_costs is not None:
            rewards = rewards + ~ended * self.costs_at(reached).reshape(shape)
        q_values, first = np.empty((len(roots), task.n_actions)), slice(task.n_actions)
        numbers = task.discount, task.optimistic_value, task.n_actions
        counted = unsure if self.optimistic else np.zeros_like(unsure)
        value_backwards(rewards, ended, counted, futures, *numbers, q_values)
        return Foresight(q_values, states[:, first], unsure[:, first])

    def costs_at(self, states: FloatArray) -> FloatArray:
        """What noise costs a step that leads to `states` [n, d]: E[V(z + e)] - V(z), discounted.  [n]

        At every step that is looked ahead the plan says what going astray there would come to.
        """
        assert self.noise_costs is not None
        grid = self.q_function.grid
        return self.task.discount * _interpolated(grid, self.noise_costs[:, np.newaxis], states)[:, 0]

    def grow(self, roots: FloatArray, tree: tuple[FloatArray, ...]) -> None:
        """The tree that `Flow.grow` grows, through any step."""
        parents, states, unsure, futures = tree
        n_actions, n_dims = self.task.n_actions, roots.shape[1]
        level, first = roots[:, np.newaxis], 0  # [n, count, d]
        for _ in range(self.depth):
            last = first + level.shape[1] * n_actions
            parents[:, first:last] = np.repeat(level, n_actions, axis=1)
            for action in range(n_actions):
                before = level.reshape(-1, n_dims)
                next_states, uncertainty = require_successors(self.step(before, action), before)
                states[:, first + action : last : n_actions] = next_states.reshape(level.shape)
                if uncertainty is not None:
                    unsure[:, first + action : last : n_actions] = uncertainty.reshape(level.shape[:2])
            level, first = states[:, first:last], last
        futures[:] = self.q_function.value(level.reshape(-1, n_dims)).reshape(futures.shape)

    @cached_property
    def n_tree(self) -> int:
        """Nodes of a tree."""
        return sum(self.task.n_actions**level for level in range(1, self.depth + 1))

    @cached_property
    def controls(self) -> FloatArray:
        """The control that leads to each node of a tree.  [n_tree, k]"""
        return np.tile(self.task.controls, (self.n_tree // self.task.n_actions, 1))


def affordable_depth(n_actions: int) -> int:
    """How many steps to look ahead; at least one."""
    return max(1, int(np.log(MOST_LEAVES) / np.log(max(n_actions, 2)) + 1e-9))


def require_affordable(n_actions: int, depth: int) -> None:
    """Raise ValueError when looking `depth` steps ahead is impossible or would never end."""
    deepest = int(np.log(BLOCK) / np.log(max(n_actions, 2)) + 1e-9)
    if not 1 <= depth <= deepest:
        raise ValueError(
            f"The lookahead must be from 1 to {deepest} steps with {n_actions} actions, since it tries all "
            f"sequences; got {depth}."
        )


def _interpolated(grid: Grid, padded: FloatArray, states: FloatArray) -> FloatArray:
    cells, fractions, _ = grid.locate(states)
    values = np.empty((len(cells), padded.shape[1]))
    interpolate_many(padded, cells, fractions, tuple(grid.padded_strides.tolist()), values)
    return values
