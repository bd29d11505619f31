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


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_modules_are_documented_and_short(file: Path) -> None:
    text = file.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 400


@pytest.mark.parametrize("file", sorted((SOURCE / "compiled").glob("*.py")), ids=lambda file: file.name)
def test_compiled_code_has_no_classes_and_raises_nothing(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.Raise)]
