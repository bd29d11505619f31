"""Random discretised problems: for the planner as `Tables`, for the twins as a `Problem`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import Tables
from tests.naive.backups import Problem
from tests.naive.interpolation import flat, weight_matrices


def random_tables(
    seed: int,
    shape: Sequence[int],
    n_actions: int,
    *,
    periodic: Sequence[bool] | None = None,
    discount: float = 0.9,
    uncertain: bool = False,
    staying: float = 0.3,
    endings: float = 0.1,
    optimistic_value: float = 2.0,
) -> Tables:
    """Successors anywhere in the grid, like an MDP of no particular physics.

    A share `staying` of the pairs land beside their own node or at an edge, a share `endings` end the
    episode; a third of all fractions are exactly 0 or 1.
    """
    stream = np.random.default_rng([seed, n_actions, *shape])
    turns = [False] * len(shape) if periodic is None else list(periodic)
    grid = Grid.uniform(Box([0.0] * len(shape), [1.0] * len(shape), turns), shape)
    pairs = (grid.n_nodes, n_actions)
    padded = [count + int(turn) for count, turn in zip(shape, turns, strict=True)]
    near = stream.random(pairs) < staying
    cells = np.empty(pairs, dtype=np.int32)
    for node, home in enumerate(np.ndindex(*shape)):
        for action in range(n_actions):
            cell = [int(stream.integers(count - 1)) for count in padded]
            if near[node, action]:
                below = [place - int(stream.integers(2)) for place in home]
                cell = [min(place % (n - 1), n - 2) for place, n in zip(below, padded, strict=True)]
            cells[node, action] = flat(cell, padded)
    fractions = stream.random((*pairs, len(shape)))
    fractions = np.where(stream.random(fractions.shape) < 0.33, np.round(fractions), fractions)
    ends = stream.random(pairs) < endings
    uncertainty = None
    if uncertain:
        uncertainty = stream.random(pairs)
        uncertainty = np.where(stream.random(pairs) < 0.3, np.round(uncertainty), uncertainty)
    return Tables(
        grid=grid,
        cells=cells,
        fractions=fractions.astype(np.float32),
        rewards=stream.uniform(-1.0, 1.0, pairs),
        discounts=np.where(ends, 0.0, discount),
        uncertainty=uncertainty,
        optimistic_value=optimistic_value,
        value_bounds=(-np.inf, np.inf),
        n_clipped=0,
    )


def as_problem(tables: Tables) -> Problem:
    """The same for the twins, with dense weights."""
    uncertainty = np.zeros_like(tables.rewards) if tables.uncertainty is None else tables.uncertainty
    grid = tables.grid
    return Problem(
        rewards=tables.rewards,
        discounts=tables.discounts,
        weights=weight_matrices(tables.cells, tables.fractions, grid.shape, grid.box.periodic.tolist()),
        uncertainty=uncertainty,
        optimistic_value=tables.optimistic_value,
    )


# Axes and actions: the kernels are compiled anew for each of them, and that takes most of the time.
SIZES = ((1, 2), (2, 1), (3, 3))


@st.composite
def small_tables(draw: st.DrawFn, *, uncertain: bool | None = None) -> Tables:
    """Problems of 2 to 64 nodes in 1 to 3 dimensions with 1 to 3 actions."""
    dims, n_actions = draw(st.sampled_from(SIZES))
    return random_tables(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.lists(st.integers(2, 4), min_size=dims, max_size=dims)),
        n_actions,
        periodic=draw(st.lists(st.booleans(), min_size=dims, max_size=dims)),
        discount=draw(st.sampled_from([0.3, 0.9, 0.97])),
        uncertain=draw(st.booleans()) if uncertain is None else uncertain,
        staying=draw(st.sampled_from([0.0, 0.3, 1.0])),
        endings=draw(st.sampled_from([0.0, 0.1, 0.5])),
    )
