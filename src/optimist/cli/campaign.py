"""`optimist sweep`, `optimist reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from optimist.cli.output import print_json
from optimist.cli.problems import AsJson
from optimist.experiments.campaign import ENGINES, OnOutcome, Outcome, run_campaign
from optimist.experiments.specs import Experiment, RunSpec, read_experiment
from optimist.paper import RESULTS, Order

Engine = Annotated[str, typer.Option(help=f"Where to run: {' or '.join(ENGINES)}.")]
Address = Annotated[
    str | None, typer.Option(help="The Dask scheduler, such as tcp://host:8786; only with engine dask.")
]
Workers = Annotated[int | None, typer.Option(help="Processes of engine local; by default one per core.")]
Results = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are recorded.")]
WHAT = f"{', '.join(list(RESULTS)[:-1])} or {list(RESULTS)[-1]}"


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment: its name, and runs.")],
    results: Results = Path("results"),
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run many runs: what is missing is run, what is recorded is skipped."""
    outcomes = _swept(read_experiment(file), results, engine, address, workers)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if as_json:
        print_json(
            {
                "runs": [{"id": outcome.id, "status": outcome.status} for outcome in outcomes],
                "failed": [{"id": outcome.id, "error": outcome.error} for outcome in failed],
            }
        )
    else:
        counts = {name: sum(outcome.status == name for outcome in outcomes) for name in ("done", "skipped")}
        print(f"{counts['done']} runs done, {counts['skipped']} recorded before, in {results}")
    _exit_if_failed(failed)


def reproduce(
    what: Annotated[str, typer.Argument(help=f"{WHAT}.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where tables and figures go.")] = Path(
        "out/paper"
    ),
    results: Results = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and episodes: some minutes.")] = False,
    seed: Annotated[int, typer.Option(help="The run that figure5 shows.")] = 0,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's results from recorded runs, running what is missing."""
    if what not in RESULTS:
        raise ValueError(f"What to reproduce must be {WHAT}; got {what!r}.")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}.")

    def run(experiment: Experiment, root: Path) -> None:
        outcomes = _swept(experiment, root, engine, address, workers)
        _exit_if_failed([outcome for outcome in outcomes if outcome.status == "failed"])

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    files = RESULTS[what](Order(out, results, quick, seed, run, say))
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    for file in files:
        if file.suffix == ".md":
            print(file.read_text(encoding="utf-8"), end="")
    for file in files:
        print(f"  {file}")


def _swept(
    experiment: Experiment, results: Path, engine: str, address: str | None, workers: int | None
) -> list[Outcome]:
    specs = experiment.specs()
    if workers is not None and workers < 1:
        raise ValueError(f"--workers must be at least 1; got {workers}.")
    with _campaign_progress(experiment.name, specs) as on_outcome:
        try:
            return run_campaign(
                specs, results, engine=engine, address=address, workers=workers, on_outcome=on_outcome
            )
        except KeyboardInterrupt:
            print("optimist: stopped; the same command goes on.", file=sys.stderr)
            raise typer.Exit(1) from None


@contextmanager
def _campaign_progress(name: str, specs: Sequence[RunSpec]) -> Iterator[OnOutcome]:
    """One bar for the whole campaign, on standard error, when that is a terminal."""
    columns = (BarColumn(30), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=len(specs))
        failed: list[str] = []

        def listen(outcome: Outcome) -> None:
            failed.extend([outcome.id] if outcome.status == "failed" else [])
            said = f"{outcome.id} {outcome.status}" + (f", {len(failed)} failed" if failed else "")
            bar.update(task, advance=1, description=said)

        yield listen


def _exit_if_failed(failed: Sequence[Outcome]) -> None:
    for outcome in failed:
        print(f"optimist: {outcome.id} failed: {outcome.error}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)
