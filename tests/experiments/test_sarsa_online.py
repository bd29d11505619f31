"""Recorded runs of Sarsa: the same store, the same starts, and going on after an interruption."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.sarsa_online import CHUNK, resume_sarsa, run_sarsa, sarsa_learner
from optimist.experiments.sarsa_settings import SARSA_AGENTS, sarsa_settings
from optimist.planning import roll_out
from optimist.runs import EpisodeRow, RunError, RunStore
from optimist.runs.loop import reset_seed
from optimist.systems import SYSTEMS


def recorded(directory: Path) -> list[EpisodeRow]:
    with RunStore.open(directory, writing=False) as store:
        return store.episodes()


@pytest.mark.parametrize("agent", SARSA_AGENTS)
@pytest.mark.parametrize("problem", SYSTEMS)
def test_a_run_is_recorded_as_it_went(problem: str, agent: str, tmp_path: Path) -> None:
    rows = run_sarsa(problem, agent, seed=2, episodes=12, directory=tmp_path / "run")
    assert recorded(tmp_path / "run") == rows
    assert rows == run_sarsa(problem, agent, seed=2, episodes=12)
    assert [row.episode for row in rows] == list(range(1, 13))
    assert [row.transitions for row in rows] == np.cumsum([row.steps for row in rows]).tolist()
    assert {row.ending for row in rows} <= {"terminated", "truncated"}
    with RunStore.open(tmp_path / "run", writing=False) as store:
        header = store.header
    assert (header["agent"], header["problem"], header["seed"], header["episodes"]) == (agent, problem, 2, 12)
    assert header["settings"] == sarsa_settings(problem, agent).model_dump(mode="json")


def test_an_interrupted_run_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    n = 2 * CHUNK + 30
    whole = run_sarsa("mountain-car", "sarsa-fine", seed=5, episodes=n, directory=tmp_path / "whole")

    class StoppedError(Exception):
        pass

    def stop(row: EpisodeRow) -> None:
        if row.episode == CHUNK + 7:
            raise StoppedError

    broken = tmp_path / "broken"
    with pytest.raises(StoppedError):
        run_sarsa("mountain-car", "sarsa-fine", seed=5, episodes=n, directory=broken, listener=stop)
    assert 0 < len(recorded(broken)) < n
    assert recorded(broken) == whole[: len(recorded(broken))]
    assert resume_sarsa(broken) == whole
    assert recorded(broken) == whole


def test_a_run_can_be_made_longer_and_is_never_made_shorter(tmp_path: Path) -> None:
    run_sarsa("mountain-car", "sarsa-coarse", seed=0, episodes=20, directory=tmp_path)
    longer = resume_sarsa(tmp_path, episodes=35)
    assert longer == run_sarsa("mountain-car", "sarsa-coarse", seed=0, episodes=35)
    assert resume_sarsa(tmp_path, episodes=10) == longer
    assert recorded(tmp_path) == longer


def test_a_record_that_does_not_come_out_again_is_not_continued(tmp_path: Path) -> None:
    run_sarsa("mountain-car", "sarsa-coarse", seed=0, episodes=20, directory=tmp_path)
    with sqlite3.connect(tmp_path / "run.sqlite") as connection:
        connection.execute("UPDATE episodes SET total_reward = -1 WHERE episode = 13")
    before = recorded(tmp_path)
    with pytest.raises(RunError, match="must come out again as it was recorded; episode 13 does not"):
        resume_sarsa(tmp_path, episodes=30)
    assert recorded(tmp_path) == before


def test_the_learner_of_a_run_acts_on_what_it_learned(tmp_path: Path) -> None:
    run_sarsa("mountain-car", "sarsa-fine", seed=0, episodes=300, directory=tmp_path)
    learner, system = sarsa_learner(tmp_path)
    assert learner.n_episodes == 300
    assert roll_out(system.task, system.dynamics, learner, system.starts).total_rewards[0] > -140.0


def test_episodes_start_where_the_environment_starts_them() -> None:
    """The bicycle leans to one side or the other: its first reward is the same, the side is not."""
    environment = SystemEnvironment("bicycle")
    sides = [np.sign(environment.reset(seed=reset_seed(9, episode))[0][0]) for episode in range(1, 21)]
    assert set(sides) == {-1.0, 1.0}
    from optimist.experiments.sarsa_online import _starts

    found = _starts(SYSTEMS["bicycle"], 9, range(1, 21))
    assert np.sign(found[:, 0]).tolist() == sides


def test_seeds_differ() -> None:
    first, second = (run_sarsa("mountain-car", "sarsa-fine", seed=seed, episodes=20) for seed in (0, 1))
    assert [row.steps for row in first] != [row.steps for row in second]


@pytest.mark.parametrize(
    ("problem", "agent", "seed", "episodes", "says"),
    [
        ("unicycle", "sarsa-fine", 0, 5, "problem must be one of"),
        ("pendulum", "sarsa", 0, 5, "agent must be one of sarsa-fine, sarsa-coarse; got 'sarsa'"),
        ("pendulum", "sarsa-fine", -1, 5, "`seed` must be a whole number, not negative; got -1"),
        ("pendulum", "sarsa-fine", 0, 0, "`episodes` must be at least 1; got 0"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing_behind(
    problem: str, agent: str, seed: int, episodes: int, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=says):
        run_sarsa(problem, agent, seed=seed, episodes=episodes, directory=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_of_another_agent_is_refused(tmp_path: Path) -> None:
    run_sarsa("mountain-car", "sarsa-coarse", seed=0, episodes=2, directory=tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    with sqlite3.connect(tmp_path / "other" / "run.sqlite") as connection:
        connection.execute("UPDATE header SET document = replace(document, 'sarsa-coarse', 'gp-rmax-exp')")
    with pytest.raises(ValueError, match="must be one of Sarsa; got 'gp-rmax-exp'"):
        resume_sarsa(tmp_path / "other")
    with pytest.raises(ValueError, match="must be new"):
        run_sarsa("mountain-car", "sarsa-coarse", seed=0, episodes=2, directory=tmp_path / "run")
