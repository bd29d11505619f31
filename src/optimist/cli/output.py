"""What goes to standard output (results) and to standard error (progress)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from optimist.documents import sayable


def print_json(result: dict[str, Any]) -> None:
    """One JSON object; numbers JSON cannot say (infinity) become null."""
    print(json.dumps(sayable(result), allow_nan=False))


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """Yields a function that says how far the work is; silent unless standard error is a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = not sys.stderr.isatty()
    console = Console(stderr=True, quiet=hidden)  # an older rich ends what it does not show with a line
    bar = Progress(*columns, console=console, transient=True, disable=hidden)
    with redirect_stdout(sys.stderr), bar:  # what somebody's own code prints is no result
        task = bar.add_task(what)
        yield lambda text: bar.update(task, description=f"{what}: {text}")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """The same with a bar: the function is told what is being done, how much of it, and of how much."""
    columns = (BarColumn(30), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = not sys.stderr.isatty()
    bar = Progress(*columns, console=Console(stderr=True, quiet=hidden), transient=True, disable=hidden)
    with redirect_stdout(sys.stderr), bar:
        task = bar.add_task(what, total=None)
        yield lambda text, done, total: bar.update(
            task, description=f"{what}: {text}", completed=done, total=total
        )
