"""Two writers of one run, by any means: their rows are never mixed, and none that was acknowledged is lost.

`python -m tests.torture.writers [SEED [RACES]]` prints a table (a minute).

A first process has the run open and adds a row. Then a second comes by some way round the lock: lock file
removed, directory linked, moved, copied, files hard-linked, the process forked, a thread. Both go on adding
rows. Besides, races: two processes on a file system that cannot lock at all, each as quick as it can, opening
the run anew whenever it is refused.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from optimist.runs import RunError, RunStore
from optimist.runs import store as store_module
from optimist.transitions import Transition

Rows = list[tuple[int, int]]  # which writer, and which of its rows
REFUSED = (RunError, ValueError)


@dataclass
class Writer:
    """Adds rows that say whose they are; remembers those that were acknowledged."""

    name: int
    directory: Path
    store: RunStore | None = None
    kept: Rows = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def open(self) -> bool:
        """Whether it was let in."""
        try:
            self.store = RunStore.open(self.directory, writing=True)
        except REFUSED as error:
            self.told.append(str(error))
            return False
        return True

    def add(self) -> bool:
        """Whether its next row was taken: an episode of its own, that begins anywhere."""
        assert self.store is not None
        number = len(self.kept)
        state = np.array([float(self.name), float(number)])
        try:
            episode = self.store.n_transitions + 1
            self.store.append(Transition(state, 0, 1.0, state, False, False), episode, outside=False)
        except REFUSED as error:
            self.told.append(str(error))
            return False
        self.kept.append((self.name, number))
        return True

    def close(self) -> None:
        if self.store is not None:
            self.store.close()


def rows_of(directory: Path) -> Rows:
    """What a record holds."""
    with RunStore.open(directory, writing=False) as store:
        return [(int(row.state[0]), int(row.state[1])) for row in store.transitions()]


def in_child(work: Callable[[], bool]) -> bool:
    """What a fork of this process says."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    with suppress(BaseException):
        os._exit(0 if work() else 1)
    os._exit(2)


# --- means: each is given the run, open by the first, and gives the directory where the second finds it ---


def plainly(run: Path) -> Path:
    return run


def lock_file_removed(run: Path) -> Path:
    (run / "run.lock").unlink(missing_ok=True)
    return run


def lock_file_made(run: Path) -> Path:
    (run / "run.lock").write_text("1")
    return run


def witness_removed(run: Path) -> Path:
    (run / "run.head").unlink()
    return run


def index_removed(run: Path) -> Path:
    (run / "run.sqlite-shm").unlink()
    return run


def linked(run: Path) -> Path:
    link = run.with_name("link")
    link.symlink_to(run)
    return link


def below_a_link(run: Path) -> Path:
    link = run.parent.with_name("parent")
    link.symlink_to(run.parent)
    return link / run.name


def roundabout(run: Path) -> Path:
    return run / ".." / run.name


def moved(run: Path) -> Path:
    return run.rename(run.with_name("moved"))


def moved_and_copied_back(run: Path) -> Path:
    away = moved(run)
    shutil.copytree(away, run)
    return run


def copied(run: Path) -> Path:
    return shutil.copytree(run, run.with_name("copy"))


def all_files_hard_linked(run: Path) -> Path:
    return _hard_linked(run, [file.name for file in run.iterdir()])


def record_hard_linked(run: Path) -> Path:
    return _hard_linked(run, ["run.sqlite"])


def _hard_linked(run: Path, names: list[str]) -> Path:
    twin = run.with_name("twin")
    twin.mkdir()
    for name in names:
        os.link(run / name, twin / name)
    return twin


def record_moved_away(run: Path) -> Path:
    away = run.with_name("away")
    away.mkdir()
    for name in ("run.sqlite", "run.sqlite-wal"):
        (run / name).rename(away / name)
    return away


MEANS = (
    plainly, lock_file_removed, lock_file_made, witness_removed, index_removed, linked, below_a_link,
    roundabout, moved, moved_and_copied_back, copied, all_files_hard_linked, record_hard_linked,
    record_moved_away,
)  # fmt: skip


def by(means: Callable[[Path], Path], place: Path, *, elsewhere: bool) -> list[str]:
    """What is wrong after a second writer came so; `elsewhere`: in a process of its own."""
    run = _new(place)
    first = Writer(1, run)
    assert first.open()
    assert first.add()
    second = Writer(2, means(run))

    def intrude() -> bool:
        taken = second.open() and second.add() and second.add()
        second.close()
        return taken

    taken = in_child(intrude) if elsewhere else intrude()
    going = first.add() and first.add()
    first.close()
    theirs: Rows = [(2, 0), (2, 1)] if taken else []
    return _wrong({run, run.with_name("moved"), second.directory}, first, theirs, going=going)


def _wrong(places: set[Path], first: Writer, theirs: Rows, *, going: bool) -> list[str]:
    """Every record holds rows of one writer after the rows that both saw, and every row is in one of them."""
    found = [rows_of(place) for place in places if (place / "run.sqlite").exists()]
    wrong = [f"mixed: {rows}" for rows in found if len({name for name, _ in rows[1:]}) > 1]
    for who, kept in (("first", first.kept), ("second", theirs)):
        if not any(set(kept) <= set(rows) for rows in found):
            wrong.append(f"rows of the {who} are lost: {kept} not in {found}")
    if any(len(rows) != len(set(rows)) for rows in found):
        wrong.append(f"doubled: {found}")
    if not going and not first.told:
        wrong.append("the first was refused without a word")
    return wrong


def forked(place: Path) -> list[str]:
    """The second is a fork of the first, and has all that it has."""
    run = _new(place)
    first = Writer(1, run)
    assert first.open()
    assert first.add()

    def intrude() -> bool:
        taken = first.add()
        first.close()
        return taken

    wrong = ["a fork was let in"] if in_child(intrude) else []
    going = first.add() and first.add()
    late = Writer(3, run)
    if in_child(late.open):
        wrong.append("a fork let go of its parent's lock")
    first.close()
    return wrong + _wrong({run}, first, [], going=going) + ([] if going else ["the parent was refused"])


def in_threads(place: Path, count: int = 4, each: int = 10) -> list[str]:
    """Threads that share a store: one writer; whatever was acknowledged is there."""
    run = _new(place)
    with RunStore.open(run, writing=True) as store, ThreadPoolExecutor(count) as threads:
        writers = [Writer(number, run, store) for number in range(1, count + 1)]
        adding = threads.map(lambda writer: [writer.add() for _ in range(each)], writers)
        for number in range(each):
            store.want(number + 1)  # in a transaction of its own
        list(adding)
    kept = sorted(row for writer in writers for row in writer.kept)
    return [] if sorted(rows_of(run)) == kept and len(kept) >= each else ["lost, doubled or unacknowledged"]


def race(seed: int, place: Path, each: int = 12) -> list[str]:
    """Two processes without any lock: in turn, and every row that was acknowledged is there once."""
    run = _new(place)
    said = [place / f"said {name}" for name in (1, 2)]
    children = []
    with patch.object(store_module, "take_lock", lambda _: lambda: None):
        for name, file in zip((1, 2), said, strict=True):
            process = os.fork()
            if not process:
                with suppress(BaseException):
                    _push(Writer(name, run), file, np.random.default_rng([seed, name]), each)
                    os._exit(0)
                os._exit(1)
            children.append(process)
        codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in children]
    kept = [tuple(map(int, line.split())) for file in said for line in file.read_text().splitlines()]
    found = rows_of(run)
    wrong = [f"ended with {codes}"] if any(codes) else []
    if sorted(found) != sorted(kept) or len(kept) != 2 * each:
        wrong.append(f"acknowledged {kept}, recorded {found}")
    return wrong


def _push(writer: Writer, file: Path, stream: np.random.Generator, count: int) -> None:
    """Add so many rows, whatever it takes."""
    with file.open("w") as out:
        while len(writer.kept) < count:
            if not writer.open():
                continue
            for _ in range(int(stream.integers(1, 6))):
                if len(writer.kept) == count or not writer.add():
                    break
                print(*writer.kept[-1], file=out, flush=True)
            writer.close()


def _new(place: Path) -> Path:
    run = place / "run"
    RunStore.create(run, {}).close()
    return run


def cases(seed: int, races: int) -> Iterator[tuple[str, list[str]]]:
    """Every means, in the same process and in another; then races."""
    works: list[tuple[str, Callable[[Path], list[str]]]] = [
        (means.__name__.replace("_", " "), partial(by, means, elsewhere=elsewhere))
        for means in MEANS
        for elsewhere in (False, True)
    ]
    works += [("forked", forked), ("in threads", in_threads)]
    works += [("race", partial(race, seed + turn)) for turn in range(races)]
    for name, work in works:
        with TemporaryDirectory() as place:
            (Path(place) / "runs").mkdir()
            try:
                yield name, work(Path(place) / "runs")
            except Exception as error:  # what is counted here
                yield name, [f"{type(error).__name__}: {error}"]


def main(seed: int = 0, races: int = 60) -> int:
    """Print a table; how many did harm."""
    counts: Counter[str] = Counter()
    harm: Counter[str] = Counter()
    for name, wrong in cases(seed, races):
        counts[name] += 1
        harm[name] += bool(wrong)
        for sentence in wrong:
            print(f"{name}: {sentence}", file=sys.stderr)
    print("| second writer | times | harm |\n|---|---|---|")
    for name in counts:
        print(f"| {name} | {counts[name]} | {harm[name]} |")
    return sum(harm.values())


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
