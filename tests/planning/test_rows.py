"""Packed rows hold the same equation: in any order of the axes, encoded or not, interleaved or not."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import permutations

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.interpolation import fraction_spot
from optimist.grid import Grid
from optimist.planning import Limits, Tables, solve
from optimist.planning.backups import Backup, prepare
from optimist.planning.rows import MOST_PAIRS, Rows
from tests.naive.random_tables import random_tables

CLOSE = Limits(tolerance=1e-10, max_sweeps=5000)
SHAPES: list[tuple[tuple[int, ...], tuple[bool, ...]]] = [
    ((7,), (True,)),
    ((4, 5), (True, False)),
    ((3, 4, 5), (True, False, True)),
    ((3, 3, 2, 4), (False, True, True, False)),
]
# Kernels are compiled anew for each: axes and actions, odd and even, and how many pairs they make.
KINDS = [
    (*SHAPES[0], 1, "v-exact"),
    (*SHAPES[1], 5, "v-exact"),
    (*SHAPES[2], 2, "v-plain"),
    (*SHAPES[2], 5, "v-exact"),
    (*SHAPES[3], 2, "v-plain"),
]
KIND = ("shape", "periodic", "n_actions", "backup")


def with_ends(
    seed: int, shape: tuple[int, ...], n_actions: int, periodic: tuple[bool, ...], *, coded: bool = True
) -> Tables:
    """Random tables in which some nodes, and some actions of others, end the episode."""
    tables = random_tables(seed, shape, n_actions, periodic=periodic)
    stream = np.random.default_rng(seed)
    discounts = np.where(stream.uniform(size=tables.discounts.shape) < 0.2, 0.0, 0.9)
    discounts[stream.uniform(size=len(discounts)) < 0.3] = 0.0
    rewards = stream.integers(-2, 1, size=discounts.shape).astype(np.float64) if coded else tables.rewards
    return replace(tables, discounts=discounts, rewards=rewards)


def in_order(patch: pytest.MonkeyPatch, axes: tuple[int, ...]) -> None:
    patch.setattr("optimist.planning.rows._axes_in_order", lambda *_: axes)


def swept(ready: Backup, rows: Rows, values: FloatArray) -> FloatArray:
    """All values after one plain sweep over `rows`, padded; the others stay."""
    arranged = rows.arranged(values)
    out = arranged.copy()
    ready.sweep((0, len(rows.places), 1), arranged, out, None, rows=rows)
    rows.refresh_ghosts(out)
    return rows.restored(out)


@pytest.mark.parametrize(
    (*KIND, "coded"), [*((*kind, True) for kind in KINDS), *((*kind, False) for kind in KINDS[1:3])]
)
def test_a_sweep_in_any_order_of_the_axes_is_the_sweep(
    shape: tuple[int, ...], periodic: tuple[bool, ...], n_actions: int, backup: str, coded: bool
) -> None:
    tables = with_ends(5, shape, n_actions, periodic, coded=coded)
    ready, grid = prepare(tables, backup), tables.grid
    start = np.random.default_rng(1).normal(size=grid.n_nodes)
    values = np.append(grid.pad(start), 0.0)
    everything = swept(ready, ready.rows, values)[:-1]
    leads_on = (tables.discounts != 0.0).any(axis=1)
    expected = grid.pad(np.where(leads_on, everything[grid.padded_places], start))
    for axes in permutations(range(len(shape))):
        with pytest.MonkeyPatch.context() as patch:
            in_order(patch, axes)
            if not coded:
                patch.setattr("optimist.planning.rows.MOST_PAIRS", 1)
            rows = ready.leading_on(in_streams=True)
        assert rows.axes == axes
        assert (rows.palette is not None) == coded
        np.testing.assert_allclose(swept(ready, rows, values)[:-1], expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("shape", "periodic"), SHAPES)
def test_rows_know_their_nodes_and_where_their_values_are(
    shape: tuple[int, ...], periodic: tuple[bool, ...]
) -> None:
    tables = with_ends(2, shape, 2, periodic)
    ready, grid = prepare(tables, "v-plain"), tables.grid
    values = np.append(grid.pad(np.arange(float(grid.n_nodes))), -1.0)
    for axes in permutations(range(len(shape))):
        with pytest.MonkeyPatch.context() as patch:
            in_order(patch, axes)
            rows = ready.leading_on(in_streams=True)
        assert rows.nodes is not None
        assert rows.order is not None
        assert sorted(rows.nodes) == np.flatnonzero((tables.discounts != 0.0).any(axis=1)).tolist()
        assert (np.diff(rows.order) > 0).all()
        assert (np.diff(rows.places) > 0).all()  # a sweep walks through memory
        arranged = rows.arranged(values)
        np.testing.assert_array_equal(arranged[rows.places], rows.nodes)
        np.testing.assert_array_equal(rows.restored(arranged), values)
        positions = np.column_stack([grid.nodes[rows.nodes][:, axis] for axis in axes])
        np.testing.assert_array_equal(rows.grid.nodes[rows.order], positions)


@pytest.mark.parametrize(KIND, [*KINDS[:3], KINDS[4]])
@pytest.mark.parametrize("accelerate", [True, False])
def test_plans_do_not_depend_on_the_order_of_the_axes(
    shape: tuple[int, ...], periodic: tuple[bool, ...], n_actions: int, backup: str, accelerate: bool
) -> None:
    """Of large grids, in-place sweeps too are in streams."""
    tables = with_ends(7, shape, n_actions, periodic)
    module = import_module("optimist.planning.solve")
    usual = solve(tables, backup=backup, accelerate=accelerate, limits=CLOSE)
    for axes in list(permutations(range(len(shape))))[::-5]:
        with pytest.MonkeyPatch.context() as patch:
            in_order(patch, axes)
            patch.setattr(module, "MANY_NODES", 0)
            patch.setattr(module, "FEW_NODES", 0)
            patch.setattr(import_module("optimist.planning.rows"), "SMALLEST_BLOCK", 1)
            plans = [
                solve(tables, backup=backup, accelerate=accelerate, limits=CLOSE, threads=threads)
                for threads in (1, 2)
            ]
        assert plans[0].converged
        np.testing.assert_allclose(plans[0].q_values, usual.q_values, atol=1e-8)
        np.testing.assert_array_equal(plans[0].q_values, plans[1].q_values)
        assert plans[0].sweeps == plans[1].sweeps
        if not accelerate:
            assert abs(plans[0].sweeps - usual.sweeps) <= 1  # the same iteration, up to rounding


@pytest.mark.parametrize(
    ("n_actions", "backup", "accelerate"),
    [(2, "v-plain", True), (5, "v-exact", True), (5, "v-exact", False)],
)
def test_fetching_ahead_changes_no_bit(
    monkeypatch: pytest.MonkeyPatch, backup: str, accelerate: bool, n_actions: int
) -> None:
    tables = with_ends(3, (9, 11), n_actions, (False, True))
    usual = solve(tables, backup=backup, accelerate=accelerate, limits=CLOSE)
    monkeypatch.setattr("optimist.planning.backups.CACHED_NODES", 0)
    ahead = solve(tables, backup=backup, accelerate=accelerate, limits=CLOSE)
    np.testing.assert_array_equal(ahead.q_values, usual.q_values)


def test_rewards_and_discounts_are_encoded_when_they_are_few() -> None:
    tables = with_ends(0, (20, 20), 2, (False, False), coded=False)
    discounts = np.where(tables.discounts == 0.0, 0.0, 0.9)
    for kinds in (1, MOST_PAIRS // 2, MOST_PAIRS // 2 + 1):
        rewards = np.arange(tables.rewards.size).reshape(tables.rewards.shape) % kinds - 1.5
        few = replace(tables, rewards=rewards.astype(np.float64), discounts=discounts)
        rows = prepare(few, "v-plain").leading_on(in_streams=True)
        codes, nodes = rows.arrays[2], rows.nodes
        assert codes is not None
        assert nodes is not None
        if kinds > MOST_PAIRS // 2:  # times two discounts
            assert rows.palette is None
            np.testing.assert_array_equal(codes, few.rewards[nodes])
        else:
            assert rows.palette is not None
            assert rows.arrays[3] is None
            np.testing.assert_array_equal(rows.palette[codes, 0], few.rewards[nodes])
            np.testing.assert_array_equal(rows.palette[codes, 1], few.discounts[nodes])


def test_where_nothing_is_left_out_or_turned_the_tables_are_not_copied() -> None:
    tables = random_tables(0, (6, 5), 3, periodic=(False, False))
    tables = replace(tables, discounts=np.full_like(tables.discounts, 0.9), cells=np.zeros_like(tables.cells))
    rows = prepare(tables, "v-plain").leading_on(in_streams=True)
    assert rows.nodes is None
    assert rows.arrays[0] is tables.cells
    assert rows.arrays[1] is tables.fractions


@pytest.mark.parametrize("n_actions", range(1, 8))
@pytest.mark.parametrize("n_axes", range(1, 7))
def test_interleaved_fractions_lose_none(n_actions: int, n_axes: int) -> None:
    spots = [fraction_spot(a, q, n_actions, n_axes) for a in range(n_actions) for q in range(n_axes)]
    assert sorted(spots) == list(range(n_actions * n_axes))


def test_fractions_of_two_actions_are_interleaved_by_two_axes() -> None:
    spots = {fraction_spot(a, q, 2, 5): f"{'ab'[a]}{q}" for a in range(2) for q in range(5)}
    assert [spots[k] for k in range(10)] == ["a0", "a1", "b0", "b1", "a2", "a3", "b2", "b3", "a4", "b4"]


def drifting(positions_first: bool, speed: float) -> Tables:
    """x' = x + speed v, v' = v, in cells: along v, successors of neighbours lie `speed` cells apart in x."""
    box = Box([0.0, 0.0], [1.0, 1.0], periodic=[True, False] if positions_first else [False, True])
    grid = Grid.uniform(box, (20, 20))
    first, second = np.meshgrid(np.arange(20), np.arange(20), indexing="ij")
    if positions_first:
        cells = np.ravel_multi_index(
            ((first + (speed * second).astype(int)) % 20, np.minimum(second, 18)), grid.padded_shape
        )
    else:
        cells = np.ravel_multi_index(
            (np.minimum(first, 18), (second + (speed * first).astype(int)) % 20), grid.padded_shape
        )
    shape = (400, 1)
    return Tables(
        grid=grid,
        cells=cells.reshape(shape).astype(np.int32),
        fractions=np.zeros((400, 1, 2), dtype=np.float32),
        rewards=np.full(shape, -1.0),
        discounts=np.full(shape, 0.9),
        uncertainty=None,
        optimistic_value=0.0,
        value_bounds=(-np.inf, np.inf),
        n_clipped=0,
    )


def test_positions_go_innermost_where_velocities_lead_far_apart() -> None:
    def axes(tables: Tables) -> tuple[int, ...]:
        return prepare(tables, "v-plain").leading_on(in_streams=True).axes

    assert axes(drifting(positions_first=True, speed=1.0)) == (1, 0)
    assert axes(drifting(positions_first=False, speed=1.0)) == (0, 1)  # they are already
    assert axes(drifting(positions_first=True, speed=0.1)) == (0, 1)  # not worth it
    tables = drifting(positions_first=True, speed=1.0)
    assert prepare(tables, "v-plain").leading_on(in_streams=False).axes == (0, 1)


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("backup", ["v-plain", "eq7"])
def test_tables_may_be_views(accelerate: bool, backup: str) -> None:
    """Of larger arrays, or in another order: compiled code goes by contiguous ones."""
    tables = with_ends(4, (5, 4), 2, (False, True))
    wide = np.zeros((20, 3, 2), dtype=np.float32)
    wide[:, :2] = tables.fractions
    expected = solve(tables, backup=backup, accelerate=accelerate, limits=CLOSE)
    for fractions in (wide[:, :2], np.asfortranarray(tables.fractions)):
        view = replace(tables, fractions=fractions)
        plan = solve(view, backup=backup, accelerate=accelerate, limits=CLOSE)
        np.testing.assert_array_equal(plan.q_values, expected.q_values)
