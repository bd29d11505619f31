"""Incomplete Cholesky decomposition of a covariance matrix that is never written down.

A column needs hundreds of short vectors: called one after another from Python, they cost more than they
compute, and no second thread gets to work in between.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _covariance_with(features, projected, pivot, variances, column):
    """Of all rows with row `pivot`, into `column`."""
    signal, bias, slope = variances
    for i in range(features.shape[0]):
        square = 0.0
        for r in range(projected.shape[1]):
            gap = projected[i, r] - projected[pivot, r]
            square += gap * gap
        value = signal * np.exp(-0.5 * square) + bias
        if slope != 0.0:
            along = 0.0
            for f in range(features.shape[1]):
                along += features[i, f] * features[pivot, f]
            value += slope * along
        column[i] = value


@njit(nogil=True, cache=True)
def _take_away(columns, count, pivot, column):
    """column -= columns[:count].T @ columns[:count, pivot], four at a time: it is read and written less."""
    m = 0
    while m + 4 <= count:
        a, b, c, d = columns[m, pivot], columns[m + 1, pivot], columns[m + 2, pivot], columns[m + 3, pivot]
        for i in range(column.size):
            column[i] -= (a * columns[m, i] + b * columns[m + 1, i]) + (
                c * columns[m + 2, i] + d * columns[m + 3, i]
            )
        m += 4
    while m < count:
        a = columns[m, pivot]
        for i in range(column.size):
            column[i] -= a * columns[m, i]
        m += 1


@njit(nogil=True, cache=True)
def decompose(
    features,  # [n, p]
    projected,  # [n, r]
    variances,  # of signal, bias and slope
    threshold,  # of the largest residual: all is explained
    residuals,  # in and out [n], of the diagonal
    pivots,  # out [limit]
    columns,  # out [limit, n], of the factor
):
    """How many columns it takes; at least one."""
    count = 0
    while count < pivots.size:
        pivot = np.argmax(residuals)
        if residuals[pivot] <= threshold and count > 0:
            break
        column = columns[count]
        _covariance_with(features, projected, pivot, variances, column)
        _take_away(columns, count, pivot, column)
        root = np.sqrt(residuals[pivot])
        for i in range(column.size):
            column[i] /= root
        for k in range(count):
            column[pivots[k]] = 0.0  # exactly explained already; keeps the triangle free of rounding
        for i in range(column.size):
            residuals[i] -= column[i] * column[i]
        residuals[pivot] = 0.0
        pivots[count] = pivot
        count += 1
    return count
