"""Sweeps on many machines: a real scheduler, real worker processes, and what may happen to them."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from optimist.experiments.campaign import Tls, run_campaign
from optimist.experiments.specs import RunSpec, read_experiment
from optimist.runs import EpisodeRow, RunStore
from tests.runs.recording import bits

EPISODES = 2  # of GP-RMAX; with the paper's settings, which are the quickest
EXPERIMENT = f"""
name = "trial"

[[runs]]
problems = ["mountain-car"]
agents = ["gp-rmax-exp"]
preset = "paper"
seeds = 2
episodes = {EPISODES}

[[runs]]
problems = ["mountain-car"]
agents = ["sarsa-coarse"]
seeds = 2
episodes = 5
"""
SHORT = EXPERIMENT[: EXPERIMENT.index("[[runs]]")] + EXPERIMENT[EXPERIMENT.rindex("[[runs]]") :]

Process = subprocess.Popen[str]
Made = tuple[list[tuple[Any, ...]], list[EpisodeRow]]
Worker = Callable[..., Process]


def made(spec: RunSpec, root: Path) -> Made:
    with RunStore.open(spec.directory(root), writing=False) as store:
        return [bits(transition) for transition in store.transitions()], store.episodes()


def sweep(file: Path, results: Path, address: str, *, cwd: Path) -> Process:
    """`optimist sweep` on a scheduler, begun."""
    command = [sys.executable, "-m", "optimist", "sweep", str(file), "--results", str(results), "--json"]
    command += ["--engine", "dask", "--address", address]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: Process) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=90)
    finally:
        process.kill()
    return process.returncode, out, err


def result_of(process: Process) -> dict[str, Any]:
    code, out, err = ended(process)
    assert code == 0, err
    assert out.count("\n") == 1
    result: dict[str, Any] = json.loads(out)
    return result


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.05)


def begun(command: str, *arguments: str, place: Path) -> Process:
    """One of Dask's programs; what it says goes to a file."""
    place.mkdir()
    with (place / "log").open("w") as log:
        whole = [sys.executable, "-m", f"distributed.cli.dask_{command}", *arguments]
        # what a worker writes can be told by its mode
        return subprocess.Popen(whole, cwd=place, stdout=log, stderr=log, text=True, umask=0o077)


def stop(process: Process) -> None:
    process.kill()
    process.wait(30)


def begin_scheduler(place: Path, *more: str) -> tuple[Process, str]:
    file = place / "scheduler.json"
    arguments = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show", *more)
    process = begun("scheduler", *arguments, "--scheduler-file", str(file), place=place)
    wait_for(file.exists)
    wait_for(lambda: file.read_text().rstrip().endswith("}"))
    return process, json.loads(file.read_text())["address"]


def begin_worker(address: str, place: Path, *more: str, threads: int) -> Process:
    arguments = ("--host", "127.0.0.1", "--nthreads", str(threads), "--no-nanny", "--no-dashboard", *more)
    return begun("worker", address, *arguments, "--death-timeout", "60", place=place)


def connected(place: Path) -> bool:
    return "Starting established connection" in (place / "log").read_text()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[Process, str]]:
    process, address = begin_scheduler(tmp_path / "scheduler")
    yield process, address
    stop(process)


@pytest.fixture
def worker(scheduler: tuple[Process, str], tmp_path: Path) -> Iterator[Worker]:
    """Begins workers, each in a directory of its own, and ends them."""
    workers: list[Process] = []

    def begin(*, threads: int = 1, wait: bool = True) -> Process:
        place = tmp_path / f"worker-{len(workers)}"
        workers.append(begin_worker(scheduler[1], place, threads=threads))
        if wait:
            wait_for(lambda: connected(place))
        return workers[-1]

    yield begin
    for process in workers:
        stop(process)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "trial.toml").write_text(EXPERIMENT)
    return tmp_path / "trial.toml"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What engine local makes of it."""
    root = tmp_path_factory.mktemp("local")
    (root / "trial.toml").write_text(EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIMIST_THREADS", "1")
        outcomes = run_campaign(read_experiment(root / "trial.toml").specs(), root, workers=1)
    assert {outcome.status for outcome in outcomes} == {"done"}
    return root


def in_the_middle(root: Path) -> int:
    """How many runs of GP-RMAX have begun and not ended."""
    count = 0
    for database in root.glob("**/gp-rmax-exp/*/run.sqlite"):
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
        transitions = connection.execute("SELECT count(*) FROM transitions").fetchone()[0]
        episodes = connection.execute("SELECT count(*) FROM episodes").fetchone()[0]
        connection.close()
        count += transitions > 5 and episodes < EPISODES
    return count


def test_a_worker_killed_in_the_middle_costs_nothing(
    scheduler: tuple[Process, str], worker: Worker, file: Path, local: Path, tmp_path: Path
) -> None:
    _, doomed = worker(wait=False), worker()
    wait_for(lambda: connected(tmp_path / "worker-0"))
    process = sweep(file, tmp_path / "results", scheduler[1], cwd=tmp_path)
    wait_for(lambda: in_the_middle(tmp_path / "results") == 2)  # one run in either worker
    doomed.send_signal(signal.SIGKILL)
    result = result_of(process)
    specs = read_experiment(file).specs()
    assert result["failed"] == []
    assert result["runs"] == [{"id": spec.id, "status": "done"} for spec in specs]
    for spec in specs:
        assert made(spec, tmp_path / "results") == made(spec, local), spec.id


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a single worker of one thread made, in a directory that is not its own, named from there."""
    place = tmp_path_factory.mktemp("alone")
    (place / "short.toml").write_text(SHORT)
    (place / "here").mkdir()
    scheduler, address = begin_scheduler(place / "scheduler")
    worker = begin_worker(address, place / "worker", threads=1)
    try:
        wait_for(lambda: connected(place / "worker"))
        result = result_of(sweep(place / "short.toml", Path("results"), address, cwd=place / "here"))
        assert [run["status"] for run in result["runs"]] == ["done", "done"]
        yield place
    finally:
        stop(worker)
        stop(scheduler)


def test_results_go_below_the_directory_of_the_caller_not_of_the_worker(alone: Path, local: Path) -> None:
    assert not list((alone / "worker").glob("**/run.sqlite"))
    for spec in read_experiment(alone / "short.toml").specs():
        assert made(spec, alone / "here" / "results") == made(spec, local)


def test_the_only_worker_does_the_work_not_the_caller(alone: Path) -> None:
    written = list(alone.glob("**/run.sqlite"))
    assert len(written) == 2
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}  # by the worker's umask


def test_a_scheduler_that_dies_is_said_in_one_line_and_nothing_is_lost(
    scheduler: tuple[Process, str], worker: Worker, file: Path, local: Path, tmp_path: Path
) -> None:
    worker(threads=2)
    process = sweep(file, tmp_path / "results", scheduler[1], cwd=tmp_path)
    wait_for(lambda: in_the_middle(tmp_path / "results") == 2)
    scheduler[0].send_signal(signal.SIGKILL)
    code, _, err = ended(process)
    assert code == 1
    assert "Traceback" not in err
    assert [line for line in err.splitlines() if line.startswith("optimist: ")]
    for spec in read_experiment(file).specs()[:2]:
        transitions, _ = made(spec, tmp_path / "results")
        assert transitions == made(spec, local)[0][: len(transitions)]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Process], Path]]:
    """Sweeps that cannot work, by what is wrong; begun together, since most of them wait."""
    place = tmp_path_factory.mktemp("hopeless")
    (place / "short.toml").write_text(SHORT)
    scheduler, idle = begin_scheduler(place / "scheduler")
    nobody = f"tcp://127.0.0.1:{free_port()}"
    addresses = {"no workers": idle, "nobody": nobody}
    begun = {
        wrong: sweep(place / "short.toml", place / "results", address, cwd=place)
        for wrong, address in addresses.items()
    }
    yield begun, place
    for process in begun.values():
        stop(process)
    stop(scheduler)


def test_a_scheduler_that_does_not_answer_is_said_in_one_line_soon(
    hopeless: tuple[dict[str, Process], Path],
) -> None:
    began = time.monotonic()
    code, out, err = ended(hopeless[0]["nobody"])
    assert (code, out) == (2, "")
    assert err.startswith("optimist: The scheduler must be reachable; got tcp://127.0.0.1:")
    assert err.count("\n") == 1
    assert time.monotonic() - began < 25.0  # 10 to connect, the rest to start
    assert not (hopeless[1] / "results").exists()


def test_a_scheduler_without_workers_is_said_in_one_line(
    hopeless: tuple[dict[str, Process], Path],
) -> None:
    code, out, err = ended(hopeless[0]["no workers"])
    assert (code, out) in ((1, ""), (2, ""))
    assert "worker" in err
    assert err.count("\n") == 1
    assert "parallel_config" not in err  # advice to whoever wrote this, not to who uses it


# --- certificates ---


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signed itself, and its key."""
    place = tmp_path_factory.mktemp("tls")
    cert, key = place / "cert.pem", place / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    try:
        subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl makes no certificate here")
    return cert, key


def test_a_cluster_with_certificates_is_talked_to_with_certificates(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = map(str, certificate)
    secured = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    scheduler, address = begin_scheduler(tmp_path / "scheduler", "--protocol", "tls", *secured)
    worker = begin_worker(address, tmp_path / "worker", *secured, threads=1)
    try:
        assert address.startswith("tls://")
        wait_for(lambda: connected(tmp_path / "worker"))
        (tmp_path / "trial.toml").write_text(SHORT)
        specs = read_experiment(tmp_path / "trial.toml").specs()
        tls = Tls(certificate[0], *certificate)
        outcomes = run_campaign(specs, tmp_path / "out", engine="dask", address=address, tls=tls)
        assert {outcome.status for outcome in outcomes} == {"done"}
        with pytest.raises(ValueError, match="The scheduler must be reachable"):
            run_campaign(specs, tmp_path / "other", engine="dask", address=address)  # no certificate
    finally:
        stop(worker)
        stop(scheduler)


@pytest.mark.parametrize(
    ("engine", "address", "files", "says"),
    [
        ("local", None, 3, "TLS must come with engine dask"),
        ("dask", "tcp://127.0.0.1:1", 3, "must begin with tls:// when certificates are given"),
        ("dask", "tls://127.0.0.1:1", 0, "--tls-ca must be a file; got .*missing"),
    ],
)
def test_certificates_that_cannot_be_used_are_refused(
    tmp_path: Path, engine: str, address: str | None, files: int, says: str
) -> None:
    (tmp_path / "trial.toml").write_text(SHORT)
    (tmp_path / "there").touch()
    names = [tmp_path / ("there" if number < files else "missing") for number in range(3)]
    specs = read_experiment(tmp_path / "trial.toml").specs()
    with pytest.raises(ValueError, match=says):
        run_campaign(specs, tmp_path / "out", engine=engine, address=address, tls=Tls(*names))
