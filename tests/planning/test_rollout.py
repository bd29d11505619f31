from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import QFunction, roll_out
from optimist.task import Task
from tests.naive.episodes import episode


def walk(states: FloatArray, controls: FloatArray) -> FloatArray:
    return states + controls + 0.05 * np.sin(5.0 * states)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - states[:, 0] ** 2 + 0.1 * controls[:, 1] + next_states[:, 1]


def arrived(states: FloatArray) -> BoolArray:
    over: BoolArray = states[:, 0] >= 1.0
    return over


CONTROLS = np.array([[0.1, 0.0], [-0.1, 0.1], [0.02, -0.1]])
TASK = Task(Box([-1.0, -1.0], [1.0, 1.0]), CONTROLS, reward, 0.9, 0.0, arrived, max_steps=30)
GRID = Grid.uniform(TASK.box, [5, 5])
POLICY = QFunction(GRID, np.random.default_rng(8).normal(size=(25, 3)) + np.array([1.0, 0.0, 0.0]))
STARTS = np.vstack([np.random.default_rng(1).uniform(-1.0, 1.0, (12, 2)), [[1.0, 0.0]]])


def test_episodes_are_those_of_a_plain_loop() -> None:
    rollouts = roll_out(TASK, walk, POLICY, STARTS)
    for k, start in enumerate(STARTS):
        expected = episode(TASK, walk, lambda state: int(POLICY.greedy(state[np.newaxis])[0]), start)
        steps = len(expected.path) - 1
        assert rollouts.steps[k] == steps
        assert rollouts.terminated[k] == expected.terminated
        assert rollouts.total_rewards[k] == pytest.approx(expected.total_reward, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(rollouts.paths[: steps + 1, k], expected.path, atol=1e-13)
        assert np.isnan(rollouts.paths[steps + 1 :, k]).all()


def test_the_examples_terminate_and_are_cut_off_and_are_over_at_once() -> None:
    rollouts = roll_out(TASK, walk, POLICY, STARTS)
    assert (rollouts.steps[rollouts.terminated] < 30).any()
    assert (~rollouts.terminated).any()
    assert (rollouts.steps[~rollouts.terminated] == 30).all()
    assert rollouts.steps[-1] == 0
    assert rollouts.terminated[-1]
    assert rollouts.total_rewards[-1] == 0.0
    assert rollouts.paths.shape == (rollouts.steps.max() + 1, len(STARTS), 2)
    np.testing.assert_array_equal(rollouts.paths[0], STARTS)
    np.testing.assert_array_equal(rollouts.starts, STARTS)


def test_reaching_the_end_on_the_last_step_is_terminating() -> None:
    box = Box([0.0], [1.0])
    task = Task(box, np.array([0.25]), lambda s, u, n: np.ones(len(s)), 0.9, 0.0, arrived, max_steps=4)
    still = QFunction(Grid.uniform(box, [2]), np.zeros((2, 1)))
    rollouts = roll_out(task, lambda s, u: s + u, still, np.array([[0.0], [-0.25]]))
    np.testing.assert_array_equal(rollouts.terminated, [True, False])
    np.testing.assert_array_equal(rollouts.steps, [4, 4])
    np.testing.assert_array_equal(rollouts.total_rewards, [4.0, 4.0])


def test_nothing_is_written_into_what_the_terminal_predicate_returned() -> None:
    def ended(states: FloatArray) -> BoolArray:
        answer = arrived(states)
        answer.setflags(write=False)
        return answer

    expected = roll_out(TASK, walk, POLICY, STARTS)
    found = roll_out(replace(TASK, is_terminal=ended), walk, POLICY, STARTS)
    np.testing.assert_array_equal(found.terminated, expected.terminated)


def test_starts_are_left_as_they_were() -> None:
    starts = STARTS.copy()
    roll_out(TASK, walk, POLICY, starts)
    np.testing.assert_array_equal(starts, STARTS)


def test_rows_say_the_same_in_json() -> None:
    rollouts = roll_out(TASK, walk, POLICY, STARTS)
    rows = json.loads(json.dumps(rollouts.rows()))
    assert len(rows) == len(STARTS)
    assert [row["start"] for row in rows] == STARTS.tolist()
    assert [row["total_reward"] for row in rows] == rollouts.total_rewards.tolist()
    assert [row["steps"] for row in rows] == rollouts.steps.tolist()
    assert [row["terminated"] for row in rows] == rollouts.terminated.tolist()
