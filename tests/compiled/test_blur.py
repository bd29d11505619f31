"""Banded matrices along an axis, against whole matrices."""

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.compiled.blur import TILE, blur_along

NO_SHARES = np.empty((0, 0, 0))


def whole(diagonals: FloatArray, *, periodic: bool) -> FloatArray:
    """The matrix of these diagonals.  [n, n]"""
    n_diagonals, n = diagonals.shape
    matrix = np.zeros((n, n))
    for k in range(n_diagonals):
        for i in range(n):
            place = i + k - n_diagonals // 2
            if periodic or 0 <= place < n:
                matrix[i, place % n] += diagonals[k, i]
    return matrix


@pytest.mark.parametrize("some", [False, True], ids=["all of it", "a share of it"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("reach", [0, 1, 2, 3, 5])
@pytest.mark.parametrize(
    "shape",
    [(1, 11, 1), (200, 11, 1), (3, 12, 7), (2, 11, 2 * TILE // 11 + 1), (1, 13, 2 * TILE + 5)],
)
def test_every_axis_is_blurred_as_by_its_matrix(
    shape: tuple[int, int, int], reach: int, periodic: bool, some: bool
) -> None:
    n = shape[1]
    random = np.random.default_rng(reach)
    diagonals = random.uniform(0.1, 1.0, (2 * reach + 1, n))
    if not periodic:
        for k in range(2 * reach + 1):
            beyond = np.arange(n) + k - reach
            diagonals[k, (beyond < 0) | (beyond >= n)] = 0.0
    inner = random.standard_normal(shape)
    shares = random.uniform(0.0, 1.0, shape) if some else np.ones(shape)
    expected = np.einsum("ij,ojk->oik", whole(diagonals, periodic=periodic), inner)
    expected = inner + shares * (expected - inner)

    def with_ghost(values: FloatArray) -> FloatArray:
        return np.concatenate([values, values[:, :1]], axis=1) if periodic else values

    out = np.full(with_ghost(inner).shape, np.nan)
    mixed = np.ascontiguousarray(with_ghost(shares)) if some else NO_SHARES
    blur_along(np.ascontiguousarray(with_ghost(inner)), diagonals, periodic, mixed, out)
    np.testing.assert_allclose(out, with_ghost(expected), rtol=1e-12, atol=1e-12)
