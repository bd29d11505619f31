"""The posterior on a basis: weights for the mean, one matrix for the variance.

    mean(x) = k_m(x)^T w,      variance(x) = k(x, x) - |k_m(x)^T H|^2

Projected process (RW Sec. 8.3.4), with K_mm = L L^T and G = K_nm L^-T from the incomplete Cholesky
decomposition, A = s^2 I + G^T G:

    w = L^-T A^-1 G^T y,      H H^T = L^-T (I - s^2 A^-1) L^-1

Exact (RW Alg. 2.1): K + s^2 I = L L^T, w = K^-1 y, H = L^-T. With a full basis the two agree.

Variances cost the square of the basis, means do not. Of a long basis only the first points, which explain
most, are asked for variances: a little more is called unsure than is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from optimist.arrays import BoolArray, FloatArray
from optimist.gp.basis import Basis
from optimist.gp.covariance import Hyperparameters, covariance, squares
from optimist.gp.inputs import Inputs

BLOCK = 8192
FIRST_JITTER = 1e-12  # relative to the mean diagonal; ten times more at every further attempt
MAX_ATTEMPTS = 12
MOST_REDUCED = 300  # basis points that variances are found with


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process given data, in features and standardised targets."""

    hyperparameters: Hyperparameters
    basis: FloatArray  # [m, p], features of the basis points
    weights: FloatArray  # [m], w
    reduction: FloatArray  # [r, r], H of the first r; in C order always: the order of rounding depends on it
    jitter: float  # what had to be added to a diagonal for its Cholesky decomposition, relative; mostly 0

    def mean(self, features: FloatArray) -> FloatArray:
        """Predicted targets at features [n, p].  [n]"""
        return self.predict(features)[0]

    def variance(self, features: FloatArray) -> FloatArray:
        """Predictive variance without noise, in [0, k(x, x)].  [n]"""
        return self.predict(features)[1]

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at features [n, p], by blocks.  [n], [n]"""
        mean, variance = np.empty(len(features)), np.empty(len(features))
        for first in range(0, len(features), BLOCK):
            rows = slice(first, first + BLOCK)
            cross = covariance(features[rows], self.basis, self.hyperparameters)
            mean[rows] = cross @ self.weights
            explained = cross[:, : len(self.reduction)] @ self.reduction
            variance[rows] = np.einsum("ij,ij->i", explained, explained)
        return mean, bounded_variance(variance, self.hyperparameters.prior_at(squares(features)))

    @property
    def judging(self) -> Posterior:
        """Of the basis only what variances are found with."""
        count = len(self.reduction)
        return replace(self, basis=self.basis[:count], weights=self.weights[:count])

    @cached_property
    def projected(self) -> FloatArray:
        """The basis under the unit metric.  [m, r]"""
        return np.ascontiguousarray(self.basis @ self.hyperparameters.projection)

    def process(self, inputs: Inputs) -> tuple[FloatArray | BoolArray | float, ...]:
        """What compiled loops over raw points need of it, in their order: `compiled.process`."""
        hyper = self.hyperparameters
        variances = hyper.signal_variance, hyper.bias_variance, hyper.slope_variance
        return (
            inputs.centres,
            inputs.scales,
            inputs.periodic,
            hyper.projection,
            self.projected,
            self.weights,
            *map(float, variances),
            self.basis,
            self.reduction,
        )


def bounded_variance(explained: FloatArray, prior: FloatArray) -> FloatArray:
    """Prior minus what is explained, kept within [0, prior] against rounding. In place.  [n]"""
    np.subtract(prior, explained, out=explained)
    return np.clip(explained, 0.0, prior, out=explained)


def projected_posterior(
    features: FloatArray, targets: FloatArray, hyper: Hyperparameters, basis: Basis, *, copies: int = 1
) -> Posterior:
    """Subset of regressors with projected-process variance, given a basis of the rows of `features`.

    Where every row is one of so many `copies`, they share their noise, which then does not average out.
    """
    factor = basis.factor
    lower = np.tril(factor[basis.pivots])  # L
    noise = copies * hyper.noise_variance
    inner = factor.T @ factor
    inner[np.diag_indices_from(inner)] += noise  # A
    inner_factor, jitter = sturdy_cholesky(inner)
    coefficients = cho_solve((inner_factor, True), factor.T @ targets)
    weights = solve_triangular(lower, coefficients, lower=True, trans=1)
    if len(inner) > MOST_REDUCED:
        lower, inner = (matrix[:MOST_REDUCED, :MOST_REDUCED] for matrix in (lower, inner))
        inner_factor, again = sturdy_cholesky(inner)
        jitter = max(jitter, again)
    inner_inverse = cho_solve((inner_factor, True), np.eye(len(inner)))
    known = np.eye(len(inner)) - noise * inner_inverse  # eigenvalues in [0, 1)
    known_factor, more_jitter = sturdy_cholesky(0.5 * (known + known.T))
    reduction = np.ascontiguousarray(solve_triangular(lower, known_factor, lower=True, trans=1))
    return Posterior(hyper, features[basis.pivots], weights, reduction, max(jitter, more_jitter))


def exact_posterior(features: FloatArray, targets: FloatArray, hyper: Hyperparameters) -> Posterior:
    """The posterior given all data (RW Alg. 2.1)."""
    total = covariance(features, features, hyper)
    total[np.diag_indices_from(total)] += hyper.noise_variance
    lower, jitter = sturdy_cholesky(total)  # l. 2
    weights = cho_solve((lower, True), targets)  # l. 3
    reduction = np.ascontiguousarray(  # l. 5, 6
        solve_triangular(lower, np.eye(len(lower)), lower=True, trans=1)
    )
    return Posterior(hyper, features, weights, reduction, jitter)


def sturdy_cholesky(matrix: FloatArray) -> tuple[FloatArray, float]:
    """Lower Cholesky factor, with as little added to the diagonal as it takes; how much, relative."""
    scale = float(np.abs(np.diag(matrix)).mean())
    jitter = 0.0
    for attempt in range(MAX_ATTEMPTS):
        try:
            shifted = matrix + jitter * scale * np.eye(len(matrix)) if jitter else matrix
            return np.asarray(np.linalg.cholesky(shifted), dtype=np.float64), jitter
        except np.linalg.LinAlgError:
            jitter = FIRST_JITTER * 10.0**attempt
    # symmetric and so far from positive definite that only its diagonal can be trusted
    return np.diag(np.sqrt(np.maximum(np.diag(matrix), max(scale * 1e-12, 1e-300)))), 1.0
