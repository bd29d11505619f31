"""What every system promises, and the constants of the notes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.systems import NAMES, PAPER, SYSTEMS, find_system, gymnasium_id
from optimist.systems.system import System

PROPERTY = settings(deadline=None, max_examples=60)
EVERY_SYSTEM = pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))
OF_THE_PAPER = pytest.mark.parametrize("system", [SYSTEMS[name] for name in PAPER], ids=PAPER)


class Printed(NamedTuple):
    """What the notes say of a problem."""

    controls: list[list[float]]
    discount: float
    high: list[float]
    periodic: list[bool]
    nodes: tuple[int, ...]
    paper_best: float


PRINTED = {
    "mountain-car": Printed([[-1], [0], [1]], 0.99, [0.5, 0.07], [False, False], (100, 100), -103.0),
    "pendulum": Printed(
        [[-5], [-2.5], [0], [2.5], [5]], 0.99, [math.pi, 10.0], [True, False], (100, 100), -18.41
    ),
    "bicycle": Printed(
        [[-2, 0], [2, 0], [0, -0.02], [0, 0.02], [0, 0]],
        0.98,
        [math.radians(12.0), 2.0 * math.pi, math.radians(80.0), 2.0 * math.pi],
        [False] * 4,
        (20, 20, 20, 20),
        -3.49,
    ),
    "acrobot": Printed(
        [[-1], [1]],
        1.0,
        [math.pi, 4.0 * math.pi, math.pi, 9.0 * math.pi],
        [True, False, True, False],
        (25, 25, 25, 25),
        -64.0,
    ),
}


def random_states(system: System, count: int, *, seed: int) -> FloatArray:
    box = system.task.box
    return np.random.default_rng(seed).uniform(box.low, box.high, size=(count, box.n_dims))


@OF_THE_PAPER
def test_constants_are_those_of_the_paper(system: System) -> None:
    printed = PRINTED[system.name]
    task = system.task
    np.testing.assert_allclose(task.controls, printed.controls)
    assert task.discount == printed.discount
    assert task.optimistic_value == 0.0
    assert task.max_steps == 500
    np.testing.assert_allclose(task.box.high, printed.high)
    lows = [-1.2, -0.07] if system.name == "mountain-car" else [-edge for edge in printed.high]
    np.testing.assert_allclose(task.box.low, lows)
    assert task.box.periodic.tolist() == printed.periodic
    assert system.paper_best == printed.paper_best
    assert system.best_known is not None
    assert system.best_known >= printed.paper_best
    planned, uniform = system.recipes["paper"].grid.grid_over(task.box), Grid.uniform(task.box, printed.nodes)
    assert planned.shape == printed.nodes
    assert [axis.tolist() for axis in planned.axes] == [axis.tolist() for axis in uniform.axes]


@EVERY_SYSTEM
def test_a_batch_is_stepped_as_one_by_one(system: System) -> None:
    states = random_states(system, 50, seed=0)
    actions = np.arange(50) % system.task.n_actions
    controls = system.task.controls[actions]
    together = system.dynamics(states, controls)
    assert together.shape == states.shape
    assert together.dtype == np.float64
    alone = np.concatenate([system.dynamics(states[[k]], controls[[k]]) for k in range(50)])
    np.testing.assert_allclose(together, alone, rtol=1e-13, atol=1e-14)
    rewards = system.task.rewards(states, controls, together)
    for k in range(50):
        single = system.task.rewards(states[[k]], controls[[k]], together[[k]])[0]
        assert rewards[k] == pytest.approx(single, rel=1e-14)
        assert system.task.terminal(together)[k] == system.task.terminal(together[[k]])[0]


@EVERY_SYSTEM
def test_one_control_stands_for_the_whole_batch(system: System) -> None:
    states = random_states(system, 40, seed=1)
    for control in system.task.controls:
        once, repeated = control[np.newaxis], np.tile(control, (40, 1))
        successors = system.dynamics(states, once)
        np.testing.assert_array_equal(successors, system.dynamics(states, repeated))
        np.testing.assert_array_equal(
            system.task.rewards(states, once, successors), system.task.rewards(states, repeated, successors)
        )


@EVERY_SYSTEM
def test_dynamics_change_neither_states_nor_controls(system: System) -> None:
    states, controls = random_states(system, 20, seed=2), system.task.controls[[0]].copy()
    kept_states, kept_controls = states.copy(), controls.copy()
    first = system.dynamics(states, controls)
    np.testing.assert_array_equal(states, kept_states)
    np.testing.assert_array_equal(controls, kept_controls)
    np.testing.assert_array_equal(system.dynamics(states, controls), first)


@EVERY_SYSTEM
@PROPERTY
@given(data=st.data())
def test_successors_are_finite_observations(system: System, data: st.DataObject) -> None:
    task, seen = system.task, system.observation_box
    unit = data.draw(st.lists(st.floats(0.0, 1.0), min_size=task.box.n_dims, max_size=task.box.n_dims))
    state = np.minimum(task.box.low + np.array(unit) * task.box.widths, task.box.high)
    successors = system.dynamics(np.tile(state, (task.n_actions, 1)), task.controls)
    assert np.isfinite(successors).all()
    assert (successors >= seen.low).all()
    assert (successors <= seen.high).all()


@EVERY_SYSTEM
def test_no_reward_is_above_the_optimistic_value(system: System) -> None:
    states = random_states(system, 500, seed=3)
    for control in system.task.controls:
        successors = system.dynamics(states, control[np.newaxis])
        rewards = system.task.rewards(states, control[np.newaxis], successors)
        assert rewards.max() <= system.task.optimistic_value


@EVERY_SYSTEM
def test_observations_hold_the_task_and_the_starts(system: System) -> None:
    seen, box = system.observation_box, system.task.box
    assert (seen.low <= box.low).all()
    assert (seen.high >= box.high).all()
    assert seen.periodic.tolist() == box.periodic.tolist()
    assert ((system.starts >= box.low) & (system.starts <= box.high)).all()
    assert not system.task.terminal(system.starts).any()


@EVERY_SYSTEM
def test_nearby_starts_are_reproducible(system: System) -> None:
    starts = system.nearby_starts(10, seed=7)
    np.testing.assert_array_equal(starts, system.nearby_starts(10, seed=7))
    assert not np.isin(starts, system.nearby_starts(10, seed=8)).any()
    assert len(np.unique(starts, axis=0)) == 10


@EVERY_SYSTEM
def test_nearby_starts_scatter_within_the_spread_around_each_start_in_turn(system: System) -> None:
    count = 400
    starts = system.nearby_starts(count, seed=0)
    assert starts.shape == (count, system.task.box.n_dims)
    centres = system.starts[np.arange(count) % len(system.starts)]
    offsets = system.task.box.displacement(centres, starts)
    assert (np.abs(offsets) <= system.start_spread * (1.0 + 1e-9)).all()
    # uniform: mean 0 and variance spread^2 / 3, within five standard errors
    scaled = offsets / system.start_spread
    assert np.abs(scaled.mean(axis=0)).max() < 5.0 * math.sqrt(1.0 / 3.0 / count)
    assert np.abs((scaled**2).mean(axis=0) - 1.0 / 3.0).max() < 5.0 * math.sqrt(4.0 / 45.0 / count)


@EVERY_SYSTEM
def test_nearby_starts_are_in_the_box_and_not_terminal(system: System) -> None:
    starts = system.nearby_starts(200, seed=1)
    assert system.task.box.contains(starts).all()
    assert not system.task.terminal(starts).any()


@OF_THE_PAPER
def test_the_papers_recipe_has_one_entry_per_axis_and_plans_inside_the_box(system: System) -> None:
    box = system.task.box
    assert set(system.recipes) == {"paper"}  # all else is chosen
    for recipe in system.recipes.values():
        cut = recipe.grid
        assert cut.nodes is not None
        assert len(cut.nodes) == box.n_dims
        assert cut.spacing is None or len(cut.spacing) == box.n_dims
        assert cut.limits is None
        assert cut.hold == 1
        assert recipe.lookahead == 0
        assert cut.grid_over(box).n_nodes == math.prod(cut.nodes)
        assert (cut.grid_over(box).box.low >= box.low).all()
        assert (cut.grid_over(box).box.high <= box.high).all()


@EVERY_SYSTEM
def test_every_axis_has_a_name(system: System) -> None:
    assert len(system.axis_names) == system.task.box.n_dims


def test_systems_are_found_by_name() -> None:
    assert list(SYSTEMS) == list(NAMES)
    assert set(PAPER) == set(PRINTED) <= set(SYSTEMS)
    for name, system in SYSTEMS.items():
        assert find_system(name) is system
        assert system.name == name
        assert system.gymnasium_id == gymnasium_id(name)


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"must be one of .*mountain-car.*; got 'unicycle'"):
        find_system("unicycle")
