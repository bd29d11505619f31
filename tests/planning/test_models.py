"""What planning relies on in a model, here the true dynamics."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from optimist.grid import Grid
from optimist.models import DynamicsModel, TrueDynamics
from optimist.systems import SYSTEMS, System

FloatArray = NDArray[np.float64]

every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))


def small_grid(system: System) -> Grid:
    return Grid.uniform(system.task.box, [4] * system.task.box.n_dims)


@every_system
def test_the_grid_is_predicted_as_its_nodes_are(system: System) -> None:
    grid = small_grid(system)
    model: DynamicsModel = TrueDynamics(system.dynamics, system.task.controls)
    prediction = model.predict_on(grid)
    assert prediction.next_states.shape == (system.task.n_actions, grid.n_nodes, grid.n_dims)
    for action, control in enumerate(system.task.controls):
        one_row = model.predict(grid.nodes, control[np.newaxis])
        every_row = model.predict(grid.nodes, np.tile(control, (grid.n_nodes, 1)))
        np.testing.assert_array_equal(prediction.next_states[action], one_row)
        np.testing.assert_allclose(every_row, one_row, rtol=1e-14, atol=1e-14)
        np.testing.assert_array_equal(one_row, system.dynamics(grid.nodes, control[np.newaxis]))


@every_system
def test_the_truth_is_certain(system: System) -> None:
    grid = small_grid(system)
    prediction = TrueDynamics(system.dynamics, system.task.controls).predict_on(grid)
    assert prediction.uncertainty.shape == (system.task.n_actions, grid.n_nodes)
    assert not prediction.uncertainty.any()


def test_a_grid_of_several_blocks_is_predicted_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SYSTEMS["pendulum"]
    grid = Grid.uniform(system.task.box, [7, 5])
    model = TrueDynamics(system.dynamics, system.task.controls)
    whole = model.predict_on(grid).next_states
    monkeypatch.setattr("optimist.models.true_dynamics.BLOCK", 8)
    np.testing.assert_array_equal(model.predict_on(grid).next_states, whole)


@pytest.mark.parametrize(
    "wrong",
    [lambda s, u: s[:, :1], lambda s, u: s[1:], lambda s, u: s.T, lambda s, u: 0.0],
)
def test_dynamics_of_the_wrong_shape_are_refused(wrong: object) -> None:
    model = TrueDynamics(wrong, np.array([[0.0]]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must return one state per state, shape \(5, 2\); got shape"):
        model.predict(np.zeros((5, 2)), model.controls)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_dynamics_that_are_not_finite_are_refused_with_the_state(bad: float) -> None:
    def breaks(states: FloatArray, controls: FloatArray) -> FloatArray:
        return np.where(states > 2.5, bad, states)

    model = TrueDynamics(breaks, np.array([[0.0]]))
    with pytest.raises(ValueError, match=rf"must return finite states; got \[{bad}\] from state \[3.0\]"):
        model.predict(np.arange(4.0)[:, np.newaxis], model.controls)
