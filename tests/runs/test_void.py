"""Transitions that are not to be learned from: they stay in the record, and the agent does without them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optimist
from optimist import GPRMax
from optimist.models.readings import Readings
from optimist.runs import RunStore
from optimist.runs.record import Mark
from tests.runs.recording import SMALL, ShortLine, bits, recorded

STEPS, AT = 40, 22  # the reading of step 22 is wrong: it ends one transition and begins the next
WRONG = np.array([0.9, -0.95])


class Glitching(ShortLine):
    """Reads nonsense once; what it is really like goes on as if nothing had been."""

    glitches = True

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        state, *rest = super().step(action)
        return (WRONG.copy() if self.glitches and self.n_steps == AT else state), *rest

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.n_steps = STEPS  # past it


@pytest.fixture(scope="module", autouse=True)
def trusting() -> Iterator[None]:
    """The agent takes every reading for true, or it would find out by itself what is marked by hand here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Readings, "unexplained", lambda _, seen, *rest: np.zeros(len(seen), dtype=np.bool_))
        patch.setattr(Readings, "goes_on_without", lambda *_: False)
        yield


@pytest.fixture(scope="module")
def glitched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("glitched") / "run"
    with GPRMax(Glitching(), settings=SMALL, seed=0, run=directory) as learner:
        learner.learn(STEPS)
    return directory


@pytest.fixture
def run(glitched: Path, tmp_path: Path) -> Path:
    return shutil.copytree(glitched, tmp_path / "run")


def error(learner: GPRMax) -> float:
    """How far its model is off where it has been."""
    seen = learner.transitions.without([AT, AT + 1])
    controls = learner.task.controls[seen.actions]
    return float(np.abs(learner.model.predict(seen.states, controls) - seen.next_states).max())


def test_void_rows_stay_in_the_record_and_out_of_the_model(run: Path) -> None:
    with RunStore.open(run, writing=False) as store:
        rows = [bits(row) for row in store.transitions()]
    with GPRMax.resume(run, Glitching(), writing=False) as learner:
        fooled = error(learner)
    found = optimist.check(run, void=[AT, AT + 1])
    assert found.ok
    assert found.void == (AT, AT + 1)
    assert optimist.check(run).void == (AT, AT + 1)
    for writing in (False, True, True):  # made anew, then from its checkpoint
        with GPRMax.resume(run, Glitching(), writing=writing) as learner:
            assert learner.void == [AT, AT + 1]
            assert learner.num_timesteps == STEPS
            assert error(learner) < 0.2 * fooled
    with RunStore.open(run, writing=False) as store:
        assert [bits(row) for row in store.transitions()] == rows
        assert store.marks() == [Mark(number, True, "by hand", STEPS) for number in (AT, AT + 1)]


def test_void_rows_are_left_out_of_all_later_updates_however_often_the_run_is_resumed(
    run: Path, tmp_path: Path
) -> None:
    optimist.check(run, void=[AT, AT + 1])
    again = shutil.copytree(run, tmp_path / "again")
    for steps in (1, 4, 15):
        with GPRMax.resume(run, Glitching()) as learner:
            learner.learn(steps)
    with GPRMax.resume(again, Glitching()) as learner:
        learner.learn(20)
        assert learner.void == [AT, AT + 1]
    assert recorded(run) == recorded(again)
    (again / "agent.optimist").unlink()  # a checkpoint saves time and nothing else
    for directory in (run, again):
        with GPRMax.resume(directory, Glitching()) as learner:
            learner.learn(11)
            assert learner.void == [AT, AT + 1]
    assert recorded(run) == recorded(again)


def test_marking_counts_from_when_it_was_done(run: Path) -> None:
    """Plans that were made before stay as they were made."""
    with RunStore.open(run, writing=False) as store:
        before = [row for row in store.plans() if row["n_transitions"] < STEPS]
    optimist.check(run, void=[AT])
    (run / "agent.optimist").unlink()
    GPRMax.resume(run, Glitching()).close()
    with RunStore.open(run, writing=False) as store:
        after = [row for row in store.plans() if row["n_transitions"] < STEPS]
        assert store.plans()[-1]["n_transitions"] == STEPS  # made again at once, without the row
    assert [row["model"] for row in after] == [row["model"] for row in before]


def test_marking_twice_is_no_news_and_taking_back_is(run: Path) -> None:
    with RunStore.open(run, writing=True) as store:
        assert store.mark(3, 5, 3, reason="by hand") == [3, 5]
        assert store.mark(5, reason="unexplained") == []
        assert store.mark(5, void=False, reason="by hand") == [5]
        assert store.record.void == {3}
        with pytest.raises(ValueError, match="must be from 1 to 40"):
            store.mark(7, 41, reason="by hand")
        assert len(store.marks()) == 3  # all or none
    with GPRMax.resume(run, Glitching()) as learner:
        assert learner.void == [3]


def test_what_the_agent_marks_itself_is_not_told_to_it_again(run: Path) -> None:
    with RunStore.open(run, writing=True) as store:
        store.mark(AT, reason="unexplained")
    with GPRMax.resume(run, Glitching()) as learner:
        assert learner.void == []


@pytest.mark.parametrize("count", [3, STEPS])
def test_run_whose_every_row_is_void_can_be_gone_on_with(run: Path, tmp_path: Path, count: int) -> None:
    with GPRMax(Glitching(), settings=SMALL, seed=0, run=tmp_path / "few") as learner:
        learner.learn(count)
    optimist.check(tmp_path / "few", void=range(1, count + 1))
    with GPRMax.resume(tmp_path / "few", Glitching()) as learner:
        learner.learn(12)
        assert learner.num_timesteps == count + 12


def test_saved_agent_leaves_them_out_too(run: Path, tmp_path: Path) -> None:
    optimist.check(run, void=[AT, AT + 1])
    with GPRMax.resume(run, Glitching()) as learner:
        learner.save(tmp_path / "a.optimist")
    loaded = GPRMax.load(tmp_path / "a.optimist", env=Glitching())
    assert loaded.void == [AT, AT + 1]
    loaded.learn(12)
    assert loaded.void == [AT, AT + 1]


@pytest.mark.parametrize("number", [0, 41, -1])
def test_row_that_is_not_there_is_refused(run: Path, number: int) -> None:
    with pytest.raises(ValueError, match=f"must be from 1 to 40, of those in {run}; got {number}"):
        optimist.check(run, void=[3, number])
    assert optimist.check(run).void == ()
