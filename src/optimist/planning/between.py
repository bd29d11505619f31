"""Acting with any control of a box: planned coarsely, acted on finely.

A plan is made with a short list of controls, and its values hardly suffer. Acting does: between five torques
a pendulum chatters, and half of its cost is that chatter. So the first control of every sequence may be any.
Some are tried from all over the box, each followed by all short sequences of listed ones. Their values are
those of interpolated plans, full of kinks, and whoever looks for the highest point of all finds a kink: so
they are smoothed over neighbouring controls, and the best control is where a parabola through the best of
them and its neighbours is highest. The reward is asked once at a decision, and nothing needs a slope.

Where a control between those of the list leads is interpolated between them. That is exact for steps that are
affine in the control, as most are over a short time. How nearly is measured where the nodes are (`bend`);
where it does not do, whatever predicts is asked itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.box import Box
from optimist.compiled.between import branch, judge, mix, peak
from optimist.controls import LEVELS, finer, levels, rounded
from optimist.grid import Grid
from optimist.planning.flow import Flow
from optimist.planning.policy import BLOCK, MOST_LEAVES, Lookahead, affordable_depth
from optimist.steps import Dynamics, Successors
from optimist.task import Task

TRIED = {1: 9, 2: 5, 3: 3}  # controls of each actuator that are tried, by how many actuators there are
BENT = 0.1  # of a cell: what interpolating between two listed controls may miss
POINTS = 64  # states that this is measured in
BEND_SEED = 0


class Tried(NamedTuple):
    """Some controls at a decision."""

    controls: FloatArray  # [n, m, k]
    values: FloatArray  # [n, m], smoothed over neighbours
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
        size = max(1, BLOCK // (len(self._tried) * (1 + self._n_after)))
        if len(states) == 1:
            return self._best(states)
        blocks = [states[first : first + size] for first in range(0, len(states), size)]
        return np.concatenate([np.empty((0, self._axes.shape[0])), *map(self._best, blocks)])

    def _best(self, states: FloatArray) -> FloatArray:
        tried = self.trying(states)
        return self.finest(tried, tried.values.argmax(axis=1))

    def trying(self, states: FloatArray) -> Tried:
        """Controls from all over the box."""
        controls = np.broadcast_to(self._tried, (len(states), *self._tried.shape))
        return self._try(states, self._successors(states), np.ascontiguousarray(controls))

    def finest(self, tried: Tried, chosen: IntArray) -> FloatArray:
        """The best controls near those `chosen` [n] of the tried ones.  [n, k]"""
        box = self._controls_box
        best = np.empty((len(chosen), box.n_dims))
        peak(tried.values, chosen, self._axes, best)
        return rounded(box, best)

    def towards(self, states: FloatArray, applied: FloatArray) -> Successors:
        """Where controls that are `applied` [n, k] lead from `states` [n, d].  [n, d], [n]"""
        found = self._led(states, self._successors(states), applied[:, np.newaxis])
        return Successors(found[0][:, 0], found[1][:, 0])

    def _try(self, states: FloatArray, listed: Successors, controls: FloatArray) -> Tried:
        """What some controls [n, m, k] are worth: the reward is asked once, of all that may follow them."""
        task, (n, m, k), n_dims = self.task, controls.shape, states.shape[1]
        next_states, unsure = self._led(states, listed, controls)
        firsts, count = next_states.reshape(n * m, n_dims), n * m
        size, n_leaves = count * (1 + self._n_after), task.n_actions ** (self.depth - 1)
        parents, applied, reached = np.empty((size, n_dims)), np.empty((size, k)), np.empty((size, n_dims))
        uncertainty, futures = np.zeros(size), np.empty((count, n_leaves))
        uncertainty[:count] = unsure.reshape(-1)
        self._branch((states, controls, firsts), (parents, applied, reached, uncertainty, futures))
        if self.leaving is not None:
            grid = self.q_function.grid
            leaves, last = self._leaves(reached, futures), self._leaves(applied, futures)
            futures[:] = self.leaving.valued(grid, leaves, last, futures.reshape(-1)).reshape(futures.shape)
            uncertainty *= 1.0 - self.leaving.shares(
                grid, parents
            )  # what is unknown out there promises nothing
        led = task.caught(parents, reached)
        rewards, ended = task.rewards(parents, applied, led), task.terminal(led)
        if self.noise_costs is not None:
            rewards, inner = np.array(rewards), self._inner(count)
            rewards[inner] += self.task.discount * (~ended[inner] * self.costs_at(reached[inner]))
        counted, values = uncertainty if self.optimistic else np.zeros(size), np.empty((n, m))
        numbers = task.discount, task.optimistic_value, task.n_actions, len(self._axes[0])
        judge(rewards, ended, counted, futures, *numbers, values)
        return Tried(controls, values, next_states, uncertainty[:count].reshape(n, m))

    def _branch(self, begun: tuple[FloatArray, ...], out: tuple[FloatArray, ...]) -> None:
        """Follow all sequences: `out` is parents, controls, states, uncertainty of all steps, and futures."""
        states, controls, firsts = begun
        parents, applied, reached, uncertainty, futures = out
        values, count = self.leaf_values, len(firsts)
        if isinstance(self.step, Flow) and self.depth > 1:
            flow, listed = self.step, self.task.controls
            branch(*begun, self.depth - 1, listed, flow.geometry, values, flow.strides, *out)
            return
        parents[:count], reached[:count] = np.repeat(states, controls.shape[1], axis=0), firsts
        applied[:count] = controls.reshape(count, -1)
        if self.depth == 1:
            futures[:, 0] = self.ends(firsts)
            return
        shape = (count, self._n_after)
        applied[count:] = self._after.controls(len(applied) - count)
        tree = [rows[count:].reshape(*shape, -1) for rows in (parents, reached)]
        self._after.grow(firsts, (*tree, uncertainty[count:].reshape(shape), futures))

    def _leaves(self, rows: FloatArray, futures: FloatArray) -> FloatArray:
        """What of the rows of all steps belongs to the last ones."""
        if self.depth == 1:
            return rows
        count, n_leaves = futures.shape
        trees = rows[count:].reshape(count, self._n_after, -1)
        return trees[:, -n_leaves:].reshape(count * n_leaves, -1)

    def _inner(self, count: int) -> BoolArray:
        """Which of the rows of all steps after so many first controls are not the last ones."""
        inner = np.full(count * (1 + self._n_after), self.depth > 1)
        inner[count:].reshape(count, self._n_after)[:, -(self.task.n_actions ** (self.depth - 1)) :] = False
        return inner

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
        unsure = [np.zeros(len(states)) if one.uncertainty is None else one.uncertainty for one in found]
        return Successors(np.stack([one.next_states for one in found], axis=1), np.stack(unsure, axis=1))

    @property
    def _controls_box(self) -> Box:
        assert self.task.control_box is not None
        return self.task.control_box

    @cached_property
    def _levels(self) -> FloatArray:
        return np.stack(levels(self._controls_box))

    @cached_property
    def _axes(self) -> FloatArray:
        """Controls of each actuator that are tried.  [k, count]"""
        return np.stack(finer(self._controls_box, TRIED[self._controls_box.n_dims]))

    @cached_property
    def _tried(self) -> FloatArray:
        """All combinations of them, the last actuator fastest.  [m, k]"""
        return np.array(list(product(*self._axes)))

    @cached_property
    def _n_after(self) -> int:
        """Steps tried after each first control."""
        return self._after.n_tree if self.depth > 1 else 0

    @cached_property
    def _after(self) -> Lookahead:
        """What searches after the first control."""
        how = self.optimistic, self.leaving, self.noise_costs
        return Lookahead(self.task, self.step, self.q_function, self.depth - 1, *how)


def sight(task: Task, *, noisy: bool = False) -> int:
    """How many steps to look ahead: over a list what is affordable; over a box with many first controls.

    With noise a step less: what is so far ahead will not come to pass, and every path is tried several times.
    """
    if noisy:
        return max(1, sight(task) - 1)
    if task.control_box is None:
        return affordable_depth(task.n_actions)
    firsts = TRIED[task.control_box.n_dims] ** task.control_box.n_dims
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
    states = states[~task.terminal(states)]
    cells = grid.widths_at(states)
    if not len(states):
        return 0.0
    n_levels, worst = LEVELS[task.control_box.n_dims], 0.0
    shape = (n_levels,) * task.control_box.n_dims
    listed = task.controls.reshape(*shape, -1)
    for actuator in range(len(shape)):
        rows = np.moveaxis(listed, actuator, 0)
        for below, above in pairwise(rows):
            middle = tuple(size // 2 for size in below.shape[:-1])  # the others at rest
            ends = [dynamics(states, one[middle][np.newaxis]) for one in (below, above)]
            halfway = dynamics(states, 0.5 * (below[middle] + above[middle])[np.newaxis])
            straight = ends[0] + 0.5 * box.displacement(ends[0], ends[1])
            with np.errstate(all="ignore"):
                missed = np.abs(box.displacement(straight, halfway)) / cells
            worst = max(worst, float(np.nan_to_num(np.quantile(missed.max(axis=1), 0.9), nan=np.inf)))
    return worst
