"""Locating points in a rectilinear grid, and multilinear interpolation there.

Values are held in a padded array: every periodic axis has one ghost node behind its last, a copy of
its first, so that the 2^d corners of any cell lie at constant offsets from its lowest corner.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(nogil=True, cache=True)
def locate(
    points: FloatArray,  # [n, d]
    nodes: FloatArray,  # the axes one after another, periodic ones with their ghost
    axis_starts: IntArray,  # [d + 1] into `nodes`
    periods: FloatArray,  # [d], 0 on axes that are not periodic
    inverse_spacings: FloatArray,  # [d], 0 on axes that are not uniform
    strides: IntArray,  # [d] of the padded array
    cells: NDArray[np.int32],  # out [n]: padded index of the lowest corner
    fractions: FloatArray,  # out [n, d] in [0, 1]
) -> int:
    """Cell and fractions of every point; points outside are clipped. Returns how many were."""
    n_clipped = 0
    for k in range(points.shape[0]):
        cell = 0
        clipped = False
        for q in range(points.shape[1]):
            start = axis_starts[q]
            last_cell = axis_starts[q + 1] - start - 2
            first, last = nodes[start], nodes[start + last_cell + 1]
            x = points[k, q]
            if periods[q] > 0.0:
                x -= np.floor((x - first) / periods[q]) * periods[q]
            elif x < first or x > last:
                clipped = True
            x = min(max(x, first), last)
            if inverse_spacings[q] > 0.0:
                index = min(int((x - first) * inverse_spacings[q]), last_cell)
            else:
                index = 0
                above = last_cell + 1
                while above - index > 1:
                    middle = (index + above) // 2
                    if nodes[start + middle] <= x:
                        index = middle
                    else:
                        above = middle
            left = nodes[start + index]
            fraction = (x - left) / (nodes[start + index + 1] - left)
            fractions[k, q] = min(max(fraction, 0.0), 1.0)
            cell += index * strides[q]
        cells[k] = cell
        n_clipped += clipped
    return n_clipped


# Multilinear interpolation of the padded array. Two adjacent entries are carried through together:
# `v[i]` and `v[i + 1]` are two neighbours along the last axis (V form) or two actions of one node
# (Q form). One function per number of axes, each two of the one below; the form a + f (b - a)
# reproduces constants exactly. Indices are unsigned: numba would otherwise test every one of them for
# a negative value. Strides come as a tuple: its length, the number of axes, is known to the compiler.

ONE = np.uint64(1)
FAST = {"contract"}  # fused multiply-add and nothing else: NaN and infinity keep their meaning


@njit(nogil=True, inline="always", fastmath=FAST)
def _pair1(v, i, s, f):
    a, b = v[i], v[i + ONE]
    return a + f * (v[i + s] - a), b + f * (v[i + s + ONE] - b)


@njit(nogil=True, inline="always", fastmath=FAST)
def _pair2(v, i, s, t, f, g):
    a, b = _pair1(v, i, t, g)
    c, d = _pair1(v, i + s, t, g)
    return a + f * (c - a), b + f * (d - b)


@njit(nogil=True, inline="always", fastmath=FAST)
def _pair3(v, i, s, t, u, f, g, h):
    a, b = _pair2(v, i, t, u, g, h)
    c, d = _pair2(v, i + s, t, u, g, h)
    return a + f * (c - a), b + f * (d - b)


@njit(nogil=True, inline="always", fastmath=FAST)
def _pair4(v, i, s, t, u, w, f, g, h, k):
    a, b = _pair3(v, i, t, u, w, g, h, k)
    c, d = _pair3(v, i + s, t, u, w, g, h, k)
    return a + f * (c - a), b + f * (d - b)


@njit(nogil=True, inline="always", fastmath=FAST)
def _pair5(v, i, s, t, u, w, x, f, g, h, k, m):
    a, b = _pair4(v, i, t, u, w, x, g, h, k, m)
    c, d = _pair4(v, i + s, t, u, w, x, g, h, k, m)
    return a + f * (c - a), b + f * (d - b)


@njit(nogil=True, inline="always", fastmath=FAST)
def _pair6(v, i, s, t, u, w, x, y, f, g, h, k, m, n):
    a, b = _pair5(v, i, t, u, w, x, y, g, h, k, m, n)
    c, d = _pair5(v, i + s, t, u, w, x, y, g, h, k, m, n)
    return a + f * (c - a), b + f * (d - b)


@njit(nogil=True, inline="always")
def _two1(v, i, s, f):
    return _pair1(v, i, s[0], f[0])


@njit(nogil=True, inline="always")
def _two2(v, i, s, f):
    return _pair2(v, i, s[0], s[1], f[0], f[1])


@njit(nogil=True, inline="always")
def _two3(v, i, s, f):
    return _pair3(v, i, s[0], s[1], s[2], f[0], f[1], f[2])


@njit(nogil=True, inline="always")
def _two4(v, i, s, f):
    return _pair4(v, i, s[0], s[1], s[2], s[3], f[0], f[1], f[2], f[3])


@njit(nogil=True, inline="always")
def _two5(v, i, s, f):
    return _pair5(v, i, s[0], s[1], s[2], s[3], s[4], f[0], f[1], f[2], f[3], f[4])


@njit(nogil=True, inline="always")
def _two6(v, i, s, f):
    return _pair6(
        v, i, s[0], s[1], s[2], s[3], s[4], s[5], f[0], f[1], f[2], f[3], f[4], f[5]
    )  # fmt: skip


@njit(nogil=True, inline="always")
def _two0(v, i, s, f):
    return v[i], v[i + ONE]


_TWO = (_two0, _two1, _two2, _two3, _two4, _two5, _two6)


def interpolate_two(v, i, s, f):
    """Entries `i` and `i + 1` of `v`, interpolated over all axes (strides `s`, fractions `f`)."""
    raise NotImplementedError("compiled code only")


@overload(interpolate_two, inline="always")
def _choose_two(v, i, s, f):
    two = _TWO[len(s)]

    def over_all(v, i, s, f):
        return two(v, i, s, f)

    return over_all


def interpolate(v, i, s, f):
    """`v` at cell `i`, where the last of the strides `s` is 1."""
    raise NotImplementedError("compiled code only")


@overload(interpolate, inline="always")
def _choose(v, i, s, f):
    two, last = _TWO[len(s) - 1], len(s) - 1

    def along_last(v, i, s, f):
        a, b = two(v, i, s, f)
        return a + f[last] * (b - a)

    return along_last


@njit(nogil=True, cache=True)
def interpolate_many(v, cells, fractions, strides, out):
    """out[k, a] = column a of `v` [n_padded, n_actions] at point k."""
    n_actions = v.shape[1]
    for k in range(cells.size):
        for a in range(n_actions):
            total = 0.0
            for corner in range(1 << len(strides)):
                weight = 1.0
                j = int(cells[k])
                for q in range(len(strides)):
                    if corner >> q & 1:
                        weight *= fractions[k, q]
                        j += strides[q]
                    else:
                        weight *= 1.0 - fractions[k, q]
                if weight != 0.0:
                    total += weight * v[j, a]
            out[k, a] = total
