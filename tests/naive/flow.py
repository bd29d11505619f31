"""An interpolated model, one state, one action and one node at a time."""

from __future__ import annotations

from math import floor

import numpy as np

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.steps import Successors
from tests.naive.following import ScalarStep
from tests.naive.interpolation import weights_of_point


def wrapped(x: float, low: float, period: float) -> float:
    """The same place in [low, low + period)."""
    turned = x - floor((x - low) / period) * period
    return low if turned >= low + period else turned


def periods_of(grid: Grid) -> list[float | None]:
    """Of the axes that turn."""
    box = grid.box
    return [float(width) if turns else None for width, turns in zip(box.widths, box.periodic, strict=True)]


def node_displacements(grid: Grid, next_states: FloatArray) -> FloatArray:
    """From every node to its successor [N, d], the short way round on periodic axes."""
    table = np.empty(next_states.shape)
    for node, start in enumerate(grid.nodes):
        for axis, period in enumerate(periods_of(grid)):
            moved = float(next_states[node, axis]) - float(start[axis])
            table[node, axis] = moved if period is None else wrapped(moved, -period / 2.0, period)
    return table


def flow(grid: Grid, model: Successors) -> ScalarStep:
    """The successor of one state under one action, and how uncertain it is."""
    assert model.uncertainty is not None
    uncertainty, periods = model.uncertainty, periods_of(grid)
    displacements = [node_displacements(grid, next_states) for next_states in model.next_states]

    def step(state: FloatArray, action: int) -> tuple[FloatArray, float]:
        weights = weights_of_point(grid.axes, periods, state)
        successor = state + weights @ displacements[action]
        for axis, period in enumerate(periods):
            if period is not None:
                successor[axis] = wrapped(float(successor[axis]), float(grid.box.low[axis]), period)
        return successor, float(weights @ uncertainty[action])

    return step


def plan_value(grid: Grid, q_values: FloatArray, state: FloatArray) -> float:
    """The best of a plan at the nodes, interpolated."""
    best = np.array([max(row) for row in q_values.tolist()])
    return float(weights_of_point(grid.axes, periods_of(grid), state) @ best)
