"""The front door: Stable-Baselines3's shape, exact counts, and one clear sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import OrderEnforcing, TimeLimit

import optimist
from optimist import Discretisation, GPRMax
from optimist.agents import AgentSettings, settings_of
from optimist.agents.settings import PlanningOptions
from optimist.environments.system_environment import SystemEnvironment
from optimist.models import GPDynamics
from optimist.runs import Event, RunStore, Stepped, Updated
from tests.environments.test_adapter import Spot, free, mountain_car
from tests.runs.recording import ShortSystem

EPISODE = 12  # steps


def short_settings(agent: str = "gp-rmax-exp", preset: str = "ours") -> AgentSettings:
    settings = settings_of(agent, preset=preset, grid=Discretisation(nodes=(9, 9)))
    changes = {"first_plans": (5, 10, 20, 35), "planning": PlanningOptions(depth=2)}
    return settings if preset == "paper" else settings.model_copy(update=changes)


def car(max_episode_steps: int = EPISODE) -> gymnasium.Env[Any, Any]:
    return TimeLimit(OrderEnforcing(ShortSystem("mountain-car", 20)), max_episode_steps)


def made(env: gymnasium.Env[Any, Any] | None = None, **chosen: Any) -> GPRMax:
    given: dict[str, Any] = {"settings": short_settings(), "seed": 1}
    return GPRMax(env if env is not None else car(), **given | chosen)


@pytest.fixture(scope="module")
def whole() -> GPRMax:
    """A run of 30 transitions in one go; not to be changed."""
    return made().learn(30)


def assert_same_run(one: GPRMax, other: GPRMax) -> None:
    for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one.transitions, name), getattr(other.transitions, name))
    np.testing.assert_array_equal(one.plan.q_values, other.plan.q_values)
    assert one.episodes == other.episodes


class Fragile(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Raises at one of its steps, once."""

    def __init__(self, env: gymnasium.Env[Any, Any], at: int) -> None:
        super().__init__(env)
        self.at, self.count = at, 0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.count += 1
        if self.count == self.at:
            raise OSError("the cable came off")
        return self.env.step(action)


# --- learning -------------------------------------------------------------------------------------------


def test_it_learns_and_returns_itself() -> None:
    learner = made()
    assert learner.learn(7) is learner
    assert learner.num_timesteps == len(learner.transitions) == 7


@pytest.mark.parametrize("count", [1, 4, 5, 12, 13, 30])
def test_exactly_so_many_transitions_are_made(count: int) -> None:
    learner = made()
    learner.learn(total_timesteps=count)
    assert learner.num_timesteps == count
    learner.learn(total_timesteps=3)
    assert learner.num_timesteps == count + 3


@pytest.mark.parametrize("cuts", [[20, 10], [5, 7, 1, 17], [1] * 15 + [15]])
def test_many_short_calls_are_one_long_one(cuts: list[int], whole: GPRMax) -> None:
    cut = made()
    for count in cuts:
        cut.learn(count)
    assert_same_run(cut, whole)


def test_an_episode_that_was_cut_short_goes_on_where_it_was() -> None:
    learner = made().learn(7)
    learner.learn(1)
    seen = learner.transitions
    np.testing.assert_array_equal(seen.states[7], seen.next_states[6])
    assert learner.episodes == []


def test_episodes_are_counted_from_the_beginning_of_the_run() -> None:
    learner = made()
    learner.learn(episodes=2)
    assert [row.steps for row in learner.episodes] == [EPISODE, EPISODE]
    assert [row.episode for row in learner.episodes] == [1, 2]
    assert [row.total_reward for row in learner.episodes] == [-12.0, -12.0]
    assert learner.num_timesteps == 2 * EPISODE
    learner.learn(episodes=2)  # there are two
    assert learner.num_timesteps == 2 * EPISODE
    learner.learn(5)
    learner.learn(episodes=3)
    assert learner.num_timesteps == 3 * EPISODE


@pytest.mark.parametrize(("count", "episodes", "expected"), [(20, 1, EPISODE), (7, 5, 7)])
def test_of_steps_and_episodes_the_first_reached_ends_it(count: int, episodes: int, expected: int) -> None:
    assert made().learn(count, episodes=episodes).num_timesteps == expected


def test_an_episode_lasts_no_longer_than_the_task_says() -> None:
    env = mountain_car(max_steps=9)
    learner = made(env).learn(episodes=2)
    assert [row.steps for row in learner.episodes] == [9, 9]
    assert learner.transitions.truncated.sum() == 2
    assert not learner.transitions.terminated.any()


def test_as_many_transitions_as_the_first_plan_needs_are_enough_to_be_asked() -> None:
    """Who learns for 50 steps and plans every 50 has a plan, and need not take a 51st step for it."""
    for settings, count in ((short_settings(), 5), (short_settings(preset="paper"), 50)):
        learner = made(settings=settings).learn(count)
        assert learner.predict([-0.5, 0.0])[0] in range(3)


def test_what_is_learned_at_the_end_of_a_call_is_not_learned_again() -> None:
    updates: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, Updated):
            updates.append(event.update.n_transitions)

    learner = made()
    for _ in range(8):
        learner.learn(5, callback=note)
    learner.learn(1, callback=note)
    assert updates == [5, 10, 20, 35]


def test_callbacks_hear_every_event_in_order() -> None:
    heard: list[Event] = []
    learner = made().learn(21, callback=heard.append)
    steps = [event for event in heard if isinstance(event, Stepped)]
    updates = [event.update.n_transitions for event in heard if isinstance(event, Updated)]
    assert [step.number for step in steps] == list(range(1, 22))
    assert [step.step for step in steps] == [*range(1, 13), *range(1, 10)]
    assert [step.episode for step in steps] == [1] * 12 + [2] * 9
    assert [step.ended is not None for step in steps] == [n == 12 for n in range(1, 22)]
    assert updates == [5, 10, 20]
    np.testing.assert_array_equal([step.transition.action for step in steps], learner.transitions.actions)


def test_an_update_comes_before_the_next_step_is_taken() -> None:
    heard: list[str] = []
    made().learn(11, callback=lambda event: heard.append("u" if isinstance(event, Updated) else "s"))
    assert "".join(heard) == "sssss" + "u" + "sssss" + "u" + "s"


@pytest.mark.parametrize("stop_at", [1, 5, 12, 17])
def test_a_callback_that_says_false_stops_and_nothing_is_lost(stop_at: int, whole: GPRMax) -> None:
    learner = made()
    learner.learn(30, callback=lambda e: not (isinstance(e, Stepped) and e.number == stop_at))
    assert learner.num_timesteps == stop_at
    learner.learn(30 - stop_at)
    assert_same_run(learner, whole)


def test_a_callback_may_stop_at_an_update(whole: GPRMax) -> None:
    learner = made()
    learner.learn(30, callback=lambda event: not isinstance(event, Updated))
    assert learner.num_timesteps == 5
    learner.learn(25)
    assert_same_run(learner, whole)


def test_a_callback_that_says_nothing_does_not_stop() -> None:
    for answer in (None, True, 0, ""):
        assert made().learn(7, callback=lambda event, said=answer: said).num_timesteps == 7


def test_a_callback_may_say_false_as_numpy_says_it() -> None:
    def until_left(event: Event) -> Any:
        return event.transition.next_state[0] > -0.53 if isinstance(event, Stepped) else None

    learner = made().learn(200, callback=until_left)
    assert learner.num_timesteps < 200
    assert learner.transitions.next_states[-1, 0] <= -0.53


@pytest.mark.parametrize("at", [1, 6, 17])
def test_after_an_environment_failed_learning_goes_on(at: int) -> None:
    learner = made(Fragile(car(), at))
    with pytest.raises(Exception, match="the cable came off"):
        learner.learn(30)
    assert learner.num_timesteps == at - 1
    learner.learn(20)
    assert learner.num_timesteps == at - 1 + 20
    assert learner.predict([-0.5, 0.0])[0] in range(3)


def test_after_a_callback_failed_the_run_is_the_same_as_if_it_had_not(whole: GPRMax) -> None:
    learner = made()

    def fail(event: Event) -> None:
        if isinstance(event, Stepped) and event.number == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(30, callback=fail)
    assert learner.num_timesteps == 8
    learner.learn(22)
    np.testing.assert_array_equal(learner.transitions.states, whole.transitions.states)


# --- being asked ----------------------------------------------------------------------------------------


def test_everything_there_is_to_ask(whole: GPRMax) -> None:
    learner = whole
    assert learner.plan.q_values.shape == (81, 3)
    assert isinstance(learner.model, GPDynamics)
    assert learner.model.seen.states.shape[1] == 2
    assert learner.grid.shape == (9, 9)
    assert learner.box is learner.grid.box
    assert learner.task.n_actions == 3
    assert learner.seed == 1
    assert learner.n_outside == 0
    assert learner.stopped_learning_at is None
    np.testing.assert_array_equal(
        learner.predict(learner.grid.nodes)[0], learner.policy.greedy(learner.grid.nodes)
    )


@pytest.mark.parametrize("preset", ["ours", "paper"])
def test_at_the_nodes_the_value_is_the_best_of_the_plan(preset: str) -> None:
    learner = made(settings=short_settings(preset=preset)).learn({"ours": 20, "paper": 60}[preset])
    np.testing.assert_allclose(
        learner.value(learner.grid.nodes), learner.plan.q_values.max(axis=1), atol=1e-12
    )


def test_being_asked_changes_nothing(whole: GPRMax) -> None:
    asked = made()
    for _ in range(30):
        asked.learn(1)
        if asked.num_timesteps > 6:
            asked.predict([-0.5, 0.0])
            asked.value([-0.5, 0.0])
            asked.uncertainty([[-0.5, 0.0]])
    assert_same_run(asked, whole)


# --- files, environments --------------------------------------------------------------------------------


def test_what_was_saved_goes_on_with_everything_learned(tmp_path: Path) -> None:
    learner = made().learn(25)
    learner.save(tmp_path / "car.optimist")
    loaded = GPRMax.load(tmp_path / "car.optimist", env=car())
    assert loaded.num_timesteps == 25
    np.testing.assert_array_equal(loaded.transitions.states, learner.transitions.states)
    loaded.learn(15)
    assert loaded.num_timesteps == 40


def test_what_was_saved_before_the_first_plan_comes_back_too(tmp_path: Path) -> None:
    made().learn(3).save(tmp_path / "young.optimist")
    loaded = GPRMax.load(tmp_path / "young.optimist", env=car())
    assert loaded.num_timesteps == 3
    assert loaded.learn(10).predict([-0.5, 0.0])[0] in range(3)


def test_saving_in_the_middle_changes_nothing(tmp_path: Path, whole: GPRMax) -> None:
    learner = made().learn(17)
    learner.save(tmp_path / "car.optimist")
    learner.learn(13)
    assert_same_run(learner, whole)


def test_a_loaded_agent_can_be_asked_without_an_environment(tmp_path: Path) -> None:
    learner = made().learn(25)
    learner.save(tmp_path / "car.optimist")
    loaded = GPRMax.load(tmp_path / "car.optimist", task=learner.task)
    assert loaded.predict([-0.5, 0.0])[0] == learner.predict([-0.5, 0.0])[0]
    with pytest.raises(ValueError, match=r"`learn` must have an environment; got none\. Call `set_env`"):
        loaded.learn(5)
    loaded.set_env(car())
    assert loaded.learn(5).num_timesteps == 30


def test_loading_for_another_task_is_refused(tmp_path: Path) -> None:
    made().learn(6).save(tmp_path / "car.optimist")
    with pytest.raises(ValueError, match=r"task must be the one of .*car\.optimist; its `\w+` is .*, got"):
        GPRMax.load(tmp_path / "car.optimist", env=gymnasium.make("optimist/Pendulum-v0"))


def test_an_environment_of_another_task_is_refused() -> None:
    """As many actions, but another box: what was learned means something else there."""
    learner = made().learn(6)
    with pytest.raises(ValueError, match="task"):
        learner.set_env(mountain_car())
    learner.set_env(car())


def test_an_abandoned_episode_is_told_in_the_record_and_by_the_learner_alike(tmp_path: Path) -> None:
    with made(run=tmp_path / "run") as learner:
        learner.learn(7)
        learner.set_env(car())
        learner.learn(EPISODE)
        told = [(row.episode, row.steps, row.ending) for row in learner.episodes]
    with RunStore.open(tmp_path / "run", writing=False) as store:
        recorded = [(row.episode, row.steps, row.ending) for row in store.episodes()]
    assert recorded == [(1, 7, "abandoned"), (2, EPISODE, "truncated")]
    assert told == recorded


def test_a_recorded_run_is_the_same_as_one_that_is_not(tmp_path: Path, whole: GPRMax) -> None:
    with made(run=tmp_path / "run") as learner:
        learner.learn(30)
        assert_same_run(learner, whole)


def test_the_seed_decides_everything() -> None:
    one, same, other = made(seed=7).learn(30), made(seed=7).learn(30), made(seed=8).learn(30)
    assert_same_run(one, same)
    assert not np.array_equal(one.transitions.actions, other.transitions.actions)


def test_nothing_is_drawn_from_numpys_global_stream() -> None:
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    made().learn(12)
    assert np.random.random() == expected  # noqa: NPY002


# --- what is refused ------------------------------------------------------------------------------------


def test_learning_for_how_long_must_be_said() -> None:
    with pytest.raises(ValueError, match="must be given `total_timesteps` or `episodes`; got neither"):
        made().learn()


@pytest.mark.parametrize("count", [0, -3])
@pytest.mark.parametrize("name", ["total_timesteps", "episodes"])
def test_less_than_one_is_refused(name: str, count: int) -> None:
    learner = made()
    with pytest.raises(ValueError, match=rf"`{name}` must be at least 1; got {count}"):
        learner.learn(**{name: count})  # type: ignore[arg-type]
    assert learner.num_timesteps == 0


def test_learning_without_an_environment_is_refused() -> None:
    learner = GPRMax(None, task=made().task, settings=short_settings())
    with pytest.raises(ValueError, match=r"must have an environment; got none\. Call `set_env` first"):
        learner.learn(5)


@pytest.mark.parametrize("ask", ["predict", "value", "uncertainty"])
def test_before_the_first_plan_there_is_no_answer(ask: str) -> None:
    learner = made().learn(2)
    with pytest.raises(ValueError, match=r"must have planned before it can be asked; got 2 transitions"):
        getattr(learner, ask)([-0.5, 0.0])


@pytest.mark.parametrize("name", ["plan", "model", "policy"])
def test_before_the_first_plan_there_is_nothing_to_show(name: str) -> None:
    with pytest.raises(ValueError, match=r"must have planned .*; got 0 transitions.* Call `learn` first"):
        getattr(made(), name)


@pytest.mark.parametrize("ask", ["predict", "value", "uncertainty"])
@pytest.mark.parametrize("observation", [[0.0], [0.0, 0.0, 0.0], 0.0, [[0.0, 0.0, 0.0]], [[[0.0, 0.0]]]])
def test_observations_of_the_wrong_shape_are_refused(ask: str, observation: Any) -> None:
    learner = made().learn(6)
    with pytest.raises(ValueError, match=r"Observations must have shape \(2,\) or \(n, 2\); got \("):
        getattr(learner, ask)(observation)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_observations_that_are_not_finite_are_refused(bad: float) -> None:
    learner = made().learn(6)
    for ask in (learner.predict, learner.value, learner.uncertainty):
        with pytest.raises(ValueError, match="finite"):
            ask([bad, 0.0])


def test_no_environment_and_no_task_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`env` or `task` must be given; got neither"):
        GPRMax(None)


def test_an_environment_with_continuous_actions_is_refused_with_advice() -> None:
    task = made().task
    with pytest.raises(ValueError, match=r"must have 3 numbered actions.*; got Box.*optimist\.adapt"):
        GPRMax(gymnasium.make("Pendulum-v1"), task=task)
    learner = made()
    with pytest.raises(ValueError, match=r"must have 3 numbered actions.*; got Box"):
        learner.set_env(gymnasium.make("Pendulum-v1"))
    assert learner.learn(2).num_timesteps == 2  # in the environment it has


@pytest.mark.parametrize("space", [gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(4, start=1)])
def test_an_environment_with_other_actions_is_refused(space: gymnasium.spaces.Discrete) -> None:
    with pytest.raises(ValueError, match=r"must have 3 numbered actions, one per control; got Discrete"):
        GPRMax(Spot(action_space=space), task=made().task)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=rf"`seed` must be a whole number, not negative; got {seed}"):
        made(seed=seed)


def test_an_unknown_agent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"agent must be one of gp-rmax-exp.*; got 'gp-rmin'"):
        GPRMax(car(), agent="gp-rmin")
    with pytest.raises(ValueError, match=r"agent must be one of gp-rmax-exp.*; got 'banana'"):
        GPRMax(car(), settings=short_settings(), agent="banana")


def test_what_was_refused_leaves_no_run_behind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="numbered actions"):
        GPRMax(gymnasium.make("Pendulum-v1"), task=made().task, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- what is shown --------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress_bar", [True, False])
def test_nothing_is_written_to_standard_output(progress_bar: bool, capfd: pytest.CaptureFixture[str]) -> None:
    made().learn(12, progress_bar=progress_bar)
    made().learn(episodes=1, progress_bar=progress_bar)
    assert capfd.readouterr().out == ""


def test_a_progress_bar_changes_nothing(whole: GPRMax) -> None:
    assert_same_run(made().learn(30, progress_bar=True), whole)


def test_states_outside_the_box_are_counted() -> None:
    env = optimist.adapt(
        Spot(shown=[2.0, 0.0], observation_space=gymnasium.spaces.Box(-5.0, 5.0, (2,), np.float64)),
        reward=free,
        low=[-1.0, -1.0],
        high=[1.0, 1.0],
    )
    learner = made(env).learn(6)
    assert learner.n_outside == 6


class Inwards(Spot):
    """Begins outside of the box, and is inside after a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        _, *rest = super().step(action)
        return np.zeros(2), *rest


def test_starts_outside_the_box_are_counted_too(tmp_path: Path) -> None:
    space = gymnasium.spaces.Box(-5.0, 5.0, (2,), np.float64)
    outside = Inwards(shown=[2.0, 0.0], observation_space=space)
    env = optimist.adapt(outside, reward=free, low=[-1.0, -1.0], high=[1.0, 1.0], max_steps=3)
    learner = made(env, run=tmp_path / "run").learn(7)
    assert learner.n_outside == 3
    with RunStore.open(tmp_path / "run", writing=False) as store:
        assert store.n_outside() == 3
    learner.save(tmp_path / "saved.npz")
    assert GPRMax.load(tmp_path / "saved.npz", env=env).n_outside == 3


def test_who_learns_in_a_run_that_was_closed_is_told_to_open_it_again(tmp_path: Path) -> None:
    learner = GPRMax(SystemEnvironment("mountain-car"), run=tmp_path / "run").learn(3)
    learner.close()
    with pytest.raises(ValueError, match=r"`learn` must have an open run; got one that was closed\. Open it"):
        learner.learn(1)
    again = GPRMax.resume(tmp_path / "run", SystemEnvironment("mountain-car")).learn(1)
    assert again.num_timesteps == 4
    again.close()
