"""Grids, successors and tasks for the tests of this folder."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.steps import Step, Successors
from optimist.task import Task

GRIDS = [
    pytest.param(d, spacing, kind, id=f"{d}d-{spacing}-{kind}")
    for d, spacing, kind in product(range(1, 5), ("uniform", "random"), ("line", "mixed", "torus"))
]
CONTROLS = np.array([[-1.0], [0.25], [2.0]])


def anything(grid: Grid, *, n_actions: int = 3, seed: int = 0, unsure: bool = True) -> Successors:
    """Successors all over the place: beyond the box, across the seam; and any uncertainty.

    [n_actions, n_nodes, d], [n_actions, n_nodes]
    """
    stream = np.random.default_rng([seed, grid.n_nodes])
    moves = stream.uniform(-0.45, 0.45, size=(n_actions, grid.n_nodes, grid.n_dims)) * grid.box.widths
    uncertainty = stream.uniform(size=(n_actions, grid.n_nodes)) if unsure else np.zeros(moves.shape[:2])
    return Successors(grid.box.wrap(grid.nodes + moves), uncertainty)


def uncertainty_of(successors: Successors) -> FloatArray:
    """Where it is told."""
    assert successors.uncertainty is not None
    return successors.uncertainty


def at_nodes(grid: Grid, successors: Successors) -> Step:
    """A step from nodes only, which looks up where they lead: exact, and unlike a flow checks nothing."""
    numbers = {node.tobytes(): number for number, node in enumerate(grid.nodes)}

    def step(states: FloatArray, action: int) -> Successors:
        rows = [numbers[state.tobytes()] for state in states]
        unsure = successors.uncertainty
        return Successors(
            successors.next_states[action][rows], None if unsure is None else unsure[action][rows]
        )

    return step


def states_around(grid: Grid, count: int, *, seed: int = 1, beyond: float = 0.2) -> FloatArray:
    stream = np.random.default_rng([seed, grid.n_dims])
    margin = beyond * grid.box.widths
    return stream.uniform(grid.box.low - margin, grid.box.high + margin, size=(count, grid.n_dims))


def assert_same_place(box: Box, found: FloatArray, expected: FloatArray) -> None:
    """Equal, where the two ends of a periodic axis are one place."""
    np.testing.assert_allclose(box.displacement(expected, found), 0.0, atol=1e-11)


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    first, last = states[:, 0], next_states[:, -1]
    return -1.0 - 0.1 * first**2 + 0.05 * np.sin(last) + 0.2 * controls[:, 0]


def task_on(grid: Grid, *, discount: float = 0.9, max_steps: int = 500, share: float = 0.45) -> Task:
    """Terminal beyond a share of the last axis; V_MAX above 0, where nothing else is."""
    limit = grid.box.low[-1] + share * grid.box.widths[-1]

    def ended(states: FloatArray) -> BoolArray:
        beyond: BoolArray = states[:, -1] > limit
        return beyond

    return Task(grid.box, CONTROLS, cost, discount, 3.0, ended, max_steps)


def inwards(box: Box, states: FloatArray, controls: FloatArray) -> FloatArray:
    """Towards a place in the box that depends on the control, linearly; turning on by a fixed angle.

    Never leaves the box, so a flow of it is exact.
    """
    targets = box.low + box.widths * (0.3 + 0.2 * (controls[:, :1] + 1.0))
    moved = states + 0.25 * (targets - states)
    turned = states + 0.1 * box.widths * controls[:, :1]
    return box.wrap(np.where(box.periodic, turned, moved))
