"""Changes of control that cost, or are limited: the last control is part of the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optimist
from optimist import Discretisation, GPRMax
from optimist.environments.system_environment import SystemEnvironment
from tests.runs.recording import SMALL, ShortSystem


def free() -> SystemEnvironment:
    return SystemEnvironment("pendulum-continuous")


def test_the_environment_does_what_its_task_says() -> None:
    for env in (optimist.smooth(free(), cost=0.2), optimist.smooth(free(), most_change=1.5)):
        task, stream = env.task, np.random.default_rng(0)
        assert task.control_box is not None
        assert task.box.n_dims == 3
        state, _ = env.reset(seed=0)
        assert state[2] == 0.0
        for _ in range(30):
            action = stream.uniform(task.control_box.low, task.control_box.high)
            after, paid, *_ = env.step(action)
            one = state[np.newaxis], action[np.newaxis]
            assert env.dynamics is not None
            np.testing.assert_array_equal(env.dynamics(*one)[0], after)
            np.testing.assert_allclose(task.rewards(*one, after[np.newaxis])[0], paid, rtol=1e-12)
            assert after in env.observation_space
            state = after


def test_a_change_costs_its_square_and_a_limit_holds() -> None:
    costly, plain = optimist.smooth(free(), cost=0.2), free()
    costly.reset(seed=0)
    plain.reset(seed=0)
    for torque, before in ((3.0, 0.0), (-1.0, 3.0)):
        paid, bare = costly.step([torque])[1], plain.step([torque])[1]
        np.testing.assert_allclose(paid, bare - 0.2 * (torque - before) ** 2)
    limited = optimist.smooth(free(), most_change=2.0)
    limited.reset(seed=0)
    assert [float(limited.step([2.0])[0][2]) for _ in range(4)] == [2.0, 4.0, 5.0, 5.0]
    with pytest.raises(ValueError, match=r"within \[-2.0\] and \[2.0\]"):
        limited.step([2.5])


def test_what_costs_is_done_less() -> None:
    def roughness(env: Any, nodes: tuple[int, ...]) -> float:
        made = optimist.plan(env.task, env.dynamics, Discretisation(nodes=nodes))
        state, torques = env.reset(seed=0)[0], [0.0]
        for _ in range(40):
            action = made.policy.greedy(state[np.newaxis])[0]
            state = env.step(action)[0]
            torques.append(float(action[0]))
        return float((np.diff(torques) ** 2).sum())

    little, much = (roughness(optimist.smooth(free(), cost=cost), (31, 31, 11)) for cost in (1e-4, 0.1))
    assert much < 0.5 * little


def test_it_is_learned_and_resumed_like_any_other(tmp_path: Any) -> None:
    settings = SMALL.model_copy(update={"grid": Discretisation(nodes=(7, 7, 5))})

    def learned(directory: Any, *stops: int) -> Any:
        for number, stop in enumerate(stops):
            env = optimist.smooth(ShortSystem("pendulum-continuous", 12), cost=0.1)
            agent = (
                GPRMax(env, settings=settings, run=directory)
                if number == 0
                else GPRMax.resume(directory, env)
            )
            with agent:
                agent.learn(total_timesteps=stop - len(agent.transitions) if number else stop)
                seen = agent.transitions
        return seen

    at_once, twice = learned(tmp_path / "one", 14), learned(tmp_path / "two", 9, 14)
    np.testing.assert_array_equal(at_once.next_states, twice.next_states)
    np.testing.assert_array_equal(at_once.actions, at_once.next_states[:, 2:])
    assert optimist.smooth(free(), cost=0.1).axis_names[-1] == "last control 0"


def test_what_cannot_be_smoothed_is_refused() -> None:
    with pytest.raises(ValueError, match="whose task has a box of controls"):
        optimist.smooth(SystemEnvironment("pendulum"), cost=1.0)
    with pytest.raises(ValueError, match="`cost` or `most_change`; got neither"):
        optimist.smooth(free())
    with pytest.raises(ValueError, match="got both"):
        optimist.smooth(free(), cost=1.0, most_change=1.0)
    with pytest.raises(ValueError, match=r"`cost` must be positive numbers, one for each of 1 actuator"):
        optimist.smooth(free(), cost=[1.0, 1.0])
    with pytest.raises(ValueError, match="`most_change` must be positive"):
        optimist.smooth(free(), most_change=-1.0)
