"""What the command says when somebody's own code fails, and when it is stopped: one line, and who it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimist.agents import PRESETS
from optimist.experiments.kinds import KINDS, online_kind
from optimist.models import LEARNERS, LearnerKind
from optimist.starting import is_command, was_stopped
from tests.cli.running import Say, heed_ctrl_c, only_object, require_refused, run
from tests.experiments.own_problem import write_my_cart

# one function of a problem of somebody's own fails: from a call on, or in part of the states
FUSSY = """
import my_cart
import numpy as np
import optimist

calls = 0


def reward(states, controls, next_states):
    global calls
    calls += 1
    if calls > 12:
        return {}["the gauge"]
    return my_cart.cost(states, controls, next_states)


def motion(states, controls):
    if len(states) > 30:
        raise OverflowError("too\\n many")
    return my_cart.move(states, controls)


def end(states):
    if len(states) == 1:
        raise TypeError("alone")
    return np.zeros(len(states), dtype=bool)


def adapted(**changes):
    given = dict(reward=my_cart.cost, discount=0.95, max_steps=20)
    return optimist.adapt(
        my_cart.Cart(), low=[-2.0, -2.0], high=[2.0, 2.0], controls=[-1.0, 1.0], **(given | changes)
    )


def rewarding():
    return adapted(reward=reward)


def moving():
    return adapted(dynamics=motion)


def ending():
    return adapted(is_terminal=end)


def seeing():
    def state(observation):
        return observation if calls else 1 // 0

    return adapted(state=state)


class Nan(my_cart.Cart):
    def step(self, action):
        print("stepped")
        observation, paid, _, _, info = super().step(action)
        return observation, paid, float("nan"), False, info


def undecided():
    env = adapted()
    env.env = Nan()
    return env
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_my_cart(tmp_path)
    (tmp_path / "fussy.py").write_text(FUSSY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("my_cart", "fussy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


QUICK = ("--settings", "quick.toml", "--run", "R", "--json")


@pytest.mark.parametrize(
    ("function", "who", "said"),
    [
        ("rewarding", "`reward` must not fail", "KeyError: 'the gauge' (fussy.py, line "),
        ("ending", "`is_terminal` must not fail", "TypeError: alone (fussy.py, line "),
        ("seeing", "`state` must not fail", "ZeroDivisionError: "),
    ],
)
def test_a_function_of_the_task_that_fails_is_named_and_not_the_environment(
    place: Path, say: Say, function: str, who: str, said: str
) -> None:
    told = require_refused(say("learn", f"fussy.py:{function}", *QUICK))
    assert told.startswith(f"optimist: {who}; got {said}")


def test_dynamics_that_fail_are_named_when_they_are_planned_with(place: Path, say: Say) -> None:
    told = require_refused(say("plan", "fussy.py:moving", "--nodes", "9,9"))
    assert told.startswith(
        "optimist: The dynamics must not fail; got OverflowError: too many (fussy.py, line "
    )


def test_the_same_is_said_when_a_run_goes_on_or_is_evaluated(place: Path, say: Say) -> None:
    assert say("learn", "my_cart.py:make_env", *QUICK, "--episodes", "1")[0] == 0
    for command in (("resume", "R", "--episodes", "2"), ("evaluate", "R")):
        told = require_refused(say(*command, "--problem", "fussy.py:rewarding", "--json"))
        assert "`reward` must not fail; got KeyError: 'the gauge' (fussy.py" in told


def test_a_campaign_names_the_function_and_prints_nothing_but_its_result(place: Path, say: Say) -> None:
    for name, function in (("state", "seeing"), ("reward", "rewarding"), ("end", "undecided")):
        (place / f"{name}.toml").write_text(
            f'name = "{name}"\n[[runs]]\nproblems = ["fussy.py:{function}"]\n'
            'agents = ["gp-rmax-exp"]\nseeds = 1\nepisodes = 1\n'
        )
        code, out, err = say("sweep", f"{name}.toml", "--workers", "1", "--json")
        assert code == 1
        (failed,) = only_object(out)["failed"]
        wanted = "got `terminated` nan" if name == "end" else f"`{name}` must not fail; got "
        assert wanted in failed["error"]
        assert ("stepped\n" in err) == (name == "end")


def test_an_end_that_is_neither_true_nor_false_is_refused(place: Path, say: Say) -> None:
    code, _, err = say("learn", "fussy.py:undecided", *QUICK)
    assert code == 1
    assert "The environment must say true or false; got `terminated` nan" in err


# --- agents and models of somebody's own ---


class Broken:
    """An agent that fails in one of its methods."""

    settled_at = None
    due = True

    def __init__(self, task: Any, settings: Any, seed: int, fails: str = "") -> None:
        self.task, self.settings, self.seed, self._fails = task, settings, seed, fails
        self.transitions: list[Any] = []

    def _try(self, what: str) -> None:
        if what == self._fails:
            raise LookupError("nothing there")

    @property
    def policy(self) -> Any:
        return self

    def greedy(self, states: Any) -> Any:
        return np.zeros(len(states), dtype=np.int64)

    def act(self, state: Any) -> int:
        self._try("act")
        state[:] = np.nan  # what is recorded is not changed
        return 0

    def observe(self, transition: Any) -> None:
        self._try("observe")
        self.transitions.append(transition)

    def update(self) -> Any:
        self._try("update")

    def pack(self) -> Any:
        return None

    def restore(self, transitions: Any, packed: Any) -> None:
        self._try("restore")


@pytest.mark.parametrize("method", ["act", "observe", "update"])
def test_an_agent_that_fails_is_named(
    method: str, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PRESETS["ours"]

    def make(task: Any, chosen: Any, seed: int) -> Any:
        agent = Broken(task, chosen, seed, fails=method)
        agent.due = method == "update"
        return agent

    kind = online_kind("broken", make, lambda *_: settings, lambda _: settings)
    monkeypatch.setitem(KINDS, "broken", kind)
    told = require_refused(
        say("learn", "mountain-car", "--agent", "broken", "--run", str(tmp_path / "R"), "--json")
    )
    assert told.startswith(
        f"optimist: The agent's `{method}` must not fail; got LookupError: nothing there ("
    )
    assert "test_words.py" in told


def test_a_model_that_fails_is_named_by_its_line(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Learner:
        def fit(self, transitions: Any, previous: Any) -> Any:
            raise ArithmeticError("no model")

    gp = LEARNERS["gp"]
    monkeypatch.setitem(LEARNERS, "gp", LearnerKind(gp.settings, lambda *_: Learner()))  # type: ignore[arg-type]
    told = require_refused(say("learn", "mountain-car", "--run", str(tmp_path / "R"), "--json"))
    assert "got ArithmeticError: no model (test_words.py, line " in told
    assert told.endswith(", in fit).\n")


# --- words of the command itself ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("learn",), "Missing argument"),
        (("learn", "pendulum", "--colour"), "No such option"),
        (("unlearn",), "No such command 'unlearn'"),
        (("plan", "pendulum", "--hold", "x"), "Invalid value for '--hold'"),
        (("sweep", "x.toml", "--tls-ca", "ca.pem"), "--tls-ca, --tls-cert and --tls-key must come together"),
        (("learn", "pendulum", "--run", ""), "must name a directory; got ''"),
        (("evaluate", " "), "must name a directory; got ' '"),
    ],
)
def test_refusals_are_one_line_without_a_box(say: Say, arguments: tuple[str, ...], said: str) -> None:
    assert said in require_refused(say(*arguments))


def test_how_to_go_on_quotes_what_a_shell_would_split(place: Path, say: Say) -> None:
    shutil.copy(place / "my_cart.py", place / "my cart.py")
    arguments = ("my cart.py:make_env", "--settings", "quick.toml", "--run", "a run", "--episodes", "1")
    code, out, _ = say("learn", *arguments)
    assert code == 0
    assert "optimist resume 'a run' --problem 'my cart.py:make_env' --episodes N" in out


def test_compiled_code_that_cannot_be_read_back_is_said_to_be_deleted(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    arguments = (
        "plan",
        "mountain-car",
        "--nodes",
        "5,5",
        "--hold",
        "1",
        "--lookahead",
        "0",
        "--spacing",
        "1,1",
    )
    assert run(*arguments, env=cache).returncode == 0
    for file in (tmp_path / "cache").rglob("*.nb[ic]"):
        file.write_bytes(b"\x80\x04not a pickle")
    ran = run(*arguments, env=cache)
    assert ran.returncode in (1, 2)
    assert ran.stderr.count("\n") == 1
    assert f"delete {tmp_path / 'cache'}" in ran.stderr


# --- Ctrl-C while it is being loaded ---


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.8])
def test_ctrl_c_in_the_first_second_is_one_line(seconds: float, tmp_path: Path) -> None:
    for attempt in range(1, 6):
        process = subprocess.Popen(
            [sys.executable, "-m", "optimist", "learn", "mountain-car", "--run", str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heed_ctrl_c,  # noqa: PLW1509
        )
        time.sleep(attempt * seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode != -signal.SIGINT or "optimist/" in err:
            break  # else a busy machine had not got as far as the package: nobody can heed it then
    assert process.returncode in (130, 1)  # 1: on a quick machine it had begun, and is to be resumed
    assert err.startswith("optimist: stopped")
    assert err.count("\n") == 1


def test_only_the_command_is_stopped_so() -> None:
    assert not is_command()  # this is a test
    program = "import signal, optimist; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                         env=os.environ, preexec_fn=heed_ctrl_c)  # fmt: skip
    assert ran.stdout == "True\n"


def test_nothing_is_loaded_before_ctrl_c_is_heeded() -> None:
    """But what the interpreter has loaded before it looks for the package."""
    program = (
        "import builtins, sys\n"
        "at_first, load = set(sys.modules), builtins.__import__\n"
        "def look(name, *rest):\n"
        "    if name == 'importlib':\n"  # the first that is wanted after the watch has begun
        "        sys.exit(' '.join(sorted(set(sys.modules) - at_first)))\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = look\n"
        "import optimist\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stderr == "optimist optimist.starting\n"


def test_ctrl_c_is_known_behind_what_a_compiled_module_says() -> None:
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    assert was_stopped(error)
    assert not was_stopped(ImportError("no such module"))
