"""Runs of tasks that are learned: recorded, gone on with, saved and loaded, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optimist
from optimist.environments.finding import FoundEnvironment
from optimist.environments.system_environment import SystemEnvironment
from optimist.runs import RunStore
from optimist.runs.health import nothing_to_learn
from optimist.transitions import Transitions
from tests.runs.recording import Line

QUICK = {
    "first_plans": [5, 20, 45],
    "replan_every": 50,
    "grid": {"budget": 400},
    "planning": {"depth": 1, "challengers": 1},
}


def untold() -> FoundEnvironment:
    return optimist.find(
        SystemEnvironment("mountain-car"), low=[-1.2, -np.inf], high=[0.6, np.inf], max_steps=80
    )


def test_a_run_that_was_interrupted_ends_as_undisturbed(tmp_path: Path) -> None:
    whole = optimist.GPRMax(untold(), settings=QUICK, run=tmp_path / "whole")
    whole.learn(150)
    first = optimist.GPRMax(untold(), settings=QUICK, run=tmp_path / "cut")
    first.learn(67)
    first.close()
    second = optimist.GPRMax.resume(tmp_path / "cut", untold())
    second.learn(83)
    assert str(second.task) == str(whole.task)
    np.testing.assert_array_equal(second.transitions.next_states, whole.transitions.next_states)
    np.testing.assert_array_equal(second.plan.q_values, whole.plan.q_values)
    whole.close()
    second.close()
    with RunStore.open(tmp_path / "whole", writing=False) as store:
        believed = store.plans()[-1]["rehearsal"]["believed"]
    assert any(line.startswith("  reward: constant -1 (learned from") for line in believed)


def test_a_file_believes_what_the_agent_believed(tmp_path: Path) -> None:
    agent = optimist.GPRMax(untold(), settings=QUICK).learn(60)
    agent.save(tmp_path / "agent.optimist")
    loaded = optimist.GPRMax.load(tmp_path / "agent.optimist", env=untold())
    assert str(loaded.task) == str(agent.task)
    assert loaded.task.box == agent.task.box
    np.testing.assert_array_equal(loaded.plan.q_values, agent.plan.q_values)


def test_raw_observations_are_understood() -> None:
    agent = optimist.GPRMax("Pendulum-v1", settings=QUICK | {"planning": {"rehearse": False}}).learn(30)
    env = agent.get_env()
    observation, _ = env.reset(seed=0)
    assert observation.shape == (3,)
    action, _ = agent.predict(observation)
    angle = [np.arctan2(observation[1], observation[0]), observation[2]]
    np.testing.assert_allclose(action, agent.predict(angle)[0], atol=1e-6)
    assert env.action_space.contains(action)


@pytest.mark.parametrize(
    ("reward", "ended", "said"), [(0.0, False, True), (0.0, True, False), (None, False, False)]
)
def test_nothing_to_learn(reward: float | None, ended: bool, said: bool) -> None:
    states = np.zeros((200, 1))
    paid = np.arange(200.0) if reward is None else np.full(200, reward)
    flags = np.zeros(200, dtype=np.bool_)
    ends = flags.copy()
    ends[-1] = ended
    seen = Transitions(states, np.zeros(200, dtype=np.int64), paid, states, ends, flags)
    assert (nothing_to_learn(seen, 8) is not None) is said


class Elsewhere(Line):
    """The line in other units, far from 0, and nobody tells; one reading may be wrong."""

    task = property(doc="None.")

    def __init__(self, unit: float, wrong_at: int | None = None) -> None:
        super().__init__()
        self.unit, self.wrong_at = unit, wrong_at

    def reset(self, **given: Any) -> tuple[Any, Any]:
        state, info = super().reset(**given)
        return self.unit * (state + 30.0), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        state, *rest = super().step(action)
        read = self.unit * (state + 30.0)
        return (read + 1e6 * self.unit if self.n_steps == self.wrong_at else read), *rest


def elsewhere(unit: float, wrong_at: int | None = None) -> FoundEnvironment:
    return optimist.find(Elsewhere(unit, wrong_at), max_steps=60)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_what_is_far_from_0_is_believed_and_what_is_far_from_all_else_is_not(unit: float) -> None:
    agent = optimist.GPRMax(elsewhere(unit), settings=QUICK).learn(50)
    assert agent.void == []
    assert agent.task.box.contains(agent.transitions.states[:45]).all()
    agent = optimist.GPRMax(elsewhere(unit, 40), settings=QUICK).learn(50)
    assert agent.void == [40, 41]
    assert agent.task.box.widths.max() < 20.0 * unit


def test_nobody_complains_of_a_box_that_nobody_drew(tmp_path: Path) -> None:
    with optimist.GPRMax(elsewhere(1e6), settings=QUICK, run=tmp_path / "run") as agent:
        agent.learn(110)
        assert agent.complaints == []
    assert optimist.check(tmp_path / "run").warnings == ()
