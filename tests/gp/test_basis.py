"""Incomplete Cholesky decomposition against Schur complements, and the bounds it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.gp.basis import ROUNDING, choose_basis
from optimist.gp.covariance import Hyperparameters
from tests.gp.cases import aligned, rotated
from tests.naive import gp as naive

SEEDS = st.integers(0, 2**32 - 1)


def points_of(seed: int, n: int, n_features: int) -> FloatArray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=(n, n_features))


def promised(hyper: Hyperparameters, tolerance: float) -> float:
    """Largest residual variance where the decomposition may stop by itself."""
    return max(tolerance * hyper.noise_variance, ROUNDING * hyper.prior_variance)


@settings(max_examples=60)
@given(
    seed=SEEDS,
    n=st.integers(1, 30),
    n_features=st.integers(1, 4),
    precision=st.floats(0.3, 30.0),
    tolerance=st.floats(1e-3, 3.0),
    max_basis=st.integers(1, 40),
)
def test_pivots_and_factor_are_those_of_the_schur_complements(
    seed: int, n: int, n_features: int, precision: float, tolerance: float, max_basis: int
) -> None:
    points = points_of(seed, n, n_features)
    # the prior variance is the same everywhere: the first pivot is a tie, which the first row wins in both
    hyper = aligned([precision] * n_features, noise=1e-1)
    values = naive.covariance_under(points, points, hyper)
    np.fill_diagonal(values, hyper.prior_variance)
    basis = choose_basis(points, hyper, max_basis=max_basis, tolerance=tolerance)
    pivots, factor = naive.incomplete_cholesky(values, promised(hyper, tolerance), max_basis)
    np.testing.assert_array_equal(basis.pivots, pivots)
    np.testing.assert_allclose(basis.factor, factor, atol=1e-9)
    residuals = np.diag(values - factor @ factor.T)
    assert basis.largest_residual == pytest.approx(max(float(residuals.max()), 0.0), abs=1e-10)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pivots_are_those_of_the_schur_complements_under_a_rotated_metric(seed: int) -> None:
    points = points_of(seed, 25, 3)
    hyper = rotated(np.random.default_rng(seed).normal(size=(3, 2)) * 2.0, noise=1e-2)
    values = naive.covariance_under(points, points, hyper)
    basis = choose_basis(points, hyper)
    pivots, factor = naive.incomplete_cholesky(values, promised(hyper, 1e-2), 1000)
    np.testing.assert_array_equal(basis.pivots, pivots)
    np.testing.assert_allclose(basis.factor, factor, atol=1e-8)


@settings(max_examples=60)
@given(
    seed=SEEDS,
    n=st.integers(1, 120),
    n_features=st.integers(1, 4),
    log_precision=st.floats(-8.0, 5.0),
    log_noise=st.floats(-16.0, -2.3),
    log_signal=st.floats(-4.0, 6.0),
    tolerance=st.sampled_from([0.0, 1e-6, 1e-2, 1.0]),
)
def test_what_is_left_unexplained_is_below_the_tolerance_everywhere(
    seed: int,
    n: int,
    n_features: int,
    log_precision: float,
    log_noise: float,
    log_signal: float,
    tolerance: float,
) -> None:
    points = points_of(seed, n, n_features)
    hyper = aligned(
        [float(np.exp(log_precision))] * n_features, signal=float(np.exp(log_signal)), noise=np.exp(log_noise)
    )
    basis = choose_basis(points, hyper, tolerance=tolerance)
    residuals = hyper.prior_variance - (basis.factor**2).sum(axis=1)
    assert not basis.cut
    # the residuals are kept by subtraction: a few digits of the prior variance are rounding
    assert residuals.max() <= promised(hyper, tolerance) + 1e-14 * hyper.prior_variance * (
        1 + basis.pivots.size
    )
    assert 0.0 <= basis.largest_residual <= promised(hyper, tolerance)
    assert residuals.min() >= -1e-13 * hyper.prior_variance * (1 + basis.pivots.size)


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 60), n_features=st.integers(1, 3), tolerance=st.sampled_from([0.0, 1e-2]))
def test_factor_times_its_transpose_is_the_covariance_up_to_the_largest_residual(
    seed: int, n: int, n_features: int, tolerance: float
) -> None:
    points = points_of(seed, n, n_features)
    hyper = aligned([3.0] * n_features, noise=1e-3)
    values = naive.covariance_under(points, points, hyper)
    basis = choose_basis(points, hyper, tolerance=tolerance)
    left = values - basis.factor @ basis.factor.T
    # the remainder is positive semidefinite: no entry is larger than its largest diagonal one
    assert np.abs(left).max() <= basis.largest_residual + 1e-11
    assert np.linalg.eigvalsh(left).min() >= -1e-11 * n


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 40), max_basis=st.integers(1, 45))
def test_the_basis_is_never_larger_than_allowed_and_tells_when_it_was_cut(
    seed: int, n: int, max_basis: int
) -> None:
    points = points_of(seed, n, 3)
    hyper = aligned([100.0, 100.0, 100.0], noise=1e-3)  # short length scales: every point is needed
    basis = choose_basis(points, hyper, max_basis=max_basis)
    assert basis.pivots.size <= min(max_basis, n)
    assert basis.factor.shape == (n, basis.pivots.size)
    unlimited = choose_basis(points, hyper)
    assert basis.cut == (max_basis < unlimited.pivots.size)
    np.testing.assert_array_equal(basis.pivots, unlimited.pivots[:max_basis])  # greedy: a shorter prefix
    if basis.cut:
        assert basis.pivots.size == max_basis
        assert basis.largest_residual > promised(hyper, 1e-2)
    else:
        assert basis.largest_residual <= promised(hyper, 1e-2)


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 15), copies=st.integers(2, 4), log_noise=st.floats(-30.0, -2.0))
def test_duplicate_points_are_never_chosen_twice(seed: int, n: int, copies: int, log_noise: float) -> None:
    stream = np.random.default_rng(seed)
    points = np.repeat(points_of(seed, n, 2), copies, axis=0)[stream.permutation(n * copies)]
    basis = choose_basis(points, aligned([20.0, 5.0], noise=np.exp(log_noise)), tolerance=0.0)
    assert len(np.unique(basis.pivots)) == basis.pivots.size
    assert len(np.unique(points[basis.pivots], axis=0)) == basis.pivots.size


def test_a_single_point_is_its_own_basis() -> None:
    hyper = aligned([1.0, 2.0], signal=1.5, bias=0.25)
    basis = choose_basis(np.array([[0.3, -0.2]]), hyper)
    np.testing.assert_array_equal(basis.pivots, [0])
    np.testing.assert_allclose(basis.factor, [[np.sqrt(1.75)]], rtol=1e-15)
    assert basis.largest_residual == 0.0
    assert not basis.cut


@pytest.mark.parametrize("tolerance", [0.0, 1e-2])
def test_identical_points_give_one_pivot(tolerance: float) -> None:
    hyper = aligned([1.0, 2.0], signal=1.5, bias=0.3, noise=1e-7)
    basis = choose_basis(np.tile([0.3, -0.2], (50, 1)), hyper, tolerance=tolerance)
    np.testing.assert_array_equal(basis.pivots, [0])
    np.testing.assert_allclose(basis.factor, np.sqrt(1.8), rtol=1e-15)


def test_one_pivot_is_chosen_however_large_the_tolerance() -> None:
    basis = choose_basis(points_of(0, 10, 2), aligned([1.0, 1.0], noise=0.1), tolerance=1e6)
    assert basis.pivots.size == 1
    assert not basis.cut


@settings(max_examples=30)
@given(seed=SEEDS, n=st.integers(1, 50), log_precision=st.floats(-8.0, 5.0))
def test_rows_at_the_pivots_are_lower_triangular_with_a_positive_diagonal(
    seed: int, n: int, log_precision: float
) -> None:
    points = points_of(seed, n, 2)
    basis = choose_basis(points, aligned([float(np.exp(log_precision))] * 2, noise=1e-6))
    rows = basis.factor[basis.pivots]
    np.testing.assert_array_equal(rows, np.tril(rows))
    assert (np.diag(rows) > 0.0).all()
    assert (np.diff(np.diag(rows)) <= 1e-7).all()  # greedy: each pivot was explained no worse than the last


def test_a_full_basis_reproduces_the_covariance() -> None:
    points = points_of(4, 40, 3)
    hyper = aligned([20.0, 50.0, 30.0], noise=1e-7)
    basis = choose_basis(points, hyper, tolerance=0.0)
    assert basis.pivots.size == 40
    np.testing.assert_array_equal(np.sort(basis.pivots), np.arange(40))
    np.testing.assert_allclose(
        basis.factor @ basis.factor.T, naive.covariance_under(points, points, hyper), atol=1e-13
    )
