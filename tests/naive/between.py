"""Slow twins of `compiled.between`."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from optimist.arrays import FloatArray
from optimist.box import Box


def mixed(
    box: Box,
    state: FloatArray,
    listed: FloatArray,
    unsure: FloatArray,
    levels: FloatArray,
    control: FloatArray,
) -> tuple[FloatArray, float]:
    """Where a control leads from one state, displacements interpolated by scipy."""
    shape = tuple(len(axis) for axis in levels)
    moved = box.displacement(state, listed)
    columns = np.column_stack([moved, unsure]).reshape(*shape, -1)
    found = RegularGridInterpolator(tuple(levels), columns)(control[np.newaxis])[0]
    return box.wrap(state + found[:-1]), float(found[-1])


def smoothed(values: FloatArray, n_tried: int, n_actuators: int) -> FloatArray:
    """1, 2, 1 along each actuator, edges continued in a straight line."""
    lattice = values.reshape((n_tried,) * n_actuators)
    for axis in range(n_actuators):
        around = [(1, 1) if one == axis else (0, 0) for one in range(n_actuators)]
        padded = np.pad(lattice, around, mode="reflect", reflect_type="odd")
        shifted = [np.roll(padded, shift, axis) for shift in (1, 0, -1)]
        blurred = 0.25 * shifted[0] + 0.5 * shifted[1] + 0.25 * shifted[2]
        lattice = blurred[tuple(slice(1, -1) if one == axis else slice(None) for one in range(n_actuators))]
    return lattice.reshape(-1)


def peaked(values: FloatArray, axes: FloatArray) -> FloatArray:
    """The vertex of the parabola through the best and its neighbours, fitted, along each actuator."""
    n_tried = axes.shape[1]
    lattice = values.reshape((n_tried,) * len(axes))
    best = np.unravel_index(int(lattice.argmax()), lattice.shape)
    found = np.array([axes[q][place] for q, place in enumerate(best)])
    for q, place in enumerate(best):
        middle = np.clip(place, 1, n_tried - 2)
        along = [lattice[(*best[:q], middle + step, *best[q + 1 :])] for step in (-1, 0, 1)]
        square, slope, _ = np.polyfit([-1.0, 0.0, 1.0], along, 2)
        if square < 0.0:
            vertex = np.clip(middle - slope / (2.0 * square), place - 0.5, place + 0.5)
            found[q] = np.interp(vertex, np.arange(n_tried), axes[q])
    return found


def every_sequence(n_actions: int, depth: int) -> list[tuple[int, ...]]:
    """All of them."""
    return list(product(range(n_actions), repeat=depth))
