"""Gaussian processes from the textbook (Rasmussen & Williams, RW): loops, plain solves, explicit inverses."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

from optimist.arrays import FloatArray, IntArray
from optimist.gp.covariance import Hyperparameters, Metric


def omega(metric: Metric, parameters: FloatArray, axes: IntArray) -> FloatArray:
    """theta I, diag(theta of each feature's axis), or the sum of outer products of the columns of M."""
    p = axes.size
    matrix = np.zeros((p, p))
    if metric is Metric.UNIFORM:
        for i in range(p):
            matrix[i, i] = np.exp(parameters[0])
    elif metric is Metric.AXES:
        for i in range(p):
            matrix[i, i] = np.exp(parameters[axes[i]])
    else:
        for column in parameters.reshape(p, -1).T:
            matrix += np.outer(column, column)
    return matrix


def covariance(
    left: FloatArray, right: FloatArray, signal: float, bias: float, metric_matrix: FloatArray
) -> FloatArray:
    """v0 exp(-1/2 D^T Omega D) + b, one pair at a time.  [n, m]"""
    values = np.empty((len(left), len(right)))
    for i, x in enumerate(left):
        for j, z in enumerate(right):
            difference = x - z
            values[i, j] = signal * np.exp(-0.5 * difference @ metric_matrix @ difference) + bias
    return values


def covariance_under(left: FloatArray, right: FloatArray, hyper: Hyperparameters) -> FloatArray:
    """The same, one row at a time, from differences: no cancellation of squares.  [n, m]"""
    metric_matrix = hyper.projection @ hyper.projection.T
    values = np.empty((len(left), len(right)))
    for i, x in enumerate(left):
        differences = x - right
        squares = ((differences @ metric_matrix) * differences).sum(axis=1)
        values[i] = hyper.signal_variance * np.exp(-0.5 * squares) + hyper.bias_variance
        for j, z in enumerate(right):
            values[i, j] += hyper.slope_variance * sum(x * z)
    return values


def prior_under(at: FloatArray, hyper: Hyperparameters) -> FloatArray:
    """k(x, x), a point at a time.  [n]"""
    return np.array([covariance_under(x[np.newaxis], x[np.newaxis], hyper)[0, 0] for x in at])


def log_evidence(features: FloatArray, targets: FloatArray, hyper: Hyperparameters) -> float:
    """log N(y; 0, K + s^2 I)."""
    n = len(targets)
    total = covariance_under(features, features, hyper) + hyper.noise_variance * np.eye(n)
    return float(multivariate_normal.logpdf(targets, mean=np.zeros(n), cov=total))


def exact(
    features: FloatArray, targets: FloatArray, hyper: Hyperparameters, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """RW Eq. 2.25 and 2.26: k^T (K + s^2 I)^-1 y and k(x, x) - k^T (K + s^2 I)^-1 k.  [n], [n]"""
    total = covariance_under(features, features, hyper) + hyper.noise_variance * np.eye(len(targets))
    cross = covariance_under(at, features, hyper)
    mean = cross @ np.linalg.solve(total, targets)
    explained = np.array([k @ np.linalg.solve(total, k) for k in cross])
    return mean, prior_under(at, hyper) - explained


def projected(
    features: FloatArray, targets: FloatArray, hyper: Hyperparameters, pivots: IntArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """RW Eq. 8.14 and 8.27, the projected process on the rows `pivots`.  [n], [n]"""
    noise = hyper.noise_variance
    among = covariance_under(features[pivots], features[pivots], hyper)  # K_mm
    to_all = covariance_under(features[pivots], features, hyper)  # K_mn
    inner_inverse = np.linalg.inv(noise * among + to_all @ to_all.T)
    among_inverse = np.linalg.inv(among)
    mean, variance = np.empty(len(at)), np.empty(len(at))
    prior = prior_under(at, hyper)
    for i, k in enumerate(covariance_under(at, features[pivots], hyper)):
        mean[i] = k @ inner_inverse @ to_all @ targets
        variance[i] = prior[i] - k @ among_inverse @ k + noise * k @ inner_inverse @ k
    return mean, variance


def incomplete_cholesky(
    matrix: FloatArray, threshold: float, max_columns: int
) -> tuple[IntArray, FloatArray]:
    """Greedy pivots and the factor's columns, the whole Schur complement computed anew at every step."""
    pivots: list[int] = []
    columns: list[FloatArray] = []
    while len(pivots) < min(max_columns, len(matrix)):
        complement = matrix
        if pivots:
            across = matrix[:, pivots]
            complement = matrix - across @ np.linalg.solve(matrix[np.ix_(pivots, pivots)], across.T)
        pivot = int(np.diag(complement).argmax())
        if pivots and complement[pivot, pivot] <= threshold:
            break
        columns.append(complement[:, pivot] / np.sqrt(complement[pivot, pivot]))
        pivots.append(pivot)
    return np.array(pivots, dtype=np.int64), np.column_stack(columns)
