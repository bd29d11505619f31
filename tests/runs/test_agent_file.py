"""Agents as files: what is saved is what is loaded, or nothing is."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.exploring import random_transitions

from optimist import Box, Discretisation, GPRMax, Task
from optimist.agents import PRESETS, AgentSettings, GPRMaxAgent
from optimist.agents.settings import parse_settings
from optimist.environments.system_environment import SystemEnvironment
from optimist.gp.covariance import Metric
from optimist.models import GPSettings
from optimist.runs import RunError
from optimist.runs.agent_file import load_agent, save_agent
from optimist.systems import find_system
from optimist.transitions import Transition
from tests.runs.recording import NEVER, ShortSystem, bits

CAR = find_system("mountain-car")
KNOWNNESS = ["cell-variance", "gp-variance", "visited-cells", "none"]


def task_of(problem: str) -> Task:
    """With shorter episodes: those that are rehearsed take time."""
    return replace(find_system(problem).task, max_steps=20)


def seen(problem: str, count: int) -> list[Transition]:
    return random_transitions(find_system(problem), max(count, 1), seed=1).rows()[:count]


def trained(settings: AgentSettings, *, problem: str = "mountain-car", count: int = 40) -> GPRMaxAgent:
    agent = GPRMaxAgent(task_of(problem), settings, seed=5)
    for transition in seen(problem, count):
        agent.observe(transition)
        if agent.due:
            agent.update()
    return agent


def choices(**changes: Any) -> AgentSettings:
    few: dict[str, Any] = {
        "grid": Discretisation(nodes=(15, 15)),
        "first_plans": (5, 20, 35),
        "stopping": NEVER,
    }
    return AgentSettings(**(few | changes))


def loaded_from(file: Path, task: Task | None = None) -> GPRMaxAgent:
    task = task if task is not None else task_of("mountain-car")
    return load_agent(
        file, task, lambda settings, seed: GPRMaxAgent(task, parse_settings(settings), seed=seed)
    )


def require_same_agent(one: GPRMaxAgent, two: GPRMaxAgent) -> None:
    """The same in everything that can be asked, bit for bit."""
    assert (one.settings, one.seed) == (two.settings, two.seed)
    assert [bits(row) for row in one.transitions] == [bits(row) for row in two.transitions]
    assert one.knowledge is not None
    assert two.knowledge is not None
    assert one.knowledge.plan.q_values.tobytes() == two.knowledge.plan.q_values.tobytes()
    for name in ("sweeps", "residual", "converged"):
        assert getattr(one.knowledge.plan, name) == getattr(two.knowledge.plan, name)
    for name in ("n_transitions", "drifts", "settled", "n_updates"):
        assert getattr(one.knowledge, name) == getattr(two.knowledge, name)
    require_same_layout(one, two)
    first, second = (agent.knowledge.model.predict_on(agent.grid) for agent in (one, two) if agent.knowledge)
    assert first.next_states.tobytes() == second.next_states.tobytes()
    assert first.uncertainty is not None
    assert second.uncertainty is not None
    assert first.uncertainty.tobytes() == second.uncertainty.tobytes()
    states = np.random.default_rng(0).uniform(one.task.box.low, one.task.box.high, (50, one.task.box.n_dims))
    for action in range(one.task.n_actions):
        control = one.task.controls[[action]]
        answers = [agent.knowledge.model.predict_with_uncertainty(states, control)
                   for agent in (one, two) if agent.knowledge]  # fmt: skip
        assert [np.asarray(part).tobytes() for part in answers[0]] == [
            np.asarray(part).tobytes() for part in answers[1]
        ]
    assert one.policy(states).tobytes() == two.policy(states).tobytes()
    begun = states[:4]  # before it acts where an episode begins, all sights are tried from there
    assert [one.act(state) for state in begun] == [two.act(state) for state in begun]


def require_same_layout(one: GPRMaxAgent, two: GPRMaxAgent) -> None:
    """Where it plans, what it holds for open, what it expects."""
    assert [axis.tobytes() for axis in one.grid.axes] == [axis.tobytes() for axis in two.grid.axes]
    for name in ("holding", "depth", "name"):
        assert getattr(one.layout, name) == getattr(two.layout, name)
    here, there = (agent.known().planned for agent in (one, two))
    assert here.mean_hold == there.mean_hold
    assert (here.leaving is None) == (there.leaving is None)
    if here.leaving is not None and there.leaving is not None:
        for name in ("low", "high", "worst"):
            np.testing.assert_array_equal(getattr(here.leaving, name), getattr(there.leaving, name))
    assert one.expected is not None
    assert two.expected is not None
    assert (one.expected, one.expected.low, one.expected.high) == (
        two.expected,
        two.expected.low,
        two.expected.high,
    )


def require_same_future(one: GPRMaxAgent, two: GPRMaxAgent, problem: str, count: int) -> None:
    """The next update is the same too."""
    for transition in seen(problem, count)[one.n_transitions :]:
        one.observe(transition)
        two.observe(transition)
    one.update()
    two.update()
    require_same_agent(one, two)


RULES: list[tuple[str, Metric]] = [(knownness, Metric.AXES) for knownness in KNOWNNESS]
METRICS: list[tuple[str, Metric]] = [("gp-variance", Metric.UNIFORM), ("gp-variance", Metric.FACTORS)]


@pytest.mark.parametrize("kind", ["joint", "per-action"])
@pytest.mark.parametrize(("knownness", "metric"), RULES + METRICS)
def test_loaded_agent_is_the_saved_one_bit_for_bit(
    tmp_path: Path, kind: str, knownness: str, metric: Metric
) -> None:
    agent = trained(choices(knownness=knownness, model=GPSettings(kind=kind, metric=metric)))  # type: ignore[arg-type]
    save_agent(agent, tmp_path / "a.optimist")
    loaded = loaded_from(tmp_path / "a.optimist")
    require_same_agent(agent, loaded)
    require_same_future(agent, loaded, "mountain-car", 50)


@pytest.mark.parametrize("problem", ["pendulum", "bicycle", "acrobot"])
def test_loaded_agent_is_the_saved_one_for_every_problem(tmp_path: Path, problem: str) -> None:
    n_dims = find_system(problem).task.box.n_dims
    grid = Discretisation(nodes=(21, 21) if n_dims == 2 else (5,) * n_dims, hold=2)
    agent = trained(choices(grid=grid), problem=problem)
    save_agent(agent, tmp_path / "a.optimist")
    loaded = loaded_from(tmp_path / "a.optimist", task_of(problem))
    require_same_agent(agent, loaded)
    require_same_future(agent, loaded, problem, 45)


def test_agent_of_the_papers_preset_with_a_small_basis(tmp_path: Path) -> None:
    few = GPSettings(kind="per-action", max_basis=7, subset=10)
    changes = {"grid": Discretisation(nodes=(21, 21)), "first_plans": (35,), "model": few}
    agent = trained(PRESETS["paper"].model_copy(update=changes))
    save_agent(agent, tmp_path / "a.optimist")
    loaded = loaded_from(tmp_path / "a.optimist")
    require_same_agent(agent, loaded)
    require_same_future(agent, loaded, "mountain-car", 50)


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    save_agent(trained(choices()), tmp_path / "a.optimist")
    save_agent(loaded_from(tmp_path / "a.optimist"), tmp_path / "b.optimist")
    assert (tmp_path / "a.optimist").read_bytes() == (tmp_path / "b.optimist").read_bytes()


@pytest.mark.parametrize("count", [0, 3])
def test_agent_that_has_not_planned_yet(tmp_path: Path, count: int) -> None:
    agent = trained(choices(), count=count)
    save_agent(agent, tmp_path / "a.optimist")
    loaded = loaded_from(tmp_path / "a.optimist")
    assert loaded.knowledge is None
    assert [bits(row) for row in loaded.transitions] == [bits(row) for row in agent.transitions]
    assert loaded.act(CAR.starts[0]) == agent.act(CAR.starts[0])


def test_learner_saves_and_loads_and_learns_on_alike(tmp_path: Path) -> None:
    first = GPRMax(ShortSystem("mountain-car"), settings=choices(), seed=2)
    first.learn(40)
    first.save(tmp_path / "a.optimist")
    second = GPRMax.load(tmp_path / "a.optimist", env=ShortSystem("mountain-car"))
    states = np.random.default_rng(0).uniform(CAR.task.box.low, CAR.task.box.high, (30, 2))
    assert second.num_timesteps == 40
    assert first.predict(states)[0].tolist() == second.predict(states)[0].tolist()
    assert first.value(states).tobytes() == second.value(states).tobytes()
    assert first.uncertainty(states).tobytes() == second.uncertainty(states).tobytes()
    second.learn(30)
    assert second.num_timesteps == 70


# --- files that are not whole ---


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("saved") / "a.optimist"
    save_agent(trained(choices(grid=Discretisation(nodes=(6, 6)))), file)
    return file.read_bytes()


def refused(tmp_path: Path, content: bytes) -> str:
    """What is said about a file with this content."""
    file = tmp_path / "bad.optimist"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"\S") as error:
        loaded_from(file)
    assert not isinstance(error.value, UnicodeDecodeError)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def header_length(content: bytes) -> int:
    return 8 + int(struct.unpack("<Q", content[:8])[0])


def with_document(content: bytes, change: dict[str, Any]) -> bytes:
    """The same file with another document in its header."""
    end = header_length(content)
    header = json.loads(content[8:end])
    document = json.loads(header["__metadata__"]["optimist"]) | change
    header["__metadata__"]["optimist"] = json.dumps(document)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content[end:]


def flipped_at(content: bytes, offset: int, mask: int) -> bytes:
    return content[:offset] + bytes([content[offset] ^ mask]) + content[offset + 1 :]


def test_flipped_byte_in_the_arrays_is_refused(tmp_path: Path, saved: bytes) -> None:
    stream, begin = random.Random(0), header_length(saved)
    for _ in range(60):
        offset = stream.randrange(begin, len(saved))
        assert "undamaged" in refused(tmp_path, flipped_at(saved, offset, 1 << stream.randrange(8)))


@pytest.mark.parametrize("seed", range(4))
def test_flipped_byte_in_the_header_is_refused(tmp_path: Path, saved: bytes, seed: int) -> None:
    stream, end = random.Random(seed), header_length(saved)
    for _ in range(100):
        refused(tmp_path, flipped_at(saved, stream.randrange(end), stream.choice([1, 2, 4, 8, 15, 19, 255])))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (b"n_transitions", b"1"),  # what follows the first of these names in the header
        (b"seed", b"7"),
        (b"settled", b"true "),
        (b"residual", b"8"),
        (b"target_scale", b"9"),
        (b"noise_variance", b"8"),
        (b"replan_every", b"26"),
    ],
)
def test_changed_number_in_the_header_is_refused(
    tmp_path: Path, saved: bytes, name: bytes, other: bytes
) -> None:
    at = saved.index(name) + len(name) + len(b'\\": ')
    changed = saved[:at] + other + saved[at + len(other) :]
    assert changed != saved
    refused(tmp_path, changed)


def test_truncated_file_is_refused_wherever_it_ends(tmp_path: Path, saved: bytes) -> None:
    for length in [
        0,
        1,
        7,
        8,
        9,
        header_length(saved) - 1,
        header_length(saved),
        len(saved) // 2,
        len(saved) - 1,
    ]:
        refused(tmp_path, saved[:length])


def test_appended_bytes_are_refused(tmp_path: Path, saved: bytes) -> None:
    refused(tmp_path, saved + b"\0")


@pytest.mark.parametrize("content", [b"", b"hello", b"\0" * 10, b"\xff" * 20, b"{}", b"PK\x03\x04"])
def test_what_is_no_agent_file_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(tmp_path, content)


def test_safetensors_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save

    array = {"weights": np.zeros(3)}
    assert "Optimist" in refused(tmp_path, save(array))
    assert "Optimist" in refused(tmp_path, save(array, metadata={"optimist": "no JSON"}))
    for document in ("[]", "{}", "null", "3", '{"format_version": 2}'):
        assert "Optimist" in refused(tmp_path, save(array, metadata={"optimist": document}))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.optimist"):
        loaded_from(tmp_path / "nowhere.optimist")
    with pytest.raises(ValueError, match=r"must be a regular file; got .* a directory"):
        loaded_from(tmp_path)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5, 7, "6", None])
def test_another_format_version_is_refused_with_what_to_do(
    tmp_path: Path, saved: bytes, version: object
) -> None:
    said = refused(tmp_path, with_document(saved, {"format_version": version}))
    assert f"must be of format 6; got {version} in" in said
    assert said.endswith("Learn again, or `optimist resume` the run it came from.")


class Trap:
    """Unpickling it leaves a file behind."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.file),)


def test_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    refused(tmp_path, pickle.dumps(Trap(trap)))
    assert not trap.exists()
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.exists()  # the trap is a real one


def test_nothing_of_the_package_imports_pickle() -> None:
    source = Path(sys.modules["optimist"].__file__ or "").parent
    for file in source.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "import pickle" not in text, file
        assert "allow_pickle=True" not in text, file


# --- the task it was learned for ---


def other_task(**changes: Any) -> Task:
    return replace(task_of("mountain-car"), **changes)


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("high", other_task(box=Box([-1.2, -0.07], [0.6, 0.07]))),
        ("periodic", other_task(box=Box([-1.2, -0.07], [0.5, 0.07], [True, False]))),
        ("controls", other_task(controls=np.array([-1.0, 0.0, 2.0]))),
        ("controls", other_task(controls=np.array([-1.0, 1.0]))),
        ("discount", other_task(discount=0.98)),
        ("optimistic_value", other_task(optimistic_value=1.0)),
        ("max_steps", other_task(max_steps=499)),
        ("low", find_system("acrobot").task),
    ],
)
def test_another_task_is_refused_by_name(tmp_path: Path, saved: bytes, name: str, task: Task) -> None:
    file = tmp_path / "a.optimist"
    file.write_bytes(saved)
    with pytest.raises(ValueError, match=name):
        loaded_from(file, task)


def test_learner_without_task_or_environment_is_told_so(tmp_path: Path, saved: bytes) -> None:
    (tmp_path / "a.optimist").write_bytes(saved)
    with pytest.raises(ValueError, match="task"):
        GPRMax.load(tmp_path / "a.optimist")
    assert GPRMax.load(tmp_path / "a.optimist", task=task_of("mountain-car")).num_timesteps == 40


def test_agent_file_of_a_run_is_refused_with_the_way_to_open_a_run(tmp_path: Path) -> None:
    """Its transitions are in the record beside it."""
    environment = SystemEnvironment("mountain-car")
    with GPRMax(environment, settings=choices(), run=tmp_path) as learner:
        learner.learn(6)
    with pytest.raises(ValueError, match="resume"):
        GPRMax.load(tmp_path / "agent.optimist", env=environment)


# --- files are whole at every instant ---


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    agent = trained(choices(grid=Discretisation(nodes=(6, 6))))
    for _ in range(2):
        save_agent(agent, tmp_path / "a.optimist")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.optimist"]


def test_directory_that_is_missing_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="could not be written"):
        save_agent(trained(choices(), count=3), tmp_path / "nowhere" / "a.optimist")


WRITE_WITH_LITTLE_SPACE = """
import resource, sys
from dataclasses import replace
from optimist import GPRMax
from optimist.runs import RunError
from optimist.systems import find_system
agent = GPRMax.load(sys.argv[1], task=replace(find_system("mountain-car").task, max_steps=20))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    agent.save(sys.argv[1])
except RunError as error:
    print(error)
"""


def test_write_that_fails_leaves_the_old_file(tmp_path: Path, saved: bytes) -> None:
    file = tmp_path / "a.optimist"
    file.write_bytes(saved)
    command = [sys.executable, "-c", WRITE_WITH_LITTLE_SPACE, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert str(file) in ran.stdout
    assert ran.stdout.count("\n") == 1
    assert file.read_bytes() == saved
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.optimist"]  # half a file would only take space


def test_directory_in_its_place_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "a.optimist"
    target.mkdir()
    (target / "kept").touch()
    with pytest.raises(ValueError, match="must be a regular file"):
        save_agent(trained(choices(), count=3), target)
    assert (target / "kept").exists()


def test_file_can_be_moved_and_copied(tmp_path: Path, saved: bytes) -> None:
    (tmp_path / "a.optimist").write_bytes(saved)
    shutil.move(tmp_path / "a.optimist", tmp_path / "b.any")
    assert loaded_from(tmp_path / "b.any").n_transitions == 40
