"""How states and time are cut up: counts from a budget, against trying them; what is told is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.box import Box
from optimist.discretisation import ONE_STEP, Discretisation, Holding, Layout
from optimist.grid import Grid
from optimist.task import Task


def task_over(box: Box, max_steps: int = 500) -> Task:
    return Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.9, 0.0, max_steps=max_steps)


@settings(max_examples=60, deadline=None, database=None)
@given(budget=st.integers(1, 10**7), n_dims=st.integers(1, 6))
def test_counts_are_the_most_odd_ones_that_the_budget_allows(budget: int, n_dims: int) -> None:
    cut = Discretisation(budget=budget)
    odd = [count for count in range(3, 102, 2) if count**n_dims <= budget]
    if not odd:
        with pytest.raises(ValueError, match=rf"`grid.budget` must be at least {3**n_dims}, three nodes"):
            cut.nodes_for(n_dims)
        return
    assert cut.nodes_for(n_dims) == (odd[-1],) * n_dims


@pytest.mark.parametrize(("n_dims", "count"), [(1, 101), (2, 101), (3, 57), (4, 19), (5, 11), (6, 7)])
def test_counts_of_the_budget_by_default(n_dims: int, count: int) -> None:
    assert Discretisation().nodes_for(n_dims) == (count,) * n_dims


def test_counts_that_are_told_are_kept_whatever_the_budget() -> None:
    assert Discretisation(budget=9, nodes=(40, 2)).nodes_for(2) == (40, 2)


@pytest.mark.parametrize("name", ["nodes", "spacing", "limits"])
def test_entries_for_other_axes_are_refused(name: str) -> None:
    cut = Discretisation.model_validate({name: (3, 3, 3)})
    with pytest.raises(ValueError, match=rf"`grid.{name}` must have one entry per axis \(2\); got 3"):
        cut.nodes_for(2)


def test_the_first_grid_is_spaced_within_the_limits() -> None:
    box = Box([-4.0, 0.0], [4.0, 6.0], periodic=[False, True])
    assert Discretisation().box_within(box) is box
    cut = Discretisation(nodes=(7, 6), spacing=(2.0, 1.0), limits=(3.0, 1.0))
    narrow = Box([-3.0, 0.0], [3.0, 6.0], periodic=[False, True])
    assert cut.box_within(box) == narrow
    grid, expected = cut.grid_over(box), Grid.spaced(narrow, (7, 6), (2.0, 1.0))
    assert grid.box == narrow
    for nodes, same in zip(grid.axes, expected.axes, strict=True):
        np.testing.assert_array_equal(nodes, same)
    plain = Discretisation(nodes=(7, 6)).grid_over(box)
    for nodes, same in zip(plain.axes, Grid.uniform(box, (7, 6)).axes, strict=True):
        np.testing.assert_array_equal(nodes, same)


@pytest.mark.parametrize(("max_steps", "most"), [(500, 16), (16, 16), (7, 7), (1, 1)])
def test_controls_are_held_until_a_cell_is_crossed_unless_told(max_steps: int, most: int) -> None:
    task = task_over(Box([0.0], [1.0]), max_steps)
    assert Discretisation().holding_for(task) == Holding(most, until_crossed=True)
    assert Discretisation(hold=1).holding_for(task) == ONE_STEP == Holding(1, until_crossed=False)
    assert Discretisation().holding_for(task).require(task) == most


def test_a_layout_is_a_grid_with_single_steps_unless_told() -> None:
    layout = Layout(Grid.uniform(Box([0.0], [1.0]), [3]))
    assert (layout.holding, layout.depth) == (ONE_STEP, None)
    assert (layout.placement, layout.polished) == ("uniform", False)


CROSSING = Holding(16, until_crossed=True)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"holding": CROSSING}, "uniform"),
        ({"holding": Holding(1, until_crossed=True)}, "uniform"),
        ({}, "uniform, single steps"),
        ({"holding": Holding(4)}, "uniform, 4 steps held"),
        ({"holding": CROSSING, "depth": 0}, "uniform, looking 0 ahead"),
        ({"holding": CROSSING, "depth": 5, "placement": "placed by need"}, "placed by need, looking 5 ahead"),
        ({"holding": CROSSING, "polished": True}, "uniform, polished"),
        (
            {"depth": 5, "placement": "closely placed", "polished": True},
            "closely placed, single steps, looking 5 ahead, polished",
        ),
    ],
)
def test_a_layout_is_named_in_words(layout: dict[str, Any], words: str) -> None:
    assert Layout(Grid.uniform(Box([0.0], [1.0]), [3]), **layout).name == words


@pytest.mark.parametrize(
    ("name", "bad"),
    [("budget", 0), ("budget", 10.5), ("hold", 0), ("hold", 1.5), ("nodes", (1,)), ("spacing", (0.0,))],
)
def test_what_is_no_discretisation_is_refused(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=name):
        Discretisation.model_validate({name: bad})


def test_it_is_read_as_it_was_written() -> None:
    for cut in (
        Discretisation(),
        Discretisation(budget=77, nodes=(7, 9), spacing=(1.0, 2.0), limits=(3.0, 4.0), hold=5),
    ):
        assert Discretisation.model_validate_json(cut.model_dump_json()) == cut
