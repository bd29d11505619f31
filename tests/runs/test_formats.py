"""What earlier versions wrote: a run is read, upgraded and gone on with; an agent file is refused.

`data/format_1` is a run as the last version before format 2 left it (commit f80263e): `SMALL` settings, seed
0, thirty transitions of the mountain car in episodes of twelve, with plans after 5, 10 and 20 of them.
Formats 1 and 2 did not rehearse: what those versions wrote is gone on with, but plans are of today.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from optimist import Discretisation, GPRMax
from optimist.agents.settings import PlanningOptions, parse_settings
from optimist.models import GPSettings
from optimist.runs import DamagedError, RunStore
from tests.cli.running import run
from tests.runs.recording import SMALL, Recorded, ShortSystem, bits, cut_short, recorded, with_header

FORMAT_1 = Path(__file__).parent / "data" / "format_1"
STEPS = 50
QUICK = SMALL.model_copy(  # to rehearse with; the rest as in that run
    update={
        "planning": PlanningOptions(depth=0),
        "model": GPSettings(refit_growth=2.0, linear=False, mirror=False, max_basis=1000),
    }
)

# the tables of format 3 (commit 87c5550), filled with what they had
DOWNGRADE_3 = """
ALTER TABLE header RENAME TO new_header;
CREATE TABLE header (document TEXT NOT NULL);
INSERT INTO header SELECT document FROM new_header ORDER BY number DESC LIMIT 1;
DROP TABLE new_header;
ALTER TABLE transitions DROP COLUMN digest;
ALTER TABLE episodes RENAME TO new_episodes;
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY,
    steps INTEGER NOT NULL,
    total_reward REAL NOT NULL,
    transitions INTEGER NOT NULL,     -- in the run when it ended
    ending TEXT NOT NULL,             -- terminated, truncated, or abandoned (an outside environment, resumed)
    expected REAL
);
INSERT INTO episodes SELECT episode, steps, total_reward, transitions, ending, expected FROM new_episodes;
DROP TABLE new_episodes;
ALTER TABLE plans RENAME TO new_plans;
CREATE TABLE plans (
    n_transitions INTEGER PRIMARY KEY,
    fit_seconds REAL NOT NULL,
    predict_seconds REAL NOT NULL,
    plan_seconds REAL NOT NULL,
    sweeps INTEGER NOT NULL,
    residual REAL NOT NULL,
    converged INTEGER NOT NULL,
    mean_drift REAL,
    uncertainty_drift REAL,
    mean_uncertainty REAL NOT NULL,
    model TEXT NOT NULL,
    settled INTEGER NOT NULL,
    rehearsal TEXT NOT NULL
);
INSERT INTO plans SELECT n_transitions, fit_seconds, predict_seconds, plan_seconds, sweeps, residual,
    converged, mean_drift, uncertainty_drift, mean_uncertainty, model, settled, rehearsal FROM new_plans;
DROP TABLE new_plans;
DROP TABLE marks;
DROP TABLE chains;
UPDATE header SET document = json_set(document, '$.format_version', 3);
"""
# as such a run was when format 2 was written: its tables (commit 92a8cea), filled with what they had
DOWNGRADE_2 = """
ALTER TABLE episodes RENAME TO new_episodes;
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY,
    steps INTEGER NOT NULL,
    total_reward REAL NOT NULL,
    transitions INTEGER NOT NULL,     -- in the run when it ended
    ending TEXT NOT NULL              -- terminated, truncated, or abandoned (an outside environment, resumed)
);
INSERT INTO episodes SELECT episode, steps, total_reward, transitions, ending FROM new_episodes;
DROP TABLE new_episodes;
ALTER TABLE plans RENAME TO new_plans;
CREATE TABLE plans (
    n_transitions INTEGER PRIMARY KEY,
    fit_seconds REAL NOT NULL,
    predict_seconds REAL NOT NULL,
    plan_seconds REAL NOT NULL,
    sweeps INTEGER NOT NULL,
    residual REAL NOT NULL,
    converged INTEGER NOT NULL,
    mean_drift REAL,
    uncertainty_drift REAL,
    mean_uncertainty REAL NOT NULL,
    model TEXT NOT NULL,              -- JSON: what the model says of itself
    settled INTEGER NOT NULL
);
INSERT INTO plans SELECT n_transitions, fit_seconds, predict_seconds, plan_seconds, sweeps, residual,
    converged, mean_drift, uncertainty_drift, mean_uncertainty, model, settled FROM new_plans;
DROP TABLE new_plans;
UPDATE header SET document = json_set(document, '$.format_version', 2);
"""
# and when format 1 was
DOWNGRADE_1 = """
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


def short_car() -> gymnasium.Env[Any, Any]:
    """The same where the task, too, has short episodes: those that are rehearsed take time."""
    return TimeLimit(OrderEnforcing(ShortSystem("mountain-car")), 12)


def learned(directory: Path, steps: int) -> Path:
    with GPRMax(short_car(), settings=QUICK, seed=0, run=directory) as learner:
        learner.learn(steps)
    return directory


def gone_on(directory: Path, env: gymnasium.Env[Any, Any]) -> Recorded:
    with GPRMax.resume(directory, env) as learner:
        learner.learn(STEPS - learner.num_timesteps)
    return recorded(directory)


def rows_of(directory: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(directory / "run.sqlite")
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def version_of(directory: Path) -> int:
    return int(rows_of(directory, "SELECT json_extract(document, '$.format_version') FROM header")[0][0])


def columns_of(directory: Path, table: str = "plans") -> dict[str, tuple[Any, ...]]:
    """Names, types and constraints."""
    return {row[1]: row[2:4] for row in rows_of(directory, f"PRAGMA table_info({table})")}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The run that was written by the old version, to do with as one likes."""
    return shutil.copytree(FORMAT_1, tmp_path / "old")


@pytest.fixture
def hasty(old: Path) -> Path:
    """The same of an agent that does not look ahead, which takes time in episodes of 500 steps."""
    with sqlite3.connect(old / "run.sqlite") as connection:
        connection.execute("UPDATE header SET document = json_set(document, '$.settings.planning.depth', 0)")
    connection.close()
    return old


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, made by this version and not disturbed."""
    return learned(tmp_path_factory.mktemp("whole") / "run", STEPS)


def downgraded(whole: Path, directory: Path, n_transitions: int, version: int = 1) -> Path:
    """The run `whole` as an old format would have it after so many transitions, with an agent of format 1."""
    cut_short(whole, directory, n_transitions)
    connection = sqlite3.connect(directory / "run.sqlite")
    for script in (DOWNGRADE_3, DOWNGRADE_2, DOWNGRADE_1)[: 4 - version]:
        connection.executescript(script)
    connection.close()
    (directory / "run.head").unlink()
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
    said = set(columns_of(old)) - {"basis_sizes", "hyperparameters"}
    assert set(plans[0]) == said | {"model", "rehearsal"}
    assert all(row["rehearsal"] == {} for row in plans)
    assert plans[-1]["model"]["basis_sizes"] == [[11, 9]]
    assert (old / "run.sqlite").read_bytes() == before


def test_looking_at_a_run_of_format_1_shows_its_agent_and_leaves_it_alone(hasty: Path) -> None:
    before = {file.name: file.read_bytes() for file in hasty.iterdir()}
    with GPRMax.resume(hasty, car(), writing=False) as learner:
        assert learner.num_timesteps == 30
        assert len(learner.episodes) == 2
        assert np.isfinite(learner.plan.q_values).all()  # of its transitions, with what is planned today
        assert learner.layout.holding.most == 1  # as its settings said
        assert learner.expected is not None
        assert all(row.expected is None for row in learner.episodes)
    assert {name: (hasty / name).read_bytes() for name in before} == before


# --- upgrading ---


def test_run_of_format_1_is_upgraded_in_place_when_it_is_opened_for_writing(old: Path, whole: Path) -> None:
    with RunStore.open(old, writing=False) as store:
        header, plans = store.header, store.plans()
        transitions, episodes = [bits(row) for row in store.transitions()], store.episodes()
    RunStore.open(old, writing=True).close()
    assert version_of(old) == 7
    for table in ("plans", "episodes"):
        assert columns_of(old, table) == columns_of(whole, table)
    for _ in range(2):  # once is enough
        with RunStore.open(old, writing=True) as store:
            found = store.header
            assert parse_settings(found["settings"]) == parse_settings(header["settings"])
            assert found == header | {"format_version": 7, "settings": found["settings"]}
            assert store.plans() == plans
            assert [bits(row) for row in store.transitions()] == transitions
            assert store.episodes() == episodes
    assert rows_of(old, "PRAGMA integrity_check") == [("ok",)]


def test_reader_that_came_before_the_upgrade_reads_on(old: Path) -> None:
    with RunStore.open(old, writing=False) as reader:
        plans = reader.plans()
        with RunStore.open(old, writing=True):
            assert reader.plans() == plans
            assert reader.header["format_version"] == 7


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_run_without_plans_is_upgraded(tmp_path: Path, whole: Path, version: int) -> None:
    directory = downgraded(whole, tmp_path / "run", 4, version)
    RunStore.open(directory, writing=True).close()
    assert version_of(directory) == 7
    with RunStore.open(directory, writing=False) as store:
        assert store.plans() == []
        assert store.n_transitions == 4


def test_run_of_format_2_is_read_as_it_is_and_upgraded_when_it_is_opened_for_writing(
    tmp_path: Path, whole: Path
) -> None:
    directory = downgraded(whole, tmp_path / "run", 40, 2)
    before = (directory / "run.sqlite").read_bytes()
    assert "rehearsal" not in columns_of(directory)
    assert "expected" not in columns_of(directory, "episodes")
    with RunStore.open(whole, writing=False) as store:
        plans = [row | {"rehearsal": {}} for row in store.plans() if row["n_transitions"] <= 40]
        episodes = [replace(row, expected=None) for row in store.episodes()[:3]]
        header, transitions = store.header, [bits(row) for row in store.transitions()[:40]]
    with RunStore.open(directory, writing=False) as reader:
        for writing in (False, True, True):  # once is enough
            with RunStore.open(directory, writing=writing) as store:
                assert store.plans() == reader.plans() == plans
                assert store.episodes() == reader.episodes() == episodes
                assert [bits(row) for row in store.transitions()] == transitions
                assert store.expected_of(4) is None
                assert store.header == header | {"format_version": 7 if writing else 2}
            if not writing:
                assert (directory / "run.sqlite").read_bytes() == before
    for table in ("plans", "episodes"):
        assert columns_of(directory, table) == columns_of(whole, table)
    assert rows_of(directory, "PRAGMA integrity_check") == [("ok",)]


def test_upgrade_of_format_2_that_fails_leaves_the_run_as_it_was(tmp_path: Path, whole: Path) -> None:
    directory = downgraded(whole, tmp_path / "run", 40, 2)
    connection = sqlite3.connect(directory / "run.sqlite")
    connection.execute("CREATE TABLE marks (mine)")  # as somebody else would have it
    connection.commit()
    connection.close()
    for _ in range(2):  # and it is not left locked
        with pytest.raises(DamagedError, match="table marks already exists") as told:
            RunStore.open(directory, writing=True)
        assert "\n" not in str(told.value)
    assert version_of(directory) == 2
    assert "expected" not in columns_of(directory, "episodes")


def spoiled(directory: Path) -> Path:
    with sqlite3.connect(directory / "run.sqlite") as connection:
        connection.execute("UPDATE plans SET basis_sizes = 'no JSON' WHERE n_transitions = 20")
    connection.close()
    return directory


def test_upgrade_that_fails_leaves_the_run_as_it_was(old: Path) -> None:
    spoiled(old)
    columns, transitions = columns_of(old), rows_of(old, "SELECT * FROM transitions")
    with pytest.raises(DamagedError, match="not what a run of format 1 holds") as told:
        RunStore.open(old, writing=True)
    assert "\n" not in str(told.value)
    assert version_of(old) == 1
    assert columns_of(old) == columns
    assert rows_of(old, "SELECT * FROM transitions") == transitions


def test_upgrade_that_fails_lets_go_of_the_run(old: Path) -> None:
    spoiled(old)
    for _ in range(2):
        with pytest.raises(DamagedError, match="format 1"):
            RunStore.open(old, writing=True)


# --- going on ---


@pytest.mark.parametrize(
    ("n_transitions", "version"),
    [(0, 1), (4, 2), (5, 1), (24, 2), (30, 1), (30, 3), (35, 2), (STEPS - 1, 3)],
)
def test_old_run_is_gone_on_with_and_ends_as_undisturbed(
    tmp_path: Path, whole: Path, n_transitions: int, version: int
) -> None:
    """Bit for bit: its checkpoint cannot be read, and nothing but time depends on that.

    But for what was expected of episodes that ended before anybody said so (format 3 did).
    """
    directory = downgraded(whole, tmp_path / "run", n_transitions, version)
    assert version_of(directory) == version
    found, wanted = gone_on(directory, short_car()), recorded(whole)
    ended = sum(row.transitions <= n_transitions for row in wanted.episodes) if version < 3 else 0
    forgotten = [replace(row, expected=None) for row in wanted.episodes[:ended]]
    assert found == replace(wanted, episodes=(*forgotten, *wanted.episodes[ended:]))
    assert version_of(directory) == 7


def test_run_that_the_old_version_wrote_is_gone_on_with(tmp_path: Path, hasty: Path, whole: Path) -> None:
    """Nothing that was recorded changes; what follows is as if today's agent had seen it."""
    with RunStore.open(hasty, writing=False) as store:
        before, ended = [bits(row) for row in store.transitions()], store.episodes()
        settings = parse_settings(store.header["settings"])
    again = shutil.copytree(hasty, tmp_path / "again")
    (again / "agent.optimist").unlink()
    assert gone_on(hasty, car()) == gone_on(again, car())
    with RunStore.open(hasty, writing=False) as store, RunStore.open(whole, writing=False) as undisturbed:
        rows, wanted = store.transitions(), undisturbed.transitions()
        assert [bits(row) for row in rows[:30]] == before
        assert len(rows) == len(wanted) == STEPS
        assert rows[0].state.tobytes() == wanted[0].state.tobytes()
        assert store.episodes()[:2] == ended
        assert [row.episode for row in store.episodes()] == [1, 2, 3, 4]
        assert [row["n_transitions"] for row in store.plans()] == [
            row["n_transitions"] for row in undisturbed.plans()
        ]
        assert parse_settings(store.header["settings"]) == settings
    assert settings.grid == Discretisation(nodes=(11, 11), hold=1)  # as it was then by default
    for name in ("first_plans", "replan_every", "model", "knownness"):
        assert getattr(settings, name) == getattr(QUICK, name)


@pytest.mark.parametrize(("version", "missing"), [(5, ("linear", "mirror")), (6, ("mirror",))])
def test_older_run_goes_on_without_trend_and_mirror(
    tmp_path: Path, whole: Path, version: int, missing: tuple[str, ...]
) -> None:
    """Its settings do not speak of them: there were none."""

    def older(header: dict[str, Any]) -> None:
        header["format_version"] = version
        for name in missing:
            assert header["settings"]["model"].pop(name) is False

    directory = with_header(cut_short(whole, tmp_path / "run", 40), older)
    with RunStore.open(directory, writing=False) as store:
        assert [store.header["settings"]["model"][name] for name in missing] == [False] * len(missing)
    assert gone_on(directory, short_car()).transitions == recorded(whole).transitions
    assert version_of(directory) == version


def test_command_line_goes_on_with_a_run_of_format_1(hasty: Path) -> None:
    """As the refusal of its agent file advises."""
    ran = run("resume", str(hasty), "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["transitions"] == 30
    assert version_of(hasty) == 7
    with GPRMax.resume(hasty, car(), writing=False) as learner:
        assert learner.num_timesteps == 30


# --- agents ---


def test_agent_file_of_format_1_is_refused_with_what_to_do() -> None:
    file = FORMAT_1 / "agent.optimist"
    with pytest.raises(ValueError, match="must be of format 6; got 1 in") as told:
        GPRMax.load(file, env=car())
    said = str(told.value)
    assert str(file) in said
    assert "\n" not in said
    assert said.endswith(
        "written by another version of Optimist. Learn again, or `optimist resume` the run it came from."
    )
