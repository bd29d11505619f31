"""With the real Stable-Baselines3: its tools take our agents, which take its wrappers and callbacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from optimist import GPRMax
from tests.runs.recording import SMALL, ShortSystem

pytest.importorskip(
    "stable_baselines3", reason="Stable-Baselines3 is not installed (torch, then `pip install '.[peers]'`)"
)

from stable_baselines3.common import callbacks, logger
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

LENGTH = 15


def car() -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(ShortSystem("mountain-car", 40), LENGTH)


def made(env: Any = None, **chosen: Any) -> GPRMax:
    return GPRMax(car() if env is None else env, settings=SMALL, seed=1, **chosen)


def assert_same(one: GPRMax, other: GPRMax) -> None:
    for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one.transitions, name), getattr(other.transitions, name))
    np.testing.assert_array_equal(one.plan.q_values, other.plan.q_values)


@pytest.mark.parametrize("wrap", [Monitor, lambda env: DummyVecEnv([lambda: env]), None])
def test_a_policy_is_evaluated(wrap: Any) -> None:
    learner = made().learn(30)
    env = car() if wrap is None else wrap(car())
    with pytest.warns(UserWarning, match="Monitor") if wrap is not Monitor else _nothing():
        rewards, lengths = evaluate_policy(learner, env, n_eval_episodes=3, return_episode_rewards=True)
    assert lengths == [LENGTH] * 3
    assert rewards == [-LENGTH] * 3


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.parametrize(
    "wrap",
    [Monitor, lambda env: DummyVecEnv([lambda: env]), lambda env: VecMonitor(DummyVecEnv([lambda: env]))],
)
def test_it_learns_inside_their_wrappers(wrap: Any) -> None:
    """A step is -1: single precision, as theirs are, is exact."""
    wrapped = wrap(car())
    learner = made(wrapped)
    learner.learn(20)
    learner.learn(20)
    assert_same(learner, made().learn(40))
    assert learner.get_env() is wrapped
    if isinstance(wrapped, Monitor):
        assert wrapped.get_episode_lengths() == [LENGTH] * 2


def test_their_checker_has_no_complaint() -> None:
    check_env(car(), warn=False)


class Heard(callbacks.BaseCallback):  # type: ignore[misc]
    """As anybody would write one for Stable-Baselines3."""

    def __init__(self) -> None:
        super().__init__()
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        self.rewards.append(float(self.locals["rewards"][0]))
        return bool(self.num_timesteps < 12)


def test_their_callbacks_are_heard(tmp_path: Path) -> None:
    heard = Heard()
    saved = callbacks.CheckpointCallback(5, str(tmp_path / "saved"), name_prefix="car")
    learner = made().learn(40, callback=[heard, saved])
    assert heard.rewards == [-1.0] * 12
    assert learner.num_timesteps == 12
    assert len(list((tmp_path / "saved").iterdir())) == 2
    together = callbacks.CallbackList([callbacks.StopTrainingOnMaxEpisodes(1)])
    assert made(DummyVecEnv([car])).learn(40, callback=together).num_timesteps == LENGTH


def test_their_evaluation_and_their_logger_work(tmp_path: Path) -> None:
    evaluation = callbacks.EvalCallback(
        Monitor(car()),
        n_eval_episodes=2,
        eval_freq=10,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path / "best"),
        callback_on_new_best=callbacks.StopTrainingOnRewardThreshold(-LENGTH),
        verbose=0,
        warn=False,
    )
    learner = made()
    learner.set_logger(logger.configure(str(tmp_path / "logs"), ["csv"]))
    with pytest.warns(UserWarning, match="not of the same type"):
        learner.learn(40, callback=evaluation)
    assert learner.num_timesteps == 10
    assert np.load(tmp_path / "evaluations.npz")["results"].tolist() == [[-LENGTH] * 2]
    learner.close()
    assert "eval/mean_reward" in (tmp_path / "logs/progress.csv").read_text()


def test_tensorboard_reads_what_is_logged(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    learner = made(tensorboard_log=tmp_path).learn(40)
    read = accumulator.EventAccumulator(str(tmp_path / "gp-rmax-exp_1"))
    read.Reload()
    found = [(event.step, event.value) for event in read.Scalars("rollout/ep_rew")]
    assert found == [(row.transitions, row.total_reward) for row in learner.episodes]
