"""Environments that do wrong: told in one sentence with episode and step, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimist import Box, GPRMax
from optimist.agents import AgentSettings
from optimist.runs import RunError, RunStore
from tests.runs.recording import LINE, SMALL, Line, ShortLine, bits

QUICK = SMALL.model_copy(update={"first_plans": (5,), "replan_every": 1000})
AT = 20  # the step, counted over all episodes, that goes wrong: step 8 of episode 2

Answer = tuple[Any, Any, bool, bool, Any]


class Faulty(Line):
    """Goes wrong once, at step `AT`; after that all is well."""

    def __init__(self, fault: Callable[[Answer], Any]) -> None:
        super().__init__()
        self.fault = fault

    def step(self, action: Any) -> Answer:
        answer = super().step(action)
        changed: Answer = self.fault(answer) if self.n_steps == AT else answer
        return changed


def observed(observation: Any) -> Callable[[Answer], Any]:
    return lambda answer: (observation, *answer[1:])


def paid(reward: Any) -> Callable[[Answer], Any]:
    return lambda answer: (answer[0], reward, *answer[2:])


def raising(error: BaseException) -> Callable[[Answer], Any]:
    def fault(answer: Answer) -> Any:
        raise error

    return fault


FAULTS = {
    "too short": observed(np.zeros(1)),
    "too long": observed(np.zeros(3)),
    "a number": observed(0.0),
    "a matrix": observed(np.zeros((1, 2))),
    "nan": observed(np.array([np.nan, 0.0])),
    "infinite": observed(np.array([0.0, -np.inf])),
    "no numbers": observed(["a", "b"]),
    "nothing": observed(None),
    "a dictionary": observed({"position": 0.0}),
    "ragged": observed([[1.0], [1.0, 2.0]]),
    "reward nan": paid(float("nan")),
    "reward infinite": paid(float("inf")),
    "reward none": paid(None),
    "reward text": paid("much"),
    "reward of many": paid(np.array([1.0, 2.0])),
    "terminated of many": lambda answer: (*answer[:2], np.array([True, False]), *answer[3:]),
    "raises": raising(RuntimeError("the motor is too hot")),
    "raises without words": raising(RuntimeError()),
    "raises several lines": raising(RuntimeError("first line\nsecond line")),
    "rejects the action": raising(ValueError("Action 1 is invalid.")),
    "asserts": raising(AssertionError("not a valid action")),
    "old Gym": lambda answer: answer[:4],
    "no answer": lambda answer: None,
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_fault_in_mid_episode_is_told_with_episode_and_step_and_nothing_is_lost(
    tmp_path: Path, name: str
) -> None:
    with GPRMax(Faulty(FAULTS[name]), settings=QUICK, run=tmp_path) as learner:
        with pytest.raises((RunError, ValueError)) as told:
            learner.learn(episodes=3)
        assert "step 8 of episode 2" in str(told.value)
        assert "\n" not in str(told.value)
        assert learner.num_timesteps == AT - 1
        with RunStore.open(tmp_path, writing=False) as store:
            kept = [bits(row) for row in store.transitions()]
            assert len(kept) == AT - 1
            assert [row.episode for row in store.episodes()] == [1]
        learner.learn(episodes=3)  # the same object goes on; what was abandoned does not count
        assert [row.ending for row in learner.episodes] == [
            "truncated",
            "abandoned",
            "truncated",
            "truncated",
        ]
    with RunStore.open(tmp_path, writing=False) as store:
        assert [bits(row) for row in store.transitions()][: AT - 1] == kept


def test_run_goes_on_in_another_process_after_a_fault(tmp_path: Path) -> None:
    with GPRMax(Faulty(FAULTS["raises"]), settings=QUICK, run=tmp_path) as learner, pytest.raises(RunError):
        learner.learn(episodes=3)
    with GPRMax.resume(tmp_path, Line()) as learner:
        assert learner.num_timesteps == AT - 1
        learner.learn(episodes=3)
        assert [row.ending for row in learner.episodes] == [
            "truncated",
            "abandoned",
            "truncated",
            "truncated",
        ]


def test_what_the_environment_said_is_told(tmp_path: Path) -> None:
    learner = GPRMax(Faulty(FAULTS["raises"]), settings=QUICK)
    with pytest.raises(RunError, match="the motor is too hot") as told:
        learner.learn(episodes=3)
    assert isinstance(told.value.__cause__, RuntimeError)


def test_fault_without_a_record_loses_nothing_either() -> None:
    learner = GPRMax(Faulty(FAULTS["nan"]), settings=QUICK)
    with pytest.raises(RunError, match="finite"):
        learner.learn(episodes=3)
    assert learner.num_timesteps == AT - 1
    learner.learn(10)
    assert learner.num_timesteps == AT + 9


class FaultyReset(Line):
    """Cannot begin episode 2 at the first try."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
        self.resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        self.resets += 1
        right = super().reset(seed=seed, options=options)
        if self.resets != 2:
            return right
        if isinstance(self.answer, Exception):
            raise self.answer
        wrong: tuple[Any, Any] = self.answer
        return wrong


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("stuck"), (np.zeros(3), {}), (np.array([0.0, np.nan]), {}), (None, {}), np.zeros(2), None],
)
def test_reset_that_fails_is_told_with_the_episode_and_can_be_tried_again(
    tmp_path: Path, answer: Any
) -> None:
    with GPRMax(FaultyReset(answer), settings=QUICK, run=tmp_path) as learner:
        with pytest.raises((RunError, ValueError), match="episode 2") as told:
            learner.learn(episodes=2)
        assert "\n" not in str(told.value)
        with RunStore.open(tmp_path, writing=False) as store:
            assert store.n_transitions == 12
        learner.learn(episodes=2)
        assert [row.ending for row in learner.episodes] == ["truncated"] * 2


class ReusedBuffer(ShortLine):
    """Hands out the same array every time, as some do."""

    def step(self, action: Any) -> Answer:
        state = self.state
        _, reward, terminated, truncated, info = super().step(action)
        state[:] = self.state
        self.state = state
        return state, reward, terminated, truncated, info


def test_environment_that_reuses_its_array_is_recorded_right(tmp_path: Path) -> None:
    for name, environment in (("plain", ShortLine()), ("reused", ReusedBuffer())):
        with GPRMax(environment, settings=QUICK, run=tmp_path / name) as learner:
            learner.learn(20)
    rows = []
    for name in ("plain", "reused"):
        with RunStore.open(tmp_path / name, writing=False) as store:
            rows.append([bits(row) for row in store.transitions()])
    assert rows[0] == rows[1]


class Escaping(Line):
    """Leaves the box at steps 3 and 4, and at step 6 for good."""

    def __init__(self, *, terminating: bool) -> None:
        super().__init__()
        self.terminating = terminating

    def step(self, action: Any) -> Answer:
        state, reward, *_ = super().step(action)
        outside = self.n_steps in (3, 4, 6)
        ends = self.n_steps == 6 and self.terminating
        return (np.array([1.5, 0.0]) if outside else state), reward, ends, False, {}


@pytest.mark.parametrize(("terminating", "count"), [(True, 2), (False, 3)])
def test_states_outside_the_box_are_counted_unless_they_end_the_episode(
    tmp_path: Path, terminating: bool, count: int
) -> None:
    with GPRMax(Escaping(terminating=terminating), settings=QUICK, run=tmp_path) as learner:
        learner.learn(8)
        assert learner.n_outside == count
        assert learner.transitions.next_states[2].tolist() == [1.5, 0.0]  # recorded as observed
    with RunStore.open(tmp_path, writing=False) as store:
        assert store.n_outside() == count
    with GPRMax.resume(tmp_path, Line()) as learner:
        assert learner.n_outside == count


def test_state_on_the_edge_of_the_box_is_inside(tmp_path: Path) -> None:
    class OnTheEdge(Line):
        def step(self, action: Any) -> Answer:
            return np.array([1.0, -1.0]), -1.0, False, False, {}

    with GPRMax(OnTheEdge(), settings=QUICK, run=tmp_path) as learner:
        learner.learn(3)
        assert learner.n_outside == 0


def test_environment_that_terminates_and_truncates_at_once_has_terminated(tmp_path: Path) -> None:
    class Both(Line):
        def step(self, action: Any) -> Answer:
            answer = super().step(action)
            return answer[0], answer[1], True, True, {}

    with GPRMax(Both(), settings=QUICK, run=tmp_path) as learner:
        learner.learn(1)
        assert [row.ending for row in learner.episodes] == ["terminated"]
        assert learner.transitions.truncated.tolist() == [False]


def test_episode_is_cut_off_after_the_steps_of_the_task() -> None:
    learner = GPRMax(Line(), settings=QUICK).learn(episodes=2)
    assert [(row.steps, row.ending) for row in learner.episodes] == [(LINE.max_steps, "truncated")] * 2


def test_agent_that_will_never_plan_says_so_when_asked() -> None:
    settings = AgentSettings(first_plans=(), replan_every=10**7)
    with pytest.raises(ValueError, match="must have planned"):
        GPRMax(Line(), settings=settings).predict([0.0, 0.0])


def test_environment_of_another_task_is_not_taken() -> None:
    class Wider(Line):
        task = replace(LINE, box=Box([-2.0, -2.0], [2.0, 2.0]))

    with pytest.raises(ValueError, match="task"):
        GPRMax(Line(), settings=QUICK).set_env(Wider())


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_seed_that_is_none_is_refused_before_a_directory_is_made(tmp_path: Path, seed: Any) -> None:
    with pytest.raises(ValueError, match="seed"):
        GPRMax(Line(), settings=QUICK, seed=seed, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("wanted", [{}, {"total_timesteps": 0}, {"episodes": 0}, {"episodes": -1}])
def test_learning_for_nothing_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        GPRMax(Line(), settings=QUICK).learn(**wanted)
