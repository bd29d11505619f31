"""One writer per run, whatever happens to it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from optimist import GPRMax
from optimist.environments.system_environment import SystemEnvironment
from optimist.runs import EpisodeRow, RunError, RunStore
from optimist.runs import store as store_module
from optimist.transitions import Transition
from tests.runs.recording import SMALL

WRITER = """
import sys
from pathlib import Path
from optimist.runs import RunStore
store = RunStore.open(Path(sys.argv[1]), writing=True)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    RunStore.create(tmp_path / "run", {}).close()
    return tmp_path / "run"


@contextlib.contextmanager
def writer_elsewhere(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the run open for writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.wait(30)
        process.stdin.close()
        process.stdout.close()


def test_second_writer_is_refused_while_another_process_writes_and_let_in_after_kill_9(
    directory: Path,
) -> None:
    with writer_elsewhere(directory) as process:
        with pytest.raises(ValueError, match="must not be in use") as refused:
            RunStore.open(directory, writing=True)
        assert str(directory) in str(refused.value)
        assert "\n" not in str(refused.value)
        RunStore.open(directory, writing=False).close()  # readers are welcome
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        RunStore.open(directory, writing=True).close()


def test_process_that_ends_lets_go(directory: Path) -> None:
    with writer_elsewhere(directory) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
        RunStore.open(directory, writing=True).close()


def test_second_writer_in_the_same_process_is_refused(directory: Path) -> None:
    with RunStore.open(directory, writing=True), pytest.raises(ValueError, match="must not be in use"):
        RunStore.open(directory, writing=True)


def test_creator_holds_the_lock(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, {}), pytest.raises(ValueError, match="must not be in use"):
        RunStore.open(tmp_path, writing=True)
    RunStore.open(tmp_path, writing=True).close()


def test_directory_locked_by_a_writer_that_has_not_begun_is_refused_to_another_creator(
    tmp_path: Path,
) -> None:
    with RunStore.create(tmp_path, {"which": "first"}):
        (tmp_path / "run.sqlite").unlink()  # as it is before the record is there
        with pytest.raises(ValueError, match="must not be in use"):
            RunStore.create(tmp_path, {"which": "second"})


def test_being_refused_does_not_take_the_lock_away(directory: Path) -> None:
    with RunStore.open(directory, writing=True):
        for _ in range(3):
            with pytest.raises(ValueError, match="must not be in use"):
                RunStore.open(directory, writing=True)


def test_reader_neither_takes_nor_releases_the_lock(directory: Path) -> None:
    with RunStore.open(directory, writing=False), RunStore.open(directory, writing=True):
        RunStore.open(directory, writing=False).close()
        with pytest.raises(ValueError, match="must not be in use"):
            RunStore.open(directory, writing=True)


def test_close_lets_go(directory: Path) -> None:
    for _ in range(3):
        RunStore.open(directory, writing=True).close()


def test_learner_that_could_not_be_made_lets_go(tmp_path: Path) -> None:
    """A run that is refused after it was opened must not stay locked."""
    with GPRMax(SystemEnvironment("mountain-car"), settings=SMALL, run=tmp_path):
        pass
    with pytest.raises(ValueError, match="must be the one of"):
        GPRMax.resume(tmp_path, SystemEnvironment("pendulum"))
    RunStore.open(tmp_path, writing=True).close()


def test_learner_holds_the_lock_until_it_is_closed(tmp_path: Path) -> None:
    environment = SystemEnvironment("mountain-car")
    with GPRMax(environment, settings=SMALL, run=tmp_path):
        with pytest.raises(ValueError, match="must not be in use"):
            GPRMax.resume(tmp_path, environment)
        GPRMax.resume(tmp_path, environment, writing=False).close()
    GPRMax.resume(tmp_path, environment).close()


def test_learner_can_be_closed_twice(tmp_path: Path) -> None:
    with GPRMax(SystemEnvironment("mountain-car"), settings=SMALL, run=tmp_path) as learner:
        learner.close()


def test_child_process_does_not_keep_the_lock(directory: Path) -> None:
    """A worker that was started meanwhile and lives on must not hold a run that its parent let go."""
    store = RunStore.open(directory, writing=True)
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        store.close()
        RunStore.open(directory, writing=True).close()
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("name", ["run.lock", "run.head", "run.sqlite-shm", "agent.optimist"])
def test_removing_a_file_lets_no_second_writer_in(directory: Path, name: str) -> None:
    with RunStore.open(directory, writing=True):
        (directory / name).unlink(missing_ok=True)
        with pytest.raises(ValueError, match="must not be in use"):
            RunStore.open(directory, writing=True)
        moved = directory.rename(directory.with_name("moved"))
        with pytest.raises(ValueError, match="must not be in use"):
            RunStore.open(moved, writing=True)


def test_lock_leaves_nothing_behind(directory: Path) -> None:
    assert sorted(file.name for file in directory.iterdir()) == ["run.head", "run.sqlite"]


# --- without any lock: the chain alone ---


@pytest.fixture
def unlocked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As on a file system that cannot lock."""
    monkeypatch.setattr(store_module, "take_lock", lambda _: lambda: None)
    return directory


def at(number: float, next_number: float) -> Transition:
    return Transition(np.array([number]), 0, 1.0, np.array([next_number]), False, False)


ADDITIONS: dict[str, Callable[[RunStore, int], object]] = {  # of writer 1 or 2
    "a transition": lambda store, _: store.append(at(0.0, 2.0), 1, outside=False),
    "an episode": lambda store, _: store.end_episodes([EpisodeRow(1, 2, 2.0, 2, "abandoned")]),
    "a mark": lambda store, which: store.mark(which, reason="by hand"),
    "settings": lambda store, which: store.want(which),
}


@pytest.mark.parametrize("mine", ADDITIONS)
@pytest.mark.parametrize("theirs", ADDITIONS)
def test_rows_of_two_writers_cannot_form_one_chain(unlocked: Path, mine: str, theirs: str) -> None:
    with RunStore.open(unlocked, writing=True) as first:
        first.append(at(1.0, 0.0), 1, outside=False)
        first.append(at(0.0, 0.0), 1, outside=False)
        with RunStore.open(unlocked, writing=True) as second:
            ADDITIONS[theirs](second, 2)
            with pytest.raises(RunError, match="must have one writer") as refused:
                ADDITIONS[mine](first, 1)
            assert str(unlocked) in str(refused.value)
            assert "\n" not in str(refused.value)
            second.append(at(0.0, 3.0) if theirs != "a transition" else at(2.0, 3.0), 1, outside=False)
            count = second.n_transitions
    with RunStore.open(unlocked, writing=False) as store:
        assert store.n_transitions == count


def test_two_writers_at_once_lose_nothing_and_mix_nothing(unlocked: Path) -> None:
    """Taking turns: whoever comes second each time is refused, and goes on when it has read again."""
    written = []
    for turn in range(6):
        with RunStore.open(unlocked, writing=True) as one, RunStore.open(unlocked, writing=True) as two:
            lucky, late = (one, two) if turn % 2 else (two, one)
            lucky.append(at(turn, turn + 1), 1, outside=False)
            written.append(float(turn))
            with pytest.raises(RunError):
                late.append(at(turn, -1.0), 1, outside=False)
    with RunStore.open(unlocked, writing=False) as store:
        assert [row.state[0] for row in store.transitions()] == written


def test_reading_tools_of_others_do_not_end_a_run(directory: Path) -> None:
    """Somebody's program that writes to the database without adding anything is no second writer."""
    with RunStore.open(directory, writing=True) as store:
        store.append(at(1.0, 0.0), 1, outside=False)
        with sqlite3.connect(directory / "run.sqlite") as other:
            other.execute("ANALYZE")
        other.close()
        store.append(at(0.0, 2.0), 1, outside=False)
        assert store.n_transitions == 2


def test_lock_file_of_an_earlier_version_is_no_obstacle(directory: Path) -> None:
    (directory / "run.lock").write_text("12345")
    RunStore.open(directory, writing=True).close()


# --- files that go away while they are written ---


@pytest.mark.parametrize("what", ["run.sqlite", "run.sqlite-wal", "all", "replaced"])
def test_who_writes_notices_that_the_record_is_gone(directory: Path, what: str) -> None:
    """SQLite goes on writing to a file without a name, and with the process all of it would be gone."""
    with RunStore.open(directory, writing=True) as store:
        store.append(at(1.0, 0.0), 1, outside=False)
        if what == "all":
            shutil.rmtree(directory)
        elif what == "replaced":
            shutil.copy(directory / "run.sqlite", directory / "other")
            (directory / "other").replace(directory / "run.sqlite")
        else:
            (directory / what).unlink()
        with pytest.raises(RunError, match="removed, moved or replaced") as refused:
            store.append(at(0.0, 2.0), 1, outside=False)
        assert "safe" not in str(refused.value)
