"""A-posteriori certificate: how far the plan can be from the optimum.

For the residual eta = sup |Q - TQ| over all of the box, off the nodes too, where T is the true Bellman
operator and not its discretisation,

    eta / (1 + discount)  <=  sup |Q - Q*|  <=  eta / (1 - discount).

The supremum is taken over sampled points, the centre of every cell and random points in it. What is found
is a residual that exists, so the lower bound is certain. The upper bound holds as far as the samples
have found the worst point; more of them (`points_per_cell`) make it firmer. With discount 1 there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from optimist.arrays import FloatArray
from optimist.discretisation import ONE_STEP, Holding
from optimist.planning.blur import Blur
from optimist.planning.policy import QFunction
from optimist.planning.tables import follow
from optimist.steps import Step
from optimist.task import Task

BLOCK = 16384


@dataclass(frozen=True, eq=False)
class Certificate:
    """The residual off the nodes, and what follows from it."""

    cell_residuals: FloatArray  # [n_cells], largest |Q - TQ| found in each cell, cells in C order
    cell_shape: tuple[int, ...]  # [d]
    residual: float  # the largest of them
    worst_state: FloatArray  # [d], where it was found
    lower: float  # sup |Q - Q*| is at least this
    upper: float  # and at most this; infinite with discount 1
    n_points: int


def certify(
    q_function: QFunction,
    task: Task,
    step: Step,
    *,
    holding: Holding = ONE_STEP,
    points_per_cell: int = 2,
    seed: int = 0,
    noise: FloatArray | None = None,
) -> Certificate:
    """Residuals of `q_function` in every cell of its grid, controls held. Terminal points are left out.

    With `noise` [d] those of the equation in expectation.
    """
    if points_per_cell < 1:
        raise ValueError(f"`points_per_cell` must be at least 1; got {points_per_cell}.")
    edges, blur = _cell_edges(q_function), Blur.of(q_function.grid, noise)
    values = q_function.q_values.max(axis=1, keepdims=True)
    future = q_function if blur is None else QFunction(q_function.grid, blur(values))
    shape = tuple(len(axis) - 1 for axis in edges)
    n_cells = prod(shape)
    stream = np.random.default_rng(seed)
    residuals = np.zeros(n_cells)
    worst, worst_state, n_points = -1.0, np.empty(0), 0
    for first in range(0, n_cells, BLOCK):
        places = np.unravel_index(np.arange(first, min(first + BLOCK, n_cells)), shape)
        low = np.column_stack([axis[place] for axis, place in zip(edges, places, strict=True)])
        high = np.column_stack([axis[place + 1] for axis, place in zip(edges, places, strict=True)])
        for k in range(points_per_cell):
            within = np.full(low.shape, 0.5) if k == 0 else stream.uniform(size=low.shape)
            states = q_function.grid.box.wrap(low + within * (high - low))
            found = _residuals(q_function, future, task, step, holding, states)
            rows = slice(first, first + len(found))
            residuals[rows] = np.maximum(residuals[rows], found)
            n_points += len(found)
            if found.max() > worst:
                worst, worst_state = float(found.max()), states[found.argmax()]
    discount = task.discount ** (1 if holding.until_crossed else holding.most)
    upper = worst / (1.0 - discount) if discount < 1.0 else np.inf
    lower = worst / (1.0 + discount)
    return Certificate(residuals, shape, worst, worst_state, lower, upper, n_points)


def _residuals(
    q_function: QFunction,
    future: QFunction,
    task: Task,
    step: Step,
    holding: Holding,
    states: FloatArray,
) -> FloatArray:
    """Max over actions of |Q - TQ| at each state, 0 at terminal ones.  [n]"""
    q_values, ended = q_function(states), task.terminal(states)
    largest = np.zeros(len(states))
    widths = q_function.grid.widths_at(states) if holding.until_crossed else None
    for action in range(task.n_actions):
        path = follow(task, step, states, action, holding=holding, widths=widths, ended=ended)
        backed_up = path.rewards + path.discounts * future(path.ends).max(axis=1)  # Eq. 2
        if path.uncertainty is not None:
            backed_up += path.uncertainty * (task.optimistic_value - backed_up)
        largest = np.maximum(largest, np.abs(q_values[:, action] - backed_up))
    return np.where(ended, 0.0, largest)


def _cell_edges(q_function: QFunction) -> list[FloatArray]:
    """Node positions per axis, a periodic axis closed by its first node one period on."""
    box = q_function.grid.box
    return [
        np.append(nodes, nodes[0] + box.widths[axis]) if box.periodic[axis] else nodes
        for axis, nodes in enumerate(q_function.grid.axes)
    ]
