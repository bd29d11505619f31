"""Banded matrices along the axes of an array: what noise makes of values."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "arcp"})
def blur_along(values, firsts, weights, out):
    """out[o, i] = sum_k weights[i, k] values[o, firsts[i] + k], on arrays [n_outer, n, n_inner].

    Places that run past the end go round: weights of 0 may stand there.
    """
    n_outer, n, n_inner = values.shape
    width = weights.shape[1]
    for o in range(n_outer):
        for i in range(n):
            row = out[o, i]
            first = firsts[i]
            if n_inner == 1:
                total = 0.0
                for k in range(width):
                    place = first + k
                    if place >= n:
                        place -= n
                    total += weights[i, k] * values[o, place, 0]
                row[0] = total
                continue
            for k in range(width):
                weight = weights[i, k]
                place = first + k
                if place >= n:
                    place -= n
                read = values[o, place]
                if k == 0:
                    for j in range(n_inner):
                        row[j] = weight * read[j]
                elif weight != 0.0:
                    for j in range(n_inner):
                        row[j] += weight * read[j]
