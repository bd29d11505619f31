"""`optimist sweep`, `optimist reproduce`: the contract, interruptions, bad input."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from optimist.agents import PRESETS, AgentSettings
from optimist.agents.settings import PlanningOptions
from optimist.discretisation import Discretisation
from optimist.experiments.campaign import run_campaign
from optimist.experiments.specs import Experiment, read_experiment
from optimist.paper.figure5 import figure5_runs
from optimist.runs import EpisodeRow, RunStore
from tests.cli.running import Say, heed_ctrl_c, only_object, run
from tests.runs.recording import bits

QUICK = """
name = "trial"

[[runs]]
problems = ["mountain-car"]
agents = ["sarsa-coarse"]
seeds = 3
episodes = 2
"""
LONGER = """
name = "longer"

[[runs]]
problems = ["mountain-car"]
agents = ["gp-rmax-exp"]
preset = "paper"
seeds = 2
episodes = 1
"""
IDS = [f"trial/mountain-car/sarsa-coarse/seed-{seed}" for seed in range(3)]
MAGIC = {".pdf": b"%PDF-", ".png": b"\x89PNG", ".svg": b"<?xml"}

Made = tuple[list[tuple[Any, ...]], list[EpisodeRow]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "trial.toml").write_text(QUICK)
    return tmp_path / "trial.toml"


def made(root: Path, name: str) -> Made:
    with RunStore.open(root / name, writing=False) as store:
        return [bits(transition) for transition in store.transitions()], store.episodes()


# --- sweep ---


def test_a_sweep_says_how_every_run_went_and_nothing_else(file: Path, tmp_path: Path) -> None:
    ran = run("sweep", str(file), "--results", str(tmp_path / "results"), "--workers", "1", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    result = only_object(ran.stdout)
    assert set(result) == {"runs", "failed"}
    assert result == {"runs": [{"id": name, "status": "done"} for name in IDS], "failed": []}
    assert all((tmp_path / "results" / name / "run.sqlite").is_file() for name in IDS)


def test_a_sweep_again_runs_only_what_is_missing(file: Path, tmp_path: Path, say: Say) -> None:
    sweep = ("sweep", str(file), "--results", str(tmp_path / "results"), "--workers", "1")
    assert say(*sweep)[0] == 0
    shutil.rmtree(tmp_path / "results" / IDS[1])
    code, out, _ = say(*sweep, "--json")
    assert code == 0
    assert [row["status"] for row in only_object(out)["runs"]] == ["skipped", "done", "skipped"]
    code, out, err = say(*sweep)
    assert (code, err) == (0, "")
    assert "0 runs done" in out
    assert "3 recorded before" in out


@pytest.mark.parametrize("damage", ["a file in its place", "a damaged record"])
def test_a_run_that_fails_is_named_the_others_go_on_and_the_exit_code_is_1(
    damage: str, file: Path, tmp_path: Path, say: Say
) -> None:
    place = tmp_path / "results" / IDS[1]
    place.parent.mkdir(parents=True)
    if damage == "a file in its place":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "run.sqlite").write_bytes(b"no database" * 100)
    sweep = ("sweep", str(file), "--results", str(tmp_path / "results"), "--workers", "1")
    code, out, err = say(*sweep, "--json")
    assert code == 1
    result = only_object(out)
    assert [row["status"] for row in result["runs"]] == ["done", "failed", "done"]
    assert [row["id"] for row in result["failed"]] == [IDS[1]]
    assert result["failed"][0]["error"]
    assert err.startswith(f"optimist: {IDS[1]} failed: ")
    assert err.count("\n") == 1
    code, out, err = say(*sweep)  # for people
    assert code == 1
    assert IDS[1] in err


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("name = ", [], "must be valid TOML"),
        (QUICK + "colour = 1\n", [], "'runs.0.colour': it is not known"),
        (QUICK.replace("mountain-car", "unicycle"), [], "got 'unicycle'"),
        (QUICK.replace("sarsa-coarse", "dqn"), [], "got 'dqn'"),
        (QUICK.replace("episodes = 2", "episodes = 0"), [], "got 0"),
        (QUICK.replace("seeds = 3", "seeds = [1, 1]"), [], "seed-1 twice"),
        (QUICK, ["--workers", "0"], "--workers must be at least 1; got 0"),
        (QUICK, ["--engine", "slurm"], "must be one of local, dask; got 'slurm'"),
        (QUICK, ["--engine", "dask"], "must have a scheduler"),
        (QUICK, ["--address", "tcp://127.0.0.1:8786"], "must come with engine dask; got engine local"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    text: str, options: list[str], says: str, tmp_path: Path, say: Say
) -> None:
    (tmp_path / "bad.toml").write_text(text)
    code, out, err = say(
        "sweep", str(tmp_path / "bad.toml"), "--results", str(tmp_path / "results"), "--json", *options
    )
    assert (code, out) == (2, "")
    assert err.startswith("optimist: ")
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_file_that_is_not_there_is_exit_code_2(tmp_path: Path, say: Say) -> None:
    code, out, err = say("sweep", str(tmp_path / "nowhere.toml"))
    assert (code, out) == (2, "")
    assert "nowhere.toml" in err
    assert err.count("\n") == 1


def test_results_of_another_version_are_refused_and_kept(file: Path, tmp_path: Path, say: Say) -> None:
    sweep = ("sweep", str(file), "--results", str(tmp_path / "results"), "--workers", "1")
    assert say(*sweep)[0] == 0
    with sqlite3.connect(tmp_path / "results" / IDS[1] / "run.sqlite") as connection:
        connection.execute("UPDATE header SET document = json_set(document, '$.format_version', 99)")
    connection.close()
    shutil.rmtree(tmp_path / "results" / IDS[2])
    code, out, err = say(*sweep, "--json")
    assert (code, out) == (2, "")
    assert "99, of another version" in err
    assert IDS[1] in err  # which one of many
    assert err.count("\n") == 1
    assert not (tmp_path / "results" / IDS[2]).exists()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A sweep that nothing happened to: where it is, and its runs."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "longer.toml").write_text(LONGER)
    specs = read_experiment(place / "longer.toml").specs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIMIST_THREADS", "1")
        outcomes = run_campaign(specs, place, workers=1)
    assert [outcome.status for outcome in outcomes] == ["done", "done"]
    return place, [spec.id for spec in specs]


def begun(file: Path, results: Path) -> subprocess.Popen[str]:
    """A sweep of two runs in two processes that is in the middle of both."""
    command = [sys.executable, "-m", "optimist", "sweep", str(file), "--results", str(results)]
    process = subprocess.Popen(
        [*command, "--workers", "2", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,  # noqa: PLW1509
    )
    until = time.monotonic() + 60.0
    while sum(_n_transitions(path) > 5 for path in results.glob("**/run.sqlite")) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


def _n_transitions(database: Path) -> int:
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM transitions").fetchone()[0])
    finally:
        connection.close()


def test_a_sweep_that_was_stopped_goes_on_and_ends_as_if_it_had_not(
    undisturbed: tuple[Path, list[str]], tmp_path: Path, say: Say
) -> None:
    place, ids = undisturbed
    process = begun(place / "longer.toml", tmp_path)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
    out, err = process.communicate(timeout=60)
    again = say("sweep", str(place / "longer.toml"), "--results", str(tmp_path), "--workers", "1")
    assert again[0] == 0, again[2]
    assert [made(tmp_path, name) for name in ids] == [made(place, name) for name in ids]
    assert out == ""
    assert "Traceback" not in err
    assert process.returncode == 1  # stopped, as `optimist learn` has it
    assert err.startswith("optimist: ")


def test_a_worker_that_is_killed_is_said_without_a_traceback_and_nothing_is_lost(
    undisturbed: tuple[Path, list[str]], tmp_path: Path, say: Say
) -> None:
    place, ids = undisturbed
    process = begun(place / "longer.toml", tmp_path)
    children = psutil.Process(process.pid).children()
    workers = [child for child in children if "LokyProcess" in " ".join(child.cmdline())]
    assert len(workers) == 2
    workers[0].kill()
    out, err = process.communicate(timeout=120)
    again = say("sweep", str(place / "longer.toml"), "--results", str(tmp_path), "--workers", "1")
    assert again[0] == 0, again[2]
    assert [made(tmp_path, name) for name in ids] == [made(place, name) for name in ids]
    assert "Traceback" not in err
    result = only_object(out)
    assert [row["id"] for row in result["runs"]] == ids
    assert process.returncode == (1 if result["failed"] else 0)


# --- reproduce ---

SELDOM = AgentSettings(
    first_plans=(40, 120),  # what is drawn
    replan_every=1000,
    grid=Discretisation(nodes=(21, 21), hold=1),
    planning=PlanningOptions(depth=0, rehearse=False),
)


def test_figure5_is_written_as_pdf_svg_and_png(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of short runs that plan seldom."""

    def quick(*, seed: int) -> Experiment:
        made = figure5_runs(seed=seed)
        runs = tuple(group.model_copy(update={"preset": "quick", "episodes": 1}) for group in made.runs)
        return made.model_copy(update={"runs": runs})

    monkeypatch.setitem(PRESETS, "quick", SELDOM)
    monkeypatch.setattr(sys.modules["optimist.paper.figure5"], "figure5_runs", quick)
    places = ("--out", str(tmp_path / "out"), "--results", str(tmp_path / "results"), "--workers", "1")
    code, out, err = say("reproduce", "figure5", "--seed", "2", *places, "--json")
    assert code == 0, err
    result = only_object(out)
    assert set(result) == {"files"}
    files = [Path(name) for name in result["files"]]
    assert sorted(file.suffix for file in files) == sorted(MAGIC)
    for written in files:
        assert written.read_bytes().startswith(MAGIC[written.suffix])
        assert written.stat().st_size > 10_000
    assert sorted((tmp_path / "out").iterdir()) == sorted(files)  # nothing half-written
    recorded = sorted(path.parent for path in (tmp_path / "results").glob("**/run.sqlite"))
    names = [str(path.relative_to(tmp_path / "results")) for path in recorded]
    assert names == [f"figure5/mountain-car/{agent}/seed-2" for agent in ("gp-rmax-exp", "gp-rmax-grid")]


def test_reproduce_names_the_run_that_failed_and_exits_1(tmp_path: Path, say: Say) -> None:
    root = tmp_path / "results" / "figure5" / "mountain-car"
    for agent in ("gp-rmax-exp", "gp-rmax-grid"):
        (root / agent).mkdir(parents=True)
        (root / agent / "seed-0").write_text("mine")
    places = ("--out", str(tmp_path / "out"), "--results", str(tmp_path / "results"), "--workers", "1")
    code, out, err = say("reproduce", "figure5", *places, "--json")
    assert (code, out) == (1, "")
    assert "figure5/mountain-car/gp-rmax-exp/seed-0 failed" in err
    assert "figure5/mountain-car/gp-rmax-grid/seed-0 failed" in err
    assert err.count("\n") == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "must be table, figure4, figure5 or peers; got 'nonsense'"),
        (["figure5", "--seed", "-1"], "--seed must not be negative; got -1"),
        (["figure5", "--engine", "slurm"], "must be one of local, dask; got 'slurm'"),
        (["table", "--engine", "slurm"], "must be one of local, dask; got 'slurm'"),
        (["figure5", "--workers", "0"], "--workers must be at least 1; got 0"),
        (["figure4", "--engine", "dask"], "must have a scheduler"),
    ],
)
def test_bad_input_of_reproduce_is_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, tmp_path: Path, say: Say
) -> None:
    places = ("--out", str(tmp_path / "out"), "--results", str(tmp_path / "results"))
    code, out, err = say("reproduce", *arguments, *places)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("optimist: ")
    assert says in err
    assert "Traceback" not in err
    assert not (tmp_path / "results").exists()


def test_an_output_directory_that_is_a_file_is_refused(tmp_path: Path, say: Say) -> None:
    (tmp_path / "out").write_text("mine")
    code, out, err = say("reproduce", "figure5", "--out", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert err.startswith("optimist: ")
    assert err.count("\n") == 1
    assert (tmp_path / "out").read_text() == "mine"
