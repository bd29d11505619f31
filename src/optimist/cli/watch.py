"""`optimist watch`: the live page; and the same beside `optimist learn`."""

from __future__ import annotations

import json
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from optimist.cli.check import named
from optimist.cli.output import print_json
from optimist.cli.problems import AsJson

DIRECTORY = "The directory of a run, or of many (a sweep's). It need not be there yet."
HOST = "The address to serve on. Anything but loopback lets others on the network look: there is no password."
PORT = "The port; by default 8010 if it is free, otherwise any."


def watch(
    run: Annotated[str, typer.Argument(metavar="DIR", help=DIRECTORY)],
    host: Annotated[str, typer.Option(help=HOST)] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help=PORT, min=0, max=65535, show_default=False)] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    until_input_ends: Annotated[bool, typer.Option(hidden=True)] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run, or many, on a page in the browser while it goes on or afterwards. Ctrl-C stops it."""
    directory = named(run, "DIR")
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"DIR must be a directory; got {run}, which is a file.")
    require_live()
    from optimist.views.page import server  # noqa: PLC0415

    made = server.bound(host, port)
    url = server.url_of(made, host)
    if not server.is_loopback(host):
        print("optimist: everybody who can reach this address can look at the run.", file=sys.stderr)

    def ready() -> None:
        if as_json:
            print_json({"url": url})
        else:
            print(f"{run}: {url} (Ctrl-C stops the page, not the run)")
        sys.stdout.flush()
        if open_browser:
            webbrowser.open(url)

    server.serve(directory, made, host, ready=ready, until=sys.stdin.read if until_input_ends else None)


def require_live() -> None:
    """Raise ValueError when what serves the page is not installed."""
    try:
        import starlette  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError:
        raise ValueError(
            "The page needs starlette and uvicorn, which are not installed: pip install 'optimist[live]'."
        ) from None


@contextmanager
def watched(directory: Path | None) -> Iterator[str | None]:
    """The page of a run served by a process of its own meanwhile: its address; None when not asked for.

    A process, so that the run does not wait for the page. It ends with this one, however this one ends: its
    input does.
    """
    if directory is None:
        yield None
        return
    require_live()
    command = [sys.executable, "-m", "optimist", "watch", str(directory), "--json", "--until-input-ends"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield json.loads(line)["url"] if line else None
