"""What is exported is what was recorded, read back by whoever it is for."""

from __future__ import annotations

import csv
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optimist
from optimist import Box, GPRMax, Grid
from optimist.exports import FORMATS, export_policy
from optimist.exports.datasets import dataset_id
from optimist.exports.policy import c_code
from optimist.planning import QFunction
from optimist.runs import RunStore
from tests.cli.running import Say, SayJson, require_refused
from tests.runs.recording import SMALL, ShortLine, ShortSystem
from tests.runs.test_formats import FORMAT_1
from tests.test_callbacks import events_in

CAR = SMALL.model_copy(update={"first_plans": (5, 20)})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with two whole episodes and an open one, and a transition that is void."""
    directory = tmp_path_factory.mktemp("exports") / "run"
    with GPRMax(ShortLine(), settings=SMALL, run=directory) as learner:
        learner.learn(30)
    optimist.check(directory, void=[7])
    return directory


def read(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def test_csv_has_every_number_in_full(run: Path, tmp_path: Path) -> None:
    folder = optimist.export(run, "csv", tmp_path / "deep/csv")
    with RunStore.open(run, writing=False) as store:
        transitions, episodes, plans = store.transitions(), store.episodes(), store.plans()
    rows = read(folder / "transitions.csv")
    assert len(rows) == 30
    for number, (row, made) in enumerate(zip(rows, transitions, strict=True), 1):
        assert int(row["number"]) == number
        assert (int(row["episode"]), int(row["step"])) == (1 + (number - 1) // 12, 1 + (number - 1) % 12)
        assert [float(row["state_0"]), float(row["state_1"])] == made.state.tolist()
        assert [float(row["next_state_0"]), float(row["next_state_1"])] == made.next_state.tolist()
        assert int(row["action"]) == made.action
        assert float(row["control_0"]) == (-0.1, 0.1)[made.action]
        assert float(row["reward"]) == made.reward
        assert row["truncated"] == str(int(made.truncated))
        assert row["void"] == str(int(number == 7))
    told = read(folder / "episodes.csv")
    assert [float(row["total_reward"]) for row in told] == [row.total_reward for row in episodes]
    assert told[0]["expected"] == ""  # there was no plan yet
    assert [int(row["n_transitions"]) for row in read(folder / "plans.csv")] == [
        row["n_transitions"] for row in plans
    ]


def test_json_lines_say_the_same_as_the_columns(run: Path, tmp_path: Path) -> None:
    file = optimist.export(run, "jsonl", tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["kind"] == "run"
    assert lines[0]["agent"] == "gp-rmax-exp"
    of = {
        kind: [line for line in lines if line["kind"] == kind]
        for kind in ("transition", "episode", "plan", "mark")
    }
    assert [len(rows) for rows in of.values()] == [
        30,
        2,
        len(read(optimist.export(run, "csv") / "plans.csv")),
        1,
    ]
    for line, row in zip(of["transition"], read(run / "exports/csv/transitions.csv"), strict=True):
        assert {name: str(value) for name, value in line.items() if name != "kind"} == row


def test_a_run_of_the_first_format_is_exported_as_it_is(tmp_path: Path) -> None:
    old = Path(shutil.copytree(FORMAT_1, tmp_path / "old"))
    with RunStore.open(old, writing=False) as store:
        expected = [row.state.tolist() for row in store.transitions()]
    rows = read(optimist.export(old, "csv", tmp_path / "csv") / "transitions.csv")
    assert [[float(row["state_0"]), float(row["state_1"])] for row in rows] == expected
    assert optimist.export(old, "jsonl").read_text().count('"kind": "transition"') == len(expected)


def test_tensorboard_shows_what_would_have_been_logged(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    for _ in range(2):  # the second replaces the first
        folder = optimist.export(run, "tensorboard", tmp_path / "events")
    logged = GPRMax(ShortLine(), settings=SMALL, tensorboard_log=tmp_path / "logs").learn(30)
    found, expected = events_in(folder), events_in(tmp_path / "logs" / "gp-rmax-exp_1")
    assert set(found) == set(expected)
    for name in found:
        assert [step for step, _ in found[name]] == [step for step, _ in expected[name]]
        if not name.endswith("_seconds"):
            assert found[name] == expected[name]
    assert len(found["rollout/ep_rew"]) == len(logged.episodes)


def test_minari_loads_the_dataset(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari", reason="Minari is not installed (`pip install '.[minari]'`)")
    for _ in range(2):
        folder = optimist.export(run, "minari", tmp_path / "sets")
    assert "MINARI_DATASETS_PATH" not in os.environ
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    dataset = minari.load_dataset("optimist/problem/gp-rmax-exp-seed-0-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (3, 30)
    with RunStore.open(run, writing=False) as store:
        made = store.transitions()
    episodes = list(dataset.iterate_episodes())
    np.testing.assert_array_equal(
        np.concatenate([one.observations[:-1] for one in episodes]), [row.state for row in made]
    )
    np.testing.assert_array_equal(
        np.concatenate([one.observations[1:] for one in episodes]), [row.next_state for row in made]
    )
    np.testing.assert_array_equal(
        np.concatenate([one.actions for one in episodes]), [row.action for row in made]
    )
    np.testing.assert_array_equal(
        np.concatenate([one.rewards for one in episodes]), [row.reward for row in made]
    )
    assert [bool(one.truncations[-1]) for one in episodes] == [True, True, True]


def test_names_of_datasets_are_those_that_minari_takes() -> None:
    told = {"problem": "my_robot.py:make_env", "agent": "gp-rmax-exp", "seed": 3}
    assert dataset_id(told) == "optimist/my-robot-py-make-env/gp-rmax-exp-seed-3-v0"
    assert dataset_id(told | {"problem": None}).startswith("optimist/problem/")


def test_without_their_packages_they_say_what_is_missing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, extra in (("tensorboard", "tensorboardX"), ("minari", "minari")):
        for module in [known for known in sys.modules if known.split(".")[0] == extra]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, extra, None)
        with pytest.raises(ValueError, match=rf"not installed; `pip install 'optimist\[{name}\]'` brings it"):
            optimist.export(run, name, tmp_path / name)


# --- the policy as C ---


def compiled(code: str, folder: Path) -> Any:
    """The function `optimist_action` of some C code, with warnings for errors."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    (folder / "policy.c").write_text(code)
    options = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    command = [compiler, *options, "policy.c", "-o", "policy.so", "-lm"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    library = ctypes.CDLL(str(folder / "policy.so"))
    library.optimist_control.restype = ctypes.POINTER(ctypes.c_double)
    return library


@pytest.mark.parametrize(
    "grid",
    [
        Grid(Box([-1.0], [2.0]), [np.array([-1.0, 0.0, 0.1, 2.0])]),
        Grid.uniform(Box([-np.pi, -2.0], [np.pi, 6.0], periodic=[True, False]), [8, 5]),
        Grid.spaced(
            Box([0.0, 0.0, 0.0], [1.0, 2.0, 3.0], periodic=[False, False, True]), [4, 5, 6], [1.0, 2.0, 1.0]
        ),
    ],
    ids=["one axis", "an angle", "three axes"],
)
def test_the_c_code_interpolates_as_we_do(grid: Grid, tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    q_function = QFunction(grid, stream.normal(size=(grid.n_nodes, 3)))
    controls = np.array([[-1.0, 0.5], [0.0, 1e-300], [1.0 / 3.0, 2.0]])
    library = compiled(c_code(q_function, controls), tmp_path)
    box = grid.box
    states = stream.uniform(
        box.low - box.widths, box.high + box.widths, size=(300, box.n_dims)
    )  # outside, too
    states = np.concatenate([states, grid.nodes])
    expected, answer = q_function(states), np.empty(3)
    for state, values in zip(states, expected, strict=True):
        at = np.ascontiguousarray(state).ctypes.data_as(ctypes.c_void_p)
        library.optimist_q_values(at, answer.ctypes.data_as(ctypes.c_void_p))
        np.testing.assert_allclose(answer, values, rtol=1e-9, atol=1e-9)
        assert values[library.optimist_action(at)] >= values.max() - 1e-9
    assert [library.optimist_control(2)[k] for k in range(2)] == controls[2].tolist()


def test_the_policy_of_a_run_acts_in_c_as_it_does_here(tmp_path: Path) -> None:
    learner = GPRMax(ShortLine(), settings=SMALL).learn(30)
    file = export_policy(learner, tmp_path / "made" / "policy.c")
    library = compiled(file.read_text(), tmp_path)
    states = np.random.default_rng(1).uniform(-1.0, 1.0, size=(200, 2))
    chosen = [library.optimist_action(state.ctypes.data_as(ctypes.c_void_p)) for state in states]
    assert chosen == learner.q_function.greedy(states).tolist()


# --- the command ---


def test_the_command_writes_all_of_them(tmp_path: Path, say_json: SayJson, say: Say) -> None:
    directory = tmp_path / "car"
    with GPRMax(ShortSystem("mountain-car", 500), settings=CAR, run=directory) as learner:
        learner.learn(21)
    for to, name in (("csv", "csv"), ("jsonl", "run.jsonl"), ("c", "policy.c")):
        told = say_json("export", str(directory), "--to", to)
        assert told == {"run": str(directory), "to": to, "file": str(directory / "exports" / name)}
        assert (directory / "exports" / name).exists()
    assert "optimist_action" in (directory / "exports/policy.c").read_text()
    code, out, _ = say("export", str(directory), "--to", "csv", "--out", str(tmp_path / "here"))
    assert (code, out) == (0, f"{directory}: csv in {tmp_path / 'here'}\n")
    assert say("check", str(directory))[0] == 0  # an export is no damage


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "xml"], "--to must be one of csv, jsonl, tensorboard, minari, c; got 'xml'."),
        (["--to", "csv", "--out", ""], "--out must name a directory"),
        (["--to", "csv", "--out", "FILE"], "must be writable"),
        (["--to", "c"], "must be named again"),
    ],
)
def test_the_command_refuses(words: list[str], said: str, run: Path, tmp_path: Path, say: Say) -> None:
    (tmp_path / "FILE").write_text("")
    words = [str(tmp_path / word) if word == "FILE" else word for word in words]
    assert said in require_refused(say("export", str(run), *words))
    assert "must hold a run" in require_refused(say("export", str(tmp_path), "--to", "csv"))


def test_formats_that_are_none_are_refused(run: Path) -> None:
    with pytest.raises(ValueError, match=f"`to` must be one of {', '.join(FORMATS)}; got 'xml'"):
        optimist.export(run, "xml")
