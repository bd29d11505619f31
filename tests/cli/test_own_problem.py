"""Problems of one's own, FILE.py:FUNCTION, through every command."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from optimist import GPRMax
from optimist.agents.settings import settings_of
from optimist.cli.learn import _print_end
from optimist.experiments.problems import find_problem
from optimist.runs import RunStore
from tests.cli.running import Say, SayJson, only_object, require_refused, run
from tests.experiments.own_problem import MY_CART, STEPS, n_executed, write_my_cart
from tests.runs.recording import Recorded, recorded

LEARN = ("learn", "my_cart.py:make_env", "--episodes", "2", "--settings", "quick.toml")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with my_cart.py in it; the user is there."""
    write_my_cart(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "my_cart", raising=False)  # of another folder
    return tmp_path


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two episodes, recorded; not to be written to."""
    folder = tmp_path_factory.mktemp("learned")
    problem = find_problem(f"{write_my_cart(folder)}:make_env")
    settings = settings_of("gp-rmax-exp", file=folder / "quick.toml")
    learner = GPRMax(problem.env, settings=settings, seed=0)
    learner.record(folder / "run", episodes=2)
    with learner:
        learner.learn(episodes=2)
    return folder / "run"


@pytest.fixture(scope="module")
def undisturbed(learned: Path) -> Recorded:
    return recorded(learned)


# --- learning, and going on ---

GLITCH = """
import warnings
from my_cart import Cart, cost, optimist

class Glitch(Cart):
    def step(self, action):
        seen, *rest = super().step(action)
        if self.n_steps == 12:
            warnings.warn("the sensor is warm")
        return (seen + (300.0 if self.n_steps == 12 else 0.0), *rest)

def make_env():
    return optimist.adapt(
        Glitch(), low=[-2.0, -2.0], high=[2.0, 2.0], controls=[-1.0, 1.0], reward=cost, discount=0.95,
        max_steps=20,
    )
"""


def test_what_is_not_learned_from_is_said_and_warnings_are_sentences(place: Path) -> None:
    (place / "glitch.py").write_text(GLITCH)
    how = "learn", "glitch.py:make_env", "--episodes", "1", "--settings", "quick.toml"
    told = run(*how, "--run", "told", cwd=place)
    assert told.returncode == 0
    assert told.stderr.splitlines().count("optimist: the sensor is warm") == 1
    assert "glitch.py:" not in told.stderr  # where it was said is of no use to who typed the command
    said = "2 of 20 transitions were not learned from: nothing explains them (optimist check told)"
    assert said in told.stdout
    counted = only_object(run(*how, "--run", "counted", "--json", cwd=place).stdout)
    assert (counted["void"], counted["faded"]) == (2, 0)


def test_that_the_system_changed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    counts = "plans", "fit_seconds", "plan_seconds", "mean_uncertainty", "outside", "void", "mirror"
    said: dict[str, Any] = dict.fromkeys(counts, 0) | {
        "stopped_learning_at": None,
        "rehearsal": {},
        "run": "R",
    }
    _print_end(said | {"transitions": 300, "faded": 200}, find_problem("pendulum"))
    expected = "the system changed: the first 200 transitions are not learned from any more"
    assert expected in capsys.readouterr().out


def test_it_is_learned_recorded_and_drawn(place: Path, undisturbed: Recorded) -> None:
    ran = run(*LEARN, "--run", "R", "--plot", "learned.png", "--json", cwd=place)
    assert (ran.returncode, ran.stderr) == (0, "")
    result = only_object(ran.stdout)
    assert (result["problem"], result["run"], result["plot"]) == ("my_cart.py:make_env", "R", "learned.png")
    rows = [(row["episode"], row["steps"], row["ending"]) for row in result["episodes"]]
    assert rows == [(1, STEPS, "truncated"), (2, STEPS, "truncated")]
    assert result["plans"] > 0
    assert (place / "learned.png").read_bytes().startswith(b"\x89PNG")
    assert recorded(place / "R") == undisturbed  # as learned from Python


def test_where_it_is_recorded_is_named_by_file_and_function(place: Path, say: Say) -> None:
    (place / "below").mkdir()
    write_my_cart(place / "below")
    code, out, err = say(
        "learn", "below/my_cart.py:make_blind_env", "--episodes", "1", "--settings", "quick.toml"
    )
    assert (code, err) == (0, "")
    assert "its nodes: 15 x 15, " in out
    assert Path("runs/my_cart.make_blind_env/gp-rmax-exp/seed-0/run.sqlite").is_file()
    assert n_executed(place / "below" / "my_cart.py") == 1


def test_how_to_go_on_is_told_with_the_problem_named(place: Path, say: Say) -> None:
    _, out, _ = say(*LEARN, "--run", "R")
    assert "optimist evaluate R --problem my_cart.py:make_env" in out
    assert "optimist resume R --problem my_cart.py:make_env" in out


def test_killed_in_the_middle_it_loses_nothing_and_goes_on_with_a_fresh_episode(
    place: Path, undisturbed: Recorded, say_json: SayJson
) -> None:
    ran = run(*LEARN, "--run", "R", "--json", cwd=place, env={"CART_DIES_IN_STEP": "13"})
    assert (ran.returncode, ran.stdout) == (-signal.SIGKILL, "")
    with RunStore.open(place / "R", writing=False) as store:
        assert store.n_transitions == 12
        assert store.episodes() == []
    result = say_json("resume", "R", "--problem", "my_cart.py:make_env")
    rows = [(row["steps"], row["ending"], row["transitions"]) for row in result["episodes"]]
    fresh = [(STEPS, "truncated", 12 + STEPS), (STEPS, "truncated", 12 + 2 * STEPS)]
    assert rows == [(12, "abandoned", 12), *fresh]  # two were asked for; the abandoned one does not count
    made = recorded(place / "R").transitions
    assert made[:12] == undisturbed.transitions[:12]
    assert made[12][0] == undisturbed.transitions[STEPS][0]  # the second episode begins where it begins
    again = say_json("resume", "R", "--problem", "my_cart.py:make_env", "--episodes", "3", "--plot", "p.svg")
    assert again["episodes"][:3] == result["episodes"]
    assert [row["ending"] for row in again["episodes"][3:]] == ["truncated"]
    assert (place / "p.svg").read_bytes().startswith(b"<?xml")


def test_a_run_recorded_from_python_is_evaluated_and_resumed_by_naming_its_problem(
    place: Path, learned: Path, say_json: SayJson
) -> None:
    with RunStore.open(learned, writing=False) as store:
        assert store.header["problem"] is None  # nobody knows where it came from
    shutil.copytree(learned, place / "R")
    named = ("R", "--problem", "my_cart.py:make_env")
    assert {episode["kind"] for episode in say_json("evaluate", *named)["episodes"]} == {"reset"}
    assert len(say_json("resume", *named, "--episodes", "3")["episodes"]) == 3


def test_sarsa_learns_compiled_problems_only(place: Path, say: Say) -> None:
    answer = say("learn", "my_cart.py:make_env", "--agent", "sarsa-fine", "--run", "R")
    assert "my_cart.py:make_env" in require_refused(answer)
    assert not (place / "R").exists()


# --- evaluating ---


def test_it_is_evaluated_as_its_environment_begins_and_nothing_changes(
    place: Path, learned: Path, undisturbed: Recorded, say_json: SayJson
) -> None:
    evaluate = ("evaluate", str(learned), "--problem", "my_cart.py:make_env")
    result = say_json(*evaluate)
    assert (result["problem"], result["transitions"]) == ("my_cart.py:make_env", 2 * STEPS)
    assert [episode["kind"] for episode in result["episodes"]] == ["reset"] * 5
    for episode in result["episodes"]:
        assert (episode["steps"], episode["terminated"]) == (STEPS, False)
        assert -1.0 <= episode["start"][0] <= 1.0
    assert len({tuple(episode["start"]) for episode in result["episodes"]}) == 5
    assert say_json(*evaluate) == result
    assert say_json(*evaluate, "--seed", "1")["episodes"] != result["episodes"]
    assert recorded(learned) == undisturbed


def test_with_known_dynamics_it_is_evaluated_from_random_states_too(
    place: Path, learned: Path, say_json: SayJson
) -> None:
    evaluate = ("evaluate", str(learned), "--problem", "my_cart.py:make_env", "--random", "3")
    episodes = say_json(*evaluate)["episodes"]
    assert [episode["kind"] for episode in episodes] == ["reset"] * 5 + ["random"] * 3
    assert any(episode["start"][1] != 0.0 for episode in episodes[5:])


def test_random_states_without_known_dynamics_are_refused(place: Path, learned: Path, say: Say) -> None:
    answer = say("evaluate", str(learned), "--problem", "my_cart.py:make_blind_env", "--random", "3")
    assert "known dynamics" in require_refused(answer)


def test_what_is_not_named_again_is_refused_and_its_code_is_not_run(
    place: Path, undisturbed: Recorded, say: Say
) -> None:
    assert say(*LEARN, "--run", "R", "--json")[0] == 0
    assert n_executed(place / "my_cart.py") == 1
    for command in ("evaluate", "resume"):
        said = require_refused(say(command, "R", "--json"))
        assert "my_cart.py:make_env" in said
        assert "--problem FILE.py:FUNCTION" in said
    assert n_executed(place / "my_cart.py") == 1
    assert recorded(place / "R") == undisturbed
    assert say("evaluate", "R", "--problem", "my_cart.py:make_env")[0] == 0
    assert n_executed(place / "my_cart.py") == 2


@pytest.mark.parametrize("command", ["evaluate", "resume"])
@pytest.mark.parametrize("problem", ["pendulum", "other.py:make_env"])
def test_another_problem_in_its_place_is_refused(
    place: Path, learned: Path, undisturbed: Recorded, say: Say, command: str, problem: str
) -> None:
    (place / "other.py").write_text(MY_CART.replace("discount=0.95", "discount=0.9"), encoding="utf-8")
    shutil.copytree(learned, place / "R")
    assert "task must be the one of R" in require_refused(say(command, "R", "--problem", problem))
    assert recorded(place / "R") == undisturbed


# --- many runs ---

SWEEP = """
name = "carts"

[[runs]]
problems = ["my_cart.py:make_env"]
agents = ["gp-rmax-exp"]
preset = "paper"
seeds = 2
episodes = 3
"""


def test_it_is_swept_from_anywhere_its_file_beside_the_experiment(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, say: Say
) -> None:
    write_my_cart(tmp_path)
    (tmp_path / "carts.toml").write_text(SWEEP)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    sweep = ("sweep", str(tmp_path / "carts.toml"), "--results", str(elsewhere / "results"))
    ran = run(*sweep, "--workers", "2", "--json", cwd=elsewhere)
    assert (ran.returncode, ran.stderr) == (0, "")
    ids = [f"carts/my_cart.make_env/gp-rmax-exp/seed-{seed}" for seed in (0, 1)]
    assert only_object(ran.stdout) == {"runs": [{"id": name, "status": "done"} for name in ids], "failed": []}
    for seed, name in enumerate(ids):
        with RunStore.open(elsewhere / "results" / name, writing=False) as store:
            assert (store.header["problem"], store.header["seed"]) == ("my_cart.py:make_env", seed)
            assert [row.steps for row in store.episodes()] == [STEPS] * 3
            assert len(store.plans()) == 1
    code, out, err = say(*sweep, "--workers", "1")  # again: all is there
    assert (code, err) == (0, "")
    assert "0 runs done, 2 recorded before" in out


def test_a_sweep_whose_function_fails_names_the_runs_and_exits_1(place: Path, say: Say) -> None:
    (place / "my_cart.py").write_text("def make_env():\n    raise OSError('no\\nmotor')\n")
    (place / "carts.toml").write_text(SWEEP)
    code, out, err = say("sweep", "carts.toml", "--workers", "1", "--json")
    assert code == 1
    assert [row["status"] for row in only_object(out)["runs"]] == ["failed", "failed"]
    assert err.count("\n") == 2  # a line each
    assert err.count("got OSError: no motor") == 2
    assert not (place / "results").exists()


def test_a_sweep_whose_file_is_missing_is_refused(tmp_path: Path, say: Say) -> None:
    (tmp_path / "carts.toml").write_text(SWEEP)
    said = require_refused(say("sweep", str(tmp_path / "carts.toml"), "--results", str(tmp_path / "results")))
    assert str(tmp_path / "my_cart.py") in said


# --- planning ---


def test_it_is_planned_with_the_dynamics_it_brings(place: Path, say_json: SayJson) -> None:
    plan = ("plan", "my_cart.py:make_env", "--nodes", "21,21", "--nearby", "4", "--certify")
    result = say_json(*plan, "--plot", "plan.png")
    assert (result["problem"], result["nodes"], result["converged"]) == (
        "my_cart.py:make_env",
        [21, 21],
        True,
    )
    assert len(result["rollouts"]) == 3
    assert len(result["nearby"]["rollouts"]) == 4
    assert all(episode["steps"] == STEPS for episode in result["rollouts"])
    assert (place / "plan.png").read_bytes().startswith(b"\x89PNG")
    # better than never touching it: the first start costs its square, each step
    worst = min(result["rollouts"], key=lambda episode: episode["total_reward"])
    assert worst["total_reward"] > -STEPS * worst["start"][0] ** 2


def test_it_is_planned_on_a_grid_that_suits_its_dimension(place: Path, say: Say) -> None:
    code, out, err = say("plan", "my_cart.py:make_env")
    assert (code, err) == (0, "")
    assert "my_cart.py:make_env: planned with the true dynamics on 101 x 101 nodes" in out
    assert "the paper" not in out


def test_without_dynamics_it_cannot_be_planned(place: Path, say: Say) -> None:
    said = require_refused(say("plan", "my_cart.py:make_blind_env"))
    assert "dynamics must be known" in said
    assert "my_cart.py:make_blind_env" in said


def test_the_papers_recipe_is_there_for_the_papers_problems_only(place: Path, say: Say) -> None:
    said = require_refused(say("plan", "my_cart.py:make_env", "--recipe", "paper"))
    assert "--recipe must be one of ours" in said


# --- bad input: exit code 2, one sentence, nothing left behind ---

WRONG = """
import numpy as np

import my_cart


def raises():
    raise KeyError("the motor\\n  is not\\n  plugged in")


def needs_more(port):
    return my_cart.make_env()


def nothing():
    pass


def a_table():
    return np.zeros((3, 2))


NO_FUNCTION = 3
"""


@pytest.mark.parametrize("command", ["learn", "plan", "evaluate"])
@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("nowhere.py:make_env", "file of a problem must exist; got nowhere.py"),
        ("nowhere/wrong.py:make_env", "file of a problem must exist; got nowhere/wrong.py"),
        ("folder.py:make_env", "file of a problem must exist; got folder.py"),
        ("wrong.py", "or your own as FILE.py:FUNCTION; got 'wrong.py'"),
        ("wrong.txt:make_env", "or your own as FILE.py:FUNCTION; got 'wrong.txt:make_env'"),
        ("wrong.py:", "wrong.py:"),
        ("wrong.py:make env", "wrong.py:make env"),
        ("wrong.py:missing", "no function called missing"),
        ("wrong.py:NO_FUNCTION", "no function called NO_FUNCTION"),
        ("wrong.py:raises", "got KeyError: 'the motor"),
        ("wrong.py:needs_more", "got TypeError: needs_more() missing 1 required positional argument"),
        ("wrong.py:nothing", "must return an environment; got None"),
        ("wrong.py:a_table", "must return an environment; got "),
        ("broken.py:make_env", "got SyntaxError: "),
        ("importing.py:make_env", "got ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("binary.py:make_env", "binary.py:make_env must return an environment; got "),
    ],
)
def test_what_is_no_problem_is_refused_in_one_sentence(
    place: Path, learned: Path, undisturbed: Recorded, say: Say, command: str, problem: str, told: str
) -> None:
    (place / "wrong.py").write_text(WRONG, encoding="utf-8")
    (place / "broken.py").write_text("def make_env(:\n    pass\n", encoding="utf-8")
    (place / "importing.py").write_text("import nobody_has_this\n", encoding="utf-8")
    (place / "binary.py").write_bytes(b"\xff\xfe\x00")
    (place / "folder.py").mkdir()
    named = ["evaluate", str(learned), "--problem", problem] if command == "evaluate" else [command, problem]
    said = require_refused(say(*named, "--json"))
    assert told in said
    assert "Traceback" not in said
    assert not (place / "runs").exists()
    assert recorded(learned) == undisturbed


def test_it_is_no_traceback_in_a_process_of_its_own_either(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def make_env(:\n    pass\n", encoding="utf-8")
    ran = run("learn", "broken.py:make_env", cwd=tmp_path)
    said = require_refused((ran.returncode, ran.stdout, ran.stderr))
    assert "broken.py:make_env" in said
    assert "got SyntaxError: " in said


# --- an environment that fails: exit code 1, one sentence, nothing lost ---

FAILING = """
import my_cart
import optimist


class Failing(my_cart.Cart):
    def step(self, action):
        if self.n_steps == 2:
            raise RuntimeError("no\\n  power")
        return super().step(action)


class Dead(my_cart.Cart):
    def reset(self, **_):
        raise RuntimeError("no\\n  power")


class Stopped(my_cart.Cart):
    def step(self, action):
        raise KeyboardInterrupt


def adapted(env):
    low, high = [-2.0, -2.0], [2.0, 2.0]
    return optimist.adapt(
        env, low=low, high=high, controls=[-1.0, 1.0], reward=my_cart.cost, discount=0.95, max_steps=20,
        dynamics=my_cart.move,
    )


def failing():
    return adapted(Failing())


def dead():
    return adapted(Dead())


def stopped():
    return adapted(Stopped())
"""


@pytest.fixture
def failing(place: Path) -> Path:
    (place / "failing.py").write_text(FAILING, encoding="utf-8")
    return place


def require_failed(answer: tuple[int, str, str]) -> str:
    code, out, err = answer
    assert (code, out) == (1, "")
    assert err.startswith("optimist: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(("function", "n_made"), [("failing", 2), ("dead", 0)])
def test_what_fails_while_it_learns_is_said_and_nothing_is_lost(
    failing: Path, say: Say, function: str, n_made: int
) -> None:
    problem = f"failing.py:{function}"
    answer = say("learn", problem, "--settings", "quick.toml", "--run", "R", "--json")
    assert "RuntimeError: no power" in require_failed(answer)
    with RunStore.open(failing / "R", writing=False) as store:
        assert store.n_transitions == n_made


@pytest.mark.parametrize("function", ["failing", "dead"])
def test_what_fails_while_it_is_evaluated_is_said(
    failing: Path, learned: Path, undisturbed: Recorded, say: Say, function: str
) -> None:
    answer = say("evaluate", str(learned), "--problem", f"failing.py:{function}", "--json")
    assert "RuntimeError: no power" in require_failed(answer)
    assert recorded(learned) == undisturbed


def test_what_fails_while_it_is_planned_is_said(failing: Path, say: Say) -> None:
    answer = say("plan", "failing.py:dead", "--nodes", "5,5", "--json")
    assert "RuntimeError: no power" in require_failed(answer)


def test_ctrl_c_ends_with_a_sentence_that_names_the_problem_again(failing: Path, say: Say) -> None:
    answer = say("learn", "failing.py:stopped", "--settings", "quick.toml", "--run", "R", "--json")
    assert "optimist resume R --problem failing.py:stopped" in require_failed(answer)
