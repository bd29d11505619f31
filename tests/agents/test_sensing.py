"""An agent with noisy sensors: it tells them from the motion, acts on what it believes, and comes back."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from optimist.agents.gp_rmax import GPRMaxAgent
from optimist.arrays import FloatArray
from optimist.filtering import Filter
from optimist.models.gp_dynamics import GPDynamics
from optimist.planning.filtered import Memory
from optimist.planning.policy import begun
from optimist.planning.sights import Sights, remembered
from optimist.transitions import Transition
from tests.agents.test_noise import SETTINGS, TASK, cart

SENSORS = 0.3 * np.array([0.1, 0.15])  # standard deviations
START = np.array([1.0, 0.0])


def lived(agent: GPRMaxAgent, count: int, true: FloatArray) -> FloatArray:
    """So many transitions, episodes of 25, of which only readings are seen; the true state at the end."""
    for _ in range(count):
        number = agent.n_transitions
        stream = np.random.default_rng([7, number])
        begins = number % 25 == 0
        true = START if begins else true
        read = START + SENSORS * stream.standard_normal(2) if begins else agent.transitions[-1].next_state
        action = agent.act(read)
        assert isinstance(action, int)
        after = cart(true[np.newaxis], TASK.controls[[action]])[0]
        reward = float(TASK.rewards(true[np.newaxis], TASK.controls[[action]], after[np.newaxis])[0])
        shown = after + SENSORS * stream.standard_normal(2)
        agent.observe(Transition(read, action, reward, shown, False, number % 25 == 24))
        if agent.due:
            agent.update()
        true = after
    return true


@cache
def grown() -> tuple[GPRMaxAgent, FloatArray]:
    agent = GPRMaxAgent(TASK, SETTINGS, seed=0)
    return agent, lived(agent, 210, START)


def filtering_of(agent: GPRMaxAgent) -> Filter:
    found = agent.known().filtering
    assert found is not None
    return found


def test_it_is_the_sensors_and_plans_know_no_noise_of_them() -> None:
    agent = grown()[0]
    model, planned = agent.known().model, agent.known().planned
    assert isinstance(model, GPDynamics)
    assert model.sensors is not None
    np.testing.assert_allclose(model.sensors, SENSORS, rtol=0.4)
    assert "sensors" in model.record()
    motion = np.zeros(2) if planned.noise is None else planned.noise
    assert model.noise is not None
    assert (motion < 0.7 * model.noise).all()


def test_it_acts_from_where_it_believes_to_be_and_that_is_nearer_to_the_truth() -> None:
    agent, true = grown()
    reading = agent.transitions[-1].next_state
    here = agent._believed(agent.known(), reading)
    assert not np.array_equal(here, reading)
    best = agent.known().sights.looking_from(agent.doubts.readings.plausible(agent.transitions[200].state))
    assert agent.act(reading) == int(best.greedy(here[np.newaxis])[0])
    errors: list[list[float]] = []
    other = GPRMaxAgent(TASK, SETTINGS, seed=0)
    other.restore(agent.transitions, agent.pack())
    for _ in range(60):
        true = lived(other, 1, true)
        if other.n_transitions % 25:
            read = other.transitions[-1].next_state
            believed = other._believed(other.known(), read)
            errors.append([float(np.abs((one - true) / SENSORS).mean()) for one in (believed, read)])
    believed_errors, read_errors = np.mean(errors, axis=0)
    assert believed_errors < 0.8 * read_errors


def test_it_comes_back_bit_for_bit_in_the_middle_of_an_episode() -> None:
    agent, true = grown()
    one, two = (GPRMaxAgent(TASK, SETTINGS, seed=0) for _ in range(2))
    one.restore(agent.transitions, agent.pack())
    known = agent.known().n_transitions
    two.restore(agent.transitions[:known], agent.pack())
    for row in agent.transitions[known:]:
        two.observe(row)
    for other in (one, two):
        lived(other, 30, true)
    assert [row.action for row in one.transitions] == [row.action for row in two.transitions]
    again = [row.next_state for row in two.transitions]
    np.testing.assert_array_equal([row.next_state for row in one.transitions], again)


def test_asked_step_by_step_it_does_what_it_does_in_an_episode() -> None:
    policy = grown()[0].policy
    assert isinstance(policy, Sights)
    stream, starts = np.random.default_rng(3), np.array([[1.0, 0.0], [-0.5, 0.3]])
    acting, memory, states = begun(policy, starts), None, starts
    for number in range(8):
        begins = np.full(2, number == 0)
        actions, memory = remembered(policy, states, memory, begins)
        np.testing.assert_array_equal(actions, acting(states, np.arange(2)))
        states = cart(states, TASK.controls[actions]) + SENSORS * stream.standard_normal((2, 2))
    assert isinstance(memory, Memory)
    assert (np.abs(memory.off) > 0.0).all()
    with pytest.raises(ValueError, match="what the last call returned"):
        remembered(policy, states, memory[:3], None)
    with pytest.raises(ValueError, match="what the last call returned"):
        remembered(policy, states[:1], memory, None)


def test_asked_without_an_episode_it_takes_readings_as_they_are() -> None:
    policy = grown()[0].policy
    np.testing.assert_array_equal(
        policy.greedy(START[np.newaxis]), policy.sights[0].greedy(START[np.newaxis])
    )


def test_a_reading_that_cannot_be_true_does_not_stay() -> None:
    filtering = filtering_of(grown()[0])
    control = TASK.controls[[1]]
    belief = filtering.begin(np.zeros((1, 2)))
    for reading in ([1e200, 0.0], [0.0, 0.0], [0.01, 0.0]):
        belief = filtering.go_on(belief, control, np.array([reading]))
    assert np.isfinite(filtering.states(belief)).all()
    assert (np.abs(filtering.states(belief)) < 0.5).all()
