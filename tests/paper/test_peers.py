"""Other people's agents: what they are given, how they are tried, and their records."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from optimist.paper.comparison import PEER_PROBLEMS
from optimist.paper.peers import DQN, DQN_TOTAL, _batch, _greedy_total, run_peer
from optimist.systems import PAPER, find_system


@pytest.mark.parametrize("problem", PAPER)
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
    assert set(DQN) == set(DQN_TOTAL) == set(PAPER)


@pytest.mark.parametrize(("peer", "module"), [("dqn", "stable_baselines3"), ("fqi", "mushroom_rl")])
def test_a_peer_that_is_not_installed_says_how_to_install_it(peer: str, module: str, tmp_path: Path) -> None:
    if find_spec(module) is not None:
        pytest.skip("installed")
    with pytest.raises(ValueError, match=r"not installed: pip install torch==2.13.0, then pip install"):
        run_peer(peer, "pendulum", 0, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_record_of_a_peer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "peers" / "pendulum" / "dqn" / "seed-0.json"
    file.parent.mkdir(parents=True)
    file.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"must be what `run_peer` wrote; got .*seed-0.json"):
        run_peer("dqn", "pendulum", 0, tmp_path)
