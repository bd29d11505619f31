"""Every page is as good as its word: its code runs as it is printed, its commands and settings are real."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest
import typer.main

from optimist.agents import settings_of
from optimist.cli.main import app
from optimist.experiments.specs import read_experiment
from tests.integration.pages import ROOT, blocks, commands, pages, script
from tests.quick import hurried

TOO_MUCH = {  # blocks that begin so are not run here
    "docs/usage/experiments.md": (
        "from pathlib import Path\n\nfrom optimist.paper",  # minutes; tests/paper has it small
        "from dask_jobqueue",  # needs a SLURM cluster
    ),
}
ELSEWHERE = {"docs/extending.md"}  # test_extending.py
SCRIPTS = [page for page in pages() if blocks("python", page) and page not in ELSEWHERE]

SESSIONS = [
    "README.md",
    "docs/usage/learning.md",
    "docs/pictures.md",
]  # your-environment.md: test_own_environment
MINUTES = ("reproduce", "sweep")  # tests/paper and tests/cli have them small
SMALLER = ("--budget", "100", "--lookahead", "1")  # of plans
LARGE = ("plan", "acrobot", "--recipe", "paper")  # tests/integration/test_best_possible.py


@pytest.mark.parametrize("page", SCRIPTS)
def test_a_page_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = script(page, without=TOO_MUCH.get(page, ()))
    with hurried():
        exec(compile(source, str(ROOT / page), "exec", dont_inherit=True), {"__name__": "__main__"})


@pytest.mark.parametrize("page", TOO_MUCH)
def test_what_is_not_run_imports_what_there_is(page: str) -> None:
    kept = [block for block in blocks("python", page) if block.code.startswith(TOO_MUCH[page])]
    assert len(kept) == len(TOO_MUCH[page])
    for block in kept:
        ours = [line for line in ast.parse(block.code).body if ast.unparse(line).startswith("from optimist")]
        exec(compile(ast.Module(ours, []), str(ROOT / page), "exec"), {})


@pytest.mark.parametrize("page", [page for page in pages() if blocks("console", page)])
def test_every_command_that_a_page_shows_is_one(page: str) -> None:
    known = typer.main.get_command(app)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for program, *words in commands(page):
        if program == "make":
            assert set(words) <= set(targets), words
        if program == "optimist":
            known.commands[words[0]].make_context(words[0], words[1:])  # type: ignore[attr-defined]
        if program == "python" and words[0].endswith(".py"):
            assert (ROOT / words[0]).exists(), words
        if program == "python" and words[0] == "-m":
            assert importlib.util.find_spec(words[1]), words


@pytest.mark.filterwarnings("ignore::UserWarning")  # twenty steps are no episode of a cart-pole
@pytest.mark.parametrize("page", SESSIONS)
def test_the_commands_of_a_page_work_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with short episodes on few nodes; what takes minutes is left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "my_robot", raising=False)
    (tmp_path / "out").mkdir()
    (mine,) = [
        block.code
        for block in blocks("python", "docs/usage/your-environment.md")
        if block.code.startswith("# my_cart.py")
    ]
    (tmp_path / "my_robot.py").write_text(mine)
    for program, *words in commands(page):
        served = words[0] == "watch" or "--watch" in words  # tests/cli/test_watch.py has those
        if program == "optimist" and not served and words[0] not in MINUTES and tuple(words[:4]) != LARGE:
            with hurried():
                app([*words, *(SMALLER if words[0] == "plan" else [])], standalone_mode=False)
            assert capsys.readouterr().out
            for picture in [word for word in words if word.endswith(".png")]:
                assert Path(picture).stat().st_size > 0


def test_settings_that_pages_show_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "shown.toml"
    shown = [block for page in pages() for block in blocks("toml", page)]
    assert len(shown) >= 3
    for block in shown:
        file.write_text(block.code)
        if "[[runs]]" in block.code:
            (tmp_path / "my_cart.py").touch()
            assert read_experiment(file).specs()
        else:
            settings_of("gp-rmax-exp", file=file)
