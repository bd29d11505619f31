"""Documents in files, TOML or JSON: read within bounds, and what is wrong with them said in one sentence.

People write settings and campaigns; programs write headers (`Said`). Whoever wrote one, it is data from
outside: its size, its depth and its numbers are checked before anything is made of it.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from optimist.given import brief, one_line

MOST_BYTES = 1_000_000  # of a document that somebody wrote
MOST_DOTS = 100  # in a line of TOML
DEEPEST = 32  # tables within tables
SHOULD = re.compile(r"^\w+ should\b")  # how pydantic begins: Input should be, List should have
LARGEST = 2**128  # no seed and no count is larger

Seed = Annotated[int, Field(ge=0, lt=LARGEST, strict=True)]
Number = float  # finite in `Said`
NotNegative = Annotated[float, Field(ge=0.0)]
Positive = Annotated[float, Field(gt=0.0)]


class Said(BaseModel):
    """A document that a program wrote: nothing is missing, nothing is guessed, nothing unknown is in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Settings(BaseModel):
    """Settings that people write, in files or in Python: checked, frozen, refused in one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            where, wrong, said = first_error(error)
            if wrong == "extra_forbidden":
                said = f"must be one of {', '.join(type(self).model_fields)}; got another."
            raise ValueError(said if wrong == "value_error" else f"`{where}` {said}") from None

    # within a larger document pydantic makes them itself, and says where in it something is wrong
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


S = TypeVar("S", bound=BaseModel)


def read_document(file: Path, what: str) -> dict[str, Any]:
    """The table in a TOML or .json file; `what` it is, for the refusal."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, ValueError) as error:
        said = one_line(str(error))
        raise ValueError(f"{what} must be a readable text file; got {file}: {said}.") from error
    place = str(file)
    if len(content) > MOST_BYTES:
        raise ValueError(
            f"{what} must be a file of at most {MOST_BYTES} bytes; got {place}, which is larger."
        )
    return parse_json(text, what, place) if file.suffix == ".json" else _parse_toml(text, what, place)


def parse_json(text: str, what: str, place: str) -> dict[str, Any]:
    """The table that JSON says, with no key twice; `place` is where it came from."""
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} must be valid JSON; got {place}: {_said(error)}.") from error
    return _sound(document, what, place)


def _parse_toml(text: str, what: str, place: str) -> dict[str, Any]:
    if any(line.count(".") > MOST_DOTS for line in text.splitlines() if not line.startswith("#")):
        # the time that a dotted key takes goes with the square of its length
        raise ValueError(f"{what} must have at most {MOST_DOTS} dots in a line; got {place}.")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} must be valid TOML; got {place}: {_said(error)}.") from error
    return _sound(document, what, place)


def _said(error: BaseException) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else one_line(str(error))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key {brief(key)} is there twice")
        table[key] = value
    return table


def _sound(document: object, what: str, place: str) -> dict[str, Any]:
    """A table whose depth and numbers are bounded."""
    if not isinstance(document, dict):
        raise ValueError(f"{what} must hold a table; got {place}.")
    level: list[tuple[str, Any]] = [(str(key), value) for key, value in document.items()]
    for _ in range(DEEPEST):
        if not level:
            return document
        below: list[tuple[str, Any]] = []
        for where, value in level:
            if isinstance(value, dict):
                below += [(f"{where}.{key}", item) for key, item in value.items()]
            elif isinstance(value, list):
                below += [(f"{where}.{number}", item) for number, item in enumerate(value)]
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError(
                    f"{what} must have finite numbers; got {value} at {brief(where)} in {place}."
                )
            elif isinstance(value, int) and abs(value) >= LARGEST:
                raise ValueError(
                    f"{what} must have numbers below 2^128; got more at {brief(where)} in {place}."
                )
        level = below
    raise ValueError(f"{what} must not be nested more than {DEEPEST} deep; got {place}.")


def parsed(kind: type[S], document: object, what: str) -> S:
    """`document` as a `kind`; a ValueError that says what of `what` is wrong, and where."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        where, wrong, said = first_error(error)
        if wrong == "value_error":
            raise ValueError(said) from error
        said = "is not known." if wrong == "extra_forbidden" else said
        raise ValueError(f"{what} must be as it was written: `{where}` {said}") from error


def first_error(error: ValidationError) -> tuple[str, str, str]:
    """Of what pydantic found: where it is, its type, and what it must be and what it is."""
    first = error.errors(include_url=False)[0]
    where = one_line(".".join(str(part)[:80] for part in first["loc"]))
    if first["type"] == "value_error":
        return where, first["type"], str(first["ctx"]["error"])
    if first["type"] == "missing":
        return where, first["type"], "must be given; got none."
    said = SHOULD.sub("must", one_line(first["msg"]))
    said = said if said.startswith("must") else f"must be valid: {said}"
    return where, first["type"], f"{said}; got {brief(first['input'])}."


def require_array(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], kind: type[Any] = np.float64
) -> NDArray[Any]:
    """The array of that name; a ValueError unless it has this shape and dtype, and is finite."""
    if name not in arrays:
        raise ValueError(f"The array {brief(name)} must be there; got none.")
    array = arrays[name]
    if array.shape != shape or array.dtype != np.dtype(kind):
        raise ValueError(
            f"The array {brief(name)} must be {np.dtype(kind)} of shape {shape}; "
            f"got {array.dtype} of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"The array {brief(name)} must be finite; got NaN or infinity.")
    return array


def sayable(value: Any) -> Any:
    """The same as JSON can say it: numbers that it cannot (infinity) become null."""
    if isinstance(value, dict):
        return {key: sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sayable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
