"""Placement: where nodes go. Along each axis as densely as the paths lie there, mixed with uniform.

A box is drawn wider than where good paths go: a bicycle that rides well uses a twentieth of its roll rates.
Nodes are worth having where the plan is used. Visits alone are not to be trusted, since what was never
visited has to be planned, too: hence the mixture, and rehearsal, which tries what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid

BINS = 256
CLOSE, LOOSE = 0.01, 0.06  # of the axis: the deviation of the kernel over visits


def place(
    box: Box, counts: Sequence[int], states: FloatArray, share: float, *, smoothing: float = CLOSE
) -> Grid:
    """A grid whose nodes follow `states` [n, d], apart from the share 1 - `share`, which is uniform."""
    if not 0.0 <= share < 1.0:
        raise ValueError(f"`share` must be in [0, 1); got {share}.")
    scaled = (box.wrap(states) - box.low) / box.widths
    axes = []
    for axis, count in enumerate(counts):
        periodic = bool(box.periodic[axis])
        density = (1.0 - share) + share * _density(scaled[:, axis], smoothing, periodic=periodic)
        places = np.linspace(0.0, 1.0, count, endpoint=not periodic)
        reached = np.append(0.0, np.cumsum(density)) / density.sum()
        unit = np.interp(places, reached, np.linspace(0.0, 1.0, BINS + 1))
        axes.append(box.low[axis] + unit * box.widths[axis])
    return Grid(box, axes)


def _density(scaled: FloatArray, smoothing: float, *, periodic: bool) -> FloatArray:
    """Of visits along an axis scaled to [0, 1], smoothed, with mean 1; those outside are left out.  [BINS]"""
    inside = scaled[(scaled >= 0.0) & (scaled <= 1.0)]
    if not inside.size:
        return np.ones(BINS)
    counts = np.histogram(inside, bins=BINS, range=(0.0, 1.0))[0].astype(np.float64)
    reach = int(np.ceil(4.0 * smoothing * BINS))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / (smoothing * BINS)) ** 2)
    padded = np.pad(counts, reach, mode="wrap" if periodic else "symmetric")
    smooth = np.convolve(padded, kernel, mode="valid")
    return np.asarray(smooth / smooth.mean())


def resized(grid: Grid, counts: Sequence[int]) -> Grid:
    """As many nodes as `counts` on each axis, as densely placed as those of `grid`."""
    axes = []
    for axis, count in enumerate(counts):
        nodes, width = grid.axes[axis], grid.box.widths[axis]
        periodic = bool(grid.box.periodic[axis])
        closed = np.append(nodes, nodes[0] + width) if periodic else nodes
        places = np.linspace(0.0, closed.size - 1.0, count + periodic)[:count]
        found = np.interp(places, np.arange(closed.size), closed)
        found = np.where(found >= grid.box.high[axis], found - width, found) if periodic else found
        axes.append(np.sort(found))
    return Grid(grid.box, axes)


def allot(weights: FloatArray, budget: int, *, least: int = 5) -> tuple[int, ...]:
    """Nodes per axis in the proportions of `weights` [d], at least `least`, at most `budget` in all."""
    if least ** len(weights) > budget:
        raise ValueError(f"`budget` must be at least {least ** len(weights)}; got {budget}.")
    shares = np.maximum(weights / weights.max(), 1e-6)
    low, high = 0.0, float(budget) / shares.min()
    for _ in range(200):  # bisection: the product grows with the scale
        scale = 0.5 * (low + high)
        counts = np.maximum(np.floor(scale * shares), least)
        low, high = (scale, high) if np.prod(counts) <= budget else (low, scale)
    return tuple(int(count) for count in np.maximum(np.floor(low * shares), least))


def roughness(grid: Grid, values: FloatArray) -> FloatArray:
    """How much each axis needs nodes: the root of its mean second difference of `values` [N].  [d]"""
    shaped = values.reshape(grid.shape)
    needs = []
    for axis in range(grid.n_dims):
        along = np.moveaxis(shaped, axis, 0)
        if grid.box.periodic[axis]:
            along = np.concatenate([along[-1:], along, along[:1]])
        bend = np.abs(along[2:] - 2.0 * along[1:-1] + along[:-2]).mean() if len(along) > 2 else 0.0
        needs.append(grid.shape[axis] * np.sqrt(bend))
    return np.asarray(np.maximum(np.array(needs), 1e-12))
