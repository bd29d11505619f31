"""Orders: where results go, what is run for them, and what is refused before any work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from optimist.experiments.specs import Experiment, Group
from optimist.paper import RESULTS, Order
from optimist.runs import RunError

SARSA = Group(problems=("mountain-car",), agents=("sarsa-coarse",), seeds=2, episodes=2)
TRIAL = Experiment(name="trial", runs=(SARSA,))


@pytest.fixture(autouse=True)
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes for a handful of episodes."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


def test_there_is_an_order_for_every_result_of_the_paper() -> None:
    assert list(RESULTS) == ["table", "figure4", "figure5", "peers"]


def test_a_table_and_a_figure_are_written_below_the_directory_that_is_made(tmp_path: Path) -> None:
    order = Order(tmp_path / "new" / "out")
    assert order.written("some", "| a |\n").read_text(encoding="utf-8") == "| a |\n"
    assert {file.suffix for file in order.saved("some", Figure())} == {".pdf", ".svg", ".png"}
    names = sorted(file.name for file in (tmp_path / "new" / "out").iterdir())
    assert names == ["some.md", "some.pdf", "some.png", "some.svg"]


def test_a_quick_result_is_called_so(tmp_path: Path) -> None:
    assert Order(tmp_path).named("figure4") == "figure4"
    assert Order(tmp_path, quick=True).named("figure4") == "figure4-quick"


def test_what_is_missing_is_run_here_unless_the_order_says_how(tmp_path: Path) -> None:
    Order(tmp_path, results=tmp_path / "here").run_missing(TRIAL)
    assert len(list((tmp_path / "here").glob("**/run.sqlite"))) == 2
    asked: list[tuple[Experiment, Path]] = []

    def elsewhere(experiment: Experiment, root: Path) -> None:
        asked.append((experiment, root))

    Order(tmp_path, results=tmp_path / "there", run=elsewhere).run_missing(TRIAL)
    assert asked == [(TRIAL, tmp_path / "there")]
    assert not (tmp_path / "there").exists()


def test_a_run_that_fails_is_named(tmp_path: Path) -> None:
    first = TRIAL.specs()[0]
    place = first.directory(tmp_path / "results")
    place.parent.mkdir(parents=True)
    place.write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=f"1 runs failed, the first of them {first.id}: "):
        Order(tmp_path, results=tmp_path / "results").run_missing(TRIAL)
    assert place.read_text(encoding="utf-8") == "mine"


def test_bad_orders_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`seed` must not be negative; got -1"):
        Order(tmp_path, seed=-1)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="`out` must be a directory; got "):
        Order(tmp_path / "file")
