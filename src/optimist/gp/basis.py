"""Choosing the subset of regressors: greedy incomplete Cholesky decomposition (Fine & Scheinberg 2001).

K is approximated by G G^T, one column at a time: the pivot is the input whose covariance is explained worst
so far. It stops at `max_basis` columns or when the largest residual variance is below `tolerance` times the
noise variance, the scale on which the paper's 1e-2 is read here: what is left unexplained then does not
show beside the noise. (As a share of the signal variance, 1e-2 would choose four points for a nearly linear
function, whose signal variance is large, and lose it.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.gp.covariance import Hyperparameters, covariance, squares

MAX_BASIS = 1000
TOLERANCE = 1e-2
ROUNDING = 1e-13  # of the prior variance: residuals below this are rounding errors


@dataclass(frozen=True, eq=False)
class Basis:
    """Pivots, and the incomplete Cholesky factor they give."""

    pivots: NDArray[np.int64]  # [m], row numbers of the training inputs, in order of choice
    factor: FloatArray  # [n, m], K ~ factor @ factor.T; rows `pivots` are lower triangular
    largest_residual: float  # of the diagonal, where it stopped
    cut: bool  # stopped at `max_basis`, not at the tolerance


def choose_basis(
    features: FloatArray,
    hyper: Hyperparameters,
    *,
    max_basis: int = MAX_BASIS,
    tolerance: float = TOLERANCE,
) -> Basis:
    """Pivots among the rows of `features` [n, p]."""
    n = len(features)
    limit = min(max_basis, n)
    factor = np.zeros((n, limit), order="F")
    pivots = np.empty(limit, dtype=np.int64)
    residuals, projected = hyper.prior_at(squares(features)), features @ hyper.projection
    threshold = max(tolerance * hyper.noise_variance, ROUNDING * float(residuals.max(initial=0.0)))
    m = 0
    while m < limit:
        pivot = int(residuals.argmax())
        if residuals[pivot] <= threshold and m > 0:
            break
        column = covariance(features, features[pivot : pivot + 1], hyper, projected)[:, 0]
        column -= factor[:, :m] @ factor[pivot, :m]
        column /= np.sqrt(residuals[pivot])
        column[pivots[:m]] = 0.0  # exactly explained already; keeps the triangle free of rounding
        factor[:, m] = column
        pivots[m] = pivot
        residuals -= column**2
        residuals[pivot] = 0.0
        m += 1
    largest = float(max(residuals.max(), 0.0))
    return Basis(pivots[:m].copy(), factor[:, :m], largest, cut=m == max_basis and largest > threshold)
