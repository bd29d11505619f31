"""Banded matrices along the axes of an array: what noise makes of values."""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"contract", "nsz", "arcp", "reassoc"}
TILE = 512  # entries that are worked on at a time, in the nearest cache


@njit(nogil=True, cache=True, fastmath=FAST)
def _mix(total, before, shares):
    """So much of what a blur changed."""
    for x in range(total.size):
        total[x] = before[x] + shares[x] * (total[x] - before[x])


@njit(nogil=True, cache=True, fastmath=FAST)
def _sum(wide, weights, apart, total):
    """total[x] = sum_k weights[k, x] wide[x + k apart], from the middle outwards.

    The first five in one go: one loop for each would spend its time on reading and writing the sum.
    """
    size, half = total.size, weights.shape[0] // 2
    middle, w = wide[half * apart :], weights[half]
    if half == 0:
        for x in range(size):
            total[x] = w[x] * middle[x]
        return
    below, a = wide[(half - 1) * apart :], weights[half - 1]
    above, b = wide[(half + 1) * apart :], weights[half + 1]
    if half == 1:
        for x in range(size):
            total[x] = w[x] * middle[x] + a[x] * below[x] + b[x] * above[x]
        return
    deeper, c = wide[(half - 2) * apart :], weights[half - 2]
    higher, d = wide[(half + 2) * apart :], weights[half + 2]
    for x in range(size):
        near = w[x] * middle[x] + a[x] * below[x] + b[x] * above[x]
        total[x] = near + c[x] * deeper[x] + d[x] * higher[x]
    for k in range(3, half + 1):
        below, a = wide[(half - k) * apart :], weights[half - k]
        above, b = wide[(half + k) * apart :], weights[half + k]
        for x in range(size):
            total[x] += a[x] * below[x] + b[x] * above[x]


@njit(nogil=True, cache=True, fastmath=FAST)
def _go_round(row, diagonals, n_inner, total):
    """What comes from beyond the ends of one periodic row, [places * n_inner]."""
    n_diagonals, n = diagonals.shape
    half = n_diagonals // 2
    for away in range(1, half + 1):
        for i in range(away):
            low, high = i * n_inner, (n - 1 - i) * n_inner
            before, after = (n + i - away) * n_inner, (away - 1 - i) * n_inner
            a, b = diagonals[half - away, i], diagonals[half + away, n - 1 - i]
            for j in range(n_inner):
                total[low + j] += a * row[before + j]
                total[high + j] += b * row[after + j]


@njit(nogil=True, cache=True)
def blur_whole(values, diagonals, periodic, shares, out):
    """The same, all of a short axis at once, and as many of these as fit.

    They lie one behind the other: what is read of the next one has no weight.
    """
    n_outer, places, n_inner = values.shape
    n_diagonals, n = diagonals.shape
    half, each = n_diagonals // 2, places * n_inner
    margin, count = half * n_inner, max(1, TILE // each)
    size, whole = count * each, n_outer * each
    weights, wide = np.full((n_diagonals, size), 0.0), np.full(size + 2 * margin, 0.0)
    for k in range(n_diagonals):
        for i in range(max(0, half - k), min(n, n + half - k)):
            for begin in range(i * n_inner, size, each):
                weights[k, begin : begin + n_inner] = diagonals[k, i]
    read, written, mixed = values.reshape(-1), out.reshape(-1), shares.reshape(-1)
    for start in range(0, whole, size):
        stop = min(start + size, whole)
        first, last = start - margin, stop + margin
        if first >= 0 and last <= whole:
            _sum(read[first:last], weights, n_inner, written[start:stop])
        else:
            inside = slice(max(first, 0), min(last, whole))
            wide[inside.start - first : inside.stop - first] = read[inside]
            _sum(wide, weights, n_inner, written[start:stop])
        for begin in range(start, stop if periodic else start, each):
            _go_round(read[begin : begin + each], diagonals, n_inner, written[begin : begin + each])
        if mixed.size:
            _mix(written[start:stop], read[start:stop], mixed[start:stop])
        for begin in range(start, stop if places > n else start, each):
            for x in range(begin + n * n_inner, begin + each):
                written[x] = written[x - n * n_inner]


@njit(nogil=True, cache=True)
def _place(i, n, periodic):
    """Where place i of an axis of n is; where there is none any (it has no weight)."""
    if periodic:
        return i % n
    return min(max(i, 0), n - 1)


@njit(nogil=True, cache=True, fastmath=FAST)
def _sum_row(rows, i, part, diagonals, periodic, total):
    """total[j] = sum_k diagonals[k, i] rows[i + k - m, part][j], as `_sum` does it."""
    size, half, n = total.size, diagonals.shape[0] // 2, diagonals.shape[1]
    first, last = part
    middle, w = rows[i, first:last], diagonals[half, i]
    if half == 0:
        for j in range(size):
            total[j] = w * middle[j]
        return
    below, a = rows[_place(i - 1, n, periodic), first:last], diagonals[half - 1, i]
    above, b = rows[_place(i + 1, n, periodic), first:last], diagonals[half + 1, i]
    if half == 1:
        for j in range(size):
            total[j] = w * middle[j] + a * below[j] + b * above[j]
        return
    deeper, c = rows[_place(i - 2, n, periodic), first:last], diagonals[half - 2, i]
    higher, d = rows[_place(i + 2, n, periodic), first:last], diagonals[half + 2, i]
    for j in range(size):
        near = w * middle[j] + a * below[j] + b * above[j]
        total[j] = near + c * deeper[j] + d * higher[j]
    for k in range(3, half + 1):
        below, a = rows[_place(i - k, n, periodic), first:last], diagonals[half - k, i]
        above, b = rows[_place(i + k, n, periodic), first:last], diagonals[half + k, i]
        for j in range(size):
            total[j] += a * below[j] + b * above[j]


@njit(nogil=True, cache=True)
def blur_along(values, diagonals, periodic, shares, out):
    """out[o, i] = sum_k diagonals[k, i] values[o, i + k - m], on arrays [n_outer, n, n_inner].

    There are 2 m + 1 `diagonals`. On a `periodic` axis places past the end go round, and its ghost, one place
    more, is the first again; on others nothing stands there. `shares` (of the same shape, or of size 0) say
    how much of the change counts.
    """
    n_inner, n = values.shape[2], diagonals.shape[1]
    if n_inner * n <= 2 * TILE:
        blur_whole(values, diagonals, periodic, shares, out)
        return
    for o in range(values.shape[0]):
        for start in range(0, n_inner, TILE):
            stop = min(start + TILE, n_inner)
            for i in range(n):
                total = out[o, i, start:stop]
                _sum_row(values[o], i, (start, stop), diagonals, periodic, total)
                if shares.size:
                    _mix(total, values[o, i, start:stop], shares[o, i, start:stop])
            for i in range(n, values.shape[1]):
                out[o, i, start:stop] = out[o, i - n, start:stop]
