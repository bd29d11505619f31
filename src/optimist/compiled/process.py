"""A Gaussian process at a few points: what a rehearsal asks for at every step.

Two matrix products for a single point are mostly the price of calling them; these loops take microseconds.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _lay_out(points, i, centres, scales, periodic, features):
    """Features of raw input i, into `features`; their sum of squares."""
    f = 0
    for q in range(points.shape[1]):
        x = (points[i, q] - centres[q]) / scales[q]
        if periodic[q]:
            features[f], features[f + 1] = np.cos(x), np.sin(x)
            f += 2
        else:
            features[f] = x
            f += 1
    total = 0.0
    for f in range(features.size):
        total += features[f] * features[f]
    return total


@njit(nogil=True, cache=True)
def _dot(left, rows, j):
    """With row j."""
    total = 0.0
    for f in range(left.size):
        total += left[f] * rows[j, f]
    return total


@njit(nogil=True, cache=True)
def predict_rows(
    points,  # [n, k], raw inputs
    centres,  # [k]
    scales,  # [k]
    periodic,  # [k], such coordinates become a cosine and a sine
    projection,  # [p, r]
    basis,  # [m, r], projected
    weights,  # [m]
    signal_variance,
    bias_variance,
    slope_variance,
    points_of_basis,  # [m, p], not projected
    reduction,  # [r, r], of the first r, or [0, 0]: no variance is asked for
    asked,  # [n], where variance is
    mean,  # out [n]
    explained,  # out [n], what of the prior variance is explained, if it is asked for
    lengths,  # out [n], squares of features
):
    """Mean and, if it is asked for, explained variance at every point."""
    n_features, n_projected = projection.shape
    features, projected = np.empty(n_features), np.empty(n_projected)
    cross, along = np.empty(basis.shape[0]), np.empty(reduction.shape[1])
    for i in range(points.shape[0]):
        lengths[i] = _lay_out(points, i, centres, scales, periodic, features)
        for r in range(n_projected):
            total = 0.0
            for f in range(n_features):
                total += features[f] * projection[f, r]
            projected[r] = total
        total = 0.0
        for j in range(basis.shape[0]):
            square = 0.0
            for r in range(n_projected):
                gap = projected[r] - basis[j, r]
                square += gap * gap
            cross[j] = signal_variance * np.exp(-0.5 * square) + bias_variance
            if slope_variance > 0.0:
                cross[j] += slope_variance * _dot(features, points_of_basis, j)
            total += cross[j] * weights[j]
        mean[i] = total
        if asked[i] and reduction.shape[0]:
            along[:] = 0.0
            for j in range(reduction.shape[0]):
                for c in range(along.size):
                    along[c] += cross[j] * reduction[j, c]
            total = 0.0
            for c in range(along.size):
                total += along[c] * along[c]
            explained[i] = total


@njit(nogil=True, cache=True)
def move_together(points, draws, processes, moved):
    """What processes of the same inputs say of every point, each in its own units, into `moved` [n, d].

    Each of the `processes` [d] is what `predict_rows` takes from `centres` to `reduction`, and mean and scale
    of its targets. With `draws` [n, d] they err by so many standard deviations; with [0, d] they do not.
    """
    n_points = points.shape[0]
    asked = np.full(n_points, False)
    for i in range(draws.shape[0]):
        for q in range(draws.shape[1]):
            asked[i] |= draws[i, q] != 0.0
    mean, explained, lengths = np.empty(n_points), np.full(n_points, 0.0), np.empty(n_points)
    for q in range(len(processes)):
        process, target_mean, target_scale = processes[q]
        predict_rows(points, *process, asked, mean, explained, lengths)
        _, _, _, _, _, _, signal_variance, bias_variance, slope_variance, _, _ = process
        for i in range(n_points):
            moved[i, q] = mean[i] * target_scale + target_mean
            if asked[i]:
                prior = signal_variance + bias_variance + slope_variance * lengths[i]
                variance = min(max(prior - explained[i], 0.0), prior)
                moved[i, q] += draws[i, q] * (np.sqrt(variance) * target_scale)
