"""Where actions lead: the answers of a transition function are checked wherever one is used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.discretisation import Discretisation, Holding
from optimist.grid import Grid
from optimist.planning import Flow, Lookahead, QFunction, plan, roll_out, tabulate
from optimist.planning.certificate import certify
from optimist.planning.tables import follow
from optimist.steps import Dynamics, Successors, known, successors
from optimist.systems import NAMES, SYSTEMS
from optimist.task import Task

TASK = Task(
    box=Box([-1.0, -1.0], [1.0, 1.0]),
    controls=np.array([-1.0, 1.0]),
    reward=lambda states, controls, next_states: -(states**2).sum(axis=1),
    discount=0.9,
    optimistic_value=0.0,
    max_steps=5,
)
GRID = Grid.uniform(TASK.box, (3, 3))
PLAN = QFunction(GRID, np.zeros((9, 2)))
STATES = np.array([[0.1, 0.2], [0.3, 0.4]])


def one_column(states: FloatArray, controls: FloatArray) -> FloatArray:
    return states[:, :1]


def one_row(states: FloatArray, controls: FloatArray) -> FloatArray:
    return states[:1]


def not_a_number(states: FloatArray, controls: FloatArray) -> FloatArray:
    return np.where(states > 0.2, np.nan, states)


USES: dict[str, Callable[[Dynamics], object]] = {
    "successors": lambda f: successors(f, STATES, TASK.controls[:1]),
    "known": lambda f: known(f, TASK.controls)(STATES, 0),
    "follow": lambda f: follow(TASK, known(f, TASK.controls), STATES, 0, holding=Holding(2)),
    "tabulate": lambda f: tabulate(GRID, TASK, known(f, TASK.controls)),
    "flow": lambda f: Flow.through(GRID, known(f, TASK.controls), 2),
    "lookahead": lambda f: Lookahead(TASK, known(f, TASK.controls), PLAN, 2).greedy(STATES),
    "rollout": lambda f: roll_out(TASK, f, PLAN, STATES),
    "certificate": lambda f: certify(PLAN, TASK, known(f, TASK.controls)),
    "plan": lambda f: plan(TASK, f, Discretisation(nodes=(3, 3))),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("dynamics", "says"),
    [
        (one_column, "must return one state per state"),
        (one_row, "must return one state per state"),
        (not_a_number, "must return finite states; got"),
    ],
)
def test_wrong_answers_are_refused_everywhere(use: str, dynamics: Dynamics, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        USES[use](dynamics)


@pytest.mark.parametrize(
    "wrong",
    [lambda s, u: s[:, :1], lambda s, u: s[1:], lambda s, u: s.T, lambda s, u: 0.0],
)
def test_dynamics_of_the_wrong_shape_are_refused(wrong: Dynamics) -> None:
    with pytest.raises(ValueError, match=r"must return one state per state, shape \(5, 2\); got shape"):
        known(wrong, np.array([[0.0]]))(np.zeros((5, 2)), 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_dynamics_that_are_not_finite_are_refused_with_the_state(bad: float) -> None:
    def breaks(states: FloatArray, controls: FloatArray) -> FloatArray:
        return np.where(states > 1.5, bad, states)

    says = rf"must return finite states; got \[{bad}\] from state \[2.0\] \(and 1 more of 4\)"
    with pytest.raises(ValueError, match=says):
        known(breaks, np.array([[0.0]]))(np.arange(4.0)[:, np.newaxis], 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_known_step_leads_where_the_dynamics_do_and_is_certain(name: str) -> None:
    """Under the control of its action, whether that is given once or for every state."""
    task, dynamics = SYSTEMS[name].task, SYSTEMS[name].dynamics
    nodes = Grid.uniform(task.box, [4] * task.box.n_dims).nodes
    step = known(dynamics, task.controls)
    for action, control in enumerate(task.controls):
        next_states, uncertainty = step(nodes, action)
        assert uncertainty is None
        np.testing.assert_array_equal(next_states, dynamics(nodes, control[np.newaxis]))
        every_row = successors(dynamics, nodes, np.tile(control, (len(nodes), 1)))
        np.testing.assert_allclose(every_row, next_states, rtol=1e-14, atol=1e-14)


def test_whole_numbers_become_floats() -> None:
    found = successors(lambda states, controls: np.ones((2, 2), dtype=np.int64), STATES, TASK.controls[:1])
    assert found.dtype == np.float64


def test_successors_are_known_unless_it_is_said_that_they_are_not() -> None:
    assert Successors(STATES).uncertainty is None
    next_states, uncertainty = Successors(STATES, np.array([0.5, 1.0]))
    assert next_states is STATES
    assert uncertainty is not None
    assert uncertainty.tolist() == [0.5, 1.0]


def test_a_grid_of_another_dimension_than_the_task_is_refused() -> None:
    line = Grid.uniform(Box([-1.0], [1.0]), (5,))
    with pytest.raises(ValueError, match=r"as many axes as the task \(2\); got 1"):
        tabulate(line, TASK, known(lambda states, controls: states, TASK.controls))
