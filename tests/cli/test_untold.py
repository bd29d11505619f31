"""The command with Gymnasium ids and environments that say nothing of their task."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimist.experiments.gymnasium_ids import looks_like_id, make, with_arguments
from tests.cli.running import Say, SayJson, require_refused

QUICK = """
first_plans = [5, 20]
replan_every = 100
[grid]
budget = 400
[planning]
depth = 1
rehearse = false
"""
NEVER = """
import gymnasium, numpy as np

class Never(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.1, 0.1)
        return np.array([self.x]), {}

    def step(self, action):
        self.x = float(np.clip(self.x + 0.1 * (action - 0.5), -1.0, 1.0))
        return np.array([self.x]), 0.0, False, False, {}

def make_env():
    return gymnasium.wrappers.TimeLimit(Never(), 25)
"""


def test_an_id_is_learned_evaluated_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say_json: SayJson
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick.toml").write_text(QUICK)
    learned = say_json(
        "learn", "MountainCar-v0", "--episodes", "1", "--settings", "quick.toml",
        "--env-arg", "goal_velocity=0",
    )  # fmt: skip
    assert learned["problem"] == "MountainCar-v0[goal_velocity=0]"
    assert any("reward: constant -1" in line for line in learned["rehearsal"]["believed"])
    played = say_json("evaluate", learned["run"])
    assert len(played["episodes"]) == 5
    resumed = say_json("resume", learned["run"], "--episodes", "2")
    assert len(resumed["episodes"]) == 2


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("MountanCar-v0", "Near: MountainCar-v0"),
        ("nobody_has_this:Foo-v0", "No module named 'nobody_has_this'"),
        ("CartPole-v1[wings=2]", "unexpected keyword argument 'wings'"),
        ("Blackjack-v1", "one-dimensional arrays of numbers"),
    ],
)
def test_what_is_no_problem_is_refused(say: Say, problem: str, said: str) -> None:
    assert said in require_refused(say("learn", problem, "--json"))


def test_who_never_ends_and_never_pays_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "never.py").write_text(NEVER)
    (tmp_path / "quick.toml").write_text(QUICK)
    code, _, err = say("learn", "never.py:make_env", "--settings", "quick.toml")
    assert code == 2
    assert "there is nothing to learn; got 0 for each of 125 transitions" in err


def test_arguments_are_parsed() -> None:
    assert (
        with_arguments("CartPole-v1", ["sutton_barto_reward=true"]) == "CartPole-v1[sutton_barto_reward=true]"
    )
    assert looks_like_id("CartPole-v1[sutton_barto_reward=true]")
    assert make("CartPole-v1[sutton_barto_reward=true]").unwrapped._sutton_barto_reward is True  # type: ignore[attr-defined]
    for wrong in ("x", "=1", "a=[1]"):
        with pytest.raises(ValueError, match="--env-arg must be KEY=VALUE"):
            with_arguments("CartPole-v1", [wrong])
    with pytest.raises(ValueError, match="must come with the id"):
        with_arguments("pendulum", ["a=1"])
