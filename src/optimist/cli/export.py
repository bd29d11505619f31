"""`optimist export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optimist.cli.check import named
from optimist.cli.learn import Directory, Named
from optimist.cli.output import print_json, progress
from optimist.cli.problems import AsJson
from optimist.experiments.online import open_run
from optimist.exports import FORMATS, export_policy
from optimist.exports import export as export_run
from optimist.learner import GPRMax

POLICY = "c"
KINDS = (*FORMATS, POLICY)
TO = "csv (a folder), jsonl (a file), tensorboard or minari (folders), c (the policy as C code)."
OUT = "Where to; by default below DIR/exports. What is there is written over."


def export(
    run: Directory,
    to: Annotated[str, typer.Option(metavar="FORMAT", help=TO)],
    out: Annotated[str | None, typer.Option(metavar="PATH", help=OUT, show_default=False)] = None,
    problem: Named = None,
    as_json: AsJson = False,
) -> None:
    """Write what a run has recorded for other programs."""
    directory = named(run, "DIR")
    place = None if out is None else named(out, "--out")
    if to not in KINDS:
        raise ValueError(f"--to must be one of {', '.join(KINDS)}; got {to!r}.")
    if to == POLICY:
        file = _policy(directory, problem, place or directory / "exports" / "policy.c")
    else:
        file = export_run(directory, to, place)
    if as_json:
        print_json({"run": run, "to": to, "file": str(file)})
    else:
        print(f"{run}: {to} in {file}")


def _policy(directory: Path, problem: str | None, file: Path) -> Path:
    """The best that a run knows, as C; for that its problem must be known."""
    with progress(f"bringing {directory} back"):
        opened, _ = open_run(directory, problem, writing=False)
        with opened:
            if not isinstance(opened, GPRMax):
                raise ValueError(
                    f"The agent must be one that plans to be written as C; got the run in {directory}."
                )
            return export_policy(opened, file)
