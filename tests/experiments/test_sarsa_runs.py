"""Recorded runs of Sarsa: the same store, the same starts, and going on after an interruption."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.kinds import KINDS, find_kind
from optimist.experiments.online import open_run, start_run
from optimist.experiments.problems import find_problem
from optimist.experiments.sarsa_runs import CHUNK, SarsaRun
from optimist.experiments.sarsa_settings import SARSA_AGENTS, sarsa_settings
from optimist.planning import roll_out
from optimist.runs import EpisodeRow, Event, RunError, RunStore
from optimist.runs.loop import Ended, reset_seed
from optimist.systems import PAPER, SYSTEMS
from tests.runs.recording import rewritten, with_header


def recorded(directory: Path) -> list[EpisodeRow]:
    with RunStore.open(directory, writing=False) as store:
        return store.episodes()


def begun(problem: str, agent: str, *, seed: int, episodes: int, directory: Path | None = None) -> SarsaRun:
    """A run, recorded if there is a directory, that has learned nothing yet."""
    run = SarsaRun(agent, SYSTEMS[problem], sarsa_settings(problem, agent), seed=seed)
    if directory is not None:
        run.record(directory, episodes=episodes)
    return run


def learned(
    problem: str, agent: str, *, seed: int, episodes: int, directory: Path | None = None
) -> list[EpisodeRow]:
    with begun(problem, agent, seed=seed, episodes=episodes, directory=directory) as run:
        return run.learn(episodes=episodes).episodes


def gone_on(directory: Path, episodes: int | None = None) -> list[EpisodeRow]:
    """To `episodes` in all, by default to as many as it was started with."""
    with RunStore.open(directory, writing=False) as store:
        wanted = store.header["episodes"] if episodes is None else episodes
    run, _ = open_run(directory, writing=True)
    with run:
        return run.learn(episodes=wanted).episodes


@pytest.mark.parametrize("agent", SARSA_AGENTS)
@pytest.mark.parametrize("problem", PAPER)
def test_a_run_is_recorded_as_it_went(problem: str, agent: str, tmp_path: Path) -> None:
    rows = learned(problem, agent, seed=2, episodes=12, directory=tmp_path / "run")
    assert recorded(tmp_path / "run") == rows
    assert rows == learned(problem, agent, seed=2, episodes=12)
    assert [row.episode for row in rows] == list(range(1, 13))
    assert [row.transitions for row in rows] == np.cumsum([row.steps for row in rows]).tolist()
    assert {row.ending for row in rows} <= {"terminated", "truncated"}
    with RunStore.open(tmp_path / "run", writing=False) as store:
        header = store.header
    assert (header["agent"], header["problem"], header["seed"], header["episodes"]) == (agent, problem, 2, 12)
    assert header["settings"] == sarsa_settings(problem, agent).model_dump(mode="json")


def test_a_run_of_the_kind_is_the_run_its_settings_and_seed_make(tmp_path: Path) -> None:
    problem = find_problem("pendulum")
    with start_run(problem, "sarsa-coarse", seed=4, run=tmp_path / "run", episodes=6) as run:
        run.learn(episodes=6)
    assert recorded(tmp_path / "run") == learned("pendulum", "sarsa-coarse", seed=4, episodes=6)


def test_an_interrupted_run_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    n = 2 * CHUNK + 30
    whole = learned("mountain-car", "sarsa-fine", seed=5, episodes=n, directory=tmp_path / "whole")

    class StoppedError(Exception):
        pass

    def stop(event: Event) -> None:
        if isinstance(event, Ended) and event.ended.episode == CHUNK + 7:
            raise StoppedError

    broken = tmp_path / "broken"
    with (
        begun("mountain-car", "sarsa-fine", seed=5, episodes=n, directory=broken) as run,
        pytest.raises(StoppedError),
    ):
        run.learn(episodes=n, callback=stop)
    assert 0 < len(recorded(broken)) < n
    assert recorded(broken) == whole[: len(recorded(broken))]
    assert gone_on(broken) == whole
    assert recorded(broken) == whole


def test_a_run_that_learns_on_in_the_same_process_is_the_run_made_long_at_once(tmp_path: Path) -> None:
    whole = learned("mountain-car", "sarsa-coarse", seed=0, episodes=35)
    with begun("mountain-car", "sarsa-coarse", seed=0, episodes=20, directory=tmp_path / "run") as run:
        assert run.learn(episodes=20).episodes == whole[:20]
        assert run.learn(episodes=35).episodes == whole
        assert run.num_timesteps == whole[-1].transitions
    assert recorded(tmp_path / "run") == whole


def test_a_run_can_be_made_longer_and_is_never_made_shorter(tmp_path: Path) -> None:
    learned("mountain-car", "sarsa-coarse", seed=0, episodes=20, directory=tmp_path)
    longer = gone_on(tmp_path, episodes=35)
    assert longer == learned("mountain-car", "sarsa-coarse", seed=0, episodes=35)
    assert gone_on(tmp_path, episodes=10) == longer
    assert recorded(tmp_path) == longer


def test_a_record_that_does_not_come_out_again_is_not_continued(tmp_path: Path) -> None:
    learned("mountain-car", "sarsa-coarse", seed=0, episodes=20, directory=tmp_path)

    def change(rows: dict[str, list[Any]]) -> None:
        steps, _, *others = rows["episodes"][12]
        rows["episodes"][12] = (steps, -1.0, *others)

    rewritten(tmp_path, change)
    before = recorded(tmp_path)
    with pytest.raises(RunError, match="must come out again as it was recorded; episode 13 does not"):
        gone_on(tmp_path, episodes=30)
    assert recorded(tmp_path) == before


def test_the_learner_of_a_run_acts_on_what_it_learned(tmp_path: Path) -> None:
    learned("mountain-car", "sarsa-fine", seed=0, episodes=300, directory=tmp_path)
    run, problem = open_run(tmp_path, writing=False)
    with run:
        assert isinstance(run, SarsaRun)
        assert run.policy.n_episodes == len(run.episodes) == 300
        system = problem.system
        assert system is not None
        assert roll_out(system.task, system.dynamics, run.policy, system.starts).total_rewards[0] > -140.0
        # and says what states are worth, not what it does not know
        assert np.array_equal(run.value(system.starts), run.policy.q_values(system.starts).max(axis=1))
        assert run.uncertainty(system.starts) is None


def test_looking_at_a_run_writes_nothing(tmp_path: Path) -> None:
    learned("mountain-car", "sarsa-coarse", seed=0, episodes=5, directory=tmp_path / "run")
    before = (tmp_path / "run" / "run.sqlite").read_bytes()
    run, problem = open_run(tmp_path / "run", writing=False)
    with run:
        run.policy.greedy(problem.starts)
    assert (tmp_path / "run" / "run.sqlite").read_bytes() == before


def test_episodes_start_where_the_environment_starts_them() -> None:
    """The bicycle leans to one side or the other: its first reward is the same, the side is not."""
    environment = SystemEnvironment("bicycle")
    sides = [np.sign(environment.reset(seed=reset_seed(9, episode))[0][0]) for episode in range(1, 21)]
    assert set(sides) == {-1.0, 1.0}
    found = begun("bicycle", "sarsa-fine", seed=9, episodes=20)._starts(range(1, 21))
    assert np.sign(found[:, 0]).tolist() == sides


def test_seeds_differ() -> None:
    first, second = (learned("mountain-car", "sarsa-fine", seed=seed, episodes=20) for seed in (0, 1))
    assert [row.steps for row in first] != [row.steps for row in second]


@pytest.mark.parametrize(
    ("problem", "agent", "seed", "says"),
    [
        ("unicycle", "sarsa-fine", 0, "problem must be one of"),
        ("pendulum", "sarsa", 0, "agent must be one of .*sarsa-fine, sarsa-coarse; got 'sarsa'"),
        ("pendulum", "sarsa-fine", -1, "`seed` must be a whole number, not negative; got -1"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing_behind(
    problem: str, agent: str, seed: int, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=says):
        start_run(find_problem(problem), agent, seed=seed, run=tmp_path / "run", episodes=5)
    assert not (tmp_path / "run").exists()


def test_no_episodes_are_refused_and_none_are_made(tmp_path: Path) -> None:
    with (
        begun("pendulum", "sarsa-fine", seed=0, episodes=5, directory=tmp_path / "run") as run,
        pytest.raises(ValueError, match="`episodes` must be at least 1; got 0"),
    ):
        run.learn(episodes=0)
    assert recorded(tmp_path / "run") == []


@pytest.mark.parametrize("choices", [{}, {"total_timesteps": 50}, {"total_timesteps": 50, "episodes": 2}])
def test_it_learns_whole_episodes_and_says_so(choices: dict[str, Any]) -> None:
    run = begun("pendulum", "sarsa-fine", seed=0, episodes=5)
    with pytest.raises(ValueError, match="must be told how many `episodes`"):
        run.learn(**choices)
    assert run.episodes == []


def test_settings_of_another_agent_are_refused() -> None:
    with pytest.raises(ValueError, match="agent must be one of sarsa-fine, sarsa-coarse; got 'sarsa'"):
        sarsa_settings("pendulum", "sarsa")


@pytest.mark.parametrize(("preset", "file"), [("paper", None), ("ours", Path("settings.toml"))])
def test_preset_and_settings_of_gp_rmax_are_refused(preset: str, file: Path | None) -> None:
    with pytest.raises(ValueError, match="must be left out with sarsa-fine, which has its own"):
        find_kind("sarsa-fine").choose(find_problem("pendulum"), preset, file)


def test_a_run_of_another_agent_is_refused(tmp_path: Path) -> None:
    """A record of Sarsa has nothing that GP-RMAX could go on with, and its settings say so."""
    problem = find_problem("mountain-car")
    learned("mountain-car", "sarsa-coarse", seed=0, episodes=2, directory=tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    with_header(tmp_path / "other", lambda header: header.update(agent="gp-rmax-exp"))
    with pytest.raises(ValueError, match="must not have unknown keys; got 'tilings'"):
        open_run(tmp_path / "other", writing=True)
    with pytest.raises(ValueError, match="must be new"):
        KINDS["sarsa-coarse"].start(problem, sarsa_settings("mountain-car", "sarsa-coarse"), 0).record(
            tmp_path / "run", episodes=2
        )


def test_what_could_not_be_recorded_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle: the next try goes on as if it had not been, and so does whoever resumes."""
    problem, kind = find_problem("mountain-car"), KINDS["sarsa-fine"]
    settings = kind.choose(problem, "ours", None)
    whole = kind.start(problem, settings, 0)
    whole.learn(episodes=5)
    made = kind.start(problem, settings, 0)
    made.record(tmp_path / "run", episodes=5)

    def full(self: RunStore, rows: object) -> None:
        raise RunError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "end_episodes", full)
        with pytest.raises(RunError, match="no space left"):
            made.learn(episodes=3)
    made.learn(episodes=5)
    made.close()
    assert made.episodes == whole.episodes
    with kind.reopen(tmp_path / "run", problem, True) as again:
        again.learn(episodes=6)
        assert again.episodes[:5] == whole.episodes


def test_a_callback_that_says_false_stops_it() -> None:
    problem, kind = find_problem("mountain-car"), KINDS["sarsa-fine"]
    made = kind.start(problem, kind.choose(problem, "ours", None), 0)
    made.learn(episodes=300, callback=lambda event: False)
    assert 0 < len(made.episodes) < 300
