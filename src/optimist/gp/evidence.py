"""Marginal likelihood, its gradient, and the hyperparameters that maximise it (RW Sec. 5.4).

    log p(y) = -1/2 y^T K^-1 y - 1/2 log |K| - n/2 log 2 pi
    d log p / d theta = 1/2 tr((a a^T - K^-1) dK/d theta),   a = K^-1 y                        (RW Eq. 5.9)

With W = 1/2 (a a^T - K^-1) * v0 E (elementwise), the gradient with respect to the metric needs only
sum_ij W_ij D_ij D_ij^T = 2 X^T (diag(W 1) - W) X, a [p, p] matrix: no array of size n x n x p appears.

Where every point has its image in a mirror among them, K = [[A, B], [B, A]], and sums and differences of the
two know nothing of each other: two matrices of half the size, a quarter of the work (`mirrored_evidence`).

Weak Gaussian priors on the logarithms and bounds keep five points from giving nonsense; the noise has a
floor, since the systems are deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.gp.covariance import (
    Hyperparameters,
    Metric,
    build_projection,
    correlation,
    n_parameters,
    pull_back,
)
from optimist.gp.lapack import cholesky_of, inverted, solved

# logarithms: mean and standard deviation of the prior, lower and upper bound
SIGNAL = (0.0, 2.0, -4.0, 6.0)
BIAS = (-1.0, 2.0, -8.0, 4.0)
SIGNAL_BESIDE = (0.0, 2.0, -10.0, 6.0)  # beside a trend, which may be all there is
SLOPE = (-1.0, 2.0, -12.0, 6.0)
NOISE = (np.log(1e-5), 3.0, np.log(1e-7), np.log(1e-1))
PRECISION = (-2.0, 2.0, -8.0, 5.0)  # centred on length scales of e, on inputs that fill [-1, 1]
FACTOR = (0.0, 1.0, -20.0, 20.0)  # entries of M themselves
AT_BOUND = 1e-3
MOST_NOISE = np.log(2.0)  # where much of it is seen to be needed: a function that had to explain it would ...
MANY = 40  # points: ... and of fewer nobody can tell
N_SCALARS = 3
N_MIRRORED = 2  # copies of a point: itself and its image
IMAGE = 1e-9  # how far a feature may be off and still be that of an image

MAX_ITERATIONS = 50
FEW = 100  # points that a search without a predecessor looks at, where there is a predecessor, too
TOO_UNLIKELY = 1e10  # objective where the covariance is not positive definite


@dataclass(frozen=True, eq=False)
class Fit:
    """Hyperparameters found, and how."""

    hyperparameters: Hyperparameters
    parameters: FloatArray  # the flat vector, for the next warm start
    log_evidence: float  # of the subset used
    log_posterior: float  # with the priors
    n_points: int  # size of the subset
    iterations: int


@dataclass(frozen=True, eq=False)
class _Data:
    features: FloatArray  # [n, p]
    targets: FloatArray  # [n]
    axes: NDArray[np.int64]  # [p]
    metric: Metric
    linear: bool


def unpack(parameters: FloatArray, metric: Metric, axes: NDArray[np.int64]) -> Hyperparameters:
    """Hyperparameters from the flat vector: log v0, log b, log noise, the metric's, log l if there is one."""
    signal, bias, noise = np.exp(parameters[:N_SCALARS])
    of_metric, slope = _cut(parameters, metric, axes)
    projection, precisions = build_projection(metric, of_metric, axes)
    return Hyperparameters(float(signal), float(bias), float(noise), projection, precisions, slope)


def _cut(parameters: FloatArray, metric: Metric, axes: NDArray[np.int64]) -> tuple[FloatArray, float]:
    """The metric's parameters, and l: 0 where the vector has nothing behind them."""
    end = N_SCALARS + n_parameters(metric, axes)
    return parameters[N_SCALARS:end], float(np.exp(parameters[end])) if len(parameters) > end else 0.0


def default_parameters(metric: Metric, axes: NDArray[np.int64], *, linear: bool = False) -> FloatArray:
    """Where a search without a predecessor starts: the middle of the priors."""
    count = n_parameters(metric, axes)
    rest = np.full(count, PRECISION[0])
    if metric is Metric.FACTORS:
        rest = np.eye(axes.size, count // axes.size).reshape(-1) * np.exp(0.5 * PRECISION[0])
    return np.concatenate([[SIGNAL[0], BIAS[0], NOISE[0]], rest, [SLOPE[0]] * linear])


def log_evidence(
    features: FloatArray,
    targets: FloatArray,
    parameters: FloatArray,
    metric: Metric,
    axes: NDArray[np.int64],
) -> tuple[float, FloatArray]:
    """The logarithm of p(y) and its gradient; -inf where K is not positive definite."""
    hyper, (of_metric, slope) = unpack(parameters, metric, axes), _cut(parameters, metric, axes)
    projected = features @ hyper.projection
    signal_part = hyper.signal_variance * correlation(projected, projected)
    total = signal_part + hyper.bias_variance
    if slope:
        total += slope * (features @ features.T)
    total[np.diag_indices(len(targets))] += hyper.noise_variance
    try:
        value, half = _log_density(total, targets)
    except np.linalg.LinAlgError:
        return -np.inf, np.zeros_like(parameters)
    gradient = np.empty_like(parameters)
    gradient[1] = 2.0 * hyper.bias_variance * half.sum()
    gradient[2] = 2.0 * hyper.noise_variance * np.trace(half)
    if slope:
        gradient[-1] = 2.0 * slope * float((features * (half @ features)).sum())
    half *= signal_part.T  # symmetric; transposed, it lies in memory as `half` does
    gradient[0] = 2.0 * half.sum()
    both = half.sum(axis=0) + half.sum(axis=1)
    crossed = features.T @ (half @ features)
    moment = features.T @ (both[:, np.newaxis] * features) - crossed - crossed.T
    gradient[N_SCALARS : N_SCALARS + len(of_metric)] = pull_back(metric, of_metric, axes, moment)
    return value, gradient


def _log_density(total: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    """Of targets [n] whose covariance is `total` [n, n]; LinAlgError where it is not positive definite.

    With it 1/2 (a a^T - K^-1) of RW Eq. 5.9 as half + half^T: LAPACK gives one triangle of the inverse.
    """
    n, factor = len(targets), cholesky_of(total)
    alpha = solved(factor, targets)
    log_determinant = 2.0 * np.log(np.diag(factor)).sum()
    value = -0.5 * (targets @ alpha + log_determinant + n * np.log(2.0 * np.pi))
    half = inverted(factor)
    half[np.diag_indices(n)] *= 0.5
    half *= -0.5
    half += 0.25 * np.outer(alpha, alpha).T
    return float(value), half


def mirrored_evidence(
    features: FloatArray,
    targets: FloatArray,
    signs: FloatArray,
    parameters: FloatArray,
    metric: Metric,
    axes: NDArray[np.int64],
) -> tuple[float, FloatArray]:
    """The same of points [n, p] and, behind them, their images `signs` [p] * points; targets are of both.

    No metric of factors: a mirror would change its distances.
    """
    hyper, (of_metric, slope) = unpack(parameters, metric, axes), _cut(parameters, metric, axes)
    projected, n = features @ hyper.projection, len(features)
    near = hyper.signal_variance * correlation(projected, projected)  # A
    across = hyper.signal_variance * correlation(projected, projected * signs)  # B
    gradient, value = np.zeros_like(parameters), 0.0
    by_near, by_across = np.zeros((n, n), order="F"), np.zeros((n, n), order="F")
    for sign in (1.0, -1.0):  # of sums, of differences
        turned = features[:, signs == sign]  # the others cancel
        total = near + sign * across
        bias = hyper.bias_variance * (1.0 + sign)
        total += bias
        if slope:
            total += 2.0 * slope * (turned @ turned.T)
        total[np.diag_indices(n)] += hyper.noise_variance
        try:
            part, half = _log_density(total, np.sqrt(0.5) * (targets[:n] + sign * targets[n:]))
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros_like(parameters)
        value += part
        gradient[1] += 2.0 * bias * half.sum()
        gradient[2] += 2.0 * hyper.noise_variance * np.trace(half)
        if slope:
            gradient[-1] += 4.0 * slope * float((turned * (half @ turned)).sum())
        by_near += half
        by_across += sign * half
    by_near *= near.T
    by_across *= across.T
    gradient[0] = 2.0 * (by_near.sum() + by_across.sum())
    moments = _moments(features, by_near, 1.0) + _moments(features, by_across, signs)
    gradient[N_SCALARS : N_SCALARS + len(of_metric)] = pull_back(metric, of_metric, axes, np.diag(moments))
    return value, gradient


def _moments(features: FloatArray, half: FloatArray, signs: FloatArray | float) -> FloatArray:
    """1/2 sum_ij W_ij (x_i - s x_j)^2 for W = half + half^T, of each feature.  [p]"""
    both = half.sum(axis=0) + half.sum(axis=1)
    crossed = np.einsum("ij,ij->j", features, half @ features)
    return np.asarray(both @ features**2 - 2.0 * signs * crossed)


def _images(features: FloatArray, metric: Metric) -> FloatArray | None:
    """The signs [p] that make the second half of the points images of the first; None: they are none."""
    n = len(features) // 2
    if metric is Metric.FACTORS or 2 * n != len(features) or n == 0:
        return None
    first, second = features[:n], features[n:]
    same, turned = (np.abs(second - sign * first).max(axis=0) <= IMAGE for sign in (1.0, -1.0))
    return np.where(same, 1.0, -1.0) if (same | turned).all() else None


def fit_hyperparameters(
    features: FloatArray,
    targets: FloatArray,
    axes: NDArray[np.int64],
    metric: Metric = Metric.AXES,
    warm_start: FloatArray | None = None,
    *,
    linear: bool = False,
    copies: int = 1,
) -> Fit:
    """Maximise evidence times priors, from the default start or, if given, from a warm one; the better.

    `linear`: with a trend besides. Of every transition there are so many `copies` among the points.
    """
    data = _Data(features, targets, axes, metric, linear)
    objective = _Objective(data, copies=copies)
    starts = [default_parameters(metric, axes, linear=linear)]
    if warm_start is not None and len(targets) > FEW:  # few say where to begin, much more quickly
        rows = np.linspace(0, len(targets) - 1, FEW).astype(np.intp)
        rough = _search(_Objective(replace(data, features=features[rows], targets=targets[rows])), starts[0])
        starts = [min(warm_start, rough.parameters, starts[0], key=lambda start: objective(start)[0])]
    elif warm_start is not None:
        starts.insert(0, warm_start)
    found = max((_search(objective, start) for start in starts), key=lambda fit: fit.log_posterior)
    if found.parameters[2] < NOISE[3] - AT_BOUND or len(targets) < copies * MANY:
        return found
    wide = [_search(objective, start, most_noise=MOST_NOISE) for start in (found.parameters, starts[-1])]
    return max((found, *wide), key=lambda fit: fit.log_posterior)


class _Objective:
    """Minus the logarithm of evidence times priors, and its gradient. What was asked before is remembered."""

    def __init__(self, data: _Data, *, copies: int = 1) -> None:
        self.data, self.priors = data, _priors(data)
        self._signs = _images(data.features, data.metric) if copies == N_MIRRORED else None
        self._known: dict[bytes, tuple[float, FloatArray]] = {}

    def evidence(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """See `log_evidence`."""
        key, data = parameters.tobytes(), self.data
        if key not in self._known:
            asked = parameters, data.metric, data.axes
            if self._signs is None:
                self._known[key] = log_evidence(data.features, data.targets, *asked)
            else:
                half = data.features[: len(data.features) // 2]
                self._known[key] = mirrored_evidence(half, data.targets, self._signs, *asked)
        return self._known[key]

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self.evidence(parameters)
        if not np.isfinite(value):
            return TOO_UNLIKELY, np.zeros_like(parameters)
        deviations = (parameters - self.priors[:, 0]) / self.priors[:, 1]
        return -value + 0.5 * float(deviations @ deviations), -gradient + deviations / self.priors[:, 1]


def _search(objective: _Objective, start: FloatArray, *, most_noise: float | None = None) -> Fit:
    data, priors = objective.data, objective.priors.copy()
    if most_noise is not None:
        priors[2, 3] = most_noise
    bounds = list(zip(priors[:, 2], priors[:, 3], strict=True))
    start = np.clip(start, priors[:, 2], priors[:, 3])
    from scipy.optimize import minimize  # noqa: PLC0415  (see `covariance`)

    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MAX_ITERATIONS}
    )
    best = found.x if found.fun <= objective(start)[0] else start
    return Fit(
        hyperparameters=unpack(best, data.metric, data.axes),
        parameters=best,
        log_evidence=objective.evidence(best)[0],
        log_posterior=-objective(best)[0],
        n_points=len(data.targets),
        iterations=int(found.nit),
    )


def _priors(data: _Data) -> FloatArray:
    """Mean, deviation and bounds of every parameter.  [n_parameters, 4]"""
    each = [FACTOR if data.metric is Metric.FACTORS else PRECISION] * n_parameters(data.metric, data.axes)
    if data.linear:
        return np.array([SIGNAL_BESIDE, BIAS, NOISE, *each, SLOPE])
    return np.array([SIGNAL, BIAS, NOISE, *each])
