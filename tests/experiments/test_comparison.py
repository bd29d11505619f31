"""Recorded runs in numbers, against hand-made ones whose numbers are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from optimist.experiments.comparison import (
    PEER_PROBLEMS,
    NearRow,
    near_as_markdown,
    near_rows,
    peers_at_hand,
    statistics_as_markdown,
)
from optimist.experiments.peers import (
    DQN,
    DQN_TOTAL,
    MODULES,
    PEERS,
    PeerRun,
    _batch,
    _greedy_total,
    peer_file,
    run_peer,
)
from optimist.experiments.reproduce import recorded_runs
from optimist.experiments.specs import Experiment, Group
from optimist.experiments.statistics import Near
from optimist.experiments.sweep import run_sweep
from optimist.runs import EpisodeRow
from optimist.systems import SYSTEMS, find_system


def episodes(totals: Sequence[float]) -> list[EpisodeRow]:
    """Ten transitions each."""
    return [EpisodeRow(k + 1, 10, total, 10 * (k + 1), "truncated") for k, total in enumerate(totals)]


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_statistics_say_first_and_last_episode_and_how_probably_ours_is_better() -> None:
    runs = {
        ("pendulum", "gp-rmax-exp"): [episodes([-9.0, -2.0]), episodes([-7.0, -2.0])],
        ("pendulum", "sarsa-fine"): [episodes([-9.0, -8.0, -3.0]), episodes([-9.0, -8.0, -1.0])],
    }
    head, rule, ours, theirs = cells(statistics_as_markdown(runs, {"pendulum": -1.5}))
    assert len(head) == len(rule) == len(ours) == len(theirs)
    assert ours[:6] == ["pendulum", "gp-rmax-exp", "2", "-8", "2", "-2 [-2, -2]"]
    assert ours[7:] == ["", "-1.5"]
    assert theirs[:5] == ["pendulum", "sarsa-fine", "2", "-9", "3"]
    assert theirs[5] == "-2 [-3, -1]"  # two seeds: the interval is the range
    assert theirs[7].startswith("0.50 [")


def test_a_sure_improvement_is_said_to_be_sure() -> None:
    runs = {
        ("pendulum", "gp-rmax-exp"): [episodes([-1.0]), episodes([-2.0])],
        ("pendulum", "sarsa-fine"): [episodes([-3.0]), episodes([-4.0])],
    }
    assert cells(statistics_as_markdown(runs, {"pendulum": 0.0}))[3][7] == "1.00 [1, 1]"


def test_the_table_says_medians_ranges_never_and_ratios() -> None:
    rows = [
        NearRow("pendulum", "gp-rmax-exp", "its plans", [Near(20, 20, 20), Near(40, 40, 40)]),
        NearRow("pendulum", "gp-rmax-exp", "its episodes", [Near(500, 500, 500), Near(500, 500, 500)]),
        NearRow("pendulum", "dqn", "x", [Near(3000, None, None), Near(6000, 6000, 6000)]),
        NearRow("pendulum", "fqi", "x", [Near(None, None, None)] * 2),
        NearRow("pendulum", "sarsa-fine", "x", [Near(900, 900, 1500), Near(1000, 1000, 4500)]),
    ]
    head, rule, plans, online, dqn, fqi, sarsa = cells(near_as_markdown(rows))
    assert len({len(line) for line in (head, rule, plans, online, dqn, fqi, sarsa)}) == 1
    assert plans == ["pendulum", "gp-rmax-exp", "its plans", "2", *["30 (20 to 40)"] * 3, ""]
    assert online[4:] == ["500 (500)", "500 (500)", "500 (500)", ""]
    assert dqn[4:] == ["4,500 (3,000 to 6,000)", *["never (6,000, never in 1)"] * 2, "150"]
    assert fqi[4:] == ["never"] * 4
    assert sarsa[4:] == ["950 (900 to 1,000)", "950 (900 to 1,000)", "3,000 (1,500 to 4,500)", "31.7"]


def test_rows_come_from_what_is_recorded(tmp_path: Path) -> None:
    experiment = Experiment(
        name="trial",
        runs=(
            Group(problems=("mountain-car",), agents=("gp-rmax-exp",), seeds=2, episodes=2),
            Group(problems=("mountain-car",), agents=("sarsa-coarse",), seeds=2, episodes=3),
        ),
    )
    assert {outcome.status for outcome in run_sweep(experiment.specs(), tmp_path, workers=1)} == {"done"}
    for peer in PEERS:
        made = PeerRun(peer, "mountain-car", 0, [500, 1000, 1500], [-500.0, -103.0, -120.0])
        file = tmp_path / "peers" / "mountain-car" / peer / "seed-0.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(asdict(made)), encoding="utf-8")
    best = {"mountain-car": -103.0}
    said: list[str] = []
    runs = recorded_runs(experiment, tmp_path)
    rows = list(
        near_rows(experiment, runs, tmp_path, best, peers=["dqn", "fqi"], peer_seeds=1, say=said.append)
    )
    assert [row.agent for row in rows] == ["gp-rmax-exp", "gp-rmax-exp", "sarsa-coarse", "dqn", "fqi"]
    plans, online, sarsa, dqn, _ = rows
    for near, seeds in zip(
        online.runs, recorded_runs(experiment, tmp_path)["mountain-car", "gp-rmax-exp"], strict=True
    ):
        first = next(row.transitions for row in seeds if row.total_reward >= -103.0 * 1.05)
        assert near.first == first
    assert all(near.for_good is not None and near.for_good <= 200 for near in plans.runs)
    assert sarsa.runs == [Near(None, None, None)] * 2
    assert dqn.runs == [Near(1000, None, None)]
    assert len(said) == 3


@pytest.mark.parametrize("problem", SYSTEMS)
def test_a_batch_is_transitions_of_the_system_from_all_over_its_box(problem: str) -> None:
    system = find_system(problem)
    task = system.task
    batch = _batch(system, 300, seed=1)
    assert len(batch) == 300
    states = np.array([row[0] for row in batch])
    assert task.box.contains(states[0])
    assert not task.terminal(states).any()
    spread = np.ptp(states, axis=0) / task.box.widths
    assert (spread > 0.5).all()
    for state, action, reward, next_state, absorbing, last in batch[:50]:
        control = task.controls[action]
        np.testing.assert_array_equal(system.dynamics(state[np.newaxis], control)[0], next_state)
        assert reward == task.rewards(state[np.newaxis], control, next_state[np.newaxis])[0]
        assert absorbing == bool(task.terminal(next_state[np.newaxis])[0])
        assert last
    again = np.array([row[0] for row in _batch(system, 300, seed=1)])
    np.testing.assert_array_equal(again, states)


def test_a_greedy_total_is_that_of_an_episode() -> None:
    system = find_system("mountain-car")
    always = _greedy_total(lambda states: np.ones(len(states), dtype=np.int64), system)  # no throttle
    assert always == -500.0
    # with the slope: the classic way out of the valley, known to reach the goal
    total = _greedy_total(lambda states: np.where(states[:, 1] < 0.0, 0, 2), system)
    assert -250.0 < total < -100.0


def test_there_are_settings_for_every_problem_with_peers() -> None:
    assert set(PEER_PROBLEMS) <= set(DQN)
    assert set(DQN) == set(DQN_TOTAL) == set(SYSTEMS)


@pytest.mark.parametrize(("peer", "module"), [("dqn", "stable_baselines3"), ("fqi", "mushroom_rl")])
def test_a_peer_that_is_not_installed_says_how_to_install_it(peer: str, module: str, tmp_path: Path) -> None:
    if find_spec(module) is not None:
        pytest.skip("installed")
    with pytest.raises(ValueError, match=r"not installed: pip install torch==2.13.0, then pip install"):
        run_peer(peer, "pendulum", 0, tmp_path)
    assert not list(tmp_path.iterdir())


def test_peers_at_hand_are_those_installed_or_recorded(tmp_path: Path) -> None:
    installed = [peer for peer, module in MODULES.items() if find_spec(module) is not None]
    assert peers_at_hand(tmp_path, 1) == installed
    for problem in PEER_PROBLEMS:
        file = peer_file("fqi", problem, 0, tmp_path)
        file.parent.mkdir(parents=True)
        file.write_text("", encoding="utf-8")
    assert "fqi" in peers_at_hand(tmp_path, 1)
    assert ("fqi" in peers_at_hand(tmp_path, 2)) == ("fqi" in installed)


def test_a_damaged_record_of_a_peer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "peers" / "pendulum" / "dqn" / "seed-0.json"
    file.parent.mkdir(parents=True)
    file.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"must be what `run_peer` wrote; got .*seed-0.json"):
        run_peer("dqn", "pendulum", 0, tmp_path)
