"""Sarsa(lambda): what it learns where the answer is known, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from pydantic import ValidationError

from optimist.agents.sarsa import Episodes, SarsaAgent, SarsaSettings
from optimist.agents.tile_coding import TilingGroup
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import OUTCOME, STEP
from optimist.experiments.sarsa_settings import sarsa_settings
from optimist.systems import SYSTEMS
from optimist.task import Task

CAR = SYSTEMS["mountain-car"]
DISCOUNT, DECAY, STEP_SIZE, PRIZE = 0.9, 0.8, 0.5, 2.0
LENGTH = 6
ONE_TILING = (TilingGroup(axes=(0,), intervals=(LENGTH,), tilings=1),)


def evenly(**choices: object) -> SarsaSettings:
    """Settings whose tilings lie where one can say: the first begins at the edge of the box."""
    return SarsaSettings.model_validate({"step_size": STEP_SIZE, "offsets": "even"} | choices)


@njit(STEP)
def walk(state, control, next_state):  # type: ignore[no-untyped-def]
    next_state[0] = state[0] + 1.0


@njit(OUTCOME)
def prize_at_the_end(state, control, next_state):  # type: ignore[no-untyped-def]
    ended = next_state[0] >= LENGTH
    return (PRIZE if ended else 0.0), ended


@njit(OUTCOME)
def paid_for_every_step(state, control, next_state):  # type: ignore[no-untyped-def]
    return 1.0, False


def corridor(max_steps: int = 500) -> Task:
    """Walk from cell to cell; there is nothing else to do."""
    return Task(
        box=Box([0.0], [float(LENGTH)]),
        controls=np.zeros(1),
        reward=lambda states, controls, next_states: np.zeros(len(states)),
        discount=DISCOUNT,
        optimistic_value=0.0,
        max_steps=max_steps,
    )


def agent_of(settings: SarsaSettings, max_steps: int = 500) -> SarsaAgent:
    return SarsaAgent(corridor(max_steps), settings, seed=0)


def driven(learner: SarsaAgent, starts: FloatArray) -> Episodes:
    assert CAR.step is not None
    assert CAR.outcome is not None
    return learner.learn(CAR.step, CAR.outcome, starts)


def car_episodes(count: int, agent: str = "sarsa-fine", *, seed: int) -> tuple[SarsaAgent, FloatArray]:
    learner = SarsaAgent(CAR.task, sarsa_settings("mountain-car", agent), seed=seed)
    made = driven(learner, np.tile(CAR.starts, (count, 1)))
    return learner, made.total_rewards


@pytest.mark.parametrize("traces", ["replacing", "clearing", "accumulating"])
def test_a_prize_at_the_end_goes_back_along_the_traces(traces: str) -> None:
    """k steps before the end the trace is (discount x lambda)^k."""
    learner = agent_of(evenly(tilings=ONE_TILING, trace_decay=DECAY, traces=traces))
    made = learner.learn(walk, prize_at_the_end, np.array([[0.5]]))
    assert made.steps.tolist() == [LENGTH]
    assert made.total_rewards.tolist() == [PRIZE]
    assert made.terminated.tolist() == [True]
    expected = STEP_SIZE * PRIZE * (DISCOUNT * DECAY) ** np.arange(LENGTH - 1, -1, -1)
    np.testing.assert_allclose(learner.weights[:LENGTH, 0], expected, rtol=1e-12)
    assert learner.weights[LENGTH, 0] == 0.0


def test_traces_below_the_cutoff_are_forgotten() -> None:
    cutoff = (DISCOUNT * DECAY) ** 2.5
    learner = agent_of(evenly(tilings=ONE_TILING, trace_decay=DECAY, trace_cutoff=cutoff))
    learner.learn(walk, prize_at_the_end, np.array([[0.5]]))
    assert (learner.weights[:LENGTH, 0] > 0.0).tolist() == [False, False, False, True, True, True]


def test_traces_do_not_outlive_their_episode() -> None:
    learner = agent_of(evenly(tilings=ONE_TILING, trace_decay=1.0, trace_cutoff=0.0), max_steps=2)
    learner.learn(walk, prize_at_the_end, np.array([[0.5], [4.5]]))  # cut off, then to the prize
    assert (learner.weights[:LENGTH, 0] > 0.0).tolist() == [False, False, False, False, True, True]


def test_an_episode_that_is_cut_off_did_not_end() -> None:
    """One step at a time, in one cell: its value goes to 1 / (1 - discount), not to 1."""
    one_cell = (TilingGroup(axes=(0,), intervals=(1,), tilings=1),)
    learner = agent_of(evenly(tilings=one_cell), max_steps=1)
    made = learner.learn(walk, paid_for_every_step, np.full((500, 1), 0.5))
    assert not made.terminated.any()
    assert learner.weights[0, 0] == pytest.approx(1.0 / (1.0 - DISCOUNT), rel=1e-6)


def test_the_step_size_is_shared_among_the_tilings() -> None:
    tilings = (TilingGroup(axes=(0,), intervals=(LENGTH,), tilings=4),)
    learner = agent_of(evenly(tilings=tilings, trace_decay=0.0))
    learner.learn(walk, prize_at_the_end, np.array([[5.0]]))
    assert learner.q_values(np.array([[5.0]])).tolist() == [[STEP_SIZE * PRIZE]]
    assert learner.weights.max() == STEP_SIZE * PRIZE / 4


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    learner, totals = car_episodes(60, seed=1)
    again, same = car_episodes(60, seed=1)
    assert totals.tolist() == same.tolist()
    np.testing.assert_array_equal(learner.weights, again.weights)
    assert totals.tolist() != car_episodes(60, seed=2)[1].tolist()


def test_episodes_may_be_learned_some_at_a_time() -> None:
    whole, totals = car_episodes(50, seed=4)
    learner = SarsaAgent(CAR.task, sarsa_settings("mountain-car", "sarsa-fine"), seed=4)
    parts = [driven(learner, np.tile(CAR.starts, (n, 1))) for n in (1, 20, 29)]
    assert np.concatenate([part.total_rewards for part in parts]).tolist() == totals.tolist()
    np.testing.assert_array_equal(learner.weights, whole.weights)
    assert learner.n_episodes == 50


def test_with_nothing_known_all_actions_are_equally_likely() -> None:
    """The first action of an episode, all values being 0, seen by the one weight that changed."""
    learner = SarsaAgent(CAR.task, sarsa_settings("mountain-car", "sarsa-fine"), seed=0)
    chosen = []
    for _ in range(600):
        learner.weights[:] = 0.0
        object.__setattr__(learner.task, "max_steps", 1)
        driven(learner, CAR.starts)
        chosen.append(int(learner.greedy(CAR.starts)[0]))
    object.__setattr__(learner.task, "max_steps", 500)
    assert set(chosen) <= {0, 1}  # the first of those not tried
    # action 0 was tried in a third of them: then 1 is the first untried
    assert abs(np.mean(chosen) - 1.0 / 3.0) < 5.0 * np.sqrt(2.0 / 9.0 / 600.0)


@pytest.mark.parametrize("seed", range(3))
def test_mountain_car_is_learned_within_500_episodes(seed: int) -> None:
    _, totals = car_episodes(500, seed=seed)
    assert np.median(totals[-100:]) > -140.0
    assert totals[:3].mean() < -300.0  # at first it was not


def test_the_greedy_policy_is_what_was_learned() -> None:
    learner, _ = car_episodes(500, seed=0)
    state, steps = CAR.starts.copy(), 0
    while not CAR.task.terminal(state)[0] and steps < 500:
        state = CAR.dynamics(state, CAR.task.controls[learner.greedy(state)])
        steps += 1
    assert steps < 140


@pytest.mark.parametrize(
    "wrong",
    [{"step_size": 0.0}, {"trace_decay": 1.1}, {"epsilon": -0.1}, {"traces": "other"}, {"trace_cutoff": 1.0}],
    ids=str,
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SarsaSettings.model_validate({"tilings": ONE_TILING, "step_size": 0.5} | wrong)


def test_a_table_that_would_not_fit_is_refused() -> None:
    tilings = (TilingGroup(axes=(0, 1), intervals=(1000, 1000), tilings=30),)
    many = Task(CAR.task.box, np.arange(9.0), CAR.task.reward, 0.9, 0.0)
    with pytest.raises(ValueError, match="at most 134217728 weights; got 30060030 tiles x 9 actions"):
        SarsaAgent(many, SarsaSettings(tilings=tilings, step_size=0.5), seed=0)


def test_starts_must_be_states() -> None:
    learner = SarsaAgent(CAR.task, sarsa_settings("mountain-car", "sarsa-coarse"), seed=0)
    with pytest.raises(ValueError, match=r"shape \(n, 2\); got \(3, 1\)"):
        driven(learner, np.zeros((3, 1)))
