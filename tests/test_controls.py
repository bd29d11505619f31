"""Controls that are a box: what is planned with, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optimist import Box, Task
from optimist.arrays import FloatArray
from optimist.controls import finer, lattice, levels, require_within, rounded
from optimist.transitions import Transition, Transitions


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.asarray(-(states[:, 0] ** 2) - controls.sum(axis=1) ** 2)


def task(controls: Any) -> Task:
    return Task(Box([-1.0], [1.0]), controls, cost, 0.9, 0.0)


def test_the_list_has_bounds_and_rest_of_every_actuator() -> None:
    np.testing.assert_array_equal(levels(Box([-2.0], [2.0]))[0], [-2.0, -1.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(levels(Box([-1.0], [4.0]))[0], [-1.0, -0.5, 0.0, 2.0, 4.0])
    np.testing.assert_array_equal(levels(Box([1.0], [3.0]))[0], [1.0, 1.5, 2.0, 2.5, 3.0])
    np.testing.assert_array_equal(
        lattice(Box([-1.0, 0.0], [1.0, 4.0])),
        [[x, y] for x in (-1.0, 0.0, 1.0) for y in (0.0, 2.0, 4.0)],
    )
    assert len(lattice(Box([-1.0] * 3, [1.0] * 3))) == 27


def test_finer_levels_hold_the_coarse_ones() -> None:
    fine, coarse = finer(Box([-1.0], [4.0]), 9)[0], levels(Box([-1.0], [4.0]))[0]
    np.testing.assert_allclose(fine[::2], coarse)
    np.testing.assert_allclose(fine[1::2], 0.5 * (coarse[:-1] + coarse[1:]))


def test_a_task_keeps_its_box_through_replacement() -> None:
    made = task(Box([-2.0], [2.0]))
    again = replace(made, discount=0.8)
    assert again.control_box == made.control_box == Box([-2.0], [2.0])
    assert (made.n_actions, again.n_actions) == (5, 5)
    assert task([-2.0, 2.0]).control_box is None


def test_numbers_and_controls_are_applied_alike() -> None:
    made = task(Box([-2.0], [2.0]))
    np.testing.assert_array_equal(made.applied(np.array([4, 0])), [[2.0], [-2.0]])
    np.testing.assert_array_equal(made.applied(np.array([[0.3]])), [[0.3]])


@pytest.mark.parametrize(
    ("controls", "sentence"),
    [
        ([Box([-1.0], [1.0]), 0.0], "a list of controls or one Box, not both.*Give a Box"),
        (Box([-1.0] * 4, [1.0] * 4), "1 to 3 actuators.*got 4.*as a list"),
        (Box([-1.0], [1.0], [True]), "must not be periodic"),
    ],
)
def test_boxes_that_cannot_be_planned_with_are_refused(controls: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        task(controls)


@pytest.mark.parametrize(
    ("low", "high"), [([-np.inf], [1.0]), ([1.0], [-1.0]), ([1.0], [1.0]), ([], []), ([0.0], [np.nan])]
)
def test_bounds_that_are_infinite_empty_or_reversed_are_refused(low: Any, high: Any) -> None:
    with pytest.raises(ValueError, match=r"`low`.* must be"):
        task(Box(low, high))


def test_a_list_and_another_box_are_refused() -> None:
    made = task(Box([-2.0], [2.0]))
    with pytest.raises(ValueError, match="a list or a Box, not both"):
        replace(made, controls=np.array([-1.0, 1.0]))


def test_chosen_controls_survive_single_precision_and_stay_inside() -> None:
    box = Box([-0.1], [0.3])
    chosen = rounded(box, np.array([[0.1], [0.7], [-0.1], [1 / 3]]))
    np.testing.assert_array_equal(chosen[0], np.float32(0.1))
    assert box.contains(chosen).all()


@pytest.mark.parametrize("action", [2.1, [1.0, 1.0], np.nan, "left", None, [[]]])
def test_an_action_outside_of_the_bounds_is_refused(action: Any) -> None:
    with pytest.raises(
        ValueError, match=r"The action must be 1 number\(s\) within \[-2.0\] and \[2.0\]; got "
    ):
        require_within(Box([-2.0], [2.0]), action)


def test_a_bound_in_single_precision_counts_as_inside() -> None:
    box = Box([-0.1], [0.1])
    np.testing.assert_array_equal(require_within(box, np.array([0.1], dtype=np.float32)), [0.1])


def test_transitions_with_controls_have_them_as_columns() -> None:
    rows = [
        Transition(np.zeros(2), np.array([0.25]), 0.0, np.ones(2), False, False),
        Transition(np.ones(2), np.array([-1.0]), 0.0, np.ones(2), False, True),
    ]
    seen, listed = Transitions.of(rows), np.array([[-1.0], [0.0], [1.0]])
    np.testing.assert_array_equal(seen.controls(listed), [[0.25], [-1.0]])
    np.testing.assert_array_equal(seen.numbered(listed).actions, [1, 0])
    np.testing.assert_array_equal(seen.rows()[0].action, [0.25])
    np.testing.assert_array_equal(seen.only(np.array([False, True])).actions, [[-1.0]])
    with pytest.raises(ValueError, match="`actions` must be finite"):
        Transitions.of([replace(rows[0], action=np.array([np.nan]))])
