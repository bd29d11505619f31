"""Learning from a sensor that reads wrong once: what cannot be true is marked, and not learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import optimist
from optimist import Discretisation, GPRMax
from optimist.agents.doubts import BY_HAND, UNEXPLAINED
from optimist.agents.settings import AgentSettings, PlanningOptions
from optimist.arrays import FloatArray
from optimist.environments.adapter import AdaptedEnvironment, adapt
from optimist.runs import RunStore

STEPS, AT = 100, 40
SETTINGS = AgentSettings(
    first_plans=(10, 30, 50, 70),
    grid=Discretisation(budget=400),
    planning=PlanningOptions(depth=1),
)


class Misreading(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Angle and rate of a pendulum, whose rate is read as `value` once."""

    def __init__(self, value: float | None, *, at: int = AT) -> None:
        super().__init__(gymnasium.make("Pendulum-v1", max_episode_steps=60))
        bounds = np.array([np.pi, 8.0])
        self.observation_space = gymnasium.spaces.Box(-bounds, bounds, dtype=np.float64)
        self.value, self.at, self.count = value, at, 0

    def reset(self, **given: Any) -> Any:
        observation, info = self.env.reset(**given)
        return _state(observation), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(action)
        state = _state(observation)
        self.count += 1
        if self.value is not None and self.count == self.at:
            state[1] = self.value
        return state, *rest


def _state(observation: FloatArray) -> FloatArray:
    cosine, sine, rate = np.asarray(observation, dtype=np.float64)
    return np.array([np.arctan2(sine, cosine), rate])


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.asarray(-(states[:, 0] ** 2 + 0.1 * states[:, 1] ** 2 + 0.001 * controls[:, 0] ** 2))


def pendulum(value: float | None, *, at: int = AT) -> AdaptedEnvironment:
    environment = Misreading(value, at=at)
    return adapt(environment, reward=cost, controls=[-2.0, 0.0, 2.0], periodic=[True, False])


@pytest.fixture(scope="module")
def clean() -> GPRMax:
    learner = GPRMax(pendulum(None), settings=SETTINGS)
    return learner.learn(STEPS)


def model_of(learner: GPRMax) -> list[list[int]]:
    """How many basis points its processes have."""
    return learner._agent.knowledge.model.record()["basis_sizes"]  # type: ignore[no-any-return, union-attr]


def test_of_a_sensor_that_reads_right_nothing_is_doubted(clean: GPRMax) -> None:
    assert clean.void == []


@pytest.mark.filterwarnings("ignore:The environment paid")
@pytest.mark.parametrize("value", [0.0, 20.0, 1e200])
def test_one_wrong_reading_is_marked_and_does_no_harm(clean: GPRMax, value: float) -> None:
    """Before and after it the same is seen as without, as long as the same is done."""
    learner = GPRMax(pendulum(value), settings=SETTINGS)
    learner.learn(STEPS)
    assert learner.void == [AT, AT + 1]
    small, smaller = np.array(model_of(learner)), np.array(model_of(clean))
    assert (small <= 2 * smaller + 10).all()  # nothing is bent over backwards to explain it


@pytest.mark.filterwarnings("ignore:The environment paid")
def test_marks_are_recorded_and_found_again(tmp_path: Path) -> None:
    learner = GPRMax(pendulum(20.0), settings=SETTINGS, run=tmp_path / "run")
    learner.learn(STEPS)
    learner.close()
    with RunStore.open(tmp_path / "run", writing=False) as store:
        assert store.marked(UNEXPLAINED) == {AT, AT + 1}
        assert store.marked(BY_HAND) == set()
        assert store.transitions()[AT - 1].next_state[1] == 20.0  # as it was read
    assert optimist.check(tmp_path / "run", void=[AT]).void == (AT, AT + 1)
    with RunStore.open(tmp_path / "run", writing=True) as store:
        assert store.marked(BY_HAND) == {AT}  # said by hand it stays void, whatever is explained later
        store.mark(AT, AT + 1, void=False, reason=UNEXPLAINED)
        assert store.record.void == {AT}


@pytest.mark.filterwarnings("ignore:The environment paid")
def test_a_wrong_reading_does_not_wake_who_has_settled() -> None:
    learner = GPRMax(pendulum(6.0, at=150), settings=SETTINGS)
    learner.learn(149)
    settled = learner.stopped_learning_at
    assert settled is not None
    learner.learn(6)
    assert learner.void == [150, 151]
    assert learner.stopped_learning_at == settled
