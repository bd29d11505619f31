"""A share of the hostile documents (`python -m tests.torture.hostile` tries hundreds)."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.torture.hostile import (
    Case,
    header_of,
    hostile_documents,
    hostile_runs,
    load,
    look_at,
    made_files,
    outcome,
    put_together,
    real_files,
    real_run,
    seeded_files,
    taken,
    taken_apart,
    with_header,
)


def test_what_they_are_made_of_is_whole(tmp_path: Path) -> None:
    """Taken apart and put together again, nothing is refused: it is the change that is."""
    for file in real_files(tmp_path):
        again = put_together(tmp_path / "again.optimist", *taken_apart(file))
        assert outcome(Case("whole", lambda file=again: load(file), "")) == "accepted"  # type: ignore[misc]
    run = real_run(tmp_path)
    text = json.dumps(header_of(run))
    assert outcome(Case("whole", lambda: look_at(with_header(run, text)), "")) == "accepted"


def not_refused(cases: Iterable[Case]) -> list[str]:
    found = {case.name: outcome(case) for case in cases}
    return [f"{name}: {what}" for name, what in found.items() if what != "refused"]


def test_agent_files_that_are_changed_are_refused_in_one_sentence(tmp_path: Path) -> None:
    cases = [*made_files(tmp_path), *taken(seeded_files(tmp_path, random.Random(0)), 30)]
    assert len(cases) > 60
    assert not_refused(cases) == []


def test_headers_of_runs_that_are_changed_are_refused_in_one_sentence(tmp_path: Path) -> None:
    assert not_refused(taken(hostile_runs(tmp_path, random.Random(0)), 40)) == []


def test_settings_and_campaigns_without_end_are_refused_in_one_sentence(tmp_path: Path) -> None:
    assert not_refused(hostile_documents(tmp_path)) == []


@pytest.mark.parametrize("name", ["a fifo", "a directory"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.mkdir() if name == "a directory" else os.mkfifo(file)
    assert outcome(Case(name, lambda: load(file), str(file))) == "refused"
