"""`optimist sweep`, `optimist reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from optimist.cli.output import print_json, progress
from optimist.cli.problems import AsJson
from optimist.experiments import reproduce as paper
from optimist.experiments.comparison import (
    PEER_MINUTES,
    PEER_SEEDS,
    near_as_markdown,
    near_rows,
    peers_at_hand,
    statistics_as_markdown,
)
from optimist.experiments.peers import PEERS
from optimist.experiments.specs import Experiment, RunSpec, read_experiment
from optimist.experiments.sweep import ENGINES, Listener, Outcome, run_sweep
from optimist.systems import SYSTEMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Engine = Annotated[str, typer.Option(help=f"Where to run: {' or '.join(ENGINES)}.")]
Address = Annotated[
    str | None, typer.Option(help="The Dask scheduler, such as tcp://host:8786; only with engine dask.")
]
Workers = Annotated[int | None, typer.Option(help="Processes of engine local; by default one per core.")]
Results = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are recorded.")]
WHAT = "table, figure4, figure5 or peers"
FORMATS = ("pdf", "svg", "png")


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment: name and [[runs]].")],
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
    makers = {"table": _make_table, "figure4": _make_figure4, "figure5": _make_figure5, "peers": _make_peers}
    if what not in makers:
        raise ValueError(f"What to reproduce must be {WHAT}; got {what!r}.")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out must be a directory; got {out}: {error.strerror}.") from error
    order = _Order(out, results, quick, seed, engine, address, workers, quiet=as_json)
    files = makers[what](order)
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        for file in files:
            print(f"  {file}")


def _swept(
    experiment: Experiment, results: Path, engine: str, address: str | None, workers: int | None
) -> list[Outcome]:
    specs = experiment.specs()
    if workers is not None and workers < 1:
        raise ValueError(f"--workers must be at least 1; got {workers}.")
    with _sweep_progress(experiment.name, specs) as listener:
        try:
            return run_sweep(
                specs, results, engine=engine, address=address, workers=workers, listener=listener
            )
        except KeyboardInterrupt:
            print("optimist: stopped; the same command goes on.", file=sys.stderr)
            raise typer.Exit(1) from None


@contextmanager
def _sweep_progress(name: str, specs: Sequence[RunSpec]) -> Iterator[Listener]:
    """One bar for the whole sweep, on standard error, when that is a terminal."""
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


@dataclass(frozen=True)
class _Order:
    """What `reproduce` was asked for."""

    out: Path
    results: Path
    quick: bool
    seed: int
    engine: str
    address: str | None
    workers: int | None
    quiet: bool

    def run(self, experiment: Experiment) -> None:
        """Run what is missing."""
        outcomes = _swept(experiment, self.results, self.engine, self.address, self.workers)
        _exit_if_failed([outcome for outcome in outcomes if outcome.status == "failed"])

    def run_figure4(self) -> Experiment:
        """The runs of Figure 4, announced."""
        minutes = paper.MINUTES["quick" if self.quick else "full"]
        print(f"about {minutes} minutes on two cores if nothing is recorded", file=sys.stderr)
        experiment = paper.figure4(quick=self.quick)
        self.run(experiment)
        return experiment

    def stem(self, name: str) -> Path:
        """The file to write, without its suffix."""
        return self.out / (f"{name}-quick" if self.quick else name)

    def write_table(self, stem: Path, text: str) -> Path:
        """Write it down, and print it unless JSON is wanted."""
        file = stem.with_suffix(".md")
        file.write_text(text, encoding="utf-8")
        if not self.quiet:
            print(text, end="")
        return file


def _make_table(order: _Order) -> list[Path]:
    rows = []
    with progress("planning with the true dynamics") as say:
        for problem in SYSTEMS:
            say(problem)
            rows.append(paper.best_possible(problem))
    return [order.write_table(order.out / "table", paper.table_as_markdown(rows))]


def _make_figure4(order: _Order) -> list[Path]:
    _require_plots()
    from optimist.views.figure4 import draw_figure4  # noqa: PLC0415

    runs = paper.recorded_runs(order.run_figure4(), order.results)
    best = _best(runs)
    note = (
        "medians over seeds (0, 1, ...), bands: 95 % bootstrap intervals of the median; "
        "settings: preset 'ours', docs/background/sarsa.md; long curves are medians of blocks of episodes"
    )
    figures = _saved(draw_figure4(paper.curves(runs), best, note), order.stem("figure4"))
    return [*figures, order.write_table(order.stem("figure4"), statistics_as_markdown(runs, best))]


def _make_figure5(order: _Order) -> list[Path]:
    _require_plots()
    from optimist.views.figure5 import Snapshot, draw_figure5  # noqa: PLC0415
    from optimist.views.plan_figure import Slice  # noqa: PLC0415

    experiment = paper.figure5(seed=order.seed)
    order.run(experiment)
    system = SYSTEMS[paper.FIGURE5_PROBLEM]
    shown = Slice((0, 1), system.starts[0], system.axis_names)
    xs, ys, states = shown.lattice(system.task.box)
    found = paper.beliefs(experiment, order.results, states)
    snapshots = [Snapshot(b.title, b.values, b.uncertainty, b.samples) for b in found]
    note = f"mountain car, 100 x 100 nodes, preset 'ours', seed {order.seed}; value 0 where nothing is known"
    return _saved(draw_figure5(snapshots, shown, xs, ys, note), order.out / "figure5")


def _make_peers(order: _Order) -> list[Path]:
    seeds = 1 if order.quick else PEER_SEEDS
    peers = peers_at_hand(order.results, seeds)
    for peer in sorted(set(PEERS) - set(peers)):
        print(
            f"{peer} is left out: it is not installed (docs/usage/experiments.md says how)", file=sys.stderr
        )
    if peers:
        minutes = seeds * PEER_MINUTES
        print(f"the peers: about {minutes} minutes on one core if not recorded", file=sys.stderr)
    experiment = order.run_figure4()
    runs = paper.recorded_runs(experiment, order.results)
    best = _best(runs)
    with progress("transitions until near the best") as say:
        rows = list(near_rows(experiment, runs, order.results, best, peers=peers, peer_seeds=seeds, say=say))
    return [order.write_table(order.stem("peers"), near_as_markdown(rows))]


def _best(runs: paper.Runs) -> dict[str, float]:
    with progress("planning with the true dynamics"):
        return {problem: paper.best_total(problem) for problem in dict.fromkeys(p for p, _ in runs)}


def _saved(figure: Figure, stem: Path) -> list[Path]:
    from optimist.views.plan_figure import save_figure  # noqa: PLC0415

    files = [stem.with_suffix(f".{suffix}") for suffix in FORMATS]
    for file in files:
        save_figure(figure, file)
    return files


def _require_plots() -> None:
    from optimist.views.plan_figure import check_target  # noqa: PLC0415

    check_target(Path("figure.png"))
