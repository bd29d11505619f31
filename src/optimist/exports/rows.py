"""A record as tables: CSV files, or one file with a JSON object a line. Numbers are written in full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from optimist.runs import RunStore
from optimist.runs.logs import as_csv

Rows = list[dict[str, Any]]
PLAN = (
    "n_transitions", "fit_seconds", "predict_seconds", "plan_seconds", "sweeps", "residual", "converged",
    "mean_drift", "uncertainty_drift", "mean_uncertainty", "settled",
)  # fmt: skip


def transition_rows(store: RunStore) -> Rows:
    """One row per transition: number, episode, step, state_0 ..., action, control_0 ..., reward and so on."""
    record = store.record
    controls = (store.header.get("task") or {}).get("controls")
    void, step, before = record.void, 0, 0
    found = []
    chain = record.chains["transitions"].rows
    for number, (made, row) in enumerate(zip(record.transitions, chain, strict=True), 1):
        step, before = (step + 1 if row[0] == before else 1), row[0]
        found.append(
            {"number": number, "episode": row[0], "step": step}
            | {f"state_{axis}": value for axis, value in enumerate(made.state.tolist())}
            | _done(made.action, controls)
            | {"reward": made.reward}
            | {f"next_state_{axis}": value for axis, value in enumerate(made.next_state.tolist())}
            | {"terminated": int(made.terminated), "truncated": int(made.truncated)}
            | {"outside": int(row[7]), "void": int(number in void)}
        )
    return found


def _done(action: Any, controls: list[list[float]] | None) -> dict[str, Any]:
    """The number of an action and its control; of a control that is not in a list, the control alone."""
    listed = np.ndim(action) == 0
    applied = (controls[action] if controls is not None else []) if listed else action.tolist()
    return {"action": int(action) if listed else None} | {
        f"control_{k}": value for k, value in enumerate(applied)
    }


def episode_rows(store: RunStore) -> Rows:
    """One row per episode that has ended."""
    return [asdict(row) for row in store.episodes()]


def plan_rows(store: RunStore) -> Rows:
    """One row per plan: its numbers, the layout that won and what was expected."""
    found = []
    for row in store.plans():
        said = row["rehearsal"]
        found.append(
            {name: row[name] for name in PLAN}
            | {name: said.get(name) for name in ("layout", "expected", "low", "high")}
        )
    return found


TABLES = {"transitions": transition_rows, "episodes": episode_rows, "plans": plan_rows}


def write_csv(store: RunStore, folder: Path) -> Path:
    """`transitions.csv`, `episodes.csv` and `plans.csv` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows_of in TABLES.items():
        rows = rows_of(store)
        names = list(rows[0]) if rows else []
        (folder / f"{name}.csv").write_text(as_csv(names, rows), "utf-8")
    return folder


def write_jsonl(store: RunStore, file: Path) -> Path:
    """One file: an object a line, each with its `kind`; the first is the run's own header."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as out:
        for row in _lines(store):
            said = {name: None if _is_beyond(value) else value for name, value in row.items()}
            out.write(json.dumps(said, allow_nan=False) + "\n")
    return file


def _is_beyond(value: object) -> bool:
    """Whether it is a number that JSON cannot say, such as the residual of a plan that was cut off."""
    return isinstance(value, float) and not np.isfinite(value)


def _lines(store: RunStore) -> Iterator[dict[str, Any]]:
    yield {"kind": "run"} | store.header
    for name, rows_of in TABLES.items():
        yield from ({"kind": name.removesuffix("s")} | row for row in rows_of(store))
    yield from ({"kind": "mark"} | asdict(mark) for mark in store.marks())
