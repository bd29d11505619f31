from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from optimist.arrays import BoolArray
from optimist.box import Box
from optimist.planning import hold
from optimist.task import Task
from tests.naive.episodes import held_step

FloatArray = NDArray[np.float64]


def push(states: FloatArray, controls: FloatArray) -> FloatArray:
    x, v = states[:, 0], states[:, 1]
    faster = 0.9 * v + 0.2 * controls[:, 0]
    return np.column_stack([x + faster, faster])


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - states[:, 0] ** 2 + controls[:, 0] * next_states[:, 1]


def over_the_edge(states: FloatArray) -> BoolArray:
    over: BoolArray = np.abs(states[:, 0]) > 1.0
    return over


TASK = Task(Box([-1.0, -1.0], [1.0, 1.0]), np.array([-1.0, 0.5]), reward, 0.8, 0.0, over_the_edge, 500)
STATES = np.random.default_rng(0).uniform(-1.1, 1.1, (60, 2))


@pytest.mark.parametrize("steps", [2, 3, 7])
@pytest.mark.parametrize("one_row", [True, False])
def test_a_held_step_is_the_naive_loop(steps: int, one_row: bool) -> None:
    task, dynamics = hold(TASK, push, steps)
    stream = np.random.default_rng(steps)
    controls = TASK.controls[:1] if one_row else TASK.controls[stream.integers(2, size=len(STATES))]
    each = np.broadcast_to(controls, (len(STATES), 1))
    naive = [held_step(TASK, push, s, u, steps) for s, u in zip(STATES, each, strict=True)]
    next_states = dynamics(STATES, controls)
    np.testing.assert_allclose(next_states, [one.next_state for one in naive], atol=1e-13)
    rewards = task.rewards(STATES, controls, next_states)
    np.testing.assert_allclose(rewards, [one.reward for one in naive], atol=1e-13)
    np.testing.assert_array_equal(task.terminal(next_states), [one.ended for one in naive])


def test_the_examples_end_before_during_and_after_the_held_steps() -> None:
    """Or the test above would show less than it seems to."""
    after_one = over_the_edge(push(STATES, TASK.controls[:1]))
    after_seven = [held_step(TASK, push, s, TASK.controls[0], 7).ended for s in STATES]
    assert over_the_edge(STATES).any()
    assert (after_one & ~over_the_edge(STATES)).any()
    assert (np.array(after_seven) & ~after_one).any()
    assert not all(after_seven)


@pytest.mark.parametrize(("steps", "max_steps"), [(2, 250), (3, 167), (500, 1), (7, 72)])
def test_discount_and_length_of_an_episode_are_those_of_longer_steps(steps: int, max_steps: int) -> None:
    task, _ = hold(TASK, push, steps)
    assert task.discount == 0.8**steps
    assert task.max_steps == max_steps
    assert task.optimistic_value == TASK.optimistic_value
    assert task.box == TASK.box
    np.testing.assert_array_equal(task.controls, TASK.controls)


@settings(max_examples=30, deadline=None, database=None)
@given(first=st.integers(1, 4), second=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_holding_what_is_held_is_holding_for_the_product(first: int, second: int, seed: int) -> None:
    states = np.random.default_rng(seed).uniform(-1.0, 1.0, (10, 2))
    control = TASK.controls[:1]
    twice_task, twice = hold(*hold(TASK, push, first), second)
    once_task, once = hold(TASK, push, first * second)
    ends = once(states, control)
    np.testing.assert_allclose(twice(states, control), ends, atol=1e-13)
    alive = ~over_the_edge(states)
    expected = once_task.rewards(states, control, ends)
    np.testing.assert_allclose(twice_task.rewards(states, control, ends)[alive], expected[alive], atol=1e-12)
    assert twice_task.discount == pytest.approx(once_task.discount, rel=1e-14)


def test_holding_for_one_step_changes_nothing() -> None:
    task, dynamics = hold(TASK, push, 1)
    assert task is TASK
    assert dynamics is push


@pytest.mark.parametrize("steps", [0, -2])
def test_holding_for_no_step_is_refused(steps: int) -> None:
    with pytest.raises(ValueError, match=f"`hold` must be a whole number from 1 to .*; got {steps}"):
        hold(TASK, push, steps)
