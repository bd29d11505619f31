"""Every example runs and makes its point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
CASES = {
    "known_model.py": ([], "converged: True"),
    "environments.py": ([], "Acrobot: total reward"),
    "model_learning.py": (["model.png"], "after 120 transitions: mean uncertainty"),
    "model_error.py": (["mountain-car", "1"], "| mountain-car | joint |"),
    "learning_results.py": (["mountain-car", "--seeds", "1", "--episodes", "2"], "median per episode:"),
    "planning_quality.py": (["mountain-car"], "| mountain-car | ours | 100 x 100 | -103 |"),
    "sarsa_search.py": (
        ["pendulum", "--seeds", "1", "--episodes", "4"],
        "| sarsa-coarse, best, fresh seeds |",
    ),
}


def test_every_example_is_tried_here() -> None:
    assert {file.name for file in EXAMPLES.glob("*.py")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_example_makes_its_point(name: str, tmp_path: Path) -> None:
    arguments, says = CASES[name]
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert says in ran.stdout
