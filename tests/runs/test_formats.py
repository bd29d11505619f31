"""What an earlier version wrote: a run is read, upgraded and gone on with; an agent file is refused.

`data/format_1` is a run as the last version before format 2 left it (commit f80263e): `SMALL` settings, seed
0, thirty transitions of the mountain car in episodes of twelve, with plans after 5, 10 and 20 of them.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from safetensors.numpy import load_file

from optimist import GPRMax
from optimist.agents.settings import parse_settings
from optimist.runs import RunError, RunStore
from tests.cli.running import run
from tests.runs.recording import SMALL, Recorded, bits, cut_short, recorded

FORMAT_1 = Path(__file__).parent / "data" / "format_1"
STEPS = 50

# what `optimist.runs.store.UPGRADE` does, undone: as such a run was when format 1 was written
DOWNGRADE = """
ALTER TABLE plans ADD COLUMN basis_sizes TEXT NOT NULL DEFAULT '';
ALTER TABLE plans ADD COLUMN hyperparameters TEXT NOT NULL DEFAULT '';
UPDATE plans SET basis_sizes = json_extract(model, '$.basis_sizes'),
                 hyperparameters = json_extract(model, '$.hyperparameters');
ALTER TABLE plans DROP COLUMN model;
UPDATE header SET document = json_set(document, '$.format_version', 1);
UPDATE header SET document = json_remove(document, '$.settings.model.learner');
"""


def car() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("optimist/MountainCar-v0", max_episode_steps=12)


def learned(directory: Path, steps: int) -> Path:
    with GPRMax(car(), settings=SMALL, seed=0, run=directory) as learner:
        learner.learn(steps)
    return directory


def gone_on(directory: Path) -> Recorded:
    with GPRMax.resume(directory, car()) as learner:
        learner.learn(STEPS - learner.num_timesteps)
    return recorded(directory)


def rows_of(directory: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(directory / "run.sqlite")
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def version_of(directory: Path) -> int:
    return int(rows_of(directory, "SELECT json_extract(document, '$.format_version') FROM header")[0][0])


def columns_of(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Names, types and constraints of the columns of plans."""
    return {row[1]: row[2:4] for row in rows_of(directory, "PRAGMA table_info(plans)")}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The run that was written by the old version, to do with as one likes."""
    return shutil.copytree(FORMAT_1, tmp_path / "old")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, made by this version and not disturbed."""
    return learned(tmp_path_factory.mktemp("whole") / "run", STEPS)


def downgraded(whole: Path, directory: Path, n_transitions: int) -> Path:
    """The run `whole` as format 1 would have it after so many transitions, with an agent of format 1."""
    cut_short(whole, directory, n_transitions)
    connection = sqlite3.connect(directory / "run.sqlite")
    connection.executescript(DOWNGRADE)
    connection.close()
    shutil.copy(FORMAT_1 / "agent.optimist", directory / "agent.optimist")
    return directory


# --- reading ---


def test_run_of_format_1_is_what_this_is_about(old: Path) -> None:
    assert version_of(old) == 1
    assert {"basis_sizes", "hyperparameters"} <= set(columns_of(old))
    assert "model" not in columns_of(old)


def test_run_of_format_1_is_read_as_it_is(old: Path) -> None:
    before = (old / "run.sqlite").read_bytes()
    with RunStore.open(old, writing=False) as store:
        assert store.header["format_version"] == 1
        assert store.n_transitions == len(store.transitions()) == 30
        assert [(row.episode, row.steps, row.ending) for row in store.episodes()] == [
            (1, 12, "truncated"),
            (2, 12, "truncated"),
        ]
        assert store.open_episode() == (3, 6, -6.0)
        plans = store.plans()
    assert [row["n_transitions"] for row in plans] == [5, 10, 20]
    written = rows_of(old, "SELECT basis_sizes, hyperparameters FROM plans ORDER BY n_transitions")
    for row, (sizes, hyperparameters) in zip(plans, written, strict=True):
        assert row["model"] == {
            "basis_sizes": json.loads(sizes),
            "hyperparameters": json.loads(hyperparameters),
        }
    assert set(plans[0]) == set(columns_of(old)) - {"basis_sizes", "hyperparameters"} | {"model"}
    assert plans[-1]["model"]["basis_sizes"] == [[11, 9]]
    assert (old / "run.sqlite").read_bytes() == before


def test_looking_at_a_run_of_format_1_shows_its_agent_and_leaves_it_alone(old: Path) -> None:
    before = {file.name: file.read_bytes() for file in FORMAT_1.iterdir()}
    with GPRMax.resume(old, car(), writing=False) as learner:
        assert learner.num_timesteps == 30
        assert len(learner.episodes) == 2
        saved = load_file(old / "agent.optimist")["q_values"]
        np.testing.assert_allclose(learner.plan.q_values, saved, rtol=0.0, atol=1e-6)
    assert {name: (old / name).read_bytes() for name in before} == before


# --- upgrading ---


def test_run_of_format_1_is_upgraded_in_place_when_it_is_opened_for_writing(old: Path, whole: Path) -> None:
    with RunStore.open(old, writing=False) as store:
        header, plans = store.header, store.plans()
        transitions, episodes = [bits(row) for row in store.transitions()], store.episodes()
    RunStore.open(old, writing=True).close()
    assert version_of(old) == 2
    assert columns_of(old) == columns_of(whole)
    for _ in range(2):  # once is enough
        with RunStore.open(old, writing=True) as store:
            found = store.header
            assert parse_settings(found["settings"]) == parse_settings(header["settings"])
            assert found == header | {"format_version": 2, "settings": found["settings"]}
            assert store.plans() == plans
            assert [bits(row) for row in store.transitions()] == transitions
            assert store.episodes() == episodes
    assert rows_of(old, "PRAGMA integrity_check") == [("ok",)]


def test_reader_that_came_before_the_upgrade_reads_on(old: Path) -> None:
    with RunStore.open(old, writing=False) as reader:
        plans = reader.plans()
        with RunStore.open(old, writing=True):
            assert reader.plans() == plans
            assert reader.header["format_version"] == 2


def test_run_of_format_1_without_plans_is_upgraded(tmp_path: Path, whole: Path) -> None:
    directory = downgraded(whole, tmp_path / "run", 4)
    RunStore.open(directory, writing=True).close()
    assert version_of(directory) == 2
    with RunStore.open(directory, writing=False) as store:
        assert store.plans() == []
        assert store.n_transitions == 4


def spoiled(directory: Path) -> Path:
    with sqlite3.connect(directory / "run.sqlite") as connection:
        connection.execute("UPDATE plans SET basis_sizes = 'no JSON' WHERE n_transitions = 20")
    connection.close()
    return directory


def test_upgrade_that_fails_leaves_the_run_as_it_was(old: Path) -> None:
    spoiled(old)
    columns, transitions = columns_of(old), rows_of(old, "SELECT * FROM transitions")
    with pytest.raises(RunError, match="malformed JSON") as told:
        RunStore.open(old, writing=True)
    assert "\n" not in str(told.value)
    assert version_of(old) == 1
    assert columns_of(old) == columns
    assert rows_of(old, "SELECT * FROM transitions") == transitions


def test_upgrade_that_fails_lets_go_of_the_run(old: Path) -> None:
    spoiled(old)
    for _ in range(2):
        with pytest.raises(RunError, match="malformed JSON"):
            RunStore.open(old, writing=True)


# --- going on ---


@pytest.mark.parametrize("n_transitions", [0, 4, 5, 24, 30, 35, STEPS - 1])
def test_run_of_format_1_is_gone_on_with_and_ends_as_undisturbed(
    tmp_path: Path, whole: Path, n_transitions: int
) -> None:
    """Bit for bit: its checkpoint cannot be read, and nothing but time depends on that."""
    directory = downgraded(whole, tmp_path / "run", n_transitions)
    assert version_of(directory) == 1
    assert gone_on(directory) == recorded(whole)
    assert version_of(directory) == 2


def test_run_that_the_old_version_wrote_is_gone_on_with(old: Path, whole: Path) -> None:
    """As undisturbed; not bit for bit, since another machine may have written it."""
    with RunStore.open(old, writing=False) as store:
        before = [bits(row) for row in store.transitions()]
    gone_on(old)
    with RunStore.open(old, writing=False) as store, RunStore.open(whole, writing=False) as undisturbed:
        rows, wanted = store.transitions(), undisturbed.transitions()
        assert [bits(row) for row in rows[:30]] == before
        assert [row.action for row in rows] == [row.action for row in wanted]
        np.testing.assert_allclose(
            [row.next_state for row in rows], [row.next_state for row in wanted], rtol=0.0, atol=1e-9
        )
        assert store.episodes() == undisturbed.episodes()
        names = ("n_transitions", "sweeps", "converged", "settled")
        made, due = ([[row[name] for name in names] for row in one.plans()] for one in (store, undisturbed))
        assert made == due
        settings, others = store.header["settings"], undisturbed.header["settings"]
        assert parse_settings(settings) == parse_settings(others) == SMALL
    found, expected = (load_file(one / "agent.optimist")["knowledge.q_values"] for one in (old, whole))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6)


def test_command_line_goes_on_with_a_run_of_format_1(old: Path) -> None:
    """As the refusal of its agent file advises."""
    ran = run("resume", str(old), "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["transitions"] == 30
    assert version_of(old) == 2
    with GPRMax.resume(old, car(), writing=False) as learner:
        assert learner.num_timesteps == 30


# --- agents ---


def test_agent_file_of_format_1_is_refused_with_what_to_do() -> None:
    file = FORMAT_1 / "agent.optimist"
    with pytest.raises(ValueError, match="must be of format 2; got 1 in") as told:
        GPRMax.load(file, env=car())
    said = str(told.value)
    assert str(file) in said
    assert "\n" not in said
    assert said.endswith(
        "written by another version of Optimist. Learn again, or `optimist resume` the run it came from."
    )
