"""Agents as files: arrays in safetensors, everything else as JSON in its header. Nothing in it can run.

The header holds one JSON document (format version, settings, seed, the box and controls of the task, scalars
of the model) and the checksum of every array. Files are written beside, brought to disk and renamed: at any
instant there is a whole one.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from optimist.agents import GPRMaxAgent, Knowledge
from optimist.agents.settings import parse_settings
from optimist.gp import Hyperparameters, Inputs, Posterior
from optimist.models import GPDynamics
from optimist.models.drift import Drift
from optimist.models.regressor import Regressor
from optimist.planning import Plan
from optimist.runs.store import RunError
from optimist.task import Task
from optimist.transitions import Transition, Transitions

FORMAT_VERSION = 1
FILE = "agent.optimist"

Arrays = dict[str, NDArray[Any]]

# of a regressor: what is an array, and what is a number
INPUTS = ("centres", "scales", "periodic")
POSTERIOR = ("basis", "weights", "reduction")
HYPERPARAMETERS = ("signal_variance", "bias_variance", "noise_variance")
SCALARS = ("target_mean", "target_scale", "n_fitted", "n_data", "basis_cut")
COLUMNS = ("states", "actions", "rewards", "next_states", "terminated", "truncated")


def save_agent(agent: GPRMaxAgent, file: Path, *, with_transitions: bool = True) -> None:
    """Write the agent, with its transitions unless they are kept elsewhere."""
    arrays, document = _described(agent)
    if with_transitions and agent.transitions:
        columns = Transitions.of(agent.transitions)
        arrays |= {f"transitions.{name}": getattr(columns, name) for name in COLUMNS}
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    document["checksums"] = {name: _checksum(array) for name, array in arrays.items()}
    document["sha256"] = _digest(_canonical(document))
    _write(Path(file), save(arrays, metadata={"optimist": json.dumps(document)}))


def save_checkpoint(agent: GPRMaxAgent, directory: Path) -> None:
    """The agent of a run; its transitions are in the store."""
    save_agent(agent, directory / FILE, with_transitions=False)


def load_agent(file: Path, task: Task) -> GPRMaxAgent:
    """The agent in `file`, for the task it learned; ValueError when it is not whole or not for that task."""
    arrays, document = _read(Path(file))
    require_same_task(document["task"], task, file)
    agent = GPRMaxAgent(task, parse_settings(document["settings"]), seed=document["seed"])
    rows = _transitions(arrays)
    if document["knowledge"] is not None and len(rows) < document["knowledge"]["n_transitions"]:
        raise ValueError(
            f"An agent file must hold its transitions; got {file}, the checkpoint of a run. "
            "`optimist.GPRMax.resume(directory, env)` opens that run."
        )
    agent.restore(rows, _knowledge(arrays, document["knowledge"], agent, rows))
    return agent


def load_checkpoint(directory: Path, agent: GPRMaxAgent, transitions: list[Transition]) -> Knowledge | None:
    """What the agent of a run knew at its last checkpoint; None when there is none that is whole and fits.

    Nothing depends on a checkpoint but time: an agent is a function of its transitions.
    """
    try:
        arrays, document = _read(directory / FILE)
    except ValueError:
        return None
    expected = _document(agent)
    if any(document[name] != expected[name] for name in ("settings", "seed", "task")):
        return None  # of another run
    description = document["knowledge"]
    if description is None or description["n_transitions"] > len(transitions):
        return None
    return _knowledge(arrays, description, agent, transitions)


class Described(Protocol):
    """An agent of whatever kind."""

    @property
    def seed(self) -> int:
        """Of everything random."""
        ...

    @property
    def settings(self) -> BaseModel:
        """All its choices."""
        ...

    @property
    def task(self) -> Task:
        """What it is to learn."""
        ...


def run_header(agent: Described, name: str, problem: str | None) -> dict[str, Any]:
    """What a run says about itself."""
    return {
        "optimist_version": version("optimist"),
        "agent": name,
        "problem": problem,
        "seed": agent.seed,
        "settings": agent.settings.model_dump(mode="json"),
        "task": describe_task(agent.task),
    }


def describe_task(task: Task) -> dict[str, Any]:
    """What of a task can be written down; its functions cannot."""
    return {
        "low": task.box.low.tolist(),
        "high": task.box.high.tolist(),
        "periodic": task.box.periodic.tolist(),
        "controls": task.controls.tolist(),
        "discount": task.discount,
        "optimistic_value": task.optimistic_value,
        "max_steps": task.max_steps,
    }


def require_same_task(described: dict[str, Any], task: Task, place: object) -> None:
    """Raise ValueError when `task` is not the one that was learned."""
    given = describe_task(task)
    for name, value in described.items():
        if given[name] != value:
            raise ValueError(
                f"The task must be the one of {place}; its `{name}` is {value}, got {given[name]}."
            )


def _described(agent: GPRMaxAgent) -> tuple[Arrays, dict[str, Any]]:
    arrays: Arrays = {}
    knowledge = agent.knowledge
    document = _document(agent)
    if knowledge is not None:
        arrays["q_values"] = knowledge.plan.q_values
        document["knowledge"] = {
            "n_transitions": knowledge.n_transitions,
            "settled": knowledge.settled,
            "drifts": [asdict(drift) for drift in knowledge.drifts],
            "plan": {name: getattr(knowledge.plan, name) for name in ("sweeps", "residual", "converged")},
            "regressors": [
                group
                and [
                    _pack(regressor, f"regressors.{k}.{axis}", arrays) for axis, regressor in enumerate(group)
                ]
                for k, group in enumerate(knowledge.model.regressors)
            ],
        }
    return arrays, document


def _document(agent: GPRMaxAgent) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "settings": agent.settings.model_dump(mode="json"),
        "seed": agent.seed,
        "task": describe_task(agent.task),
        "knowledge": None,
    }


def _pack(regressor: Regressor, prefix: str, arrays: Arrays) -> dict[str, Any]:
    hyper = regressor.posterior.hyperparameters
    for owner, names in ((regressor.inputs, INPUTS), (regressor.posterior, POSTERIOR)):
        arrays |= {f"{prefix}.{name}": getattr(owner, name) for name in names}
    arrays[f"{prefix}.projection"] = hyper.projection
    arrays[f"{prefix}.parameters"] = regressor.parameters
    if hyper.precisions is not None:
        arrays[f"{prefix}.precisions"] = hyper.precisions
    return (
        {name: getattr(regressor, name) for name in SCALARS}
        | {name: getattr(hyper, name) for name in HYPERPARAMETERS}
        | {"jitter": regressor.posterior.jitter}
    )


def _unpack(scalars: dict[str, Any], prefix: str, arrays: Arrays) -> Regressor:
    hyper = Hyperparameters(
        **{name: scalars[name] for name in HYPERPARAMETERS},
        projection=arrays[f"{prefix}.projection"],
        precisions=arrays.get(f"{prefix}.precisions"),
    )
    posterior = {name: arrays[f"{prefix}.{name}"] for name in POSTERIOR}
    return Regressor(
        inputs=Inputs(**{name: arrays[f"{prefix}.{name}"] for name in INPUTS}),
        posterior=Posterior(hyper, **posterior, jitter=scalars["jitter"]),
        parameters=arrays[f"{prefix}.parameters"],
        **{name: scalars[name] for name in SCALARS},
    )


def _knowledge(
    arrays: Arrays, document: dict[str, Any] | None, agent: GPRMaxAgent, transitions: list[Transition]
) -> Knowledge | None:
    if document is None:
        return None
    regressors = tuple(
        group
        and tuple(_unpack(scalars, f"regressors.{k}.{axis}", arrays) for axis, scalars in enumerate(group))
        for k, group in enumerate(document["regressors"])
    )
    seen = Transitions.of(transitions[: document["n_transitions"]])
    task, settings = agent.task, agent.settings.model_settings
    return Knowledge(
        n_transitions=document["n_transitions"],
        model=GPDynamics(task.box, task.controls, settings, regressors, seen),
        plan=Plan(arrays["q_values"], **document["plan"]),
        drifts=tuple(Drift(**drift) for drift in document["drifts"]),
        settled=document["settled"],
    )


def _transitions(arrays: Arrays) -> list[Transition]:
    if "transitions.states" not in arrays:
        return []
    return Transitions(**{name: arrays[f"transitions.{name}"] for name in COLUMNS}).rows()


def _read(file: Path) -> tuple[Arrays, dict[str, Any]]:
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            arrays = {name: np.array(opened.get_tensor(name)) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, FileNotFoundError, OSError) as error:
        raise ValueError(
            f"An agent file must be a whole file written by `save`; got {file}: {error}."
        ) from error
    try:
        document: dict[str, Any] = json.loads(metadata["optimist"])
        version, checksums, digest = (document.pop(key) for key in ("format_version", "checksums", "sha256"))
    except (AttributeError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"An agent file must be written by Optimist; got {file}.") from error
    if version != FORMAT_VERSION:
        raise ValueError(f"An agent file must be of format {FORMAT_VERSION}; got {version} in {file}.")
    if _digest(_canonical(document | {"format_version": version, "checksums": checksums})) != digest:
        raise ValueError(f"An agent file must be undamaged; got {file}, whose header has another checksum.")
    found = {name: _checksum(array) for name, array in arrays.items()}
    if found != checksums:
        wrong = sorted(set(found.items()) ^ set(checksums.items()))[0][0]
        raise ValueError(
            f"An agent file must be undamaged; got {file}, whose {wrong!r} has another checksum."
        )
    return arrays, document


def _checksum(array: NDArray[Any]) -> str:
    described = f"{array.dtype.str} {array.shape} ".encode()
    return _digest(described + np.ascontiguousarray(array).tobytes())


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(file: Path, content: bytes) -> None:
    beside = file.with_name(file.name + ".new")
    try:
        with beside.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
        _sync_directory(file.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise RunError(f"The agent could not be written to {file}: {error.strerror}.") from error


def _sync_directory(directory: Path) -> None:
    """Bring the rename to disk, where directories can be synced at all."""
    if os.name != "nt":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
