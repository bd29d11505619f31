"""Blur: the expectation of values in the presence of noise, as banded matrices along the axes.

A step leads to z + e, with e Gaussian and its coordinates independent. E[V(z + e)] is V blurred along every
axis, read at z. Along one axis the matrix is exp(s^2 / 2 L), where L is the second difference on the nodes,
evenly spaced or not: a random walk between neighbours. Its rows are shares (nothing negative, 1 in all), its
mean is 0 and its variance exactly s^2, however small against a cell. (A Gaussian integrated over the hat
functions of interpolation has the variance s h of its kinks instead, many times too much where s << h.)

On periodic axes the walk goes round. Beyond the other edges it goes on, and what ends there counts as at the
edge: successors outside of the box are moved there, too.

Reading between the nodes blurs, too: at a fraction f of a cell of width h by a variance of f (1 - f) h^2. A
plan that must have some blur counts it as part of the noise, and the matrices add what is missing (`net`).

Noise that depends on the place: the matrix of the largest, and of its effect the share s_i^2 / s^2 at node i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimist.arrays import FloatArray
from optimist.compiled.blur import blur_along
from optimist.given import array_of, brief
from optimist.grid import Grid

REACH = 5.0  # standard deviations beyond an edge that are followed
FARTHEST = 1.0  # widths of an axis: so wide a noise says nothing any more; the walk is cut off there
ROUNDING = 1e-9  # evenly spaced nodes are not, to the last digit
ALL = np.empty((0, 0, 0))  # shares where there are none
NEGLIGIBLE = 1e-4  # shares that are left out; the others are widened by as much


@dataclass(frozen=True, eq=False)
class Band:
    """A matrix along one axis, by its diagonals: row i has weight [k, i] in column i + k - m."""

    diagonals: FloatArray  # [2 m + 1, n]
    periodic: bool  # columns go round
    own: float  # the least on the main diagonal


@dataclass(frozen=True, eq=False)
class Blur:
    """What noise makes of values on a grid."""

    grid: Grid
    bands: tuple[Band | None, ...]  # [d]; None: no noise along this axis
    shares: tuple[FloatArray | None, ...]  # [d] of [n_padded], of the effect; None: all of it everywhere

    @classmethod
    def of(cls, grid: Grid, noise: ArrayLike | None, *, net: bool = False) -> Blur | None:
        """Of standard deviations [d], or [n_nodes, d] where they depend on the place; None: there is none.

        `net` of what interpolating between the nodes blurs anyway.
        """
        if noise is None:
            return None
        noise = require_noise(noise, grid)
        bands: list[Band | None] = []
        shares: list[FloatArray | None] = []
        for axis in range(grid.n_dims):
            variances = np.minimum(noise[..., axis], FARTHEST * grid.box.widths[axis]) ** 2
            if net:
                variances = np.maximum(variances - _interpolated(grid, axis), 0.0)
            largest = float(variances.max())
            bands.append(_band(grid, axis, largest**0.5) if largest > 0.0 else None)
            same = bool((variances >= largest * (1.0 - ROUNDING)).all())
            shares.append(None if same else grid.pad(variances / largest))
        return cls(grid, tuple(bands), tuple(shares)) if any(bands) else None

    @property
    def own(self) -> float:
        """The least share of a node in its own blurred value."""
        return float(np.prod([1.0 if band is None else band.own for band in self.bands]))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Of `values` [n_nodes, ...] at the nodes.  [n_nodes, ...]"""
        flat = np.append(self.grid.pad(values.reshape(self.grid.n_nodes, -1)).reshape(-1), 0.0)
        blurred = self.padded(flat)[:-1].reshape(prod(self.grid.padded_shape), *values.shape[1:])
        return np.ascontiguousarray(blurred[self.grid.padded_places])

    def padded(self, values: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Of padded values, flat with a spare entry at the end (see `planning.solve`); put into `out`."""
        shape = self.grid.padded_shape
        width = (values.size - 1) // prod(shape)
        out = np.empty_like(values) if out is None else out
        out[-1] = values[-1]
        here, noisy = values[:-1], [axis for axis, band in enumerate(self.bands) if band is not None]
        for number, axis in enumerate(noisy):
            band, share = self.bands[axis], self.shares[axis]
            assert band is not None
            last = number == len(noisy) - 1
            there = out[:-1] if last else self._scratch(number % 2, here.size)
            folded = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]) * width)
            mixed = ALL if share is None else _each(share, width).reshape(folded)
            blur_along(here.reshape(folded), band.diagonals, band.periodic, mixed, there.reshape(folded))
            here = there
        return out

    def _scratch(self, which: int, size: int) -> FloatArray:
        """Room to work in: memory that is new at every sweep costs as much as the sweep."""
        if (which, size) not in self._room:
            self._room[which, size] = np.empty(size)
        return self._room[which, size]

    @cached_property
    def _room(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    def cost(self, values: FloatArray) -> FloatArray:
        """What noise changes of `values` [n_nodes], padded.  [n_padded]"""
        return self.grid.pad(self(values) - values)


def _each(share: FloatArray, width: int) -> FloatArray:
    """The share of every entry, where a node has `width` of them."""
    return share if width == 1 else np.repeat(share, width)


def require_noise(noise: ArrayLike, grid: Grid) -> FloatArray:
    """Standard deviations [d] or [n_nodes, d]; a ValueError when they are none."""
    checked = array_of("`noise`", noise)
    shapes = (grid.n_dims,), (grid.n_nodes, grid.n_dims)
    if checked.shape not in shapes:
        raise ValueError(
            f"`noise` must be one standard deviation per coordinate, shape {shapes[0]}, or these at every "
            f"node, shape {shapes[1]}; got shape {checked.shape}."
        )
    if not (np.isfinite(checked).all() and (checked >= 0.0).all()):
        raise ValueError(f"`noise` must be standard deviations, finite and not negative; got {brief(noise)}.")
    return checked


def _interpolated(grid: Grid, axis: int) -> FloatArray:
    """The variance that reading between the nodes of an axis has by itself.  [n_nodes]

    At a fraction f of a cell of width h it is f (1 - f) h^2; h^2 / 6 in the mean.
    """
    along = [1] * grid.n_dims
    along[axis] = -1
    variances = (grid.cell_widths(axis) ** 2 / 6.0).reshape(along)
    return np.broadcast_to(variances, grid.shape).reshape(-1)


def _exponential(generator: FloatArray) -> FloatArray:
    from scipy.linalg import expm  # noqa: PLC0415  (importing is to be quick)

    return np.asarray(expm(generator))


def _band(grid: Grid, axis: int, std: float) -> Band:
    """Of noise along one axis."""
    nodes, periodic = grid.axes[axis], bool(grid.box.periodic[axis])
    matrix = _round(nodes, float(grid.box.widths[axis]), std) if periodic else _clipped(nodes, std)
    n, rows = len(nodes), np.arange(len(nodes))
    most = n // 2 if periodic else n - 1
    if periodic and n % 2 == 0:
        most -= 1  # what lies opposite has one column, not two
    diagonals = np.zeros((2 * most + 1, n))
    for k in range(-most, most + 1):
        inside = np.ones(n, dtype=np.bool_) if periodic else (rows + k >= 0) & (rows + k < n)
        diagonals[k + most, inside] = matrix[rows[inside], (rows[inside] + k) % n]
    needed = np.flatnonzero((diagonals > NEGLIGIBLE).any(axis=1))
    reach = int(np.abs(needed - most).max(initial=0))
    kept = diagonals[most - reach : most + reach + 1]
    kept = _with_moments(kept, diagonals, np.arange(-most, most + 1), reach)
    return Band(np.ascontiguousarray(kept), periodic, float(min(1.0, kept[reach].min())))


def _with_moments(kept: FloatArray, whole: FloatArray, shifts: NDArray[np.int64], reach: int) -> FloatArray:
    """What is kept of the diagonals, widened by what was left out: squared distances stay the same."""
    inner = np.abs(shifts) <= reach
    had, has = (shifts**2) @ whole, (shifts[inner] ** 2) @ kept
    kept = kept * np.where(has > 0.0, had / np.where(has > 0.0, has, 1.0), 1.0)
    others = kept.sum(axis=0) - kept[reach]
    kept /= np.maximum(others, 1.0)  # never more than there is
    kept[reach] = 1.0 - (kept.sum(axis=0) - kept[reach])
    return kept


def _clipped(nodes: FloatArray, std: float) -> FloatArray:
    """The walk on an axis that ends; beyond its edges it is followed, and counts as at the edge.  [n, n]"""
    before, after = nodes[1] - nodes[0], nodes[-1] - nodes[-2]
    n = len(nodes)
    low, high = (min(int(np.ceil(REACH * std / step)) + 1, 4 * n) for step in (before, after))
    extended = np.concatenate(
        [nodes[0] - before * np.arange(low, 0, -1), nodes, nodes[-1] + after * np.arange(1, high + 1)]
    )
    whole = _exponential(0.5 * std**2 * _second_difference(np.diff(extended)))[low : low + n]
    matrix = whole[:, low : low + n].copy()
    matrix[:, 0] += whole[:, :low].sum(axis=1)
    matrix[:, -1] += whole[:, low + n :].sum(axis=1)
    return matrix


def _round(nodes: FloatArray, period: float, std: float) -> FloatArray:
    """The walk on an axis that goes round.  [n, n]"""
    n = len(nodes)
    if n == 2:  # both neighbours are the same node
        steps = np.array([nodes[1] - nodes[0], period - nodes[1] + nodes[0]])
        rate = 2.0 / (steps[0] * steps[1])
        return _exponential(0.5 * std**2 * rate * np.array([[-1.0, 1.0], [1.0, -1.0]]))
    steps = np.diff(np.append(nodes, nodes[0] + period))
    generator = np.zeros((n, n))
    for i in range(n):
        left, right = steps[i - 1], steps[i]
        generator[i, i - 1] = 2.0 / (left * (left + right))
        generator[i, (i + 1) % n] = 2.0 / (right * (left + right))
        generator[i, i] = -2.0 / (left * right)
    return _exponential(0.5 * std**2 * generator)


def _second_difference(steps: FloatArray) -> FloatArray:
    """On nodes so far apart; the outermost stay where they are.  [n, n]"""
    left, right = steps[:-1], steps[1:]
    generator = np.zeros((len(steps) + 1,) * 2)
    inner = np.arange(1, len(steps))
    generator[inner, inner - 1] = 2.0 / (left * (left + right))
    generator[inner, inner + 1] = 2.0 / (right * (left + right))
    generator[inner, inner] = -2.0 / (left * right)
    return generator
