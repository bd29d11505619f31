"""A Gaussian process at a few points: compiled loops against the matrices, and against a loop over pairs."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.process import predict_rows
from optimist.gp.basis import choose_basis
from optimist.gp.covariance import Hyperparameters, build_projection, squares
from optimist.gp.inputs import Inputs
from optimist.gp.posterior import Posterior, bounded_variance, exact_posterior, projected_posterior
from tests.gp.cases import METRICS, metric_parameters, smooth

PERIODIC = [(False,), (True,), (False, True), (True, True, False), (False, False, True, False)]
every_slope = pytest.mark.parametrize("slope", [0.0, 0.7], ids=["no trend", "trend"])
every_metric = pytest.mark.parametrize("metric", METRICS)
every_box = pytest.mark.parametrize("periodic", PERIODIC, ids=lambda flags: "".join("nP"[f] for f in flags))


def made(
    metric: object, periodic: tuple[bool, ...], *, exact: bool = False, slope: float = 0.0
) -> tuple[Posterior, Inputs]:
    """A posterior of random data over a box whose axes are of different size."""
    d = len(periodic)
    stream = np.random.default_rng([d, *periodic])
    low = stream.uniform(-5.0, 1.0, d)
    box = Box(low, low + 10.0 ** stream.uniform(-1.0, 1.5, d), periodic)
    points = stream.uniform(box.low, box.high, size=(60, d))
    inputs = Inputs.spanning(box, points)
    features = inputs.features(points)
    parameters = metric_parameters(metric, inputs.axes, stream, low=-1.0, high=1.0)  # type: ignore[arg-type]
    hyper = Hyperparameters(0.8, 0.3, 1e-2, *build_projection(metric, parameters, inputs.axes), slope)  # type: ignore[arg-type]
    targets = smooth(features, 1e-2, stream)
    if exact:
        return exact_posterior(features, targets, hyper), inputs
    basis = choose_basis(features, hyper, max_basis=25, tolerance=1e-3)
    return projected_posterior(features, targets, hyper, basis), inputs


def at_points(
    posterior: Posterior,
    inputs: Inputs,
    points: FloatArray,
    *,
    with_variance: bool,
    asked: BoolArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance by the compiled loops; the second may be left out, empty.  [n], [n]"""
    process, count = posterior.process(inputs), len(points)
    mean, explained, lengths = np.empty(count), np.zeros(count if with_variance else 0), np.empty(count)
    asked = np.full(count, with_variance) if asked is None else asked
    predict_rows(np.ascontiguousarray(points), *process, asked, mean, explained, lengths)
    prior = posterior.hyperparameters.prior_at(lengths)
    return mean, bounded_variance(explained, prior) if with_variance else explained


def points_around(inputs: Inputs, count: int = 40) -> FloatArray:
    """In the data, beyond them, and some turns further on periodic axes."""
    stream = np.random.default_rng(7)
    reach = np.where(inputs.periodic, 4.0 * np.pi, 1.5)
    return inputs.centres + inputs.scales * stream.uniform(-reach, reach, size=(count, inputs.n_axes))


@every_metric
@every_box
@pytest.mark.parametrize("exact", [False, True], ids=["projected", "exact"])
@every_slope
def test_points_are_predicted_as_by_matrices(
    metric: object, periodic: tuple[bool, ...], exact: bool, slope: float
) -> None:
    posterior, inputs = made(metric, periodic, exact=exact, slope=slope)
    points = points_around(inputs)
    mean, variance = at_points(posterior, inputs, points, with_variance=True)
    expected, expected_variance = posterior.predict(inputs.features(points))
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-8, atol=1e-8)
    prior = posterior.hyperparameters.prior_at(squares(inputs.features(points)))
    assert (variance >= 0.0).all()
    assert (variance <= prior).all()
    assert (variance / prior).min() < 0.5


@every_metric
@every_box
def test_the_mean_alone_is_the_same(metric: object, periodic: tuple[bool, ...]) -> None:
    posterior, inputs = made(metric, periodic)
    points = points_around(inputs)
    alone, none = at_points(posterior, inputs, points, with_variance=False)
    together, _ = at_points(posterior, inputs, points, with_variance=True)
    np.testing.assert_array_equal(alone, together)
    assert none.shape == (0,)


@every_metric
@every_slope
def test_a_loop_over_pairs_says_the_same(metric: object, slope: float) -> None:
    """From the covariance as it is written: v0 exp(-1/2 D' M M' D) + b + l x' z."""
    posterior, inputs = made(metric, (False, True), slope=slope)
    hyper, points = posterior.hyperparameters, points_around(inputs, 6)
    mean, variance = at_points(posterior, inputs, points, with_variance=True)
    for row, point in enumerate(points):
        scaled = (point - inputs.centres) / inputs.scales
        feature = np.array([scaled[0], np.cos(scaled[1]), np.sin(scaled[1])])
        cross = []
        for other in posterior.basis:
            gap = feature - other
            square = float(gap @ (hyper.projection @ hyper.projection.T) @ gap)
            trend = slope * float(feature @ other)
            cross.append(hyper.signal_variance * np.exp(-0.5 * square) + hyper.bias_variance + trend)
        assert mean[row] == pytest.approx(float(np.dot(cross, posterior.weights)), rel=1e-8, abs=1e-9)
        explained = float(np.sum(np.dot(cross, posterior.reduction) ** 2))
        prior = hyper.signal_variance + hyper.bias_variance + slope * float(feature @ feature)
        expected = min(max(prior - explained, 0.0), prior)
        assert variance[row] == pytest.approx(expected, rel=1e-7, abs=1e-8)


@every_metric
def test_angles_a_turn_apart_are_one_place(metric: object) -> None:
    posterior, inputs = made(metric, (True, False))
    points = points_around(inputs)
    turned = points + np.array([2.0 * np.pi * inputs.scales[0], 0.0])
    for with_variance in (True, False):
        here, there = (
            at_points(posterior, inputs, at, with_variance=with_variance) for at in (points, turned)
        )
        for one, other in zip(here, there, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_one_point_is_predicted_as_among_others_and_none_as_none() -> None:
    posterior, inputs = made(METRICS[0], (False, True))
    points = points_around(inputs)
    mean, variance = at_points(posterior, inputs, points, with_variance=True)
    for row in (0, 17, 39):
        alone = at_points(posterior, inputs, points[row : row + 1], with_variance=True)
        assert (alone[0][0], alone[1][0]) == (mean[row], variance[row])
    assert at_points(posterior, inputs, points[:0], with_variance=True)[0].shape == (0,)


def test_points_in_another_order_of_memory_are_the_same_points() -> None:
    posterior, inputs = made(METRICS[1], (False, True))
    points = points_around(inputs)
    found = at_points(posterior, inputs, np.asfortranarray(points), with_variance=True)
    expected = at_points(posterior, inputs, points, with_variance=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_no_variance_is_asked_for_it_is_the_prior_and_all_else_stays() -> None:
    posterior, inputs = made(METRICS[1], (False, True))
    points, asked = points_around(inputs, 6), np.array([True, False, True, False, False, True])
    mean, variance = at_points(posterior, inputs, points, with_variance=True)
    same, some = at_points(posterior, inputs, points, with_variance=True, asked=asked)
    np.testing.assert_array_equal(same, mean)
    np.testing.assert_array_equal(some[asked], variance[asked])
    prior = posterior.hyperparameters.prior_at(squares(inputs.features(points)))
    np.testing.assert_allclose(some[~asked], prior[~asked], rtol=1e-12)
    assert (variance < prior).all()


def test_compiled_and_as_python_it_is_the_same() -> None:
    posterior, inputs = made(METRICS[2], (True, False))
    points = points_around(inputs, 5)
    outcomes = []
    for kernel in (predict_rows, predict_rows.py_func):
        mean, explained, lengths = np.empty(5), np.zeros(5), np.empty(5)
        kernel(
            points,
            *posterior.process(inputs),
            np.array([True, True, False, True, False]),
            mean,
            explained,
            lengths,
        )
        outcomes.append((mean, explained, lengths))
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
