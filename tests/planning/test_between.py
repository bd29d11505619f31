"""Acting with any control: against closed forms, against trying all sequences one by one, against lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from optimist import Box, Discretisation, Task, plan
from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.planning.between import BENT, Between, bend, sight
from optimist.planning.flow import Flow
from optimist.planning.leaving import Leaving
from optimist.planning.policy import QFunction, affordable_depth
from optimist.steps import known
from optimist.systems import find_system
from tests.naive.between import every_sequence, mixed, smoothed

A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])
DISCOUNT = 0.95


def drift(states: FloatArray, controls: FloatArray) -> FloatArray:
    return np.asarray(states @ A.T + controls @ B.T)


def quadratic(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.asarray(-(states**2).sum(axis=1) - 0.3 * (controls**2).sum(axis=1))


def regulator(**changes: Any) -> Task:
    said: dict[str, Any] = {
        "box": Box([-2.0, -2.0], [2.0, 2.0]),
        "controls": Box([-4.0], [4.0]),
        "reward": quadratic,
        "discount": DISCOUNT,
        "optimistic_value": 0.0,
        "max_steps": 60,
    }
    return Task(**said | changes)


@pytest.fixture(scope="module")
def planned() -> Any:
    return plan(regulator(), drift, Discretisation(nodes=(41, 41)))


def test_a_regulator_is_controlled_as_riccati_says(planned: Any) -> None:
    root = np.sqrt(DISCOUNT)
    solution = solve_discrete_are(root * A, root * B, np.eye(2), np.array([[0.3]]))
    gain = np.linalg.solve(0.3 + DISCOUNT * B.T @ solution @ B, DISCOUNT * B.T @ solution @ A)
    states = np.random.default_rng(0).uniform(-0.8, 0.8, size=(40, 2))
    wanted = np.clip(-states @ gain.T, -4.0, 4.0)
    found = planned.policy.greedy(states)
    assert found.shape == (40, 1)
    listed = planned.task.controls.T
    nearest = np.abs(listed - wanted).min(axis=1)  # what the best of a list must miss, 2 apart
    assert np.abs(found - wanted).mean() < 0.3 < 0.7 * nearest.mean()


def test_a_box_earns_more_than_its_list(planned: Any) -> None:
    starts = np.random.default_rng(1).uniform(-1.0, 1.0, size=(12, 2))
    listed = plan(regulator(controls=planned.task.controls), drift, Discretisation(nodes=(41, 41)))
    free, bound = planned.roll_out(starts).total_rewards, listed.roll_out(starts).total_rewards
    assert (free >= bound - 0.02).all()
    assert free.mean() > bound.mean() + 0.02


def test_values_are_those_of_trying_all_sequences(planned: Any) -> None:
    policy, task = planned.policy, planned.task
    assert policy.depth == 3
    state = np.array([[0.4, -0.7]])
    tried, raw = policy.trying(state), []
    listed = policy.step.of_all(state)
    for control in tried.controls[0]:
        first, _ = mixed(task.box, state[0], listed.next_states[0], np.zeros(5), policy._levels, control)
        best = -np.inf
        for sequence in every_sequence(task.n_actions, 2):
            at, total = first[np.newaxis], 0.0
            for number, action in enumerate(sequence):
                after = policy.step(at, action).next_states
                total += DISCOUNT**number * quadratic(at, task.controls[[action]], after)[0]
                at = after
            best = max(best, total + DISCOUNT**2 * policy.q_function.value(at)[0])
        raw.append(quadratic(state, control[np.newaxis], first[np.newaxis])[0] + DISCOUNT * best)
    np.testing.assert_allclose(tried.values[0], smoothed(np.array(raw), 9, 1), rtol=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("compiled", [True, False], ids=["flow", "step"])
def test_at_every_step_ahead_noise_costs_what_the_plan_says(depth: int, compiled: bool) -> None:
    """A naive recursion after each first control: r + discount (cost(z) + best that follows)."""
    task = regulator(is_terminal=lambda states: states[:, 0] > 1.2)
    grid, stream = Grid.uniform(task.box, [9, 9]), np.random.default_rng(0)
    worth = QFunction(grid, stream.normal(size=(grid.n_nodes, task.n_actions)) - 5.0)
    costs = stream.normal(size=grid.n_nodes)
    of_noise = QFunction(grid, costs[:, np.newaxis])
    step = known(drift, task.controls)
    if compiled:
        step = Flow.through(grid, step, task.n_actions)
    policy = Between(task, step, worth, depth, False, None, grid.pad(costs))

    def after(state: FloatArray, control: FloatArray, reached: FloatArray, left: int) -> float:
        value = float(quadratic(state, control, reached)[0])
        if task.terminal(reached)[0]:
            return value
        then = float(worth.value(reached)[0]) if left == 0 else best(reached, left)
        return value + DISCOUNT * (float(of_noise(reached)[0, 0]) + then)

    def best(state: FloatArray, left: int) -> float:
        each = [(task.controls[[action]], step(state, action).next_states) for action in range(5)]
        return max(after(state, control, reached, left - 1) for control, reached in each)

    states = np.array([[0.4, -0.7], [1.0, 1.5], [1.19, 0.3]])
    tried, led = policy.trying(states), [step(states, action).next_states for action in range(5)]
    listed = np.stack(led, axis=1)
    for number, state in enumerate(states):
        raw = []
        for control in tried.controls[number]:
            first, _ = mixed(task.box, state, listed[number], np.zeros(5), policy._levels, control)
            raw.append(after(state[np.newaxis], control[np.newaxis], first[np.newaxis], depth - 1))
        np.testing.assert_allclose(tried.values[number], smoothed(np.array(raw), 9, 1), atol=1e-9)


def test_through_any_step_it_does_what_it_does_through_a_flow(planned: Any) -> None:
    task, states = planned.task, np.array([[0.4, -0.7], [1.1, 0.2]])
    step = known(drift, task.controls)
    flow = Flow.through(planned.grid, step, task.n_actions)
    for depth in (1, 2, 3):
        one = Between(task, step, planned.q_function, depth).greedy(states)
        np.testing.assert_allclose(
            Between(task, flow, planned.q_function, depth).greedy(states), one, atol=1e-6
        )


def test_straight_steps_are_interpolated_and_bent_ones_asked_directly(planned: Any) -> None:
    task, grid = planned.task, planned.grid

    def cubed(states: FloatArray, controls: FloatArray) -> FloatArray:
        return drift(states, controls**3 / 2.0)

    assert bend(task, drift, grid) < 1e-9
    assert planned.policy.directly is None
    assert bend(task, cubed, grid) > BENT
    bent: Any = plan(task, cubed, Discretisation(nodes=(21, 21)))
    state, control = np.array([[0.1, 0.3]]), np.array([[3.1]])
    np.testing.assert_allclose(bent.policy.towards(state, control).next_states, cubed(state, control))
    straight = Between(task, bent.policy.step, bent.q_function, 1).towards(state, control).next_states
    assert np.abs(straight - cubed(state, control)).max() > 0.1


def test_what_is_unknown_draws_when_exploring_and_not_otherwise(planned: Any) -> None:
    task, grid = planned.task, planned.grid
    fields = planned.policy.step.fields.reshape(5, -1, 4).copy()
    fields[4, :, 2] = 0.9  # the strongest push is unknown
    unsure = Flow(grid, fields.reshape(5, -1))
    state = np.array([[1.5, 1.5]])  # where it is wrong
    assert Between(task, unsure, planned.q_function, 2).greedy(state)[0, 0] == 4.0
    assert Between(task, unsure, planned.q_function, 2, optimistic=False).greedy(state)[0, 0] < 0.0


def test_leaving_counts_as_it_does_for_lists(planned: Any) -> None:
    task, step = planned.task, planned.policy.step
    out = Leaving(task, np.ones(2, dtype=np.bool_), np.ones(2, dtype=np.bool_), -1e4)
    state = np.array([[1.97, 1.0]])
    for depth in (1, 2, 3):
        free = Between(task, step, planned.q_function, depth).trying(state).values
        bound = Between(task, step, planned.q_function, depth, leaving=out).trying(state).values
        assert (bound < free).all()


def test_many_states_are_chosen_for_as_one_by_one(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    states = np.random.default_rng(2).uniform(-2.0, 2.0, size=(7, 2))
    alone = np.concatenate([planned.policy.greedy(state[np.newaxis]) for state in states])
    np.testing.assert_array_equal(planned.policy.greedy(states), alone)
    monkeypatch.setattr("optimist.planning.between.BLOCK", 600)
    np.testing.assert_array_equal(planned.policy.greedy(states), alone)
    assert planned.policy.greedy(states[:0]).shape == (0, 1)


def test_how_far_is_looked(planned: Any) -> None:
    assert sight(planned.task) == 3
    assert sight(regulator(controls=[-1.0, 0.0, 1.0])) == affordable_depth(3)
    assert [sight(regulator(controls=Box([-1.0] * k, [1.0] * k))) for k in (2, 3)] == [2, 2]


def test_two_actuators_find_their_best_together() -> None:
    def pushed(states: FloatArray, controls: FloatArray) -> FloatArray:
        return states + 0.2 * controls

    def near(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return np.asarray(-(next_states**2).sum(axis=1) - 0.01 * (controls**2).sum(axis=1))

    task = regulator(controls=Box([-1.0, -1.0], [1.0, 1.0]), reward=near, discount=0.9)
    made = plan(task, pushed, Discretisation(nodes=(31, 31)))
    states = np.array([[0.1, -0.06], [0.02, 0.14], [1.5, -1.5]])
    found = made.policy.greedy(states)
    wanted = np.clip(-states / 0.2, -1.0, 1.0)
    np.testing.assert_allclose(found, wanted, atol=0.2)


def test_the_pendulum_no_longer_chatters() -> None:
    system = find_system("pendulum-continuous")
    task = replace(system.task, max_steps=120)
    made = plan(task, system.dynamics, Discretisation(nodes=(61, 61)))
    totals = made.roll_out(system.nearby_starts(3, seed=0)).total_rewards
    assert totals.mean() > -9.5  # with five torques -17.9, and -12.4 looking ahead
