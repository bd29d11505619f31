"""Acting with any control of a box: planned coarsely, acted on finely.

A plan is made with a short list of controls, and its values hardly suffer. Acting does: between five torques
a pendulum chatters, and half of its cost is that chatter. So the first control of every sequence may be any:
many are tried, each followed by all short sequences of listed ones, then more around the best, and more
around the best of those. Interpolated values have kinks, and nothing here asks for a slope.

Where a control between those of the list leads is interpolated between them. That is exact for steps that are
affine in the control, as most are over a short time. How nearly is measured where the nodes are (`bend`);
where it does not do, whatever predicts is asked itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.box import Box
from optimist.compiled.between import mix
from optimist.compiled.search import value_backwards
from optimist.controls import LEVELS, levels, rounded, spread_over
from optimist.grid import Grid
from optimist.planning.flow import Flow
from optimist.planning.policy import BLOCK, MOST_LEAVES, Lookahead, affordable_depth
from optimist.steps import Dynamics, Successors
from optimist.task import Task

FIRST = {1: 17, 2: 5, 3: 3}  # controls of each actuator that are tried first, by how many actuators there are
AROUND = {1: 9, 2: 5, 3: 3}  # and around the best of them, again and again
ROUNDS = {1: 2, 2: 2, 3: 4}
BENT = 0.1  # of a cell: what interpolating between two listed controls may miss
POINTS = 64  # states that this is measured in
BEND_SEED = 0


class Tried(NamedTuple):
    """Some controls at a decision."""

    controls: FloatArray  # [n, m, k]
    values: FloatArray  # [n, m]
    next_states: FloatArray  # [n, m, d]
    uncertainty: FloatArray  # [n, m]


@dataclass(frozen=True, eq=False)
class Between(Lookahead):
    """The best control of the task's box: (1 - c) (r + discount max ...) + c V_MAX.

    What follows the first control is searched over the list, `depth` - 1 steps far. `directly` predicts where
    interpolating between listed controls would not do.
    """

    directly: Dynamics | None = None

    def greedy(self, states: FloatArray) -> FloatArray:
        """The best control in each of `states` [n, d].  [n, k]"""
        states = self.q_function.grid.checked(states)
        size = max(1, BLOCK // (len(self._coarse) * self._after.n_tree if self.depth > 1 else 1))
        blocks = [states[first : first + size] for first in range(0, max(len(states), 1), size)]
        return np.concatenate([self._best(block) for block in blocks])

    def _best(self, states: FloatArray) -> FloatArray:
        tried = self.first(states)
        return self.refined(states, tried, tried.values.argmax(axis=1))

    def first(self, states: FloatArray) -> Tried:
        """Controls from all over the box."""
        count = len(states)
        shape = (count, *self._coarse.shape)
        return self._try(states, self._successors(states), np.broadcast_to(self._coarse, shape))

    def refined(self, states: FloatArray, tried: Tried, chosen: IntArray) -> FloatArray:
        """The best controls around those `chosen` [n] of the tried ones; they stay unless one is better."""
        box, rows = self._controls_box, np.arange(len(states))
        listed = self._successors(states)
        best, values = tried.controls[rows, chosen], tried.values[rows, chosen]
        reach = box.widths / (FIRST[box.n_dims] - 1)
        for _ in range(ROUNDS[box.n_dims]):
            around = np.clip(best[:, np.newaxis] + self._offsets * reach, box.low, box.high)
            more = self._try(states, listed, around)
            at = more.values.argmax(axis=1)
            better = more.values[rows, at] > values
            best = np.where(better[:, np.newaxis], around[rows, at], best)
            values = np.where(better, more.values[rows, at], values)
            reach = reach * 2.0 / (AROUND[box.n_dims] + 1)
        return rounded(box, best)

    def towards(self, states: FloatArray, controls: FloatArray) -> Successors:
        """Where `controls` [n, k] lead from `states` [n, d].  [n, d], [n]"""
        found = self._led(states, self._successors(states), controls[:, np.newaxis])
        return Successors(found[0][:, 0], found[1][:, 0])

    def _try(self, states: FloatArray, listed: Successors, controls: FloatArray) -> Tried:
        """What some controls [n, m, k] are worth."""
        task, shape, n_dims = self.task, controls.shape[:2], states.shape[1]
        next_states, unsure = self._led(states, listed, controls)
        firsts, befores = next_states.reshape(-1, n_dims), np.repeat(states, shape[1], axis=0)
        applied = np.ascontiguousarray(controls).reshape(-1, controls.shape[2])
        if self.leaving is not None:
            unsure = unsure * (1.0 - self.leaving.shares(self.q_function.grid, states))[:, np.newaxis]
        counted = unsure if self.optimistic else np.zeros_like(unsure)
        if self.depth == 1:
            rewards, ended = task.rewards(befores, applied, firsts), task.terminal(firsts)
            futures = self.q_function.value(firsts)
            if self.leaving is not None:
                futures = self.leaving.valued(self.q_function.grid, firsts, applied, futures)
        else:
            rewards, ended, futures = self._searched(befores, applied, firsts)
        values = rewards + np.where(ended, 0.0, task.discount * futures)
        values = values.reshape(shape)
        values = values + counted * (task.optimistic_value - values)
        return Tried(controls, values, next_states, unsure)

    def _searched(
        self, befores: FloatArray, applied: FloatArray, firsts: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rewards and ends of first steps, and what is best after them: the reward is asked once for all."""
        task, n_dims, count = self.task, firsts.shape[1], len(firsts)
        parents, states, unsure, futures = self._after.tree(firsts)
        shape = unsure.shape
        controls = np.concatenate([applied, np.tile(self._after.controls, (count, 1))])
        reached = np.concatenate([firsts, states.reshape(-1, n_dims)])
        rewards = task.rewards(np.concatenate([befores, parents.reshape(-1, n_dims)]), controls, reached)
        ended = task.terminal(reached)
        q_values = np.empty((count, task.n_actions))
        counted = unsure if self.optimistic else np.zeros_like(unsure)
        value_backwards(
            rewards[count:].reshape(shape),
            ended[count:].reshape(shape),
            counted,
            futures,
            *(task.discount, task.optimistic_value, task.n_actions),
            q_values,
        )
        return rewards[:count], ended[:count], q_values.max(axis=1)

    def _led(
        self, states: FloatArray, listed: Successors, controls: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Where controls [n, m, k] lead, and how unsure that is.  [n, m, d], [n, m]"""
        box, shape = self.task.box, controls.shape[:2]
        next_states, unsure = np.empty((*shape, box.n_dims)), np.empty(shape)
        periods = np.where(box.periodic, box.widths, 0.0)
        mix(
            states,
            *(listed.next_states, listed.uncertainty, self._levels, controls),
            *(box.low, periods, next_states, unsure),
        )
        if self.directly is not None:
            flat = np.ascontiguousarray(controls).reshape(-1, controls.shape[2])
            led = self.directly(np.repeat(states, shape[1], axis=0), flat).reshape(next_states.shape)
            next_states = np.where(np.isfinite(led), led, next_states)
        return next_states, unsure

    def _successors(self, states: FloatArray) -> Successors:
        """Of all listed controls.  [n, n_actions, d], [n, n_actions]"""
        if isinstance(self.step, Flow):
            return self.step.of_all(states)
        found = [self.step(states, action) for action in range(self.task.n_actions)]
        unsure = [
            np.zeros(len(states)) if one.uncertainty is None else one.uncertainty for one in found
        ]
        return Successors(np.stack([one.next_states for one in found], axis=1), np.stack(unsure, axis=1))

    @property
    def _controls_box(self) -> Box:
        assert self.task.control_box is not None
        return self.task.control_box

    @cached_property
    def _levels(self) -> FloatArray:
        return np.stack(levels(self._controls_box))

    @cached_property
    def _coarse(self) -> FloatArray:
        return spread_over(self._controls_box, FIRST[self._controls_box.n_dims])

    @cached_property
    def _offsets(self) -> FloatArray:
        """Around a control, in units of how far to look.  [m, k]"""
        count = AROUND[self._controls_box.n_dims]
        along = np.linspace(-1.0, 1.0, count + 2)[1:-1]
        found = np.array(list(product(along, repeat=self._controls_box.n_dims)))
        return found[np.abs(found).max(axis=1) > 0.0]

    @cached_property
    def _after(self) -> Lookahead:
        """What searches after the first control."""
        return Lookahead(
            self.task, self.step, self.q_function, self.depth - 1, self.optimistic, self.leaving
        )


def sight(task: Task) -> int:
    """How many steps to look ahead: over a list what is affordable; over a box with many first controls."""
    if task.control_box is None:
        return affordable_depth(task.n_actions)
    firsts = len(spread_over(task.control_box, FIRST[task.control_box.n_dims]))
    return 1 + max(1, int(np.log(MOST_LEAVES / firsts) / np.log(task.n_actions) + 1e-9))


def bend(task: Task, dynamics: Dynamics, grid: Grid) -> float:
    """How far from a straight line steps are between neighbouring listed controls: the most, in cells.

    Asked halfway between levels of one actuator, in states between the nodes.
    """
    assert task.control_box is not None
    stream, box = np.random.default_rng(BEND_SEED), task.box
    states = np.column_stack(
        [np.interp(stream.uniform(size=POINTS), np.linspace(0.0, 1.0, len(axis)), axis) for axis in grid.axes]
    )
    cells = grid.widths_at(states)
    states = states[~task.terminal(states)]
    n_levels, worst = LEVELS[task.control_box.n_dims], 0.0
    shape = (n_levels,) * task.control_box.n_dims
    listed = task.controls.reshape(*shape, -1)
    for actuator in range(len(shape)):
        rows = np.moveaxis(listed, actuator, 0)
        for below, above in zip(rows[:-1], rows[1:], strict=True):
            middle = tuple(size // 2 for size in below.shape[:-1])  # the others at rest
            ends = [dynamics(states, one[middle][np.newaxis]) for one in (below, above)]
            halfway = dynamics(states, 0.5 * (below[middle] + above[middle])[np.newaxis])
            straight = ends[0] + 0.5 * box.displacement(ends[0], ends[1])
            with np.errstate(all="ignore"):
                missed = np.abs(box.displacement(straight, halfway)) / cells
            worst = max(worst, float(np.nan_to_num(np.quantile(missed.max(axis=1), 0.9), nan=np.inf)))
    return worst
