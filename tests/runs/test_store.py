"""The record of a run: what goes in comes out, and what is not a run is refused."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from benchmarks.exploring import random_transitions
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.agents import GPRMaxAgent, Update
from optimist.runs import DamagedError, EpisodeRow, RunError, RunStore, writing
from optimist.runs.tables import write_tables
from optimist.systems import find_system
from optimist.transitions import Transition
from tests.cli.running import run
from tests.runs.recording import SMALL, bits, learned, write_bytes_at

HEADER = {
    "agent": "gp-rmax-exp",
    "problem": "mountain-car",
    "seed": 3,
    "word": "ünïcode",
    "list": [1, 2.5, None],
}

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
hard = st.sampled_from([-0.0, 0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1e308, 1.0, -1.0, 2.0**53, 1e22])
numbers = hard | finite


def step(*, reward: float = -1.0, at: float = 0.5, terminated: bool = False) -> Transition:
    """One that any other may follow."""
    return Transition(np.array([at, -0.0]), 1, reward, np.array([at, -0.0]), terminated, False)


@st.composite
def episodes(draw: st.DrawFn) -> list[Transition]:
    d = draw(st.integers(1, 4))
    states = st.lists(numbers, min_size=d, max_size=d).map(np.array)
    rewards = numbers.map(lambda reward: reward + 0.0)  # SQLite keeps no negative zero; the loop makes none
    rows = st.builds(Transition, states, st.integers(0, 10), rewards, states, st.booleans(), st.booleans())
    return draw(st.lists(rows, max_size=4))


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "run"


def filled(directory: Path, count: int = 3) -> Path:
    with RunStore.create(directory, HEADER) as store:
        for _ in range(count):
            store.append(step(), 1, outside=False)
    return directory


@settings(max_examples=15)
@given(episodes())
def test_transitions_come_back_bit_for_bit(rows: list[Transition]) -> None:
    with TemporaryDirectory() as name:
        with RunStore.create(Path(name), {}) as store:
            for episode, row in enumerate(rows, 1):
                store.append(row, episode, outside=False)
        with RunStore.open(Path(name), writing=False) as store:
            assert [bits(row) for row in store.transitions()] == [bits(row) for row in rows]
            assert store.n_transitions == len(rows)


@pytest.mark.parametrize("reward", [0.0, 5e-324, -5e-324, 1.7976931348623157e308, 1e22, 2.0**62, 2.0**63])
def test_rewards_of_every_size_and_sign_come_back_bit_for_bit(new: Path, reward: float) -> None:
    with RunStore.create(new, {}) as store:
        store.append(step(reward=reward), 1, outside=False)
        assert np.float64(store.transitions()[0].reward).tobytes() == np.float64(reward).tobytes()


def test_types_of_a_transition_survive(new: Path) -> None:
    with RunStore.create(new, {}) as store:
        store.append(step(reward=-1.0, terminated=True), 1, outside=False)
        row = store.transitions()[0]
    kinds = [type(value) for value in (row.action, row.reward, row.terminated, row.truncated)]
    assert kinds == [int, float, bool, bool]
    assert row.state.dtype == np.float64
    row.state[0] = 7.0  # its own array, not a view of the record


def test_header_comes_back_with_the_format_version(new: Path) -> None:
    filled(new)
    with RunStore.open(new, writing=False) as store:
        assert store.header == HEADER | {"format_version": 7}


def test_wanted_episodes_are_remembered_and_leave_the_rest_of_the_header(new: Path) -> None:
    with RunStore.create(new, HEADER) as store:
        store.want(4)
        store.want(7)
    with RunStore.open(new, writing=False) as store:
        assert store.header == HEADER | {"format_version": 7, "episodes": 7}


def test_episodes_come_back_in_order(new: Path) -> None:
    rows = [EpisodeRow(1, 1, -0.1, 1, "terminated"), EpisodeRow(2, 2, 1e-300, 3, "truncated")]
    with RunStore.create(new, {}) as store:
        store.append(step(terminated=True), 1, outside=False, ended=rows[0])
        store.append(step(), 2, outside=False)
        store.append(step(), 2, outside=False, ended=rows[1])
    with RunStore.open(new, writing=False) as store:
        assert store.episodes() == rows


def test_open_episode_counts_its_steps_and_adds_up_its_rewards_in_order(new: Path) -> None:
    with RunStore.create(new, {}) as store:
        assert store.open_episode() == (1, 0, 0.0)
        store.append(step(), 1, outside=False, ended=EpisodeRow(1, 1, -1.0, 1, "truncated"))
        assert store.open_episode() == (2, 0, 0.0)
        total = 0.0
        for reward in (0.1, 0.2, 0.3, 1e16, -1e16):
            store.append(step(reward=reward), 2, outside=False)
            total += reward
        assert store.open_episode() == (2, 5, total)


def test_abandoned_episode_is_recorded_without_a_transition(new: Path) -> None:
    row = EpisodeRow(1, 1, -1.0, 1, "abandoned")
    with RunStore.create(new, {}) as store:
        store.append(step(), 1, outside=False)
        store.end_episodes([row])
        assert store.episodes() == [row]
        assert store.open_episode() == (2, 0, 0.0)
        assert store.n_transitions == 1


def test_outside_is_counted(new: Path) -> None:
    with RunStore.create(new, {}) as store:
        assert store.n_outside() == 0
        for outside in (True, False, True):
            store.append(step(), 1, outside=outside)
        assert store.n_outside() == 2


def updates() -> list[Update]:
    system = find_system("mountain-car")
    columns = random_transitions(system, 20, seed=0)
    agent = GPRMaxAgent(system.task, SMALL, seed=0)
    rows = zip(columns.states, columns.actions, columns.rewards, columns.next_states, strict=True)
    made = []
    for state, action, reward, next_state in rows:
        agent.observe(Transition(state, int(action), float(reward), next_state, False, False))
        if agent.due:
            made.append(agent.update())
    return made


def test_plans_come_back_as_they_were_made(new: Path) -> None:
    made = updates()
    with RunStore.create(new, {}) as store:
        for update in made:
            store.record_plan(update)
        rows = store.plans()
    assert [row["n_transitions"] for row in rows] == [5, 10, 20]
    for update, row in zip(made, rows, strict=True):
        for name in ("fit_seconds", "plan_seconds", "sweeps", "residual", "converged", "mean_uncertainty"):
            assert row[name] == getattr(update, name)
        assert row["model"] == update.model
        assert [len(group) for group in row["model"]["basis_sizes"]] == [2]  # joint: one process per axis
        assert all(np.isfinite(axis).all() for group in row["model"]["hyperparameters"] for axis in group)
        drift = update.drift
        assert row["mean_drift"] == (None if drift is None else drift.mean_drift)
        assert row["uncertainty_drift"] == (None if drift is None else drift.uncertainty_drift)
    assert rows[0]["mean_drift"] is None
    assert rows[1]["mean_drift"] is not None


def test_a_plan_made_again_replaces_itself(new: Path) -> None:
    first = updates()[0]
    with RunStore.create(new, {}) as store:
        store.record_plan(first)
        store.record_plan(first)
        assert len(store.plans()) == 1
        assert store.stopped_learning_at() is None


def test_reader_sees_committed_rows_while_the_writer_is_open(new: Path) -> None:
    with RunStore.create(new, HEADER) as writer, RunStore.open(new, writing=False) as reader:
        assert reader.n_transitions == 0
        for count in range(1, 4):
            writer.append(step(at=float(count)), count, outside=False)
            assert reader.n_transitions == count
        assert [bits(row) for row in reader.transitions()] == [bits(row) for row in writer.transitions()]
        writer.end_episodes([EpisodeRow(1, 1, -1.0, 1, "abandoned")])
        assert reader.episodes() == writer.episodes()


def test_reader_in_the_middle_of_reading_does_not_block_the_writer(new: Path) -> None:
    with RunStore.create(new, {}) as writer:
        writer.append(step(), 1, outside=False)
        other = sqlite3.connect(new / "run.sqlite")
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM transitions").fetchone() == (1,)
        writer.append(step(), 1, outside=False)  # would wait, and then fail, if it were blocked
        assert other.execute("SELECT count(*) FROM transitions").fetchone() == (1,)  # one state of the world
        other.close()
        assert writer.n_transitions == 2


def test_reader_in_another_process_sees_what_was_appended(new: Path) -> None:
    with RunStore.create(new, {}) as writer:
        writer.append(step(), 1, outside=False)
        code = (
            "import sys; from pathlib import Path; from optimist.runs import RunStore\n"
            "print(RunStore.open(Path(sys.argv[1]), writing=False).n_transitions)"
        )
        command = [sys.executable, "-c", code, str(new)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "1"


def test_reader_cannot_write(new: Path) -> None:
    filled(new)
    with RunStore.open(new, writing=False) as reader, pytest.raises(RunError, match="readonly"):
        reader.append(step(), 1, outside=False)


@pytest.mark.parametrize("name", ["with space", "hash#1", "percent%41", "what?mode=x", "ünï", "plus+and&"])
def test_any_name_of_a_directory_will_do(tmp_path: Path, name: str) -> None:
    directory = filled(tmp_path / name)
    with RunStore.open(directory, writing=False) as store:
        assert store.n_transitions == 3
    with RunStore.open(directory, writing=True) as store:
        assert store.n_transitions == 3


def test_relative_directory_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    filled(Path("here"))
    with RunStore.open(Path("here"), writing=False) as store:
        assert store.n_transitions == 3


def test_directory_that_holds_a_run_is_refused_and_left_alone(new: Path) -> None:
    filled(new)
    with pytest.raises(ValueError, match=r"must be new.*optimist resume"):
        RunStore.create(new, {"other": True})
    with RunStore.open(new, writing=False) as store:
        assert store.header["word"] == HEADER["word"]
        assert store.n_transitions == 3


def test_empty_directory_is_accepted(new: Path) -> None:
    new.mkdir()
    filled(new)


def test_what_was_left_of_a_run_that_was_never_begun_does_not_matter(new: Path) -> None:
    new.mkdir()
    (new / "run.sqlite.new").write_bytes(b"killed while it was written")
    (new / "run.lock").touch()
    filled(new)
    with RunStore.open(new, writing=False) as store:
        assert store.n_transitions == 3


def test_record_is_all_there_when_it_gets_its_name(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when closing leaves rows in the log: here another has it open, on a full disk there is no room."""
    others = list[sqlite3.Connection]()

    def looked_into(connection: sqlite3.Connection, rows: Any) -> None:
        write_tables(connection, rows)
        others.append(sqlite3.connect(new / "run.sqlite.new"))
        others[0].execute("SELECT * FROM sqlite_master").fetchall()

    monkeypatch.setattr(writing, "write_tables", looked_into)
    RunStore.create(new, HEADER).close()
    with RunStore.open(new, writing=False) as store:
        assert store.header["seed"] == HEADER["seed"]
    others[0].close()


def test_log_of_a_deleted_run_does_not_leak_into_a_new_one(tmp_path: Path, new: Path) -> None:
    with RunStore.create(tmp_path / "old", {"which": "old"}) as old:
        old.append(step(), 1, outside=False)
        new.mkdir()
        (new / "run.sqlite-wal").write_bytes((tmp_path / "old" / "run.sqlite-wal").read_bytes())
    with RunStore.create(new, {"which": "new"}) as store:
        assert store.header["which"] == "new"
        assert store.n_transitions == 0


@pytest.mark.parametrize("writing", [True, False])
def test_directory_without_a_run_is_refused_and_left_empty(tmp_path: Path, writing: bool) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="must hold a run"):
            RunStore.open(directory, writing=writing)
    assert list(tmp_path.iterdir()) == []


def test_file_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("hello")
    with pytest.raises(ValueError, match="must hold a run"):
        RunStore.open(file, writing=True)
    for directory in (file, file / "below"):
        with pytest.raises(ValueError, match="must be writable"):
            RunStore.create(directory, {})
    assert file.read_text() == "hello"


@pytest.mark.parametrize("writing", [True, False])
@pytest.mark.parametrize("version", [8, 0, "2"])
def test_another_format_version_is_refused(new: Path, version: object, writing: bool) -> None:
    filled(new)
    with sqlite3.connect(new / "run.sqlite") as connection:
        connection.execute("UPDATE header SET document = ?", (json.dumps({"format_version": version}),))
    connection.close()
    for choice in (writing, True):  # and it is not left locked
        with pytest.raises(ValueError, match=f"must be of format 1 to 7; got {version}, of another"):
            RunStore.open(new, writing=choice)
    connection = sqlite3.connect(new / "run.sqlite")
    assert connection.execute("SELECT count(*) FROM transitions").fetchone() == (3,)  # left as it was
    connection.close()


def damage_empty(file: Path) -> None:
    os.truncate(file, 0)


def damage_all(file: Path) -> None:
    file.write_bytes(b"this is no database" * 400)


def damage_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def damage_middle(file: Path) -> None:
    write_bytes_at(file, 4096, b"\xff" * (file.stat().st_size - 4096))


def damage_last_page(file: Path) -> None:
    write_bytes_at(file, file.stat().st_size - 4096, b"\xff" * 4096)


def change(statement: str, file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()


def damage_header_row(file: Path) -> None:
    change("DELETE FROM header", file)


def damage_header_text(file: Path) -> None:
    change("UPDATE header SET document = substr(document, 1, 20)", file)


def damage_header_keys(file: Path) -> None:
    change("UPDATE header SET document = '{}'", file)


def damage_table(file: Path) -> None:
    change("DROP TABLE transitions", file)


def damage_state(file: Path) -> None:
    change("UPDATE transitions SET state = x'00' WHERE number = 2", file)


DAMAGES = [
    damage_empty, damage_all, damage_half, damage_middle, damage_last_page, damage_header_row,
    damage_header_text, damage_header_keys, damage_table, damage_state,
]  # fmt: skip


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that takes several pages."""
    return filled(tmp_path_factory.mktemp("long") / "run", 200)


def read_all(directory: Path, *, writing: bool) -> None:
    with RunStore.open(directory, writing=writing) as store:
        store.transitions()
        store.episodes()
        store.plans()
        store.open_episode()


@pytest.mark.parametrize("writing", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_record_is_refused_with_one_sentence(
    long: Path, new: Path, damage: object, writing: bool
) -> None:
    shutil.copytree(long, new)
    assert callable(damage)
    damage(new / "run.sqlite")
    with pytest.raises(DamagedError) as refused:
        read_all(new, writing=writing)
    assert str(new) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("damage", [damage_all, damage_table])
def test_command_line_says_in_one_sentence_that_the_record_is_damaged(new: Path, damage: object) -> None:
    learned(new, steps=3)
    assert callable(damage)
    damage(new / "run.sqlite")
    ran = run("resume", str(new), "--json")
    assert ran.returncode in (1, 2)
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert str(new) in ran.stderr
    assert ran.stdout == ""


def test_closing_twice_is_harmless(new: Path) -> None:
    store = RunStore.create(new, {})
    store.close()
    descriptor = os.open(new / "run.sqlite", os.O_RDONLY)  # likely the number of the lock that was let go
    store.close()
    os.fstat(descriptor)  # still open: nobody else's file was closed
    os.close(descriptor)
