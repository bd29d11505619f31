"""The compiled loop against its slow twin, weight by weight."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.agents.sarsa import SarsaAgent, SarsaSettings, episode_key
from optimist.agents.tile_coding import TilingGroup
from optimist.compiled.sarsa import uniform
from optimist.experiments.sarsa_settings import sarsa_settings
from optimist.systems import PAPER, SYSTEMS
from optimist.systems.system import System
from tests.naive import sarsa as naive

N_EPISODES = 3


def world_of(system: System) -> naive.World:
    def step(state: naive.State, action: int) -> tuple[naive.State, float, bool]:
        states, controls = np.array([state]), system.task.controls[[action]]
        next_states = system.dynamics(states, controls)
        reward = system.task.rewards(states, controls, next_states)[0]
        return tuple(next_states[0].tolist()), float(reward), bool(system.task.terminal(next_states)[0])

    return step


def compare(system: System, settings: SarsaSettings, *, seed: int) -> None:
    task = system.task
    assert system.step is not None
    assert system.outcome is not None
    ours = SarsaAgent(task, settings, seed=seed)
    twin = naive.NaiveSarsa(
        task.box, settings, ours.coding.shifts, task.n_actions, task.discount, task.max_steps
    )
    starts = system.starts[np.arange(N_EPISODES) % len(system.starts)]
    for k, start in enumerate(starts):
        made = ours.learn(system.step, system.outcome, starts[k : k + 1])
        steps, total, ended = twin.episode(world_of(system), tuple(start.tolist()), episode_key(seed, k + 1))
        assert made.steps.tolist() == [steps]
        assert made.terminated.tolist() == [ended]
        assert made.total_rewards[0] == pytest.approx(total, rel=1e-12)
    expected = np.zeros_like(ours.weights)
    for tiles, names in zip(ours.coding.tiles(np.array(list(twin.seen))), twin.seen.values(), strict=True):
        for tile, name in zip(tiles, names, strict=True):
            expected[tile] = [twin.weights[name, a] for a in range(task.n_actions)]
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(ours.weights, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("agent", ["sarsa-fine", "sarsa-coarse"])
@pytest.mark.parametrize("problem", PAPER)
def test_weights_are_those_of_the_naive_twin(problem: str, agent: str) -> None:
    compare(SYSTEMS[problem], sarsa_settings(problem, agent), seed=3)


@pytest.mark.parametrize(
    ("traces", "epsilon", "cutoff"),
    [
        ("replacing", 0.2, 0.0),
        ("clearing", 0.0, 1e-2),
        ("clearing", 0.2, 0.0),
        ("accumulating", 0.0, 1e-2),
        ("accumulating", 0.2, 1e-3),
    ],
)
def test_every_kind_of_trace_is_that_of_the_naive_twin(traces: str, epsilon: float, cutoff: float) -> None:
    settings = SarsaSettings.model_validate(
        {
            "tilings": [
                {"axes": [0, 1], "intervals": [7, 5], "tilings": 3},
                {"axes": [1], "intervals": [4], "tilings": 2},
            ],
            "step_size": 0.2,
            "offsets": "even" if epsilon else "random",
            "trace_decay": 0.85,
            "epsilon": epsilon,
            "traces": traces,
            "trace_cutoff": cutoff,
        }
    )
    compare(SYSTEMS["mountain-car"], settings, seed=5)
    compare(SYSTEMS["pendulum"], settings, seed=6)


def test_without_traces_only_the_tiles_of_the_step_change() -> None:
    tilings = (TilingGroup(axes=(0, 1), intervals=(6, 6), tilings=4),)
    compare(SYSTEMS["mountain-car"], SarsaSettings(tilings=tilings, step_size=0.5, trace_decay=0.0), seed=7)


def test_random_numbers_are_those_of_python_integers_and_uniform() -> None:
    key = episode_key(1, 1)
    found = np.array([uniform(np.uint64(key), k) for k in range(20_000)])
    assert found[:100].tolist() == [naive.uniform(key, k) for k in range(100)]
    assert found.min() >= 0.0
    assert found.max() < 1.0
    # mean and variance of a uniform number, within five standard errors
    assert abs(found.mean() - 0.5) < 5.0 * np.sqrt(1.0 / 12.0 / len(found))
    assert abs(found.var() - 1.0 / 12.0) < 5.0 * np.sqrt(1.0 / 180.0 / len(found))
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 5.0 / np.sqrt(len(found))
