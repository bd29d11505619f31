"""Ends that stop steps on their way: as dynamics that stop there, whoever plans, acts or rehearses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimist.arrays import Actions, BoolArray, FloatArray
from optimist.box import Box
from optimist.discretisation import Holding
from optimist.found import Found
from optimist.grid import Grid
from optimist.models.outcomes import OpenTask
from optimist.planning import Flow, Lookahead, QFunction, rehearse, tabulate
from optimist.planning.beam import Beam
from optimist.planning.between import Between
from optimist.planning.rehearsal import Starts
from optimist.steps import imagined_through, known, shaken
from optimist.task import Task
from optimist.transitions import Transitions
from tests.naive.between import smoothed

BOX = Box([-np.pi, -2.0], [np.pi, 2.0], periodic=[True, False])
LISTED = np.array([[-0.9, 0.3], [0.2, -0.7], [0.8, 0.6]])
SHARES = (1 / 3, 2 / 3)


def ridge(states: FloatArray) -> BoolArray:
    """Two strips, thinner than steps are long: one across the seam of the angle, one at a rate."""
    return np.asarray((np.cos(states[:, 0]) < -0.98) | (np.abs(states[:, 1] - 1.0) < 0.1))


def paid(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Falls are paid for by where one arrives only."""
    return np.where(ridge(next_states), -10.0 + next_states[:, 1], -0.1 * states[:, 1] ** 2)


PLAIN = Task(BOX, LISTED, paid, 0.95, 0.0, ridge, max_steps=20)
CATCHING = PLAIN.catching(True)


def moved_by(states: FloatArray, controls: FloatArray) -> FloatArray:
    return BOX.wrap(states + controls)


def stopped(states: FloatArray, controls: FloatArray) -> FloatArray:
    """The same, one by one, no further than the first end at a third or two thirds of the way."""
    led = moved_by(states, controls)
    for row, state in enumerate(states):
        for share in SHARES:
            there = BOX.wrap(state + share * BOX.displacement(state, led[row]))
            if ridge(there[np.newaxis])[0]:
                led[row] = there
                break
    return led


def somewhere(count: int, seed: int = 0) -> FloatArray:
    states = np.random.default_rng(seed).uniform(BOX.low, BOX.high, (4 * count, 2))
    return states[~ridge(states)][:count]


def test_steps_lead_no_further_than_to_the_first_end_on_their_way() -> None:
    states, controls = somewhere(500), np.random.default_rng(1).uniform(-1.0, 1.0, (500, 2))
    led = moved_by(states, controls)
    wanted = stopped(states, controls)
    n_through = int((ridge(wanted) & ~ridge(led)).sum())
    assert n_through > 20
    np.testing.assert_allclose(BOX.displacement(wanted, CATCHING.caught(states, led)), 0.0, atol=1e-12)
    assert PLAIN.caught(states, led) is led
    np.testing.assert_array_equal(PLAIN.meets_end(states, led), CATCHING.meets_end(states, led))


def test_what_is_no_step_is_left_as_it_is_and_nobody_is_asked_about_it() -> None:
    """Whose ends are looked up in a table has no answer."""

    def sound(states: FloatArray) -> BoolArray:
        assert np.isfinite(states).all()
        assert (np.abs(states) < 10.0).all()
        assert len(states)
        return ridge(states)

    task = replace(CATCHING, is_terminal=sound)
    states = np.zeros((4, 2))
    led = np.array([[0.0, 4.5], [0.0, np.nan], [1e30, np.inf], [0.0, 1.5]])
    np.testing.assert_array_equal(task.caught(states[:3], led[:3]), led[:3])
    np.testing.assert_array_equal(task.caught(states, led), [*led[:3], [0.0, 1.0]])
    assert task.meets_end(states[:0], led[:0]).shape == (0,)


def test_a_task_without_ends_catches_nothing() -> None:
    endless = replace(PLAIN, is_terminal=None).catching(True)
    states = somewhere(20)
    led = moved_by(states, LISTED[:1])
    assert endless.caught(states, led) is led


def test_a_task_of_which_parts_are_learned_keeps_them() -> None:
    found = Found(BOX.low, BOX.high, BOX.periodic, LISTED, discount=0.99, max_steps=100)
    states, actions = somewhere(30), np.arange(30) % 3
    task = OpenTask.of(found, Transitions.stepped(states, actions, moved_by(states, LISTED[actions])))
    made = task.catching(True)
    assert isinstance(made, OpenTask)
    assert made.ends_catch
    assert not task.ends_catch
    assert made.catching(False).__dict__ == task.__dict__
    assert made.catching(True) is made


@pytest.mark.parametrize("holding", [Holding(1, until_crossed=False), Holding(5, until_crossed=True)])
def test_tables_are_those_of_dynamics_that_stop(holding: Holding) -> None:
    grid = Grid.uniform(BOX, [16, 15])
    found = tabulate(grid, CATCHING, known(moved_by, LISTED), holding=holding)
    wanted = tabulate(grid, PLAIN, known(stopped, LISTED), holding=holding)
    through = tabulate(grid, PLAIN, known(moved_by, LISTED), holding=holding)
    np.testing.assert_allclose(found.rewards, wanted.rewards, atol=1e-12)
    np.testing.assert_array_equal(found.discounts, wanted.discounts)
    assert (found.discounts != through.discounts).sum() > 50


@pytest.mark.parametrize("depth", [1, 3])
def test_looking_ahead_ends_where_dynamics_stop(depth: int) -> None:
    grid = Grid.uniform(BOX, [16, 15])
    values = QFunction(grid, np.random.default_rng(2).normal(size=(grid.n_nodes, 3)))
    flow = Flow.through(grid, known(moved_by, LISTED), 3)
    roots = somewhere(100)
    wanted = Lookahead(PLAIN, known(stopped, LISTED), values, depth)(roots)
    found = Lookahead(CATCHING, flow, values, depth)
    np.testing.assert_allclose(found(roots), wanted, atol=1e-9)
    assert np.abs(Lookahead(PLAIN, flow, values, depth)(roots) - wanted).max() > 1.0
    beam = replace(Beam.like(found), width=3**depth, levels=depth)
    np.testing.assert_allclose(beam(roots), wanted, atol=1e-9)
    # where it was to lead is told as it was foreseen: whoever is surprised asks that
    np.testing.assert_array_equal(
        found.foresee(roots).next_states, Lookahead(PLAIN, flow, values, depth).foresee(roots).next_states
    )


@pytest.mark.parametrize("depth", [1, 2])
def test_with_any_control_it_ends_where_dynamics_stop(depth: int) -> None:
    def pushed(states: FloatArray, controls: FloatArray) -> FloatArray:
        return moved_by(states, controls @ np.array([[0.5, 1.2]]))

    plain = Task(BOX, Box([-1.0], [1.0]), paid, 0.95, 0.0, ridge, max_steps=20)
    grid = Grid.uniform(BOX, [16, 15])
    values = QFunction(grid, np.random.default_rng(3).normal(size=(grid.n_nodes, plain.n_actions)))
    flow = Flow.through(grid, known(pushed, plain.controls), plain.n_actions)
    roots = somewhere(40)
    tried = Between(plain.catching(True), flow, values, depth).trying(roots)
    through = Between(plain, flow, values, depth).trying(roots)
    assert np.abs(tried.values - through.values).max() > 1.0
    if depth == 1:
        worth = np.empty_like(tried.values)
        for column in range(worth.shape[1]):
            led = plain.catching(True).caught(roots, through.next_states[:, column])
            later = ~ridge(led) * values.value(led)
            worth[:, column] = paid(roots, tried.controls[:, column], led) + plain.discount * later
        worth = np.array([smoothed(row, len(row), 1) for row in worth])
        np.testing.assert_allclose(tried.values, worth, atol=1e-9)


class Pushing:
    """Always with the last action but one, beyond a rate with the first."""

    def greedy(self, states: FloatArray) -> Actions:
        return np.where(states[:, 1] > 0.5, 0, 2)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_rehearsed_episodes_end_where_dynamics_stop_unless_noise_lifts_them_off(noise: float) -> None:
    starts = Starts.alike(somewhere(50))
    heard = []
    for task, dynamics in ((CATCHING, moved_by), (PLAIN, stopped), (PLAIN, moved_by)):
        imagined = shaken(imagined_through(dynamics), np.full(2, noise), seed=1)
        heard.append(rehearse(task, Pushing(), imagined, starts))
    np.testing.assert_allclose(heard[0].totals, heard[1].totals, atol=1e-9)
    assert (np.abs(heard[2].totals - heard[1].totals) > 1.0).sum() > 5
