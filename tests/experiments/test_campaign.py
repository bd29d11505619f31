"""Campaigns on one machine: what is missing is run, what is recorded is skipped, nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_info

from optimist.experiments.campaign import Outcome, _worked, is_recorded, run_campaign
from optimist.experiments.kinds import KINDS
from optimist.experiments.online import start_run
from optimist.experiments.problems import find_problem
from optimist.experiments.specs import Experiment, Group, RunSpec
from optimist.runs import EpisodeRow, RunStore
from tests.experiments.own_problem import MY_CART, n_executed, write_my_cart
from tests.quick import quick_defaults
from tests.runs.recording import bits, cut_short, rewritten, with_header

CAR = ("mountain-car",)
# the paper's settings are the quickest: few plans, nothing rehearsed
EXPLORER = Group(problems=CAR, agents=("gp-rmax-exp",), seeds=1, episodes=1, preset="paper")
SARSAS = Group(problems=CAR, agents=("sarsa-fine", "sarsa-coarse"), seeds=2, episodes=5)
ALL = Experiment(name="trial", runs=(EXPLORER, SARSAS)).specs()
QUICK = ALL[1:]

Made = tuple[list[tuple[Any, ...]], list[EpisodeRow]]
Header = dict[str, Any]


def made(spec: RunSpec, root: Path) -> Made:
    """All that a run is: its transitions, bit for bit, and its episodes."""
    with RunStore.open(spec.directory(root), writing=False) as store:
        return [bits(transition) for transition in store.transitions()], store.episodes()


def statuses(outcomes: list[Outcome]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def contents(directory: Path) -> dict[str, bytes]:
    """All files; not those that SQLite makes beside a database while someone reads it."""
    files = (file for file in directory.rglob("*") if file.is_file() and file.suffix != ".sqlite-shm")
    found = {str(file.relative_to(directory)): file.read_bytes() for file in files}
    return {name: content for name, content in found.items() if content or not name.endswith("-wal")}


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIMIST_THREADS", "2")
    monkeypatch.delenv("OPTIMIST_THREADS")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs, made one after the other; not to be written to."""
    root = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIMIST_THREADS", "1")
        assert statuses(run_campaign(ALL, root, workers=1)) == ["done"] * len(ALL)
    return root


@pytest.fixture
def copied(results: Path, tmp_path: Path) -> Path:
    shutil.copytree(results, tmp_path / "results")
    return tmp_path / "results"


def test_runs_that_are_missing_are_made_and_told_one_by_one(tmp_path: Path) -> None:
    heard: list[Outcome] = []
    outcomes = run_campaign(QUICK, tmp_path, workers=1, on_outcome=heard.append)
    assert [outcome.id for outcome in outcomes] == [spec.id for spec in QUICK]
    assert statuses(outcomes) == ["done"] * len(QUICK)
    assert sorted(heard, key=str) == sorted(outcomes, key=str)
    assert all(is_recorded(spec, tmp_path) for spec in QUICK)


def test_a_run_of_a_campaign_is_the_run_its_settings_and_seed_make(results: Path, tmp_path: Path) -> None:
    car = find_problem("mountain-car")
    run = tmp_path / "alone"
    with start_run(car, "gp-rmax-exp", seed=0, run=run, preset="paper") as learner:
        learner.learn(episodes=1)
    with RunStore.open(run, writing=False) as store:
        alone = [bits(transition) for transition in store.transitions()], store.episodes()
    assert made(ALL[0], results) == alone
    for spec in QUICK:
        kind = KINDS[spec.agent]
        sarsa = kind.start(car, kind.choose(car, "ours", None), spec.seed).learn(episodes=spec.episodes)
        assert made(spec, results)[1] == sarsa.episodes


def test_what_is_recorded_is_skipped_and_not_touched(copied: Path) -> None:
    before, heard = contents(copied), list[Outcome]()
    outcomes = run_campaign(ALL, copied, workers=1, on_outcome=heard.append)
    assert statuses(outcomes) == ["skipped"] * len(ALL)
    assert heard == outcomes
    assert contents(copied) == before


def test_only_what_is_missing_is_run(copied: Path, results: Path) -> None:
    shutil.rmtree(QUICK[2].directory(copied))
    outcomes = run_campaign(ALL, copied, workers=1)
    assert [outcome.id for outcome in outcomes if outcome.status == "done"] == [QUICK[2].id]
    assert made(QUICK[2], copied) == made(QUICK[2], results)


def test_results_do_not_depend_on_the_number_of_workers(results: Path, tmp_path: Path) -> None:
    assert statuses(run_campaign(ALL, tmp_path, workers=2)) == ["done"] * len(ALL)
    for spec in ALL:
        assert made(spec, tmp_path) == made(spec, results), spec.id


def test_an_interrupted_run_is_resumed_and_ends_as_an_undisturbed_one(results: Path, tmp_path: Path) -> None:
    spec = ALL[0]
    spec.directory(tmp_path).parent.mkdir(parents=True)
    cut_short(spec.directory(results), spec.directory(tmp_path), 60)
    assert not is_recorded(spec, tmp_path)
    assert statuses(run_campaign([spec], tmp_path, workers=1)) == ["done"]
    assert made(spec, tmp_path) == made(spec, results)


@pytest.mark.parametrize("n_episodes", [0, 2])
def test_an_interrupted_run_of_sarsa_is_resumed_and_ends_as_an_undisturbed_one(
    n_episodes: int, copied: Path, results: Path
) -> None:
    rewritten(QUICK[0].directory(copied), lambda rows: rows["episodes"].__delitem__(slice(n_episodes, None)))
    outcomes = run_campaign(QUICK, copied, workers=1)
    assert statuses(outcomes) == ["done", "skipped", "skipped", "skipped"]
    assert made(QUICK[0], copied) == made(QUICK[0], results)


@pytest.mark.parametrize("spec", [ALL[0], QUICK[0]], ids=["gp-rmax", "sarsa"])
def test_a_run_made_longer_later_is_the_run_made_long_at_once(
    spec: RunSpec, copied: Path, tmp_path: Path
) -> None:
    longer = spec.model_copy(update={"episodes": spec.episodes + 1})
    assert statuses(run_campaign([longer], copied, workers=1)) == ["done"]
    assert statuses(run_campaign([longer], tmp_path / "at once", workers=1)) == ["done"]
    assert made(longer, copied) == made(longer, tmp_path / "at once")
    assert len(made(longer, copied)[1]) == spec.episodes + 1


def test_a_run_with_more_episodes_than_asked_for_is_recorded(results: Path) -> None:
    assert is_recorded(QUICK[0].model_copy(update={"episodes": 2}), results)


def damage_bytes(directory: Path) -> None:
    (directory / "run.sqlite").write_bytes(b"this is no database" * 100)


def empty_file(directory: Path) -> None:
    (directory / "run.sqlite").write_bytes(b"")


def no_settings(directory: Path) -> None:
    with_header(directory, lambda header: [header.pop(name) for name in ("agent", "problem", "settings")])


def no_episodes_table(directory: Path) -> None:
    with sqlite3.connect(directory / "run.sqlite") as connection:
        connection.execute("DROP TABLE episodes")
    connection.close()


def a_file_instead(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_text("notes of mine")


@pytest.mark.parametrize("damage", [damage_bytes, empty_file, no_settings, no_episodes_table, a_file_instead])
def test_a_run_that_fails_is_named_and_the_others_go_on(
    damage: Callable[[Path], None], copied: Path, results: Path
) -> None:
    broken, missing = QUICK[1], QUICK[3]
    damage(broken.directory(copied))
    shutil.rmtree(missing.directory(copied))
    outcomes = run_campaign(QUICK, copied, workers=1)
    assert statuses(outcomes) == ["skipped", "failed", "skipped", "done"]
    assert outcomes[1].id == broken.id
    assert outcomes[1].error
    assert "\n" not in outcomes[1].error
    assert made(missing, copied) == made(missing, results)


def test_a_failed_run_leaves_what_was_in_its_place(tmp_path: Path) -> None:
    place = QUICK[0].directory(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text("notes of mine")
    outcomes = run_campaign(QUICK[:2], tmp_path, workers=1)
    assert statuses(outcomes) == ["failed", "done"]
    assert place.read_text() == "notes of mine"


def test_a_run_that_another_process_is_writing_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    run_campaign([QUICK[0].model_copy(update={"episodes": 1})], tmp_path, workers=1)
    with RunStore.open(QUICK[0].directory(tmp_path), writing=True):
        outcomes = run_campaign(QUICK[:2], tmp_path, workers=1)
    assert statuses(outcomes) == ["failed", "done"]
    assert "must not be in use" in str(outcomes[0].error)
    assert statuses(run_campaign(QUICK[:2], tmp_path, workers=1)) == ["done", "skipped"]


def other_settings(header: Header) -> None:
    name = "step_size" if "step_size" in header["settings"] else "replan_every"
    header["settings"][name] *= 2


def other_task(header: Header) -> None:
    header["task"]["discount"] = 0.5


@pytest.mark.parametrize("spec", [ALL[0], QUICK[0]], ids=["gp-rmax", "sarsa"])
@pytest.mark.parametrize(
    "edit",
    [
        lambda header: header.update(problem="pendulum"),
        lambda header: header.update(agent="gp-rmax-grid"),
        lambda header: header.update(seed=17),
        lambda header: header.update(format_version=99),
        other_settings,
        other_task,
    ],
    ids=["problem", "agent", "seed", "format version", "settings", "task"],
)
def test_another_run_in_its_place_is_refused_in_one_sentence_and_kept(
    edit: Callable[[Header], None], spec: RunSpec, copied: Path
) -> None:
    with_header(spec.directory(copied), edit)
    shutil.rmtree(QUICK[3].directory(copied))
    before = contents(copied)
    with pytest.raises(ValueError, match=r"must be|must have") as refused:
        run_campaign(ALL, copied, workers=1)
    assert "\n" not in str(refused.value)
    assert str(spec.directory(copied)) in str(refused.value)  # which one of many
    assert contents(copied) == before


def test_a_run_of_another_preset_is_refused(copied: Path) -> None:
    spec = ALL[0].model_copy(update={"preset": "ours"})
    with pytest.raises(ValueError, match="must have the settings of this version and preset"):
        run_campaign([spec], copied, workers=1)


def test_runs_with_the_same_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        run_campaign([QUICK[0], QUICK[0]], tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(
    ("engine", "address", "says"),
    [
        ("slurm", None, "engine must be one of local, dask; got 'slurm'"),
        ("local", "tcp://127.0.0.1:8786", "address must come with engine dask; got engine local"),
        ("dask", None, "must have a scheduler"),
    ],
)
def test_bad_choices_are_refused_whether_or_not_anything_is_missing(
    engine: str, address: str | None, says: str, finished: bool, results: Path, tmp_path: Path
) -> None:
    root = results if finished else tmp_path
    with pytest.raises(ValueError, match=says):
        run_campaign(QUICK, root, engine=engine, address=address)
    assert not list(tmp_path.iterdir())


def test_no_runs_are_no_work(tmp_path: Path) -> None:
    assert run_campaign([], tmp_path) == []


def watched(spec: RunSpec, root: str) -> tuple[str, set[str | None], int]:
    """How a run went, what OPTIMIST_THREADS said meanwhile, and the most threads a library would use."""
    said: set[str | None] = set()
    going, most = True, 0

    def watch() -> None:
        nonlocal most
        time.sleep(0.2)
        while going:
            said.add(os.environ.get("OPTIMIST_THREADS"))
            most = max([most, *(pool["num_threads"] for pool in threadpool_info())])
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    outcome = _worked(spec, root)
    going = False
    watcher.join()
    return outcome.status, said, most


def test_every_worker_uses_one_thread(tmp_path: Path) -> None:
    with parallel_config(backend="loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=2)(delayed(watched)(spec, str(tmp_path)) for spec in ALL[:1])
    assert found == [("done", {"1"}, 1)]


def test_the_caller_keeps_its_own_threads(tmp_path: Path) -> None:
    """With one worker the runs are made in this process: what it plans later is its own business."""
    before = [pool["num_threads"] for pool in threadpool_info()]
    run_campaign(QUICK[:1], tmp_path, workers=1)
    assert "OPTIMIST_THREADS" not in os.environ
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_code_of_ones_own_is_run_once_to_look_at_many_recorded_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = write_my_cart(tmp_path)
    carts = Group(problems=(f"{file}:make_env",), agents=("gp-rmax-noexp",), seeds=3, episodes=1)
    with quick_defaults():
        assert statuses(run_campaign(carts.specs("carts"), tmp_path, workers=1)) == ["done"] * 3
        before = n_executed(file)
        assert statuses(run_campaign(carts.specs("carts"), tmp_path, workers=1)) == ["skipped"] * 3
    assert n_executed(file) == before + 1
    file.write_text(MY_CART.replace("discount=0.95", "discount=0.9"), encoding="utf-8")
    with quick_defaults(), pytest.raises(ValueError, match="must have the task of this version and preset"):
        run_campaign(carts.specs("carts"), tmp_path, workers=1)


LATER = """
import json, os, sys
from pathlib import Path

import psutil

from optimist.experiments.campaign import run_campaign
from optimist.experiments.specs import Group

if __name__ == "__main__":
    sarsa = Group(problems=("mountain-car",), agents=("sarsa-coarse",), seeds=2, episodes=2)
    for place in ("first", "second"):
        os.mkdir(place)
        os.chdir(place)
        run_campaign(sarsa.specs("trial"), Path("results"), workers=2)
        os.chdir("..")
    children = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    print(json.dumps([child for child in children if "resource_tracker" not in child]))
"""


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Two campaigns from one program that moves in between: its directory, and what it left running."""
    place = tmp_path_factory.mktemp("program")
    (place / "program.py").write_text(LATER)
    command = [sys.executable, "-W", "error", "program.py"]
    ran = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return place, json.loads(ran.stdout)


def test_results_go_below_the_directory_of_the_caller_when_it_has_moved(
    later: tuple[Path, list[str]],
) -> None:
    place, _ = later
    for name in ("first", "second"):
        assert len(list((place / name / "results").glob("**/run.sqlite"))) == 2, name


def test_no_workers_are_left_behind(later: tuple[Path, list[str]]) -> None:
    _, left = later
    assert left == []
