"""Grid: a rectilinear tensor grid over a Box, and multilinear interpolation on it (Eq. 3).

A point z is held as the `cell` it lies in and its `fractions` there (the paper's lambda), from which
its 2^d convex weights follow: weight = product over axes of (fraction or 1 - fraction).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimist.arrays import FloatArray, IntArray
from optimist.box import Box
from optimist.compiled.interpolation import locate
from optimist.given import array_of, listed, real, require_kind, whole


class Located(NamedTuple):
    """Where points lie in a grid."""

    cells: NDArray[np.int32]  # [n], padded index of the lowest corner (see `Grid.pad`)
    fractions: FloatArray  # [n, d], in [0, 1]
    n_clipped: int  # how many points lay outside the box and were moved to its edge


@dataclass(frozen=True, eq=False)
class Grid:
    """A rectilinear tensor grid: any increasing nodes on each axis, numbered in C order.

    An axis that is not periodic has its first node at `box.low` and its last at `box.high`. A periodic
    axis has all its nodes in [low, high): no node is doubled, and the cell across the seam joins its
    last node to its first.
    """

    box: Box
    axes: tuple[FloatArray, ...]  # [d] arrays of node positions

    def __init__(self, box: Box, axes: Sequence[ArrayLike]) -> None:
        require_kind("`box`", box, Box)
        axes = listed("`axes`", axes)
        if len(axes) != box.n_dims:
            raise ValueError(f"`axes` must have one entry per axis ({box.n_dims}); got {len(axes)}.")
        checked = tuple(_checked_axis(box, axis, nodes) for axis, nodes in enumerate(axes))
        _require_countable([axis.size for axis in checked])
        object.__setattr__(self, "box", box)
        object.__setattr__(self, "axes", checked)

    @classmethod
    def uniform(cls, box: Box, counts: Sequence[int]) -> Grid:
        """Equally spaced nodes, `counts` per axis."""
        return cls.spaced(box, counts, [1.0] * box.n_dims)

    @classmethod
    def spaced(cls, box: Box, counts: Sequence[int], powers: Sequence[float]) -> Grid:
        """Nodes at centre + half-width * sign(u) abs(u)^power with u equally spaced in [-1, 1].

        A power above 1 puts more nodes near the middle of an axis; 1 is uniform.
        """
        counts, powers = listed("`counts`", counts), listed("`powers`", powers)
        for name, given in (("counts", counts), ("powers", powers)):
            if len(given) != box.n_dims:
                raise ValueError(f"`{name}` must have one entry per axis ({box.n_dims}); got {len(given)}.")
        counts = [whole("`counts`", count) for count in counts]
        powers = [real("`powers`", power) for power in powers]
        if min(counts) < 2:
            raise ValueError(f"`counts` must be at least 2 on every axis; got {list(counts)}.")
        _require_countable(counts)
        if not all(np.isfinite(power) and power > 0.0 for power in powers):
            raise ValueError(f"`powers` must be positive; got {list(powers)}.")
        axes = []
        for axis, (count, power) in enumerate(zip(counts, powers, strict=True)):
            periodic = bool(box.periodic[axis])
            if power == 1.0:
                low, high = box.low[axis], box.high[axis]
                axes.append(np.linspace(low, high, count, endpoint=not periodic))
                continue
            u = np.linspace(-1.0, 1.0, count, endpoint=not periodic)
            half = 0.5 * box.widths[axis]
            axes.append(box.low[axis] + half + half * np.sign(u) * np.abs(u) ** power)
        return cls(box, axes)

    @property
    def n_dims(self) -> int:
        """Number of axes."""
        return self.box.n_dims

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Nodes per axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def n_nodes(self) -> int:
        """Number of nodes (the paper's N)."""
        return prod(self.shape)

    @property
    def nodes(self) -> FloatArray:
        """All nodes (the paper's xi), made anew at every call.  [n_nodes, d]"""
        return self.nodes_between(0, self.n_nodes)

    def nodes_between(self, first: int, last: int) -> FloatArray:
        """Nodes number `first` up to but not including `last`.  [last - first, d]"""
        places = np.unravel_index(np.arange(first, last), self.shape)
        return np.column_stack([nodes[place] for nodes, place in zip(self.axes, places, strict=True)])

    def cell_widths(self, axis: int) -> FloatArray:
        """The width of a cell around each node of one axis: half the distance of its neighbours.  [n]"""
        nodes = self.axes[axis]
        if self.box.periodic[axis]:
            nodes = np.concatenate(
                [[nodes[-1] - self.box.widths[axis]], nodes, [nodes[0] + self.box.widths[axis]]]
            )
            return np.asarray(0.5 * (nodes[2:] - nodes[:-2]))
        return np.asarray(np.gradient(nodes, np.arange(nodes.size)))

    def widths_at(self, points: FloatArray) -> FloatArray:
        """The width of a cell around each of `points` [n, d]: interpolated between those of nodes.  [n, d]"""
        widths = np.empty(points.shape)
        for axis, nodes in enumerate(self.axes):
            period = float(self.box.widths[axis]) if self.box.periodic[axis] else None
            widths[:, axis] = np.interp(points[:, axis], nodes, self.cell_widths(axis), period=period)
        return widths

    def thinned(self) -> Grid:
        """Every second node of every axis; the last stays where the axis is not periodic."""
        axes = [
            nodes[::2] if periodic or nodes.size % 2 else np.append(nodes[::2], nodes[-1])
            for nodes, periodic in zip(self.axes, self.box.periodic, strict=True)
        ]
        wide = all(axis.size >= 2 for axis in axes)
        return Grid(self.box, axes) if wide else self

    def spread(self, values: FloatArray, finer: Grid) -> FloatArray:
        """`values` [..., n_nodes] of this grid interpolated at the nodes of another, axis by axis."""
        spread = values.reshape(*values.shape[:-1], *self.shape)
        for axis in range(self.n_dims):
            along = axis - self.n_dims
            nodes, period = self.axes[axis], float(self.box.widths[axis])
            if self.box.periodic[axis]:
                nodes = np.append(nodes, nodes[0] + period)
                spread = np.concatenate([spread, spread.take([0], axis=along)], axis=along)
            places = finer.axes[axis]
            left = np.clip(np.searchsorted(nodes, places, side="right") - 1, 0, nodes.size - 2)
            fractions = (places - nodes[left]) / (nodes[left + 1] - nodes[left])
            fractions = fractions.reshape(-1, *[1] * (-along - 1))
            low = spread.take(left, axis=along)
            spread = low + fractions * (spread.take(left + 1, axis=along) - low)
        return spread.reshape(*values.shape[:-1], finer.n_nodes)

    def blocks(self, size: int) -> Iterator[tuple[int, int]]:
        """Ranges of node numbers, `size` at a time: keeps temporaries small."""
        for first in range(0, self.n_nodes, size):
            yield first, min(first + size, self.n_nodes)

    def locate(self, points: FloatArray) -> Located:
        """Cells and fractions of `points` [n, d]; points outside the box are clipped and counted."""
        points = self.checked(points)
        cells = np.empty(len(points), dtype=np.int32)
        fractions = np.empty(points.shape)
        n_clipped = locate(points, *self.lookup, cells, fractions)
        return Located(cells, fractions, int(n_clipped))

    def checked(self, points: FloatArray) -> FloatArray:
        """`points` [n, d] as the kernels take them; a ValueError when they are none."""
        if not isinstance(points, np.ndarray) or points.dtype != np.float64:
            points = array_of("`points`", points)
        points = np.ascontiguousarray(points)
        if points.ndim != 2 or points.shape[1] != self.n_dims:
            raise ValueError(f"`points` must have shape (n, {self.n_dims}); got {points.shape}.")
        if not np.isfinite(points).all():
            row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
            raise ValueError(f"`points` must be finite; got {points[row].tolist()} in row {row}.")
        return points

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """Nodes per axis with one ghost on every periodic axis."""
        return tuple(
            count + int(periodic) for count, periodic in zip(self.shape, self.box.periodic, strict=True)
        )

    @cached_property
    def padded_strides(self) -> IntArray:
        """Distance between neighbours along each axis in a flat padded array.  [d]"""
        sizes = np.array([*self.padded_shape[1:], 1], dtype=np.int64)
        return np.cumprod(sizes[::-1])[::-1].copy()

    def pad(self, values: FloatArray) -> FloatArray:
        """`values` [n_nodes, ...] with the first node of every periodic axis repeated behind its last.

        [n_padded, ...]; the corners of any cell are then at constant offsets from its lowest.
        """
        rest = values.shape[1:]
        padded = values.reshape(*self.shape, *rest)
        for axis in np.flatnonzero(self.box.periodic):
            padded = np.concatenate([padded, padded.take([0], axis=int(axis))], axis=int(axis))
        return np.ascontiguousarray(padded.reshape(-1, *rest))

    def refresh_ghosts(self, padded: FloatArray, *, but_last: bool = False) -> None:
        """Copy the first node of every periodic axis onto its ghost, in place. [n_padded * k], flat

        With `but_last` the ghosts along the last axis are there already.
        """
        values = padded.reshape(*self.padded_shape, -1)
        for axis in np.flatnonzero(self.box.periodic[:-1] if but_last else self.box.periodic):
            along = np.moveaxis(values, int(axis), 0)
            along[-1] = along[0]

    @cached_property
    def padded_places(self) -> NDArray[np.int32]:
        """The padded index of every node.  [n_nodes]"""
        numbers = np.arange(prod(self.padded_shape), dtype=np.int32).reshape(self.padded_shape)
        inner = numbers[tuple(slice(0, count) for count in self.shape)]
        return np.ascontiguousarray(inner.reshape(-1))

    @cached_property
    def lookup(self) -> tuple[FloatArray, IntArray, FloatArray, FloatArray, IntArray]:
        """The arrays that `compiled.interpolation.locate` reads."""
        periods = self.box.periods
        extended = [
            np.append(nodes, nodes[0] + period) if period > 0.0 else nodes
            for nodes, period in zip(self.axes, periods, strict=True)
        ]
        starts = np.cumsum([0, *(nodes.size for nodes in extended)]).astype(np.int64)
        inverses = np.array([_inverse_spacing(nodes) for nodes in extended])
        return np.concatenate(extended), starts, periods, inverses, self.padded_strides


def _require_countable(counts: Sequence[int]) -> None:
    """Cells are numbered by int32, ghosts included."""
    if prod(int(count) + 1 for count in counts) > np.iinfo(np.int32).max:
        raise ValueError(
            f"The grid must have fewer than 2^31 nodes; got {' x '.join(str(count) for count in counts)}."
        )


def _checked_axis(box: Box, axis: int, given: ArrayLike) -> FloatArray:
    nodes = array_of(f"Axis {axis}", given)
    low, high = float(box.low[axis]), float(box.high[axis])
    if nodes.ndim != 1 or nodes.size < 2:
        raise ValueError(f"Axis {axis} must have at least 2 nodes; got {nodes.size}.")
    if not (np.isfinite(nodes).all() and (np.diff(nodes) > 0.0).all()):
        raise ValueError(f"The nodes of axis {axis} must be increasing; got {_shortened(nodes)}.")
    slack = 1e-12 * (high - low)
    if box.periodic[axis]:
        if nodes[0] < low - slack or nodes[-1] >= high - slack:
            raise ValueError(
                f"The nodes of periodic axis {axis} must lie in [{low}, {high}), without a second "
                f"node at the seam; got {nodes[0]} to {nodes[-1]}."
            )
    else:
        if abs(nodes[0] - low) > slack or abs(nodes[-1] - high) > slack:
            raise ValueError(
                f"The nodes of axis {axis} must reach from {low} to {high}, the edges of the box; "
                f"got {nodes[0]} to {nodes[-1]}."
            )
        nodes[0], nodes[-1] = low, high
    nodes.setflags(write=False)
    return nodes


def _shortened(nodes: FloatArray) -> str:
    return np.array2string(nodes, threshold=12, max_line_width=10_000, separator=", ")


def _inverse_spacing(nodes: FloatArray) -> float:
    """1 / spacing when the nodes are equally spaced to rounding, otherwise 0."""
    spacings = np.diff(nodes)
    spacing = (nodes[-1] - nodes[0]) / spacings.size
    rounding = 8.0 * np.finfo(np.float64).eps * np.abs(nodes).max()
    uniform = np.abs(spacings - spacing).max() <= rounding
    return float(1.0 / spacing) if uniform else 0.0
