"""Runs that rehearse: layouts change, boxes are left, expectations disappoint; nothing of it is ever lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from safetensors.numpy import load_file

from optimist import Discretisation, GPRMax
from optimist.agents import AgentSettings
from optimist.agents.settings import PlanningOptions
from optimist.models import StoppingRule
from optimist.runs import Event, RunStore, Updated
from tests.runs.recording import (
    LINE,
    SMALL,
    Line,
    Recorded,
    ShortLine,
    ShortSystem,
    cut_short,
    recorded,
)

Make = Callable[[int], gymnasium.Env[Any, Any]]  # an environment that has made so many steps


def kept_run(place: Path, make: Make, settings: AgentSettings, steps: int, *, seed: int = 0) -> Path:
    """A run that is not disturbed; beside it, in `kept`, its agent after every plan."""
    (place / "kept").mkdir(parents=True)

    def keep(event: Event) -> None:
        if isinstance(event, Updated):
            shutil.copy(place / "run" / "agent.optimist", place / "kept" / str(event.update.n_transitions))

    with GPRMax(make(0), settings=settings, seed=seed, run=place / "run") as learner:
        learner.learn(steps, callback=keep)
    return place / "run"


def killed_and_resumed(whole: Path, directory: Path, make: Make, at: int, *, behind: int = 0) -> Recorded:
    """The run, killed after `at` transitions; its checkpoint is the newest but so many, if there is one."""
    cut_short(whole, directory, at)
    kept = sorted(int(file.name) for file in (whole.parent / "kept").iterdir() if int(file.name) <= at)
    if len(kept) > behind:
        shutil.copy(whole.parent / "kept" / str(kept[-1 - behind]), directory / "agent.optimist")
    with RunStore.open(whole, writing=False) as store:
        steps = store.n_transitions
    with GPRMax.resume(directory, make(at)) as learner:
        # at the end, what is due is done
        learner.learn(steps - at or None, episodes=None if steps > at else max(1, len(learner.episodes)))
    return recorded(directory)


def rehearsals(directory: Path) -> list[dict[str, Any]]:
    with RunStore.open(directory, writing=False) as store:
        return [row["rehearsal"] for row in store.plans()]


# --- a layout that changes on the way ---

LINE_STEPS = 40
MANY = SMALL.model_copy(update={"planning": PlanningOptions(challengers=3)})  # for many changes


def layouts(whole: Path) -> set[bytes]:
    """Those that differ in their nodes, of all its plans."""
    axes = ("knowledge.axis.0", "knowledge.axis.1")
    kept = [load_file(file) for file in (whole.parent / "kept").iterdir()]
    return {b"".join(arrays[axis].tobytes() for axis in axes) for arrays in kept}


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the first seed whose layouts change: which one that is does not matter."""
    for seed in range(8):
        place = tmp_path_factory.mktemp("changing")
        whole = kept_run(place, lambda _: ShortLine(), MANY, LINE_STEPS, seed=seed)
        if len(layouts(whole)) > 1:
            return whole
    pytest.fail("No layout ever changes.")


def seed_of(directory: Path) -> int:
    with RunStore.open(directory, writing=False) as store:
        return int(store.header["seed"])


def test_of_what_was_tried_the_best_is_kept(changing: Path) -> None:
    for row in rehearsals(changing):
        assert row["layout"] in [name for name, _ in row["tried"]]
        assert 2 < len(row["tried"]) <= 1 + MANY.planning.challengers  # uniform does not challenge uniform
        assert row["nodes"] == [11, 11]
        kept = max(total for name, total in row["tried"] if name == row["layout"])
        assert kept >= row["tried"][0][1]  # the layout in use, unless a challenger was clearly better
        assert row["low"] <= row["high"]


@pytest.mark.parametrize(
    ("at", "behind"),
    [*((at, 0) for at in (4, 5, 10, 11, 12, 20, 24, 34, 35, 36, 40)), (10, 1), (20, 2), (36, 1)],
)
def test_killed_after_any_transition_it_ends_as_undisturbed(
    tmp_path: Path, changing: Path, at: int, behind: int
) -> None:
    found = killed_and_resumed(changing, tmp_path / "run", lambda _: ShortLine(), at, behind=behind)
    assert found == recorded(changing)


def test_resumed_after_every_single_transition_it_ends_as_undisturbed(tmp_path: Path, changing: Path) -> None:
    with GPRMax(ShortLine(), settings=MANY, seed=seed_of(changing), run=tmp_path / "run") as learner:
        learner.learn(1)
    for _ in range(LINE_STEPS - 1):
        with GPRMax.resume(tmp_path / "run", ShortLine()) as learner:
            learner.learn(1)
    assert recorded(tmp_path / "run") == recorded(changing)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_number_of_threads_changes_nothing(
    tmp_path: Path, changing: Path, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTIMIST_THREADS", threads)
    with GPRMax(ShortLine(), settings=MANY, seed=seed_of(changing), run=tmp_path) as learner:
        learner.learn(LINE_STEPS)
    assert recorded(tmp_path) == recorded(changing)


def test_a_run_that_is_looked_at_shows_what_it_expects_and_where_it_plans(changing: Path) -> None:
    last = rehearsals(changing)[-1]
    with GPRMax.resume(changing, ShortLine(), writing=False) as learner:
        assert learner.expected is not None
        assert learner.expected.record() == {name: last[name] for name in ("expected", "low", "high")}
        assert learner.layout.name == last["layout"]
        assert learner.layout.holding.most == last["hold"]
        assert list(learner.grid.shape) == last["nodes"]


# --- out of the box ---

POLE_STEPS = 40
POLE = SMALL.model_copy(
    update={
        "grid": Discretisation(budget=625),
        "planning": PlanningOptions(depth=0),
        "first_plans": (5, 20, 30),
    }
)


def pole(_: int) -> gymnasium.Env[Any, Any]:
    return ShortSystem("cart-pole", max_steps=20)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory.mktemp("left"), pole, POLE, POLE_STEPS)


def test_the_cart_left_the_box(left: Path) -> None:
    """Or what follows would test nothing."""
    with GPRMax.resume(left, pole(0), writing=False) as learner:
        assert learner.n_outside > 0
        leaving = learner._agent.known().planned.leaving
        box, seen = learner.task.box, learner.transitions.next_states[: learner._agent.known().n_transitions]
        assert leaving is not None
        np.testing.assert_array_equal(leaving.low, (seen < box.low).any(axis=0) & ~box.periodic)
        np.testing.assert_array_equal(leaving.high, (seen > box.high).any(axis=0) & ~box.periodic)


@pytest.mark.parametrize("at", [19, 25, 33])
def test_a_run_that_left_the_box_is_resumed_bit_for_bit(tmp_path: Path, left: Path, at: int) -> None:
    found = killed_and_resumed(left, tmp_path / "run", pole, at, behind=at % 2)
    assert found == recorded(left)


def test_what_left_the_box_is_saved_and_loaded(tmp_path: Path, left: Path) -> None:
    with GPRMax.resume(left, pole(0), writing=False) as learner:
        learner.save(tmp_path / "agent.optimist")
        loaded = GPRMax.load(tmp_path / "agent.optimist", env=pole(0))
        here, there = learner._agent.known().planned, loaded._agent.known().planned
        assert here.leaving is not None
        assert there.leaving is not None
        np.testing.assert_array_equal(here.leaving.low, there.leaving.low)
        np.testing.assert_array_equal(here.leaving.high, there.leaving.high)
        assert here.leaving.worst == there.leaving.worst
        assert [axis.tobytes() for axis in learner.grid.axes] == [axis.tobytes() for axis in loaded.grid.axes]
        assert learner.expected == loaded.expected
        states = np.random.default_rng(0).uniform(-4.0, 4.0, size=(30, 4))
        np.testing.assert_array_equal(learner.policy(states), loaded.policy(states))
        np.testing.assert_array_equal(here.policy(states), there.policy(states))


# --- settled, and woken by a disappointment ---


class Disappointing(ShortLine):
    """Pays less from some step on, in all episodes together; everything moves as it did."""

    SINCE = 30

    def __init__(self, n_steps: int) -> None:
        super().__init__()
        self.n_steps = n_steps

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        state, reward, *rest = super().step(action)
        return state, reward - (5.0 if self.n_steps > self.SINCE else 0.0), *rest


# settles at once, is surprised by nothing, explores nothing: there is only disappointment left to wake it
TRUSTING = SMALL.model_copy(
    update={
        "knownness": "none",
        "grid": Discretisation(budget=121),
        "stopping": StoppingRule(
            mean_drift_tolerance=1e9,
            uncertainty_drift_tolerance=1e9,
            patience=1,
            surprise=1e9,
            disappointment=0.5,
            disagreement=1e9,
        ),
    }
)
WOKEN_STEPS = 60


@pytest.fixture(scope="module")
def woken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory.mktemp("woken"), Disappointing, TRUSTING, WOKEN_STEPS)


def test_an_episode_that_earns_less_than_it_should_wakes_an_agent_that_has_settled(woken: Path) -> None:
    """At its end, and then it learns; one that earns what it should does not."""
    with RunStore.open(woken, writing=False) as store:
        plans = [(row["n_transitions"], bool(row["settled"])) for row in store.plans()]
    # settled after 10; the episode that ends at 24 is as it should be, that which ends at 36 is not,
    # nor are those that follow: what they pay is no part of the model
    assert plans == [(5, False), (10, True), (36, True), (48, True), (60, True)]


def test_without_a_disappointment_it_stays_settled(tmp_path: Path) -> None:
    with GPRMax(ShortLine(), settings=TRUSTING, seed=0, run=tmp_path) as learner:
        learner.learn(WOKEN_STEPS)
        assert learner.stopped_learning_at == 10


@pytest.mark.parametrize(
    ("at", "behind"),
    [*((at, 0) for at in (9, 10, 11, 24, 35, 36, 37, 48, 60)), (24, 1), (36, 1), (37, 2), (60, 1)],
)
def test_a_disappointed_run_is_resumed_bit_for_bit(tmp_path: Path, woken: Path, at: int, behind: int) -> None:
    found = killed_and_resumed(woken, tmp_path / "run", Disappointing, at, behind=behind)
    assert found == recorded(woken)


def test_an_agent_saved_after_a_disappointment_is_awake_when_loaded(tmp_path: Path) -> None:
    """Between the end of the episode and the update."""
    learner = GPRMax(Disappointing(0), settings=TRUSTING, seed=0)
    awake: list[bool] = []

    def at_36(event: Event) -> bool:
        if learner.num_timesteps == 36 and not awake:
            learner.save(tmp_path / "agent.optimist")
            awake.append(learner.stopped_learning_at is None)
        return not awake

    learner.learn(40, callback=at_36)
    assert awake == [True]
    loaded = GPRMax.load(tmp_path / "agent.optimist", env=Disappointing(36))
    assert loaded.stopped_learning_at is None
    assert loaded._agent.due


# --- what is expected ---


def test_nothing_is_expected_before_the_first_plan_and_a_number_afterwards() -> None:
    learner = GPRMax(ShortLine(), settings=SMALL, seed=0)
    assert learner.expected is None
    learner.learn(4)
    assert learner.expected is None
    learner.learn(1)
    expected = learner.expected
    assert isinstance(expected, float)
    assert np.isfinite(expected)
    assert expected.low is not None
    assert expected.high is not None
    assert expected.low <= expected.high


def expectations(directory: Path) -> list[tuple[float | None, float | None]]:
    """What every episode was recorded with, and what the last plan before it had said."""
    with RunStore.open(directory, writing=False) as store:
        episodes, plans, transitions = store.episodes(), store.plans(), store.transitions()
        opened = store.open_episode()
    begun, found = 0, []
    for row in episodes:
        said = [plan["rehearsal"]["expected"] for plan in plans if plan["n_transitions"] <= begun]
        found.append((row.expected, said[-1] if said else None))
        begun = row.transitions
    assert begun + opened[1] == len(transitions)
    return found


@pytest.mark.parametrize("name", ["changing", "left", "woken"])
def test_an_episode_is_recorded_with_what_was_expected_when_it_began(
    name: str, request: pytest.FixtureRequest
) -> None:
    found = expectations(request.getfixturevalue(name))
    assert len(found) >= 2
    assert found[0] == (None, None)  # there was no plan
    for recorded_, said in found[1:]:
        assert recorded_ is not None
        assert recorded_ == said


@pytest.mark.parametrize("at", [13, 18, 23])
def test_resumed_in_the_middle_of_an_episode_what_was_expected_of_it_is_remembered(
    tmp_path: Path, changing: Path, at: int
) -> None:
    """Though a plan was made since: that after 20."""
    directory = cut_short(changing, tmp_path / "run", at)
    with GPRMax.resume(directory, ShortLine()) as learner:
        learner.learn(episodes=2)
        with RunStore.open(changing, writing=False) as store:
            assert learner.episodes == store.episodes()[:2]
    assert expectations(directory)[1][0] == rehearsals(changing)[1]["expected"]  # of the plan after 10


def test_an_episode_of_somebody_else_that_is_abandoned_keeps_what_was_expected_of_it(tmp_path: Path) -> None:
    with GPRMax(Line(), settings=SMALL, run=tmp_path) as learner:
        learner.learn(17)
    with GPRMax.resume(tmp_path, Line()) as learner:
        learner.learn(3)
        rows = learner.episodes
    assert [row.ending for row in rows] == ["truncated", "abandoned"]
    assert rows[0].expected is None
    assert rows[1].expected == rehearsals(tmp_path)[1]["expected"]


# --- rewards that are not finite somewhere ---


def test_a_reward_that_is_infinite_somewhere_is_told_in_one_sentence_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    def reward(states: Any, controls: Any, next_states: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.where(states[:, 0] > 0.9, -np.inf, -1.0)

    unbounded = replace(LINE, reward=reward)
    with GPRMax(ShortLine(), task=unbounded, settings=SMALL, run=tmp_path) as learner:
        for _ in range(2):
            with pytest.raises(ValueError, match="`reward` must be finite; got -inf at state") as told:
                learner.learn(12)
            assert "\n" not in str(told.value)
            assert learner.num_timesteps == 5
    with RunStore.open(tmp_path, writing=False) as store:
        assert store.n_transitions == 5
    with GPRMax.resume(tmp_path, ShortLine()) as learner:  # with its mended reward
        learner.learn(7)
        assert learner.num_timesteps == 12
        assert learner.expected is not None
