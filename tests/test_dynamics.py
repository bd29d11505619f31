"""The answers of a transition function are checked wherever one is used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.dynamics import Dynamics, successors
from optimist.grid import Grid
from optimist.models import TrueDynamics
from optimist.planning import Lookahead, QFunction, certify, hold, roll_out, tabulate
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
    "true dynamics": lambda f: TrueDynamics(f, TASK.controls).predict_on(GRID),
    "hold": lambda f: hold(TASK, f, 2)[1](STATES, TASK.controls[:1]),
    "lookahead": lambda f: Lookahead(TASK, f, PLAN, 2).greedy(STATES),
    "rollout": lambda f: roll_out(TASK, f, PLAN, STATES),
    "certificate": lambda f: certify(PLAN, TASK, f),
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


def test_flat_controls_are_one_column() -> None:
    model = TrueDynamics(lambda states, controls: states + 0.1 * controls, np.array([-1.0, 1.0]))
    assert model.predict_on(GRID).next_states.shape == (2, 9, 2)


def test_a_grid_of_another_dimension_than_the_task_is_refused() -> None:
    line = Grid.uniform(Box([-1.0], [1.0]), (5,))
    prediction = TrueDynamics(lambda states, controls: states, TASK.controls).predict_on(line)
    with pytest.raises(ValueError, match=r"as many axes as the task \(2\); got 1"):
        tabulate(line, TASK, prediction)
