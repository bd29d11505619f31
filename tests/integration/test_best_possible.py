"""The best possible performance with the true dynamics: the paper's, and ours, which nobody was told how."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import optimist
from optimist.arrays import BoolArray, FloatArray
from optimist.experiments.problems import OURS, find_problem
from optimist.planning import KnownPlan, Rollouts
from optimist.planning.rehearsal import from_around
from optimist.systems import SYSTEMS, find_system
from optimist.systems.bicycle import MAX_ROLL
from optimist.systems.bicycle import SYSTEM as BICYCLE


@cache
def chosen(problem: str, budget: int | None = None) -> KnownPlan:
    """Planned as anybody's problem is: nothing but the budget is ever given."""
    system = find_system(problem)
    discretisation = optimist.Discretisation() if budget is None else optimist.Discretisation(budget=budget)
    return optimist.plan(system.task, system.dynamics, discretisation, starts=system.starts)


def as_printed(problem: str) -> Rollouts:
    """The paper's grid, from the paper's starts."""
    found = find_problem(problem)
    return found.plan(found.recipes["paper"]).roll_out(found.starts)


def test_mountain_car_takes_103_steps_on_the_papers_grid() -> None:
    assert as_printed("mountain-car").steps.tolist() == [103]


def test_mountain_car_takes_103_steps_when_all_is_chosen() -> None:
    made, system = chosen("mountain-car"), SYSTEMS["mountain-car"]
    assert made.roll_out(system.starts).total_rewards.tolist() == [-103.0]
    around = made.roll_out(system.nearby_starts(50, seed=0))
    assert around.terminated.all()
    assert around.total_rewards.mean() >= -101.5


def test_a_problem_by_name_is_planned_as_one_by_its_dynamics() -> None:
    system, problem = SYSTEMS["mountain-car"], find_problem("mountain-car")
    mine, named = chosen("mountain-car"), problem.plan(OURS)
    assert (mine.layout.name, mine.expected, mine.tried) == (named.layout.name, named.expected, named.tried)
    np.testing.assert_array_equal(mine.plan.q_values, named.plan.q_values)
    np.testing.assert_array_equal(mine.roll_out(system.starts).paths, named.roll_out(problem.starts).paths)


def test_pendulum_beats_the_paper() -> None:
    made, system = chosen("pendulum"), SYSTEMS["pendulum"]
    assert system.paper_best == -18.41
    assert made.roll_out(system.starts).total_rewards[0] >= -17.7
    around = made.roll_out(system.nearby_starts(50, seed=0)).total_rewards
    assert around.mean() >= -17.9
    assert around.min() >= -20.0


def test_what_is_expected_of_a_plan_is_what_it_earns() -> None:
    """With the truth for a model, a rehearsal from a start is an episode."""
    made, system = chosen("mountain-car", budget=441), SYSTEMS["mountain-car"]
    assert made.expected == max(total for _, total in made.tried)
    starts, weights, _ = from_around(system.task, system.starts)
    earned = made.roll_out(starts).total_rewards
    assert float(weights @ earned) == pytest.approx(made.expected, rel=1e-12)


def test_the_printed_ranges_on_a_uniform_grid_let_the_bicycle_fall() -> None:
    assert as_printed("bicycle").terminated.all()


def test_bicycle_beats_the_paper_with_a_tenth_of_its_nodes_where_they_are_chosen() -> None:
    made = chosen("bicycle", budget=10_000)
    assert made.grid.n_nodes <= 20**4 / 5
    assert made.roll_out(BICYCLE.starts).total_rewards.min() > -2.6  # the paper: -3.49
    starts = BICYCLE.nearby_starts(50, seed=0)
    saved = avoidable(starts)
    assert saved.sum() > 40
    fell = made.roll_out(starts).terminated & saved
    assert fell.sum() <= 4


def avoidable(starts: FloatArray, horizon: int = 45) -> BoolArray:
    """Whether some sequence of the rider's actions keeps the roll within bounds until it turns back.

    To stop a fall the handlebar is turned into it (torque) and the body leant away (displacement), one or
    the other at each step. All sequences with up to two changes between the two are tried.
    """
    change_1, change_2 = np.triu_indices(horizon + 1)
    steps = np.arange(horizon)
    leaning = (steps >= change_1[:, None]) & (steps < change_2[:, None])
    leaning = np.vstack([leaning, ~leaning])
    found = []
    for start in starts:
        side = np.sign(start[0])
        states = np.tile(start, (len(leaning), 1))
        highest = np.abs(states[:, 0])
        turned = np.zeros(len(leaning), dtype=np.bool_)
        for step in range(horizon):
            lean = leaning[:, step, np.newaxis]
            states = BICYCLE.dynamics(states, np.where(lean, [[0.0, -0.02 * side]], [[2.0 * side, 0.0]]))
            highest = np.where(turned, highest, np.maximum(highest, side * states[:, 0]))
            turned |= side * states[:, 1] < 0.0
        found.append(bool((turned & (highest <= MAX_ROLL)).any()))
    return np.array(found)


def test_acrobot_on_the_papers_uniform_grid_takes_76_steps() -> None:
    assert as_printed("acrobot").steps.tolist() == [76]
