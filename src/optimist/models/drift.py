"""Drift: how much a model changed, and when to stop updating it (the paper's stopping criterion).

Two successive models are compared on a fixed coarse set of points: the mean change of the predicted
successor, in units of a cell of the planning grid, and the mean change of the uncertainty. Learning stops
when both are below their tolerances several times in a row; once is not enough, since the drift is also
small while the agent idles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.models.gp_dynamics import GPDynamics

POINTS_PER_AXIS = 10
MOST_POINTS = 2000
CHOICE_SEED = 0


@dataclass(frozen=True)
class Drift:
    """Change between two models."""

    mean_drift: float  # of the successor, in cells
    uncertainty_drift: float


@dataclass(frozen=True)
class StoppingRule:
    """Stop when both drifts stay below their tolerances `patience` times in a row (delta_1, delta_2)."""

    mean_drift_tolerance: float = 0.05
    uncertainty_drift_tolerance: float = 0.01
    patience: int = 2

    def __post_init__(self) -> None:
        if not (self.mean_drift_tolerance > 0.0 and self.uncertainty_drift_tolerance > 0.0):
            raise ValueError(
                "The drift tolerances must be positive; "
                f"got {self.mean_drift_tolerance} and {self.uncertainty_drift_tolerance}."
            )
        if self.patience < 1:
            raise ValueError(f"`patience` must be at least 1; got {self.patience}.")

    def settled(self, drifts: Sequence[Drift]) -> bool:
        """Whether the last drifts are all small."""
        last = drifts[-self.patience :]
        return len(last) == self.patience and all(
            drift.mean_drift < self.mean_drift_tolerance
            and drift.uncertainty_drift < self.uncertainty_drift_tolerance
            for drift in last
        )


def check_points(grid: Grid) -> FloatArray:
    """A fixed coarse set of states: centres of a lattice of cells, or some of them.  [n, d]"""
    box = grid.box
    places = np.arange(POINTS_PER_AXIS**box.n_dims)
    if places.size > MOST_POINTS:
        places = np.random.default_rng(CHOICE_SEED).choice(places.size, MOST_POINTS, replace=False)
    lattice = np.column_stack(np.unravel_index(places, (POINTS_PER_AXIS,) * box.n_dims))
    return np.asarray(box.low + (lattice + 0.5) / POINTS_PER_AXIS * box.widths)


def measure_drift(before: GPDynamics, after: GPDynamics, grid: Grid) -> Drift:
    """Mean change over check points and actions; of the processes' variance, whatever the knownness."""
    states = check_points(grid)
    cells = grid.box.widths / (np.array(grid.shape) - ~grid.box.periodic)
    moved, changed = [], []
    for control in after.controls:
        old, old_uncertainty = before.predict_with_uncertainty(states, control[np.newaxis])
        new, new_uncertainty = after.predict_with_uncertainty(states, control[np.newaxis])
        moved.append(np.abs(grid.box.displacement(old, new) / cells).max(axis=1).mean())
        changed.append(np.abs(new_uncertainty - old_uncertainty).mean())
    return Drift(float(np.mean(moved)), float(np.mean(changed)))
