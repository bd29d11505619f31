"""Acting on a plan: greedily on the interpolated Q-values, or by looking ahead through a step.

Interpolated Q-values are blurred by a cell in every direction, and near a decision that is what decides.
Trying all short sequences of actions, and valuing their ends by the plan, looks past the blur. Through a flow
the whole tree takes microseconds, so it can be afforded always: see `affordable_depth`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from optimist.arrays import Actions, BoolArray, FloatArray, IntArray
from optimist.compiled.interpolation import interpolate_many
from optimist.compiled.search import value_each
from optimist.grid import Grid
from optimist.planning.flow import Flow, Trees
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

    def begin(self, starts: FloatArray, *, imagining: bool = False) -> Acting:
        """How to act in episodes from `starts` [n, d]; those that are imagined may be several from each."""
        ...


def begun(policy: Policy, starts: FloatArray, *, imagining: bool = False) -> Acting:
    """How `policy` acts in episodes from `starts` [n, d]."""
    if isinstance(policy, Preparing):
        return policy.begin(starts, imagining=imagining)
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
    _applied: list[FloatArray] = field(default_factory=lambda: [np.empty((0, 0))], init=False, repr=False)
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
        if len(states) > FEW:
            return np.asarray(self(states).argmax(axis=1))
        return decide([(self, states)])[0]

    @property
    def kin(self) -> tuple[object, ...]:
        """Whoever has the same, now, differs in the sight alone."""
        parts = self.task, self.step, self.q_function, self.leaving, self.noise_costs
        return (type(self), self.optimistic, *map(id, parts))

    def looking(self, depth: int) -> Lookahead:
        """The same with another sight, always the same one."""
        if depth == self.depth:
            return self
        if depth not in self._others:
            self._others[depth] = replace(self, depth=depth)
        return self._others[depth]

    def foresee(self, states: FloatArray) -> Foresight:
        """The same with the first step of every sequence."""
        return self._foreseen(self.q_function.grid.checked(states))

    def _foreseen(self, states: FloatArray) -> Foresight:
        """The same of states that were checked."""
        size = max(1, BLOCK // self.n_tree)
        if len(states) <= size:
            return self._search(states)
        blocks = [self._search(states[first : first + size]) for first in range(0, len(states), size)]
        return Foresight(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _search(self, roots: FloatArray) -> Foresight:
        return search([(self, roots)])[0]

    def costs_at(self, states: FloatArray) -> FloatArray:
        """What noise costs who is in `states` [n, d]: E[V(z + e)] - V(z).  [n]

        At every step that is looked ahead the plan says what going astray there would come to; of the last
        ones their value says it.
        """
        assert self.noise_costs is not None
        return _interpolated(self.q_function.grid, self.noise_costs[:, np.newaxis], states)[:, 0]

    @cached_property
    def leaf_values(self) -> FloatArray:
        """What being at a node is worth where nobody looks further, noise and all, padded.  [n_padded]"""
        values = self.q_function.padded_values
        return values if self.noise_costs is None else values + self.noise_costs

    def ends(self, states: FloatArray) -> FloatArray:
        """The same at `states` [n, d].  [n]"""
        return _interpolated(self.q_function.grid, self.leaf_values[:, np.newaxis], states)[:, 0]

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
        futures[:] = self.ends(level.reshape(-1, n_dims)).reshape(futures.shape)

    @cached_property
    def n_tree(self) -> int:
        """Nodes of a tree."""
        return _n_tree(self.task.n_actions, self.depth)

    @property
    def n_dims(self) -> int:
        """Coordinates of a state."""
        return self.task.box.n_dims

    def controls(self, count: int) -> FloatArray:
        """The control that leads to each of so many nodes of trees, one behind the other.  [count, k]"""
        known = self._applied[0]
        if len(known) < count:
            known = self._applied[0] = np.tile(self.task.controls, (-(-count // self.task.n_actions), 1))
        return known[:count]


class _Recalled:
    """What a sight remembers of some states, and what it does not."""

    def __init__(self, sight: Lookahead, states: FloatArray) -> None:
        whole, width = states.tobytes(), states.itemsize * states.shape[1]
        self.sight, self.keys = sight, [whole[at : at + width] for at in range(0, len(whole), width)]
        self.actions = list(map(sight._decided.get, self.keys))
        self.rows = [row for row, action in enumerate(self.actions) if action is None]
        self.new = states if len(self.rows) == len(states) else states[self.rows]

    def add(self, q_values: FloatArray) -> None:
        """Those of the new states [n, n_actions]."""
        decided = self.sight._decided
        if len(decided) > MOST_DECIDED:
            decided.clear()
        for row, action in zip(self.rows, q_values.argmax(axis=1).tolist(), strict=True):
            self.actions[row] = decided[self.keys[row]] = action


def decide(asked: Sequence[tuple[Lookahead, FloatArray]]) -> list[IntArray]:
    """The best actions in states [n, d], of sights that are `kin`, each with its states.

    What was not decided before they search together: what it costs to ask for rewards is paid once.
    """
    recalled = [_Recalled(sight, sight.q_function.grid.checked(states)) for sight, states in asked]
    new = [one for one in recalled if one.rows]
    if len(new) > 1 and sum(len(one.rows) * one.sight.n_tree for one in new) <= BLOCK:
        seen = search([(one.sight, one.new) for one in new])
        for one, found in zip(new, seen, strict=True):
            one.add(found.q_values)
    else:
        for one in new:
            one.add(one.sight._foreseen(one.new).q_values)
    return [np.array(one.actions, dtype=np.intp) for one in recalled]


def search(asked: Sequence[tuple[Lookahead, FloatArray]]) -> list[Foresight]:
    """What sights that are `kin` see, each from its roots [n, d]."""
    first = asked[0][0]
    task, grid, n_actions, n_dims = first.task, first.q_function.grid, first.task.n_actions, first.n_dims
    sights = tuple((sight.depth, len(roots)) for sight, roots in asked)
    forest = _forest(n_actions, sights)
    roots = asked[0][1] if len(asked) == 1 else np.concatenate([roots for _, roots in asked])
    trees, rows, ends, size = Trees(roots, *forest.trees), forest.rows, forest.ends, forest.size
    parents, states = np.empty((size, n_dims)), np.empty((size, n_dims))
    unsure, futures = np.zeros(size), np.empty(forest.n_leaves)
    charged = None if first.noise_costs is None else np.zeros(size)
    if isinstance(first.step, Flow):
        costs = () if charged is None else ((first.noise_costs, charged),)
        first.step.grow(trees, first.leaf_values, (parents, states, unsure, futures), *costs)
    else:
        for (sight, roots), mine, last in zip(asked, rows, ends, strict=True):
            shape, n_leaves = (len(roots), sight.n_tree), n_actions**sight.depth
            places = (array[mine].reshape(*shape, n_dims) for array in (parents, states))
            sight.grow(
                roots, (*places, unsure[mine].reshape(shape), futures[last].reshape(len(roots), n_leaves))
            )
    if first.leaving is not None:
        for (sight, roots), mine, last in zip(asked, rows, ends, strict=True):
            # each alone: where a reward cannot be said, none of its batch is
            worth, n_inner = futures[last], sight.n_tree - n_actions**sight.depth
            reached = states[mine].reshape(len(roots), sight.n_tree, n_dims)[:, n_inner:].reshape(-1, n_dims)
            last_controls = np.tile(task.controls, (worth.size // n_actions, 1))
            worth[:] = first.leaving.valued(grid, reached, last_controls, worth)
        unsure *= 1.0 - first.leaving.shares(grid, parents)  # what is unknown out there promises nothing
    led = task.caught(parents, states)
    rewards, ended = task.rewards(parents, first.controls(size), led), task.terminal(led)
    if charged is not None:
        if not isinstance(first.step, Flow):
            inner = _inner(n_actions, sights)
            charged[inner] = first.costs_at(states[inner])
        rewards = rewards + task.discount * (~ended * charged)
    counted = unsure if first.optimistic else np.zeros_like(unsure)
    q_values = np.empty((len(trees.roots), n_actions))
    numbers = task.discount, task.optimistic_value, n_actions
    value_each(rewards, ended, counted, futures, trees.starts, trees.leaf_starts, *numbers, q_values)
    seen, done = [], 0
    for (sight, roots), mine in zip(asked, rows, strict=True):
        shape, done = (len(roots), sight.n_tree), done + len(roots)
        there, doubts = states[mine].reshape(*shape, n_dims), unsure[mine].reshape(shape)
        q = q_values[done - len(roots) : done]
        seen.append(Foresight(q, there[:, :n_actions], doubts[:, :n_actions]))
    return seen


class _Forest(NamedTuple):
    """Where the trees of some sights lie, one behind the other."""

    trees: tuple[IntArray, IntArray, IntArray]  # as `Trees` has them but for their roots
    rows: list[slice]  # of each sight
    ends: list[slice]  # the same of leaves
    size: int
    n_leaves: int


@lru_cache(maxsize=1024)
def _forest(n_actions: int, sights: tuple[tuple[int, int], ...]) -> _Forest:
    """Of `sights`, each so deep, from so many roots. Rehearsals ask for the same again and again."""
    depths = np.repeat([depth for depth, _ in sights], [count for _, count in sights])
    leaves = n_actions**depths
    sizes = np.array([_n_tree(n_actions, depth) for depth in depths], dtype=np.intp)
    starts, leaf_starts = (np.append(0, np.cumsum(counts)).astype(np.intp) for counts in (sizes, leaves))
    parts = list(pairwise(accumulate((count for _, count in sights), initial=0)))
    rows, ends = ([slice(int(of[a]), int(of[b])) for a, b in parts] for of in (starts, leaf_starts))
    trees = depths.astype(np.intp), starts, leaf_starts
    return _Forest(trees, rows, ends, int(starts[-1]), int(leaf_starts[-1]))


@lru_cache(maxsize=32)
def _inner(n_actions: int, sights: tuple[tuple[int, int], ...]) -> BoolArray:
    """Which nodes of the same trees are no leaves: in each, these lie last.  [size]"""
    trees = [np.arange(_n_tree(n_actions, depth)) < _n_tree(n_actions, depth - 1) for depth, _ in sights]
    return np.concatenate([np.tile(tree, count) for tree, (_, count) in zip(trees, sights, strict=True)])


def _n_tree(n_actions: int, depth: int) -> int:
    """Nodes of a tree so deep."""
    return sum(n_actions**level for level in range(1, depth + 1))


def affordable_depth(n_actions: int) -> int:
    """How many steps to look ahead; at least one."""
    return max(1, int(np.log(MOST_LEAVES) / np.log(max(n_actions, 2)) + 1e-9))


def require_affordable(n_actions: int, depth: int) -> None:
    """Raise ValueError when looking `depth` steps ahead is impossible or would never end."""
    deepest = int(np.log(BLOCK) / np.log(max(n_actions, 2)) + 1e-9)
    if not 1 <= depth <= deepest:
        raise ValueError(
            f"The lookahead must be from 1 to {deepest} steps with {n_actions} actions, since it tries all "
            f"sequences, or 0 for none; got {depth}."
        )


def _interpolated(grid: Grid, padded: FloatArray, states: FloatArray) -> FloatArray:
    cells, fractions, _ = grid.locate(states)
    values = np.empty((len(cells), padded.shape[1]))
    interpolate_many(padded, cells, fractions, tuple(grid.padded_strides.tolist()), values)
    return values
