"""Displacements between many points at once: what following paths over a whole grid spends its time on."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, inline="always")
def _shorter(difference, period):
    """The short way round; a period of 0 is none."""
    if period > 0.0:
        return difference - np.floor(difference / period + 0.5) * period
    return difference


@njit(nogil=True, cache=True)
def displace(
    points,  # [n, d]
    next_points,  # [n, d]
    uncertainty,  # [n]
    periods,  # [d], 0 where an axis is not periodic
    places,  # [n], rows of `out`
    out,  # [at least n, at least d + 1]
):
    """out[places[k]] = from point to next point, the short way round on periodic axes, and how unsure."""
    n_dims = points.shape[1]
    for k in range(points.shape[0]):
        row = places[k]
        for q in range(n_dims):
            out[row, q] = _shorter(next_points[k, q] - points[k, q], periods[q])
        out[row, n_dims] = uncertainty[k]


@njit(nogil=True, cache=True)
def crossed(
    origins,  # [n, d]
    points,  # [n, d]
    widths,  # [m, d], of the cells
    rows,  # [n], which of `widths` belongs to each
    periods,  # [d]
    out,  # [n]
):
    """out[k] = how far it is from origin to point, in widths, along the axis where that is most."""
    for k in range(origins.shape[0]):
        most = 0.0
        for q in range(origins.shape[1]):
            share = abs(_shorter(points[k, q] - origins[k, q], periods[q])) / widths[rows[k], q]
            most = max(most, share)
        out[k] = most
