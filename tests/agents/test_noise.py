"""An agent among noise: it learns it, plans with it, says how episodes differ, and comes back bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np

from optimist.agents.gp_rmax import GPRMaxAgent
from optimist.agents.settings import AgentSettings, PlanningOptions
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.discretisation import Discretisation
from optimist.models.gp_dynamics import GPDynamics
from optimist.models.model import noise_of
from optimist.task import Task
from optimist.transitions import Transition

TASK = Task(
    box=Box([-2.0, -2.0], [2.0, 2.0]),
    controls=np.array([-1.0, 0.0, 1.0]),
    reward=lambda states, _controls, _after: -(states**2).sum(axis=1),
    discount=0.95,
    optimistic_value=0.0,
    max_steps=25,
)
SETTINGS = AgentSettings(
    grid=Discretisation(nodes=(15, 15)), planning=PlanningOptions(depth=1), first_plans=(10, 40, 80)
)


def cart(states: FloatArray, controls: FloatArray, mass: float = 1.0) -> FloatArray:
    rates = states[:, 1] + 0.2 * (controls[:, 0] - 0.3 * np.sin(states[:, 0])) / mass
    return np.column_stack([states[:, 0] + 0.2 * rates, rates])


def lived(agent: GPRMaxAgent, count: int, share: float, *, seed: int = 0, mass: float = 1.0) -> None:
    """So many transitions, episodes of 25, with noise that is this share of a usual displacement."""
    stream = np.random.default_rng([seed, agent.n_transitions])
    for _ in range(count):
        begins = agent.n_transitions % 25 == 0
        state = np.array([1.0, 0.0]) if begins else agent.transitions[-1].next_state
        action = agent.act(state)
        assert isinstance(action, int)
        control = TASK.controls[[action]]
        noise = share * np.array([0.1, 0.15]) * stream.standard_normal(2)
        after = cart(state[np.newaxis], control, mass) + noise
        reward = float(TASK.rewards(state[np.newaxis], control, after)[0])
        ended = agent.n_transitions % 25 == 24
        agent.observe(Transition(state, action, reward, after[0], False, ended))
        if agent.due:
            agent.update()


@cache
def grown(share: float) -> GPRMaxAgent:
    agent = GPRMaxAgent(TASK, SETTINGS, seed=0)
    lived(agent, 110, share)
    return agent


def test_noise_is_learned_planned_with_and_its_spread_is_told() -> None:
    knowledge = grown(0.1).known()
    noise = noise_of(knowledge.model)
    assert noise is not None
    assert np.all(np.abs(np.log(noise / np.array([0.01, 0.015]))) < 0.35)
    assert knowledge.planned.noise is noise
    assert knowledge.best.noise is noise
    assert knowledge.expectation.spread is not None
    assert knowledge.expectation.spread > 0.0
    assert "spread" in knowledge.expectation.record()


def test_without_noise_nothing_of_it_is_said() -> None:
    knowledge = grown(0.0).known()
    assert noise_of(knowledge.model) is None
    assert knowledge.planned.noise is None
    assert "spread" not in knowledge.expectation.record()
    assert "noise" not in knowledge.model.record()


def test_it_comes_back_bit_for_bit() -> None:
    agent = grown(0.1)
    other = GPRMaxAgent(TASK, SETTINGS, seed=0)
    other.restore(agent.transitions, agent.pack())
    states = np.random.default_rng(1).uniform(-1.0, 1.0, (20, 2))
    for state in states:
        assert agent.act(state) == other.act(state)
    assert agent.expected is not None
    assert other.expected is not None
    assert (float(agent.expected), agent.expected.spread) == (float(other.expected), other.expected.spread)


def test_a_load_that_no_single_step_shows_is_noticed_and_what_was_before_forgotten() -> None:
    for mass in (1.0, 1.4):
        agent = GPRMaxAgent(TASK, SETTINGS, seed=0)
        agent.restore(grown(0.1).transitions, grown(0.1).pack())
        lived(agent, 15, 0.1)  # up to the end of an episode
        lived(agent, 75, 0.1, mass=mass)
        faded = agent.doubts.n_faded
        assert faded == (0 if mass == 1.0 else 125)
        if faded:
            model = agent.known().model
            assert isinstance(model, GPDynamics)
            assert len(model.seen) <= agent.n_transitions - faded
            again = GPRMaxAgent(TASK, SETTINGS, seed=0)
            again.restore(agent.transitions, agent.pack())
            assert again.doubts.n_faded == faded
            assert agent.update().model["faded"] == faded
