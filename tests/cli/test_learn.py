"""`optimist learn`, `resume`, `evaluate`: the contract, Ctrl-C, bad input, a full disk."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import gymnasium
import pytest

from optimist import GPRMax
from optimist.agents import settings_of
from optimist.experiments.online import start_run
from optimist.experiments.problems import find_problem
from optimist.runs import RunStore
from optimist.systems import gymnasium_id
from tests.cli.running import Say, SayJson, heed_ctrl_c, only_object, require_refused, run
from tests.quick import short_episodes
from tests.runs.recording import SMALL, Line, Recorded, cut_short, n_written, recorded, rewritten

SELDOM = "first_plans = [5, 20, 60]\nreplan_every = 60\n"  # plans
SETTINGS = f"""
{SELDOM}
[grid]
nodes = [21, 21]
[planning]
depth = 0
[stopping]
mean_drift_tolerance = 1e-12
"""
LEARN_KEYS = {"run", "agent", "problem", "seed", "episodes", "stopped_learning_at", "rehearsal"}
EPISODE_KEYS = {"episode", "steps", "total_reward", "transitions", "expected"}
REHEARSAL_KEYS = {"layout", "nodes", "hold", "until_crossed", "mean_hold", "lookahead", "tried", "expected"}


@pytest.fixture
def settings(tmp_path: Path) -> str:
    (tmp_path / "settings.toml").write_text(SETTINGS)
    return str(tmp_path / "settings.toml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one episode, undisturbed."""
    place = tmp_path_factory.mktemp("finished")
    (place / "settings.toml").write_text(SETTINGS)
    car, file = find_problem("mountain-car"), place / "settings.toml"
    with start_run(car, "gp-rmax-exp", seed=0, run=place / "run", file=file) as learner:
        learner.learn(episodes=1)
    return place / "run"


@pytest.fixture(scope="module")
def undisturbed(finished: Path) -> Recorded:
    return recorded(finished)


def n_recorded(directory: Path) -> int:
    with RunStore.open(directory, writing=False) as store:
        return store.n_transitions


def test_another_problem_of_ours_is_not_gone_on_with(finished: Path, undisturbed: Recorded, say: Say) -> None:
    said = require_refused(say("resume", str(finished), "--problem", "pendulum"))
    assert f"--problem must be the one the run in {finished} is of, mountain-car; got 'pendulum'" in said
    assert recorded(finished) == undisturbed


# --- the contract ---


def test_learn_prints_one_json_object_with_the_contract_keys(
    tmp_path: Path, settings: str, undisturbed: Recorded
) -> None:
    directory = tmp_path / "a" / "run"
    ran = run(
        "learn", "mountain-car", "--agent", "gp-rmax-exp", "--episodes", "1", "--seed", "0",
        "--run", str(directory), "--settings", settings, "--json",
    )  # fmt: skip
    assert ran.returncode == 0
    assert ran.stderr == ""  # not a terminal: no progress
    result = only_object(ran.stdout)
    assert set(result) >= LEARN_KEYS
    assert (result["run"], result["agent"]) == (str(directory), "gp-rmax-exp")
    assert (result["problem"], result["seed"]) == ("mountain-car", 0)
    (episode,) = result["episodes"]
    assert set(episode) >= EPISODE_KEYS
    assert episode["episode"] == 1
    assert episode["steps"] == episode["transitions"] == -episode["total_reward"]
    assert episode["expected"] is None  # it knew nothing when it began
    assert result["stopped_learning_at"] is None  # its tolerance is tiny
    assert set(result["rehearsal"]) >= REHEARSAL_KEYS
    assert result["rehearsal"]["nodes"] == [21, 21]
    assert recorded(directory) == undisturbed


@pytest.mark.parametrize("name", ["mountain-car", "cart-pole"])
def test_from_python_and_by_the_command_the_same_is_learned(
    name: str, tmp_path: Path, say_json: SayJson
) -> None:
    """Nothing but what its environment says is told to an agent, whoever calls it and whatever it learns."""
    file = tmp_path / "settings.toml"
    plans = "first_plans = [10, 40]\nreplan_every = 100\n"
    file.write_text(plans + "[grid]\nbudget = 300\n[planning]\ndepth = 1\n")
    with short_episodes(50):
        result = say_json(
            "learn", name, "--episodes", "2", "--seed", "3", "--run", str(tmp_path / "command"),
            "--settings", str(file),
        )  # fmt: skip
        env = gymnasium.make(gymnasium_id(name))
    settings = settings_of("gp-rmax-exp", file=file)
    with GPRMax(env, settings=settings, seed=3, run=tmp_path / "python") as learner:
        learner.learn(episodes=2)
    assert recorded(tmp_path / "python") == recorded(tmp_path / "command")
    assert result["episodes"] == [asdict(row) for row in learner.episodes]
    first, second = result["episodes"]
    assert first["expected"] is None
    assert second["expected"] is not None
    assert result["rehearsal"]["tried"]
    assert result["rehearsal"]["layout"] == learner.layout.name


def test_resume_goes_on_with_as_many_episodes_as_asked_for(tmp_path: Path, finished: Path, say: Say) -> None:
    directory = shutil.copytree(finished, tmp_path / "run")
    code, out, err = say("resume", str(directory), "--episodes", "2", "--json")
    assert (code, err) == (0, "")
    result = only_object(out)
    assert set(result) >= LEARN_KEYS
    assert [row["episode"] for row in result["episodes"]] == [1, 2]
    first, second = (row["expected"] for row in result["episodes"])
    assert first is None
    assert -500.0 <= second < 0.0
    code, out, err = say("resume", str(directory), "--json")  # nothing left to do; two are remembered
    assert (code, err) == (0, "")
    assert only_object(out)["episodes"] == result["episodes"]


def test_resume_after_an_interruption_gives_the_same_answer(
    tmp_path: Path, finished: Path, undisturbed: Recorded, say: Say
) -> None:
    directory = cut_short(finished, tmp_path / "run", 50)
    code, out, _ = say("resume", str(directory), "--json")
    assert code == 0
    rows = [
        tuple(row[key] for key in ("episode", "steps", "total_reward"))
        for row in only_object(out)["episodes"]
    ]
    assert rows == [(row.episode, row.steps, row.total_reward) for row in undisturbed.episodes]
    assert recorded(directory) == undisturbed


def test_learn_without_json_tells_the_learning_curve(tmp_path: Path, settings: str, say: Say) -> None:
    with short_episodes(50):
        code, out, err = say(
            "learn", "mountain-car", "--episodes", "1", "--run", str(tmp_path / "run"),
            "--settings", settings, "--plot", str(tmp_path / "learned.png"),
        )  # fmt: skip
    assert (code, err) == (0, "")
    assert "its nodes: 21 x 21, " in out
    assert "it expects an episode to earn -" in out
    assert "episode 1: total reward" in out
    assert "(expected" not in out  # nothing was known when it began
    assert f"optimist resume {tmp_path / 'run'}" in out
    assert (tmp_path / "learned.png").read_bytes().startswith(b"\x89PNG")


def test_default_directory_is_named_by_problem_agent_and_seed(
    tmp_path: Path, settings: str, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with short_episodes(20):
        code, out, _ = say(
            "learn", "mountain-car", "--agent", "gp-rmax-noexp", "--episodes", "1", "--seed", "3",
            "--settings", settings, "--json",
        )  # fmt: skip
    assert code == 0
    result = only_object(out)
    assert result["run"] == "runs/mountain-car/gp-rmax-noexp/seed-3"
    assert result["agent"] == "gp-rmax-noexp"
    assert Path(result["run"], "run.sqlite").is_file()


def test_evaluate_prints_greedy_episodes_and_changes_nothing(
    tmp_path: Path, finished: Path, undisturbed: Recorded, say: Say
) -> None:
    directory = shutil.copytree(finished, tmp_path / "run")
    agent = (directory / "agent.optimist").read_bytes()
    code, out, err = say("evaluate", str(directory), "--random", "3", "--json")
    assert (code, err) == (0, "")
    episodes = only_object(out)["episodes"]
    assert [episode["kind"] for episode in episodes] == ["paper", "random", "random", "random"]
    for episode in episodes:
        assert {"start", "total_reward", "steps", "terminated"} <= set(episode)
        assert episode["total_reward"] == -episode["steps"]
    assert recorded(directory) == undisturbed
    assert (directory / "agent.optimist").read_bytes() == agent
    assert say("evaluate", str(directory), "--random", "3", "--json")[1] == out


def test_evaluate_of_other_random_states_is_seeded(finished: Path, say: Say) -> None:
    starts = [
        only_object(say("evaluate", str(finished), "--random", "2", "--seed", seed, "--json")[1])["episodes"][
            1
        ]["start"]
        for seed in ("0", "1", "0")
    ]
    assert starts[0] == starts[2] != starts[1]


def test_evaluate_without_json_tells_every_episode(finished: Path, say: Say) -> None:
    code, out, err = say("evaluate", str(finished))
    assert (code, err) == (0, "")
    assert "total reward" in out


def test_run_can_be_evaluated_while_it_is_written(tmp_path: Path, finished: Path, say: Say) -> None:
    directory = shutil.copytree(finished, tmp_path / "run")
    with RunStore.open(directory, writing=True):
        assert say("evaluate", str(directory), "--json")[0] == 0


@pytest.mark.parametrize("command", ["learn", "resume", "evaluate"])
def test_help_explains_the_command(say: Say, command: str) -> None:
    code, out, err = say(command, "--help")
    assert (code, err) == (0, "")
    assert "--json" in out


# --- Sarsa: the same commands ---


@pytest.fixture(scope="module")
def finished_sarsa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 episodes."""
    place = tmp_path_factory.mktemp("sarsa") / "run"
    with start_run(find_problem("mountain-car"), "sarsa-fine", seed=1, run=place, episodes=60) as learner:
        learner.learn(episodes=60)
    return place


def test_sarsa_prints_the_keys_that_the_others_print(
    tmp_path: Path, finished: Path, finished_sarsa: Path, say_json: SayJson
) -> None:
    result = say_json(
        "learn", "mountain-car", "--agent", "sarsa-fine", "--episodes", "60", "--seed", "1",
        "--run", str(tmp_path / "run"),
    )  # fmt: skip
    directory = shutil.copytree(finished, tmp_path / "other")
    assert set(result) == set(say_json("resume", str(directory), "--episodes", "1")) >= LEARN_KEYS
    assert (result["agent"], result["problem"], result["seed"]) == ("sarsa-fine", "mountain-car", 1)
    assert (result["plans"], result["stopped_learning_at"]) == (0, None)
    with RunStore.open(finished_sarsa, writing=False) as store:
        assert result["episodes"] == [asdict(row) for row in store.episodes()]
    assert result["transitions"] == result["episodes"][-1]["transitions"]
    assert len(result["episodes"]) == 60


def test_sarsa_draws_what_it_learned(tmp_path: Path, say: Say) -> None:
    code, out, err = say(
        "learn", "mountain-car", "--agent", "sarsa-coarse", "--episodes", "60",
        "--run", str(tmp_path / "run"), "--plot", str(tmp_path / "learned.png"),
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert out.count("total reward") == 10  # of many episodes some, evenly spread
    assert "nodes" not in out
    assert (tmp_path / "learned.png").read_bytes().startswith(b"\x89PNG")
    again = say("resume", str(tmp_path / "run"), "--plot", str(tmp_path / "again.svg"), "--json")
    assert only_object(again[1])["plot"] == str(tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes().startswith(b"<?xml")


def test_sarsa_is_evaluated_from_random_states_too_and_nothing_changes(
    finished_sarsa: Path, say_json: SayJson
) -> None:
    before = (finished_sarsa / "run.sqlite").read_bytes()
    arguments = ("evaluate", str(finished_sarsa), "--random", "3")
    result = say_json(*arguments)
    episodes = result["episodes"]
    assert [episode["kind"] for episode in episodes] == ["paper", "random", "random", "random"]
    assert len({tuple(episode["start"]) for episode in episodes}) == 4
    for episode in episodes:
        assert episode["total_reward"] == -episode["steps"]
    assert result["transitions"] > 0
    assert (finished_sarsa / "run.sqlite").read_bytes() == before
    assert say_json(*arguments) == result
    assert say_json(*arguments, "--seed", "1")["episodes"][1]["start"] != episodes[1]["start"]


def test_sarsa_goes_on_with_as_many_episodes_as_asked_for(
    tmp_path: Path, finished_sarsa: Path, say_json: SayJson
) -> None:
    directory = shutil.copytree(finished_sarsa, tmp_path / "run")
    result = say_json("resume", str(directory), "--episodes", "63")
    assert [row["episode"] for row in result["episodes"]] == list(range(1, 64))
    assert say_json("resume", str(directory))["episodes"] == result["episodes"]


@pytest.mark.parametrize("option", [["--preset", "paper"], ["--settings", "settings.toml"]])
def test_sarsa_has_settings_of_its_own(
    tmp_path: Path, settings: str, say: Say, monkeypatch: pytest.MonkeyPatch, option: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = say("learn", "mountain-car", "--agent", "sarsa-fine", "--run", "run", *option)
    assert "must be left out with sarsa-fine" in require_refused(answer)
    assert not (tmp_path / "run").exists()


# --- Ctrl-C ---


def interrupted(condition: Callable[[], bool], *arguments: str) -> tuple[int, str, str]:
    """The command, in a process that gets Ctrl-C as soon as the condition holds."""
    process = subprocess.Popen(
        [sys.executable, "-m", "optimist", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,  # noqa: PLW1509
    )
    while not condition():
        if process.poll() is not None:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_ends_with_a_sentence_that_says_how_to_go_on_and_it_does(
    tmp_path: Path, settings: str, undisturbed: Recorded, say: Say
) -> None:
    directory = tmp_path / "run"
    code, out, err = interrupted(
        lambda: (directory / "run.sqlite-wal").exists() and n_written(directory) >= 12,
        "learn", "mountain-car", "--episodes", "1", "--run", str(directory), "--settings", settings, "--json",
    )  # fmt: skip
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert f"optimist resume {directory}" in err
    assert 12 <= n_recorded(directory) < len(undisturbed.transitions)
    assert say("resume", str(directory), "--json")[0] == 0
    assert recorded(directory) == undisturbed


def test_ctrl_c_while_a_run_is_brought_back_says_how_to_go_on_too(tmp_path: Path, say: Say) -> None:
    (tmp_path / "slow.toml").write_text("[grid]\nnodes = [41, 41]\n[planning]\ndepth = 1\n")
    car, file = find_problem("mountain-car"), tmp_path / "slow.toml"
    with start_run(car, "gp-rmax-exp", seed=0, run=tmp_path / "whole", file=file) as learner:
        assert isinstance(learner, GPRMax)
        learner.learn(20)
    directory = cut_short(tmp_path / "whole", tmp_path / "run", 20)
    rewritten(directory, lambda rows: rows["plans"].clear())
    code, out, err = interrupted((directory / "agent.optimist").exists, "resume", str(directory), "--json")
    assert (code, out) == (1, "")
    assert "Traceback" not in err
    assert f"optimist resume {directory}" in err
    assert n_recorded(directory) == 20


# --- bad input: one sentence, exit code 2, nothing left behind ---


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["learn", "mountain-cat"], "mountain-cat"),
        (["learn", "mountain-car", "--agent", "gp-rmax"], "'gp-rmax'"),
        (["learn", "mountain-car", "--preset", "theirs"], "'theirs'"),
        (["learn", "mountain-car", "--episodes", "0"], "--episodes must be at least 1; got 0"),
        (["learn", "mountain-car", "--episodes", "-3"], "got -3"),
        (["learn", "mountain-car", "--seed", "-1"], "seed` must be a whole number, not negative; got -1"),
        (["learn", "mountain-car", "--settings", "nowhere.toml"], "nowhere.toml"),
        (["learn", "mountain-car", "--settings", "."], "settings must be a readable text file"),
        (["learn", "mountain-car", "--plot", "picture.txt"], "picture.txt"),
        (["learn", "mountain-car", "--plot", "nowhere/picture.png"], "nowhere"),
        (["resume", "nowhere"], "nowhere"),
        (["resume", "nowhere", "--episodes", "0"], ""),
        (["evaluate", "nowhere"], "nowhere"),
        (["evaluate", "nowhere", "--random", "-1"], "--random must not be negative"),
        (["evaluate", "nowhere", "--seed", "-1"], "--seed must not be negative"),
    ],
)
def test_bad_argument_is_refused_and_nothing_is_made(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in require_refused(say(*arguments, "--json"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--episodes", "many"], ["--seed", "1.5"], ["--sed", "1"]])
def test_what_is_no_option_or_no_number_is_a_usage_error(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = say("learn", "mountain-car", *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert arguments[0] in err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("s.toml", "replan_every = ", "valid TOML"),
        ("s.json", "{", "valid JSON"),
        ("s.json", "[1, 2]", "settings must hold a table"),
        ("s.toml", "replan_evry = 5", "'replan_evry'"),
        ("s.toml", "[grid]\nnods = [5, 5]", "'grid.nods'"),
        ("s.toml", "[nothing]\nx = 1", "'nothing'"),
        ("s.toml", "replan_every = 'often'", "'replan_every'"),
        ("s.toml", "replan_every = 0", "'replan_every'"),
        ("s.toml", "replan_every = 2.5", "'replan_every'"),
        ("s.toml", "grid = 5", "'grid'"),
        ("s.toml", "[grid]\nnodes = 21", "nodes"),
        ("s.toml", "[grid]\nnodes = [21]", "one entry per axis (2); got 1"),
        ("s.toml", "[grid]\nnodes = [21, 21, 21]", "one entry per axis (2); got 3"),
        ("s.toml", "[grid]\nnodes = [21, 1]", "nodes"),
        ("s.toml", "[grid]\nnodes = [21, 'many']", "nodes"),
        ("s.toml", "[grid]\nnodes = [200000, 200000]", "memory"),
        ("s.toml", "[grid]\nspacing = [1.0]", "grid.spacing"),
        ("s.toml", "[grid]\nbudget = 8", "`grid.budget` must be at least 9"),
        ("s.toml", "[grid]\nbudget = 0", "grid.budget"),
        ("s.toml", "[planning]\nchallengers = 0", "planning.challengers"),
        ("s.toml", "[grid]\nlimits = [1.0, -1.0]", "limits"),
        ("s.toml", "[grid]\nhold = 501", "`hold` must be a whole number from 1 to 500; got 501"),
        ("s.toml", "knownness = 'magic'", "knownness"),
        ("s.toml", "first_plans = [10, 5]", "increasing"),
        ("s.toml", "first_plans = [0]", "first_plans"),
        ("s.toml", "[model]\nkind = 'both'", "model.kind"),
        ("s.toml", "[model]\nmetric = 'none'", "model.metric"),
        ("s.toml", "[planning]\ntolerance = nan", "planning.tolerance"),
        ("s.toml", "[planning]\ntolerance = inf", "planning.tolerance"),
        ("s.toml", "[stopping]\nmean_drift_tolerance = -1", "mean_drift_tolerance"),
        ("s.toml", "[model]\nbasis_tolerance = nan", "model.basis_tolerance"),
    ],
)
def test_bad_settings_file_is_refused_by_name(
    tmp_path: Path, say: Say, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    answer = say(
        "learn",
        "mountain-car",
        "--run",
        str(tmp_path / "run"),
        "--settings",
        str(tmp_path / name),
        "--episodes",
        "1",
    )
    assert told in require_refused(answer)
    assert not (tmp_path / "run").exists()


def test_settings_file_that_is_no_text_is_refused(tmp_path: Path, say: Say) -> None:
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    answer = say(
        "learn", "mountain-car", "--run", str(tmp_path / "run"), "--settings", str(tmp_path / "s.toml")
    )
    assert "readable text" in require_refused(answer)


def test_run_that_exists_is_refused_with_the_way_to_go_on(
    finished: Path, undisturbed: Recorded, say: Say
) -> None:
    said = require_refused(say("learn", "mountain-car", "--run", str(finished), "--json"))
    assert f"optimist resume {finished}" in said
    assert recorded(finished) == undisturbed


@pytest.mark.parametrize("command", ["resume", "learn"])
def test_run_in_use_by_another_process_is_refused(tmp_path: Path, finished: Path, command: str) -> None:
    directory = shutil.copytree(finished, tmp_path / "run")
    arguments = {"resume": ["resume"], "learn": ["learn", "mountain-car", "--run"]}[command]
    with RunStore.open(directory, writing=True):
        ran = run(*arguments, str(directory), "--json")
    said = require_refused((ran.returncode, ran.stdout, ran.stderr))
    assert str(directory) in said
    assert "in use" in said or command == "learn"


def unwritable(tmp_path: Path) -> Path:
    if os.geteuid() == 0:
        return Path("/proc")  # permissions do not bind root, this does
    (tmp_path / "locked").mkdir(mode=0o500)
    return tmp_path / "locked"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a directory nobody may write to")
def test_directory_that_cannot_be_written_is_refused(tmp_path: Path, say: Say) -> None:
    directory = unwritable(tmp_path) / "run"
    said = require_refused(say("learn", "mountain-car", "--run", str(directory), "--json"))
    assert str(directory) in said


def test_directory_below_a_file_is_refused(tmp_path: Path, say: Say) -> None:
    (tmp_path / "file").write_text("hello")
    for directory in (tmp_path / "file", tmp_path / "file" / "run"):
        assert str(directory) in require_refused(say("learn", "mountain-car", "--run", str(directory)))
    assert (tmp_path / "file").read_text() == "hello"


def test_name_that_is_too_long_is_refused(tmp_path: Path, say: Say) -> None:
    directory = tmp_path / ("x" * 300)
    assert "too long" in require_refused(say("learn", "mountain-car", "--run", str(directory), "--json"))


def test_run_without_a_plan_cannot_be_evaluated(tmp_path: Path, finished: Path, say: Say) -> None:
    directory = cut_short(finished, tmp_path / "run", 3)
    assert "planned" in require_refused(say("evaluate", str(directory), "--json"))


@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_run_of_an_outside_environment_must_have_its_problem_named(
    tmp_path: Path, say: Say, command: str
) -> None:
    with GPRMax(Line(), settings=SMALL, run=tmp_path / "run") as learner:
        learner.learn(3)
    before = n_recorded(tmp_path / "run")
    assert "--problem FILE.py:FUNCTION" in require_refused(say(command, str(tmp_path / "run"), "--json"))
    assert n_recorded(tmp_path / "run") == before


@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_directory_without_a_run_is_refused_and_left_alone(tmp_path: Path, say: Say, command: str) -> None:
    assert "must hold a run" in require_refused(say(command, str(tmp_path), "--json"))
    assert list(tmp_path.iterdir()) == []


# --- a full disk: one sentence, exit code 1, nothing lost ---


def run_with_small_files(limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where no file can grow beyond `limit` bytes: writing fails as on a full disk."""
    return subprocess.run(
        [sys.executable, "-m", "optimist", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "nodes", "most"), [("record", 21, 60), ("checkpoint", 85, 5)]
)  # the record grows with every transition; the agent on a large grid is larger from the start
def test_full_disk_loses_nothing_and_the_run_goes_on_when_there_is_space(
    tmp_path: Path, say: Say, what: str, nodes: int, most: int
) -> None:
    chosen = f"{SELDOM}[grid]\nnodes = [{nodes}, {nodes}]\n[planning]\ndepth = 0\nrehearse = false\n"
    (tmp_path / "settings.toml").write_text(chosen)
    arguments = ["learn", "mountain-car", "--episodes", "1", "--settings", str(tmp_path / "settings.toml")]
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    ran = run_with_small_files(150_000, *arguments, "--run", str(full), "--json")
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith("optimist: ")
    assert ran.stderr.count("\n") == 1
    assert str(full) in ran.stderr
    n_before = n_recorded(full)
    assert 5 <= n_before <= most
    assert say("resume", str(full), "--json")[0] == 0
    assert say(*arguments, "--run", str(roomy), "--json")[0] == 0
    assert recorded(full) == recorded(roomy)


def test_full_disk_at_the_very_start_is_told_in_one_sentence(tmp_path: Path) -> None:
    ran = run_with_small_files(8_000, "learn", "mountain-car", "--run", str(tmp_path / "run"), "--json")
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert str(tmp_path / "run") in ran.stderr
    assert not (tmp_path / "run" / "run.sqlite").exists()
