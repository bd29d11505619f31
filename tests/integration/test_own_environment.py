"""The tutorial's environment in a file goes through every command that the tutorial shows, as printed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from optimist.cli.main import app
from tests.quick import hurried

TUTORIAL = Path(__file__).parents[2] / "docs" / "usage" / "your-environment.md"


def block(kind: str, begins: str) -> str:
    """The code block of that kind that begins so."""
    found: list[str] = re.findall(rf"^```{kind}\n(.*?)^```$", TUTORIAL.read_text(), re.M | re.S)
    (mine,) = [text for text in found if text.startswith(begins)]
    return mine


def test_the_commands_of_the_tutorial_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process; `tests/cli` has them in their own, the sweep in many."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "my_cart", raising=False)  # of another folder
    (tmp_path / "my_cart.py").write_text(block("python", "# my_cart.py"))
    (tmp_path / "carts.toml").write_text(block("toml", 'name = "carts"'))
    printed = {}
    for line in block("console", "optimist learn my_cart.py").splitlines():
        name, *words = line.split()
        assert name == "optimist"
        here = ["--workers", "1"] if words[0] == "sweep" else []
        with hurried():
            app([*words, *here, "--json"], standalone_mode=False)
        printed[words[0]] = json.loads(capsys.readouterr().out)
    assert set(printed) == {"learn", "resume", "evaluate", "replay", "sweep"}
    assert (tmp_path / "cart.png").stat().st_size > 0
    assert [row["episode"] for row in printed["resume"]["episodes"]] == [1, 2, 3]
    assert printed["resume"]["episodes"][:2] == printed["learn"]["episodes"]
    assert {row["kind"] for row in printed["evaluate"]["episodes"]} == {"reset"}
    assert [run["status"] for run in printed["sweep"]["runs"]] == ["done", "done"]
    assert printed["sweep"]["runs"][1]["id"] == "carts/my_cart.make_env/gp-rmax-exp/seed-1"
