"""A share of `tests/torture/damage.py`, and what each kind of damage is told as."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from optimist.runs import DamagedError, RunError, RunStore
from optimist.runs.check import check
from tests.cli.running import run as run_command
from tests.runs.recording import write_bytes_at
from tests.torture.damage import HARMLESS, NOTICED, Truth, cases, content, made


def test_damages_are_noticed_in_one_sentence_or_do_no_harm() -> None:
    found = list(cases(seed=7, flips=40, others=28))
    assert [case for case in found if case.outcome not in (NOTICED, HARMLESS)] == []
    assert sum(case.outcome == NOTICED for case in found) > 20


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("closed") / "run", closed=True)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("killed") / "run", closed=False)


@pytest.fixture
def copied(closed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(closed, tmp_path / "run")


def changed(directory: Path, statement: str) -> Path:
    """As another program would: SQLite finds nothing wrong with it."""
    with sqlite3.connect(directory / "run.sqlite") as connection:
        connection.execute(statement)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return directory


STATEMENTS = {
    "UPDATE transitions SET reward = reward + 1.0 WHERE number = 20": "transitions are whole up to number 19",
    "UPDATE transitions SET state = zeroblob(16) WHERE number = 1": "transitions are whole up to number 0",
    "UPDATE transitions SET outside = 1 - outside WHERE number = 40": "transitions are whole up to number 39",
    "UPDATE transitions SET digest = zeroblob(16) WHERE number = 9": "transitions are whole up to number 8",
    "DELETE FROM transitions WHERE number = 40": "transitions had come to number 40 and end after 39",
    "DELETE FROM transitions WHERE number = 13": "number 13 is missing",
    "DELETE FROM transitions": "transitions had come to number 40 and end after 0",
    "UPDATE transitions SET number = -number": "number 1 is missing",
    "UPDATE episodes SET total_reward = 0.0 WHERE episode = 2": "episodes are whole up to number 1",
    "UPDATE episodes SET expected = NULL": "episodes are whole up to number 0",
    "DELETE FROM episodes WHERE episode = 3": "episodes had come to number 3",
    "UPDATE plans SET settled = 1 WHERE number = 5": "plans are whole up to number 4",
    "UPDATE marks SET void = 0": "marks are whole up to number 0",
    "DELETE FROM marks": "marks had come to number 1 and end after 0",
    "UPDATE header SET document = document || ' ' WHERE number = 3": "settings are whole up to number 2",
    "DELETE FROM header WHERE number = 3": "settings had come to number 3 and end after 2",
    "UPDATE chains SET length = 39 WHERE name = 'transitions'": "transitions are not those that were written",
    "DELETE FROM chains WHERE name = 'marks'": "where its marks ended cannot be read",
    "DROP TABLE chains": "where its settings ended cannot be read",
    "DROP TABLE plans": "plans are whole up to number 0",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_change_that_sqlite_does_not_mind_is_told(copied: Path, statement: str) -> None:
    changed(copied, statement)
    for writing in (False, True, True):  # and it is not left locked
        with pytest.raises(DamagedError, match=STATEMENTS[statement]) as told:
            RunStore.open(copied, writing=writing)
    assert str(told.value).count("\n") == 0
    assert f"`optimist check {copied}`" in str(told.value)
    assert "safe" not in str(told.value)
    assert not check(copied).ok


def test_row_that_does_not_continue_the_one_before_is_seen_even_without_digests(
    closed: Path, tmp_path: Path
) -> None:
    """Rows of two writers, say, each with a right digest; or a run of an old format."""
    with RunStore.open(closed, writing=False) as store:
        rows = {name: list(chain.rows) for name, chain in store.record.chains.items()}
    rows["transitions"][5] = (rows["transitions"][5][0], b"\0" * 16, *rows["transitions"][5][2:])
    with pytest.raises(DamagedError, match="number 6 does not begin where the one before it ended"):
        RunStore.filled(tmp_path / "run", rows)


def test_what_is_whole_is_saved_and_can_be_gone_on_with(closed: Path, copied: Path, tmp_path: Path) -> None:
    changed(copied, "UPDATE transitions SET action = 1 - action WHERE number = 20")
    found = check(copied, salvage=tmp_path / "saved")
    assert (found.ok, found.savable, found.transitions, found.episodes, found.plans) == (
        False,
        True,
        19,
        1,
        2,
    )
    assert found.void == (7,)
    with (
        RunStore.open(tmp_path / "saved", writing=True) as store,
        RunStore.open(closed, writing=False) as whole,
    ):
        assert store.header == whole.header
        assert store.episodes() == whole.episodes()[:1]
        assert store.open_episode()[:2] == (2, 7)
        assert [(mark.transition, mark.made_after) for mark in store.marks()] == [(7, 19)]
        store.append(whole.transitions()[19], 2, outside=False)
        assert content(store)[1] == content(whole)[1][:20]  # type: ignore[index]


def test_episodes_that_were_lost_are_added_up_again(closed: Path, copied: Path, tmp_path: Path) -> None:
    changed(copied, "UPDATE episodes SET steps = 3 WHERE episode = 2")
    check(copied, salvage=tmp_path / "saved")
    with (
        RunStore.open(tmp_path / "saved", writing=False) as store,
        RunStore.open(closed, writing=False) as whole,
    ):
        rows, right = store.episodes(), whole.episodes()
    assert rows[0] == right[0]
    assert [row.expected for row in rows] == [-3.5, None, None]
    assert [(row.steps, row.total_reward, row.ending) for row in rows] == [
        (row.steps, row.total_reward, row.ending) for row in right
    ]


def test_settings_are_there_twice(copied: Path, tmp_path: Path) -> None:
    changed(copied, "UPDATE header SET document = '{}' WHERE number = 1")
    assert check(copied, salvage=tmp_path / "one").transitions == 40
    changed(copied, "UPDATE header SET document = '{}'")
    assert not check(copied).savable
    with pytest.raises(DamagedError, match="settings that can be read"):
        check(copied, salvage=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("at", [0, 16, 100, 3500])
def test_tables_are_found_without_the_page_that_says_where_they_are(
    closed: Path, copied: Path, tmp_path: Path, at: int
) -> None:
    write_bytes_at(copied / "run.sqlite", at, b"\xff" * 16)
    with pytest.raises(DamagedError):
        RunStore.open(copied, writing=False)
    found = check(copied, salvage=tmp_path / "saved")
    assert (found.ok, found.transitions, found.episodes) == (False, 40, 3)
    with RunStore.open(tmp_path / "saved", writing=False) as saved:
        rows = content(saved)[:3]
    with RunStore.open(closed, writing=False) as whole:
        assert content(whole)[:3] == rows


def truncate_log(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 5000)


def flip_log(file: Path) -> None:
    write_bytes_at(file, 90, b"\xff")


@pytest.mark.parametrize("damage", [truncate_log, flip_log, Path.unlink])
def test_log_that_lost_the_end_is_told(killed: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run = shutil.copytree(killed, tmp_path / "run")
    damage(run / "run.sqlite-wal")
    before = (run / "run.sqlite").read_bytes()
    with pytest.raises(DamagedError, match=r"had come to number \d+ and end after") as told:
        RunStore.open(run, writing=True)
    assert "\n" not in str(told.value)
    assert (run / "run.sqlite").read_bytes() == before  # nothing was made of it
    assert not check(run).ok


def test_log_that_lost_the_end_is_told_by_the_checkpoint_if_nobody_else_can(
    killed: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(killed, tmp_path / "run")
    (run / "run.sqlite-wal").unlink()
    (run / "run.head").unlink()
    found = check(run)
    assert not found.ok
    assert "learned from 37 transitions and only 0 are there" in found.problems[0]


@pytest.mark.parametrize("witness", [b"", b"nonsense", b"0" * 32 + b' {"transitions": 3}'])
def test_witness_that_says_nothing_is_not_heard(killed: Path, tmp_path: Path, witness: bytes) -> None:
    run = shutil.copytree(killed, tmp_path / "run")
    (run / "run.head").write_bytes(witness)
    assert Truth.of(run).content == Truth.of(shutil.copytree(killed, tmp_path / "right")).content
    RunStore.open(run, writing=True).close()


def test_record_of_another_run_in_its_place_is_told(closed: Path, copied: Path, tmp_path: Path) -> None:
    other = made(tmp_path / "other", closed=True, count=45)
    with RunStore.open(other, writing=True) as store:
        store.mark(8, reason="by hand")
    shutil.copy(tmp_path / "other" / "run.head", copied / "run.head")
    with pytest.raises(DamagedError, match="had come to number"):
        RunStore.open(copied, writing=False)


def test_nothing_is_said_to_be_safe_that_is_not(copied: Path) -> None:
    with RunStore.open(copied, writing=True) as store:
        rows = store.transitions()
        changed(copied, "UPDATE transitions SET reward = 9.0 WHERE number = 5")
        with sqlite3.connect(copied / "run.sqlite") as other:
            other.execute("DROP TABLE marks")
        other.close()
        with pytest.raises((RunError, DamagedError)) as told:
            store.append(rows[0], 9, outside=False)
    assert "safe" not in str(told.value)


def test_command_tells_of_damage_in_one_sentence(copied: Path) -> None:
    changed(copied, "UPDATE transitions SET reward = 9.0 WHERE number = 5")
    for command in ("resume", "evaluate"):
        ran = run_command(command, str(copied), "--json")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.count("\n") == 1
        assert "transitions are whole up to number 4, then number 5 is not what was written" in ran.stderr
    ran = run_command("check", str(copied), "--json")
    assert (ran.returncode, ran.stderr) == (2, "")
    assert json.loads(ran.stdout)["ok"] is False
