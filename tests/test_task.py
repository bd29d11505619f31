"""Task: what it refuses, and what it makes of what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.task import Task

BOX = Box([-1.0, -2.0], [1.0, 2.0])
STATES = np.array([[0.0, 1.0], [0.5, -1.0], [-1.0, 2.0]])
CONTROL = np.array([[1.0]])


def squared_distance(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    cost: FloatArray = (states**2).sum(axis=1) + controls[:, 0] ** 2
    return -cost


def on_the_right(states: FloatArray) -> BoolArray:
    right: BoolArray = states[:, 0] > 0.0
    return right


def make_task(**changes: Any) -> Task:
    settings: dict[str, Any] = {
        "box": BOX,
        "controls": [-1.0, 0.0, 1.0],
        "reward": squared_distance,
        "discount": 0.9,
        "optimistic_value": 0.0,
    }
    return Task(**(settings | changes))


def test_flat_controls_become_a_column() -> None:
    task = make_task()
    assert task.controls.tolist() == [[-1.0], [0.0], [1.0]]
    assert task.n_actions == 3


def test_controls_of_several_numbers_keep_one_row_per_action() -> None:
    task = make_task(controls=[[-2, 0], [2, 0], [0, 1], [0, 0]])
    assert task.controls.shape == (4, 2)
    assert task.controls.dtype == np.float64
    assert task.n_actions == 4


def test_controls_are_copied_and_cannot_be_changed() -> None:
    given = np.array([[1.0], [2.0]])
    task = make_task(controls=given)
    given[0, 0] = 9.0
    assert task.controls[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        task.controls[0, 0] = 5.0


def test_episodes_are_cut_off_after_500_steps_unless_told() -> None:
    assert make_task().max_steps == 500
    assert make_task(max_steps=7).max_steps == 7


@pytest.mark.parametrize("discount", [0.0, -0.1, 1.0001, np.nan, np.inf])
def test_discount_outside_its_range_is_refused(discount: float) -> None:
    with pytest.raises(ValueError, match=r"`discount` must be in \(0, 1\]; got "):
        make_task(discount=discount, is_terminal=on_the_right)


def test_discount_one_needs_a_terminal_set() -> None:
    with pytest.raises(ValueError, match=r"`discount` 1 must come with `is_terminal`.*; got none"):
        make_task(discount=1.0)
    assert make_task(discount=1.0, is_terminal=on_the_right).discount == 1.0


@pytest.mark.parametrize(
    "controls", [[], [[]], np.zeros((0, 2)), [np.nan], [[0.0, np.inf]], np.zeros((2, 2, 2)), 1.0]
)
def test_bad_controls_are_refused(controls: Any) -> None:
    with pytest.raises(ValueError, match=r"`controls` must be .*; got shape "):
        make_task(controls=controls)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_optimistic_value_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match=r"`optimistic_value` must be finite; got "):
        make_task(optimistic_value=value)


@pytest.mark.parametrize("max_steps", [0, -1])
def test_an_episode_has_at_least_one_step(max_steps: int) -> None:
    with pytest.raises(ValueError, match=r"`max_steps` must be at least 1; got "):
        make_task(max_steps=max_steps)


def test_rewards_are_those_of_the_function_given() -> None:
    rewards = make_task().rewards(STATES, CONTROL, STATES)
    assert rewards.tolist() == [-2.0, -2.25, -6.0]


def test_whole_number_rewards_become_floats() -> None:
    task = make_task(reward=lambda states, controls, next_states: np.full(len(states), -1))
    assert task.rewards(STATES, CONTROL, STATES).dtype == np.float64


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (1, 3), (4,)])
def test_rewards_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    task = make_task(reward=lambda states, controls, next_states: np.zeros(shape))
    with pytest.raises(ValueError, match=r"`reward` must return one number per state.*; got shape "):
        task.rewards(STATES, CONTROL, STATES)


def test_a_reward_whose_sums_would_not_be_finite_is_too_large() -> None:
    task = make_task(reward=lambda states, controls, next_states: np.array([0.0, -2e300, 0.0]))
    with pytest.raises(ValueError, match=r"`reward` must be at most 1e\+300 in size; got -2e\+300"):
        task.rewards(STATES, CONTROL, STATES)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_reward_that_is_not_finite_names_the_state(bad: float) -> None:
    task = make_task(reward=lambda states, controls, next_states: np.array([0.0, bad, bad]))
    with pytest.raises(ValueError, match=r"`reward` must be finite; got .*\[0\.5, -1\.0\].*1 more of 3"):
        task.rewards(STATES, CONTROL, STATES)


def test_no_state_is_terminal_in_a_task_without_terminal_states() -> None:
    terminal = make_task().terminal(STATES)
    assert terminal.dtype == np.bool_
    assert terminal.tolist() == [False, False, False]


def test_terminal_states_are_those_of_the_predicate() -> None:
    assert make_task(is_terminal=on_the_right).terminal(STATES).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "answer",
    [
        np.zeros(2, dtype=bool),
        np.zeros((3, 1), dtype=bool),
        np.bool_(True),
        np.zeros(3),
        np.zeros(3, dtype=np.int64),
    ],
)
def test_terminal_answers_of_the_wrong_shape_or_kind_are_refused(answer: Any) -> None:
    task = make_task(is_terminal=lambda states: answer)
    with pytest.raises(ValueError, match=r"`is_terminal` must return one bool per state.*; got shape "):
        task.terminal(STATES)
