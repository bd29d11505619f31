"""The linear trend at all nodes of a tensor grid: what it adds to means, priors and explained variances.

Each feature belongs to one axis, so all of it is laid out along the axes, or over the two groups of them that
`on_grid` cuts them into.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.gp.covariance import Hyperparameters, squares
from optimist.gp.inputs import Inputs
from optimist.gp.posterior import Posterior
from optimist.grid import Grid


def prior_on_grid(
    hyper: Hyperparameters, inputs: Inputs, grid: Grid, control: FloatArray | None
) -> FloatArray:
    """k(x, x) at all nodes.  [N]"""
    if not hyper.slope_variance:
        return np.full(grid.n_nodes, hyper.prior_variance)
    total = np.zeros((1,) * grid.n_dims)
    for axis in range(inputs.n_axes):
        places = grid.axes[axis] if axis < grid.n_dims else _held(control, axis - grid.n_dims)
        total = total + _laid_along(squares(inputs.of_axis(axis, places)), axis, grid)
    return hyper.prior_at(total.reshape(-1))


def _held(control: FloatArray | None, number: int) -> FloatArray:
    assert control is not None
    return np.asarray(control[number : number + 1])


def _laid_along(values: FloatArray, axis: int, grid: Grid) -> FloatArray:
    """One value per position along an axis, to be added to an array of all nodes; of a control, one."""
    shape = [1] * grid.n_dims
    if axis < grid.n_dims:
        shape[axis] = -1
    return values.reshape(shape)


@dataclass(frozen=True, eq=False)
class Trend:
    """The linear part of k at all nodes, coefficients @ x, its features laid out over both groups of axes."""

    coefficients: FloatArray  # [m, p], l X_m
    left: FloatArray  # [N1, p], 0 where a feature belongs to the other group
    right: FloatArray  # [N2, p]

    @classmethod
    def of(
        cls, posterior: Posterior, inputs: Inputs, grid: Grid, control: FloatArray | None, half: int
    ) -> Trend:
        """What is held fixed goes to the left group."""
        axes = inputs.axes
        sides = [np.zeros((math.prod(part), axes.size)) for part in (grid.shape[:half], grid.shape[half:])]
        for axis in range(inputs.n_axes):
            held = axis >= grid.n_dims
            places = _held(control, axis - grid.n_dims) if held else grid.axes[axis]
            features, right = inputs.of_axis(axis, places), half <= axis < grid.n_dims
            shape = grid.shape[half:] if right else grid.shape[:half]
            number = axis - half if right else axis
            inner = 1 if held else math.prod(shape[number + 1 :])
            outer = math.prod(shape) if held else math.prod(shape[:number])
            sides[right][:, axes == axis] = np.tile(np.repeat(features, inner, axis=0), (outer, 1))
        slope = posterior.hyperparameters.slope_variance
        return cls(slope * posterior.basis, *sides)

    def along(self, direction: FloatArray) -> FloatArray:
        """Of every node, x . direction [p].  [N1, N2]"""
        return np.asarray((self.left @ direction)[:, np.newaxis] + (self.right @ direction)[np.newaxis])

    def at(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Its part of k at some nodes, by their numbers in both groups.  [n, m]"""
        return np.asarray((self.left[rows] + self.right[columns]) @ self.coefficients.T)


def combined(left: FloatArray, right: FloatArray, weights: FloatArray) -> FloatArray:
    """The product left diag(weights) right^T.  [N1, N2]"""
    return (left * weights) @ np.broadcast_to(right, (right.shape[0], weights.size)).T


def add_trend(
    explained: FloatArray, posterior: Posterior, left: FloatArray, right: FloatArray, trend: Trend
) -> None:
    """What the trend adds to |H^T k|^2: cross terms with signal and bias, and its own. In place."""
    hyper, reduction = posterior.hyperparameters, posterior.reduction
    slopes = reduction.T @ trend.coefficients  # [m, p], H^T l X_m
    onto = 2.0 * hyper.signal_variance * (reduction @ slopes)
    for feature in range(slopes.shape[1]):
        product = combined(left, right, onto[:, feature])
        own_left, own_right = trend.left[:, feature], trend.right[:, feature]
        product *= own_left[:, np.newaxis] if own_left.any() else own_right[np.newaxis]
        explained += product
    explained += trend.along(2.0 * hyper.bias_variance * (reduction.sum(axis=0) @ slopes))
    grams = slopes.T @ slopes
    by_left, by_right = trend.left @ grams, trend.right @ grams
    explained += (by_left * trend.left).sum(axis=1)[:, np.newaxis]
    explained += (by_right * trend.right).sum(axis=1)[np.newaxis]
    explained += 2.0 * by_left @ trend.right.T
