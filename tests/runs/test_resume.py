"""Going on after any interruption, as if it had not been: bit for bit where that is possible."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import OrderEnforcing, TimeLimit
from safetensors.numpy import load_file

from optimist import Discretisation, GPRMax, adapt
from optimist.agents import AgentSettings
from optimist.arrays import BoolArray, FloatArray
from optimist.environments.adapter import AdaptedEnvironment
from optimist.experiments.online import start_run
from optimist.experiments.problems import find_problem
from optimist.models import StoppingRule
from optimist.runs import DamagedError, Event, RunStore, Stepped, Updated
from optimist.runs.check import check
from tests.runs.recording import (
    SMALL,
    Line,
    Recorded,
    ShortLine,
    ShortSystem,
    bits,
    cut_short,
    gone_on,
    learned,
    learned_keeping_checkpoints,
    n_written,
    recorded,
    write_bytes_at,
)

EPISODES = 4  # of twelve steps


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run of short episodes; beside it, in `kept`, its agent after every plan."""
    place = tmp_path_factory.mktemp("finished")
    return learned_keeping_checkpoints(place / "run", place / "kept", problem="line", episodes=EPISODES)


@pytest.fixture(scope="module")
def undisturbed(finished: Path) -> Recorded:
    return recorded(finished)


def checkpoints(finished: Path) -> list[int]:
    return sorted(int(file.name) for file in (finished.parent / "kept").iterdir())


INSTANTS = {
    "before anything": 0,
    "first transition": 1,
    "just before the first plan": 4,
    "first plan is due": 5,
    "just after the first plan": 6,
    "last transition of an episode missing": 11,
    "between episodes": 12,
    "new episode has begun": 13,
    "a plan is due": 35,
    "all but the last": 47,
    "finished": 48,
}


# --- interrupted at every kind of instant ---


@pytest.mark.parametrize("name", INSTANTS)
def test_resumed_without_a_checkpoint_ends_as_undisturbed(
    tmp_path: Path, finished: Path, undisturbed: Recorded, name: str
) -> None:
    directory = cut_short(finished, tmp_path / "run", INSTANTS[name])
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


@pytest.mark.parametrize("name", [name for name in INSTANTS if INSTANTS[name] >= 5])
def test_resumed_from_the_newest_checkpoint_ends_as_undisturbed(
    tmp_path: Path, finished: Path, undisturbed: Recorded, name: str
) -> None:
    n_transitions = INSTANTS[name]
    directory = cut_short(finished, tmp_path / "run", n_transitions)
    newest = max(n for n in checkpoints(finished) if n <= n_transitions)
    shutil.copy(finished.parent / "kept" / str(newest), directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


@pytest.mark.parametrize("behind", [5, 20, 35])
def test_resumed_from_a_much_older_checkpoint_ends_as_undisturbed(
    tmp_path: Path, finished: Path, undisturbed: Recorded, behind: int
) -> None:
    directory = cut_short(finished, tmp_path / "run", 46)
    shutil.copy(finished.parent / "kept" / str(behind), directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


def test_plan_that_was_recorded_without_its_checkpoint_is_made_again(
    tmp_path: Path, finished: Path, undisturbed: Recorded
) -> None:
    directory = cut_short(finished, tmp_path / "run", 45)  # the row of the plan at 45 is there
    shutil.copy(finished.parent / "kept" / "35", directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


def test_checkpoint_that_knows_more_than_the_record_says_that_the_end_was_lost(
    tmp_path: Path, finished: Path, undisturbed: Recorded
) -> None:
    directory = cut_short(finished, tmp_path / "run", 44)
    shutil.copy(finished.parent / "kept" / "45", directory / "agent.optimist")
    told = "has learned from 45 transitions and only 44 are there"
    for writing in (True, False):
        with pytest.raises(DamagedError, match=told):
            GPRMax.resume(directory, ShortLine(), writing=writing)
    checked = check(directory, salvage=tmp_path / "saved")
    assert not checked.ok
    assert told in checked.problems[0]
    assert gone_on(tmp_path / "saved", problem="line", episodes=EPISODES) == undisturbed


def test_checkpoint_of_other_transitions_is_ignored(
    tmp_path: Path, finished: Path, undisturbed: Recorded
) -> None:
    """Of a run with the same settings and seed in a directory that was deleted and made again."""

    class Other(ShortLine):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
            return super().reset(seed=None if seed is None else seed + 1)

    with GPRMax(Other(), settings=SMALL, seed=0, run=tmp_path / "other") as learner:
        learner.learn(40)
    directory = cut_short(finished, tmp_path / "run", 44)
    shutil.copy(tmp_path / "other" / "agent.optimist", directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


def empty(file: Path) -> None:
    file.write_bytes(b"")


def halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def change_an_array(file: Path) -> None:
    write_bytes_at(file, file.stat().st_size - 100, b"damaged")


def change_a_key(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"residual", b"resIdual"))


def change_a_number(file: Path) -> None:
    content = file.read_bytes()
    at = content.index(b'target_scale\\": ') + len(b'target_scale\\": ')
    write_bytes_at(file, at, b"7")


DAMAGES = [empty, halve, change_an_array, change_a_key, change_a_number]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_costs_time_and_nothing_else(
    tmp_path: Path, finished: Path, undisturbed: Recorded, damage: Callable[[Path], None]
) -> None:
    directory = cut_short(finished, tmp_path / "run", 46)
    shutil.copy(finished.parent / "kept" / "45", directory / "agent.optimist")
    damage(directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (1, SMALL),
        (0, SMALL.model_copy(update={"knownness": "none"})),
        (0, SMALL.model_copy(update={"grid": Discretisation(nodes=(9, 9))})),
        (0, SMALL.model_copy(update={"first_plans": (7,)})),
    ],
)
def test_checkpoint_of_another_run_is_ignored(
    tmp_path: Path, finished: Path, undisturbed: Recorded, seed: int, settings: AgentSettings
) -> None:
    learned(tmp_path / "other", problem="line", settings=settings, seed=seed, steps=40)
    directory = cut_short(finished, tmp_path / "run", 44)
    shutil.copy(tmp_path / "other" / "agent.optimist", directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


def test_checkpoint_of_another_problem_is_ignored(
    tmp_path: Path, finished: Path, undisturbed: Recorded
) -> None:
    learned(tmp_path / "other", problem="pendulum", steps=40)
    directory = cut_short(finished, tmp_path / "run", 44)
    shutil.copy(tmp_path / "other" / "agent.optimist", directory / "agent.optimist")
    assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


def test_resumed_again_and_again_ends_as_undisturbed(tmp_path: Path, undisturbed: Recorded) -> None:
    learned(tmp_path / "run", problem="line", steps=3)
    for steps in (1, 2, 6, 23, 11):
        with GPRMax.resume(tmp_path / "run", ShortLine()) as learner:
            learner.learn(steps)
    assert gone_on(tmp_path / "run", problem="line", episodes=EPISODES) == undisturbed


def test_learning_in_pieces_is_learning_in_one_go(tmp_path: Path, undisturbed: Recorded) -> None:
    directory = tmp_path / "run"
    with GPRMax(ShortLine(), settings=SMALL, seed=0, run=directory) as learner:
        for steps in (5, 1, 5):
            learner.learn(steps)
        learner.learn(episodes=1)
        learner.learn(20)
        learner.learn(episodes=EPISODES)
    assert recorded(directory) == undisturbed


def test_recording_changes_nothing(undisturbed: Recorded) -> None:
    learner = GPRMax(ShortLine(), settings=SMALL, seed=0).learn(episodes=EPISODES)
    assert tuple(bits(row) for row in rows_of(learner)) == undisturbed.transitions
    assert learner.plan.q_values.tobytes() == undisturbed.q_values
    assert tuple(learner.episodes) == undisturbed.episodes


def rows_of(learner: GPRMax) -> list[Any]:
    return list(learner.transitions.rows())


def test_resuming_a_finished_run_changes_nothing(
    tmp_path: Path, finished: Path, undisturbed: Recorded
) -> None:
    directory = shutil.copytree(finished, tmp_path / "run")
    for _ in range(2):
        assert gone_on(directory, problem="line", episodes=EPISODES) == undisturbed


def test_more_episodes_than_first_asked_for_continue_the_same_run(tmp_path: Path) -> None:
    whole = recorded(learned(tmp_path / "whole", problem="line", episodes=3))
    directory = learned(tmp_path / "run", problem="line", episodes=1)
    assert gone_on(directory, problem="line", episodes=3) == whole


def test_reading_a_run_changes_nothing_in_it(tmp_path: Path, finished: Path) -> None:
    directory = cut_short(finished, tmp_path / "run", 46)  # without a checkpoint: all is computed anew
    with GPRMax.resume(directory, ShortLine(), writing=False) as learner:
        assert learner.num_timesteps == 46
        assert len(learner.episodes) == 3
    assert not (directory / "agent.optimist").exists()
    with RunStore.open(directory, writing=False) as store:
        assert store.n_transitions == 46


@pytest.mark.parametrize(
    ("problem", "settings"),
    [
        ("mountain-car", SMALL),
        ("pendulum", SMALL),
        ("bicycle", SMALL.model_copy(update={"grid": Discretisation(nodes=(4, 4, 4, 4))})),
        ("acrobot", SMALL.model_copy(update={"grid": Discretisation(nodes=(4, 4, 4, 4), hold=2)})),
    ],
)
def test_every_problem_resumes_bit_for_bit(tmp_path: Path, problem: str, settings: AgentSettings) -> None:
    kept = tmp_path / "kept"
    whole = learned_keeping_checkpoints(
        tmp_path / "whole", kept, problem=problem, settings=settings, seed=1, steps=60
    )
    directory = cut_short(whole, tmp_path / "cut", 40)
    shutil.copy(kept / "35", directory / "agent.optimist")
    assert gone_on(directory, problem=problem, steps=60) == recorded(whole)


@pytest.mark.parametrize("preset", ["visited-cells", "none", "gp-variance"])
def test_every_rule_of_knownness_resumes_bit_for_bit(tmp_path: Path, preset: str) -> None:
    settings = AgentSettings(**(SMALL.model_dump() | {"knownness": preset, "model": {"kind": "per-action"}}))
    kept = tmp_path / "kept"
    whole = learned_keeping_checkpoints(tmp_path / "whole", kept, settings=settings, seed=1, steps=60)
    directory = cut_short(whole, tmp_path / "cut", 40)
    shutil.copy(kept / "35", directory / "agent.optimist")
    assert gone_on(directory, steps=60) == recorded(whole)


def test_settled_agent_stays_settled(tmp_path: Path) -> None:
    easily = StoppingRule(
        mean_drift_tolerance=1e9, uncertainty_drift_tolerance=1e9, surprise=1e9, disagreement=1e9
    )
    settings = SMALL.model_copy(update={"stopping": easily})
    whole = learned(tmp_path / "whole", settings=settings, steps=80)
    with GPRMax.resume(whole, ShortSystem("mountain-car"), writing=False) as learner:
        settled = learner.stopped_learning_at
    assert settled is not None
    assert settled + 10 < 80
    directory = cut_short(whole, tmp_path / "cut", settled + 10)
    assert gone_on(directory, steps=80) == recorded(whole)
    with GPRMax.resume(directory, ShortSystem("mountain-car"), writing=False) as learner:
        assert learner.stopped_learning_at == settled


def test_time_limit_of_a_wrapper_resumes_bit_for_bit(tmp_path: Path) -> None:
    """Episodes that a wrapper cuts off, shorter than the task's own limit."""

    def environment() -> gymnasium.Env[Any, Any]:
        return TimeLimit(OrderEnforcing(ShortSystem("mountain-car")), 30)

    with GPRMax(environment(), settings=SMALL, seed=0, run=tmp_path / "whole") as learner:
        learner.learn(50)
    with GPRMax(environment(), settings=SMALL, seed=0, run=tmp_path / "cut") as learner:
        learner.learn(20)
    with GPRMax.resume(tmp_path / "cut", environment()) as learner:
        learner.learn(30)
    assert recorded(tmp_path / "cut") == recorded(tmp_path / "whole")


def test_environment_given_after_resuming_goes_on_with_the_next_episode(
    tmp_path: Path, finished: Path, undisturbed: Recorded
) -> None:
    directory = shutil.copytree(finished, tmp_path / "run")
    environment = ShortLine()
    with GPRMax.resume(directory, None, task=environment.task) as learner:
        learner.set_env(environment)
        learner.learn(episodes=EPISODES + 1)
    after = recorded(directory)
    assert after.episodes[:EPISODES] == undisturbed.episodes
    assert [row.episode for row in after.episodes] == list(range(1, EPISODES + 2))


# --- killed, with -9 ---

SETTINGS = """
first_plans = [5, 10, 20, 35]
replan_every = 60
[grid]
nodes = [15, 15]
[planning]
depth = 0
[stopping]
mean_drift_tolerance = 1e-12
"""
SEED = 4
COMMAND = [sys.executable, "-m", "optimist"]


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes]) -> int:
    _, said = process.communicate(timeout=120)
    assert b"Traceback" not in said, said.decode()
    return process.returncode


def n_recorded(directory: Path) -> int:
    with RunStore.open(directory, writing=False) as store:
        return store.n_transitions


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Recorded]:
    """Arguments of `learn`, and what it leaves when it is not disturbed."""
    place = tmp_path_factory.mktemp("undisturbed")
    file = place / "settings.toml"
    file.write_text(SETTINGS)
    car = find_problem("mountain-car")
    with start_run(car, "gp-rmax-exp", seed=SEED, run=place / "run", episodes=1, file=file) as learner:
        learner.learn(episodes=1)
    arguments = ["learn", car.name, "--episodes", "1", "--seed", str(SEED), "--settings", str(file), "--json"]
    return arguments, recorded(place / "run")


def killed(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Looking all the time would take a processor of its own."""
    while not condition() and process.poll() is None:
        time.sleep(0.002)


def test_killed_again_and_again_and_resumed_ends_as_undisturbed(
    tmp_path: Path, command_line: tuple[list[str], Recorded]
) -> None:
    arguments, undisturbed = command_line
    directory = tmp_path / "run"
    process = started(*arguments, "--run", str(directory))
    wait_until((directory / "run.sqlite-wal").exists, process)
    wait_until(lambda: n_written(directory) >= 3, process)
    killed(process)  # before there is a plan, or soon after
    assert 3 <= n_recorded(directory) < len(undisturbed.transitions)  # it was disturbed indeed
    process = started("resume", str(directory), "--json")
    wait_until(lambda: (directory / "agent.optimist.new").exists() or n_written(directory) >= 30, process)
    killed(process)  # while it writes a checkpoint
    process = started("resume", str(directory), "--json")
    wait_until(lambda: n_written(directory) >= 35, process)
    killed(process)  # while it plans: that is due after 35
    before = n_recorded(directory)
    process = started("resume", str(directory), "--json")
    wait_until(lambda: n_written(directory) > before, process)
    time.sleep(random.Random(11).uniform(0.0, 0.15))
    killed(process)  # at no particular moment
    assert ended(started("resume", str(directory), "--json")) == 0
    assert recorded(directory) == undisturbed


def test_killed_as_soon_as_the_run_is_there_and_resumed_ends_as_undisturbed(
    tmp_path: Path, command_line: tuple[list[str], Recorded]
) -> None:
    """With the episodes it was started with, too."""
    arguments, undisturbed = command_line
    directory = tmp_path / "run"
    process = started(*arguments, "--run", str(directory))
    wait_until((directory / "run.sqlite").exists, process)
    assert process.poll() is None
    killed(process)
    assert ended(started("resume", str(directory), "--json")) == 0
    assert recorded(directory) == undisturbed


# --- an environment of somebody else ---


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.full(len(next_states), -1.0)


def at_goal(states: FloatArray) -> BoolArray:
    return np.asarray(states[:, 0] >= 0.5)


def outside_car() -> AdaptedEnvironment:
    return adapt(gymnasium.make("MountainCar-v0"), reward=reward, is_terminal=at_goal)


def test_outside_environment_goes_on_with_a_fresh_episode_and_all_it_learned(tmp_path: Path) -> None:
    with GPRMax(outside_car(), settings=SMALL, seed=0, run=tmp_path / "run") as learner:
        learner.learn(45)
        q_values = learner.plan.q_values.tobytes()
    before = recorded(tmp_path / "run")
    assert before.episodes == ()
    with GPRMax.resume(tmp_path / "run", outside_car()) as learner:
        assert learner.num_timesteps == 45
        assert learner.plan.q_values.tobytes() == q_values
        (abandoned,) = learner.episodes
        assert (abandoned.episode, abandoned.steps, abandoned.transitions) == (1, 45, 45)
        assert (abandoned.total_reward, abandoned.ending) == (-45.0, "abandoned")
        learner.learn(20)
    with RunStore.open(tmp_path / "run", writing=False) as store:
        assert [row.ending for row in store.episodes()] == ["abandoned"]
        assert store.open_episode() == (2, 20, -20.0)
        after = store.transitions()
    assert tuple(bits(row) for row in after[:45]) == before.transitions
    start = after[45].state
    assert start.tobytes() != after[44].next_state.tobytes()
    assert -0.6 <= start[0] <= -0.4  # a fresh start of MountainCar-v0
    assert start[1] == 0.0
    with pytest.raises(ValueError, match="was told; got one where it is to be learned"):
        GPRMax.resume(tmp_path / "run", gymnasium.make("MountainCar-v0"), writing=False)


def test_outside_environment_resumed_between_episodes_abandons_nothing(tmp_path: Path) -> None:
    with GPRMax(Line(), settings=SMALL, run=tmp_path) as learner:
        learner.learn(episodes=2)
    for _ in range(2):
        with GPRMax.resume(tmp_path, Line()) as learner:
            assert [row.ending for row in learner.episodes] == ["truncated"] * 2
    with GPRMax.resume(tmp_path, Line()) as learner:
        learner.learn(episodes=3)
        assert [row.ending for row in learner.episodes] == ["truncated"] * 3


def test_outside_environment_resumed_between_episodes_ends_as_undisturbed(tmp_path: Path) -> None:
    """It is seeded at the beginning of every episode, so here nothing is lost."""
    with GPRMax(Line(), settings=SMALL, run=tmp_path / "whole") as learner:
        learner.learn(episodes=4)
    with GPRMax(Line(), settings=SMALL, run=tmp_path / "cut") as learner:
        learner.learn(episodes=2)
    with GPRMax.resume(tmp_path / "cut", Line()) as learner:
        learner.learn(episodes=4)
    assert recorded(tmp_path / "cut") == recorded(tmp_path / "whole")


def test_outside_environment_resumed_twice_abandons_once(tmp_path: Path) -> None:
    with GPRMax(Line(), settings=SMALL, run=tmp_path) as learner:
        learner.learn(7)
    for _ in range(2):
        with GPRMax.resume(tmp_path, Line()) as learner:
            assert [(row.episode, row.ending) for row in learner.episodes] == [(1, "abandoned")]


def test_abandoned_episode_counts_when_another_environment_is_set(tmp_path: Path) -> None:
    with GPRMax(Line(), settings=SMALL, run=tmp_path) as learner:
        learner.learn(7)
        learner.set_env(Line())
        learner.learn(5)
        with RunStore.open(tmp_path, writing=False) as store:
            assert [row.ending for row in store.episodes()] == ["abandoned"]
            assert learner.episodes == store.episodes()
            assert store.open_episode()[:2] == (2, 5)


# --- interrupted in process, and gone on with the same object ---


class Stop:
    """A callback that raises at one event."""

    def __init__(self, when: Callable[[Event], bool]) -> None:
        self.when = when

    def __call__(self, event: Event) -> None:
        if self.when(event):
            self.when = lambda event: False
            raise KeyboardInterrupt


def at_step(number: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Stepped) and event.number == number


def at_plan(number: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Updated) and event.update.n_transitions == number


def at_end_of_episode(event: Event) -> bool:
    return isinstance(event, Stepped) and event.ended is not None


class InterruptedEnvironment(ShortLine):
    """Ctrl-C arrives while the environment is at work."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        self.at -= 1
        answer = super().step(action)  # too late to undo
        if self.at == 0:
            raise KeyboardInterrupt
        return answer


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("when", [at_step(1), at_step(35), at_plan(45), at_end_of_episode])
def test_interrupted_by_a_callback_and_learning_again_is_as_undisturbed(
    tmp_path: Path, undisturbed: Recorded, when: Callable[[Event], bool], recording: bool
) -> None:
    run = tmp_path / "run" if recording else None
    with GPRMax(ShortLine(), settings=SMALL, seed=0, run=run) as learner:
        with pytest.raises(KeyboardInterrupt):
            learner.learn(episodes=EPISODES, callback=Stop(when))
        learner.learn(episodes=EPISODES)
        require_undisturbed(learner, undisturbed)
    if run is not None:
        assert recorded(run) == undisturbed


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("at", [1, 36])
def test_interrupted_in_the_environment_and_learning_again_is_as_undisturbed(
    tmp_path: Path, undisturbed: Recorded, at: int, recording: bool
) -> None:
    run = tmp_path / "run" if recording else None
    with GPRMax(InterruptedEnvironment(at), settings=SMALL, seed=0, run=run) as learner:
        with pytest.raises(KeyboardInterrupt):
            learner.learn(episodes=EPISODES)
        assert learner.num_timesteps == at - 1
        learner.learn(episodes=EPISODES)
        require_undisturbed(learner, undisturbed)
    if run is not None:
        assert recorded(run) == undisturbed


def require_undisturbed(learner: GPRMax, undisturbed: Recorded) -> None:
    assert tuple(bits(row) for row in rows_of(learner)) == undisturbed.transitions
    assert tuple(learner.episodes) == undisturbed.episodes
    assert learner.plan.q_values.tobytes() == undisturbed.q_values


@pytest.mark.parametrize("recording", [True, False])
def test_interrupted_outside_environment_begins_a_fresh_episode(tmp_path: Path, recording: bool) -> None:
    run = tmp_path / "run" if recording else None
    with GPRMax(Line(), settings=SMALL, run=run) as learner:
        with pytest.raises(KeyboardInterrupt):
            learner.learn(episodes=3, callback=Stop(at_step(15)))  # the third step of episode 2
        learner.learn(episodes=3)
        assert [(row.episode, row.steps, row.ending) for row in learner.episodes] == [
            (1, 12, "truncated"),
            (2, 3, "abandoned"),
            (3, 12, "truncated"),
            (4, 12, "truncated"),  # three that count
        ]
        assert learner.num_timesteps == 39
        if run is not None:
            with RunStore.open(run, writing=False) as store:
                assert store.episodes() == learner.episodes
                rows = [bits(row) for row in store.transitions()]
                assert rows == [bits(row) for row in rows_of(learner)]


def test_callback_that_says_false_stops_after_that_event_and_learning_goes_on(
    tmp_path: Path, undisturbed: Recorded
) -> None:
    directory = tmp_path / "run"
    with GPRMax(ShortLine(), settings=SMALL, seed=0, run=directory) as learner:
        learner.learn(episodes=EPISODES, callback=lambda event: not at_step(10)(event))
        assert learner.num_timesteps == 10
        learner.learn(episodes=EPISODES, callback=lambda event: not at_plan(45)(event))
        assert learner.num_timesteps == 45
        learner.learn(episodes=EPISODES)
    assert recorded(directory) == undisturbed


def test_agent_file_of_a_run_has_the_q_values_the_learner_acts_on(tmp_path: Path) -> None:
    with GPRMax(ShortLine(), settings=SMALL, seed=0, run=tmp_path) as learner:
        learner.learn(40)
        saved = load_file(tmp_path / "agent.optimist")["knowledge.q_values"]
        assert saved.tobytes() == learner.plan.q_values.tobytes()


def test_transition_is_durable_before_the_agent_acts_on_it(tmp_path: Path) -> None:
    """Seen from the environment: when it is asked for step n + 1, n transitions are in the record."""
    counts = []

    class Watching(Line):
        def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
            connection = sqlite3.connect(tmp_path / "run.sqlite")
            counts.append(connection.execute("SELECT count(*) FROM transitions").fetchone()[0])
            connection.close()
            return super().step(action)

    with GPRMax(Watching(), settings=SMALL, run=tmp_path) as learner:
        learner.learn(15)
    assert counts == list(range(15))
