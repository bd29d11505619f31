"""Many runs, on one machine or many: what is missing is run, what is recorded is skipped.

Engine `local` is joblib with loky, one process per core. Engine `dask` is joblib's Dask backend on a
scheduler that exists already; its workers must see the same directory. Every worker uses one thread for BLAS
and one for planning, so they do not fight over cores. A run that fails is named and the others go on; one
that was interrupted (a worker died) is resumed, by whoever runs it next, where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from optimist.experiments.online import learning_settings, open_run, start_run
from optimist.experiments.sarsa_online import resume_sarsa, run_sarsa
from optimist.experiments.specs import SARSA_AGENTS, RunSpec, require_distinct
from optimist.runs import RunStore
from optimist.runs.store import FILE

ENGINES = ("local", "dask")


@dataclass(frozen=True)
class Outcome:
    """How one run went."""

    id: str
    status: str  # done, skipped or failed
    error: str | None = None  # one sentence


Listener = Callable[[Outcome], None]


def run_sweep(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    listener: Listener | None = None,
) -> list[Outcome]:
    """Run what is missing of `specs` below `root`; how each went, in the order given."""
    require_distinct(specs)
    outcomes = {spec.id: Outcome(spec.id, "skipped") for spec in specs if is_recorded(spec, root)}
    for outcome in outcomes.values():
        if listener is not None:
            listener(outcome)
    missing = [spec for spec in specs if spec.id not in outcomes]
    if missing:
        with _engine(engine, address, workers) as how:
            tasks = (delayed(_worked)(spec, str(root)) for spec in missing)
            for outcome in Parallel(return_as="generator_unordered", **how)(tasks):
                outcomes[outcome.id] = outcome
                if listener is not None:
                    listener(outcome)
    return [outcomes[spec.id] for spec in specs]


def is_recorded(spec: RunSpec, root: Path) -> bool:
    """Whether all its episodes are there; a ValueError when something else is in its place."""
    directory = spec.directory(root)
    if not (directory / FILE).exists():
        return False
    with RunStore.open(directory, writing=False) as store:
        header = store.header
        for name in ("problem", "agent", "seed"):
            if header[name] != getattr(spec, name):
                raise ValueError(
                    f"The run in {directory} must be {spec.id}; its {name} is {header[name]!r}. "
                    "Move it away, or choose another directory."
                )
        _require_same_settings(spec, header, directory)
        return len(store.episodes()) >= spec.episodes


def _require_same_settings(spec: RunSpec, header: dict[str, Any], directory: Path) -> None:
    if spec.agent in SARSA_AGENTS:
        return
    settings = learning_settings(spec.problem, spec.agent, preset=spec.preset).model_dump(mode="json")
    if header["settings"] != settings:
        raise ValueError(
            f"The run in {directory} must have the settings of this version and preset; got others. "
            "Move it away, or choose another directory."
        )


def execute(spec: RunSpec, root: Path) -> None:
    """Make one run, or go on with it."""
    directory = spec.directory(root)
    if spec.agent in SARSA_AGENTS:
        if (directory / FILE).exists():
            resume_sarsa(directory, episodes=spec.episodes)
        else:
            run_sarsa(spec.problem, spec.agent, seed=spec.seed, episodes=spec.episodes, directory=directory)
        return
    if (directory / FILE).exists():
        learner, _ = open_run(directory, writing=True)
    else:
        settings = learning_settings(spec.problem, spec.agent, preset=spec.preset)
        learner = start_run(
            spec.problem, settings, agent=spec.agent, seed=spec.seed, run=directory, episodes=spec.episodes
        )
    with learner:
        if len(learner.episodes) < spec.episodes:
            learner.learn(episodes=spec.episodes)


def _worked(spec: RunSpec, root: str) -> Outcome:
    """What a worker does: one run, on one core, whatever happens."""
    os.environ["OPTIMIST_THREADS"] = "1"
    try:
        with threadpool_limits(1):
            execute(spec, Path(root))
    except Exception as error:  # the others shall go on
        return Outcome(spec.id, "failed", f"{type(error).__name__}: {error}")
    return Outcome(spec.id, "done")


@contextmanager
def _engine(name: str, address: str | None, workers: int | None) -> Iterator[dict[str, Any]]:
    """Arguments for joblib, in a context where its backend is there."""
    if name not in ENGINES:
        raise ValueError(f"The engine must be one of {', '.join(ENGINES)}; got {name!r}.")
    if name == "local":
        if address is not None:
            raise ValueError("An address must come with engine dask; got engine local.")
        with parallel_config(backend="loky", inner_max_num_threads=1):
            yield {"n_jobs": workers or os.cpu_count() or 1, "batch_size": 1}
        return
    with _dask_client(address), parallel_config(backend="dask"):
        yield {"n_jobs": -1, "batch_size": 1}


@contextmanager
def _dask_client(address: str | None) -> Iterator[None]:
    if address is None:
        raise ValueError("Engine dask must have a scheduler (--address tcp://host:8786); got none.")
    try:
        from distributed import Client  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            "Engine dask needs distributed, which is not installed: pip install 'optimist[distributed]'."
        ) from None
    try:
        client: Any = Client(address, timeout="10s", set_as_default=True)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(
            f"The scheduler must be reachable; got {address}, which does not answer. "
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`."
        ) from error
    try:
        yield
    finally:
        client.close()
