"""Every tutorial runs as it is printed: its python blocks, one after the other, are one script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.quick import quick_defaults

USAGE = Path(__file__).parents[2] / "docs" / "usage"
CASES = ["learning.md", "your-environment.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script(name: str) -> str:
    """The python blocks of a tutorial, on the lines they have in it: a traceback points into the page."""
    text = (USAGE / name).read_text()
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block.group(1).splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


@pytest.mark.parametrize("name", CASES)
def test_a_tutorial_runs_as_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = script(name)
    assert "import optimist" in source
    with quick_defaults():
        exec(compile(source, str(USAGE / name), "exec"), {"__name__": "__main__"})
