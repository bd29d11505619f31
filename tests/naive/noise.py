"""The expectation over noise, written down as it is said: whole matrices, loops over nodes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from optimist.arrays import FloatArray
from optimist.planning.blur import Blur
from tests.naive.backups import Problem


def matrix_of(blur: Blur, axis: int) -> FloatArray:
    """The matrix along one axis.  [n, n]"""
    band = blur.bands[axis]
    n = blur.grid.shape[axis]
    if band is None:
        return np.eye(n)
    whole = np.zeros((n, n))
    half = len(band.diagonals) // 2
    for i, k in product(range(n), range(-half, half + 1)):
        if band.periodic or 0 <= i + k < n:
            whole[i, (i + k) % n] += band.diagonals[k + half, i]
    return whole


def whole_matrix(blur: Blur) -> FloatArray:
    """Of all axes in turn, on all nodes.  [n_nodes, n_nodes]"""
    grid = blur.grid
    whole: FloatArray = np.eye(grid.n_nodes)
    for axis in range(grid.n_dims):
        along: FloatArray = np.eye(1)
        for other in range(grid.n_dims):
            mine = matrix_of(blur, other) if other == axis else np.eye(grid.shape[other])
            along = np.asarray(np.kron(along, mine), dtype=np.float64)
        share = blur.shares[axis]
        if share is not None:
            along = np.eye(grid.n_nodes) + share[grid.padded_places][:, np.newaxis] * (
                along - np.eye(grid.n_nodes)
            )
        whole = along @ whole
    return whole


def in_expectation(problem: Problem, blur: Blur) -> Problem:
    """The same equation, every successor a distribution."""
    return replace(problem, weights=problem.weights @ whole_matrix(blur))
