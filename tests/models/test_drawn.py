"""Successors by the compiled process, and those of models that err by so many standard deviations."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.gp.covariance import Metric
from optimist.models import GPDynamics, fit_dynamics
from optimist.models.model import DrawnModel
from optimist.transitions import Transitions
from tests.models.learning import of_kind, unsure

CONTROLS = np.array([[-1.0], [0.5], [2.0]])
CYLINDER = Box([0.0, -1.0], [360.0, 1.0], periodic=[True, False])
LINE, RING = Box([-2.0], [3.0]), Box([0.0], [6.0], [True])
both_kinds = pytest.mark.parametrize("joint", [False, True], ids=["per-action", "joint"])
every_metric = pytest.mark.parametrize("metric", list(Metric))


def learned(box: Box, *, joint: bool, metric: Metric = Metric.AXES, untried: int | None = None) -> GPDynamics:
    """Of a few steps: much of the box is unknown."""
    stream = np.random.default_rng(box.n_dims)
    states = box.low + box.widths * stream.uniform(0.1, 0.6, size=(40, box.n_dims))
    actions = stream.integers(3, size=40)
    actions = np.where(actions == untried, 0, actions)
    angles = 2.0 * np.pi * (states - box.low) / box.widths
    moves = 0.05 * box.widths * (np.sin(2.0 * angles) + CONTROLS[actions])  # no plane, on a ring neither
    after = box.wrap(states + moves)
    settings = of_kind(joint).model_copy(update={"metric": metric})
    data = Transitions.stepped(states, actions, after)
    return fit_dynamics(data, box, CONTROLS, settings, knownness="gp-variance", fit_seed=0)


def anywhere(box: Box, count: int = 30) -> FloatArray:
    return np.random.default_rng(9).uniform(box.low, box.high, size=(count, box.n_dims))


def some_controls(count: int = 30) -> FloatArray:
    return CONTROLS[np.random.default_rng(8).integers(3, size=count)]


@every_metric
@both_kinds
@pytest.mark.parametrize("box", [CYLINDER, LINE, RING], ids=["cylinder", "line", "ring"])
def test_points_are_predicted_as_with_their_uncertainty(box: Box, joint: bool, metric: Metric) -> None:
    model = learned(box, joint=joint, metric=metric)
    states, controls = anywhere(box), some_controls()
    expected = model.predict_with_uncertainty(states, controls).next_states
    found = model.predict(states, controls)
    np.testing.assert_allclose(box.displacement(expected, found) / box.widths, 0.0, atol=1e-9)
    assert np.abs(box.displacement(states, found)).max() > 0.01 * box.widths.min()
    one_for_all = model.predict(states, CONTROLS[1:2])
    np.testing.assert_array_equal(one_for_all, model.predict(states, np.tile(CONTROLS[1], (30, 1))))


@every_metric
@both_kinds
def test_without_errors_drawn_successors_are_those_predicted(joint: bool, metric: Metric) -> None:
    model = learned(CYLINDER, joint=joint, metric=metric)
    states, controls = anywhere(CYLINDER), some_controls()
    assert isinstance(model, DrawnModel)
    found = model.predict_drawn(states, controls, np.zeros((30, 2)))
    np.testing.assert_allclose(found, model.predict(states, controls), rtol=1e-12, atol=1e-12)


@both_kinds
@pytest.mark.parametrize("box", [LINE, RING], ids=["line", "ring"])
@pytest.mark.parametrize("draw", [1.0, -1.0, 2.5])
def test_an_error_is_so_many_standard_deviations(box: Box, joint: bool, draw: float) -> None:
    """The normalised variance times what the process was before anything was seen."""
    model = learned(box, joint=joint)
    states = anywhere(box)
    for action, control in enumerate(CONTROLS):
        controls = np.tile(control, (30, 1))
        mean, drawn = (
            model.predict(states, controls),
            model.predict_drawn(states, controls, np.full((30, 1), draw)),
        )
        group = model.regressors[0 if joint else action]
        assert group is not None
        (regressor,) = group
        hyper = regressor.posterior.hyperparameters
        points = np.hstack([states, controls]) if joint else states
        features = regressor.inputs.features(points)
        prior = hyper.signal_variance + hyper.bias_variance + hyper.slope_variance * (features**2).sum(axis=1)
        prior *= regressor.target_scale**2
        deviations = np.sqrt(unsure(model.predict_with_uncertainty(states, controls)) * prior)
        assert deviations.max() < 0.2 * box.widths[0]  # a turn is not mistaken for another
        expected = box.wrap(mean + draw * deviations[:, np.newaxis])
        np.testing.assert_allclose(box.displacement(expected, drawn), 0.0, atol=1e-6 * box.widths[0])
        assert np.abs(box.displacement(mean, drawn)).max() > 1e-4 * box.widths[0]


@both_kinds
def test_coordinates_err_by_draws_of_their_own(joint: bool) -> None:
    model = learned(CYLINDER, joint=joint)
    states, controls = anywhere(CYLINDER), some_controls()
    mean = model.predict(states, controls)
    moved = []
    for axis in range(2):
        draws = np.zeros((30, 2))
        draws[:, axis] = 1.0
        moved.append(CYLINDER.displacement(mean, model.predict_drawn(states, controls, draws)))
        np.testing.assert_allclose(moved[axis][:, 1 - axis], 0.0, atol=1e-9)
        assert (moved[axis][:, axis] >= -1e-9).all()
    draws = np.tile([2.0, -1.0], (30, 1))
    both = CYLINDER.displacement(mean, model.predict_drawn(states, controls, draws))
    np.testing.assert_allclose(both, 2.0 * moved[0] - moved[1], atol=1e-6)


@both_kinds
def test_rows_err_by_draws_of_their_own_in_whatever_company(joint: bool) -> None:
    model = learned(CYLINDER, joint=joint)
    states, controls = anywhere(CYLINDER), some_controls()
    draws = np.random.default_rng(0).normal(size=(30, 2))
    together = model.predict_drawn(states, controls, draws)
    for row in (0, 11, 29):
        rows = slice(row, row + 1)
        alone = model.predict_drawn(states[rows], controls[rows], draws[rows])
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-12)
    assert ((together[:, 0] >= 0.0) & (together[:, 0] < 360.0)).all()


def test_an_action_never_tried_leads_nowhere_whatever_is_drawn() -> None:
    model = learned(CYLINDER, joint=False, untried=2)
    states = anywhere(CYLINDER)
    controls = np.tile(CONTROLS[2], (30, 1))
    np.testing.assert_array_equal(model.predict(states, controls), states)
    np.testing.assert_array_equal(model.predict_drawn(states, controls, np.ones((30, 2))), states)


@both_kinds
def test_nothing_asked_of_the_model_is_changed(joint: bool) -> None:
    model = learned(CYLINDER, joint=joint)
    states, controls, draws = anywhere(CYLINDER), some_controls(), np.ones((30, 2))
    kept = states.copy(), controls.copy(), draws.copy()
    model.predict_drawn(states, controls, draws)
    model.predict(states, controls)
    for now, before in zip((states, controls, draws), kept, strict=True):
        np.testing.assert_array_equal(now, before)
