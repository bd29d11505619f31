"""Data that break naive Gaussian processes: nothing is raised, and what comes out can be planned with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.gp.covariance import Metric
from optimist.grid import Grid
from optimist.models import GPDynamics, GPSettings, fit_dynamics
from optimist.models.regressor import Regressor
from optimist.systems import SYSTEMS
from optimist.transitions import Transitions
from tests.models.learning import JOINT, learned, of_kind, unsure

BOX = Box([-1.0, 0.0], [1.0, 2.0 * np.pi], periodic=[False, True])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])
GRID = Grid.uniform(BOX, [6, 5])

Hard = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]  # states and displacements


def curve(states: FloatArray) -> FloatArray:
    return np.column_stack([0.1 * np.sin(states[:, 1]), 0.2 * np.cos(states[:, 1]) * states[:, 0]])


def anywhere(stream: np.random.Generator, count: int) -> FloatArray:
    return stream.uniform(0.9 * BOX.low, 0.9 * BOX.high, size=(count, 2))


def one_point(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 1)
    return states, curve(states)


def duplicates(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = np.repeat(anywhere(stream, 5), 20, axis=0)
    return states, curve(states)


def one_point_again_and_again(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = np.repeat(anywhere(stream, 1), 50, axis=0)
    return states, curve(states)


def nothing_moves(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 30)
    return states, np.zeros_like(states)


def constant_steps(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 30)
    return states, np.tile([0.03, -0.2], (30, 1))


def collinear(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = np.outer(stream.uniform(0.0, 1.0, 40), [0.7, 2.0])
    return states, curve(states)


def along_one_axis(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = np.column_stack([np.full(40, 0.25), stream.uniform(0.0, 6.0, 40)])
    return states, curve(states)


def tiny_steps(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 40)
    return states, 1e-9 * curve(states)


def huge_steps(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 40)
    return states, curve(states) * [1e9, 1.0]


def nearly_the_same_points(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 1) + 1e-8 * stream.standard_normal((60, 2))
    return states, curve(states)


def dense_points(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = np.column_stack([np.linspace(-0.5, 0.5, 200), np.linspace(1.0, 1.1, 200)])
    return states, states * [0.1, -0.1]


def contradictions(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = np.repeat(anywhere(stream, 10), 2, axis=0)
    return states, 0.1 * stream.standard_normal((20, 2))


def noise(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    return anywhere(stream, 60), 0.3 * stream.standard_normal((60, 2))


def one_outlier(stream: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    states = anywhere(stream, 40)
    displacements = curve(states)
    displacements[7, 0] = 1e6
    return states, displacements


HARD: list[Hard] = [
    one_point,
    duplicates,
    one_point_again_and_again,
    nothing_moves,
    constant_steps,
    collinear,
    along_one_axis,
    tiny_steps,
    huge_steps,
    nearly_the_same_points,
    dense_points,
    contradictions,
    noise,
    one_outlier,
]


def regressors_of(model: GPDynamics) -> list[Regressor]:
    return [regressor for group in model.regressors if group is not None for regressor in group]


def assert_sane(model: GPDynamics, grid: Grid) -> None:
    prediction = model.predict_on(grid)
    assert np.isfinite(prediction.next_states).all()
    off_grid = grid.nodes + 0.01 * grid.box.widths
    for control in model.controls:
        found = model.predict_with_uncertainty(off_grid, control[np.newaxis])
        assert np.isfinite(found.next_states).all()
        assert_unit_interval(unsure(found))
    assert_unit_interval(unsure(prediction))
    for regressor in regressors_of(model):
        assert isinstance(regressor.basis_cut, bool)
        assert 0.0 <= regressor.posterior.jitter < 1.0
        copies = 1 if model.mirror is None else 2
        assert 1 <= len(regressor.posterior.basis) <= copies * regressor.n_data


def assert_unit_interval(uncertainty: FloatArray) -> None:
    assert np.isfinite(uncertainty).all()
    assert uncertainty.min() >= 0.0
    assert uncertainty.max() <= 1.0


def fit_hard(hard: Hard, settings: GPSettings) -> GPDynamics:
    stream = np.random.default_rng(0)
    states, displacements = hard(stream)
    actions = stream.integers(3, size=len(states))
    return fitted(Transitions.stepped(states, actions, states + displacements), settings)


def fitted(transitions: Transitions, settings: GPSettings) -> GPDynamics:
    return fit_dynamics(transitions, BOX, CONTROLS, settings, knownness="gp-variance", fit_seed=0)


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_hard_data_give_predictions_that_can_be_planned_with(hard: Hard, metric: Metric, joint: bool) -> None:
    settings = of_kind(joint).model_copy(update={"metric": metric, "subset": 60})
    assert_sane(fit_hard(hard, settings), GRID)


@pytest.mark.parametrize("hard", [duplicates, dense_points, nearly_the_same_points, contradictions])
@pytest.mark.parametrize("tolerance", [0.0, 1e-2, 1e6])
def test_kernels_near_to_singular_are_survived_at_any_tolerance(hard: Hard, tolerance: float) -> None:
    settings = JOINT.model_copy(update={"basis_tolerance": tolerance})
    assert_sane(fit_hard(hard, settings), GRID)


def test_a_point_repeated_is_one_point_of_the_basis() -> None:
    for regressor in regressors_of(fit_hard(duplicates, JOINT)):
        basis = regressor.posterior.basis
        assert len(np.unique(basis, axis=0)) == len(basis)
        assert not regressor.basis_cut


def test_a_basis_cut_short_is_recorded() -> None:
    cut = fit_hard(noise, JOINT.model_copy(update={"max_basis": 3}))
    assert_sane(cut, GRID)
    for regressor in regressors_of(cut):
        assert regressor.basis_cut
        assert len(regressor.posterior.basis) == 3


def test_one_transition_is_repeated_where_it_was_seen() -> None:
    model = fit_hard(one_point, JOINT)
    seen = model.seen
    predicted = model.predict(seen.states, model.controls[seen.actions])
    np.testing.assert_allclose(predicted, seen.next_states, atol=1e-12)


def test_of_two_contradicting_transitions_the_mean_is_believed() -> None:
    states = np.array([[0.2, 1.0], [0.2, 1.0]])
    next_states = np.array([[0.3, 1.5], [0.1, 1.1]])
    transitions = Transitions.stepped(states, np.array([1, 1]), next_states)
    for joint in (False, True):
        model = fitted(transitions, of_kind(joint))
        predicted = model.predict(states[:1], CONTROLS[1:2])
        np.testing.assert_allclose(predicted, [[0.2, 1.3]], atol=1e-9)


@pytest.mark.parametrize("hard", [nothing_moves, constant_steps])
def test_steps_that_never_vary_are_predicted_everywhere(hard: Hard) -> None:
    model = fit_hard(hard, JOINT)
    step = BOX.displacement(model.seen.states[:1], model.seen.next_states[:1])
    states = GRID.nodes
    for control in CONTROLS:
        moved = BOX.displacement(states, model.predict(states, control[np.newaxis]))
        np.testing.assert_allclose(moved, np.tile(step, (len(states), 1)), atol=1e-12)


@pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
def test_5000_steps_of_one_slow_trajectory_are_learned_from(joint: bool) -> None:
    system = SYSTEMS["mountain-car"]
    box, controls = system.task.box, system.task.controls
    # a swing in the valley without thrust: neighbours hardly differ
    path = [np.array([[-0.9, 0.0]])]
    for _ in range(5000):
        path.append(system.dynamics(path[-1], controls[1:2]))
    states = np.vstack(path)
    transitions = Transitions.stepped(states[:-1], np.ones(5000, dtype=np.int64), states[1:])
    settings = of_kind(joint).model_copy(update={"subset": 40, "max_basis": 100})
    model = learned(system, transitions, settings)
    assert_sane(model, Grid.uniform(box, [8, 8]))
    here = transitions.states[::50]
    truth = system.dynamics(here, controls[1:2])
    found = model.predict_with_uncertainty(here, controls[1:2])
    assert np.abs((found.next_states - truth) / (truth - here).std(axis=0)).max() < 0.05
    assert unsure(found).max() < 0.05
