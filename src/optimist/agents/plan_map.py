"""PlanMap: what a plan says everywhere, small enough to be kept of every plan. Nothing is computed from it.

Q-values become one of 4096 steps between their least and their largest, uncertainty one of 256: no eye sees
finer ones, and smooth functions in few steps are quickly made small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray, IntArray
from optimist.planning.policy import QFunction

LEVELS = 4095  # of Q-values
SHADES = 255  # of uncertainty
MOST = 4_000_000  # values of each kind; of a larger grid every second node is kept, or every third, ...


@dataclass(frozen=True, eq=False)
class PlanMap:
    """Q-values and uncertainty at nodes, and the way that was rehearsed."""

    axes: tuple[FloatArray, ...]  # [d], the nodes kept of each
    low: float  # of Q-values
    high: float
    levels: NDArray[np.uint16]  # [n_actions, n_kept], Q-values from `low` (0) to `high` (LEVELS)
    shades: NDArray[np.uint8]  # [n_actions, n_kept], uncertainty from 0 to 1 (SHADES)
    path: NDArray[np.float32]  # [t, d], where following the plan through the model leads

    @classmethod
    def of(cls, q_function: QFunction, uncertainty: FloatArray, path: FloatArray) -> PlanMap:
        """Of a plan, its uncertainty at the nodes [n_actions, n_nodes], and a path [t, d]."""
        grid, q_values = q_function.grid, q_function.q_values
        kept, places = _kept(grid.shape, grid.box.periodic, q_values.shape[1])
        if places is not None:
            q_values, uncertainty = q_values[places], uncertainty[:, places]
        low, high = float(q_values.min()), float(q_values.max())
        scale = LEVELS / (high - low) if high > low else 0.0
        levels = ((q_values.T - low) * scale + 0.5).astype(np.uint16)
        shades = (np.clip(uncertainty, 0.0, 1.0) * SHADES + 0.5).astype(np.uint8)
        axes = tuple(nodes[some] for nodes, some in zip(grid.axes, kept, strict=True))
        return cls(axes, low, high, np.minimum(levels, LEVELS), shades, path.astype(np.float32))

    def document(self) -> dict[str, Any]:
        """All but the arrays of nodes, as JSON can say it."""
        return {
            "axes": [nodes.tolist() for nodes in self.axes],
            "low": self.low,
            "high": self.high,
            "levels": LEVELS,
            "shades": SHADES,
            "n_actions": len(self.levels),
            "path": [[float(f"{number:.6g}") for number in state] for state in self.path.tolist()],
        }


def _kept(
    shape: tuple[int, ...], periodic: NDArray[np.bool_], n_actions: int
) -> tuple[list[IntArray], IntArray | None]:
    """Which nodes of each axis are kept, and their places among all; None when that is all of them."""
    stride = 1
    while True:
        kept = [
            np.unique([*range(0, count, stride), *([] if around else [count - 1])])
            for count, around in zip(shape, periodic, strict=True)
        ]
        if n_actions * np.prod([some.size for some in kept], dtype=np.float64) <= MOST:
            break
        stride += 1
    if stride == 1:
        return kept, None
    return kept, np.ravel_multi_index(np.meshgrid(*kept, indexing="ij"), shape).reshape(-1)
