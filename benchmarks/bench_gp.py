"""One Gaussian process, mean and variance at 25^4 nodes: ours, scikit-learn, plain numpy and scipy.

The process is one the acrobot gives (hyperparameters learned from 3000 transitions), conditioned on 300 and
on 1000 basis points; and, as hard cases, processes with 300 points scattered over the whole box and shorter
length scales. Peers predict all nodes in blocks at the same hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from benchmarks.exploring import random_transitions
from benchmarks.measuring import Result, compared, fastest
from optimist.arrays import FloatArray
from optimist.gp.basis import choose_basis
from optimist.gp.covariance import Hyperparameters, Metric, covariance
from optimist.gp.evidence import default_parameters, unpack
from optimist.gp.inputs import Inputs
from optimist.gp.on_grid import evaluate_on_grid
from optimist.gp.posterior import Posterior, exact_posterior
from optimist.grid import Grid
from optimist.models import GPSettings, fit_dynamics
from optimist.systems import SYSTEMS

SYSTEM = SYSTEMS["acrobot"]
GRID = Grid.uniform(SYSTEM.task.box, (25, 25, 25, 25))
BLOCK = 4096
ROUNDS = 2


def run() -> dict[str, Result]:
    return {
        "one GP on 25^4 nodes, 300 points, learned": _measure(*_learned(300), with_sklearn=True),
        "one GP on 25^4 nodes, 1000 points, learned": _measure(*_learned(1000), with_sklearn=False),
        "one GP on 25^4 nodes, 300 points, length scale 1": _measure(*_scattered(1.0), with_sklearn=True),
        "one GP on 25^4 nodes, 300 points, length scale 0.5": _measure(*_scattered(0.5), with_sklearn=True),
    }


def _learned(count: int) -> tuple[Inputs, Hyperparameters, FloatArray, FloatArray]:
    """Inputs, hyperparameters, features and targets of `count` pivots of the acrobot's second rate."""
    task = SYSTEM.task
    transitions = random_transitions(SYSTEM, 3000, seed=0)
    settings = GPSettings(kind="per-action", subset=150)
    model = fit_dynamics(transitions, task.box, task.controls, settings, fit_seed=0)
    regressors = model.regressors[0]
    assert regressors is not None
    regressor = regressors[3]
    hyper = regressor.posterior.hyperparameters
    rows = transitions.actions == 0
    features = regressor.inputs.features(transitions.states[rows])
    targets = task.box.displacement(transitions.states[rows], transitions.next_states[rows])[:, 3]
    pivots = choose_basis(features, hyper, max_basis=count, tolerance=0.0).pivots
    standardised = (targets - regressor.target_mean) / regressor.target_scale
    return regressor.inputs, hyper, features[pivots], standardised[pivots]


def _scattered(length_scale: float) -> tuple[Inputs, Hyperparameters, FloatArray, FloatArray]:
    box = SYSTEM.task.box
    points = box.low + np.random.default_rng(0).uniform(size=(300, 4)) * box.widths
    inputs = Inputs.spanning(box, points)
    parameters = default_parameters(Metric.AXES, inputs.axes)
    parameters[3:] = -2.0 * np.log(length_scale)
    features = inputs.features(points)
    return inputs, unpack(parameters, Metric.AXES, inputs.axes), features, np.sin(features.sum(axis=1))


def _measure(
    inputs: Inputs, hyper: Hyperparameters, features: FloatArray, targets: FloatArray, *, with_sklearn: bool
) -> Result:
    posterior = exact_posterior(features, targets, hyper)
    contestants: dict[str, Callable[[], object]] = {
        "optimist": lambda: evaluate_on_grid(posterior, inputs, GRID),
        "numpy and scipy": lambda: _plain(posterior, features, targets, inputs),
    }
    if with_sklearn:
        regressor = _sklearn(hyper, features, targets)
        contestants["scikit-learn"] = lambda: _predict_blocks(regressor, inputs)
    seconds = fastest(contestants, ROUNDS)
    mean, variance = evaluate_on_grid(posterior, inputs, GRID)
    plain_mean, plain_variance = _plain(posterior, features, targets, inputs)
    assert variance is not None
    return compared(
        seconds,
        "optimist",
        "scikit-learn" if with_sklearn else "numpy and scipy",
        mean_error=float(np.abs(mean - plain_mean).max() / np.abs(plain_mean).max()),
        variance_error=float(np.abs(variance - plain_variance).max() / hyper.prior_variance),
        points=len(targets),
    )


def _plain(
    posterior: Posterior, features: FloatArray, targets: FloatArray, inputs: Inputs
) -> tuple[FloatArray, FloatArray]:
    """RW Alg. 2.1 as anybody would write it, in blocks."""
    hyper = posterior.hyperparameters
    total = covariance(features, features, hyper) + hyper.noise_variance * np.eye(len(features))
    lower = np.linalg.cholesky(total)
    alpha = np.linalg.solve(lower.T, np.linalg.solve(lower, targets))
    mean, variance = np.empty(GRID.n_nodes), np.empty(GRID.n_nodes)
    for first, last in GRID.blocks(BLOCK):
        cross = covariance(inputs.features(GRID.nodes_between(first, last)), features, hyper)
        mean[first:last] = cross @ alpha
        half = solve_triangular(lower, cross.T, lower=True, check_finite=False)
        variance[first:last] = hyper.prior_variance - (half**2).sum(axis=0)
    return mean, variance


def _sklearn(hyper: Hyperparameters, features: FloatArray, targets: FloatArray) -> GaussianProcessRegressor:
    lengths = 1.0 / np.maximum(np.diag(hyper.projection), 1e-12)
    kernel = ConstantKernel(hyper.signal_variance) * RBF(lengths) + ConstantKernel(hyper.bias_variance)
    return GaussianProcessRegressor(kernel, alpha=hyper.noise_variance, optimizer=None).fit(features, targets)


def _predict_blocks(regressor: GaussianProcessRegressor, inputs: Inputs) -> None:
    for first, last in GRID.blocks(BLOCK):
        regressor.predict(inputs.features(GRID.nodes_between(first, last)), return_std=True)
