"""A system, a model and an agent added at run time, as docs/extending.md says, go through every command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimist.agents import PRESETS
from optimist.cli.main import app
from optimist.experiments.kinds import KINDS
from optimist.models import LEARNERS
from optimist.runs import RunStore
from optimist.systems import NAMES, SYSTEMS
from tests.integration.pages import script
from tests.quick import quick_defaults

PAGE = "docs/extending.md"
FEW = "first_plans = [5, 12, 40]\nreplan_every = 40\n"  # plans; how many there are is not what is tried here
SMALL = {
    "linear": FEW + '[model]\nlearner = "linear"\n[grid]\nnodes = [21, 21]\n[planning]\ndepth = 1\n',
    "gp": FEW + "[grid]\nnodes = [21, 21]\n[planning]\ndepth = 1\n",
}


@pytest.fixture(autouse=True, scope="module")
def extended() -> Iterator[dict[str, Any]]:
    """What the page defines, on few nodes; gone from the tables afterwards."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with quick_defaults():
        exec(compile(script(PAGE), "extending.md", "exec", dont_inherit=True), namespace)
    yield namespace
    for table, name in ((SYSTEMS, "cart"), (LEARNERS, "linear"), (KINDS, "random"), (PRESETS, "linear")):
        del table[name]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    app([*map(str, words), "--json"], standalone_mode=False)
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_nothing_of_the_page_is_there_by_itself() -> None:
    assert "cart" in SYSTEMS  # the fixture's
    assert "cart" not in NAMES


def test_the_model_of_the_page_learns_the_cart(extended: dict[str, Any]) -> None:
    """Straight lines are all there is to this cart: what was fitted is the motion itself."""
    agent, system = extended["agent"], extended["SYSTEM"]
    states = np.random.default_rng(0).uniform(-1.5, 1.5, size=(20, 2))
    for control in system.task.controls:
        predicted = agent.model.predict(states, control[np.newaxis])
        np.testing.assert_allclose(predicted, system.dynamics(states, control[np.newaxis]), atol=1e-6)


def test_a_new_system_is_planned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    planned = run(capsys, "plan", "cart", "--nodes", "31,31", "--plot", tmp_path / "plan.png")
    assert planned["converged"]
    assert planned["total_reward"] > -40.0
    assert (tmp_path / "plan.png").stat().st_size > 0
    assert "cart" in [entry["name"] for entry in run(capsys, "problems")["problems"]]


@pytest.mark.filterwarnings("ignore:.* of all observations lie outside")  # at random
@pytest.mark.parametrize(
    ("agent", "learner"), [("gp-rmax-exp", "gp"), ("gp-rmax-exp", "linear"), ("random", None)]
)
def test_new_systems_models_and_agents_are_learned_resumed_evaluated_and_drawn(
    agent: str, learner: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Resumed twice, a run ends as one that was never disturbed: transition for transition."""
    options: list[object] = ["--agent", agent]
    if learner is not None:
        (tmp_path / "small.toml").write_text(SMALL[learner])
        options += ["--settings", tmp_path / "small.toml"]
    whole = run(capsys, "learn", "cart", "--episodes", 3, "--run", tmp_path / "whole", *options)
    run(capsys, "learn", "cart", "--episodes", 1, "--run", tmp_path / "parts", *options)
    run(capsys, "resume", tmp_path / "parts", "--episodes", 2)
    parts = run(capsys, "resume", tmp_path / "parts", "--episodes", 3, "--plot", tmp_path / "run.png")
    assert parts["episodes"] == whole["episodes"]
    with (
        RunStore.open(tmp_path / "whole", writing=False) as one,
        RunStore.open(tmp_path / "parts", writing=False) as other,
    ):
        for left, right in zip(one.transitions(), other.transitions(), strict=True):
            np.testing.assert_array_equal(left.next_state, right.next_state)
            assert left.action == right.action
    assert (tmp_path / "run.png").stat().st_size > 0
    evaluated = run(capsys, "evaluate", tmp_path / "parts", "--random", 3)
    assert {row["kind"] for row in evaluated["episodes"]} == {"paper", "random"}
    if learner is not None:
        assert whole["episodes"][-1]["total_reward"] > -40.0


def test_a_new_system_agent_and_model_are_swept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    of = 'problems = ["cart"]\nseeds = 2\nepisodes = 2\n'
    groups = ('agents = ["random"]\n', 'agents = ["gp-rmax-exp"]\npreset = "linear"\n')
    file.write_text('name = "mine"\n' + "".join(f"[[runs]]\n{of}{group}" for group in groups))
    made = run(capsys, "sweep", file, "--results", tmp_path / "results", "--workers", 1)
    assert [row["status"] for row in made["runs"]] == ["done"] * 4
    again = run(capsys, "sweep", file, "--results", tmp_path / "results", "--workers", 1)
    assert [row["status"] for row in again["runs"]] == ["skipped"] * 4
    with RunStore.open(tmp_path / "results/mine/cart/gp-rmax-exp/seed-1", writing=False) as store:
        assert store.header["settings"]["model"] == {"learner": "linear", "ridge": 1e-08}
        assert set(store.plans()[-1]["model"]) == {"coefficients"}
