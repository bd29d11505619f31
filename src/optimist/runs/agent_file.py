"""Agents as files: arrays in safetensors, everything else as JSON in its header. Nothing in it can run.

The header holds one JSON document (format version, settings, seed, the box and controls of the task, scalars
of the model) and the checksum of every array. The one of a run also says which transitions it has learned
from, by the digest of the last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from optimist.agents.agent import Agent
from optimist.given import GivenError, blamed, brief, one_line, told
from optimist.models.model import Arrays, Packed
from optimist.planning.memory import available_bytes
from optimist.runs.describe import describe_task, require_same_task, told_to
from optimist.runs.errors import DamagedError
from optimist.runs.files import AGENT, is_there, replace_file
from optimist.runs.headers import (
    AGENT_FORMAT,
    COLUMNS,
    check_agent_header,
    parse_agent_header,
    require_settings,
    transitions_in,
)
from optimist.runs.record import EpisodeRow
from optimist.runs.store import RunStore
from optimist.task import Task
from optimist.transitions import Transition, Transitions

A = TypeVar("A", bound=Agent)


def save_agent(
    agent: Agent, file: Path, *, episodes: Sequence[EpisodeRow] | None = None, kept: RunStore | None = None
) -> None:
    """Write the agent, with its transitions unless they are `kept` elsewhere, and how its `episodes` went."""
    with blamed("The agent's `pack`"):
        arrays, document = agent.pack() or ({}, None)
    arrays = {f"knowledge.{name}": array for name, array in arrays.items()}
    if kept is None and agent.transitions:
        columns = Transitions.of(agent.transitions)
        arrays |= {f"transitions.{name}": getattr(columns, name) for name in COLUMNS}
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    header = _document(agent) | {"knowledge": document}
    if episodes is not None:
        header["episodes"] = [_said_of(row) for row in episodes]
    if kept is not None:
        header["record"] = kept.digest_of(len(agent.transitions))
    header["checksums"] = {name: _checksum(array) for name, array in arrays.items()}
    try:
        header["sha256"] = _digest(_canonical(header))
    except (TypeError, ValueError) as error:
        raise GivenError(f"The agent's `pack` must return what JSON can say; got {told(error)}.") from error
    replace_file(Path(file), save(arrays, metadata={"optimist": json.dumps(header)}))


def save_checkpoint(agent: Agent, store: RunStore) -> None:
    """The agent of a run; its transitions are in the store."""
    save_agent(agent, store.directory / AGENT, kept=store)


def load_agent(file: Path, task: Task, make: Callable[[dict[str, Any], int], A]) -> A:
    """The agent in `file`, for the task it learned; ValueError when it is not whole or not for that task.

    `make` makes an agent that knows nothing, of settings and seed.
    """
    return load_saved(file, task, make)[0]


def load_saved(
    file: Path, task: Task, make: Callable[[dict[str, Any], int], A]
) -> tuple[A, list[EpisodeRow]]:
    """The same, and its episodes that have ended: as the file says, else as its transitions look."""
    is_there(Path(file), following=True)  # whoever names a file may name a link to it
    arrays, document = _read(Path(file))
    require_same_task(document["task"], task, file)
    with _inconsistent(file):
        agent = _made(file, arrays, document, task, make)
        return agent, _episodes(document.get("episodes"), agent.transitions)


def _said_of(row: EpisodeRow) -> dict[str, Any]:
    said = asdict(row)
    del said["episode"]  # they are counted
    return said


def _episodes(said: list[dict[str, Any]] | None, transitions: list[Transition]) -> list[EpisodeRow]:
    """The episodes of these transitions that have ended."""
    if said is None:
        return _as_it_looks(transitions)
    rows = [EpisodeRow(number, **row) for number, row in enumerate(said, 1)]
    made = 0
    for row in rows:
        made += row.steps
        if row.transitions != made or made > len(transitions):
            raise ValueError(
                f"Episodes must be those of the {len(transitions)} transitions; got number {row.episode} "
                f"of {row.steps} steps, {row.transitions} transitions."
            )
    return rows


def _as_it_looks(transitions: list[Transition]) -> list[EpisodeRow]:
    """Of a file that does not say: what was expected is not known."""
    if not transitions:
        return []
    firsts = [*np.flatnonzero(Transitions.of(transitions).begins).tolist(), len(transitions)]
    rows = []
    for number, (first, beyond) in enumerate(pairwise(firsts), 1):
        last = transitions[beyond - 1]
        ending = "terminated" if last.terminated else "truncated" if last.truncated else "abandoned"
        total = sum(row.reward for row in transitions[first:beyond])
        rows.append(EpisodeRow(number, beyond - first, float(total), beyond, ending))
    return rows


def _made(
    file: Path, arrays: Arrays, document: dict[str, Any], task: Task, make: Callable[[dict[str, Any], int], A]
) -> A:
    agent = make(document["settings"], document["seed"])
    require_settings(document["settings"], agent.settings.model_dump(mode="json"))
    columns = transitions_in(arrays, task)
    rows = [] if columns is None else columns.rows()
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
        "format_version": AGENT_FORMAT,
        "settings": agent.settings.model_dump(mode="json"),
        "seed": agent.seed,
        "task": describe_task(told_to(agent)),
    }


@contextmanager
def _inconsistent(file: Path) -> Iterator[None]:
    """What does not fit together in a file is said of that file, in one sentence."""
    try:
        yield
    except (MemoryError, OSError):
        raise
    except Exception as error:
        said = str(error) if isinstance(error, ValueError) else f"{told(error)}."
        if str(file) in said:
            raise
        raise ValueError(f"An agent file must fit together; got {file}: {one_line(said)}") from error


def _read(file: Path) -> tuple[Arrays, dict[str, Any]]:
    _require_readable(file)
    try:
        with safe_open(file, framework="numpy") as opened:
            text = (opened.metadata() or {}).get("optimist", "{}")
            arrays = {name: np.array(opened.get_tensor(name)) for name in opened.keys()}  # noqa: SIM118
    except Exception as error:  # of a library that reads what anybody may have written
        said = one_line(str(error))
        raise ValueError(
            f"An agent file must be a whole file written by `save`; got {file}: {said}."
        ) from error
    document = parse_agent_header(text, file)
    digest, checksums = document["sha256"], document["checksums"]
    if _digest(_canonical({name: document[name] for name in document if name != "sha256"})) != digest:
        raise ValueError(f"An agent file must be undamaged; got {file}, whose header has another checksum.")
    with _inconsistent(file):
        check_agent_header(document)
    found = {name: _checksum(array) for name, array in arrays.items()}
    if found != checksums:
        wrong = sorted(set(found.items()) ^ set(checksums.items()))[0][0]
        raise ValueError(
            f"An agent file must be undamaged; got {file}, whose {brief(wrong)} has another checksum."
        )
    with _inconsistent(file):
        _require_known(arrays, document)
    return arrays, document


def _require_readable(file: Path) -> None:
    if file.exists() and not file.is_file():
        raise ValueError(
            f"An agent file must be a whole file written by `save`; got {file}, which is no file."
        )
    room = available_bytes()
    if file.exists() and room is not None and file.stat().st_size > room:
        raise ValueError(f"An agent file must fit in memory; got {file} of {file.stat().st_size} bytes.")


def _require_known(arrays: Arrays, document: dict[str, Any]) -> None:
    kinds = ("transitions.", "knowledge.") if document["knowledge"] is not None else ("transitions.",)
    for name in arrays:
        if not name.startswith(kinds):
            raise ValueError(f"The array {brief(name)} must belong to transitions or knowledge; got neither.")


def _checksum(array: NDArray[Any]) -> str:
    described = f"{array.dtype.str} {array.shape} ".encode()
    return _digest(described + np.ascontiguousarray(array).tobytes())


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
