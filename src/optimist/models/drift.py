"""Drift: how much a model changed, and when to stop updating it (the paper's stopping criterion).

Two successive models are compared on a coarse set of points, which lie where the nodes do: the mean change of
the predicted successor, in units of a cell of the planning grid, and the mean change of the uncertainty.
Learning stops when both are below their tolerances several times in a row; once is not enough, since the
drift is also small while the agent idles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.discretisation import Count, Positive
from optimist.documents import Settings
from optimist.grid import Grid
from optimist.models.knownness import FINE
from optimist.models.model import Model
from optimist.threads import shared

POINTS_PER_AXIS = 10
MOST_POINTS = 1000
CHOICE_SEED = 0


@dataclass(frozen=True)
class Drift:
    """Change between two models."""

    mean_drift: float  # of the successor, in cells
    uncertainty_drift: float


class StoppingRule(Settings):
    """When learning stops and when it goes on (the paper's delta_1 and delta_2).

    It stops when both drifts stay below their tolerances `patience` times in a row.
    """

    mean_drift_tolerance: Positive = 0.05  # cells per planned step
    uncertainty_drift_tolerance: Positive = 0.01
    patience: Count = 2
    surprise: Positive = 0.2  # a prediction off by this much of the spread of displacements wakes the learner
    disappointment: Positive = 0.1  # so does an episode that earns this share less than was expected
    # of what is expected: possible models that differ by more do not let it stop, nor begin an episode asleep
    disagreement: Positive = 0.5

    def settled(self, drifts: Sequence[Drift]) -> bool:
        """Whether the last drifts are all small."""
        last = drifts[-self.patience :]
        return len(last) == self.patience and all(
            drift.mean_drift < self.mean_drift_tolerance
            and drift.uncertainty_drift < self.uncertainty_drift_tolerance
            for drift in last
        )


def check_points(grid: Grid) -> FloatArray:
    """A coarse set of states, spread as the nodes are: centres of a lattice of cells, or some.  [n, d]"""
    box = grid.box
    places = np.arange(POINTS_PER_AXIS**box.n_dims)
    if places.size > MOST_POINTS:
        places = np.random.default_rng(CHOICE_SEED).choice(places.size, MOST_POINTS, replace=False)
    lattice = np.column_stack(np.unravel_index(places, (POINTS_PER_AXIS,) * box.n_dims))
    shares = (lattice + 0.5) / POINTS_PER_AXIS
    points = np.empty(shares.shape)
    for axis, nodes in enumerate(grid.axes):
        closed = np.append(nodes, nodes[0] + box.widths[axis]) if box.periodic[axis] else nodes
        points[:, axis] = np.interp(shares[:, axis] * (closed.size - 1), np.arange(closed.size), closed)
    return box.wrap(points)


class Drifting:
    """Measures it again and again. Who is new now is old the next time: what it said is remembered."""

    def __init__(self) -> None:
        self._said: _Said | None = None

    def __call__(self, before: Model, after: Model, grid: Grid, controls: FloatArray) -> Drift:
        """Mean change over check points and `controls` [n_actions, k]."""
        states, said = check_points(grid), self._said
        cells = grid.box.widths / np.maximum(np.array(grid.shape) - ~grid.box.periodic, FINE)
        known = [] if said is None or not said.answers(before, grid, controls) else said.of_each
        asked = [
            (model, control) for model in ([after] if known else [before, after]) for control in controls
        ]
        found = shared(lambda one: _asked(one[0], states, one[1]), asked)
        known, found = known or found[: len(controls)], found[-len(controls) :]
        self._said = _Said(after, grid, controls, found)
        moved, changed = [], []
        for (old, old_uncertainty), (new, new_uncertainty) in zip(known, found, strict=True):
            moved.append(np.abs(grid.box.displacement(old, new) / cells).max(axis=1).mean())
            changed.append(np.abs(new_uncertainty - old_uncertainty).mean())
        return Drift(float(np.mean(moved)), float(np.mean(changed)))


def _asked(model: Model, states: FloatArray, control: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where a control [k] leads from `states` [n, d] and how unsure that is: kept, so it is nobody else's."""
    next_states, uncertainty = model.predict_with_uncertainty(states, control[np.newaxis])
    assert uncertainty is not None
    return np.array(next_states), np.array(uncertainty)


@dataclass(frozen=True, eq=False)
class _Said:
    """By a model, at the check points of a grid."""

    model: Model
    grid: Grid
    controls: FloatArray
    of_each: list[tuple[FloatArray, FloatArray]]  # [n_actions]

    def answers(self, model: Model, grid: Grid, controls: FloatArray) -> bool:
        """Whether that is what is asked."""
        return model is self.model and grid is self.grid and np.array_equal(controls, self.controls)
