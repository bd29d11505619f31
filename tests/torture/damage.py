"""Damages of a run's files: every one is noticed in one sentence, or does no harm.

`python -m tests.torture.damage [SEED [FLIPS [OTHERS]]]` prints a table.

A small run is damaged in one place at a time, as it is when it was closed and as it is when its process was
killed (its end still in SQLite's log). Then it is read, checked, and gone on with. What is read must be what
was written, bit for bit, unless a ValueError or a RunError says in one sentence that it is not.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from optimist import Discretisation
from optimist.agents import GPRMaxAgent, Update
from optimist.agents.doubts import BY_HAND
from optimist.runs import EpisodeRow, RunError, RunStore
from optimist.runs.agent_file import load_checkpoint, save_checkpoint
from optimist.runs.check import check
from optimist.runs.describe import run_header
from optimist.transitions import Transition
from tests.runs.recording import LINE, SMALL

PAGE = 4096  # bytes
EPISODE = 12  # transitions
SETTINGS = SMALL.model_copy(update={"grid": Discretisation(nodes=(5, 5), hold=1), "first_plans": (30,)})
Stream = np.random.Generator

NOTICED, HARMLESS, WRONG, RAW = "noticed", "harmless", "silently wrong", "raw exceptions"


# --- a run ---


def update(count: int) -> Update:
    """A plan as large as those of a small agent are recorded."""
    model = {"basis_sizes": [[11, 9]], "hyperparameters": [np.linspace(0.1, count, 12).tolist()] * 2}
    return Update(
        n_transitions=count, sweeps=70, converged=True, drift=None, mean_uncertainty=0.5, model=model,
        settled=False, rehearsal={"layout": "uniform", "expected": -1.5 * count},
        fit_seconds=0.1, predict_seconds=0.2, plan_seconds=0.3, residual=1e-7,
    )  # fmt: skip


def unlearned() -> GPRMaxAgent:
    """The agent of the run, before it knows anything."""
    return GPRMaxAgent(LINE, SETTINGS, seed=3)


def fill(store: RunStore, count: int) -> None:
    """Episodes with ends, plans, a mark, a checkpoint."""
    states = np.random.default_rng(0).uniform(-0.9, 0.9, size=(count + 1, 2))
    agent, total = unlearned(), 0.0
    for number in range(1, count + 1):
        episode, last = (number - 1) // EPISODE + 1, number % EPISODE == 0
        total += number
        ended = EpisodeRow(episode, EPISODE, total, number, "truncated", -3.5) if last else None
        row = Transition(states[number - 1], number % 2, float(number), states[number], False, last)
        store.append(row, episode, outside=number % 5 == 0, ended=ended)
        total = 0.0 if last else total
        agent.observe(row)
        if number % 10 == 5:
            store.record_plan(update(number))
        if number == count - 3:
            store.mark(7, reason=BY_HAND)
            store.want(9)
            store.record_plan(agent.update())
            save_checkpoint(agent, store)


def made(directory: Path, *, closed: bool, count: int = 40) -> Path:
    """A run that was closed, or one whose process was killed."""
    header = run_header("gp-rmax-exp", "line", LINE, SETTINGS, seed=3)
    with RunStore.create(directory.with_name("writing"), header) as store:
        fill(store, count)
        if not closed:
            shutil.copytree(store.directory, directory)
    if closed:
        shutil.copytree(store.directory, directory)
    shutil.rmtree(store.directory)
    (directory / "run.sqlite-shm").unlink(missing_ok=True)  # as after a power cut: it is made again
    return directory


def content(store: RunStore) -> tuple[object, ...]:
    """All that can be read."""
    return (
        json.dumps(store.header),
        tuple(
            (
                row.state.tobytes(),
                row.action,
                row.reward,
                row.next_state.tobytes(),
                row.terminated,
                row.truncated,
            )
            for row in store.transitions()
        ),
        tuple(store.episodes()),
        json.dumps(store.plans()),
        tuple(store.marks()),
        (store.n_transitions, store.n_outside(), store.open_episode(), store.expected_of(3)),
        store.stopped_learning_at(),
    )


def knowledge(store: RunStore) -> object:
    """What the checkpoint says; None when it says nothing."""
    packed = load_checkpoint(store, unlearned())
    if packed is None:
        return None
    arrays = sorted((name, array.shape, array.tobytes()) for name, array in packed[0].items())
    return arrays, json.dumps(packed[1])


@dataclass(frozen=True)
class Truth:
    """What was written."""

    content: tuple[object, ...]
    knowledge: object

    @classmethod
    def of(cls, run: Path) -> Truth:
        with RunStore.open(run, writing=False) as store:
            return cls(content(store), knowledge(store))


# --- damages ---


def flip(file: Path, stream: Stream) -> None:
    """One bit."""
    data = bytearray(file.read_bytes())
    bit = int(stream.integers(8 * len(data)))
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(bytes(data))


def _pages(data: bytes) -> list[bytes]:
    return [data[at : at + PAGE] for at in range(0, len(data), PAGE)]


def truncate(file: Path, stream: Stream) -> None:
    """To any length, or to whole pages."""
    data = file.read_bytes()
    length = int(stream.integers(len(data)))
    file.write_bytes(data[: length - length % PAGE if stream.random() < 0.5 else length])


def zero(file: Path, stream: Stream) -> None:
    """A page, or a part of one."""
    data = bytearray(file.read_bytes())
    at = int(stream.integers(len(data)))
    at, length = (at - at % PAGE, PAGE) if stream.random() < 0.5 else (at, int(stream.integers(1, 600)))
    data[at : at + length] = bytes(len(data[at : at + length]))
    file.write_bytes(bytes(data))


def swap(file: Path, stream: Stream) -> None:
    """Two pages."""
    pages = _pages(file.read_bytes())
    one, other = stream.choice(len(pages), 2, replace=False) if len(pages) > 1 else (0, 0)
    pages[one], pages[other] = pages[other], pages[one]
    file.write_bytes(b"".join(pages))


def repeat(file: Path, stream: Stream) -> None:
    """A page in the place of another."""
    pages = _pages(file.read_bytes())
    pages[int(stream.integers(len(pages)))] = pages[int(stream.integers(len(pages)))]
    file.write_bytes(b"".join(pages))


def scramble(file: Path, stream: Stream) -> None:
    """Some bytes that mean nothing."""
    data = bytearray(file.read_bytes())
    at = int(stream.integers(len(data)))
    length = len(data[at : at + int(stream.integers(1, 200))])
    data[at : at + length] = stream.bytes(length)
    file.write_bytes(bytes(data))


def lengthen(file: Path, stream: Stream) -> None:
    """Something behind the end."""
    file.write_bytes(file.read_bytes() + stream.bytes(int(stream.integers(1, 9000))))


def remove(file: Path, stream: Stream) -> None:
    """The whole file."""
    file.unlink()


OTHERS = (truncate, zero, swap, repeat, scramble, lengthen, remove)
Damage = Callable[[Path, Stream], None]


def one_of(directory: Path, stream: Stream) -> Path:
    """A file of the run, the larger the likelier."""
    files = sorted(file for file in directory.iterdir() if file.stat().st_size)
    sizes = np.array([file.stat().st_size for file in files], dtype=float)
    return files[int(stream.choice(len(files), p=sizes / sizes.sum()))]


# --- what comes of it ---


@dataclass(frozen=True)
class Case:
    """One damage, and what came of it."""

    damage: str
    file: str
    outcome: str
    told: str = ""


def tried(run: Path, truth: Truth, directory: Path, damage: Damage, stream: Stream) -> Case:
    """A copy of the run, damaged, read, checked and gone on with."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(run, directory)
    file = one_of(directory, stream)
    damage(file, stream)
    outcome, told = _outcome(directory, truth)
    return Case(damage.__name__, file.name, outcome, told)


def _outcome(directory: Path, truth: Truth) -> tuple[str, str]:
    found: list[tuple[str, str]] = []
    for work in (_read_again, _checked, _gone_on):
        try:
            found.append(work(directory, truth))
        except (RunError, ValueError) as error:
            text = str(error)
            clear = not isinstance(error, UnicodeError) and str(directory) in text and "\n" not in text
            found.append((NOTICED if clear else RAW, f"{work.__name__}: {type(error).__name__}: {text}"))
        except Exception as error:  # what is counted here
            found.append((RAW, f"{work.__name__}: {type(error).__name__}: {error}"))
    return next((one for kind in (RAW, WRONG, NOTICED) for one in found if one[0] == kind), (HARMLESS, ""))


def _read_again(directory: Path, truth: Truth) -> tuple[str, str]:
    with RunStore.open(directory, writing=False) as store:
        right = content(store) == truth.content and knowledge(store) in (None, truth.knowledge)
    return (HARMLESS, "") if right else (WRONG, "read")


def _checked(directory: Path, truth: Truth) -> tuple[str, str]:
    """`check` must say no more than is so, and what it saves must be the beginning of what was written."""
    saved = directory.with_name("saved")
    shutil.rmtree(saved, ignore_errors=True)
    checked = check(directory)
    if checked.savable:
        check(directory, salvage=saved)
        with RunStore.open(saved, writing=False) as store:
            header, rows, *_ = content(store)
        written, whole, *_ = truth.content
        assert isinstance(rows, tuple)
        assert isinstance(whole, tuple)
        first = str(written).replace(', "episodes": 9', "")  # before it was told how many are wanted
        if header not in (written, first) or rows != whole[: len(rows)]:
            return WRONG, "saved"
    return (HARMLESS, "") if checked.ok else (NOTICED, checked.problems[0])


def _gone_on(directory: Path, truth: Truth) -> tuple[str, str]:
    """One more transition, on what is left."""
    state = np.array([1.0, 2.0])
    with RunStore.open(directory, writing=True) as store:
        before = content(store)
        episode = store.open_episode()[0] + 1  # a new one: it need not begin where the last ended
        store.append(Transition(state, 1, 0.5, state, False, False), episode, outside=False)
    with RunStore.open(directory, writing=False) as store:
        rows = content(store)[1]
    assert isinstance(rows, tuple)
    right = before == truth.content and rows[:-1] == truth.content[1]
    return (HARMLESS, "") if right else (WRONG, "gone on")


def cases(seed: int, flips: int, others: int) -> Iterator[Case]:
    """So many of each, half of them of a run that was killed."""
    stream = np.random.default_rng(seed)
    with TemporaryDirectory() as name:
        runs = [made(Path(name) / kind, closed=kind == "closed") for kind in ("closed", "killed")]
        truths = [Truth.of(shutil.copytree(run, Path(name) / f"{run.name} and read")) for run in runs]
        assert all(truth.knowledge is not None for truth in truths)
        for number in range(flips + others):
            damage: Damage = flip if number < flips else OTHERS[number % len(OTHERS)]
            at = number % 2 if number < flips else number // len(OTHERS) % 2
            yield tried(runs[at], truths[at], Path(name) / "run", damage, stream)


def main(seed: int = 0, flips: int = 1000, others: int = 500) -> int:
    """Print a table; the number of damages that were not noticed, or not in one sentence."""
    counts: Counter[tuple[str, str]] = Counter()
    bad = 0
    for case in cases(seed, flips, others):
        counts[case.damage, case.outcome] += 1
        if case.outcome in (WRONG, RAW):
            bad += 1
            print(f"{case.damage} {case.file}: {case.outcome}: {case.told}", file=sys.stderr)
    outcomes = (NOTICED, HARMLESS, WRONG, RAW)
    print(f"| damage | {' | '.join(outcomes)} |\n|---|---|---|---|---|")
    for damage in ("flip", *(one.__name__ for one in OTHERS)):
        print(f"| {damage} | {' | '.join(str(counts[damage, outcome]) for outcome in outcomes)} |")
    return bad


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
