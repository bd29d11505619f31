"""What a planner is shown of a model that says too much, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from optimist.agents.choosing import flow_of
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.planning import Flow, Planner
from optimist.steps import Successors
from optimist.task import Task
from tests.agents.fakes import MadeUp

BOX = Box([-1.0, 10.0], [1.0, 40.0])
GRID = Grid.uniform(BOX, [5, 4])
N_ACTIONS = 3
TASK = Task(BOX, np.array([-1.0, 0.0, 1.0]), lambda s, u, n: -1.0 - n[:, 0] ** 2, 0.9, 0.0)


@dataclass(frozen=True, eq=False)
class Saying(MadeUp):
    """A model that is asked at the nodes only."""

    on_nodes: Successors  # [n_actions, n_nodes, d], [n_actions, n_nodes]

    def predict_on(self, grid: Grid) -> Successors:
        assert grid is GRID
        return self.on_nodes

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        raise AssertionError("Nobody asked.")

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        raise AssertionError("Nobody asked.")


def sound() -> tuple[FloatArray, FloatArray]:
    """Successors in and around the box, each as unsure as it likes."""
    stream = np.random.default_rng(0)
    shape = (N_ACTIONS, GRID.n_nodes)
    moved = GRID.nodes + stream.uniform(-0.5, 0.5, (*shape, 2)) * BOX.widths
    return moved, stream.uniform(0.1, 0.9, shape)


def at_nodes(flow: Flow) -> tuple[FloatArray, FloatArray]:
    """What a flow says where it was told.  [n_actions, n_nodes, d], [n_actions, n_nodes]"""
    found = [flow(GRID.nodes, action) for action in range(N_ACTIONS)]
    return np.stack([one.next_states for one in found]), flow.uncertainty(GRID.nodes).T


def test_what_is_sound_is_seen_as_it_is() -> None:
    said, unsure = sound()
    where, uncertainty = at_nodes(flow_of(Saying(Successors(said, unsure)), GRID))
    np.testing.assert_allclose(where, said, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(uncertainty, unsure, rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_a_model_cannot_say_is_unknown_there_and_nowhere_else(bad: float, axis: int) -> None:
    said, unsure = sound()
    broken = said.copy()
    rows = [(0, 3), (1, 0), (2, 19)]
    for action, node in rows:
        broken[action, node, axis] = bad
    where, uncertainty = at_nodes(flow_of(Saying(Successors(broken, unsure)), GRID))
    wrong = np.zeros(unsure.shape, dtype=np.bool_)
    wrong[tuple(zip(*rows, strict=True))] = True
    np.testing.assert_array_equal(uncertainty[wrong], 1.0)
    nodes = np.broadcast_to(GRID.nodes, said.shape)
    np.testing.assert_allclose(where[wrong], nodes[wrong], rtol=1e-12, atol=1e-12)  # leads nowhere
    np.testing.assert_allclose(where[~wrong], said[~wrong], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(uncertainty[~wrong], unsure[~wrong], rtol=1e-12)


def test_how_unsure_it_is_need_not_be_said_either_where_nothing_is() -> None:
    said, unsure = sound()
    said[1, 4], unsure[1, 4] = np.nan, np.nan
    uncertainty = at_nodes(flow_of(Saying(Successors(said, unsure)), GRID))[1]
    assert uncertainty[1, 4] == 1.0
    assert np.isfinite(uncertainty).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1.01, 5.0, 1e6, 1e300])
@pytest.mark.parametrize(("axis", "way"), [(0, -1.0), (0, 1.0), (1, -1.0), (1, 1.0)])
def test_further_out_than_a_width_nothing_is(axis: int, way: float, far: float) -> None:
    """Along that axis; it stays as sure of it as it was."""
    said, unsure = sound()
    edge = BOX.high if way > 0.0 else BOX.low
    said[2, 7, axis] = edge[axis] + way * far * BOX.widths[axis]
    where, uncertainty = at_nodes(flow_of(Saying(Successors(said, unsure)), GRID))
    expected = said.copy()
    expected[2, 7, axis] = edge[axis] + way * BOX.widths[axis]
    np.testing.assert_allclose(where, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(uncertainty, unsure, rtol=1e-12)


Said = Callable[[FloatArray], FloatArray]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "said",
    [
        lambda nodes: np.full_like(nodes, np.nan),
        lambda nodes: np.full_like(nodes, -np.inf),
        lambda nodes: 1e300 * np.sign(nodes),
        lambda nodes: np.where(nodes > 0.0, np.nan, 1e9),
    ],
    ids=["nothing", "infinite", "far", "both"],
)
def test_whatever_a_model_says_there_is_a_plan(said: Said) -> None:
    predicted = np.stack([said(GRID.nodes)] * N_ACTIONS)
    before = predicted.copy()
    flow = flow_of(Saying(Successors(predicted, np.zeros(predicted.shape[:2]))), GRID)
    np.testing.assert_array_equal(predicted, before)  # what the model keeps is not changed
    made = Planner(TASK).plan(flow, Layout(GRID, depth=1))
    assert np.isfinite(made.plan.q_values).all()
    assert made.plan.converged
    if np.isnan(said(GRID.nodes)).all():
        np.testing.assert_allclose(made.plan.q_values, TASK.optimistic_value)
