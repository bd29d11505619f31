from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optimist.grid import Grid
from optimist.planning import solve, tabulate
from optimist.planning.memory import available_bytes, needed_bytes, require_memory
from optimist.steps import known
from optimist.systems import find_system

shapes = st.lists(st.integers(2, 3000), min_size=1, max_size=6)


@given(shape=shapes, n_actions=st.integers(1, 9), times=st.integers(2, 50))
@settings(database=None)
def test_needs_grow_linearly_in_nodes_and_in_actions(shape: list[int], n_actions: int, times: int) -> None:
    longer = [shape[0] * times, *shape[1:]]
    assert needed_bytes(longer, n_actions) == times * needed_bytes(shape, n_actions)
    one, two, three = (needed_bytes(shape, n_actions + k) for k in range(3))
    assert three - two == two - one > 0


@given(shape=shapes, n_actions=st.integers(1, 9))
@settings(database=None)
def test_what_fits_passes_and_one_byte_less_does_not(shape: list[int], n_actions: int) -> None:
    needed = needed_bytes(shape, n_actions)
    require_memory(shape, n_actions, available=needed)
    with pytest.raises(ValueError, match=r"must fit in memory; .* need about .* GB are available"):
        require_memory(shape, n_actions, available=needed - 1)


def suggested(shape: list[int], n_actions: int, available: int) -> list[int]:
    """The size named in the refusal."""
    with pytest.raises(ValueError, match="nodes would fit") as refusal:
        require_memory(shape, n_actions, available=available)
    found = re.search(r"([\d,]+) nodes would fit", str(refusal.value))
    assert found is not None
    return [int(count) for count in found.group(1).split(",")]


@settings(max_examples=200, database=None)
@given(shape=shapes, n_actions=st.integers(1, 9), share=st.floats(0.0, 0.999))
def test_the_size_suggested_fits(shape: list[int], n_actions: int, share: float) -> None:
    smallest = needed_bytes([2] * len(shape), n_actions)
    needed = needed_bytes(shape, n_actions)
    assume(needed > smallest)
    available = smallest + int(share * (needed - 1 - smallest))
    fitting = suggested(shape, n_actions, available)
    assert len(fitting) == len(shape)
    assert all(2 <= new <= old for new, old in zip(fitting, shape, strict=True))
    require_memory(fitting, n_actions, available=available)


def test_the_size_suggested_fits_when_one_axis_is_already_short() -> None:
    shape, n_actions = [1000, 3], 3
    available = needed_bytes(shape, n_actions) // 10
    require_memory(suggested(shape, n_actions, available), n_actions, available=available)


def test_the_size_suggested_is_not_much_smaller_than_it_must_be() -> None:
    available = needed_bytes([100] * 4, 5) // 3
    fitting = suggested([100] * 4, 5, available)
    assert needed_bytes([count + 1 for count in fitting], 5) > available


def test_a_small_grid_fits_on_this_machine() -> None:
    require_memory([10, 10], 3)
    room = available_bytes()
    assert room is None or room > needed_bytes([10, 10], 3)


@pytest.mark.parametrize("backup", ["v-exact", "eq7-exact"])
def test_planning_takes_no_more_than_it_says(backup: str) -> None:
    system = find_system("mountain-car")
    shape = [150, 150]

    def plan() -> None:
        grid = Grid.uniform(system.task.box, shape)
        tables = tabulate(grid, system.task, known(system.dynamics, system.task.controls))
        values = solve(tables, backup=backup, threads=1).q_values
        assert np.isfinite(values).all()

    plan()  # compiled, imported
    tracemalloc.start()
    plan()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    working_block = 16384 * 8 * 30  # temporaries of one block of nodes do not grow with the grid
    assert peak <= needed_bytes(shape, 3) + working_block
