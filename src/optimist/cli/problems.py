"""`optimist problems`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from optimist.cli.output import print_json
from optimist.systems import SYSTEMS
from optimist.systems.system import System

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


PROBLEM_HELP = (
    f"{', '.join(SYSTEMS)}, or your own: FILE.py:FUNCTION, which returns an environment; or a Gymnasium id."
)


def problems(as_json: AsJson = False) -> None:
    """List the problems."""
    if as_json:
        print_json({"problems": [_entry(system) for system in SYSTEMS.values()]})
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in (
        "problem",
        "what to do",
        "states",
        "actions",
        "discount",
        "best known",
        "Gymnasium",
    ):
        table.add_column(title, justify="right" if title in {"states", "actions"} else "left")
    for system in SYSTEMS.values():
        entry = _entry(system)
        table.add_row(
            system.name,
            system.summary,
            str(entry["state_dim"]),
            str(entry["n_actions"]),
            f"{entry['discount']:g}",
            "" if entry["best_known"] is None else f"{entry['best_known']:g}",
            system.gymnasium_id,
        )
    Console(width=140).print(table)


def _entry(system: System) -> dict[str, Any]:
    return {
        "name": system.name,
        "gymnasium_id": system.gymnasium_id,
        "state_dim": system.task.box.n_dims,
        "n_actions": system.task.n_actions,
        "discount": system.task.discount,
        "best_known": system.best_known,
    }
