"""Evidence against scipy and scikit-learn; its gradient against differences; what a search finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from optimist.arrays import FloatArray
from optimist.gp.covariance import Metric
from optimist.gp.evidence import (
    BIAS,
    FACTOR,
    MAX_ITERATIONS,
    NOISE,
    PRECISION,
    SIGNAL,
    Fit,
    default_parameters,
    fit_hyperparameters,
    log_evidence,
    mirrored_evidence,
    unpack,
)
from optimist.gp.posterior import exact_posterior
from tests.gp.cases import METRICS, metric_parameters, smooth, some_axes
from tests.naive import gp as naive

SEEDS = st.integers(0, 2**32 - 1)
EVERY_METRIC = pytest.mark.parametrize("metric", METRICS)
IntArray = NDArray[np.int64]


def draw_parameters(
    metric: Metric,
    axes: IntArray,
    stream: np.random.Generator,
    log_noise: tuple[float, float] = (-7.0, -2.0),
    *,
    linear: bool = False,
) -> FloatArray:
    scalars = [stream.uniform(-2, 2), stream.uniform(-3, 1), stream.uniform(*log_noise)]
    slopes = [stream.uniform(-4, 2)] if linear else []
    return np.concatenate([scalars, metric_parameters(metric, axes, stream), slopes])


def bounds(metric: Metric, axes: IntArray) -> FloatArray:
    """Mean, deviation, lower and upper bound of each parameter, spelt out.  [n_parameters, 4]"""
    n_rest = default_parameters(metric, axes).size - 3
    return np.array([SIGNAL, BIAS, NOISE] + [FACTOR if metric is Metric.FACTORS else PRECISION] * n_rest)


def log_posterior(
    features: FloatArray, targets: FloatArray, parameters: FloatArray, metric: Metric, axes: IntArray
) -> float:
    """Evidence times priors, without their constants."""
    table = bounds(metric, axes)
    evidence = naive.log_evidence(features, targets, unpack(parameters, metric, axes))
    return evidence - 0.5 * float((((parameters - table[:, 0]) / table[:, 1]) ** 2).sum())


def standardised(values: FloatArray) -> FloatArray:
    return np.asarray((values - values.mean()) / values.std())


@EVERY_METRIC
@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 25), n_features=st.integers(1, 5), linear=st.booleans())
def test_evidence_is_the_density_of_a_multivariate_normal(
    metric: Metric, seed: int, n: int, n_features: int, linear: bool
) -> None:
    stream = np.random.default_rng(seed)
    axes = some_axes(n_features, stream)
    parameters = draw_parameters(metric, axes, stream, linear=linear)
    features = stream.uniform(-1, 1, (n, n_features))
    targets = smooth(features, 1e-2, stream)
    value, gradient = log_evidence(features, targets, parameters, metric, axes)
    expected = naive.log_evidence(features, targets, unpack(parameters, metric, axes))
    assert value == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert gradient.shape == parameters.shape


@EVERY_METRIC
@settings(max_examples=30)
@given(seed=SEEDS, n=st.integers(2, 20), n_features=st.integers(1, 4), linear=st.booleans())
def test_the_gradient_is_that_of_finite_differences(
    metric: Metric, seed: int, n: int, n_features: int, linear: bool
) -> None:
    stream = np.random.default_rng(seed)
    axes = some_axes(n_features, stream)
    parameters = draw_parameters(metric, axes, stream, linear=linear)
    features = stream.uniform(-1, 1, (n, n_features))
    targets = smooth(features, 1e-2, stream)
    _, gradient = log_evidence(features, targets, parameters, metric, axes)
    expected = np.empty_like(parameters)
    for i in range(parameters.size):
        # central differences with steps h and h/2, extrapolated: an error of h^4
        estimates = []
        for step in (1e-3, 5e-4):
            up, down = parameters.copy(), parameters.copy()
            up[i] += step
            down[i] -= step
            above = naive.log_evidence(features, targets, unpack(up, metric, axes))
            below = naive.log_evidence(features, targets, unpack(down, metric, axes))
            estimates.append((above - below) / (2.0 * step))
        expected[i] = (4.0 * estimates[1] - estimates[0]) / 3.0
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(expected).max()))


@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(2, 20), n_features=st.integers(1, 4))
def test_evidence_is_that_of_scikit_learn(seed: int, n: int, n_features: int) -> None:
    stream = np.random.default_rng(seed)
    axes = np.arange(n_features)
    parameters = draw_parameters(Metric.AXES, axes, stream)
    features = stream.uniform(-1, 1, (n, n_features))
    targets = smooth(features, 1e-2, stream)
    signal, bias, noise = np.exp(parameters[:3])
    kernel = (
        ConstantKernel(signal, "fixed") * RBF(np.exp(-0.5 * parameters[3:]), "fixed")
        + ConstantKernel(bias, "fixed")
        + WhiteKernel(noise, "fixed")
    )
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(features, targets)
    value, _ = log_evidence(features, targets, parameters, Metric.AXES, axes)
    assert value == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-8, abs=1e-8)


def test_the_gradient_is_that_of_scikit_learn() -> None:
    stream = np.random.default_rng(5)
    axes = np.arange(3)
    features = stream.uniform(-1, 1, (30, 3))
    targets = smooth(features, 1e-3, stream)
    parameters = draw_parameters(Metric.AXES, axes, stream)
    signal, bias, noise = np.exp(parameters[:3])
    scales = np.exp(-0.5 * parameters[3:])
    kernel = ConstantKernel(signal) * RBF(scales) + ConstantKernel(bias) + WhiteKernel(noise)
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(features, targets)
    _, expected = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    _, gradient = log_evidence(features, targets, parameters, Metric.AXES, axes)
    # theirs are log v0, log length scales, log b, log noise; theta = length scale^-2
    in_their_order = np.concatenate([gradient[:1], -2.0 * gradient[3:], gradient[1:3]])
    np.testing.assert_allclose(in_their_order, expected, rtol=1e-7)


def test_a_covariance_that_is_not_positive_definite_has_no_evidence() -> None:
    features = np.zeros((4, 2))
    parameters = np.array([0.0, 0.0, -80.0, 0.0])  # noise far below rounding, four identical points
    value, gradient = log_evidence(features, np.arange(4.0), parameters, Metric.UNIFORM, np.arange(2))
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, 0.0)


def test_unpacking_takes_exponentials_and_a_uniform_metric_is_aligned() -> None:
    axes = np.array([0, 1, 1])
    hyper = unpack(np.log([2.0, 3.0, 0.5, 7.0]), Metric.UNIFORM, axes)
    assert (hyper.signal_variance, hyper.bias_variance, hyper.noise_variance) == pytest.approx(
        (2.0, 3.0, 0.5)
    )
    assert hyper.precisions is not None
    np.testing.assert_allclose(hyper.precisions, [7.0, 7.0], rtol=1e-14)
    np.testing.assert_allclose(hyper.projection, np.sqrt(7.0) * np.eye(3), rtol=1e-14)


@EVERY_METRIC
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_found_is_never_less_probable_than_either_start(metric: Metric, seed: int) -> None:
    stream = np.random.default_rng(seed)
    axes = np.array([0, 1, 1])
    features = stream.uniform(-1, 1, (30, 3))
    targets = standardised(smooth(features, 1e-3, stream))
    warm = draw_parameters(metric, axes, stream, (-9.0, -3.0))
    fit = fit_hyperparameters(features, targets, axes, metric, warm)
    found = log_posterior(features, targets, fit.parameters, metric, axes)
    assert fit.log_posterior == pytest.approx(found, rel=1e-6)
    assert fit.log_evidence == pytest.approx(
        naive.log_evidence(features, targets, unpack(fit.parameters, metric, axes)), rel=1e-6
    )
    slack = 1e-6 * abs(found)
    for start in (warm, default_parameters(metric, axes)):
        assert found >= log_posterior(features, targets, start, metric, axes) - slack
    assert fit.n_points == 30
    assert 0 <= fit.iterations <= MAX_ITERATIONS


@EVERY_METRIC
@settings(max_examples=8)
@given(seed=SEEDS, n=st.integers(2, 25))
def test_a_warm_start_is_never_worse_than_the_default_start(metric: Metric, seed: int, n: int) -> None:
    stream = np.random.default_rng(seed)
    axes = np.arange(2)
    features = stream.uniform(-1, 1, (n, 2))
    targets = smooth(features, 1e-3, stream)
    warm = draw_parameters(metric, axes, stream, (-20.0, 0.0)) * 3.0  # some lie outside the bounds
    cold = fit_hyperparameters(features, targets, axes, metric)
    assert fit_hyperparameters(features, targets, axes, metric, warm).log_posterior >= cold.log_posterior
    again = fit_hyperparameters(features, targets, axes, metric, cold.parameters)
    assert again.log_posterior >= cold.log_posterior


def test_a_search_that_has_converged_stands_where_the_gradient_vanishes() -> None:
    stream = np.random.default_rng(8)
    axes = np.arange(2)
    features = stream.uniform(-1, 1, (40, 2))
    targets = standardised(smooth(features, 1e-2, stream))
    fit = fit_hyperparameters(features, targets, axes)
    table = bounds(Metric.AXES, axes)
    assert (table[:, 2] < fit.parameters).all()
    assert (fit.parameters < table[:, 3]).all()
    for i in range(fit.parameters.size):
        up, down = fit.parameters.copy(), fit.parameters.copy()
        up[i] += 1e-3
        down[i] -= 1e-3
        around = [log_posterior(features, targets, where, Metric.AXES, axes) for where in (up, down)]
        assert abs(around[0] - around[1]) / 2e-3 < 2e-2  # of some 70 nats


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_relevance_determination_finds_the_irrelevant_input(seed: int) -> None:
    stream = np.random.default_rng(seed)
    features = stream.uniform(-1, 1, (60, 3))
    clean = np.sin(3.0 * features[:, 0]) + features[:, 2] ** 2
    targets = standardised(clean + 0.01 * stream.normal(size=60))
    precisions = fit_hyperparameters(features, targets, np.arange(3)).hyperparameters.precisions
    assert precisions is not None
    assert precisions[1] < 0.05 * precisions[0]
    assert precisions[1] < 0.05 * precisions[2]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_factor_analysis_finds_a_rotated_direction(seed: int) -> None:
    stream = np.random.default_rng(seed)
    direction = stream.normal(size=3)
    direction /= np.linalg.norm(direction)
    features = stream.uniform(-1, 1, (80, 3))
    targets = standardised(np.sin(3.0 * features @ direction) + 0.01 * stream.normal(size=80))
    fit = fit_hyperparameters(features, targets, np.arange(3), Metric.FACTORS)
    root = fit.hyperparameters.projection
    sizes, vectors = np.linalg.eigh(root @ root.T)
    angle = np.degrees(np.arccos(min(1.0, abs(float(vectors[:, -1] @ direction)))))
    assert angle < 5.0
    assert sizes[-2] < 0.05 * sizes[-1]


@EVERY_METRIC
def test_the_noise_is_found(metric: Metric) -> None:
    stream = np.random.default_rng(11)
    features = stream.uniform(-1, 1, (120, 2))
    targets = np.sin(2.0 * features[:, 0]) + 0.1 * stream.normal(size=120)
    noise = fit_hyperparameters(features, targets, np.arange(2), metric).hyperparameters.noise_variance
    assert 0.5e-2 < noise < 2e-2


@EVERY_METRIC
@pytest.mark.parametrize("seed", [0, 1])
def test_the_noise_does_not_fall_below_its_floor_on_noiseless_data(metric: Metric, seed: int) -> None:
    stream = np.random.default_rng(seed)
    features = stream.uniform(-1, 1, (40, 2))
    targets = standardised(smooth(features, 0.0, stream))
    fit = fit_hyperparameters(features, targets, np.arange(2), metric)
    assert 1e-7 * (1.0 - 1e-12) <= fit.hyperparameters.noise_variance < 1e-5
    assert np.isfinite(fit.log_evidence)


def assert_within_bounds(fit: Fit, metric: Metric, axes: IntArray) -> None:
    table = bounds(metric, axes)
    assert np.isfinite(fit.parameters).all()
    assert (fit.parameters >= table[:, 2] - 1e-12).all()
    assert (fit.parameters <= table[:, 3] + 1e-12).all()
    assert np.isfinite([fit.log_evidence, fit.log_posterior]).all()
    hyper = fit.hyperparameters
    for value, (*_, low, high) in zip(
        (hyper.signal_variance, hyper.bias_variance, hyper.noise_variance), (SIGNAL, BIAS, NOISE), strict=True
    ):
        assert np.exp(low) * (1 - 1e-12) <= value <= np.exp(high) * (1 + 1e-12)
    if hyper.precisions is not None:
        assert (hyper.precisions >= np.exp(PRECISION[2]) * (1 - 1e-12)).all()
        assert (hyper.precisions <= np.exp(PRECISION[3]) * (1 + 1e-12)).all()


@EVERY_METRIC
@settings(max_examples=15)
@given(
    seed=SEEDS,
    n=st.sampled_from([1, 2, 5]),
    spread=st.sampled_from([0.0, 1e-8, 1.0]),
    size=st.sampled_from([0.0, 1e-6, 1.0, 1e3]),
)
def test_a_few_points_however_odd_give_finite_hyperparameters_within_bounds(
    metric: Metric, seed: int, n: int, spread: float, size: float
) -> None:
    stream = np.random.default_rng(seed)
    axes = np.array([0, 1, 1])
    features = spread * stream.uniform(-1, 1, (n, 3))
    targets = size * stream.normal(size=n)
    assert_within_bounds(fit_hyperparameters(features, targets, axes, metric), metric, axes)


@EVERY_METRIC
def test_a_warm_start_outside_the_bounds_is_brought_back(metric: Metric) -> None:
    stream = np.random.default_rng(2)
    axes = np.arange(2)
    features = stream.uniform(-1, 1, (20, 2))
    targets = smooth(features, 1e-3, stream)
    far = default_parameters(metric, axes) + 100.0
    assert_within_bounds(fit_hyperparameters(features, targets, axes, metric, far), metric, axes)


@EVERY_METRIC
def test_the_same_data_give_the_same_fit(metric: Metric) -> None:
    stream = np.random.default_rng(3)
    features = stream.uniform(-1, 1, (20, 2))
    targets = smooth(features, 1e-3, stream)
    first, second = (fit_hyperparameters(features, targets, np.arange(2), metric) for _ in range(2))
    np.testing.assert_array_equal(first.parameters, second.parameters)


# --- a linear trend ---


def test_evidence_with_a_trend_is_that_of_scikit_learn() -> None:
    stream = np.random.default_rng(6)
    axes = np.arange(3)
    features = stream.uniform(-1, 1, (30, 3))
    targets = smooth(features, 1e-3, stream) + features @ [1.0, -2.0, 0.5]
    parameters = draw_parameters(Metric.AXES, axes, stream, linear=True)
    signal, bias, noise, slope = np.exp(parameters[[0, 1, 2, -1]])
    kernel = (
        ConstantKernel(signal) * RBF(np.exp(-0.5 * parameters[3:-1]))
        + ConstantKernel(bias)
        + ConstantKernel(slope) * DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
        + WhiteKernel(noise)
    )
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(features, targets)
    value, _ = log_evidence(features, targets, parameters, Metric.AXES, axes)
    assert value == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-8, abs=1e-8)


def test_what_is_linear_is_found_to_be_and_holds_far_away() -> None:
    """Nine points of a plane in four dimensions say what it is everywhere; without a trend they do not."""
    stream = np.random.default_rng(0)
    axes, slopes = np.arange(4), np.array([1.0, -0.5, 0.3, 0.1])
    features, far = stream.uniform(-1, 1, (9, 4)), stream.uniform(-5, 5, (50, 4))
    errors = {}
    for linear in (False, True):
        found = fit_hyperparameters(features, features @ slopes, axes, linear=linear).hyperparameters
        assert (found.slope_variance > 0.0) == linear
        mean = exact_posterior(features, features @ slopes, found).mean(far)
        errors[linear] = float(np.abs(mean - far @ slopes).max() / np.abs(far @ slopes).max())
    assert errors[True] < 0.02
    assert errors[False] > 0.2


def test_where_nothing_is_linear_the_trend_does_no_harm() -> None:
    stream = np.random.default_rng(1)
    axes = np.arange(1)
    features = np.linspace(-1.0, 1.0, 30)[:, np.newaxis]
    targets = standardised(np.cos(4.0 * features[:, 0]))
    between = stream.uniform(-1.0, 1.0, (40, 1))
    truth = (np.cos(4.0 * between[:, 0]) - np.cos(4.0 * features[:, 0]).mean()) / np.cos(
        4.0 * features[:, 0]
    ).std()
    found = fit_hyperparameters(features, targets, axes, linear=True).hyperparameters
    posterior = exact_posterior(features, targets, found)
    np.testing.assert_allclose(posterior.mean(between), truth, atol=1e-2)


# --- with images in a mirror ---


@pytest.mark.parametrize("metric", [Metric.AXES, Metric.UNIFORM])
@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 15), n_features=st.integers(1, 5), linear=st.booleans())
def test_evidence_of_points_and_their_images_is_that_of_all_of_them(
    metric: Metric, seed: int, n: int, n_features: int, linear: bool
) -> None:
    """Whatever the targets: they need be no images themselves."""
    stream = np.random.default_rng(seed)
    axes = some_axes(n_features, stream)
    parameters = draw_parameters(metric, axes, stream, linear=linear)
    features, signs = stream.uniform(-1, 1, (n, n_features)), stream.choice([-1.0, 1.0], n_features)
    both = np.concatenate([features, signs * features])
    targets = smooth(both, 1e-2, stream)
    value, gradient = mirrored_evidence(features, targets, signs, parameters, metric, axes)
    expected = naive.log_evidence(both, targets, unpack(parameters, metric, axes))
    assert value == pytest.approx(expected, rel=1e-8, abs=1e-8)
    _, plain = log_evidence(both, targets, parameters, metric, axes)
    np.testing.assert_allclose(gradient, plain, rtol=1e-6, atol=1e-7 * max(1.0, np.abs(plain).max()))


@EVERY_METRIC
@pytest.mark.parametrize("wrong", ["nothing", "one point", "all of one feature"])
def test_what_is_found_with_images_is_what_is_found_without_knowing_that_they_are_some(
    metric: Metric, wrong: str
) -> None:
    stream = np.random.default_rng(4)
    axes, signs = np.array([0, 1, 1]), np.array([-1.0, 1.0, -1.0])
    features = stream.uniform(-1, 1, (25, 3))
    both = np.concatenate([features, signs * features])
    if wrong == "one point":
        both[30, 1] += 0.01
    elif wrong == "all of one feature":
        both[25:, 0] += 0.3
    targets = standardised(np.sin(2.0 * both[:, 0]) + 0.5 * both[:, 0] * both[:, 1])
    plain = fit_hyperparameters(both, targets, axes, metric, linear=True)
    found = fit_hyperparameters(both, targets, axes, metric, linear=True, copies=2)
    assert found.log_posterior == pytest.approx(plain.log_posterior, rel=1e-4)
    if wrong != "nothing" or metric is Metric.FACTORS:
        np.testing.assert_array_equal(found.parameters, plain.parameters)
