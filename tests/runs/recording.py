"""Small runs, how they are cut short, and what it means for two of them to be the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from optimist import Box, Discretisation, GPRMax, Task
from optimist.agents import AgentSettings
from optimist.agents.settings import PlanningOptions
from optimist.arrays import FloatArray
from optimist.environments.system_environment import SystemEnvironment
from optimist.models import GPSettings, StoppingRule
from optimist.runs import EpisodeRow, Event, RunStore, Updated
from optimist.runs.chain import Row
from optimist.runs.check import whole_part
from optimist.runs.database import Reading
from optimist.runs.writing import make_database
from optimist.transitions import Transition

# small, quick to plan with, and never settled: every update matters until the end
NEVER = StoppingRule(mean_drift_tolerance=1e-12, uncertainty_drift_tolerance=1e-12)
SMALL = AgentSettings(
    grid=Discretisation(nodes=(11, 11)),
    first_plans=(5, 10, 20, 35),
    replan_every=10,
    model=GPSettings(refit_growth=3.0),
    planning=PlanningOptions(depth=2),
    stopping=NEVER,
)


@dataclass(frozen=True)
class Recorded:
    """What a run left behind; two runs are the same when these are equal, bit for bit."""

    transitions: tuple[tuple[bytes, bytes, bytes, bytes, bool, bool], ...]
    episodes: tuple[EpisodeRow, ...]
    plans: tuple[tuple[Any, ...], ...]  # what was rehearsed among it
    q_values: bytes
    knowledge: tuple[tuple[str, bytes], ...]  # the whole checkpoint: model, nodes of the layout, ...
    document: dict[str, Any]  # ... what is held for open, what is expected


def bits(transition: Transition) -> tuple[bytes, bytes, bytes, bytes, bool, bool]:
    return (
        transition.state.tobytes(),
        np.asarray(transition.action).tobytes(),
        np.float64(transition.reward).tobytes(),
        transition.next_state.tobytes(),
        transition.terminated,
        transition.truncated,
    )


def recorded(directory: Path) -> Recorded:
    arrays = load_file(directory / "agent.optimist")
    with RunStore.open(directory, writing=False) as store:
        return Recorded(
            transitions=tuple(bits(transition) for transition in store.transitions()),
            episodes=tuple(store.episodes()),
            plans=tuple(_timeless(row) for row in store.plans()),
            q_values=arrays["knowledge.q_values"].tobytes(),
            knowledge=tuple((name, array.tobytes()) for name, array in sorted(arrays.items())),
            document=_document(directory),
        )


def _document(directory: Path) -> dict[str, Any]:
    with safe_open(directory / "agent.optimist", framework="numpy") as opened:
        document: dict[str, Any] = json.loads(opened.metadata()["optimist"])["knowledge"]
    return document


def _timeless(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((name, str(value)) for name, value in sorted(row.items()) if not name.endswith("_seconds"))


def made(problem: str) -> gymnasium.Env[Any, Any]:
    return ShortLine() if problem == "line" else ShortSystem(problem)


def learned(
    directory: Path,
    *,
    problem: str = "mountain-car",
    settings: AgentSettings = SMALL,
    seed: int = 0,
    episodes: int | None = None,
    steps: int | None = None,
    callback: Callable[[Event], bool | None] | None = None,
) -> Path:
    """A recorded run of a benchmark problem, or of the short line."""
    environment = made(problem)
    with GPRMax(environment, settings=settings, seed=seed, run=directory) as learner:
        learner.learn(steps, episodes=episodes, callback=callback)
    return directory


def learned_keeping_checkpoints(directory: Path, kept: Path, **choices: Any) -> Path:
    """The same; the agent file of every update is kept as `kept`/(number of transitions)."""
    kept.mkdir()

    def keep(event: Event) -> None:
        if isinstance(event, Updated):
            shutil.copy(directory / "agent.optimist", kept / str(event.update.n_transitions))

    return learned(directory, callback=keep, **choices)


def cut_short(finished: Path, directory: Path, n_transitions: int) -> Path:
    """A copy of a run as it was after so many transitions, without any checkpoint."""
    with RunStore.open(finished, writing=False) as store:
        rows = whole_part(store.record, n_transitions)
    assert rows is not None
    RunStore.filled(directory, rows).close()
    return directory


def rewritten(directory: Path, change: Callable[[dict[str, list[Row]]], object]) -> Path:
    """A run as if other rows had been written, without any checkpoint."""
    with RunStore.open(directory, writing=False) as store:
        rows = {name: list(chain.rows) for name, chain in store.record.chains.items()}
    change(rows)
    make_database(directory, rows)
    return directory


def with_header(directory: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A run as if its header had been another."""

    def changed(rows: dict[str, list[Row]]) -> None:
        header = json.loads(rows["header"][-1][0])
        change(header)
        rows["header"] = [(json.dumps(header),)]

    return rewritten(directory, changed)


def gone_on(
    directory: Path, *, problem: str = "mountain-car", episodes: int | None = None, steps: int | None = None
) -> Recorded:
    """The run resumed and finished, in this process."""
    with GPRMax.resume(directory, made(problem)) as learner:
        learner.learn(None if steps is None else steps - learner.num_timesteps, episodes=episodes)
    return recorded(directory)


def n_written(directory: Path) -> int:
    """How many transitions a run has, unproven: quick enough to be asked again and again."""
    reading = Reading(directory)
    try:
        count: int = reading.connection.execute("SELECT count(*) FROM transitions").fetchone()[0]
    finally:
        reading.close()
    return count


def write_bytes_at(file: Path, offset: int, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset, os.SEEK_SET)
        opened.write(content)


class ShortSystem(SystemEnvironment):
    """A system of ours in shorter episodes: those that are rehearsed take time."""

    def __init__(self, problem: str, max_steps: int = 40) -> None:
        super().__init__(problem)
        self._task = replace(self.system.task, max_steps=max_steps)

    @property
    def task(self) -> Task:
        return self._task


# --- environments of somebody else ---

LINE = Task(
    box=Box([-1.0, -1.0], [1.0, 1.0]),
    controls=np.array([-0.1, 0.1]),
    reward=lambda states, controls, next_states: -(states**2).sum(axis=1),
    discount=0.95,
    optimistic_value=0.0,
    max_steps=12,
)


class Line(gymnasium.Env[Any, Any]):
    """A point that is pushed along a line; what it does wrong, and when, is up to subclasses."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    task = LINE

    def __init__(self) -> None:
        self.state = np.zeros(2)
        self.n_steps = 0  # in all episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.5, 0.5, 2)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        self.n_steps += 1
        push = float(LINE.controls[int(action), 0])
        position, speed = self.state
        self.state = np.array([position + 0.2 * speed, 0.9 * speed + push - 0.05 * np.sin(3.0 * position)])
        return self.state.copy(), -float((self.state**2).sum()), False, False, {}


class ShortLine(Line):
    """One that can be put into a state: short episodes that resume bit for bit."""

    def restore(self, state: FloatArray) -> None:
        self.state = np.array(state)
