"""The `optimist` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import optimist
from optimist.cli import campaign, check, learn, plan, problems
from optimist.runs import RunError

app = typer.Typer(
    name="optimist",
    help="Learn to control a low-dimensional continuous system in a handful of episodes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("problems")(problems.problems)
app.command("plan")(plan.plan)
app.command("learn")(learn.learn)
app.command("resume")(learn.resume)
app.command("evaluate")(learn.evaluate)
app.command("check")(check.check)
app.command("sweep")(campaign.sweep)
app.command("reproduce")(campaign.reproduce)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"optimist {optimist.__version__}")
        raise typer.Exit


@app.callback()
def optimist_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn to control a low-dimensional continuous system in a handful of episodes."""


def main() -> None:
    """Run the command. Exit codes: 0 done, 1 the work failed, 2 bad input."""
    try:
        app()
    except ValueError as error:
        print(f"optimist: {error}", file=sys.stderr)
        sys.exit(2)
    except RunError as error:
        print(f"optimist: {error}", file=sys.stderr)
        sys.exit(1)
    except (OSError, MemoryError) as error:
        reason = str(error) or "out of memory"
        print(f"optimist: the work failed: {reason}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
