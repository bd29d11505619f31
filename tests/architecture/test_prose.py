"""Markdown is read in terminals and in diffs as well: its prose keeps to 120 columns."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = 120  # characters
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
MARKER = re.compile(r"\s*([-*+>]|\d+[.)])\s+")


def long_lines(text: str) -> list[int]:
    """Lines of prose that are too long, counted from 1: no code, no tables, nothing that cannot be broken."""
    found = []
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        opened = FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line[opened.end() :].strip():
                fence = ""
        elif opened:
            fence = opened[1]
        elif (
            len(line) > WIDTH
            and not line.lstrip().startswith("|")
            and len(MARKER.sub("", line, 1).split()) > 1
        ):
            found.append(number)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word " * 23 + "words\n" + "word " * 24 + "w", [2]),
        ("| " + "word " * 30 + "|", []),
        ("```python\n" + "word " * 30 + "\n```\n" + "word " * 30, [4]),
        ("````\n```\n" + "word " * 30 + "\n````\n" + "word " * 30, [5]),
        ("- https://" + "w" * 120, []),
        ("- see https://" + "w" * 120, [1]),
    ],
    ids=["prose", "table", "code", "code within code", "address", "more than an address"],
)
def test_only_prose_that_can_be_broken_is_called_long(text: str, expected: list[int]) -> None:
    assert long_lines(text) == expected


def test_prose_keeps_to_its_columns() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    ran = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in ran.stdout.split("\0") if name and (ROOT / name).exists()]
    assert names
    found = [f"{name}:{number}" for name in names for number in long_lines((ROOT / name).read_text("utf-8"))]
    assert not found, f"Break these lines at {WIDTH} characters: {', '.join(found)}"
