"""Files of a run that are none: links, pipes, directories. And directories where nothing can be written."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from optimist import GPRMax
from optimist.runs import RunError, RunStore, database, files
from optimist.runs.check import check
from tests.runs.recording import SMALL, ShortLine, learned
from tests.torture.damage import content, made

posix = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX system")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("short") / "run", problem="line", steps=13)


@pytest.fixture
def run(short: Path, tmp_path: Path) -> Path:
    return shutil.copytree(short, tmp_path / "run")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text("precious")
    return file


def link(file: Path) -> None:
    file.symlink_to(file.parent.parent / "victim")


def dangling_link(file: Path) -> None:
    file.symlink_to(file.parent.parent / "nowhere")


def pipe(file: Path) -> None:
    os.mkfifo(file)


def directory_of_that_name(file: Path) -> None:
    file.mkdir()


def bound_socket(file: Path) -> None:
    before = Path.cwd()
    os.chdir(file.parent)  # names of sockets are short
    try:
        with closing(socket.socket(socket.AF_UNIX)) as made_socket:
            made_socket.bind(file.name)
    finally:
        os.chdir(before)


THINGS = (link, dangling_link, pipe, directory_of_that_name, bound_socket)


@posix
@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("name", files.NAMES)
def test_what_is_no_regular_file_is_refused_and_left_alone(
    run: Path, victim: Path, name: str, thing: Callable[[Path], None]
) -> None:
    (run / name).unlink(missing_ok=True)
    thing(run / name)
    mode = (run / name).lstat().st_mode
    for work in (
        lambda: RunStore.open(run, writing=True),
        lambda: RunStore.open(run, writing=False),
        lambda: RunStore.create(run, {}),
        lambda: check(run),
    ):
        with pytest.raises(ValueError, match="must be a regular file") as told:
            work()
        assert str(run / name) in str(told.value)
        assert "\n" not in str(told.value)
    assert (run / name).lstat().st_mode == mode
    assert victim.read_text() == "precious"
    assert not (run.parent / "nowhere").exists()


@posix
@pytest.mark.parametrize("name", files.NAMES)
def test_file_with_a_second_name_is_never_written_through(run: Path, victim: Path, name: str) -> None:
    """A hard link: what is not added to but made anew may have been one; nobody else's file is changed."""
    record = (run / files.RECORD).read_bytes()
    (run / name).unlink(missing_ok=True)
    if name == files.RECORD:
        victim.write_bytes(record)
    os.link(victim, run / name)
    content = victim.read_bytes()
    with suppress(ValueError, RunError), RunStore.open(run, writing=True) as store:
        store.want(3)
    assert victim.read_bytes() == content
    if name in (files.RECORD, files.LOG, files.INDEX, files.JOURNAL, files.WITNESS):
        with pytest.raises(ValueError, match="must have one name"):
            RunStore.open(run, writing=True)


@posix
@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("name", ["a.optimist", "a.optimist.new"])
def test_agent_is_not_saved_over_or_through_what_is_no_regular_file(
    tmp_path: Path, victim: Path, name: str, thing: Callable[[Path], None]
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    agent = GPRMax(ShortLine(), settings=SMALL)
    agent.learn(3)
    thing(below / name)
    with pytest.raises(ValueError, match="must be a regular file"):
        agent.save(below / "a.optimist")
    assert [file.name for file in below.iterdir()] == [name]
    assert not stat.S_ISREG((below / name).lstat().st_mode)
    assert victim.read_text() == "precious"


@posix
def test_pipe_as_an_agent_file_is_refused_without_waiting_for_anybody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.optimist")
    with pytest.raises(ValueError, match="a pipe"):
        GPRMax.load(tmp_path / "a.optimist", env=ShortLine())


def test_agent_is_loaded_through_a_link(tmp_path: Path) -> None:
    """Whoever names a file may name a link to it."""
    agent = GPRMax(ShortLine(), settings=SMALL)
    agent.learn(3)
    agent.save(tmp_path / "a.optimist")
    (tmp_path / "latest").symlink_to(tmp_path / "a.optimist")
    assert GPRMax.load(tmp_path / "latest", env=ShortLine()).num_timesteps == 3


def test_run_in_a_linked_directory_is_a_run(run: Path) -> None:
    (run.parent / "latest").symlink_to(run)
    with GPRMax.resume(run.parent / "latest", ShortLine()) as learner:
        learner.learn(1)
    assert check(run).transitions == 14


def test_what_an_interrupted_save_left_is_no_obstacle(run: Path) -> None:
    (run / "agent.optimist.new").write_bytes(b"half")
    with GPRMax.resume(run, ShortLine()) as learner:
        learner.learn(10)
    assert not (run / "agent.optimist.new").exists()


def test_run_must_have_a_name() -> None:
    with pytest.raises(ValueError, match="`run` must name a directory; got ''"):
        GPRMax(ShortLine(), settings=SMALL, run="")


# --- where nothing can be written ---

ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from optimist.runs import RunStore
from tests.torture.damage import content
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
with RunStore.open(Path(sys.argv[1]), writing=False) as store:
    print(content(store))
try:
    RunStore.open(Path(sys.argv[1]), writing=True)
except Exception as error:
    print(error)
"""


@posix
def test_run_is_read_on_a_full_disk(tmp_path: Path) -> None:
    """Where there is no room for what SQLite wants to make: here no file can be larger than 1 KiB."""
    run = made(tmp_path / "run", closed=True)
    with RunStore.open(shutil.copytree(run, tmp_path / "copy"), writing=False) as store:
        right = content(store)
    (run / "run.sqlite-shm").unlink(missing_ok=True)
    command = [sys.executable, "-c", ON_A_FULL_DISK, str(run)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        str(right),
        f"The record of the run in {run} could not be used: the disk is full.",
    ]


AS_NOBODY = """
import os, sys, json
from pathlib import Path
from optimist.runs import RunError, RunStore
from optimist.runs.check import check
from tests.torture.damage import content
import tempfile; tempfile.tempdir = sys.argv[2]
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    Path(sys.argv[1], "new").touch()
    raise SystemExit("this directory can be written to")
except PermissionError:
    pass
before = sorted(os.listdir(sys.argv[1]))
with RunStore.open(Path(sys.argv[1]), writing=False) as store:
    print(content(store))
assert check(sys.argv[1]).ok
assert sorted(os.listdir(sys.argv[1])) == before
assert os.listdir(sys.argv[2]) == [], "a copy was left behind"
try:
    RunStore.open(Path(sys.argv[1]), writing=True)
except (RunError, ValueError) as error:
    print(error)
"""


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that everybody can look into."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for file in Path(name).iterdir():
            file.chmod(0o755)


@posix
@pytest.mark.parametrize("closed", [True, False])
def test_run_is_read_where_nothing_can_be_written(open_to_all: Path, closed: bool) -> None:
    """With its end still in the log, too."""
    run = made(open_to_all / "run", closed=closed)
    with RunStore.open(shutil.copytree(run, open_to_all / "copy"), writing=False) as store:
        right = content(store)
    copies = open_to_all / "copies"
    copies.mkdir()
    copies.chmod(0o777)
    for file in run.iterdir():
        file.chmod(0o444)
    run.chmod(0o555)
    command = [sys.executable, "-c", AS_NOBODY, str(run), str(copies)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    read, told = ran.stdout.splitlines()
    assert read == str(right)
    assert str(run) in told


@pytest.mark.parametrize("name", ["open", "fsync"])
def test_agent_that_cannot_be_saved_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    agent = GPRMax(ShortLine(), settings=SMALL)
    agent.learn(3)

    def refuse(*_: Any) -> int:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(os, name, refuse)
        with pytest.raises(RunError, match=r"could not be written to .*: Read-only file system"):
            agent.save(tmp_path / "a.optimist")
    assert list(tmp_path.iterdir()) == []


# --- another program ---


def test_lock_of_another_program_is_waited_for(run: Path) -> None:
    with RunStore.open(run, writing=True) as store, closing(sqlite3.connect(run / "run.sqlite")) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=store.want, args=(77,))
        waiting.start()
        waiting.join(1.2)  # longer than SQLite is told to wait at a time
        assert waiting.is_alive()
        other.execute("ROLLBACK")
        waiting.join(30)
        assert store.header["episodes"] == 77


def test_lock_that_is_kept_is_told_in_one_sentence_and_nothing_is_lost(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.6)
    with RunStore.open(run, writing=True) as store:
        before = content(store)
        with closing(sqlite3.connect(run / "run.sqlite")) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(RunError, match="another program has kept it locked for 1 s") as told:
                store.want(77)
        assert "What was recorded is safe" in str(told.value)  # somebody has looked
        assert "\n" not in str(told.value)
        assert content(store) == before
        store.want(78)
        assert store.header["episodes"] == 78
