"""`optimist sweep`, `optimist reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from optimist.cli.output import print_json
from optimist.cli.problems import AsJson
from optimist.experiments.campaign import ENGINES, OnOutcome, Outcome, Tls, find_engine, run_campaign
from optimist.experiments.specs import Experiment, RunSpec, read_experiment
from optimist.paper import RESULTS, Order
from optimist.starting import was_stopped

Engine = Annotated[str, typer.Option(help=f"Where to run: {' or '.join(ENGINES)}.")]
Address = Annotated[
    str | None, typer.Option(help="The Dask scheduler, such as tcp://host:8786; only with engine dask.")
]
TLS_CA = "Certificate of who signed those of the Dask cluster (PEM); with --tls-cert and --tls-key."
TlsCa = Annotated[Path | None, typer.Option(metavar="FILE", help=TLS_CA)]
TlsCert = Annotated[Path | None, typer.Option(metavar="FILE", help="Our own certificate (PEM).")]
TlsKey = Annotated[Path | None, typer.Option(metavar="FILE", help="The key of our certificate (PEM).")]
Workers = Annotated[int | None, typer.Option(help="Processes of engine local; by default one per core.")]
Results = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are recorded.")]
FILE = f"The experiment: `name = ...`, then tables {escape('[[runs]]')} of problems, agents and seeds."
WHAT = f"{', '.join(list(RESULTS)[:-1])} or {list(RESULTS)[-1]}"


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help=FILE)],
    results: Results = Path("results"),
    engine: Engine = "local",
    address: Address = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run many runs: what is missing is run, what is recorded is skipped."""
    where = Where(engine, address, _tls(tls_ca, tls_cert, tls_key), workers)
    outcomes = _swept(read_experiment(file), results, where)
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
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's results from recorded runs, running what is missing."""
    if what not in RESULTS:
        raise ValueError(f"What to reproduce must be {WHAT}; got {what!r}.")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}.")

    where = Where(engine, address, _tls(tls_ca, tls_cert, tls_key), workers)

    def run(experiment: Experiment, root: Path) -> None:
        outcomes = _swept(experiment, root, where)
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


@dataclass(frozen=True)
class Where:
    """What runs a campaign."""

    engine: str
    address: str | None
    tls: Tls | None
    workers: int | None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers must be at least 1; got {self.workers}.")
        find_engine(self.engine, self.address, self.tls, self.workers)  # refused before anything is planned


def _tls(ca: Path | None, cert: Path | None, key: Path | None) -> Tls | None:
    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise ValueError("--tls-ca, --tls-cert and --tls-key must come together; got some of them.")
    return Tls(ca, cert, key)


def _swept(experiment: Experiment, results: Path, where: Where) -> list[Outcome]:
    specs = experiment.specs()
    with _campaign_progress(experiment.name, specs) as on_outcome:
        try:
            return run_campaign(specs, results, **vars(where), on_outcome=on_outcome)
        except (Exception, KeyboardInterrupt) as error:
            if not was_stopped(error):
                raise
            print("optimist: stopped; the same command goes on.", file=sys.stderr)
            raise typer.Exit(1) from None


@contextmanager
def _campaign_progress(name: str, specs: Sequence[RunSpec]) -> Iterator[OnOutcome]:
    """One bar for the whole campaign, on standard error, when that is a terminal."""
    columns = (BarColumn(30), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True, quiet=hidden), disable=hidden) as bar:
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
