"""Covariance against a double loop over pairs; the metrics' parameters against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.gp.covariance import (
    Hyperparameters,
    Metric,
    build_projection,
    correlation,
    covariance,
    n_parameters,
    pull_back,
)
from tests.gp.cases import METRICS, aligned, metric_parameters, some_axes
from tests.naive import gp as naive

SEEDS = st.integers(0, 2**32 - 1)
EVERY_METRIC = pytest.mark.parametrize("metric", METRICS)


def make_hyper(metric: Metric, n_features: int, stream: np.random.Generator) -> Hyperparameters:
    axes = some_axes(n_features, stream)
    projection, precisions = build_projection(metric, metric_parameters(metric, axes, stream), axes)
    signal, bias = np.exp(stream.uniform(-3.0, 3.0, size=2))
    return Hyperparameters(float(signal), float(bias), 1e-2, projection, precisions)


@EVERY_METRIC
@settings(max_examples=40)
@given(seed=SEEDS, n_features=st.integers(1, 5), n=st.integers(1, 6), m=st.integers(1, 6))
def test_covariance_is_that_of_omega_pair_by_pair(
    metric: Metric, seed: int, n_features: int, n: int, m: int
) -> None:
    stream = np.random.default_rng(seed)
    axes = some_axes(n_features, stream)
    parameters = metric_parameters(metric, axes, stream)
    projection, precisions = build_projection(metric, parameters, axes)
    hyper = Hyperparameters(1.7, 0.4, 1e-2, projection, precisions)
    left, right = stream.uniform(-1, 1, (n, n_features)), stream.uniform(-1, 1, (m, n_features))
    expected = naive.covariance(left, right, 1.7, 0.4, naive.omega(metric, parameters, axes))
    np.testing.assert_allclose(covariance(left, right, hyper), expected, rtol=1e-12)


@EVERY_METRIC
@settings(max_examples=40)
@given(seed=SEEDS, n_features=st.integers(1, 5), n=st.integers(1, 25))
def test_covariance_is_symmetric_and_positive_semidefinite_with_v0_plus_b_on_the_diagonal(
    metric: Metric, seed: int, n_features: int, n: int
) -> None:
    stream = np.random.default_rng(seed)
    hyper = make_hyper(metric, n_features, stream)
    points = stream.uniform(-1, 1, (n, n_features))
    values = covariance(points, points, hyper)
    prior = hyper.signal_variance + hyper.bias_variance
    assert hyper.prior_variance == pytest.approx(prior, rel=1e-15)
    np.testing.assert_allclose(values, values.T, rtol=1e-12)
    np.testing.assert_allclose(np.diag(values), prior, rtol=1e-12)
    assert np.linalg.eigvalsh(values).min() >= -1e-11 * n * prior
    assert values.max() <= prior * (1.0 + 1e-15)
    assert values.min() >= hyper.bias_variance * (1.0 - 1e-15)


@EVERY_METRIC
@settings(max_examples=30)
@given(seed=SEEDS, n_features=st.integers(1, 5), size=st.floats(0.0, 1e3))
def test_covariance_does_not_change_when_all_inputs_are_shifted(
    metric: Metric, seed: int, n_features: int, size: float
) -> None:
    stream = np.random.default_rng(seed)
    hyper = make_hyper(metric, n_features, stream)
    left, right = stream.uniform(-1, 1, (5, n_features)), stream.uniform(-1, 1, (4, n_features))
    shift = size * stream.uniform(-1, 1, n_features)
    moved = covariance(left + shift, right + shift, hyper)
    # adding the shift itself rounds the differences, by its last digit
    np.testing.assert_allclose(moved, covariance(left, right, hyper), rtol=1e-11 + 1e-13 * size)


def test_a_far_shift_costs_no_more_than_the_digits_of_the_inputs() -> None:
    stream = np.random.default_rng(0)
    points = 1e4 + np.round(stream.uniform(-1, 1, (12, 2)), 6)
    hyper = aligned([140.0, 3.0])
    expected = naive.covariance_under(points, points, hyper)
    np.testing.assert_allclose(covariance(points, points, hyper), expected, rtol=1e-7)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_covariance_decays_from_the_prior_to_the_bias(seed: int) -> None:
    stream = np.random.default_rng(seed)
    hyper = make_hyper(Metric.AXES, 3, stream)
    direction = stream.normal(size=3)
    along = np.linspace(0.0, 200.0, 30)[:, np.newaxis] * direction
    values = covariance(along, np.zeros((1, 3)), hyper)[:, 0]
    assert (np.diff(values) <= 0.0).all()
    assert values[0] == pytest.approx(hyper.prior_variance, rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_correlate_exactly_and_none_more(seed: int) -> None:
    points = 1e4 + np.random.default_rng(seed).normal(size=(20, 3))
    values = correlation(points, points)
    np.testing.assert_array_equal(np.diag(values), 1.0)
    assert values.max() == 1.0


def test_correlation_leaves_its_arguments_alone() -> None:
    points = np.random.default_rng(3).normal(size=(5, 2))
    before = points.copy()
    correlation(points, points)
    covariance(points, points, aligned([1.0, 2.0]))
    np.testing.assert_array_equal(points, before)


@EVERY_METRIC
@settings(max_examples=40)
@given(seed=SEEDS, n_features=st.integers(1, 6))
def test_the_projection_is_a_root_of_omega(metric: Metric, seed: int, n_features: int) -> None:
    stream = np.random.default_rng(seed)
    axes = some_axes(n_features, stream)
    parameters = metric_parameters(metric, axes, stream)
    assert n_parameters(metric, axes) == parameters.size
    projection, precisions = build_projection(metric, parameters, axes)
    assert projection.shape[0] == n_features
    np.testing.assert_allclose(
        projection @ projection.T, naive.omega(metric, parameters, axes), rtol=1e-13, atol=1e-14
    )
    assert (precisions is None) == (metric is Metric.FACTORS)
    if precisions is not None:
        assert precisions.size == axes.max() + 1
        np.testing.assert_allclose(np.diag(projection) ** 2, precisions[axes], rtol=1e-14)


def test_each_metric_has_as_many_parameters_as_the_paper_says() -> None:
    axes = np.array([0, 1, 1, 2])  # three coordinates, the second an angle
    assert n_parameters(Metric.UNIFORM, axes) == 1
    assert n_parameters(Metric.AXES, axes) == 3
    assert n_parameters(Metric.FACTORS, axes) == 8  # M is 4 x 2
    assert n_parameters(Metric.FACTORS, np.array([0])) == 1


@EVERY_METRIC
@settings(max_examples=40)
@given(seed=SEEDS, n_features=st.integers(1, 5))
def test_pull_back_is_the_gradient_of_minus_the_trace_of_omega_times_moment(
    metric: Metric, seed: int, n_features: int
) -> None:
    stream = np.random.default_rng(seed)
    axes = some_axes(n_features, stream)
    parameters = metric_parameters(metric, axes, stream)
    root = stream.normal(size=(n_features, n_features))
    moment = root + root.T  # symmetric, of either sign: as the sum of W_ij D_ij D_ij^T is

    def objective(at: list[float]) -> float:
        return -float(np.trace(naive.omega(metric, np.array(at), axes) @ moment))

    step = 1e-5
    expected = []
    for i in range(parameters.size):
        up, down = parameters.tolist(), parameters.tolist()
        up[i] += step
        down[i] -= step
        expected.append((objective(up) - objective(down)) / (2.0 * step))
    gradient = pull_back(metric, parameters, axes, moment)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)
