"""What an agent makes of a model that it did not ask for: unsure in one direction, or without bounds.

The models are somebody else's, put into the table of learners as docs/extending.md says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from optimist import Box, Discretisation, GPRMax, Task
from optimist.agents import AgentSettings
from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.models import LEARNERS, ModelSettings
from optimist.models.learners import LearnerKind
from optimist.runs import RunStore
from optimist.steps import Successors
from tests.agents.fakes import Learning, MadeUp

MIDDLE = np.zeros(1)


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """The best place is in the left half."""
    return -0.1 - (states[:, 0] + 0.5) ** 2


TASK = Task(Box([-1.0], [1.0]), np.array([-1.0, 1.0]), cost, 0.9, 0.0, max_steps=15)

Where = Callable[[FloatArray, FloatArray], FloatArray]  # states [n, 1], controls [n, 1] -> [n, 1]


def moved(states: FloatArray, controls: FloatArray) -> FloatArray:
    return np.clip(states + 0.1 * controls, -1.0, 1.0)


def nowhere(states: FloatArray, controls: FloatArray) -> FloatArray:
    return np.where(np.abs(states) > 0.2, np.nan, moved(states, controls))


def away(states: FloatArray, controls: FloatArray) -> FloatArray:
    return states + 1e5 * controls


def far_away(states: FloatArray, controls: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return 1e200 * (1.0 + states**2) * controls


class OwnModel(MadeUp):
    """Predicts what it was made with; on grids, what is so, and it is unsure of going right."""

    def __init__(self, task: Task, where: Where, *, unsure: bool) -> None:
        self.task, self.where, self.unsure = task, where, unsure

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        return self.where(states, np.broadcast_to(controls, (len(states), 1)))

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        controls = np.broadcast_to(controls, (len(states), 1))
        unsure = np.full(len(states), 1.0 if self.unsure else 0.0) * (controls[:, 0] > 0.0)
        return Successors(moved(states, controls), unsure)

    def predict_on(self, grid: Grid) -> Successors:
        found = [
            self.predict_with_uncertainty(grid.nodes, control[np.newaxis]) for control in self.task.controls
        ]
        unsure = [np.asarray(one.uncertainty) for one in found]
        return Successors(np.stack([one.next_states for one in found]), np.stack(unsure))


MODELS: dict[str, Where] = {"sound": moved, "nan": nowhere, "explodes": away, "infinite": far_away}


@pytest.fixture(autouse=True)
def own_learners() -> Iterator[None]:
    for name, where in MODELS.items():
        for unsure in (False, True):
            LEARNERS[f"{name}, unsure" if unsure else name] = LearnerKind(
                ModelSettings,
                lambda task, settings, knownness, seed, where=where, unsure=unsure: Learning(  # type: ignore[misc]
                    OwnModel(task, where, unsure=unsure)
                ),
            )
    yield
    for name in MODELS:
        del LEARNERS[name], LEARNERS[f"{name}, unsure"]


class Track(gymnasium.Env[Any, Any]):
    """What is so."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    task = TASK

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.1, 0.1, 1)
        return self.state.copy(), {}

    def restore(self, state: FloatArray) -> None:
        self.state = np.array(state)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        before, control = self.state[np.newaxis], TASK.controls[[int(action)]]
        after = moved(before, control)
        self.state = after[0]
        return after[0].copy(), float(cost(before, control, after)[0]), False, False, {}


def settings_with(learner: str, **changes: Any) -> AgentSettings:
    few: dict[str, Any] = {"grid": Discretisation(nodes=(21,)), "first_plans": (5, 10), "replan_every": 10}
    return AgentSettings(**(few | {"model": ModelSettings(learner=learner)} | changes))


def learned(learner: str, count: int = 5, **changes: Any) -> GPRMax:
    return GPRMax(Track(), settings=settings_with(learner, **changes), seed=0).learn(count)


# --- exploring, and the best that is known ---


@pytest.mark.parametrize("depth", [None, 0])
def test_acting_goes_where_the_model_is_unsure_and_the_policy_does_not(depth: int | None) -> None:
    learner = learned("sound, unsure", planning={"depth": depth})
    agent = learner._agent
    for place in (-0.3, 0.0, 0.4):
        state = np.array([place])
        assert agent.act(state) == 1  # unknown, and so as good as can be
        assert agent.policy.greedy(state[np.newaxis]).tolist() == [0]
        assert learner.predict(state)[0] == 0
        assert learner.policy.greedy(state[np.newaxis]).tolist() == [0]
    assert learner.predict([[0.0], [0.4], [-0.9]])[0].tolist() == [0, 0, 1]  # home from the other side


def test_who_is_asked_for_the_best_explores_on_as_before() -> None:
    asked, alone = learned("sound, unsure", 4), learned("sound, unsure", 30)
    for _ in range(26):
        asked.learn(1)
        asked.predict([0.3])
    np.testing.assert_array_equal(asked.transitions.states, alone.transitions.states)
    np.testing.assert_array_equal(asked.plan.q_values, alone.plan.q_values)


def test_where_nothing_is_unsure_both_do_the_same() -> None:
    agent = learned("sound")._agent
    states = np.linspace(-0.95, 0.95, 15)[:, np.newaxis]
    assert [agent.act(state) for state in states] == agent.policy.greedy(states).tolist()


def test_the_best_is_found_when_it_is_asked_for_and_once() -> None:
    knowledge = learned("sound, unsure")._agent.known()
    assert knowledge.best is knowledge.best
    assert knowledge.best.layout is knowledge.planned.layout
    assert (knowledge.best.plan.q_values <= knowledge.plan.q_values + 1e-6).all()


# --- what is expected ---


def test_of_a_model_that_cannot_err_there_is_no_interval() -> None:
    """It says nothing of how it may be wrong."""
    expected = learned("sound").expected
    assert expected is not None
    assert np.isfinite(expected)
    assert (expected.low, expected.high) == (None, None)


def test_what_is_expected_of_a_model_that_is_right_is_what_happens() -> None:
    learner = learned("sound", 10)
    last = np.array([row.total_reward for row in learner.learn(episodes=4).episodes])[-1]
    assert learner.expected == pytest.approx(last, abs=0.3)


# --- models without bounds ---

WRONG = ["nan", "explodes", "infinite"]


@pytest.mark.parametrize("name", WRONG)
def test_a_model_without_bounds_promises_nothing_and_the_run_goes_on(tmp_path: Path, name: str) -> None:
    with GPRMax(Track(), settings=settings_with(name), seed=0, run=tmp_path) as learner:
        learner.learn(episodes=2)
        assert learner.num_timesteps == 30
        assert learner.expected == -np.inf
        assert learner.predict([0.0])[0] in (0, 1)
        assert [row.expected for row in learner.episodes] == [None, None]
    with RunStore.open(tmp_path, writing=False) as store:
        plans = store.plans()
    assert len(plans) >= 3
    for row in plans:
        said = row["rehearsal"]
        assert said["expected"] is None
        assert all(total is None for _, total in said["tried"])
        json.dumps(said, allow_nan=False)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("at", [7, 15, 21])
def test_its_run_is_resumed_as_it_was(tmp_path: Path, name: str, at: int) -> None:
    whole = GPRMax(Track(), settings=settings_with(name), seed=0).learn(30)
    with GPRMax(Track(), settings=settings_with(name), seed=0, run=tmp_path) as learner:
        learner.learn(at)
    with GPRMax.resume(tmp_path, Track()) as learner:
        assert learner.expected == -np.inf
        learner.learn(30 - at)
        np.testing.assert_array_equal(learner.transitions.states, whole.transitions.states)
        np.testing.assert_array_equal(learner.plan.q_values, whole.plan.q_values)
        assert learner.episodes == whole.episodes
        assert learner.expected == whole.expected


@pytest.mark.parametrize("name", WRONG)
def test_its_agent_is_saved_and_loaded(tmp_path: Path, name: str) -> None:
    learned(name, 20).save(tmp_path / "agent.optimist")
    loaded = GPRMax.load(tmp_path / "agent.optimist", env=Track())
    assert loaded.expected == -np.inf
    assert loaded.predict([0.1])[0] in (0, 1)


def test_a_settled_agent_whose_model_has_no_bounds_wakes_at_the_end_of_an_episode() -> None:
    """Nothing good was promised, and nobody can say that it came."""
    eager = {
        "mean_drift_tolerance": 1e9,
        "uncertainty_drift_tolerance": 1e9,
        "patience": 1,
        "disagreement": 1e9,
    }
    learner = learned("explodes", 10, stopping=eager)
    assert learner.stopped_learning_at == 10
    learner.learn(19)
    assert learner.stopped_learning_at == 10  # the episode in which it settled tells nothing
    heard: list[Any] = []
    learner.learn(1, callback=lambda event: heard.append(learner.stopped_learning_at))
    assert heard[0] is None
