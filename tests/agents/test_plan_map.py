"""Maps of plans: what is kept of a plan differs from it by less than an eye can see."""

from __future__ import annotations

import numpy as np
import pytest

from optimist import Box
from optimist.agents import plan_map
from optimist.agents.plan_map import LEVELS, SHADES, PlanMap
from optimist.grid import Grid
from optimist.planning import QFunction

BOX = Box([-1.0, 0.0, -np.pi], [1.0, 2.0, np.pi], periodic=[False, False, True])
GRID = Grid.spaced(BOX, (5, 4, 6), (1.0, 2.0, 1.0))


def drawn(seed: int) -> tuple[QFunction, np.ndarray, np.ndarray]:
    stream = np.random.default_rng(seed)
    q_values = stream.normal(size=(GRID.n_nodes, 3)) * 50.0
    return QFunction(GRID, q_values), stream.random((3, GRID.n_nodes)), stream.normal(size=(7, 3))


def test_a_map_is_its_plan_to_half_a_step() -> None:
    q_function, uncertainty, path = drawn(0)
    made = PlanMap.of(q_function, uncertainty, path)
    q_values = q_function.q_values
    step = (q_values.max() - q_values.min()) / LEVELS
    assert np.abs(made.low + made.levels * step - q_values.T).max() <= 0.5001 * step
    assert np.abs(made.shades / SHADES - uncertainty).max() <= 0.5001 / SHADES
    assert [nodes.tolist() for nodes in made.axes] == [nodes.tolist() for nodes in GRID.axes]
    assert np.allclose(made.document()["path"], path, rtol=1e-5)


def test_a_flat_plan_is_one_level() -> None:
    made = PlanMap.of(
        QFunction(GRID, np.full((GRID.n_nodes, 2), -3.0)), np.ones((2, GRID.n_nodes)), np.empty((0, 3))
    )
    assert (made.low, made.high) == (-3.0, -3.0)
    assert not made.levels.any()
    assert (made.shades == SHADES).all()


def test_of_a_large_grid_some_nodes_are_kept_and_the_edges_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_map, "MOST", 100)
    q_function, uncertainty, path = drawn(1)
    made = PlanMap.of(q_function, uncertainty, path)
    assert made.levels.size <= 100
    for axis, nodes in enumerate(made.axes):
        assert set(nodes) < set(GRID.axes[axis])
        if not BOX.periodic[axis]:
            assert {nodes[0], nodes[-1]} == {BOX.low[axis], BOX.high[axis]}
    # the value kept for a node is that node's
    states = np.stack(np.meshgrid(*made.axes, indexing="ij"), axis=-1).reshape(-1, 3)
    step = (made.high - made.low) / LEVELS
    assert np.abs(made.low + made.levels.T * step - q_function(states)).max() <= 0.5001 * step + 1e-9
