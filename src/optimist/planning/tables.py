"""Tables: what the Bellman equation needs, as arrays.

A successor is stored as its cell and fractions; the 2^d weights are recomputed in every sweep, which
is faster than reading them and takes a quarter of the memory: 36 bytes per node and action in 4-D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import BoolArray, FloatArray
from optimist.compiled import sweeps
from optimist.compiled.paths import carry_on
from optimist.discretisation import ONE_STEP, Holding
from optimist.grid import Grid
from optimist.planning.leaving import Leaving
from optimist.steps import Step, Successors
from optimist.task import Task
from optimist.threads import shared

BLOCK = 16384
GUESSED = 0.5  # a held path of which no more than this is known is not followed further
ROUNDING = 1e-12  # by which interpolated uncertainty may leave [0, 1]
ALL_KNOWN, NO_WIDTHS = np.empty(0), np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Tables:
    """The discretised problem. Node before action: what one vertex needs lies together."""

    grid: Grid
    cells: NDArray[np.int32]  # [n_nodes, n_actions], padded index of the successor's cell
    fractions: NDArray[np.float32]  # [n_nodes, n_actions, d], where in that cell
    rewards: FloatArray  # [n_nodes, n_actions], at terminal nodes what entering them pays
    discounts: FloatArray  # [n_nodes, n_actions], 0 at terminal nodes and before terminal successors
    uncertainty: FloatArray | None  # [n_nodes, n_actions], the paper's C; None: all known
    optimistic_value: float  # the paper's V_MAX
    value_bounds: tuple[float, float]  # values are kept between these; infinite below discount 1
    n_clipped: int  # successors that lay outside the box
    mean_hold: float = 1.0  # steps that one planned step stands for
    noise: FloatArray | None = None  # [n_nodes, d] or [d], standard deviation of where a planned step leads

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.cells.shape[1])

    @property
    def self_weights(self) -> FloatArray:
        """The weight of each node in the interpolation of its own successor (w_ii).  [N, A]"""
        weights = np.empty(self.cells.shape)
        shapes = self.grid.shape, self.grid.padded_shape
        span = (0, self.grid.n_nodes, 1)
        sweeps.self_weights(self.cells, self.fractions, *shapes, span, weights)
        return weights


class Path(NamedTuple):
    """What becomes of states under one action, held for some steps."""

    ends: FloatArray  # [n, d]
    rewards: FloatArray  # [n], discounted sum on the way
    discounts: FloatArray  # [n], how much of what follows counts: nothing after an end
    uncertainty: FloatArray | None  # [n], of a single step; None: all known, or folded into the others
    worst: float = np.inf  # the least that a single step paid
    n_steps: int = 0  # of all paths together
    held: FloatArray | None = None  # [n], steps of each


def follow(
    task: Task,
    step: Step,
    states: FloatArray,
    action: int,
    *,
    holding: Holding = ONE_STEP,
    widths: FloatArray | None = None,
    ended: BoolArray | None = None,
    optimistic: bool = True,
) -> Path:
    """Paths from `states` [n, d] under one action, held as `holding` says; `widths` [n, d] are of cells.

    Of a single step the uncertainty is told. Over several, what is uncertain is optimistic on the way: after
    a step of uncertainty c only the share 1 - c of what follows counts, the rest is V_MAX. A path ends where
    it terminates. From a state that has `ended` [n] already nothing leads on: it is worth what entering it
    pays, r(x, a, x), or a live neighbour would see an end worth nothing in the middle of costs.
    """
    hold = holding.require(task)
    control = task.controls[action : action + 1]
    ended = task.terminal(states) if ended is None else ended
    made = Path(states.copy(), np.zeros(len(states)), np.zeros(len(states)), None)
    worst = np.inf
    if ended.any():
        made.rewards[ended] = task.rewards(states[ended], control, states[ended])
        worst = float(made.rewards[ended].min())
    where = np.flatnonzero(~ended)  # which paths go on
    states, n_going = states.take(where, axis=0), where.size
    total, counts, known = np.zeros(n_going), np.ones(n_going), np.ones(n_going)
    going = where.copy(), states.copy(), states, total, counts, known
    held, single, n_steps = np.zeros(len(ended)), None, 0
    crossing = NO_WIDTHS if widths is None or not holding.until_crossed else widths
    for number in range(hold):
        if not n_going:
            break
        here = states[:n_going]
        next_states, uncertainty = require_successors(step(here, action), here)
        uncertainty = uncertainty if optimistic else None
        single = uncertainty if hold == 1 else None
        n_steps += n_going
        next_states = task.caught(here, next_states)
        earned = task.rewards(here, control, next_states)
        worst = min(worst, float(earned.min()))
        n_going = carry_on(
            np.ascontiguousarray(next_states),
            np.ascontiguousarray(earned),
            np.ascontiguousarray(task.terminal(next_states)),
            ALL_KNOWN if uncertainty is None or hold == 1 else np.ascontiguousarray(uncertainty),
            (task.discount, task.optimistic_value),
            (number, hold, GUESSED),
            crossing,
            task.box.periods,
            going,
            (made.ends, made.rewards, made.discounts, held),
        )
    unsure = None
    if single is not None:
        unsure = np.zeros(len(made.ends))
        unsure[where] = single
    return made._replace(uncertainty=unsure, worst=worst, n_steps=n_steps, held=held)


def tabulate(
    grid: Grid,
    task: Task,
    step: Step,
    *,
    holding: Holding = ONE_STEP,
    leaving: Leaving | None = None,
    optimistic: bool = True,
    noise: FloatArray | None = None,
) -> Tables:
    """Cells, fractions, rewards and discounts of every node and action, each held as `holding` says.

    Holding is for when a step is short against a cell: interpolation smears the value function a little at
    every planned step, so a path that takes many to cross one cell keeps little of it.

    A terminal successor ends the sum: its discount is 0. A terminal node is worth what entering it pays.
    With discount 1 values are kept above `max_steps` times the worst reward and below the optimistic value,
    since nothing else bounds the value of a state that never terminates. Not `optimistic`, what is uncertain
    counts as known. Beyond the sides that `leaving` knows to be open, values fall towards its worst.

    `noise` [d] or [n_nodes, d] is the standard deviation of a single step; over a held path its variance adds
    up, and of the actions of a node the mean counts.
    """
    if grid.n_dims != task.box.n_dims:
        raise ValueError(
            f"The grid must have as many axes as the task ({task.box.n_dims}); got {grid.n_dims}."
        )
    shape = (grid.n_nodes, task.n_actions)
    cells = np.empty(shape, dtype=np.int32)
    fractions = np.empty((*shape, grid.n_dims), dtype=np.float32)
    rewards, discounts, uncertainty = np.empty(shape), np.empty(shape), np.zeros(shape)
    held = np.zeros(grid.n_nodes)

    def fill(block: tuple[int, int]) -> _Counts:
        nodes = grid.nodes_between(*block)
        ended = task.terminal(nodes)
        widths = grid.widths_at(nodes) if holding.until_crossed else None
        asked = {"holding": holding, "widths": widths, "ended": ended, "optimistic": optimistic}
        counts = _Counts(n_paths=task.n_actions * int((~ended).sum()))
        for action in range(task.n_actions):
            path = follow(task, step, nodes, action, **asked)  # type: ignore[arg-type]
            rows = slice(*block), action
            located = grid.locate(path.ends)
            cells[rows], fractions[rows] = located.cells, located.fractions
            rewards[rows], discounts[rows] = path.rewards, path.discounts
            if leaving is not None:
                shares, worth = leaving.lost(grid, path.ends, task.controls[action : action + 1])
                rewards[rows] += shares * path.discounts * worth
                discounts[rows] *= 1.0 - shares
            held[rows[0]] += 1.0 if path.held is None else path.held
            unsure = path.uncertainty is not None and bool(path.uncertainty.any())
            if unsure:
                uncertainty[rows] = path.uncertainty
            counts = counts.and_of(_Counts(0, path.n_steps, located.n_clipped, path.worst, unsure))
        return counts

    counts = reduce(_Counts.and_of, shared(fill, list(grid.blocks(BLOCK))))
    return Tables(
        grid=grid,
        cells=cells,
        fractions=fractions,
        rewards=rewards,
        discounts=discounts,
        uncertainty=uncertainty if counts.unsure else None,
        optimistic_value=task.optimistic_value,
        value_bounds=value_bounds(task, counts.worst),
        n_clipped=counts.n_clipped,
        mean_hold=counts.n_steps / max(counts.n_paths, 1),
        noise=_held_noise(noise, held / task.n_actions),
    )


class _Counts(NamedTuple):
    """What is counted along some paths."""

    n_paths: int = 0
    n_steps: int = 0
    n_clipped: int = 0
    worst: float = np.inf  # the least that a single step paid
    unsure: bool = False  # whether anything is

    def and_of(self, other: _Counts) -> _Counts:
        """Of both together."""
        n_paths, n_steps = self.n_paths + other.n_paths, self.n_steps + other.n_steps
        worst, unsure = min(self.worst, other.worst), self.unsure or other.unsure
        return _Counts(n_paths, n_steps, self.n_clipped + other.n_clipped, worst, unsure)


def _held_noise(noise: FloatArray | None, held: FloatArray) -> FloatArray | None:
    """Of paths that are `held` [n_nodes] for so many steps; of none where nothing leads on."""
    if noise is None or not noise.any():
        return None
    if (held <= 1.0).all():
        return noise
    return np.asarray(noise * np.sqrt(np.maximum(held, 1.0))[:, np.newaxis])


def value_bounds(task: Task, worst_reward: float) -> tuple[float, float]:
    """What values are kept between: with discount 1 nothing else bounds one that never terminates."""
    if task.discount < 1.0:
        return -np.inf, np.inf
    worst = task.max_steps * min(worst_reward, 0.0)
    return worst, max(task.optimistic_value, worst)


def optimistic(tables: Tables) -> Tables:
    """The mixture (1 - C) (R + g V) + C V_MAX, folded into rewards and discounts.

    What follows (plain sweeps, exact self-loops) then needs to know nothing of uncertainty.
    """
    if tables.uncertainty is None:
        return tables
    known = 1.0 - tables.uncertainty
    return replace(
        tables,
        rewards=known * tables.rewards + tables.uncertainty * tables.optimistic_value,
        discounts=known * tables.discounts,
        uncertainty=None,
    )


def require_successors(found: Successors, states: FloatArray) -> Successors:
    """What a step found, if it is one successor per state and its uncertainty lies in [0, 1]."""
    if found.next_states.shape != states.shape:
        raise ValueError(
            f"A step must lead to one state per state, shape {states.shape}; got {found.next_states.shape}."
        )
    if found.uncertainty is not None:
        require_uncertainty(found.uncertainty, states.shape[:1])
    return found


def require_uncertainty(uncertainty: FloatArray, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless it has that shape and lies in [0, 1]."""
    if uncertainty.shape != shape:
        raise ValueError(f"`uncertainty` must have shape {shape}; got {uncertainty.shape}.")
    if uncertainty.size and not (uncertainty.min() >= -ROUNDING and uncertainty.max() <= 1.0 + ROUNDING):
        raise ValueError(
            f"`uncertainty` must lie in [0, 1]; got values from {uncertainty.min()} to {uncertainty.max()}."
        )
