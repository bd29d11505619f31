"""Every example runs and makes its point, and so do the scripts that make pictures and tables of models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = {
    "known_model.py": ([], "converged: True"),
    "environments.py": ([], "Acrobot: total reward"),
    "learning_results.py": (  # with the paper's settings, which are the quickest
        ["mountain-car", "--preset", "paper", "--seeds", "1", "--episodes", "2"],
        "median per episode:",
    ),
    "sarsa_search.py": (
        ["pendulum", "--seeds", "1", "--episodes", "4"],
        "| sarsa-coarse, best, fresh seeds |",
    ),
}


def test_every_example_is_tried_here() -> None:
    assert {file.name for file in (ROOT / "examples").glob("*.py")} == {*CASES, "planning_quality.py"}


@pytest.mark.parametrize("name", CASES)
def test_example_makes_its_point(name: str, tmp_path: Path) -> None:
    arguments, says = CASES[name]
    assert says in printed([str(ROOT / "examples" / name), *arguments], tmp_path)


def test_planning_quality_tells_of_the_papers_grid_and_of_what_is_chosen(tmp_path: Path) -> None:
    said = printed([str(ROOT / "examples" / "planning_quality.py"), "mountain-car"], tmp_path)
    assert "| mountain-car | paper | 100 x 100 | -103 |" in said
    (ours,) = [line for line in said.splitlines() if line.startswith("| mountain-car | ours |")]
    cells = [cell.strip() for cell in ours.strip("|").split("|")]
    assert float(cells[3]) >= -105.0
    assert cells[6] == "50 of 50"


def test_model_learning_draws_what_a_model_knows(tmp_path: Path) -> None:
    said = printed(["-m", "benchmarks.model_learning", str(tmp_path / "model.png")], ROOT)
    assert "after 120 transitions: mean uncertainty" in said
    assert (tmp_path / "model.png").stat().st_size > 0


def test_model_error_makes_its_table() -> None:
    assert "| mountain-car | joint |" in printed(["-m", "benchmarks.model_error", "mountain-car", "1"], ROOT)


def printed(words: list[str], folder: Path) -> str:
    """What Python prints there; it must not fail."""
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
