"""Where episodes are believed to end: asked at every node of every tree, so in loops.

Most states are far from every end, and a few subtractions say so. Neighbours that are looked up in a tree of
their own cost microseconds each, whatever the answer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.arrays import BoolArray, FloatArray


@njit(nogil=True, cache=True)
def square_apart(one: FloatArray, others: FloatArray, i: int, periodic: BoolArray, most: float) -> float:
    """The squared distance of a point [d] and one of others [n, d], in widths of the box, or above `most`."""
    square = 0.0
    for q in range(one.shape[0]):
        gap = one[q] - others[i, q]
        if periodic[q]:
            gap -= np.floor(gap + 0.5)
        square += gap * gap
        if square > most:
            break
    return square


@njit(nogil=True, cache=True)
def near_ends(
    states: FloatArray,  # [n, d]
    low: FloatArray,  # [d]
    widths: FloatArray,  # [d]
    periodic: BoolArray,  # [d]
    ended: FloatArray,  # [m, d], in widths of the box from `low`
    lived: FloatArray,  # [l, d], the same
    reach: float,  # of the box
    found: BoolArray,  # out [n]
) -> None:
    """Which states are nearer than `reach` to an end, and nearer to it than to any who lived."""
    point = np.empty(states.shape[1])
    for k in range(states.shape[0]):
        for q in range(point.size):
            point[q] = (states[k, q] - low[q]) / widths[q]
        nearest = reach * reach
        some = False
        for i in range(ended.shape[0]):
            square = square_apart(point, ended, i, periodic, nearest)
            if square < nearest:
                nearest, some = square, True
        if some:
            for i in range(lived.shape[0]):
                if square_apart(point, lived, i, periodic, nearest) <= nearest:
                    some = False
                    break
        found[k] = some


@njit(nogil=True, cache=True)
def beyond_curve(
    columns: FloatArray,  # [c, n], the first of them 1
    weights: FloatArray,  # [c (c + 1) / 2], of all products of two
    bound: float,
    found: BoolArray,  # out [n]
) -> None:
    """Where a polynomial of degree two is large."""
    for k in range(columns.shape[1]):
        total, p = 0.0, 0
        for i in range(columns.shape[0]):
            part = 0.0
            for j in range(i, columns.shape[0]):
                part += weights[p] * columns[j, k]
                p += 1
            total += part * columns[i, k]
        found[k] = total >= bound
