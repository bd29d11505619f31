"""Older formats of the store: 1 to 3 are read as if they were of today, without anything to prove them by.

Format 1 had a column of plans for each thing that Gaussian processes say of themselves, and no other learner.
Format 2 rehearsed nothing. Format 3 had no digests, changed its header in place and kept one plan for each
number of transitions. In formats 1 to 5 processes had no linear trend, in 1 to 6 no mirror, and settings did
not say so.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from optimist.runs.chain import Row, link
from optimist.runs.errors import UnreadableError
from optimist.runs.tables import TABLES

SINCE = {"linear": 6, "mirror": 7}  # the formats that have linear trends, and mirrors


def read_old(connection: sqlite3.Connection, version: int) -> dict[str, list[Row]]:
    """The rows of all tables, by name."""
    try:
        rows = {
            "header": [
                (json.dumps(modern(json.loads(document), version)),)
                for (document,) in _all(connection, "header", "document")
            ],
            "transitions": _numbered(connection, "transitions", TABLES["transitions"].columns),
            "episodes": _episodes(connection, version),
            "plans": _plans(connection, version),
        }
        for name, found in rows.items():
            for row in found:
                link(b"", TABLES[name].kinds, row)  # of the right kinds
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise UnreadableError(f"its rows are not what a run of format {version} holds") from error
    return rows


def modern(header: dict[str, Any], version: int) -> dict[str, Any]:
    """The header of a run of some format with what was not said because there was nothing else."""
    settings = header.get("settings")
    model = settings.get("model") if isinstance(settings, dict) else None
    if isinstance(model, dict):
        if version == 1:
            model.setdefault("learner", "gp")
        for name, since in SINCE.items():
            if version in range(1, since) and model.get("learner") == "gp":
                model.setdefault(name, False)
    if version in (1, 2) and settings and settings.get("planning") is not None:
        settings["planning"].setdefault("rehearse", False)
    return header


def _numbered(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> list[Row]:
    number = TABLES[table].number
    found = _all(connection, table, number, *columns, order=number)
    if [row[0] for row in found] != list(range(1, len(found) + 1)):
        raise ValueError("a row is missing")
    return [row[1:] for row in found]


def _episodes(connection: sqlite3.Connection, version: int) -> list[Row]:
    columns = TABLES["episodes"].columns
    if version == 3:
        return _numbered(connection, "episodes", columns)
    return [(*row, None) for row in _numbered(connection, "episodes", columns[:-1])]


def _plans(connection: sqlite3.Connection, version: int) -> list[Row]:
    columns = TABLES["plans"].columns
    if version == 3:
        return _all(connection, "plans", *columns, order="n_transitions")
    before = columns[: columns.index("model")]
    if version == 2:
        found = _all(connection, "plans", *before, "model", "settled", order="n_transitions")
        return [(*row, "{}") for row in found]
    names = "basis_sizes", "hyperparameters"
    found = _all(connection, "plans", *before, *names, "settled", order="n_transitions")
    plans = []
    for *row, sizes, hyperparameters, settled in found:
        model = dict(zip(names, (json.loads(sizes), json.loads(hyperparameters)), strict=True))
        plans.append((*row, json.dumps(model), settled, "{}"))
    return plans


def _all(connection: sqlite3.Connection, table: str, *columns: str, order: str = "rowid") -> list[Row]:
    return connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}").fetchall()
