"""Settings that could be misunderstood are refused or understood, never guessed at."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.agents import AgentSettings
from optimist.box import Box
from optimist.gp.covariance import Metric
from optimist.grid import Grid
from optimist.models import fit_dynamics
from optimist.models.regressor import RegressorSettings
from optimist.transitions import Transitions
from tests.models.learning import JOINT, PER_ACTION, unsure

BOX = Box([0.0, 0.0], [1.0, 1.0])
STREAM = np.random.default_rng(0)
STATES = STREAM.uniform(0.1, 0.9, (30, 2))
SEEN = Transitions.stepped(STATES, np.arange(30) % 2, STATES + 0.02 * np.sin(3.0 * STATES))
CONTROLS = np.array([[-1.0], [1.0]])


def test_a_metric_may_be_given_by_name() -> None:
    assert RegressorSettings(metric="axes").metric is Metric.AXES  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"^`metric` must be 'uniform', 'axes' or 'factors'; got 'nonsense'\.$"
    ):
        RegressorSettings(metric="nonsense")  # type: ignore[arg-type]


def test_a_previous_model_of_other_controls_is_not_built_on() -> None:
    before = fit_dynamics(SEEN, BOX, CONTROLS, PER_ACTION, knownness="gp-variance", fit_seed=0)
    other = np.array([[-1.0], [1.0], [2.0]])
    after, fresh = (
        fit_dynamics(SEEN, BOX, other, PER_ACTION, knownness="gp-variance", previous=previous, fit_seed=0)
        for previous in (before, None)
    )
    np.testing.assert_array_equal(after.predict(STATES, other[:1]), fresh.predict(STATES, other[:1]))


def test_a_previous_model_of_another_kind_or_rule_is_not_built_on() -> None:
    before = fit_dynamics(SEEN, BOX, CONTROLS, PER_ACTION, knownness="gp-variance", fit_seed=0)
    for settings, rule in ((JOINT, "gp-variance"), (PER_ACTION, "cell-variance")):
        after, fresh = (
            fit_dynamics(SEEN, BOX, CONTROLS, settings, knownness=rule, previous=previous, fit_seed=0)
            for previous in (before, None)
        )
        assert after.record() == fresh.record()


def test_by_default_a_model_is_the_agents() -> None:
    model = fit_dynamics(SEEN, BOX, CONTROLS, fit_seed=0)
    ours = AgentSettings()
    assert (model.settings, model.knownness) == (ours.model, ours.knownness)


def test_a_grid_of_another_dimension_is_refused() -> None:
    model = fit_dynamics(SEEN, BOX, CONTROLS, PER_ACTION, fit_seed=0)
    with pytest.raises(ValueError, match="The grid must have 2 axes; got 1"):
        model.predict_on(Grid.uniform(Box([0.0], [1.0]), (5,)))


def test_cells_visited_on_the_way_to_an_edge_count_as_visited() -> None:
    states = np.array([[0.95, 0.55], [0.96, 0.56]])
    seen = Transitions.stepped(states, np.zeros(2, dtype=np.int64), np.array([[1.0, 0.55], [1.0, 0.56]]))
    model = fit_dynamics(seen, BOX, CONTROLS, PER_ACTION, knownness="visited-cells", fit_seed=0)
    uncertainty = unsure(model.predict_on(Grid.uniform(BOX, (21, 21))))
    assert uncertainty[0].min() == 0.0
    assert uncertainty[1].min() == 1.0


def test_actions_must_be_whole_numbers() -> None:
    with pytest.raises(ValueError, match="`actions` must be whole numbers; got float64"):
        Transitions.stepped(STATES, np.full(30, 0.5), STATES)


def test_transitions_cannot_be_changed_behind_their_back() -> None:
    states = STATES.copy()
    seen = Transitions.stepped(states, np.zeros(30, dtype=np.int64), STATES)
    states[0] = np.nan
    assert np.isfinite(seen.states).all()
