"""The `optimist` command."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

import optimist
from optimist import starting
from optimist.cli import campaign, check, export, learn, plan, problems, replay, report, watch
from optimist.given import damaged_cache, one_line
from optimist.runs import RunError
from optimist.threads import default_threads

Refused: type[Any] = typer.BadParameter.__mro__[2]  # click's, wherever this version of typer keeps it

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
app.command("replay")(replay.replay)
app.command("check")(check.check)
app.command("export")(export.export)
app.command("watch")(watch.watch)
app.command("report")(report.report)
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
    default_threads()  # what cannot be is said at once


def main() -> None:
    """Run the command. Exit codes: 0 done, 1 the work failed, 2 bad input, 130 stopped by Ctrl-C."""
    warnings.showwarning = _warn
    try:
        starting.loaded()
        code = app(standalone_mode=False)
        if code == starting.STOPPED:
            _end("stopped.", code)
        sys.exit(code)
    except (Exception, KeyboardInterrupt) as error:
        if starting.was_stopped(error) or isinstance(error, typer.Abort):
            _end("stopped.", starting.STOPPED)
        damaged = damaged_cache(error)
        if damaged is not None:
            _end(f"the work failed: there is {damaged}.", 1)
        if isinstance(error, Refused):
            _end(_refusal(error), error.exit_code)
        if isinstance(error, ValueError):
            _end(str(error), 2)
        if isinstance(error, RunError):
            _end(str(error), 1)
        if isinstance(error, OSError | MemoryError):
            _end(f"the work failed: {str(error) or 'out of memory'}", 1)
        raise


def _refusal(error: Any) -> str:
    """What is wrong with the words on the command line, in one line: no boxes in a script's log."""
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "optimist"
    said = error.format_message().rstrip(".") or "A command must be named"
    return f"{said}. `{command} --help` says what there is."


def _warn(message: Warning | str, *_where: object, **_more: object) -> None:
    """Whoever typed a command wants the sentence, not the place in our code that says it."""
    print(f"optimist: {one_line(str(message))}", file=sys.stderr)


def _end(sentence: str, code: int) -> NoReturn:
    print(f"optimist: {one_line(sentence)}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
