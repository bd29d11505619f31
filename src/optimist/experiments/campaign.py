"""A campaign: many runs, on one machine or many; what is missing is run, what is recorded is skipped.

Engine `local` is joblib with loky, one process per core. Engine `dask` hands the runs to a Dask scheduler
that exists already; its workers must see the same directory. Every worker uses one thread for BLAS and one
for planning, so they do not fight over cores. A run that fails is named and the others go on; one that was
interrupted (a worker died) is resumed, by whoever runs it next, where it stopped.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from optimist.experiments.kinds import find_kind
from optimist.experiments.online import start_run
from optimist.experiments.problems import Problem, find_problem
from optimist.experiments.specs import RunSpec, require_distinct
from optimist.given import one_line, told
from optimist.runs import DamagedError, RunError, RunStore
from optimist.runs.describe import describe_task
from optimist.runs.files import RECORD
from optimist.runs.record import finished

ENGINES = ("local", "dask")
ATTEMPTS = 3  # of a campaign whose local workers die
PATIENCE = "10s"  # for a scheduler to answer
AGAIN = "running the same again resumes it"


@dataclass(frozen=True)
class Outcome:
    """How one run went."""

    id: str
    status: str  # done, skipped or failed
    error: str | None = None  # one sentence


@dataclass(frozen=True)
class Tls:
    """Certificates for a scheduler that asks for them (`tls://`): files in PEM."""

    ca: Path  # who signed the others' certificates
    cert: Path  # ours
    key: Path  # of ours

    def security(self) -> Any:
        """As Dask takes it: nothing goes over the wire in the clear."""
        from distributed.security import Security  # noqa: PLC0415

        files = {"tls_ca_file": self.ca, "tls_client_cert": self.cert, "tls_client_key": self.key}
        return Security(require_encryption=True, **{name: str(file) for name, file in files.items()})

    def require_files(self) -> None:
        """Raise ValueError unless all of them are there."""
        for name in ("ca", "cert", "key"):
            if not getattr(self, name).is_file():
                raise ValueError(f"--tls-{name} must be a file; got {getattr(self, name)}.")


OnOutcome = Callable[[Outcome], None]
Engine = Callable[[list[RunSpec], str], Iterator[Outcome]]


def run_campaign(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    engine: str = "local",
    address: str | None = None,
    tls: Tls | None = None,
    workers: int | None = None,
    on_outcome: OnOutcome | None = None,
) -> list[Outcome]:
    """Run what is missing of `specs` below `root`; how each went, in the order given.

    Engine dask trusts its cluster: whoever can talk to the scheduler can run code there and here (see
    SECURITY.md).
    """
    require_distinct(specs)
    root = root.resolve()  # workers may be elsewhere
    work = find_engine(engine, address, tls, workers)
    outcomes: dict[str, Outcome] = {}

    def note(outcome: Outcome) -> None:
        outcomes[outcome.id] = outcome
        if on_outcome is not None:
            on_outcome(outcome)

    missing = []
    problems: dict[str, Problem] = {}
    for spec in specs:
        try:
            recorded = is_recorded(spec, root, problems)
        except (RunError, DamagedError) as error:
            note(Outcome(spec.id, "failed", str(error)))
            continue
        if recorded:
            note(Outcome(spec.id, "skipped"))
        else:
            missing.append(spec)
    if missing:
        for outcome in work(missing, str(root)):
            note(outcome)
    return [outcomes[spec.id] for spec in specs]


def is_recorded(spec: RunSpec, root: Path, problems: dict[str, Problem] | None = None) -> bool:
    """Whether all its episodes are there; a ValueError when something else is in its place.

    `problems` are those found before: an environment of one's own need not be made again for every run.
    """
    directory = spec.directory(root)
    if not (directory / RECORD).exists():
        return False
    found = {} if problems is None else problems
    if spec.problem not in found:
        found[spec.problem] = find_problem(spec.problem)
    with RunStore.open(directory, writing=False) as store:
        header = store.header
        _require_expected(header, spec, found[spec.problem], directory)
        return finished(store.episodes()) >= spec.episodes


def _require_expected(header: dict[str, Any], spec: RunSpec, problem: Problem, directory: Path) -> None:
    for name, expected in _expected(spec, problem).items():
        if name not in header:
            raise RunError(f"The record of the run in {directory} is damaged: no {name}.")
        if header[name] != expected:
            must = f"be {spec.id}; its {name} is {header[name]!r}"
            if name in ("settings", "task"):
                must = f"have the {name} of this version and preset; got others"
            raise ValueError(
                f"The run in {directory} must {must}. Move it away, or choose another directory."
            )


def _expected(spec: RunSpec, problem: Problem) -> dict[str, Any]:
    """What the header of the run says."""
    settings = find_kind(spec.agent).choose(problem, spec.preset, None)
    return {
        "problem": problem.name,
        "agent": spec.agent,
        "seed": spec.seed,
        "settings": settings.model_dump(mode="json"),
        "task": describe_task(problem.task),
    }


def execute(spec: RunSpec, root: Path) -> None:
    """Make one run, or go on with it."""
    directory, problem = spec.directory(root), find_problem(spec.problem)
    if (directory / RECORD).exists():
        run = find_kind(spec.agent).reopen(directory, problem, True)
    else:
        run = start_run(
            problem,
            spec.agent,
            seed=spec.seed,
            run=directory,
            episodes=spec.episodes,
            preset=spec.preset,
        )
    with run:
        if finished(run.episodes) < spec.episodes:
            run.learn(episodes=spec.episodes)


def _worked(spec: RunSpec, root: str) -> Outcome:
    """What a worker does: one run, on one core, whatever happens."""
    try:
        # standard output is for results, whatever an environment prints
        with _one_thread(), threadpool_limits(1), redirect_stdout(sys.stderr):
            execute(spec, Path(root))
    except (Exception, SystemExit) as error:  # the others shall go on
        said = one_line(str(error)) if isinstance(error, ValueError | RunError) else told(error)
        return Outcome(spec.id, "failed", said)
    return Outcome(spec.id, "done")


@contextmanager
def _one_thread() -> Iterator[None]:
    before = os.environ.get("OPTIMIST_THREADS")
    os.environ["OPTIMIST_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OPTIMIST_THREADS"]
        else:
            os.environ["OPTIMIST_THREADS"] = before


def find_engine(name: str, address: str | None, tls: Tls | None, workers: int | None) -> Engine:
    """The engine of that name, its arguments checked."""
    if name not in ENGINES:
        raise ValueError(f"The engine must be one of {', '.join(ENGINES)}; got {name!r}.")
    if name == "local":
        for what in [name for name, given in (("An address", address), ("TLS", tls)) if given is not None]:
            raise ValueError(f"{what} must come with engine dask; got engine local.")
        return lambda specs, root: _locally(specs, root, workers or os.cpu_count() or 1)
    if address is None:
        raise ValueError("Engine dask must have a scheduler (--address tcp://host:8786); got none.")
    if tls is not None:
        tls.require_files()
        if not address.startswith("tls://"):
            raise ValueError(
                f"The address must begin with tls:// when certificates are given; got {address}."
            )
    return lambda specs, root: _on_cluster(specs, root, address, tls)


def _locally(specs: list[RunSpec], root: str, workers: int) -> Iterator[Outcome]:
    """On this machine; when a worker dies, what it left is given to new ones."""
    left = {spec.id: spec for spec in specs}
    try:
        for _ in range(ATTEMPTS):
            tasks = [delayed(_worked)(spec, root) for spec in left.values()]
            try:
                with parallel_config(backend="loky", inner_max_num_threads=1):
                    pool = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
                    for outcome in pool(tasks):
                        del left[outcome.id]
                        yield outcome
            except TerminatedWorkerError:
                continue
            break
        for name in left:
            yield Outcome(
                name, "failed", "The process that ran it died; running the campaign again resumes it."
            )
    finally:
        if workers > 1:
            get_reusable_executor().shutdown(wait=True)


def _on_cluster(specs: list[RunSpec], root: str, address: str, tls: Tls | None) -> Iterator[Outcome]:
    """On the workers of a Dask scheduler, whoever of them is there, or comes later."""
    try:
        from distributed import CancelledError, Client, as_completed  # noqa: PLC0415
        from distributed.scheduler import KilledWorker  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            "Engine dask needs distributed, which is not installed: pip install 'optimist[distributed]'."
        ) from None
    _hush("distributed")  # what goes wrong is said in one sentence
    try:
        secured = {} if tls is None else {"security": tls.security()}  # else what Dask's own settings say
        client: Any = Client(address, timeout=PATIENCE, set_as_default=True, **secured)
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        raise ValueError(
            f"The scheduler must be reachable; got {address}, which does not answer. "
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`."
        ) from error
    with closing(client):
        if not client.scheduler_info()["workers"]:
            raise ValueError(
                f"The scheduler must have workers; got {address}, which has none. "
                "Start some with `dask worker ADDRESS`."
            )
        futures = {
            client.submit(_worked, spec, root, key=f"optimist/{spec.id}", pure=False): spec for spec in specs
        }
        for future in as_completed(list(futures)):
            try:
                yield future.result()
            except (CancelledError, KilledWorker, OSError) as error:
                said = f"The cluster lost it ({type(error).__name__}); {AGAIN}."
                yield Outcome(futures[future].id, "failed", said)


def _hush(package: str) -> None:
    """No log lines of a package, whose loggers have levels of their own."""
    for name in [package, *logging.root.manager.loggerDict]:
        if name == package or name.startswith(f"{package}."):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
