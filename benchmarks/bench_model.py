"""Fitting the whole model: acrobot, 8 processes, likelihood subset 300; and how it grows with the data.

A refit looks for hyperparameters anew (warm and default start), chooses the basis and conditions on all data.
"""

from __future__ import annotations

from functools import partial

from benchmarks.bench_memory import peak_bytes
from benchmarks.exploring import random_transitions
from benchmarks.measuring import Result, fastest
from optimist.models import GPDynamics, GPSettings, fit_dynamics
from optimist.systems import SYSTEMS

SYSTEM = SYSTEMS["acrobot"]
SETTINGS = GPSettings(kind="per-action", subset=300, refit_growth=1.0)
COUNTS = (500, 1000, 2000, 5000)
GRID_PEAK = """
import numpy as np
from optimist.grid import Grid
from optimist.gp.on_grid import evaluate_on_grid
from optimist.models import GPSettings, fit_dynamics
from benchmarks.exploring import random_transitions
from optimist.systems import SYSTEMS
system = SYSTEMS["acrobot"]
task = system.task
settings = GPSettings(kind="per-action", subset=150)
model = fit_dynamics(random_transitions(system, 1000, seed=0), task.box, task.controls, settings, fit_seed=0)
grid = Grid.uniform(task.box, (25, 25, 25, 25))
regressor = model.regressors[0][3]
inputs_and_outputs = [np.ones(grid.n_nodes) for _ in range(2)]
if {evaluating}:
    del inputs_and_outputs
    evaluate_on_grid(regressor.posterior, regressor.inputs, grid)
"""


def run() -> dict[str, Result]:
    refits = {f"{count} transitions": _refit_seconds(count) for count in COUNTS}
    smallest, *_, largest = refits.values()
    peaks = [peak_bytes(GRID_PEAK.format(evaluating=flag)) for flag in (False, True)]
    return {
        "full refit, acrobot, 8 processes, subset 300": {
            "ours_s": refits["1000 transitions"],
            "peers": refits,
            "ratio": largest / smallest,
            "against": "500 transitions (10 times fewer)",
        },
        "peak memory of one process on 25^4 nodes": {"ours_mb": (peaks[1] - peaks[0]) / 1e6},
    }


def _refit_seconds(count: int) -> float:
    task = SYSTEM.task
    transitions = random_transitions(SYSTEM, count, seed=0)
    fit = partial(fit_dynamics, transitions, task.box, task.controls, SETTINGS, fit_seed=0)
    before: GPDynamics = fit()
    return fastest({"refit": lambda: fit(previous=before)}, 2)["refit"]
