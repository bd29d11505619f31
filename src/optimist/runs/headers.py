"""What an agent file and the record of a run say of themselves: one schema, checked before it is believed.

A header says what settings, task and seed there were. Settings are checked by whoever they belong to, what an
agent has packed by that agent; the rest is checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from optimist.documents import Number, Said, Seed, parse_json, parsed, require_array
from optimist.given import GivenError, brief, one_line
from optimist.task import Task
from optimist.transitions import Transitions

MOST_CHARACTERS = 16_000_000  # of a header
AGENT_FORMAT = 6
COLUMNS = {
    "states": np.float64,
    "actions": np.int64,
    "rewards": np.float64,
    "next_states": np.float64,
    "terminated": np.bool_,
    "truncated": np.bool_,
}

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1, lt=2**63)]
Text = Annotated[str, Field(max_length=4096)]
Document = dict[str, Any]


class TaskSaid(Said):
    """What of a task can be written down."""

    low: list[Number]
    high: list[Number]
    periodic: list[bool]
    controls: list[list[Number]]
    discount: Number
    optimistic_value: Number
    max_steps: Count
    control_low: list[Number] | None = None  # bounds of controls that are a box
    control_high: list[Number] | None = None


class EpisodeSaid(Said):
    """How one episode went."""

    steps: Count
    total_reward: Number
    transitions: Count
    ending: Literal["terminated", "truncated", "abandoned"]
    expected: Number | None


class AgentHeader(Said):
    """The header of an agent file."""

    format_version: Annotated[int, Field(ge=AGENT_FORMAT, le=AGENT_FORMAT)]
    settings: Document
    seed: Seed
    task: TaskSaid
    knowledge: Document | None
    record: Annotated[str, Field(max_length=64)] | None = None  # digest of the last transition in the run
    episodes: list[EpisodeSaid] | None = None  # those that have ended; None: nobody said
    checksums: dict[str, Digest]
    sha256: Digest


class RunHeader(Said):
    """The header of a run, as far as it is there; `checked_header` says what must be."""

    model_config = ConfigDict(extra="allow")

    format_version: (
        int | Annotated[str, Field(max_length=80)] | None
    )  # which ones can be read, the store says
    optimist_version: Text | None = None
    agent: Annotated[str, Field(min_length=1, max_length=200)] = "?"
    problem: Text | None = None
    seed: Seed = 0
    settings: Document = Field(default_factory=dict)
    task: TaskSaid | None = None
    episodes: Count = 1  # how many it shall have, where somebody said so
    axis_names: list[Text] | None = None  # [d], of an environment that has some


def read_run_header(text: object) -> Document:
    """What the record of a run says of itself: within bounds, no key twice."""
    return _parsed_text(text, "The header of a run", "its record")


def check_run_header(document: Document, place: object) -> None:
    """Raise ValueError unless a header says what can be true, as far as it says anything."""
    try:
        parsed(RunHeader, document, "The header of a run")
    except ValueError as error:
        raise ValueError(f"The record of the run in {place} is damaged: {error}") from error


class WholeRunHeader(RunHeader):
    """The same with all that a run needs to go on."""

    model_config = ConfigDict(extra="forbid")

    optimist_version: Text
    problem: Text | None
    agent: Annotated[str, Field(min_length=1, max_length=200)]
    seed: Seed
    settings: Document
    task: TaskSaid


def require_whole(document: Document, place: object) -> None:
    """Raise ValueError unless the header of the run in `place` says all that is needed, and nothing else."""
    try:
        parsed(WholeRunHeader, document, "The header of a run")
    except ValueError as error:
        raise ValueError(f"The record of the run in {place} is damaged: {error}") from error


def parse_agent_header(text: object, place: object) -> Document:
    """What an agent file says of itself, of whatever format."""
    document = _parsed_text(text, "What Optimist writes into an agent file", str(place))
    if not {"format_version", "checksums", "sha256"} <= set(document):
        raise ValueError(f"An agent file must be written by Optimist; got {place}.")
    version = document["format_version"]
    if version != AGENT_FORMAT:
        raise ValueError(
            f"An agent file must be of format {AGENT_FORMAT}; got {one_line(str(version))[:80]} in {place}, "
            "written by another version of Optimist. Learn again, or `optimist resume` the run it came from."
        )
    return document


def check_agent_header(document: Document) -> None:
    """Raise ValueError unless it has all that a header has, and `knowledge` says of how many transitions."""
    said = parsed(AgentHeader, document, "The header of an agent file")
    if said.knowledge is not None:
        count = said.knowledge.get("n_transitions")
        if type(count) is not int or count < 0:
            raise ValueError(f"`knowledge.n_transitions` must be a whole number; got {brief(count)}.")


def _parsed_text(text: object, what: str, place: str) -> Document:
    if not isinstance(text, str):
        raise ValueError(f"{what} must be text; got {place}, where it is none.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{what} must have at most {MOST_CHARACTERS} characters; got more in {place}.")
    return parse_json(text, what, place)


@contextmanager
def of_run(place: object) -> Iterator[None]:
    """What is wrong with the settings of a run is said of that run."""
    try:
        yield
    except GivenError:
        raise
    except ValueError as error:
        if str(place) in str(error):
            raise
        raise ValueError(f"The run in {place} must have valid settings: {one_line(str(error))}") from error


def require_settings(said: Document, of: Document, *, whole: bool = True) -> None:
    """Raise ValueError unless settings say exactly what was made `of` them, and (whole) all of it.

    A run of an older version may say less: what is new has its default.
    """
    for name in sorted({*said, *of} if whole else said):
        one, other = said.get(name), of.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            require_settings(one, other, whole=whole)
        elif name not in said or name not in of or one != other:
            raise ValueError(f"The setting {brief(name)} must be as it was written; got {brief(one)}.")


def transitions_in(arrays: Mapping[str, NDArray[Any]], task: Task) -> Transitions | None:
    """The columns of transitions among the arrays of an agent file; None when it has none of them."""
    mine = {name for name in arrays if name.startswith("transitions.")}
    if not mine:
        return None
    if mine != {f"transitions.{name}" for name in COLUMNS}:
        raise ValueError(
            f"The transitions must have the columns {', '.join(COLUMNS)}; got {len(mine)} columns."
        )
    states = arrays["transitions.states"]
    count = states.shape[0] if states.ndim else 0
    found = {}
    boxed = task.control_box is not None
    for name, kind in (COLUMNS | ({"actions": np.float64} if boxed else {})).items():
        shape = (count, task.box.n_dims) if name.endswith("states") else (count,)
        if name == "actions" and boxed:
            shape = (count, task.controls.shape[1])
        found[name] = require_array(arrays, f"transitions.{name}", shape, kind)
    columns = Transitions(**found)
    if task.control_box is not None and not task.control_box.contains(columns.actions).all():
        raise ValueError("The actions must lie within the bounds of the task's controls; got others.")
    if count and not boxed and columns.actions.max() >= task.n_actions:
        raise ValueError(
            f"The actions must be below {task.n_actions}, as the task has them; got {columns.actions.max()}."
        )
    if (columns.terminated & columns.truncated).any():
        raise ValueError("A transition must not be both terminated and truncated; got one that is.")
    return columns
