"""Agents as files: arrays in safetensors, everything else as JSON in its header. Nothing in it can run.

The header holds one JSON document (format version, settings, seed, the box and controls of the task, scalars
of the model) and the checksum of every array. The one of a run also says which transitions it has learned
from, by the digest of the last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from optimist.agents.agent import Agent
from optimist.models.model import Arrays, Packed
from optimist.runs.describe import describe_task, require_same_task
from optimist.runs.errors import DamagedError
from optimist.runs.files import AGENT, is_there, replace_file
from optimist.runs.store import RunStore
from optimist.task import Task
from optimist.transitions import Transition, Transitions

FORMAT_VERSION = 3

A = TypeVar("A", bound=Agent)

COLUMNS = ("states", "actions", "rewards", "next_states", "terminated", "truncated")


def save_agent(agent: Agent, file: Path, *, kept: RunStore | None = None) -> None:
    """Write the agent, with its transitions unless they are `kept` elsewhere."""
    arrays, document = agent.pack() or ({}, None)
    arrays = {f"knowledge.{name}": array for name, array in arrays.items()}
    if kept is None and agent.transitions:
        columns = Transitions.of(agent.transitions)
        arrays |= {f"transitions.{name}": getattr(columns, name) for name in COLUMNS}
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    header = _document(agent) | {"knowledge": document}
    if kept is not None:
        header["record"] = kept.digest_of(len(agent.transitions))
    header["checksums"] = {name: _checksum(array) for name, array in arrays.items()}
    header["sha256"] = _digest(_canonical(header))
    replace_file(Path(file), save(arrays, metadata={"optimist": json.dumps(header)}))


def save_checkpoint(agent: Agent, store: RunStore) -> None:
    """The agent of a run; its transitions are in the store."""
    save_agent(agent, store.directory / AGENT, kept=store)


def load_agent(file: Path, task: Task, make: Callable[[dict[str, Any], int], A]) -> A:
    """The agent in `file`, for the task it learned; ValueError when it is not whole or not for that task.

    `make` makes an agent that knows nothing, of settings and seed.
    """
    is_there(Path(file), following=True)  # whoever names a file may name a link to it
    arrays, document = _read(Path(file))
    require_same_task(document["task"], task, file)
    agent = make(document["settings"], document["seed"])
    rows = _transitions(arrays)
    if document["knowledge"] is not None and len(rows) < document["knowledge"]["n_transitions"]:
        raise ValueError(
            f"An agent file must hold its transitions; got {file}, the checkpoint of a run. "
            "`optimist.GPRMax.resume(directory, env)` opens that run."
        )
    agent.restore(rows, _packed(arrays, document))
    return agent


def load_checkpoint(store: RunStore, agent: Agent) -> Packed | None:
    """What the agent of a run knew at its last checkpoint; None when there is none that is whole and fits.

    Nothing depends on a checkpoint but time: an agent is a function of its transitions. But it knows how many
    there were: DamagedError when there are fewer.
    """
    try:
        arrays, document = _read(store.directory / AGENT)
    except ValueError:
        return None
    expected = _document(agent)
    if any(document[name] != expected[name] for name in ("settings", "seed", "task")):
        return None  # of another run
    packed = _packed(arrays, document)
    if packed is None:
        return None
    known, recorded = packed[1]["n_transitions"], store.n_transitions
    if known > recorded:
        raise DamagedError.of(store.directory, lost(known, recorded))
    if document.get("record") not in (None, store.digest_of(known)):
        return None  # of other transitions
    return packed


def lost(known: int, recorded: int) -> str:
    """What it means that a checkpoint knows more transitions than are recorded."""
    return (
        f"its agent has learned from {known} transitions and only {recorded} are there, so the last were lost"
    )


def checkpointed(directory: Path) -> dict[str, Any] | None:
    """What the checkpoint of a run says, if there is one that is whole."""
    try:
        return _read(directory / AGENT)[1] if is_there(directory / AGENT) else None
    except ValueError:
        return None


def _packed(arrays: Arrays, document: dict[str, Any]) -> Packed | None:
    """What an agent had packed."""
    if document["knowledge"] is None:
        return None
    mine = {name: array for name, array in arrays.items() if name.startswith("knowledge.")}
    return {name.removeprefix("knowledge."): array for name, array in mine.items()}, document["knowledge"]


def _document(agent: Agent) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "settings": agent.settings.model_dump(mode="json"),
        "seed": agent.seed,
        "task": describe_task(agent.task),
    }


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
        raise ValueError(
            f"An agent file must be of format {FORMAT_VERSION}; got {version} in {file}, written by another "
            "version of Optimist. Learn again, or `optimist resume` the run it came from."
        )
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
