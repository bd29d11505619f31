"""A beam: against one followed path by path, and against all sequences where it is wide enough for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.planning import Flow, Lookahead, Planner, QFunction
from optimist.planning.beam import Beam
from optimist.planning.leaving import Leaving
from optimist.planning.sights import MOST_STEPS, Sights
from optimist.steps import imagined_through, known, shaken
from tests.naive.beam import best_of_beam
from tests.planning.cases import anything, states_around, task_on
from tests.planning.test_sights import BOX, TASK, swing
from tests.test_grid import make_grid


def searching(dims: int, *, optimistic: bool, share: float = 0.45) -> Lookahead:
    """Any plan on any flow, with ends."""
    grid = make_grid(dims, "random", "mixed")
    task = task_on(grid, share=share)
    values = np.random.default_rng(dims).normal(size=(grid.n_nodes, task.n_actions))
    flow = Flow.of(grid, anything(grid))
    return Lookahead(task, flow, QFunction(grid, values), 4, optimistic)


@pytest.mark.parametrize("optimistic", [True, False])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_wide_enough_it_is_the_tree_of_all_sequences(dims: int, optimistic: bool) -> None:
    tree = searching(dims, optimistic=optimistic)
    beam = replace(Beam.like(tree), width=3**4, levels=4)
    roots = states_around(tree.q_function.grid, 40)
    found, wanted = beam.foresee(roots), tree.foresee(roots)
    np.testing.assert_allclose(found.q_values, wanted.q_values, atol=1e-12)
    np.testing.assert_array_equal(found.next_states, wanted.next_states)
    np.testing.assert_array_equal(found.uncertainty, wanted.uncertainty)


@pytest.mark.parametrize("optimistic", [True, False])
@pytest.mark.parametrize(("width", "levels"), [(1, 5), (4, 7), (7, 3)])
def test_it_follows_the_best_paths(width: int, levels: int, optimistic: bool) -> None:
    tree = searching(2, optimistic=optimistic, share=0.8)
    beam = replace(Beam.like(tree), width=width, levels=levels)
    assert isinstance(tree.step, Flow)
    roots = states_around(tree.q_function.grid, 25, beyond=0.0)
    found = beam.foresee(roots).q_values
    for root, values in zip(roots, found, strict=True):
        asked = tree.task, tree.step, tree.q_function, root
        first, worth = best_of_beam(*asked, width=width, levels=levels, optimistic=optimistic)
        assert values.argmax() == first
        assert values.max() == pytest.approx(worth, abs=1e-12)


def test_roots_do_not_know_of_each_other() -> None:
    beam = Beam.like(searching(3, optimistic=True))
    roots = states_around(beam.q_function.grid, 30)
    together = beam(roots)
    np.testing.assert_array_equal(together, np.concatenate([beam(root[np.newaxis]) for root in roots]))
    assert np.isfinite(together).all()


def test_outside_of_an_open_side_it_counts_what_leaving_does() -> None:
    tree = searching(2, optimistic=True)
    grid = tree.q_function.grid
    open_sides = Leaving(tree.task, np.array([True, True]), np.array([True, False]), -50.0)
    tree = replace(tree, leaving=open_sides)
    roots = states_around(grid, 30)
    wide = replace(Beam.like(tree), width=3**4, levels=4)
    np.testing.assert_allclose(wide(roots), tree(roots), atol=1e-12)


@pytest.mark.parametrize(("max_steps", "offered"), [(MOST_STEPS, True), (MOST_STEPS + 1, False)])
def test_it_is_a_sight_where_episodes_are_short(max_steps: int, offered: bool) -> None:
    task = replace(TASK, max_steps=max_steps)
    layout = Layout(Grid.uniform(BOX, [9, 9]))
    flow = Flow.through(layout.grid, known(swing, task.controls), task.n_actions)
    made = Planner(task).plan(known(swing, task.controls), layout, through=flow)
    sights = Sights.of(made, imagined_through(swing)).sights
    assert isinstance(sights[-1], Beam) == offered
    assert not isinstance(Sights.of(made, imagined_through(swing), rough=True).sights[-1], Beam)


def test_with_noise_nobody_looks_so_far() -> None:
    layout = Layout(Grid.uniform(BOX, [9, 9]))
    flow = Flow.through(layout.grid, known(swing, TASK.controls), TASK.n_actions)
    made = Planner(TASK).plan(flow, layout, noise=np.array([0.05, 0.1]))
    sights = Sights.of(made, shaken(imagined_through(swing), made.noise)).sights
    assert len(sights) > 1
    assert not any(isinstance(sight, Beam) for sight in sights)
