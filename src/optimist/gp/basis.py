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
from optimist.compiled.cholesky import decompose
from optimist.gp.covariance import Hyperparameters, squares

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
    residuals, projected = hyper.prior_at(squares(features)), features @ hyper.projection
    threshold = max(tolerance * hyper.noise_variance, ROUNDING * float(residuals.max(initial=0.0)))
    pivots, columns = np.empty(limit, dtype=np.int64), np.zeros((limit, n))
    variances = hyper.signal_variance, hyper.bias_variance, hyper.slope_variance
    given = (np.ascontiguousarray(array, dtype=np.float64) for array in (features, projected))
    m = decompose(*given, tuple(map(float, variances)), threshold, residuals, pivots, columns)
    largest = float(max(residuals.max(), 0.0))
    return Basis(pivots[:m].copy(), columns[:m].T, largest, cut=m == max_basis and largest > threshold)
