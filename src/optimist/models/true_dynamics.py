"""The dynamics as they are, in the shape of a model: feeds the offline optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimist.box import FloatArray
from optimist.grid import Grid
from optimist.models.prediction import Prediction

BLOCK = 16384


@dataclass(frozen=True, eq=False)
class TrueDynamics:
    """A known transition function f(states [n, d], controls [n, k] or [1, k]) -> [n, d]."""

    function: Callable[[FloatArray, FloatArray], FloatArray]
    controls: FloatArray  # [n_actions, k]

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """The function, its answer checked.  [n, d]"""
        next_states = np.asarray(self.function(states, controls), dtype=np.float64)
        if next_states.shape != states.shape:
            raise ValueError(
                f"The dynamics must return one state per state, shape {states.shape}; "
                f"got shape {next_states.shape}."
            )
        bad = np.flatnonzero(~np.isfinite(next_states).all(axis=1))
        if bad.size:
            raise ValueError(
                f"The dynamics must return finite states; got {next_states[bad[0]].tolist()} "
                f"from state {states[bad[0]].tolist()} (and {bad.size - 1} more of {len(states)})."
            )
        return next_states

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
