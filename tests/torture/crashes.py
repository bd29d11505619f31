"""Processes that are killed, and disks that are full: nothing is lost or doubled, and the end is the same.

`python -m tests.torture.crashes [SEED [KILLS [DISKS]]]` prints a table (a quarter of an hour).

A small run of the command, `optimist learn`, is killed (SIGKILL) at a random instant, gone on with by
`optimist resume`, killed again, and at last let go on to its end. Or it is recorded on a file system with
room for some of it, and whenever that is full (ENOSPC) it gets a little more. After every blow what is
recorded must be the beginning of what an undisturbed run records, and no shorter than before; the end must be
the same, bit for bit, the agent included.

Most processes are forks of one that has loaded the command already; every tenth run is of fresh ones.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from optimist.cli import main as command
from optimist.runs import RunError, RunStore
from tests.runs.recording import Recorded, bits, recorded

EPISODES = 3  # of twelve steps
MOST_BLOWS = 5  # to one run
FRESH = 10  # every so manieth run is of processes that have loaded nothing
SETTINGS = {
    "grid": {"nodes": [7, 7], "hold": 1},
    "first_plans": [5, 10, 20, 30],
    "replan_every": 10,
    "model": {"refit_growth": 3.0},
    "planning": {"depth": 1},
    "stopping": {"mean_drift_tolerance": 1e-12, "uncertainty_drift_tolerance": 1e-12},
}
ALONE = {  # one thread; a process with threads of another layer must not be forked
    "NUMBA_NUM_THREADS": "1",
    "NUMBA_THREADING_LAYER": "workqueue",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
SMALL, LARGE = 16 * 1024, 400 * 1024  # bytes: a disk that is full at once, and one with room for most of it
SAFE = "What was recorded is safe"
Stream = np.random.Generator


# --- processes ---


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int  # negative: by that signal
    err: str


@dataclass(frozen=True)
class Bench:
    """Where runs are made."""

    place: Path

    def prepare(self) -> None:
        """Write down the problem and the settings."""
        (self.place / "line.py").write_text("from tests.runs.recording import ShortLine as make_env\n")
        (self.place / "small.json").write_text(json.dumps(SETTINGS))

    def arguments(self, run: Path) -> list[str]:
        """Begin a run or, if there is one, go on with it."""
        problem = f"{self.place / 'line.py'}:make_env"
        if (run / "run.sqlite").exists():
            return ["resume", str(run), "--problem", problem, "--json"]
        chosen = ["--settings", str(self.place / "small.json"), "--episodes", str(EPISODES)]
        return ["learn", problem, *chosen, "--run", str(run), "--json"]

    def ran(
        self, run: Path, *, fresh: bool = False, kill_after: float | None = None, file_size: int | None = None
    ) -> Ended:
        """The command, to its end, or until it is killed."""
        arguments, errors = self.arguments(run), self.place / "errors"
        with errors.open("wb") as err:
            start = _started if fresh else _forked
            process = start(arguments, err.fileno(), file_size)
        code = _waited(process, kill_after)
        return Ended(code, errors.read_text(encoding="utf-8"))


def _forked(arguments: list[str], err: int, file_size: int | None) -> int:
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(err, 2)
        _limit(file_size)
        code = _here(arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(code)


def _here(arguments: list[str]) -> int:
    """The command in this process; its exit code."""
    sys.argv = ["optimist", *arguments]
    try:
        command.main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def _started(arguments: list[str], err: int, file_size: int | None) -> int:
    return subprocess.Popen(
        [sys.executable, "-m", "optimist", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=err,
        preexec_fn=lambda: _limit(file_size),  # noqa: PLW1509
    ).pid


def _limit(file_size: int | None) -> None:
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))


def _waited(process: int, kill_after: float | None) -> int:
    until = None if kill_after is None else time.monotonic() + kill_after
    while until is not None:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        left = until - time.monotonic()
        if left <= 0:
            os.kill(process, signal.SIGKILL)
            break
        time.sleep(min(left, 0.002))
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


# --- blows ---


@dataclass
class Case:
    """A run under blows, against one that was left in peace."""

    bench: Bench
    run: Path
    truth: Recorded
    n_known: int = 0

    def look(self, ended: Ended) -> Iterator[str]:
        """What is wrong after a blow."""
        if not (self.run / "run.sqlite").exists():
            if self.n_known:
                yield "the record is gone"
            return
        try:
            with RunStore.open(self.run, writing=False) as store:
                rows = tuple(bits(row) for row in store.transitions())
                episodes = tuple(store.episodes())
        except (RunError, ValueError) as error:
            yield f"cannot be read: {error}" + (" (and was said to be safe)" if SAFE in ended.err else "")
            return
        if rows != self.truth.transitions[: len(rows)] or episodes != self.truth.episodes[: len(episodes)]:
            yield "another history"
        if len(rows) < self.n_known:
            yield f"{len(rows)} transitions after there were {self.n_known}"
        self.n_known = len(rows)

    def finish(self, *, fresh: bool) -> Iterator[str]:
        """What is wrong when it is let go on to its end."""
        ended = self.bench.ran(self.run, fresh=fresh)
        if ended.code != 0:
            yield f"does not go on: {ended.code}, {ended.err}"
        elif recorded(self.run) != self.truth:
            yield "another end"


def undisturbed(bench: Bench) -> tuple[Recorded, float]:
    """What is recorded in peace, and how long that takes when all that is compiled has been loaded."""
    with (bench.place / "said").open("w") as out, redirect_stdout(out):
        assert _here(bench.arguments(bench.place / "first")) == 0
    began = time.monotonic()
    ended = bench.ran(bench.place / "peace")
    assert ended.code == 0, ended.err
    return recorded(bench.place / "peace"), time.monotonic() - began


def kills(bench: Bench, seed: int, count: int) -> Iterator[tuple[str, list[str]]]:
    """After every kill: when it was, and what is wrong."""
    stream = np.random.default_rng([seed, 1])
    truth, seconds = undisturbed(bench)
    number, done = 0, 0
    while done < count:
        case, fresh = Case(bench, bench.place / "killed", truth), number % FRESH == FRESH - 1
        number += 1
        longest = seconds * (8.0 if fresh else 1.0)
        for _ in range(int(stream.integers(1, MOST_BLOWS + 1))):
            n_before = case.n_known
            ended = bench.ran(case.run, fresh=fresh, kill_after=float(stream.uniform(0.0, longest)))
            wrong = list(case.look(ended))
            if ended.code != -signal.SIGKILL:
                wrong += [f"ended by itself: {ended.code}, {ended.err}"] if ended.code else []
                break
            done += 1
            yield _when(case, n_before, fresh), wrong
        wrong = list(case.finish(fresh=fresh))
        if wrong:
            yield "end", wrong
        shutil.rmtree(case.run)


def _when(case: Case, n_before: int, fresh: bool) -> str:
    kind = "fresh process" if fresh else "process"
    if not case.n_known:
        return f"{kind} killed before the first transition"
    work = "acting and learning" if case.n_known > n_before else "starting or planning"
    return f"{kind} killed while {work}"


# --- full disks ---


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[bool]:
    """A file system of so many bytes, if one can be made here; whether it was."""
    place.mkdir()
    made = _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", str(place)], check=True)
        shutil.rmtree(place)


def _mount(*arguments: str) -> bool:
    if shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode == 0


def full_disks(bench: Bench, seed: int, count: int) -> Iterator[tuple[str, list[str]]]:
    """After every full disk: what it was, and what is wrong. Who may not mount has files that cannot grow."""
    stream = np.random.default_rng([seed, 2])
    truth, _ = undisturbed(bench)
    number, done = 0, 0
    while done < count:
        fresh = number % FRESH == FRESH - 1
        number += 1
        size = int(SMALL * (LARGE / SMALL) ** stream.random())
        with small_disk(bench.place / "disk", size) as mounted:
            case = Case(bench, bench.place / "disk" / "run", truth)
            for _ in range(MOST_BLOWS):
                ended = bench.ran(case.run, fresh=fresh, file_size=None if mounted else size)
                if ended.code == 0:
                    break
                done += 1
                wrong = [] if _is_told(ended, case.run) else [f"not one sentence: {ended.code}, {ended.err}"]
                wrong += case.look(ended)
                yield ("full disk" if mounted else "file that cannot grow"), wrong
                size += int(stream.integers(4, 120)) * 1024
                if mounted:
                    assert _mount("-o", f"remount,size={size}", str(bench.place / "disk"))
            if mounted:
                assert _mount("-o", f"remount,size={16 * LARGE}", str(bench.place / "disk"))
            wrong = list(case.finish(fresh=fresh))
            if wrong:
                yield "end", wrong


def _is_told(ended: Ended, run: Path) -> bool:
    """In one sentence that names the run, with an exit code of ours."""
    err = ended.err
    return ended.code in (1, 2) and err.startswith("optimist: ") and err.count("\n") == 1 and str(run) in err


def main(seed: int = 0, n_kills: int = 300, n_disks: int = 100) -> int:
    """Print a table; how many blows did harm."""
    counts: Counter[str] = Counter()
    harm: Counter[str] = Counter()
    with TemporaryDirectory() as name:
        bench = Bench(Path(name))
        bench.prepare()
        for blows, count in ((kills, n_kills), (full_disks, n_disks)):
            for what, wrong in blows(bench, seed, count) if count else ():
                counts[what] += 1
                harm[what] += bool(wrong)
                for sentence in wrong:
                    print(f"{what}: {sentence}", file=sys.stderr)
            shutil.rmtree(bench.place / "first", ignore_errors=True)
            shutil.rmtree(bench.place / "peace", ignore_errors=True)
    print("| blow | times | harm |\n|---|---|---|")
    for what in sorted(counts):
        print(f"| {what} | {counts[what]} | {harm[what]} |")
    return sum(harm.values())


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in ALONE.items()):
        again = [sys.executable, "-m", "tests.torture.crashes", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | ALONE)
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
