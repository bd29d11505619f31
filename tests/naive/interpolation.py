"""Multilinear interpolation one corner at a time (Eq. 3 and Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray, IntArray
from optimist.grid import Grid

Index = tuple[int, ...]


def bracket(nodes: Sequence[float], period: float | None, x: float) -> tuple[int, float, bool]:
    """Which cell of one axis `x` lies in, where in it (0 to 1), and whether it had to be clipped.

    The cell behind the last node of a periodic axis leads back to its first.
    """
    closed = list(nodes) if period is None else [*nodes, nodes[0] + period]
    clipped = False
    if period is not None:
        x = x - floor((x - closed[0]) / period) * period
    elif x < closed[0] or x > closed[-1]:
        clipped = True
    x = min(max(x, closed[0]), closed[-1])
    for cell in range(len(closed) - 1):
        if closed[cell] <= x <= closed[cell + 1]:
            return cell, (x - closed[cell]) / (closed[cell + 1] - closed[cell]), clipped
    raise AssertionError("a clipped point lies between two nodes")


def corners(cell: Sequence[int], fractions: Sequence[float]) -> list[tuple[Index, float]]:
    """The 2^d corners of a cell, with their weights: one factor per axis, f or 1 - f."""
    found = []
    for upper in product((0, 1), repeat=len(cell)):
        weight = 1.0
        for up, fraction in zip(upper, fractions, strict=True):
            weight *= float(fraction) if up else 1.0 - float(fraction)
        found.append((tuple(c + up for c, up in zip(cell, upper, strict=True)), weight))
    return found


def flat(index: Sequence[int], shape: Sequence[int]) -> int:
    """Number of an entry in C order."""
    number = 0
    for place, count in zip(index, shape, strict=True):
        assert 0 <= place < count
        number = number * count + place
    return number


def unflat(number: int, shape: Sequence[int]) -> Index:
    """The place of entry `number`; the inverse of `flat`."""
    places: list[int] = []
    for count in reversed(shape):
        places.insert(0, number % count)
        number //= count
    return tuple(places)


def weights_of_cell(
    cell: Sequence[int], fractions: Sequence[float], shape: Sequence[int], periodic: Sequence[bool]
) -> FloatArray:
    """One row of the paper's w_ij: the weight of every node.  [N]"""
    row = np.zeros(int(np.prod(shape)))
    for corner, weight in corners(cell, fractions):
        wrapped = [c % n if turns else c for c, n, turns in zip(corner, shape, periodic, strict=True)]
        row[flat(wrapped, shape)] += weight
    return row


def weights_of_point(
    axes: Sequence[FloatArray], periods: Sequence[float | None], point: FloatArray
) -> FloatArray:
    """The weight of every node in the interpolation at `point`.  [N]"""
    found = [
        bracket(axis.tolist(), period, float(x)) for axis, period, x in zip(axes, periods, point, strict=True)
    ]
    shape = [axis.size for axis in axes]
    periodic = [period is not None for period in periods]
    return weights_of_cell([cell for cell, _, _ in found], [f for _, f, _ in found], shape, periodic)


def expand(grid: Grid, cells: NDArray[np.int32], fractions: FloatArray) -> tuple[IntArray, FloatArray]:
    """The vertices and weights that located points stand for, corner by corner.  [n, 2^d] each"""
    places = np.array(np.unravel_index(cells, grid.padded_shape))  # [d, n]
    vertices, weights = [], []
    for corner in product((0, 1), repeat=grid.n_dims):
        upper = np.array(corner)
        around = (places + upper[:, np.newaxis]) % np.array(grid.shape)[:, np.newaxis]
        vertices.append(np.ravel_multi_index(tuple(around), grid.shape))
        weights.append(np.where(upper == 1, fractions, 1.0 - fractions).prod(axis=1))
    return np.stack(vertices, axis=1), np.stack(weights, axis=1)


def interpolants(grid: Grid, points: FloatArray) -> tuple[IntArray, FloatArray]:
    """Where the grid locates `points` [n, d], so that f(point) = weights . f(vertices).  [n, 2^d] each"""
    cells, fractions, _ = grid.locate(points)
    return expand(grid, cells, fractions)


def dense_weights(grid: Grid, vertices: IntArray, weights: FloatArray) -> FloatArray:
    """The weight of every node.  [n, n_nodes]"""
    table = np.zeros((len(vertices), grid.n_nodes))
    np.add.at(table, (np.arange(len(vertices))[:, np.newaxis], vertices), weights)
    return table


def weight_matrices(
    cells: NDArray[np.int32], fractions: NDArray[np.float32], shape: Sequence[int], periodic: Sequence[bool]
) -> FloatArray:
    """The paper's w_ij^a, dense, from padded cell numbers and fractions.  [A, N, N]"""
    n_nodes, n_actions = cells.shape
    padded = [count + int(turns) for count, turns in zip(shape, periodic, strict=True)]
    weights = np.empty((n_actions, n_nodes, n_nodes))
    for i in range(n_nodes):
        for a in range(n_actions):
            cell = unflat(int(cells[i, a]), padded)
            weights[a, i] = weights_of_cell(cell, fractions[i, a].tolist(), shape, periodic)
    return weights


def self_weights(weights: FloatArray) -> FloatArray:
    """w_ii^a: the diagonals.  [N, A]"""
    return np.stack([np.diag(w) for w in weights], axis=1)
