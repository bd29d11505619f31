"""Runs with controls that are a box: recorded as their values, resumed bit for bit, saved and loaded."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import optimist
from optimist import Box, GPRMax
from optimist.agents import settings_of
from optimist.controls import rounded
from optimist.environments.system_environment import SystemEnvironment
from optimist.runs import RunStore
from optimist.runs.check import check
from optimist.runs.describe import describe_task, require_same_task
from optimist.runs.playing import play
from optimist.systems import SYSTEMS
from tests.runs.recording import (
    SMALL,
    Recorded,
    ShortSystem,
    cut_short,
    gone_on,
    learned,
    learned_keeping_checkpoints,
    recorded,
)

PROBLEM = "pendulum-continuous"
STEPS = 36


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    return learned_keeping_checkpoints(place / "run", place / "kept", problem=PROBLEM, steps=STEPS)


@pytest.fixture(scope="module")
def undisturbed(finished: Path) -> Recorded:
    return recorded(finished)


def test_the_record_holds_the_controls_themselves(finished: Path) -> None:
    with RunStore.open(finished, writing=False) as store:
        rows, header = store.transitions(), store.header
    controls = np.array([row.action for row in rows])
    assert controls.shape == (STEPS, 1)
    assert len(np.unique(controls)) > 10  # not five
    box = Box([-5.0], [5.0])
    np.testing.assert_array_equal(controls, rounded(box, controls))
    assert (header["task"]["control_low"], header["task"]["control_high"]) == ([-5.0], [5.0])
    assert header["format_version"] == 7
    system = SystemEnvironment(PROBLEM).system
    for row in rows:
        led = system.dynamics(row.state[np.newaxis], np.asarray(row.action)[np.newaxis])[0]
        np.testing.assert_array_equal(led, row.next_state)
    assert check(finished).ok


@pytest.mark.parametrize("instant", [0, 5, 33])
def test_resumed_without_a_checkpoint_it_ends_as_undisturbed(
    tmp_path: Path, finished: Path, undisturbed: Recorded, instant: int
) -> None:
    directory = cut_short(finished, tmp_path / "run", instant)
    assert gone_on(directory, problem=PROBLEM, steps=STEPS) == undisturbed


@pytest.mark.parametrize("kept", [5, 20])
def test_resumed_from_a_checkpoint_it_ends_as_undisturbed(
    tmp_path: Path, finished: Path, undisturbed: Recorded, kept: int
) -> None:
    directory = cut_short(finished, tmp_path / "run", 33)
    shutil.copy(finished.parent / "kept" / str(kept), directory / "agent.optimist")
    assert gone_on(directory, problem=PROBLEM, steps=STEPS) == undisturbed


def test_a_control_that_changed_is_noticed(tmp_path: Path, finished: Path) -> None:
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    with closing(sqlite3.connect(directory / "run.sqlite", isolation_level=None)) as connection:
        (blob,) = connection.execute("SELECT action FROM transitions WHERE number = 7").fetchone()
        other = (np.frombuffer(blob, dtype="<f8") + 1e-9).tobytes()
        connection.execute("UPDATE transitions SET action = ? WHERE number = 7", (other,))
    found = check(directory)
    assert not found.ok
    assert found.transitions == 6


def test_a_saved_agent_acts_as_before_whatever_thread_asks(tmp_path: Path, finished: Path) -> None:
    env = ShortSystem(PROBLEM)
    with GPRMax.resume(finished, env, writing=False) as one:
        one.save(tmp_path / "agent.optimist")
        other = GPRMax.load(tmp_path / "agent.optimist", env)
        states = np.random.default_rng(0).uniform(-3.0, 3.0, size=(20, 2))
        expected = one.predict(states)[0]
        np.testing.assert_array_equal(other.predict(states)[0], expected)
        np.testing.assert_array_equal(other.transitions.actions, one.transitions.actions)
        found: dict[int, Any] = {}
        threads = [
            threading.Thread(target=lambda k=k: found.update({k: other.predict(states)[0]})) for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], expected)


def test_a_run_of_format_4_goes_on_as_it_is(tmp_path: Path) -> None:
    directory = learned(tmp_path / "old", steps=24)
    undisturbed = recorded(learned(tmp_path / "new", steps=30))
    with RunStore.open(directory, writing=False) as store:
        rows = {name: list(chain.rows) for name, chain in store.record.chains.items()}
    header = json.loads(rows["header"][-1][0]) | {"format_version": 4}
    shutil.rmtree(directory)
    RunStore.filled(directory, rows | {"header": [(json.dumps(header),)] * 2}).close()
    assert check(directory).format == 4
    assert gone_on(directory, steps=30).transitions == undisturbed.transitions
    assert check(directory).ok


# --- other people's environments ---


def angle_and_rate(observation: Any) -> Any:
    return np.array([np.arctan2(observation[1], observation[0]), observation[2]])


def swung(states: Any, controls: Any, next_states: Any) -> Any:
    angle = np.mod(states[:, 0] + np.pi, 2.0 * np.pi) - np.pi
    return -(angle**2) - 0.1 * states[:, 1] ** 2 - 0.001 * controls[:, 0] ** 2


def pendulum() -> Any:
    return optimist.adapt(
        gymnasium.make("Pendulum-v1"),
        reward=swung,
        state=angle_and_rate,
        low=[-np.pi, -8.0],
        high=[np.pi, 8.0],
        periodic=[True, False],
        max_steps=30,
    )


def arrived(states: Any) -> Any:
    return (states[:, 0] >= 0.45) & (states[:, 1] >= 0.0)


def climbed(states: Any, controls: Any, next_states: Any) -> Any:
    return 100.0 * arrived(next_states) - 0.1 * controls[:, 0] ** 2


def mountain_car() -> Any:
    return optimist.adapt(
        gymnasium.make("MountainCarContinuous-v0"),
        reward=climbed,
        is_terminal=arrived,
        discount=0.999,
        optimistic_value=100.0,
        max_steps=30,
    )


@pytest.mark.filterwarnings("error")  # the task says what the environment does
@pytest.mark.parametrize("make", [pendulum, mountain_car])
def test_gymnasiums_continuous_ones_are_learned_without_controls(make: Any) -> None:
    env = make()
    agent = GPRMax(env, settings=SMALL, seed=0)
    agent.learn(total_timesteps=22)
    action, _ = agent.predict(env.reset(seed=1)[0])
    assert action in env.env.action_space
    many, _ = agent.predict(np.zeros((3, 2)))
    assert many.shape == (3, 1)
    assert many[0] in env.action_space
    assert play(env, agent.task, agent.policy, 1, seed=0).steps[0] == 30
    seen = agent.transitions
    np.testing.assert_array_equal(seen.actions, np.float32(seen.actions))


def test_the_policy_is_what_stable_baselines3_evaluates() -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    env = pendulum()
    agent = GPRMax(env, settings=SMALL, seed=0)
    agent.learn(total_timesteps=12)
    mean, _ = evaluate_policy(agent, Monitor(env), n_eval_episodes=2)
    assert -500.0 < mean < 0.0


def test_an_environment_with_other_actions_is_refused() -> None:
    task = SystemEnvironment(PROBLEM).task
    words = r"any from \[-5.0\] to \[5.0\]; got .*adapt\(env, controls=optimist.Box"
    with pytest.raises(ValueError, match=words):
        GPRMax(SystemEnvironment("pendulum"), task=task)
    with pytest.raises(ValueError, match=words):
        GPRMax(pendulum(), task=task)
    with pytest.raises(ValueError, match="5 numbered actions"):
        GPRMax(SystemEnvironment(PROBLEM), task=SystemEnvironment("pendulum").task)


def test_a_run_of_another_kind_of_controls_is_refused(tmp_path: Path, finished: Path) -> None:
    with pytest.raises(ValueError, match=r"must be the one of .*; its controls are a box, got a list"):
        GPRMax.resume(finished, ShortSystem("pendulum"))


def test_a_model_for_each_action_is_refused() -> None:
    settings = settings_of("gp-rmax-exp", preset="paper").model_copy(update={"first_plans": (5,)})
    agent = GPRMax(ShortSystem(PROBLEM), settings=settings)
    with pytest.raises(ValueError, match=r"`model.kind` must be 'joint' where controls are a box"):
        agent.learn(total_timesteps=6)


@pytest.mark.parametrize("knownness", ["visited-cells", "none", "gp-variance"])
def test_other_rules_of_uncertainty_work(knownness: Any) -> None:
    settings = SMALL.model_copy(update={"knownness": knownness})
    agent = GPRMax(ShortSystem(PROBLEM), settings=settings)
    agent.learn(total_timesteps=12)
    assert agent.predict([0.0, 0.0])[0].shape == (1,)


def test_acting_on_interpolated_values_keeps_to_the_list() -> None:
    planning = SMALL.planning.model_copy(update={"depth": 0})
    agent = GPRMax(ShortSystem(PROBLEM), settings=SMALL.model_copy(update={"planning": planning}))
    agent.learn(total_timesteps=12)
    assert set(agent.transitions.actions[:, 0]) <= {-5.0, -2.5, 0.0, 2.5, 5.0}
    assert agent.predict([0.0, 0.0])[0][0] in (-5.0, -2.5, 0.0, 2.5, 5.0)


def test_controls_that_are_a_list_are_not_those_that_were_a_box() -> None:
    lists, boxes = (SYSTEMS[name].task for name in ("pendulum", "pendulum-continuous"))
    for told, other, said in (
        (boxes, lists, "its controls are a box, got a list"),
        (lists, boxes, "a list, got a box"),
    ):
        with pytest.raises(ValueError, match=rf"The task must be the one of here; .*{said}\."):
            require_same_task(describe_task(told), other, "here")
        require_same_task(describe_task(told), told, "here")
