"""The dynamics as they are, in the shape of a model: feeds the offline optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.dynamics import Dynamics, successors
from optimist.grid import Grid
from optimist.models.prediction import Prediction

BLOCK = 16384


@dataclass(frozen=True, eq=False)
class TrueDynamics:
    """A known transition function f(states [n, d], controls [n, k] or [1, k]) -> [n, d]."""

    function: Dynamics
    controls: FloatArray  # [n_actions, k]; a flat list means k = 1

    def __post_init__(self) -> None:
        controls = np.array(self.controls, dtype=np.float64)
        object.__setattr__(self, "controls", controls[:, np.newaxis] if controls.ndim == 1 else controls)

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """The function, its answer checked.  [n, d]"""
        return successors(self.function, states, controls)

    def predict_on(self, grid: Grid) -> Prediction:
        """Successors of all nodes, known for certain."""
        n_actions = len(self.controls)
        next_states = np.empty((n_actions, grid.n_nodes, grid.n_dims))
        for first, last in grid.blocks(BLOCK):
            states = grid.nodes_between(first, last)
            for action in range(n_actions):
                control = self.controls[action : action + 1]
                next_states[action, first:last] = self.predict(states, control)
        return Prediction(next_states, np.broadcast_to(0.0, (n_actions, grid.n_nodes)))
