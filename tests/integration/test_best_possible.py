"""The paper's best possible performance, and ours, with the recipes we ship."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import BoolArray, FloatArray
from optimist.experiments.problems import find_problem
from optimist.planning import KnownPlan, Rollouts
from optimist.systems import SYSTEMS
from optimist.systems.bicycle import MAX_ROLL, SYSTEM


def plan(problem: str, recipe: str = "ours") -> KnownPlan:
    return find_problem(problem).plan(SYSTEMS[problem].recipes[recipe])


def from_its_starts(problem: str, recipe: str = "ours") -> Rollouts:
    return plan(problem, recipe).roll_out(SYSTEMS[problem].starts)


@pytest.mark.parametrize("recipe", ["paper", "ours"])
def test_mountain_car_takes_103_steps(recipe: str) -> None:
    assert from_its_starts("mountain-car", recipe).steps.tolist() == [103]


def test_pendulum_beats_the_paper() -> None:
    made, system = plan("pendulum"), SYSTEMS["pendulum"]
    assert made.roll_out(system.starts).total_rewards[0] > -18.41
    assert made.roll_out(system.nearby_starts(20, seed=0)).total_rewards.min() > -20.0


def test_the_printed_ranges_on_a_uniform_grid_let_the_bicycle_fall() -> None:
    assert from_its_starts("bicycle", "paper").terminated.all()


def test_bicycle_beats_the_paper_and_never_falls_where_it_could_be_avoided() -> None:
    made = plan("bicycle")
    assert made.grid.n_nodes <= 20**4
    assert made.roll_out(SYSTEM.starts).total_rewards.min() > -2.6
    starts = SYSTEM.nearby_starts(50, seed=0)
    fell = made.roll_out(starts).terminated
    assert not (fell & avoidable(starts)).any()


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
            states = SYSTEM.dynamics(states, np.where(lean, [[0.0, -0.02 * side]], [[2.0 * side, 0.0]]))
            highest = np.where(turned, highest, np.maximum(highest, side * states[:, 0]))
            turned |= side * states[:, 1] < 0.0
        found.append(bool((turned & (highest <= MAX_ROLL)).any()))
    return np.array(found)


def test_acrobot_at_25_to_the_4_swings_up_as_fast_as_the_paper() -> None:
    made, system = plan("acrobot"), SYSTEMS["acrobot"]
    assert made.grid.shape == (25, 25, 25, 25)
    assert made.roll_out(system.starts).steps.tolist() == [64]
    around = made.roll_out(system.nearby_starts(50, seed=0))
    assert around.terminated.all()
    assert around.steps.mean() <= 66.0


def test_acrobot_on_the_papers_uniform_grid_takes_76_steps() -> None:
    assert from_its_starts("acrobot", "paper").steps.tolist() == [76]
