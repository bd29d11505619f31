"""Knownness: from a model to c(x, a), 0 known to 1 unknown, at all nodes.

`gp-variance` is the paper's GP-RMAXexp, `visited-cells` its GP-RMAXgrid (binary, unsupervised), `none` its
GP-RMAXnoexp. `cell-variance` is ours: it also asks whether the planner would notice. An action of which
nothing was seen is wholly unknown (except to `none`); a joint model has seen something of every action as
soon as it has seen anything, and its variance says how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.transitions import Transitions


@dataclass(frozen=True, eq=False)
class Variances:
    """How unsure a model is of the displacement from every node."""

    normalised: FloatArray  # [d, N], variance over prior variance
    priors: FloatArray  # [d], prior variance in the squared units of the axis


class Knownness(Protocol):
    """A rule of uncertainty."""

    @property
    def needs_variance(self) -> bool:
        """Whether it asks for variances at all: they are what costs."""
        ...

    @property
    def untried(self) -> float:
        """The uncertainty of an action of which nothing is known."""
        ...

    def uncertainty(
        self, grid: Grid, action: int, variances: Variances | None, seen: Transitions
    ) -> FloatArray:
        """Of `action` at all nodes, from the variances of the displacement where they are needed.  [N]"""
        ...


@dataclass(frozen=True)
class GPVariance:
    """The largest normalised variance over the coordinates (the paper's Eq. for c)."""

    needs_variance: bool = True
    untried: float = 1.0

    def uncertainty(
        self, grid: Grid, action: int, variances: Variances | None, seen: Transitions
    ) -> FloatArray:
        """max_i variance_i / (v0 + b)_i.  [N]"""
        assert variances is not None
        return np.asarray(variances.normalised.max(axis=0))


@dataclass(frozen=True)
class CellVariance:
    """The normalised variance, as far as the planner would notice an error of that size.

    c = max_i variance_i / (v0 + b)_i * s_i^2 / (s_i^2 + h_i^2), with s_i the standard deviation in units of
    axis i and h_i the width of the cell there. The first factor falls as something is learned of what there
    was to learn; the second is small where even knowing nothing would move the successor by little of a
    cell. Either alone explores too much somewhere: the first on the bicycle, the second on the pendulum.
    """

    needs_variance: bool = True
    untried: float = 1.0

    def uncertainty(
        self, grid: Grid, action: int, variances: Variances | None, seen: Transitions
    ) -> FloatArray:
        """The largest product over the coordinates.  [N]"""
        assert variances is not None
        largest = np.zeros(grid.shape)
        for axis, (normalised, prior) in enumerate(zip(variances.normalised, variances.priors, strict=True)):
            along = [1] * grid.n_dims
            along[axis] = -1
            squared = normalised.reshape(grid.shape) * prior
            noticed = squared / (squared + grid.cell_widths(axis).reshape(along) ** 2)
            np.maximum(largest, normalised.reshape(grid.shape) * noticed, out=largest)
        return largest.reshape(-1)


CELLS = 100


@dataclass(frozen=True)
class VisitedCells:
    """1 in the cells of a coarse uniform grid where the action was never taken, 0 in the others.

    The paper does not say how many. By default about `CELLS` in all, 10 x 10 or 3^4: each has to be visited
    with each action, and ten along each of four axes would take longer than any run.
    """

    cells_per_axis: int | None = None
    needs_variance: bool = False
    untried: float = 1.0

    def __post_init__(self) -> None:
        if self.cells_per_axis is not None and self.cells_per_axis < 1:
            raise ValueError(f"`cells_per_axis` must be at least 1; got {self.cells_per_axis}.")

    def uncertainty(
        self, grid: Grid, action: int, variances: Variances | None, seen: Transitions
    ) -> FloatArray:
        """Whether each node's cell was never visited with this action.  [N]"""
        visited = self._cells(grid.box, seen.states[seen.actions == action])
        return np.where(np.isin(self._cells(grid.box, grid.nodes), visited), 0.0, 1.0)

    def _cells(self, box: Box, states: FloatArray) -> NDArray[np.int64]:
        per_axis = self.cells_per_axis or round(CELLS ** (1 / box.n_dims))
        places = np.floor((box.clip(states) - box.low) / box.widths * per_axis)
        places = np.clip(places, 0, per_axis - 1).astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(places.T), (per_axis,) * box.n_dims))


@dataclass(frozen=True)
class AllKnown:
    """No uncertainty anywhere: plans are made as if the model were right."""

    needs_variance: bool = False
    untried: float = 0.0

    def uncertainty(
        self, grid: Grid, action: int, variances: Variances | None, seen: Transitions
    ) -> FloatArray:
        """Nothing.  [N]"""
        return np.zeros(grid.n_nodes)


KNOWNNESS: dict[str, Knownness] = {
    "gp-variance": GPVariance(),
    "cell-variance": CellVariance(),
    "visited-cells": VisitedCells(),
    "none": AllKnown(),
}
