"""Regressor: one Gaussian process for one coordinate of the displacement, in raw units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from optimist.arrays import FloatArray
from optimist.compiled.process import move_together
from optimist.discretisation import Count
from optimist.documents import Settings
from optimist.gp.basis import choose_basis
from optimist.gp.covariance import Hyperparameters, Metric, squares
from optimist.gp.evidence import N_SCALARS, fit_hyperparameters
from optimist.gp.inputs import Inputs
from optimist.gp.on_grid import evaluate_on_grid
from optimist.gp.posterior import Posterior, projected_posterior
from optimist.gp.trend import prior_on_grid
from optimist.grid import Grid
from optimist.models.model import Arrays, Document

LEAST_NOISE = 1.5e-3  # of the spread of displacements: less is what no smooth function explains, not noise
FEWEST_DATA = 30  # to tell noise from what was not understood yet
NOISE_DEVIATIONS = 5.5  # standard deviations of noise that surprise nobody

T = TypeVar("T")

SMALLEST_SPREAD = 1e-12  # of the targets' size: below that they count as constant


class RegressorSettings(Settings):
    """How a single process is fitted."""

    metric: Metric = Metric.AXES
    subset: Annotated[int, Field(ge=2, lt=2**63)] = (
        300  # points the likelihood is optimised on, drawn at random
    )
    linear: bool = True  # a linear trend besides; the paper has none
    max_basis: Count = 500
    basis_tolerance: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = (
        1e-2  # times the noise variance; see `gp.basis`
    )
    # hyperparameters are looked for again when there are so many times the data
    refit_growth: Annotated[float, Field(ge=1.0, allow_inf_nan=False)] = 1.25


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
        features = self.inputs.features(points)
        mean, variance = self.posterior.predict(features)
        return self._in_raw_units(mean), variance / self.posterior.hyperparameters.prior_at(squares(features))

    def mean(self, points: FloatArray) -> FloatArray:
        """Displacement alone, at a few raw inputs [n, k].  [n]"""
        return moves((self,), points)[:, 0]

    def predict_on(
        self, grid: Grid, control: FloatArray | None, *, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """The same at all nodes.  [N], [N]"""
        mean, variance = evaluate_on_grid(
            self.posterior, self.inputs, grid, control, with_variance=with_variance
        )
        if variance is not None:
            variance /= prior_on_grid(self.posterior.hyperparameters, self.inputs, grid, control)
        return self._in_raw_units(mean), variance

    def prior_on(self, grid: Grid, control: FloatArray | None) -> FloatArray:
        """Variance of the displacement before anything was seen, in its squared units, at all nodes.  [N]"""
        prior = prior_on_grid(self.posterior.hyperparameters, self.inputs, grid, control)
        return np.asarray(prior * self.target_scale**2)

    @property
    def noise(self) -> float:
        """Its standard deviation in units of displacement; 0 where what is left is no more than a misfit."""
        if self.n_data < FEWEST_DATA:
            return 0.0
        share = float(self.posterior.hyperparameters.noise_variance) ** 0.5
        return share * self.target_scale if share >= LEAST_NOISE else 0.0

    def allowance(self, share: float) -> float:
        """How far a displacement may be off before it surprises: a share of the usual spread, or noise."""
        noise = NOISE_DEVIATIONS * float(self.posterior.hyperparameters.noise_variance) ** 0.5
        return float(max(share, noise) * self.target_scale)

    def pack(self, prefix: str, arrays: Arrays) -> Document:
        """Its arrays go into `arrays`, under names that begin with `prefix`; its numbers are returned."""
        hyper, document = self.posterior.hyperparameters, Document()
        for part in (self.inputs, hyper, self.posterior, self):
            for name in type(part).__annotations__:
                value = getattr(part, name)
                if isinstance(value, np.ndarray):
                    arrays[f"{prefix}.{name}"] = value
                elif value is None or isinstance(value, float | int):
                    document[name] = value
        return document

    @classmethod
    def unpack(cls, document: Document, prefix: str, arrays: Arrays) -> Regressor:
        """The opposite of `pack`."""
        mine = document | {
            name.removeprefix(f"{prefix}."): array
            for name, array in arrays.items()
            if name.startswith(f"{prefix}.")
        }

        def part(kind: type[T], **known: object) -> T:
            return kind(**known, **{name: mine[name] for name in kind.__annotations__ if name not in known})

        inputs, hyper = part(Inputs), part(Hyperparameters)
        return part(cls, inputs=inputs, posterior=part(Posterior, hyperparameters=hyper))

    def _in_raw_units(self, mean: FloatArray) -> FloatArray:
        mean *= self.target_scale
        mean += self.target_mean
        return mean

    @cached_property
    def process(self) -> tuple[object, ...]:
        """What compiled loops need of it: all arrays alike, wherever they come from."""
        parts = (
            np.require(part, requirements=["C", "W"]) if isinstance(part, np.ndarray) else part
            for part in self.posterior.process(self.inputs)
        )
        return tuple(parts), float(self.target_mean), float(self.target_scale)


def moves(regressors: Sequence[Regressor], points: FloatArray, draws: FloatArray | None = None) -> FloatArray:
    """Displacements at raw inputs [n, k], the same for all; off by `draws` [n, d] standard deviations.

    [n, d]. Rehearsals ask for a few at every step: a single call of compiled loops.
    """
    moved = np.empty((len(points), len(regressors)))
    processes = tuple(regressor.process for regressor in regressors)
    errors = np.empty((0, len(regressors))) if draws is None else np.require(draws, np.float64, ["C", "W"])
    move_together(np.require(points, np.float64, ["C", "W"]), errors, processes, moved)
    return moved


@dataclass(frozen=True, eq=False)
class Data:
    """What one process learns from."""

    points: FloatArray  # [n, k], raw inputs
    targets: FloatArray  # [n], displacements
    copies: int = 1  # how often each transition is among them, its image in a mirror too

    def mirrored(self, images: FloatArray, sign: float) -> Data:
        """With the image of every point behind, which moves the same way or the other."""
        both = np.concatenate([self.targets, sign * self.targets])
        return Data(np.concatenate([self.points, images]), both, 2 * self.copies)

    def __len__(self) -> int:
        """Transitions."""
        return len(self.targets) // self.copies

    def some(self, count: int, stream: np.random.Generator) -> Data:
        """At most `count` of them, drawn at random; images stay with what they are images of."""
        if len(self.targets) <= count:
            return self
        rows = stream.choice(len(self), count // self.copies, replace=False)
        rows = np.concatenate([rows + copy * len(self) for copy in range(self.copies)])
        return Data(self.points[rows], self.targets[rows], self.copies)


def fit_regressor(
    seen: Data,
    inputs: Inputs,
    settings: RegressorSettings,
    previous: Regressor | None,
    stream: np.random.Generator,
    *,
    unit: float = 1.0,
) -> Regressor:
    """From what was seen: refitted if the data grew enough, else reconditioned.

    `inputs` is the scaling to take when hyperparameters are looked for; a recondition keeps the previous.
    `unit` is the scale of targets that are all zero, which tell nothing of their own.
    """
    if previous is not None and len(seen) < settings.refit_growth * previous.n_fitted:
        return _conditioned(seen, settings, previous)
    mean, scale = _standardisation(seen.targets, unit)
    some = seen.some(settings.subset, stream)
    warm = None if previous is None else _rescaled(previous, inputs, settings.metric)
    fit = fit_hyperparameters(
        inputs.features(some.points),
        (some.targets - mean) / scale,
        inputs.axes,
        settings.metric,
        warm,
        linear=settings.linear,
        copies=seen.copies,
    )
    posterior = Posterior(fit.hyperparameters, np.empty((0, 0)), np.empty(0), np.empty((0, 0)), 0.0)
    fitted = Regressor(inputs, posterior, mean, scale, fit.parameters, len(seen), 0, basis_cut=False)
    return _conditioned(seen, settings, fitted)


def _conditioned(seen: Data, settings: RegressorSettings, fitted: Regressor) -> Regressor:
    """The posterior given all data, with the hyperparameters and scalings of `fitted`."""
    features = fitted.inputs.features(seen.points)
    hyper = fitted.posterior.hyperparameters
    basis = choose_basis(features, hyper, max_basis=settings.max_basis, tolerance=settings.basis_tolerance)
    standardised = (seen.targets - fitted.target_mean) / fitted.target_scale
    posterior = projected_posterior(features, standardised, hyper, basis, copies=seen.copies)
    return replace(fitted, posterior=posterior, n_data=len(seen), basis_cut=basis.cut)


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
    parameters[N_SCALARS : N_SCALARS + inputs.n_axes] += 2.0 * np.log(inputs.scales / previous.inputs.scales)
    return parameters
