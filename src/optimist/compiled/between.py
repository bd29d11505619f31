"""Where controls between those of a lattice lead: displacement and uncertainty, multilinear in the control."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def mix(
    points,  # [n, d]
    listed,  # [n, n_actions, d], where the controls of the lattice lead, the last actuator fastest
    unsure,  # [n, n_actions]
    levels,  # [k, n_levels], increasing
    controls,  # [n, m, k]
    low,  # [d] of the box of states
    periods,  # [d], 0: not periodic
    next_points,  # out [n, m, d]
    uncertainty,  # out [n, m]
):
    """Each point under each of its controls; exact where a step is affine between two levels."""
    n_actuators, n_levels = levels.shape
    n_dims = points.shape[1]
    starts, strides = np.empty(n_actuators, np.int64), np.empty(n_actuators, np.int64)
    fractions = np.empty(n_actuators)
    stride = 1
    for q in range(n_actuators - 1, -1, -1):
        strides[q] = stride
        stride *= n_levels
    for i in range(points.shape[0]):
        for j in range(controls.shape[1]):
            for q in range(n_actuators):
                u = min(max(controls[i, j, q], levels[q, 0]), levels[q, n_levels - 1])
                cell = 0
                while cell < n_levels - 2 and u > levels[q, cell + 1]:
                    cell += 1
                starts[q] = cell
                fractions[q] = (u - levels[q, cell]) / (levels[q, cell + 1] - levels[q, cell])
            for axis in range(n_dims):
                next_points[i, j, axis] = 0.0
            uncertainty[i, j] = 0.0
            for corner in range(1 << n_actuators):
                weight, action = 1.0, 0
                for q in range(n_actuators):
                    up = corner >> q & 1
                    weight *= fractions[q] if up else 1.0 - fractions[q]
                    action += (starts[q] + up) * strides[q]
                if weight != 0.0:
                    uncertainty[i, j] += weight * unsure[i, action]
                    for axis in range(n_dims):
                        moved = listed[i, action, axis] - points[i, axis]
                        if periods[axis] > 0.0:
                            moved -= np.floor(moved / periods[axis] + 0.5) * periods[axis]
                        next_points[i, j, axis] += weight * moved
            for axis in range(n_dims):
                x = points[i, axis] + next_points[i, j, axis]
                if periods[axis] > 0.0:
                    x -= np.floor((x - low[axis]) / periods[axis]) * periods[axis]
                    if x >= low[axis] + periods[axis]:
                        x = low[axis]
                next_points[i, j, axis] = x
