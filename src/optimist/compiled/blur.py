"""Banded matrices along the axes of an array: what noise makes of values."""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"contract", "nsz", "arcp", "reassoc"}
TILE = 512  # entries that are worked on at a time


@njit(nogil=True, cache=True, fastmath=FAST)
def blur_whole(values, diagonals, periodic, out):
    """The same, all of a short axis at once."""
    n_outer, n_inner = values.shape[0], values.shape[2]
    n_diagonals, n = diagonals.shape
    half = n_diagonals // 2
    size, margin = n * n_inner, half * n_inner
    each, wide, total = np.empty((n_diagonals, size)), np.full(size + 2 * margin, 0.0), np.empty(size)
    for k in range(n_diagonals):
        for x in range(size):
            each[k, x] = diagonals[k, x // n_inner]
    for o in range(n_outer):
        read, row = values[o].reshape(-1), out[o].reshape(-1)
        for x in range(size):
            wide[margin + x] = read[x]
        if periodic:
            for x in range(margin):
                wide[x] = read[(x - margin) % size]
                wide[margin + size + x] = read[x % size]
        for x in range(size):
            total[x] = each[0, x] * wide[x]
        for k in range(1, n_diagonals):
            shifted, weights = wide[k * n_inner : k * n_inner + size], each[k]
            for x in range(size):
                total[x] += weights[x] * shifted[x]
        for x in range(size):
            row[x] = total[x]
        for x in range(size, row.size):
            row[x] = total[x - size]


@njit(nogil=True, cache=True, fastmath=FAST)
def blur_along(values, diagonals, periodic, out):
    """out[o, i] = sum_k diagonals[k, i] values[o, i + k - m], on arrays [n_outer, n, n_inner].

    There are 2 m + 1 `diagonals`. On a `periodic` axis places past the end go round, and its ghost, one place
    more, is the first again; on others nothing stands there.
    """
    n_outer, n_inner = values.shape[0], values.shape[2]
    n_diagonals, n = diagonals.shape
    half = n_diagonals // 2
    if n_inner * n <= 2 * TILE:
        blur_whole(values, diagonals, periodic, out)
        return
    for o in range(n_outer):
        for start in range(0, n_inner, TILE):
            stop = min(start + TILE, n_inner)
            for i in range(n):
                row = out[o, i, start:stop]
                middle, weight = values[o, i, start:stop], diagonals[half, i]
                for j in range(stop - start):
                    row[j] = weight * middle[j]
                for k in range(n_diagonals):
                    weight, place = diagonals[k, i], i + k - half
                    if k == half or weight == 0.0:
                        continue
                    if periodic:
                        place %= n
                    read = values[o, place, start:stop]
                    for j in range(stop - start):
                        row[j] += weight * read[j]
            for i in range(n, values.shape[1]):
                row, first = out[o, i, start:stop], out[o, i - n, start:stop]
                for j in range(stop - start):
                    row[j] = first[j]
