"""Rules that import-linter cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import optimist

SOURCE = Path(optimist.__file__).parent


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, optimist; print([m for m in ('numba', 'matplotlib', 'typer') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_planning_loads_neither_matplotlib_nor_gymnasium() -> None:
    program = (
        "import sys, optimist.experiments.offline; "
        "print([m for m in ('matplotlib', 'gymnasium') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_command_starts_without_compiling_and_without_what_only_learning_needs() -> None:
    """Whoever installs it and asks for help must not wait for a compiler."""
    program = (
        "import sys, optimist.cli.main\n"
        "from optimist.agents.sarsa import run_episodes\n"
        "from optimist.systems import SYSTEMS\n"
        "functions = [run_episodes, *(f for s in SYSTEMS.values() for f in (s.step, s.outcome))]\n"
        "print([f.signatures for f in functions if f.signatures])\n"
        "print([m for m in ('scipy.spatial', 'scipy.optimize', 'matplotlib', 'dask') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["[]", "[]"]


def loaded_by(*modules: str) -> set[str]:
    """All modules of a fresh interpreter that imports these, and everything they import."""
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def parts_of(package: str) -> list[str]:
    """A package and its modules, by the names they are imported with."""
    files = (SOURCE / package).rglob("*.py")
    names = [".".join(file.relative_to(SOURCE.parent).with_suffix("").parts) for file in files]
    return sorted(name.removesuffix(".__init__") for name in names)


@pytest.mark.parametrize("package", ["agents", "models", "planning", "gp"])
def test_agents_cannot_reach_the_true_systems_or_any_environment(package: str) -> None:
    """Not even through what they import: without this no claim of sample efficiency is worth anything."""
    loaded = loaded_by(*parts_of(package))
    assert f"optimist.{package}" in loaded
    # the hook that waits for Gymnasium is loaded whenever Python starts, see `environments.discovery`
    waiting = {"optimist.environments", "optimist.environments.discovery"}
    forbidden = ("optimist.systems", "optimist.environments", "gymnasium")
    reached = {name for name in loaded if name.startswith(forbidden)} - waiting
    assert not reached


def test_the_package_of_that_hook_holds_nothing_else() -> None:
    """Or what is allowed above would open a door."""
    tree = ast.parse((SOURCE / "environments" / "__init__.py").read_text())
    assert [type(node) for node in tree.body] == [ast.Expr]


def test_no_source_file_is_hidden_from_git() -> None:
    """A package that .gitignore swallows is there on this machine and nowhere else."""
    root = SOURCE.parent.parent
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    found = sorted([*SOURCE.rglob("*.py"), *(root / "tests").rglob("*.py")])
    files = [str(file.relative_to(root)) for file in found]
    ran = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        input="\n".join(files),
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.split() == []


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_modules_are_documented_and_short(file: Path) -> None:
    text = file.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 400


@pytest.mark.parametrize("file", sorted((SOURCE / "compiled").glob("*.py")), ids=lambda file: file.name)
def test_compiled_code_has_no_classes_and_raises_nothing(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.Raise)]
