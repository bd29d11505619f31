"""The maps of a run: kept with every plan, proven one by one, and never in the way of the run."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from optimist import GPRMax
from optimist.runs import RunStore
from optimist.runs.check import check
from optimist.runs.files import MAPS
from optimist.runs.maps import HEAD, MAGIC, Maps
from tests.runs.recording import cut_short, gone_on, learned, made, write_bytes_at


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("short") / "run", problem="line", steps=40)


@pytest.fixture
def run(short: Path, tmp_path: Path) -> Path:
    return shutil.copytree(short, tmp_path / "run")


def plans(run: Path) -> dict[int, str | None]:
    with RunStore.open(run, writing=False) as store:
        return {row["n_transitions"]: store.digest_of(row["n_transitions"]) for row in store.plans()}


def test_every_plan_has_its_map_and_the_last_is_the_plan_of_the_agent(run: Path) -> None:
    found = plans(run)
    maps = Maps(run)
    assert maps.found() == {(number, digest) for number, digest in found.items()}
    last = max(found)
    kept = maps.read(last, found[last])
    assert kept is not None
    levels, shades = kept.arrays()
    with GPRMax.resume(run, made("line"), writing=False) as learner:
        q_values, grid = learner.plan.q_values, learner.grid
        unsure = learner.uncertainty(grid.nodes)
    step = (kept.document["high"] - kept.document["low"]) / kept.document["levels"]
    assert np.abs(kept.document["low"] + levels.T * step - q_values).max() <= 0.501 * step
    assert np.abs(shades.T / kept.document["shades"] - unsure).max() <= 0.501 / kept.document["shades"]
    assert len(kept.document["path"]) > 1


def test_maps_of_a_run_that_was_interrupted_are_the_same(short: Path, tmp_path: Path) -> None:
    cut = cut_short(short, tmp_path / "cut", 22)
    gone_on(cut, problem="line", steps=40)
    for number, digest in plans(short).items():
        one, other = Maps(short).read(number, digest), Maps(cut).read(number, digest)
        assert one is not None
        assert one == other


def test_a_map_that_was_cut_off_is_passed_over_and_the_next_is_found(run: Path) -> None:
    found, file = plans(run), run / MAPS
    whole = file.read_bytes()
    maps = Maps(run)
    for size in (3, HEAD.size - 1, HEAD.size + 5):
        file.write_bytes(whole + whole[:size] + whole)
        assert maps.found() == set(found.items())
    file.write_bytes(whole[:-1])
    last = max(found)
    assert maps.read(last, found[last]) is None
    assert maps.found() == set(found.items()) - {(last, found[last])}


@pytest.mark.parametrize("place", ["magic", "size", "content"])
def test_a_damaged_map_is_not_shown_and_the_others_are(run: Path, place: str) -> None:
    found, file = plans(run), run / MAPS
    second = file.read_bytes().index(MAGIC, 1)
    offset = {"magic": second, "size": second + 16, "content": second + HEAD.size + 40}[place]
    write_bytes_at(file, offset, b"\xff\xff")
    numbers = sorted(found)
    read = {number: Maps(run).read(number, found[number]) for number in numbers}
    assert read[numbers[1]] is None
    assert all(read[number] is not None for number in numbers if number != numbers[1])
    assert check(run).ok


def test_a_map_of_other_transitions_is_none(run: Path, tmp_path: Path) -> None:
    other = learned(tmp_path / "other", problem="line", steps=12, seed=1)
    shutil.copy(other / MAPS, run / MAPS)
    assert [Maps(run).read(number, digest) for number, digest in plans(run).items()] == [None] * len(
        plans(run)
    )


def test_a_run_goes_on_without_its_maps(run: Path, short: Path) -> None:
    (run / MAPS).unlink()
    assert Maps(run).found() == set()
    with GPRMax.resume(run, made("line")) as learner:
        learner.learn(12)
    assert check(run).ok
    assert Maps(run).found()
    assert not (set(plans(short)) & {number for number, _ in Maps(run).found()})


def test_what_is_salvaged_keeps_its_maps(run: Path, tmp_path: Path) -> None:
    check(run, salvage=tmp_path / "saved")
    found = plans(tmp_path / "saved")
    assert Maps(tmp_path / "saved").found() == set(found.items())
