"""Regressor: one Gaussian process for one coordinate of the displacement, in raw units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.gp import (
    Inputs,
    Metric,
    Posterior,
    choose_basis,
    evaluate_on_grid,
    fit_hyperparameters,
    projected_posterior,
)
from optimist.gp.evidence import N_SCALARS
from optimist.grid import Grid

SMALLEST_SPREAD = 1e-12  # of the targets' size: below that they count as constant


@dataclass(frozen=True)
class RegressorSettings:
    """How a single process is fitted."""

    metric: Metric = Metric.AXES
    subset: int = 150  # points the likelihood is optimised on, drawn at random
    max_basis: int = 1000
    basis_tolerance: float = 1e-2  # times the noise variance; see `gp.basis`
    refit_growth: float = 1.25  # hyperparameters are looked for again when there are so many times the data

    def __post_init__(self) -> None:
        if self.metric not in set(Metric):
            raise ValueError(f"`metric` must be one of {', '.join(Metric)}; got {self.metric!r}.")
        object.__setattr__(self, "metric", Metric(self.metric))
        if self.subset < 2:
            raise ValueError(f"`subset` must be at least 2; got {self.subset}.")
        if self.max_basis < 1:
            raise ValueError(f"`max_basis` must be at least 1; got {self.max_basis}.")
        if not self.basis_tolerance >= 0.0:
            raise ValueError(f"`basis_tolerance` must not be negative; got {self.basis_tolerance}.")
        if not self.refit_growth >= 1.0:
            raise ValueError(f"`refit_growth` must be at least 1; got {self.refit_growth}.")


@dataclass(frozen=True, eq=False)
class Regressor:
    """Posterior with the scaling of its inputs and targets, and what was done to get it."""

    inputs: Inputs
    posterior: Posterior
    target_mean: float
    target_scale: float
    parameters: FloatArray  # of the last fit, where the next one starts
    n_fitted: int  # data when the hyperparameters were found
    n_data: int  # data it is conditioned on
    basis_cut: bool  # the basis was stopped by its size

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Displacement and normalised variance, in [0, 1], at raw inputs [n, k].  [n], [n]"""
        mean, variance = self.posterior.predict(self.inputs.features(points))
        return self._in_raw_units(mean), variance / self.posterior.hyperparameters.prior_variance

    def predict_on(
        self, grid: Grid, control: FloatArray | None, *, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """The same at all nodes.  [N], [N]"""
        mean, variance = evaluate_on_grid(
            self.posterior, self.inputs, grid, control, with_variance=with_variance
        )
        if variance is not None:
            variance /= self.posterior.hyperparameters.prior_variance
        return self._in_raw_units(mean), variance

    @property
    def prior_variance(self) -> float:
        """Of the displacement before anything was seen, in its squared units."""
        return self.posterior.hyperparameters.prior_variance * self.target_scale**2

    def _in_raw_units(self, mean: FloatArray) -> FloatArray:
        mean *= self.target_scale
        mean += self.target_mean
        return mean


def fit_regressor(
    points: FloatArray,
    targets: FloatArray,
    inputs: Inputs,
    settings: RegressorSettings,
    previous: Regressor | None,
    stream: np.random.Generator,
    *,
    unit: float = 1.0,
) -> Regressor:
    """From raw inputs [n, k] and displacements [n]: refitted if the data grew enough, else reconditioned.

    `inputs` is the scaling to take when hyperparameters are looked for; a recondition keeps the previous.
    `unit` is the scale of targets that are all zero, which tell nothing of their own.
    """
    if previous is not None and len(targets) < settings.refit_growth * previous.n_fitted:
        return _conditioned(points, targets, settings, previous)
    mean, scale = _standardisation(targets, unit)
    rows = np.arange(len(targets))
    if len(targets) > settings.subset:
        rows = stream.choice(len(targets), settings.subset, replace=False)
    warm = None if previous is None else _rescaled(previous, inputs, settings.metric)
    fit = fit_hyperparameters(
        inputs.features(points[rows]), (targets[rows] - mean) / scale, inputs.axes, settings.metric, warm
    )
    posterior = Posterior(fit.hyperparameters, np.empty((0, 0)), np.empty(0), np.empty((0, 0)), 0.0)
    fitted = Regressor(inputs, posterior, mean, scale, fit.parameters, len(targets), 0, basis_cut=False)
    return _conditioned(points, targets, settings, fitted)


def _conditioned(
    points: FloatArray, targets: FloatArray, settings: RegressorSettings, fitted: Regressor
) -> Regressor:
    """The posterior given all data, with the hyperparameters and scalings of `fitted`."""
    features = fitted.inputs.features(points)
    hyper = fitted.posterior.hyperparameters
    basis = choose_basis(features, hyper, max_basis=settings.max_basis, tolerance=settings.basis_tolerance)
    standardised = (targets - fitted.target_mean) / fitted.target_scale
    posterior = projected_posterior(features, standardised, hyper, basis)
    return Regressor(
        inputs=fitted.inputs,
        posterior=posterior,
        target_mean=fitted.target_mean,
        target_scale=fitted.target_scale,
        parameters=fitted.parameters,
        n_fitted=fitted.n_fitted,
        n_data=len(targets),
        basis_cut=basis.cut,
    )


def _standardisation(targets: FloatArray, unit: float) -> tuple[float, float]:
    """Mean and scale; constant targets are left on the scale of their size."""
    mean, spread = float(targets.mean()), float(targets.std())
    size = float(np.abs(targets).max())
    if spread > SMALLEST_SPREAD * size:
        return mean, spread
    return mean, size if size > 0.0 else unit


def _rescaled(previous: Regressor, inputs: Inputs, metric: Metric) -> FloatArray | None:
    """The previous parameters for inputs of another scaling: theta goes with the square of the scale."""
    if metric is not Metric.AXES:
        return previous.parameters
    parameters = previous.parameters.copy()
    parameters[N_SCALARS:] += 2.0 * np.log(inputs.scales / previous.inputs.scales)
    return parameters
