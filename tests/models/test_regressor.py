"""One process, in raw units: against scikit-learn, against scaling laws, against its own bookkeeping."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.gp.covariance import Metric, covariance
from optimist.gp.evidence import fit_hyperparameters, unpack
from optimist.gp.inputs import Inputs
from optimist.models import regressor as regressor_module
from optimist.models.regressor import Data, Regressor, RegressorSettings, fit_regressor

BOX = Box([-1.0, 0.0], [1.0, 5.0])
CYLINDER = Box([-1.0, 0.0], [1.0, 5.0], periodic=[False, True])


def points(count: int, *, seed: int = 0, box: Box = BOX) -> FloatArray:
    return np.random.default_rng(seed).uniform(box.low, box.high, size=(count, box.n_dims))


def wave(at: FloatArray) -> FloatArray:
    return np.asarray(np.sin(2.0 * at[:, 0]) + 0.3 * np.cos(at[:, 1]) + 0.4)


def fit(
    at: FloatArray,
    targets: FloatArray,
    settings: RegressorSettings | None = None,
    previous: Regressor | None = None,
    *,
    seed: int = 0,
    box: Box = BOX,
) -> Regressor:
    stream = np.random.default_rng(seed)
    inputs = Inputs.spanning(box, at)
    with threadpool_limits(1, user_api="blas"):  # as `fit_dynamics` does: more take longer
        return fit_regressor(Data(at, targets), inputs, settings or RegressorSettings(), previous, stream)


def same_hyperparameters(one: Regressor, other: Regressor) -> bool:
    first, second = one.posterior.hyperparameters, other.posterior.hyperparameters
    return (
        first.signal_variance == second.signal_variance
        and first.bias_variance == second.bias_variance
        and first.noise_variance == second.noise_variance
        and np.array_equal(first.projection, second.projection)
    )


# --- what is predicted --------------------------------------------------------------------------


def test_predictions_are_those_of_scikit_learn_with_the_same_hyperparameters() -> None:
    at = points(25)
    targets = 7.0 * wave(at) - 3.0
    made = fit(at, targets, RegressorSettings(basis_tolerance=0.0, linear=False))
    hyper = made.posterior.hyperparameters
    assert hyper.precisions is not None
    # scikit-learn sees raw inputs: a length scale is the scale of the axis over the root of its precision
    length_scales = made.inputs.scales / np.sqrt(hyper.precisions)
    kernel = ConstantKernel(hyper.signal_variance) * RBF(length_scales) + ConstantKernel(hyper.bias_variance)
    reference = GaussianProcessRegressor(kernel, alpha=hyper.noise_variance, optimizer=None)
    assert hyper.slope_variance == 0.0
    reference.fit(at, (targets - targets.mean()) / targets.std())
    new = points(200, seed=1)
    expected, deviation = reference.predict(new, return_std=True)
    mean, variance = made.predict(new)
    np.testing.assert_allclose(mean, targets.mean() + targets.std() * expected, atol=1e-5 * targets.std())
    np.testing.assert_allclose(
        variance, deviation**2 / (hyper.signal_variance + hyper.bias_variance), atol=1e-6
    )


@pytest.mark.parametrize("metric", Metric)
def test_smooth_targets_are_interpolated(metric: Metric) -> None:
    at, new = points(80), points(200, seed=1)
    mean, variance = fit(at, wave(at), RegressorSettings(metric=metric)).predict(new)
    assert np.sqrt(((mean - wave(new)) ** 2).mean()) < 0.01
    assert variance.max() < 0.05


def test_variance_is_small_at_the_data_and_one_far_away() -> None:
    at = points(40)
    made = fit(at, wave(at), RegressorSettings(linear=False))
    here = made.predict(at)[1]
    far = made.predict(at + 1000.0 * BOX.widths)[1]
    hyper = made.posterior.hyperparameters
    assert here.max() < 0.01
    # far away only the constant part is known: at least v0 of v0 + b is not
    assert far.min() >= hyper.signal_variance / hyper.prior_variance - 1e-9
    assert far.max() <= 1.0


@pytest.mark.parametrize("exponent", [-30, -1, 30])
def test_targets_times_a_power_of_two_are_predicted_times_it_to_the_bit(exponent: int) -> None:
    at, new, factor = points(40), points(100, seed=1), 2.0**exponent
    mean, variance = fit(at, wave(at)).predict(new)
    scaled_mean, scaled_variance = fit(at, factor * wave(at)).predict(new)
    np.testing.assert_array_equal(scaled_mean, factor * mean)
    np.testing.assert_array_equal(scaled_variance, variance)


@pytest.mark.parametrize("factor", [1e-9, 1e9, -1.0])
def test_targets_of_any_size_are_predicted_alike(factor: float) -> None:
    at, new = points(40), points(100, seed=1)
    mean, variance = fit(at, wave(at)).predict(new)
    scaled_mean, scaled_variance = fit(at, factor * wave(at)).predict(new)
    np.testing.assert_allclose(scaled_mean / factor, mean, atol=1e-3 * wave(at).std())
    np.testing.assert_allclose(scaled_variance, variance, atol=1e-3)


def test_a_constant_added_to_the_targets_is_added_to_the_predictions() -> None:
    at, new = points(40), points(100, seed=1)
    mean, variance = fit(at, wave(at)).predict(new)
    moved_mean, moved_variance = fit(at, wave(at) + 64.0).predict(new)
    np.testing.assert_allclose(moved_mean - 64.0, mean, atol=1e-3)
    np.testing.assert_allclose(moved_variance, variance, atol=1e-3)


@pytest.mark.parametrize("constant", [0.0, 0.1, -3.7, 1e-9, -1e9])
@pytest.mark.parametrize("count", [1, 2, 30])
def test_constant_targets_are_predicted_exactly(constant: float, count: int) -> None:
    mean, variance = fit(points(count), np.full(count, constant)).predict(points(50, seed=1))
    np.testing.assert_allclose(mean, constant, rtol=1e-12, atol=0.0)
    assert (variance >= 0.0).all()
    assert (variance <= 1.0).all()


def test_a_periodic_axis_has_no_seam() -> None:
    at = points(60, box=CYLINDER)
    made = fit(at, np.sin(2.0 * np.pi * at[:, 1] / 5.0) + at[:, 0], box=CYLINDER)
    here = points(50, seed=1, box=CYLINDER)
    for turns in (-1.0, 1.0, 3.0):
        there = here + np.array([0.0, 5.0 * turns])
        np.testing.assert_allclose(made.predict(there), made.predict(here), atol=1e-8)


# --- reconditioned, or refitted -----------------------------------------------------------------


@pytest.mark.parametrize("count", [40, 41, 49])
def test_hyperparameters_and_scaling_are_kept_until_the_data_grew_enough(count: int) -> None:
    at = points(60)
    targets = wave(at)
    before = fit(at[:40], targets[:40])
    wider, shifted = at[:count].copy(), targets[:count].copy()
    if count > 40:
        wider[40:], shifted[40:] = 1.5 * wider[40:], 3.0
    after = fit(wider, shifted, previous=before)
    assert (before.n_fitted, before.n_data) == (40, 40)
    assert (after.n_fitted, after.n_data) == (40, count)
    assert same_hyperparameters(before, after)
    assert (after.target_mean, after.target_scale) == (before.target_mean, before.target_scale)
    np.testing.assert_array_equal(after.inputs.centres, before.inputs.centres)
    np.testing.assert_array_equal(after.inputs.scales, before.inputs.scales)
    np.testing.assert_array_equal(after.parameters, before.parameters)


def test_a_recondition_learns_from_the_new_data() -> None:
    at = points(49)
    targets = wave(at)
    before = fit(at[:40], targets[:40])
    after = fit(at, targets, previous=before)
    old_variance, new_variance = before.predict(at[40:])[1], after.predict(at[40:])[1]
    assert (new_variance <= old_variance + 1e-9).all()
    assert new_variance.mean() < 0.5 * old_variance.mean()
    old_error, new_error = (np.abs(made.predict(at[40:])[0] - targets[40:]) for made in (before, after))
    assert new_error.max() < old_error.max()


@pytest.mark.parametrize("growth", [1.0, 1.25, 2.0])
def test_a_refit_is_due_exactly_when_the_data_grew_by_the_growth(growth: float) -> None:
    settings = RegressorSettings(refit_growth=growth)
    at = points(60)
    targets = wave(at)
    before = fit(at[:20], targets[:20], settings)
    due = int(20 * growth)
    for count in (due - 1, due, due + 1):
        if count >= 20:
            after = fit(at[:count], targets[:count], settings, before)
            assert after.n_fitted == (count if count >= due else 20)
            assert after.n_data == count


def test_growth_is_counted_from_the_last_refit() -> None:
    at = points(60)
    targets, made = wave(at), fit(at[:20], wave(at[:20]))
    fitted_at = []
    for count in range(21, 61):
        made = fit(at[:count], targets[:count], previous=made)
        fitted_at.append(made.n_fitted)
    assert sorted(set(fitted_at)) == [20, 25, 32, 40, 50]


def test_a_refit_takes_new_scalings() -> None:
    at = points(50)
    targets = 5.0 * wave(at)
    before = fit(at[:10] * 0.5, targets[:10])
    after = fit(at, targets, previous=before)
    np.testing.assert_allclose(after.inputs.features(at).max(axis=0), 1.0)
    np.testing.assert_allclose(after.inputs.features(at).min(axis=0), -1.0)
    assert after.target_mean == pytest.approx(targets.mean(), rel=1e-12)
    assert after.target_scale == pytest.approx(targets.std(), rel=1e-12)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (3.0, 0.25), (1e-3, 1e3)])
def test_a_warm_start_for_inputs_of_another_scaling_is_the_same_covariance(
    scales: tuple[float, float],
) -> None:
    """Without a trend, which is as large along every axis, however the inputs are scaled."""
    at = points(20)
    before = fit(at, wave(at), RegressorSettings(linear=False))
    inputs = Inputs(
        before.inputs.centres + np.array([0.3, -2.0]), before.inputs.scales * scales, BOX.periodic
    )
    warm = regressor_module._rescaled(before, inputs, Metric.AXES)
    assert warm is not None
    hyper = unpack(warm, Metric.AXES, inputs.axes)
    there = points(10, seed=1)
    expected = covariance(
        before.inputs.features(at), before.inputs.features(there), before.posterior.hyperparameters
    )
    np.testing.assert_allclose(
        covariance(inputs.features(at), inputs.features(there), hyper), expected, rtol=1e-9
    )
    # theta goes with the square of the scale
    old = before.posterior.hyperparameters.precisions
    assert old is not None
    assert hyper.precisions is not None
    np.testing.assert_allclose(hyper.precisions, old * np.square(scales), rtol=1e-12)


def test_rescaling_leaves_the_previous_parameters_alone() -> None:
    at = points(20)
    before = fit(at, wave(at))
    kept = before.parameters.copy()
    inputs = Inputs(before.inputs.centres, 2.0 * before.inputs.scales, BOX.periodic)
    regressor_module._rescaled(before, inputs, Metric.AXES)
    np.testing.assert_array_equal(before.parameters, kept)


def test_a_refit_starts_where_the_previous_fit_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    at = points(40)
    before = fit(at[:20] * 0.5, wave(at[:20]))
    starts = []
    search = fit_hyperparameters

    def listening(*arguments: Any, **named: Any) -> Any:
        starts.append(arguments[4])
        return search(*arguments, **named)

    monkeypatch.setattr(regressor_module, "fit_hyperparameters", listening)
    after = fit(at, wave(at), previous=before)
    ratio = after.inputs.scales / before.inputs.scales
    expected = before.parameters.copy()
    expected[3:5] += 2.0 * np.log(ratio)  # between the variances and the trend
    np.testing.assert_allclose(starts, [expected])


@pytest.mark.parametrize("metric", Metric)
def test_a_warm_refit_predicts_as_a_cold_one(metric: Metric) -> None:
    at, new, settings = points(60), points(100, seed=1), RegressorSettings(metric=metric)
    before = fit(at[:20] * 0.5, wave(at[:20] * 0.5), settings)
    warm, cold = fit(at, wave(at), settings, before), fit(at, wave(at), settings)
    assert warm.n_fitted == 60
    np.testing.assert_allclose(warm.predict(new)[0], cold.predict(new)[0], atol=0.02)


# --- randomness, size, settings -----------------------------------------------------------------


def test_the_same_stream_gives_the_same_regressor() -> None:
    at, settings = points(60), RegressorSettings(subset=20)
    made = [fit(at, wave(at), settings, seed=seed) for seed in (5, 5, 6)]
    new = points(50, seed=1)
    np.testing.assert_array_equal(made[0].predict(new), made[1].predict(new))
    np.testing.assert_array_equal(made[0].parameters, made[1].parameters)
    assert not np.array_equal(made[0].parameters, made[2].parameters)


def test_without_more_data_than_the_subset_nothing_is_drawn() -> None:
    at, settings = points(20), RegressorSettings(subset=20)
    one, other = (fit(at, wave(at), settings, seed=seed) for seed in (5, 6))
    np.testing.assert_array_equal(one.parameters, other.parameters)


def test_all_data_are_conditioned_on_however_small_the_subset() -> None:
    at = points(60)
    made = fit(at, wave(at), RegressorSettings(subset=10))
    assert (made.n_fitted, made.n_data) == (60, 60)
    assert np.abs(made.predict(at)[0] - wave(at)).max() < 0.1


def test_a_basis_stopped_by_its_size_is_told() -> None:
    at = points(60)
    free, cut = (fit(at, wave(at), RegressorSettings(max_basis=size)) for size in (60, 5))
    assert len(cut.posterior.basis) == 5
    assert cut.basis_cut
    assert len(free.posterior.basis) > 5
    assert not free.basis_cut


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"subset": 1}, r"`subset` must be greater than or equal to 2; got 1"),
        ({"max_basis": 0}, r"`max_basis` must be greater than or equal to 1; got 0"),
        ({"basis_tolerance": -1e-9}, r"`basis_tolerance` must be greater than or equal to 0; got -1e-09"),
        ({"basis_tolerance": np.nan}, r"`basis_tolerance` must be .*; got nan"),
        ({"refit_growth": 0.99}, r"`refit_growth` must be greater than or equal to 1; got 0\.99"),
        ({"refit_growth": np.nan}, r"`refit_growth` must be .*; got nan"),
        ({"kernel": "se"}, r"`kernel` must be one of metric, .*; got another"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        RegressorSettings(**wrong)


def test_settings_at_the_edge_of_their_range_are_fine() -> None:
    settings = RegressorSettings(subset=2, max_basis=1, basis_tolerance=0.0, refit_growth=1.0)
    at = points(10)
    mean, variance = fit(at, wave(at), settings).predict(points(20, seed=1))
    assert np.isfinite(mean).all()
    assert ((variance >= 0.0) & (variance <= 1.0)).all()


# --- surprises, and there and back ----------------------------------------------------------------------


@pytest.mark.parametrize("share", [1e-9, 0.2, 50.0])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_what_surprises_nobody_is_a_share_of_the_spread_or_what_noise_can_do(
    share: float, noise: float
) -> None:
    at = points(60)
    targets = 7.0 * (wave(at) + noise * np.random.default_rng(2).standard_normal(60))
    made = fit(at, targets)
    # of noise, five and a half standard deviations
    usual = 5.5 * np.sqrt(made.posterior.hyperparameters.noise_variance)
    assert (usual > 1.0) == (noise > 0.0)
    assert made.allowance(share) == pytest.approx(max(share, usual) * targets.std(), rel=1e-12)


@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("max_basis", [1000, 5])
def test_a_regressor_that_was_packed_comes_back_to_the_last_bit(metric: Metric, max_basis: int) -> None:
    at, new, settings = points(40), points(100, seed=1), RegressorSettings(metric=metric, max_basis=max_basis)
    made = fit(at[:30], wave(at[:30]), settings)
    arrays: dict[str, Any] = {"other": np.zeros(1)}
    scalars = json.loads(json.dumps(made.pack("2.0", arrays)))
    assert all(name.startswith("2.0.") for name in arrays if name != "other")
    again = Regressor.unpack(scalars, "2.0", arrays)
    np.testing.assert_array_equal(again.predict(new), made.predict(new))
    np.testing.assert_array_equal(again.parameters, made.parameters)
    for name in ("target_mean", "target_scale", "n_fitted", "n_data", "basis_cut"):
        assert getattr(again, name) == getattr(made, name)
        assert type(getattr(again, name)) is type(getattr(made, name))
    # and what is made of it next, refitted or not
    for count in (34, 40):
        one, other = (fit(at[:count], wave(at[:count]), settings, before) for before in (made, again))
        np.testing.assert_array_equal(one.predict(new), other.predict(new))
