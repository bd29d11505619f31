"""Posterior against scikit-learn, plain solves and the textbook's projected process; nothing breaks it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from optimist.arrays import FloatArray
from optimist.gp import posterior as posterior_module
from optimist.gp.basis import choose_basis
from optimist.gp.covariance import Hyperparameters
from optimist.gp.posterior import Posterior, exact_posterior, projected_posterior, sturdy_cholesky
from tests.gp.cases import aligned, rotated, smooth
from tests.naive import gp as naive

SEEDS = st.integers(0, 2**32 - 1)
Maker = Callable[[FloatArray, FloatArray, Hyperparameters], Posterior]


def on_basis(
    features: FloatArray, targets: FloatArray, hyper: Hyperparameters, tolerance: float = 1e-2
) -> Posterior:
    return projected_posterior(features, targets, hyper, choose_basis(features, hyper, tolerance=tolerance))


def on_full_basis(features: FloatArray, targets: FloatArray, hyper: Hyperparameters) -> Posterior:
    return on_basis(features, targets, hyper, tolerance=0.0)


BOTH = pytest.mark.parametrize("make", [exact_posterior, on_basis])
ALL = pytest.mark.parametrize("make", [exact_posterior, on_basis, on_full_basis])


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 40), n_features=st.integers(1, 4), slope=st.sampled_from([0.0, 0.1, 3.0]))
def test_exact_posterior_is_that_of_scikit_learn(seed: int, n: int, n_features: int, slope: float) -> None:
    stream = np.random.default_rng(seed)
    signal, bias, noise = np.exp([stream.uniform(-2, 2), stream.uniform(-4, 1), stream.uniform(-6, -2)])
    precisions = np.exp(stream.uniform(-2, 4, n_features))
    features, at = stream.uniform(-1, 1, (n, n_features)), stream.uniform(-2, 2, (30, n_features))
    targets = smooth(features, 1e-3, stream)
    kernel = ConstantKernel(signal) * RBF(precisions**-0.5) + ConstantKernel(bias)
    if slope:
        kernel += ConstantKernel(slope) * DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
    theirs = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(features, targets)
    mean, deviation = theirs.predict(at, return_std=True)
    hyper = aligned(precisions, signal=float(signal), bias=float(bias), noise=float(noise), slope=slope)
    ours = exact_posterior(features, targets, hyper)
    np.testing.assert_allclose(ours.mean(at), mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        ours.variance(at), deviation**2, rtol=1e-8, atol=1e-10 * float(hyper.prior_variance + slope)
    )
    assert ours.jitter == 0.0


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 30), n_features=st.integers(1, 4), factors=st.booleans())
def test_exact_posterior_is_that_of_plain_solves(seed: int, n: int, n_features: int, factors: bool) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned(np.exp(stream.uniform(-2, 4, n_features)))
    if factors:
        hyper = rotated(2.0 * stream.normal(size=(n_features, 2)))
    features, at = stream.uniform(-1, 1, (n, n_features)), stream.uniform(-2, 2, (20, n_features))
    targets = smooth(features, 1e-2, stream)
    mean, variance = exact_posterior(features, targets, hyper).predict(at)
    expected_mean, expected_variance = naive.exact(features, targets, hyper, at)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-10)


@settings(max_examples=40)
@given(
    seed=SEEDS,
    n=st.integers(1, 40),
    n_features=st.integers(1, 3),
    factors=st.booleans(),
    tolerance=st.floats(1e-2, 10.0),
    slope=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_projected_posterior_is_that_of_the_textbook(
    seed: int, n: int, n_features: int, factors: bool, tolerance: float, slope: float
) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned(np.exp(stream.uniform(0, 4, n_features)), slope=slope)
    if factors:
        hyper = rotated(2.0 * stream.normal(size=(n_features, 2)))
    features, at = stream.uniform(-1, 1, (n, n_features)), stream.uniform(-2, 2, (20, n_features))
    targets = smooth(features, 1e-2, stream)
    basis = choose_basis(features, hyper, tolerance=tolerance)
    mean, variance = projected_posterior(features, targets, hyper, basis).predict(at)
    expected_mean, expected_variance = naive.projected(features, targets, hyper, basis.pivots, at)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-8)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-8)


def test_projected_posterior_uses_all_targets_and_not_only_those_of_its_basis() -> None:
    stream = np.random.default_rng(0)
    features = stream.uniform(-1, 1, (200, 1))
    targets = np.sin(2.0 * features[:, 0]) + 0.3 * stream.normal(size=200)
    hyper = aligned([2.0], noise=0.09)
    made = projected_posterior(features, targets, hyper, choose_basis(features, hyper))
    assert len(made.basis) < 12
    at = np.linspace(-1, 1, 50)[:, np.newaxis]
    mean, variance = naive.exact(features, targets, hyper, at)
    np.testing.assert_allclose(made.mean(at), mean, atol=5e-3)
    np.testing.assert_allclose(made.variance(at), variance, atol=1e-3)


@settings(max_examples=60)
@given(seed=SEEDS, n=st.integers(1, 25), n_features=st.integers(1, 3), log_noise=st.floats(-16.0, -2.0))
def test_projected_posterior_on_a_full_basis_is_the_exact_one(
    seed: int, n: int, n_features: int, log_noise: float
) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned(np.exp(stream.uniform(3, 5, n_features)), noise=float(np.exp(log_noise)))
    features, at = stream.uniform(-1, 1, (n, n_features)), stream.uniform(-2, 2, (20, n_features))
    targets = smooth(features, hyper.noise_variance, stream)
    exact, full = exact_posterior(features, targets, hyper), on_full_basis(features, targets, hyper)
    assume(len(full.basis) == n)  # not stopped where the rest is rounding
    # large weights that cancel cost digits: no summation is better than its terms
    slack = 1e-13 * hyper.prior_variance * float(np.abs(full.weights).sum())
    np.testing.assert_allclose(full.mean(at), exact.mean(at), atol=1e-9 + slack)
    np.testing.assert_allclose(full.variance(at), exact.variance(at), atol=1e-8)


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-2])
def test_the_default_tolerance_loses_less_than_the_noise(noise: float) -> None:
    stream = np.random.default_rng(1)
    hyper = aligned([1.0, 0.3], noise=noise)
    features, at = stream.uniform(-1, 1, (80, 2)), stream.uniform(-1, 1, (100, 2))
    targets = smooth(features, noise, stream)
    exact, projected = exact_posterior(features, targets, hyper), on_basis(features, targets, hyper)
    assert len(projected.basis) < 80
    assert np.abs(projected.mean(at) - exact.mean(at)).max() < np.sqrt(noise)
    assert np.abs(projected.variance(at) - exact.variance(at)).max() < noise


@BOTH
def test_one_datum_gives_the_closed_form(make: Maker) -> None:
    hyper = aligned([3.0], signal=2.0, bias=0.5, noise=0.1)
    at = np.array([[0.2], [0.9], [-0.4]])
    cross = 2.0 * np.exp(-1.5 * (at[:, 0] - 0.2) ** 2) + 0.5
    mean, variance = make(np.array([[0.2]]), np.array([1.3]), hyper).predict(at)
    np.testing.assert_allclose(mean, cross / 2.6 * 1.3, rtol=1e-13)
    np.testing.assert_allclose(variance, 2.5 - cross**2 / 2.6, rtol=1e-12)


@ALL
@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(1, 30), log_precision=st.floats(-4.0, 4.0), log_signal=st.floats(-3.0, 5.0))
def test_at_nearly_noiseless_data_the_variance_is_at_most_the_noise_and_the_mean_fits(
    make: Maker, seed: int, n: int, log_precision: float, log_signal: float
) -> None:
    stream = np.random.default_rng(seed)
    noise = 1e-6
    hyper = aligned([np.exp(log_precision)] * 2, signal=float(np.exp(log_signal)), noise=noise)
    features = stream.uniform(-1, 1, (n, 2))
    variance = make(features, np.zeros(n), hyper).variance(features)
    # s^2 k / (s^2 + k) <= s^2 for one datum, less for more; the basis leaves a hundredth of the noise besides
    assert variance.max() <= 1.01 * noise + 1e-9 * hyper.prior_variance


@ALL
@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(1, 30), bias=st.sampled_from([1e-9, 1e-3, 0.3, 50.0]))
def test_far_away_only_the_bias_has_been_learned(make: Maker, seed: int, n: int, bias: float) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned([3.0, 3.0], signal=1.2, bias=bias, noise=1e-3)
    features = stream.uniform(-1, 1, (n, 2))
    made = make(features, smooth(features, 1e-3, stream), hyper)
    variance = made.variance(np.array([[50.0, 0.0], [0.0, -80.0]]))
    # b - b^2 1^T K^-1 1 is left of the constant's variance, between 0 and b
    assert (variance >= 1.2 - 1e-8 * hyper.prior_variance).all()
    assert (variance <= 1.2 + bias).all()


@BOTH
@settings(max_examples=40)
@given(
    seed=SEEDS,
    n=st.integers(1, 40),
    log_precision=st.floats(-8.0, 5.0),
    log_signal=st.floats(-4.0, 6.0),
    log_noise=st.floats(np.log(1e-7), np.log(1e-1)),
)
def test_the_variance_lies_between_nothing_and_the_prior(
    make: Maker, seed: int, n: int, log_precision: float, log_signal: float, log_noise: float
) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned(
        [float(np.exp(log_precision))] * 2, signal=float(np.exp(log_signal)), noise=float(np.exp(log_noise))
    )
    features, at = stream.uniform(-1, 1, (n, 2)), stream.uniform(-3, 3, (50, 2))
    variance = make(features, smooth(features, 1e-3, stream), hyper).variance(np.vstack([at, features]))
    assert (variance >= 0.0).all()
    assert (variance <= hyper.prior_variance).all()


@settings(max_examples=30)
@given(seed=SEEDS, n=st.integers(2, 30))
def test_more_data_never_make_the_exact_posterior_less_certain(seed: int, n: int) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned([4.0, 1.0], noise=1e-3)
    features, at = stream.uniform(-1, 1, (n, 2)), stream.uniform(-2, 2, (30, 2))
    targets = np.zeros(n)
    fewer = exact_posterior(features[: n // 2], targets[: n // 2], hyper).variance(at)
    more = exact_posterior(features, targets, hyper).variance(at)
    assert (more <= fewer + 1e-11).all()


@BOTH
@settings(max_examples=20)
@given(seed=SEEDS, scale=st.floats(-5.0, 5.0))
def test_the_mean_is_linear_in_the_targets_and_the_variance_blind_to_them(
    make: Maker, seed: int, scale: float
) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned([4.0, 1.0])
    features, at = stream.uniform(-1, 1, (20, 2)), stream.uniform(-1, 1, (10, 2))
    first, second = stream.normal(size=20), stream.normal(size=20)
    one, other, both = (make(features, y, hyper) for y in (first, second, first + scale * second))
    np.testing.assert_allclose(both.mean(at), one.mean(at) + scale * other.mean(at), atol=1e-10)
    np.testing.assert_array_equal(both.variance(at), one.variance(at))


@BOTH
@settings(max_examples=20)
@given(seed=SEEDS)
def test_the_order_of_the_data_does_not_matter(make: Maker, seed: int) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned([30.0, 20.0], noise=1e-2)  # so short that the basis is all but complete
    features, at = stream.uniform(-1, 1, (20, 2)), stream.uniform(-1, 1, (10, 2))
    targets = smooth(features, 1e-2, stream)
    order = stream.permutation(20)
    mean, variance = make(features, targets, hyper).predict(at)
    other_mean, other_variance = make(features[order], targets[order], hyper).predict(at)
    np.testing.assert_allclose(other_mean, mean, atol=1e-3)
    np.testing.assert_allclose(other_variance, variance, atol=1e-3)
    if make is exact_posterior:
        np.testing.assert_allclose(other_mean, mean, atol=1e-11)
        np.testing.assert_allclose(other_variance, variance, atol=1e-11)


@BOTH
def test_blocks_of_rows_change_nothing(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = np.random.default_rng(4)
    features, at = stream.uniform(-1, 1, (20, 2)), stream.uniform(-1, 1, (23, 2))
    made = make(features, smooth(features, 1e-2, stream), aligned([4.0, 1.0]))
    mean, variance = made.predict(at)
    monkeypatch.setattr(posterior_module, "BLOCK", 5)
    in_blocks = made.predict(at)
    np.testing.assert_allclose(in_blocks[0], mean, atol=1e-12)
    np.testing.assert_allclose(in_blocks[1], variance, atol=1e-12)
    empty = made.predict(np.empty((0, 2)))
    assert empty[0].shape == empty[1].shape == (0,)


def test_arguments_are_left_alone() -> None:
    stream = np.random.default_rng(5)
    features, targets = stream.uniform(-1, 1, (15, 2)), stream.normal(size=15)
    hyper = aligned([4.0, 1.0])
    basis = choose_basis(features, hyper)
    before = features.copy(), targets.copy(), basis.factor.copy(), hyper.projection.copy()
    exact_posterior(features, targets, hyper).predict(features)
    projected_posterior(features, targets, hyper, basis).predict(features)
    for was, now in zip(before, (features, targets, basis.factor, hyper.projection), strict=True):
        np.testing.assert_array_equal(now, was)


# --- data that tempt a Cholesky decomposition to fail -----------------------------------------------


def awkward(kind: str, n: int, stream: np.random.Generator) -> FloatArray:
    features = stream.uniform(-1, 1, (n, 3))
    if kind == "duplicates":
        return np.repeat(features[: (n + 2) // 3], 3, axis=0)[:n]
    if kind == "identical":
        return np.tile(features[:1], (n, 1))
    if kind == "collinear":
        return np.outer(stream.uniform(-1, 1, n), features[0])
    if kind == "clustered":
        return np.asarray(features[0] + 1e-9 * stream.normal(size=(n, 3)))
    if kind == "two clusters":
        return np.where(stream.uniform(size=(n, 1)) < 0.5, -1.0, 1.0) + 1e-6 * features
    return features


@ALL
@settings(max_examples=60)
@given(
    seed=SEEDS,
    n=st.integers(1, 60),
    kind=st.sampled_from(["duplicates", "identical", "collinear", "clustered", "two clusters", "ordinary"]),
    log_precision=st.floats(-30.0, 8.0),
    log_signal=st.floats(-8.0, 8.0),
    noise=st.sampled_from([0.0, 1e-20, 1e-12, 1e-7, 1e-2, 10.0]),
    constant=st.booleans(),
)
def test_no_data_and_no_hyperparameters_break_the_decompositions(
    make: Maker,
    seed: int,
    n: int,
    kind: str,
    log_precision: float,
    log_signal: float,
    noise: float,
    constant: bool,
) -> None:
    stream = np.random.default_rng(seed)
    hyper = aligned([float(np.exp(log_precision))] * 3, signal=float(np.exp(log_signal)), noise=noise)
    features = awkward(kind, n, stream)
    targets = np.full(n, 0.7) if constant else smooth(features, 1e-4, stream)
    made = make(features, targets, hyper)
    mean, variance = made.predict(np.vstack([features, stream.uniform(-3, 3, (10, 3))]))
    assert np.isfinite(mean).all()
    assert (variance >= 0.0).all()
    assert (variance <= hyper.prior_variance).all()
    assert 0.0 <= made.jitter < 1e-2


@ALL
@pytest.mark.parametrize("kind", ["duplicates", "identical", "collinear", "clustered", "ordinary"])
def test_smooth_targets_are_fitted_on_awkward_data_too(make: Maker, kind: str) -> None:
    stream = np.random.default_rng(6)
    hyper = aligned([0.5, 0.5, 0.5], signal=5.0, noise=1e-7)
    features = awkward(kind, 60, stream)
    targets = np.sin(features.sum(axis=1))
    mean, variance = make(features, targets, hyper).predict(features)
    np.testing.assert_allclose(mean, targets, atol=3e-3)
    assert variance.max() < 1e-5


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_positive_definite_matrix_is_decomposed_without_jitter(scale: float) -> None:
    root = np.random.default_rng(7).normal(size=(8, 8))
    matrix = scale * (root @ root.T + np.eye(8))
    lower, jitter = sturdy_cholesky(matrix)
    assert jitter == 0.0
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(lower @ lower.T, matrix, rtol=1e-12, atol=1e-13 * scale)


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(2, 20), rank=st.integers(1, 19), scale=st.sampled_from([1e-9, 1.0, 1e9]))
def test_a_singular_matrix_gets_a_jitter_as_small_as_its_rounding(
    seed: int, n: int, rank: int, scale: float
) -> None:
    root = np.random.default_rng(seed).normal(size=(n, min(rank, n - 1)))
    matrix = scale * root @ root.T
    lower, jitter = sturdy_cholesky(matrix)
    assert np.isfinite(lower).all()
    assert 0.0 <= jitter <= 1e-10
    np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-9 * n * float(np.diag(matrix).max()))


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(2, 12), below=st.floats(1e-9, 1e-4))
def test_a_slightly_indefinite_matrix_is_lifted_by_little_more_than_it_takes(
    seed: int, n: int, below: float
) -> None:
    vectors, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    sizes = np.linspace(1.0, 2.0, n)
    sizes[0] = -below
    matrix = (vectors * sizes) @ vectors.T
    matrix = 0.5 * (matrix + matrix.T)
    lower, jitter = sturdy_cholesky(matrix)
    added = jitter * float(np.diag(matrix).mean())
    assert below * (1 - 1e-5) <= added <= 11.0 * below
    np.testing.assert_allclose(lower @ lower.T, matrix + added * np.eye(n), atol=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.0], [0.0, -0.5]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 0.0], [0.0, -3.0]],
        [[-1.0, 0.0], [0.0, -1.0]],
    ],
    ids=["zero", "correlation two", "saddle", "no diagonal", "mostly negative", "negative"],
)
def test_a_matrix_far_from_positive_definite_still_gives_a_finite_factor_and_says_so(
    matrix: list[list[float]],
) -> None:
    lower, jitter = sturdy_cholesky(np.array(matrix))
    assert np.isfinite(lower).all()
    np.testing.assert_array_equal(lower, np.tril(lower))
    assert jitter > 0.0
