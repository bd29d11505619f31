"""Knownness: from a model to c(x, a), 0 known to 1 unknown, at all nodes.

`gp-variance` is the paper's GP-RMAXexp, `visited-cells` its GP-RMAXgrid (binary, unsupervised), `none` its
GP-RMAXnoexp. `cell-variance` is ours: it also asks whether the planner would notice. An action of which
nothing was seen is wholly unknown (except to `none`); a joint model has seen something of every action as
soon as it has seen anything, and its variance says how much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.grid import Grid
from optimist.transitions import Transitions

FINE = 20  # cells of an axis: coarser ones count as such
CELLS = 100  # of `visited_cells`, about


@dataclass(frozen=True, eq=False)
class Variances:
    """How unsure a model is of the displacement from every node."""

    normalised: FloatArray  # [d, N], variance over prior variance
    priors: FloatArray  # [d, N], prior variance in the squared units of the axis


@dataclass(frozen=True, eq=False)
class Asked:
    """What a rule may look at."""

    action: int
    seen: Transitions
    variances: Variances | None = None  # where the rule needs them


class Knownness(NamedTuple):
    """A rule of uncertainty."""

    uncertainty: Callable[[Grid, Asked], FloatArray]  # of an action at all nodes [N]
    needs_variance: bool = True  # whether it asks for variances at all: they are what costs
    untried: float = 1.0  # the uncertainty of an action of which nothing is known


def gp_variance(grid: Grid, asked: Asked) -> FloatArray:
    """The largest normalised variance over the coordinates (the paper's c): max_i variance_i / (v0 + b)_i."""
    assert asked.variances is not None
    return np.asarray(asked.variances.normalised.max(axis=0))


def cell_variance(grid: Grid, asked: Asked) -> FloatArray:
    """The normalised variance, as far as the planner would notice an error of that size.

    c = max_i variance_i / prior_i * s_i^2 / (s_i^2 + h_i^2), with s_i the standard deviation in units of
    axis i and h_i the width of the cell there (a twentieth of the axis at most). The first factor falls as
    something is learned of what there was to learn; the second is small where even knowing nothing would move
    the successor by little of a cell. Either alone explores too much somewhere: the first on the bicycle, the
    second on the pendulum.
    """
    assert asked.variances is not None
    variances = asked.variances
    largest = np.zeros(grid.shape)
    for axis, (normalised, prior) in enumerate(zip(variances.normalised, variances.priors, strict=True)):
        along = [1] * grid.n_dims
        along[axis] = -1
        squared = (normalised * prior).reshape(grid.shape)
        # a coarse cell must not make ignorance look harmless
        widths = np.minimum(grid.cell_widths(axis), grid.box.widths[axis] / FINE)
        noticed = squared / (squared + widths.reshape(along) ** 2)
        np.maximum(largest, normalised.reshape(grid.shape) * noticed, out=largest)
    return largest.reshape(-1)


def visited_cells(grid: Grid, asked: Asked, *, per_axis: int | None = None) -> FloatArray:
    """1 in the cells of a coarse uniform grid where the action was never taken, 0 in the others.

    The paper does not say how many. By default about `CELLS` in all, 10 x 10 or 3^4: each has to be visited
    with each action, and ten along each of four axes would take longer than any run.
    """
    box, seen = grid.box, asked.seen
    shape = (per_axis or round(CELLS ** (1 / box.n_dims)),) * box.n_dims

    def cells(states: FloatArray) -> IntArray:
        places = np.floor((box.clip(states) - box.low) / box.widths * shape[0])
        places = np.clip(places, 0, shape[0] - 1).astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(places.T), shape))

    visited = cells(seen.states[seen.actions == asked.action])
    return np.where(np.isin(cells(grid.nodes), visited), 0.0, 1.0)


def all_known(grid: Grid, asked: Asked) -> FloatArray:
    """No uncertainty anywhere: plans are made as if the model were right."""
    return np.zeros(grid.n_nodes)


KNOWNNESS: dict[str, Knownness] = {
    "gp-variance": Knownness(gp_variance),
    "cell-variance": Knownness(cell_variance),
    "visited-cells": Knownness(visited_cells, needs_variance=False),
    "none": Knownness(all_known, needs_variance=False, untried=0.0),
}
