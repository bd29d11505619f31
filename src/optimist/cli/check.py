"""`optimist check`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from optimist.cli.output import print_json
from optimist.cli.problems import AsJson
from optimist.runs.check import Checked
from optimist.runs.check import check as check_run

VOID = "Mark the transition of that number as not to be learned from; it stays in the record. Repeatable."
SALVAGE = "Make a new run there of what is whole; `optimist resume` goes on with it."
DIRECTORY = "The directory of the run."


def check(
    run: Annotated[str, typer.Argument(metavar="DIR", help=DIRECTORY)],
    void: Annotated[list[int] | None, typer.Option(metavar="N", help=VOID, show_default=False)] = None,
    salvage: Annotated[str | None, typer.Option(metavar="NEW_DIR", help=SALVAGE)] = None,
    as_json: AsJson = False,
) -> None:
    """Is this record whole? From where on not, and what can be saved? Exit code 2: not, and nothing saved."""
    new = None if salvage is None else named(salvage, "--salvage")
    found = check_run(named(run, "DIR"), void=void or (), salvage=new)
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)
    if not found.ok and found.saved is None:
        raise typer.Exit(2)


def named(directory: str, option: str) -> Path:
    """The directory of a run; no name at all would be the one we are in."""
    if not directory.strip():
        raise ValueError(f"{option} must name a directory; got {directory!r}.")
    return Path(directory)


def _print(found: Checked) -> None:
    counts = f"{found.transitions} transitions, {found.episodes} episodes, {found.plans} plans"
    print(f"{found.run}: {'whole' if found.ok else 'not whole'}")
    for problem in found.problems:
        print(f"  problem: {problem}")
    for warning in found.warnings:
        print(f"  {warning}")
    print(
        f"  whole: {counts}" if found.savable else "  nothing can be saved: the settings of the run are gone"
    )
    if found.void:
        print(f"  not learned from: {', '.join(map(str, found.void))}")
    if found.saved is not None:
        print(f"  saved: {found.saved}; go on: optimist resume {found.saved}")
    elif not found.ok and found.savable:
        print(f"  to go on with what is whole: optimist check {found.run} --salvage NEW_DIR")
