"""Documents that people write, TOML or JSON: read, and what is wrong with them said in one sentence."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError


def read_document(file: Path, what: str) -> dict[str, Any]:
    """The table in a TOML or .json file; `what` it is, for the refusal."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{what} must be a readable text file; got {file}: {error}.") from error
    kind = "JSON" if file.suffix == ".json" else "TOML"
    try:
        document = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{what} must be valid {kind}; got {file}: {error}.") from error
    if not isinstance(document, dict):
        raise ValueError(f"{what} must hold a table; got {file}.")
    return document


def first_error(error: ValidationError) -> tuple[str, str, str]:
    """Of what pydantic found: where it is, its type, and what to say."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    said = (
        str(first["ctx"]["error"])
        if first["type"] == "value_error"
        else f"{first['msg']}; got {first['input']!r}."
    )
    return where, first["type"], said
