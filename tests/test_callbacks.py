"""Callbacks, loggers and all else that people know from Stable-Baselines3; with it: see `integration`."""

from __future__ import annotations

import copy
import csv
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from optimist import GPRMax
from optimist.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    StopTrainingOnRewardThreshold,
)
from optimist.runs import EpisodeRow, Event, RunStore, Stepped
from optimist.runs.agent_file import save_agent
from optimist.runs.logs import Logger, configure, next_folder
from optimist.runs.playing import play
from tests.runs.recording import LINE, SMALL, Line, ShortLine

EPISODE = LINE.max_steps  # 12


def made(env: Any = None, **chosen: Any) -> GPRMax:
    given: dict[str, Any] = {"settings": SMALL, "seed": 1}
    return GPRMax(ShortLine() if env is None else env, **given | chosen)


def assert_same_run(one: GPRMax, other: GPRMax) -> None:
    for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one.transitions, name), getattr(other.transitions, name))
    np.testing.assert_array_equal(one.plan.q_values, other.plan.q_values)
    assert one.episodes == other.episodes


# --- callbacks ---


class Counting(BaseCallback):
    """Notes what it is told, and stops when it is told to."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.told: list[str] = []
        self.stop_at = stop_at

    def _init_callback(self) -> None:
        self.told.append("init")

    def _on_training_start(self) -> None:
        self.told.append(f"start {self.num_timesteps}")

    def _on_step(self) -> bool:
        self.told.append(f"step {self.num_timesteps}")
        assert self.locals["rewards"][0] == self.model.transitions.rewards[-1]
        return self.n_calls != self.stop_at

    def _on_training_end(self) -> None:
        self.told.append("end")


def test_a_callback_hears_of_beginning_steps_and_end() -> None:
    callback, learner = Counting(), made()
    learner.learn(2, callback)
    learner.learn(1, callback=[callback])
    assert callback.told == ["init", "start 0", "step 1", "step 2", "end", "init", "start 2", "step 3", "end"]
    assert callback.training_env is learner.env


@pytest.mark.parametrize(
    "how", [list, tuple, CallbackList, lambda given: [[given[0]], CallbackList(given[1:])]]
)
def test_of_several_callbacks_the_first_that_says_no_stops_and_all_are_asked(how: Any) -> None:
    callbacks = [Counting(), Counting(stop_at=3), Counting()]
    learner = made().learn(7, callback=how(callbacks))
    assert learner.num_timesteps == 3
    assert [one.n_calls for one in callbacks] == [3, 3, 3]
    assert all(one.told[-1] == "end" for one in callbacks)


def test_functions_and_callbacks_may_stand_in_one_list() -> None:
    heard: list[Event] = []
    learner = made().learn(6, callback=[heard.append, Counting(stop_at=6), lambda event: None])
    assert sum(isinstance(event, Stepped) for event in heard) == 6 == learner.num_timesteps


@pytest.mark.parametrize("wrong", [3, "often", [made, 3]])
def test_what_cannot_be_called_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="`callback` must be a function of an event, a callback, or a list"):
        made().learn(2, callback=wrong)


def test_listening_changes_nothing(tmp_path: Path) -> None:
    """Evaluations, checkpoints and logs in the middle of a run leave it as it is."""
    learner = made(verbose=2, tensorboard_log=tmp_path / "logs")
    learner.learn(
        40,
        callback=[
            EvalCallback(ShortLine(), n_eval_episodes=2, eval_freq=7, best_model_save_path=tmp_path / "best"),
            CheckpointCallback(9, tmp_path / "saved"),
        ],
    )
    assert_same_run(learner, made().learn(40))


def test_an_evaluation_is_what_the_policy_earns_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = EvalCallback(
        ShortLine(),
        n_eval_episodes=3,
        eval_freq=10,
        log_path=tmp_path / "log",
        best_model_save_path=tmp_path / "best",
    )
    learner = made().learn(30, callback=callback)
    saved = np.load(tmp_path / "log/evaluations.npz")
    assert saved["timesteps"].tolist() == [10, 20, 30]
    expected = play(ShortLine(), LINE, learner.policy, 3, seed=0)
    np.testing.assert_array_equal(saved["results"][-1], expected.total_rewards)
    np.testing.assert_array_equal(saved["ep_lengths"][-1], [EPISODE] * 3)
    assert callback.last_mean_reward == pytest.approx(expected.total_rewards.mean())
    assert callback.best_mean_reward == saved["results"].mean(axis=1).max()
    best = GPRMax.load(tmp_path / "best/best_model.optimist", env=ShortLine())
    assert best.num_timesteps == saved["timesteps"][saved["results"].mean(axis=1).argmax()]
    assert capsys.readouterr().out.count("evaluated after") == 3


def test_before_the_first_plan_nothing_is_evaluated() -> None:
    callback = EvalCallback(ShortLine(), eval_freq=2, n_eval_episodes=1, verbose=0)
    made().learn(7, callback=callback)
    assert callback.evaluations_timesteps == [6]


def test_evaluating_where_it_learns_is_refused() -> None:
    learner = made()
    with pytest.raises(ValueError, match="`eval_env` must be an environment of its own"):
        learner.learn(5, callback=EvalCallback(learner.get_env()))
    with pytest.raises(ValueError, match="`eval_env` must be an environment; got None"):
        EvalCallback(None)


def test_good_enough_in_an_evaluation_stops() -> None:
    stop = StopTrainingOnRewardThreshold(reward_threshold=-1e9)
    callback = EvalCallback(
        ShortLine(), callback_on_new_best=stop, eval_freq=10, n_eval_episodes=1, verbose=0
    )
    assert made().learn(40, callback=callback).num_timesteps == 10
    callback = EvalCallback(
        ShortLine(),
        callback_on_new_best=StopTrainingOnRewardThreshold(0.0),
        callback_after_eval=(after := Counting()),
        eval_freq=10,
        n_eval_episodes=1,
        verbose=0,
    )
    assert made().learn(25, callback=callback).num_timesteps == 25
    assert after.n_calls == 2


def test_good_enough_while_learning_stops(capsys: pytest.CaptureFixture[str]) -> None:
    episodes = made().learn(episodes=3).episodes
    goal = max(row.total_reward for row in episodes[1:])
    first = next(row for row in episodes if row.total_reward >= goal)
    learner = made().learn(40, callback=StopTrainingOnRewardThreshold(goal, verbose=1))
    assert learner.num_timesteps == first.transitions
    assert "stopped: " in capsys.readouterr().out


def test_checkpoints_are_agents_as_they_were(tmp_path: Path) -> None:
    made().learn(
        20, callback=CheckpointCallback(save_freq=9, save_path=tmp_path / "saved", name_prefix="line")
    )
    files = sorted(file.name for file in (tmp_path / "saved").iterdir())
    assert files == ["line_18_steps.optimist", "line_9_steps.optimist"]
    loaded = GPRMax.load(tmp_path / "saved/line_18_steps.optimist", env=ShortLine())
    as_it_was = made().learn(18)
    np.testing.assert_array_equal(loaded.plan.q_values, as_it_was.plan.q_values)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CheckpointCallback(0, "x"), "`save_freq` must be at least 1; got 0"),
        (lambda: EvalCallback(ShortLine(), eval_freq=0), "`eval_freq` must be at least 1; got 0"),
        (lambda: StopTrainingOnRewardThreshold(np.nan), "`reward_threshold` must be"),
        (lambda: made().learn(3, log_interval=0), "`log_interval` must be at least 1; got 0"),
        (lambda: made(verbose=-1), "`verbose` must be at least 0; got -1"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


# --- saying and logging ---


def test_verbose_says_every_so_many_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    made().learn(episodes=1)
    assert capsys.readouterr().out == ""
    learner = made(verbose=1).learn(episodes=4, log_interval=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"  {row.told()}" for row in learner.episodes[1::2]]
    assert lines[0].startswith("  episode 2: total reward ")
    assert repr(learner) == "<GPRMax gp-rmax-exp, seed 1: 48 transitions, 4 episodes>"
    made(verbose=1).learn(episodes=1, log_interval=None)
    assert capsys.readouterr().out == ""
    made(verbose=2).learn(5)
    assert "plan after 5 transitions: " in capsys.readouterr().out


def events_in(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Scalars in TensorBoard's files, read as the format says: length, its checksum, record, its checksum."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    found: dict[str, list[tuple[int, float]]] = {}
    for file in sorted(folder.glob("events.out.tfevents.*")):
        content, at = file.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            event = event_pb2.Event.FromString(content[at + 12 : at + 12 + length])
            at += 12 + length + 4
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard_shows_every_episode_and_every_plan(tmp_path: Path) -> None:
    learner = made(tensorboard_log=tmp_path).learn(30)
    learner.learn(10)  # goes on in the same folder
    (folder,) = tmp_path.iterdir()
    assert folder.name == "gp-rmax-exp_1"
    found = events_in(folder)
    assert [step for step, _ in found["rollout/ep_rew"]] == [row.transitions for row in learner.episodes]
    np.testing.assert_allclose(
        [value for _, value in found["rollout/ep_rew"]],
        [row.total_reward for row in learner.episodes],
        rtol=1e-6,
    )
    assert [step for step, _ in found["train/mean_uncertainty"]] == [5, 10, 20, 35]
    learner.learn(12, reset_num_timesteps=True, tb_log_name="again")
    assert {file.name for file in tmp_path.iterdir()} == {"gp-rmax-exp_1", "again_1"}
    assert [step for step, _ in events_in(tmp_path / "again_1")["rollout/ep_rew"]] == [12]


def test_a_logger_writes_columns_and_lines_that_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = made()
    learner.set_logger(configure(tmp_path / "logs", ["stdout", "csv", "json"]))
    learner.learn(30, callback=EvalCallback(ShortLine(), eval_freq=15, n_eval_episodes=1, verbose=0))
    with (tmp_path / "logs/progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "logs/progress.json").read_text().splitlines()]
    assert [{k: float(v) for k, v in row.items() if v} for row in rows] == lines
    earned = [line["rollout/ep_rew"] for line in lines if "rollout/ep_rew" in line]
    assert earned == [row.total_reward for row in learner.episodes]
    assert [line["time/total_timesteps"] for line in lines if "eval/mean_reward" in line] == [15, 30]
    assert "| rollout/ep_rew " in capsys.readouterr().out


def test_a_logger_keeps_what_is_for_others_from_a_format(tmp_path: Path) -> None:
    logger = configure(tmp_path, ["csv", "json"])
    logger.record("a", 1.5, exclude="csv")
    logger.record("b", np.float32(2.0), exclude=("json",))
    logger.record("words", "are no numbers")
    logger.dump(3)
    logger.dump(4)  # there is nothing new
    logger.close()
    assert (tmp_path / "progress.csv").read_text() == "time/total_timesteps,b\n3,2.0\n"
    assert json.loads((tmp_path / "progress.json").read_text()) == {"time/total_timesteps": 3, "a": 1.5}
    assert not Logger()


@pytest.mark.parametrize("formats", [["xml"], "csv"])
def test_formats_that_are_none_are_refused(formats: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="`format_strings` must be a list of stdout, csv, json, tensorboard; got"
    ):
        configure(tmp_path, formats)


def test_folders_of_logs_are_counted(tmp_path: Path) -> None:
    for name in ("run_1", "run_7", "run_x", "other_9"):
        (tmp_path / name).mkdir()
    assert next_folder(tmp_path, "run") == tmp_path / "run_8"
    assert next_folder(tmp_path / "not there", "run").name == "run_1"


# --- spaces, seeds, counts ---


def test_spaces_and_environment_are_those_it_was_given() -> None:
    learner = made()
    assert learner.observation_space is learner.env.observation_space  # type: ignore[union-attr]
    assert learner.action_space == gymnasium.spaces.Discrete(2)
    assert learner.get_env() is learner.env
    alone = GPRMax(None, task=LINE, settings=SMALL)
    assert alone.get_env() is None
    assert alone.observation_space == gymnasium.spaces.Box(LINE.box.low, LINE.box.high, dtype=np.float64)
    assert alone.action_space == gymnasium.spaces.Discrete(2)


def test_a_seed_may_be_set_until_something_depends_on_it(tmp_path: Path) -> None:
    learner = made(seed=1)
    learner.set_random_seed(7)
    learner.set_random_seed(None)
    assert_same_run(learner.learn(20), made(seed=7).learn(20))
    with pytest.raises(
        ValueError, match=r"must be set before the first transition.*; got 20 transitions\. `GPRMax"
    ):
        learner.set_random_seed(8)
    with (
        made(run=tmp_path / "run") as recorded,
        pytest.raises(ValueError, match="0 transitions and a record"),
    ):
        recorded.set_random_seed(8)
    with pytest.raises(ValueError, match="`seed` must be a whole number, not negative; got -1"):
        made().set_random_seed(-1)


def test_counting_from_0_forgets_nothing(tmp_path: Path) -> None:
    with made(run=tmp_path / "run") as learner:
        learner.learn(7)
        learner.learn(5, reset_num_timesteps=True)
        assert learner.num_timesteps == 5
        assert len(learner.transitions) == 12
        assert [(row.episode, row.steps, row.ending) for row in learner.episodes] == [(1, 7, "abandoned")]
        learner.learn(2)
        assert learner.num_timesteps == 7
    with RunStore.open(tmp_path / "run", writing=False) as store:
        assert store.n_transitions == 14


def test_settings_may_be_said_as_in_a_file() -> None:
    told = {"grid": {"nodes": [9, 9]}, "first_plans": [6], "planning": {"depth": 2}}
    learner = GPRMax(ShortLine(), settings=told, agent="gp-rmax-grid")
    assert learner.settings.grid.nodes == (9, 9)
    assert learner.settings.planning.depth == 2
    assert learner.settings.knownness == "visited-cells"
    assert learner.settings.planning.rehearse
    for wrong in ({"colour": 1}, {"planning": {"depht": 1}}, {"grid": np.eye(2)}, {"replan_every": 0}):
        with pytest.raises(ValueError, match=r"^The setting"):
            GPRMax(ShortLine(), settings=wrong)


# --- copies and files ---


def test_a_copy_goes_on_by_itself(tmp_path: Path) -> None:
    with made(run=tmp_path / "run") as learner:
        learner.learn(17)
        twin = copy.deepcopy(learner)
        assert_same_run(twin, learner)
        twin.learn(20)
        assert learner.num_timesteps == 17
        learner.learn(20)
        assert_same_run(twin, learner)
    with RunStore.open(tmp_path / "run", writing=False) as store:
        assert store.n_transitions == 37
    assert twin.env is not learner.env
    assert twin.task is learner.task


def test_a_copy_of_what_cannot_be_copied_has_no_environment() -> None:
    class Plugged(Line):
        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("there is only one")

    learner = made(Plugged()).learn(7)
    twin = copy.deepcopy(learner)
    assert twin.get_env() is None
    assert twin.predict([0.1, 0.1])[0] == learner.predict([0.1, 0.1])[0]
    twin.set_env(Line())
    assert twin.learn(EPISODE).episodes[0].ending == "abandoned"


def test_episodes_survive_saving_and_loading(tmp_path: Path) -> None:
    learner = made().learn(2 * EPISODE)
    learner.save(tmp_path / "two.optimist")
    loaded = GPRMax.load(tmp_path / "two.optimist", env=ShortLine())
    assert loaded.episodes == learner.episodes
    assert loaded.episodes[-1].expected is not None
    assert_same_run(loaded.learn(EPISODE), learner.learn(EPISODE))  # the third begins as it would have
    learner.learn(5)
    learner.save(tmp_path / "open.optimist")
    loaded = GPRMax.load(tmp_path / "open.optimist", env=ShortLine())
    assert loaded.episodes[:3] == learner.episodes
    assert (loaded.episodes[3].steps, loaded.episodes[3].ending) == (5, "abandoned")
    assert loaded.episodes[3].total_reward == pytest.approx(learner.transitions.rewards[-5:].sum())
    assert loaded.learn(episodes=4).num_timesteps == 4 * EPISODE + 5


def test_episodes_of_a_file_that_does_not_say_are_told_from_its_transitions(tmp_path: Path) -> None:
    learner = made(Line()).learn(15)
    learner.set_env(Line())
    learner.learn(14)
    save_agent(learner._agent, tmp_path / "old.optimist")
    found = GPRMax.load(tmp_path / "old.optimist", env=ShortLine()).episodes
    assert [row.ending for row in found] == ["truncated", "abandoned", "truncated", "abandoned"]
    for row, expected in zip(found, learner.episodes, strict=False):
        assert replace(expected, expected=None) == row


@pytest.mark.parametrize(
    "rows",
    [
        [EpisodeRow(1, 5, 0.0, 7, "truncated")],
        [EpisodeRow(1, 7, 0.0, 7, "truncated"), EpisodeRow(2, 9, 0.0, 16, "truncated")],
        [EpisodeRow(1, 5, 0.0, 5, "vanished")],
        [EpisodeRow(1, 0, 0.0, 0, "truncated")],
        [EpisodeRow(1, 5, np.inf, 5, "truncated")],
    ],
    ids=["other numbers", "more than there are", "another ending", "no steps", "not finite"],
)
def test_episodes_that_cannot_be_are_refused(rows: list[EpisodeRow], tmp_path: Path) -> None:
    save_agent(made().learn(15)._agent, tmp_path / "bad.optimist", episodes=rows)
    with pytest.raises(ValueError, match=r"agent file must .*bad\.optimist"):
        GPRMax.load(tmp_path / "bad.optimist", env=ShortLine())
