"""The pages of the site, and the code on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """Code on a page."""

    page: str  # below the root
    line: int  # of its first line, from 0
    code: str


def pages() -> list[str]:
    """All that `docs/site/conf.py` takes in."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
    return sorted(str(file.relative_to(ROOT)) for file in files)


def blocks(language: str, page: str) -> list[Block]:
    """Those of a page in one language."""
    text = (ROOT / page).read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, found.start(2)), found[2])
        for found in BLOCK.finditer(text)
        if found[1] == language
    ]


def script(page: str, *, without: tuple[str, ...] = ()) -> str:
    """The python blocks of a page as one script, on the lines they have there: a traceback points into it."""
    lines: list[str] = []
    for block in blocks("python", page):
        if not block.code.startswith(without):
            lines += [""] * (block.line - len(lines)) + block.code.splitlines()
    return "\n".join(lines)


def commands(page: str) -> list[list[str]]:
    """What a page has typed into a terminal: words, line by line, without comments and what is printed."""
    found = []
    for block in blocks("console", page):
        lines = block.code.replace("\\\n", " ").splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ") or not prompted]
        found += [words for line in typed if (words := re.sub(r"\s+#.*| &$", "", line).split())]
    return found
