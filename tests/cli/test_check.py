"""`optimist check`: what is whole, from where on not, what can be saved."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

import optimist
from tests.cli.running import Say, SayJson, only_object, require_refused
from tests.runs.recording import learned


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("car") / "run", steps=25)


@pytest.fixture
def run(car: Path, tmp_path: Path) -> Path:
    return shutil.copytree(car, tmp_path / "run")


@pytest.fixture
def damaged(run: Path) -> Path:
    with sqlite3.connect(run / "run.sqlite") as connection:
        connection.execute("UPDATE transitions SET reward = 7.0 WHERE number = 14")
    connection.close()
    return run


def test_whole_run_is_called_whole(say: Say, say_json: SayJson, run: Path) -> None:
    code, out, err = say("check", str(run))
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{run}: whole", "  whole: 25 transitions, 0 episodes, 3 plans"]
    assert say_json("check", str(run)) == {
        "run": str(run),
        "ok": True,
        "problems": [],
        "warnings": [],
        "format": 7,
        "transitions": 25,
        "episodes": 0,
        "plans": 3,
        "void": [],
        "savable": True,
        "saved": None,
    }


def test_looking_changes_nothing(say: Say, run: Path) -> None:
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    assert say("check", str(run))[0] == 0
    assert {name: (run / name).read_bytes() for name in before} == before


def test_damaged_run_is_told_from_where_on(say: Say, damaged: Path) -> None:
    code, out, err = say("check", str(damaged))
    assert (code, err) == (2, "")
    assert out.splitlines() == [
        f"{damaged}: not whole",
        "  problem: its transitions are whole up to number 13, then number 14 is not what was written",
        "  whole: 13 transitions, 0 episodes, 2 plans",
        f"  to go on with what is whole: optimist check {damaged} --salvage NEW_DIR",
    ]
    code, out, err = say("check", str(damaged), "--json")
    assert (code, err) == (2, "")
    found = only_object(out)
    assert (found["ok"], found["transitions"], found["savable"]) == (False, 13, True)


def test_whole_part_is_saved_and_resumed(say: Say, damaged: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    code, out, err = say("check", str(damaged), "--salvage", str(new))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"  saved: {new}; go on: optimist resume {new}"
    assert optimist.check(new).ok
    assert optimist.check(new).transitions == 13
    assert require_refused(say("check", str(damaged), "--salvage", str(new))).startswith(
        "optimist: The run directory must be new"
    )
    assert "must be new" in require_refused(say("check", str(damaged), "--salvage", str(damaged)))


def test_rows_are_marked(say: Say, say_json: SayJson, run: Path) -> None:
    assert say_json("check", str(run), "--void", "4", "--void", "9")["void"] == [4, 9]
    assert say("check", str(run))[1].splitlines()[-1] == "  not learned from: 4, 9"
    told = require_refused(say("check", str(run), "--void", "26"))
    assert "must be from 1 to 25" in told


def test_damaged_run_is_not_marked(say: Say, damaged: Path) -> None:
    assert "must be whole" in require_refused(say("check", str(damaged), "--void", "4"))


def test_what_is_no_run_is_refused(say: Say, tmp_path: Path) -> None:
    assert "must hold a run" in require_refused(say("check", str(tmp_path)))
    assert "must hold a run" in require_refused(say("check", str(tmp_path / "nowhere")))


@pytest.mark.parametrize("command", ["check", "resume", "evaluate"])
def test_directory_without_a_name_is_refused(say: Say, command: str) -> None:
    assert require_refused(say(command, "")) == "optimist: DIR must name a directory; got ''.\n"


def test_run_without_a_name_is_refused(
    say: Say, tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = require_refused(say("learn", "mountain-car", "--run", ""))
    assert told == "optimist: --run must name a directory; got ''.\n"
    told = require_refused(say("check", str(run), "--salvage", ""))
    assert told == "optimist: --salvage must name a directory; got ''.\n"
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_old_format_is_said_to_prove_nothing(say_json: SayJson, tmp_path: Path) -> None:
    old = Path(__file__).parents[1] / "runs" / "data" / "format_1"
    found = say_json("check", str(shutil.copytree(old, tmp_path / "old")))
    assert (found["ok"], found["format"], found["transitions"]) == (True, 1, 30)
    assert any("proves nothing" in warning for warning in found["warnings"])
