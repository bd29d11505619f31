"""LAPACK without the interpreter's lock says bit for bit what scipy says with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.linalg import cho_solve, cholesky, lapack

from optimist.arrays import FloatArray
from optimist.gp.lapack import cholesky_of, inverted, solved


def drawn(size: int, seed: int) -> tuple[FloatArray, FloatArray]:
    stream = np.random.default_rng(seed)
    some = stream.normal(size=(size, size))
    return some @ some.T + 0.1 * np.eye(size), stream.normal(size=size)


@pytest.mark.parametrize("size", [1, 2, 17, 150, 300])
def test_it_is_what_scipy_says(size: int) -> None:
    matrix, right = drawn(size, size)
    before = matrix.copy()
    expected, factor = cholesky(matrix, lower=True, check_finite=False), cholesky_of(matrix)
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_array_equal(factor, expected)
    solution = solved(factor, right)
    np.testing.assert_array_equal(solution, cho_solve((expected, True), right, check_finite=False))
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-8 * np.abs(solution).max() * size)
    found = inverted(factor)
    np.testing.assert_array_equal(found, lapack.dpotri(expected, lower=True)[0])
    whole = np.tril(found) + np.tril(found, -1).T
    np.testing.assert_allclose(whole @ matrix, np.eye(size), atol=1e-6)


def test_what_has_no_factor_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        cholesky_of(np.diag([1.0, -1.0, 1.0]))


def test_side_by_side_they_say_the_same() -> None:
    matrices = [drawn(120, seed)[0] for seed in range(16)]
    alone = [inverted(cholesky_of(matrix)) for matrix in matrices]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda matrix: inverted(cholesky_of(matrix)), matrices))
    np.testing.assert_array_equal(together, alone)
