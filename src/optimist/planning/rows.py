"""Rows: what a sweep reads at each node, in the order in which it reads it.

The tables hold all nodes in the order of the grid. A solver of the V form packs them once more, for three
reasons:

- *Nodes from which nothing leads on* are worth the same in every sweep: they are left out.
- *Reading in streams.* A sweep walks along the innermost axis. Where neighbours on that axis lead into
  neighbouring cells of the same axis, the values it reads lie side by side; where each leads into another
  row (along a velocity: the faster, the further), every one is a jump, and jumps are what a sweep waits for.
  So the axes are ordered anew, the ones with the fewest turns innermost, when that saves enough of them.
- *Reading less.* Where rewards and discounts take a few values only (a cost per step, and an end), one byte
  says which, instead of sixteen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray, IntArray
from optimist.box import Box
from optimist.compiled import sweeps
from optimist.grid import Grid

NodeRange = tuple[int, int, int]  # first, last, step
Arrays = tuple[NDArray[np.generic] | None, ...]  # cells, fractions, rewards, discounts, selfs

WORTH_PACKING = 0.95  # of the nodes; packing costs as much as a few sweeps
WORTH_TURNING = 0.5  # turns saved per step
SAMPLE = 4096  # nodes looked at to count them
BLOCKS = 2  # that a sweep cuts the nodes into
SMALLEST_BLOCK = 100_000  # nodes times actions; below that a thread costs more than it saves
MOST_PAIRS = 32  # of reward and discount; each entry is compared with them one by one, once


@dataclass(frozen=True, eq=False)
class Rows:
    """Some nodes or all, in the order of a grid whose axes may be those of the tables in another order."""

    grid: Grid
    axes: tuple[int, ...]  # which axes of the tables those of `grid` are, the outermost first
    arrays: Arrays
    places: NDArray[np.int32]  # of the rows in the padded values
    order: IntArray | None  # numbers in `grid`, increasing; None: all nodes
    nodes: IntArray | None  # numbers in the tables; None: all, in their order
    ghosts: NDArray[np.int32] | None = None  # second places, of nodes that have a ghost on the last axis
    palette: FloatArray | None = None  # [n, 2]: the `rewards` are numbers of its pairs of reward and discount

    def span(self, numbers: NodeRange) -> NodeRange:
        """The range of rows of a range of nodes, numbered as in `grid`."""
        if self.order is None:
            return numbers
        first, last, step = numbers
        low, high = (first, last) if step > 0 else (last + 1, first + 1)
        below, above = (int(edge) for edge in np.searchsorted(self.order, (low, high)))
        return (below, above, step) if step > 0 else (above - 1, below - 1, step)

    def refresh_ghosts(self, values: FloatArray) -> None:
        """Those that the sweep itself has not written."""
        self.grid.refresh_ghosts(values[:-1], but_last=self.ghosts is not None)

    def arranged(self, values: FloatArray) -> FloatArray:
        """A copy of the padded values of the tables' grid, in the order of `grid`; the spare entry stays."""
        inverse = np.argsort(self.axes)
        shape = tuple(self.grid.padded_shape[axis] for axis in inverse)
        return np.append(values[:-1].reshape(shape).transpose(self.axes).reshape(-1), values[-1])

    def restored(self, values: FloatArray) -> FloatArray:
        """The inverse of `arranged`; the values themselves where the order is the same."""
        if self.axes == tuple(range(self.grid.n_dims)):
            return values
        inverse = tuple(np.argsort(self.axes))
        turned = values[:-1].reshape(self.grid.padded_shape).transpose(inverse)
        return np.append(turned.reshape(-1), values[-1])


def all_rows(grid: Grid, arrays: Arrays) -> Rows:
    """The tables as they are."""
    return Rows(grid, tuple(range(grid.n_dims)), arrays, grid.padded_places, None, None)


def leading_on(rows: Rows, *, in_streams: bool) -> Rows:
    """Those of all `rows` from which some action leads on, packed; all of them if few would be left out.

    With `in_streams` they are packed in the order that reads best, and what can be encoded is.
    """
    cells, fractions, rewards, discounts, selfs = rows.arrays
    assert cells is not None
    assert fractions is not None
    assert rewards is not None
    assert discounts is not None
    leads_on = (discounts != 0.0).any(axis=1)
    axes = _axes_in_order(rows.grid, cells, leads_on) if in_streams else rows.axes
    if axes == rows.axes and np.count_nonzero(leads_on) >= WORTH_PACKING * len(leads_on):
        return _with_terms(rows, rewards, discounts) if in_streams else rows
    if not in_streams:
        nodes = np.flatnonzero(leads_on)
        packed = tuple(None if array is None else array[nodes] for array in rows.arrays)
        return replace(rows, arrays=packed, places=rows.places[nodes], order=nodes, nodes=nodes)
    grid = _with_axes(rows.grid, axes)
    numbers = np.arange(grid.n_nodes).reshape(rows.grid.shape).transpose(axes).reshape(-1)
    order = np.flatnonzero(leads_on[numbers])
    nodes, places = numbers[order], grid.padded_places[order]
    n_actions = cells.shape[1]
    new_cells = np.empty((len(nodes), n_actions), dtype=np.int32)
    interleaved = np.empty((len(nodes), n_actions * grid.n_dims), dtype=np.float32)
    strides = tuple(int(stride) for stride in grid.padded_strides)
    sweeps.rearrange(cells, fractions, nodes, rows.grid.padded_shape, axes, strides, new_cells, interleaved)
    arrays = new_cells, interleaved, None, None, None if selfs is None else selfs[nodes]
    ghosts = _ghosts(grid, places) if grid.box.periodic[-1] else None
    return _with_terms(Rows(grid, axes, arrays, places, order, nodes, ghosts), rewards, discounts)


def _with_terms(rows: Rows, rewards: NDArray[np.generic], discounts: NDArray[np.generic]) -> Rows:
    """The rows with rewards and discounts, which are given of all nodes; encoded where that can be done."""
    cells, fractions, _, _, selfs = rows.arrays
    nodes = np.arange(len(rewards)) if rows.nodes is None else rows.nodes
    codes, palette = np.empty((len(nodes), rewards.shape[1]), dtype=np.uint8), np.empty((MOST_PAIRS, 2))
    if sweeps.encode(rewards, discounts, nodes, palette, codes) >= 0:
        return replace(rows, arrays=(cells, fractions, codes, None, selfs), palette=palette)
    if rows.nodes is not None:
        rewards, discounts = rewards[nodes], discounts[nodes]
    return replace(rows, arrays=(cells, fractions, rewards, discounts, selfs))


def _axes_in_order(grid: Grid, cells: NDArray[np.generic], leads_on: NDArray[np.bool_]) -> tuple[int, ...]:
    """The axes with the most turns outermost; as they are, if that saves less than `WORTH_TURNING`.

    A turn: to the next node along an axis, and the cell to which the first action leads changes along another
    one. An axis along which nothing could be seen counts as one that always turns.
    """
    natural = tuple(range(grid.n_dims))
    candidates = np.flatnonzero(leads_on)
    if grid.n_dims == 1 or not candidates.size:
        return natural
    stream = np.random.default_rng(0)
    nodes = candidates[stream.integers(candidates.size, size=min(SAMPLE, candidates.size))]
    places = np.array(np.unravel_index(nodes, grid.shape))  # [d, n]
    here = np.array(np.unravel_index(cells[nodes, 0].astype(np.int64), grid.padded_shape))
    turns = np.empty(grid.n_dims)
    for axis in natural:
        stays = places[axis] + 1 < grid.shape[axis]
        following = places[:, stays].copy()
        following[axis] += 1
        numbers = np.ravel_multi_index(tuple(following), grid.shape)
        stays[stays] = leads_on[numbers]
        numbers = numbers[leads_on[numbers]]
        there = np.array(np.unravel_index(cells[numbers, 0].astype(np.int64), grid.padded_shape))
        changed = np.delete(here[:, stays] != there, axis, axis=0)
        turns[axis] = changed.sum() / len(numbers) if len(numbers) else grid.n_dims - 1
    if turns[-1] - turns.min() < WORTH_TURNING:
        return natural
    return tuple(int(axis) for axis in np.argsort(-turns, kind="stable"))


def _ghosts(grid: Grid, places: NDArray[np.int32]) -> NDArray[np.int32]:
    """Of the first node along the last axis the place of its ghost, of others their own."""
    first = places % grid.padded_shape[-1] == 0
    return np.where(first, places + grid.shape[-1], places).astype(np.int32)


def _with_axes(grid: Grid, axes: tuple[int, ...]) -> Grid:
    """The same grid, its axes in another order."""
    box, order = grid.box, list(axes)
    return Grid(
        Box(box.low[order], box.high[order], box.periodic[order]), [grid.axes[axis] for axis in order]
    )


def backwards(nodes: NodeRange) -> NodeRange:
    """The same, the last first."""
    first, last, _ = nodes
    return last - 1, first - 1, -1


def blocks_of(grid: Grid, n_actions: int) -> list[NodeRange]:
    """Ranges of whole planes of the first axis; how many depends on the problem, not the machine."""
    planes = grid.shape[0]
    per_plane = grid.n_nodes // planes
    affordable = max(1, grid.n_nodes * n_actions // SMALLEST_BLOCK)
    count = min(BLOCKS, planes, affordable)
    edges = [planes * k // count * per_plane for k in range(count + 1)]
    return [(first, last, 1) for first, last in pairwise(edges)]
