"""What every dynamics model answers: where each action leads from each node, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from optimist.arrays import FloatArray
from optimist.grid import Grid


@dataclass(frozen=True, eq=False)
class Prediction:
    """Successors of all nodes under all actions."""

    next_states: FloatArray  # [n_actions, n_nodes, d]
    uncertainty: FloatArray  # [n_actions, n_nodes], 0 known to 1 unknown


class DynamicsModel(Protocol):
    """Anything that predicts successors."""

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors of `states` [n, d] under `controls` [n, k] or [1, k].  [n, d]"""
        ...

    def predict_on(self, grid: Grid) -> Prediction:
        """Successors of all nodes under all actions."""
        ...
