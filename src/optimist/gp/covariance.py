"""The squared exponential covariance with its three metrics, and a linear trend besides.

    k(x, x') = v0 exp(-1/2 D^T Omega D) + b + l x^T x',   D = x - x'

Omega = theta I (uniform), diag(theta_1 .. theta_d) (axis-aligned: automatic relevance determination) or
M M^T (factor analysis). All three are M M^T for some M [p, r], the `projection`: the covariance is
that of projected features under the unit metric.

The paper has no trend (l = 0). With one, what is a line or a plane is learned from as many points as it has
coefficients, and holds far from them: most of what moves a body in one step is its velocity.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray

N_FACTORS = 2  # columns of M in the factor analysis metric, the paper's k


class Metric(StrEnum):
    """Which Omega."""

    UNIFORM = "uniform"
    AXES = "axes"  # ARD, one precision per axis
    FACTORS = "factors"  # factor analysis


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """All that the covariance and the noise depend on, for standardised targets."""

    signal_variance: float  # v0
    bias_variance: float  # b
    noise_variance: float
    projection: FloatArray  # [p, r], Omega = projection @ projection.T
    precisions: FloatArray | None  # [n_axes], theta; None for the factor analysis metric
    slope_variance: float = 0.0  # l, of every coefficient of the trend; 0: there is none

    @property
    def prior_variance(self) -> float:
        """k(x, x) where all features are 0: v0 + b."""
        return self.signal_variance + self.bias_variance

    def prior_at(self, squares: FloatArray) -> FloatArray:
        """k(x, x) = v0 + b + l |x|^2 where the squares |x|^2 are these.  [n]"""
        return np.asarray(self.prior_variance + self.slope_variance * squares)


def correlation(left: FloatArray, right: FloatArray) -> FloatArray:
    """exp(-1/2 |l - r|^2) of projected features.  [n, m]

    From differences: expanding the square would lose digits that large weights bring to light.
    """
    from scipy.spatial.distance import cdist  # noqa: PLC0415  (half a second, of every start)

    values: FloatArray = cdist(left, right, "sqeuclidean")
    values *= -0.5
    return np.exp(values, out=values)


def covariance(
    left: FloatArray, right: FloatArray, hyper: Hyperparameters, projected: FloatArray | None = None
) -> FloatArray:
    """Covariance between features [n, p] and [m, p]; `projected` are the left ones, if known.  [n, m]"""
    projected = left @ hyper.projection if projected is None else projected
    values = correlation(projected, right @ hyper.projection)
    values *= hyper.signal_variance
    values += hyper.bias_variance
    if hyper.slope_variance:
        values += hyper.slope_variance * (left @ right.T)
    return values


def squares(features: FloatArray) -> FloatArray:
    """|x|^2 of features [n, p].  [n]"""
    return np.asarray(np.einsum("ij,ij->i", features, features))


# --- parameters of a metric: a flat vector, and back -----------------------------------------------


def n_parameters(metric: Metric, axes: NDArray[np.int64]) -> int:
    """Length of the parameter vector; `axes` [p] says to which axis each feature belongs."""
    if metric is Metric.UNIFORM:
        return 1
    if metric is Metric.AXES:
        return int(axes.max()) + 1
    return axes.size * min(N_FACTORS, axes.size)


def build_projection(
    metric: Metric, parameters: FloatArray, axes: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray | None]:
    """M [p, r], and the precisions per axis where there are any. Parameters are log theta, or M itself."""
    if metric is Metric.FACTORS:
        return parameters.reshape(axes.size, -1), None
    n_axes = int(axes.max()) + 1
    precisions = np.exp(parameters) if metric is Metric.AXES else np.full(n_axes, np.exp(parameters[0]))
    return np.diag(np.sqrt(precisions[axes])), precisions


def pull_back(
    metric: Metric, parameters: FloatArray, axes: NDArray[np.int64], moment: FloatArray
) -> FloatArray:
    """Gradient with respect to the parameters of  -tr(Omega moment),  `moment` [p, p] held fixed."""
    if metric is Metric.FACTORS:
        return np.asarray(-2.0 * moment @ parameters.reshape(axes.size, -1)).reshape(-1)
    per_axis = np.bincount(axes, weights=np.diag(moment))
    if metric is Metric.AXES:
        return np.asarray(-np.exp(parameters) * per_axis)
    return np.array([-np.exp(parameters[0]) * per_axis.sum()])
