"""The tutorial's environment in a file goes through every command that the tutorial shows, as printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "usage" / "your-environment.md"


def block(kind: str, begins: str) -> str:
    """The code block of that kind that begins so."""
    found: list[str] = re.findall(rf"^```{kind}\n(.*?)^```$", TUTORIAL.read_text(), re.M | re.S)
    (mine,) = [text for text in found if text.startswith(begins)]
    return mine


def test_the_commands_of_the_tutorial_do_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "my_cart.py").write_text(block("python", "# my_cart.py"))
    (tmp_path / "carts.toml").write_text(block("toml", 'name = "carts"'))
    printed = {}
    for line in block("console", "optimist learn my_cart.py").splitlines():
        name, *words = line.split()
        assert name == "optimist"
        ran = subprocess.run(
            [sys.executable, "-m", "optimist", *words, "--json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        printed[words[0]] = json.loads(ran.stdout)
    assert set(printed) == {"learn", "resume", "evaluate", "sweep"}
    assert (tmp_path / "cart.png").stat().st_size > 0
    assert [row["episode"] for row in printed["resume"]["episodes"]] == [1, 2, 3]
    assert printed["resume"]["episodes"][:2] == printed["learn"]["episodes"]
    assert {row["kind"] for row in printed["evaluate"]["episodes"]} == {"reset"}
    assert [run["status"] for run in printed["sweep"]["runs"]] == ["done", "done"]
    assert printed["sweep"]["runs"][1]["id"] == "carts/my_cart.make_env/gp-rmax-exp/seed-1"
