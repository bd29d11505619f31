"""Hyperparameters and data for the tests of this folder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.gp.covariance import N_FACTORS, Hyperparameters, Metric

METRICS = tuple(Metric)


def aligned(
    precisions: FloatArray | list[float],
    axes: NDArray[np.int64] | None = None,
    *,
    signal: float = 1.0,
    bias: float = 0.3,
    noise: float = 1e-2,
    slope: float = 0.0,
) -> Hyperparameters:
    """A metric aligned to the axes; without `axes`, one feature for each."""
    thetas = np.asarray(precisions, dtype=np.float64)
    of_features = thetas if axes is None else thetas[axes]
    return Hyperparameters(signal, bias, noise, np.diag(np.sqrt(of_features)), thetas, slope)


def rotated(
    projection: FloatArray, *, signal: float = 1.0, bias: float = 0.3, noise: float = 1e-2
) -> Hyperparameters:
    """The factor analysis metric."""
    return Hyperparameters(signal, bias, noise, projection, None)


def some_axes(n_features: int, stream: np.random.Generator) -> NDArray[np.int64]:
    """Which axis each feature belongs to, one or two features for each, in order."""
    counts = stream.integers(1, 3, size=n_features)
    return np.repeat(np.arange(n_features), counts)[:n_features]


def metric_parameters(
    metric: Metric, axes: NDArray[np.int64], stream: np.random.Generator, low: float = -2.0, high: float = 2.0
) -> FloatArray:
    """log theta within [low, high], or M of about that size."""
    if metric is Metric.FACTORS:
        return stream.normal(size=axes.size * min(N_FACTORS, axes.size))
    return stream.uniform(low, high, size=1 if metric is Metric.UNIFORM else int(axes.max()) + 1)


def smooth(features: FloatArray, noise: float, stream: np.random.Generator) -> FloatArray:
    """A wave over the features in a random direction, with noise of variance `noise`."""
    direction = stream.normal(size=features.shape[1])
    clean = np.sin(features @ direction + 0.3)
    return np.asarray(clean + np.sqrt(noise) * stream.normal(size=len(features)))
