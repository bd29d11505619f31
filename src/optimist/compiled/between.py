"""Sequences that begin with any control: where one between those of a lattice leads, and what it is worth."""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.compiled.search import grow, value_backwards


@njit(nogil=True, cache=True)
def _place(u, levels, q):
    """Between which levels of an actuator, and where between them."""
    last = levels.shape[1] - 1
    u = min(max(u, levels[q, 0]), levels[q, last])
    cell = 0
    while cell < last - 1 and u > levels[q, cell + 1]:
        cell += 1
    return cell, (u - levels[q, cell]) / (levels[q, cell + 1] - levels[q, cell])


@njit(nogil=True, cache=True)
def _turned(x, low, period):
    """Brought into [low, low + period), where there is a period."""
    if period > 0.0:
        x -= np.floor((x - low) / period) * period
        if x >= low + period:
            x = low
    return x


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
                starts[q], fractions[q] = _place(controls[i, j, q], levels, q)
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
                        next_points[i, j, axis] += weight * _turned(
                            moved, -0.5 * periods[axis], periods[axis]
                        )
            for axis in range(n_dims):
                x = points[i, axis] + next_points[i, j, axis]
                next_points[i, j, axis] = _turned(x, low[axis], periods[axis])


@njit(nogil=True, cache=True)
def branch(
    points,  # [n, d]
    controls,  # [n, m, k], the first of each sequence
    firsts,  # [n * m, d], where they lead
    depth,  # of the trees that follow
    listed,  # [n_actions, k]
    geometry,  # of the flow, as `grow` takes it
    values,  # padded [n_padded]
    value_strides,
    parents,  # out [n * m + n * m * n_tree, d]: the first steps, then their trees
    applied,  # out [.., k]
    reached,  # out [.., d]
    uncertainty,  # out [..], of the trees alone
    futures,  # out [n * m, n_leaves]
):
    """All sequences of any first control and `depth` listed ones: what a reward is asked of."""
    n_points, n_first = controls.shape[:2]
    count, n_dims = firsts.shape
    n_tree = parents.shape[0] // count - 1
    n_actions = listed.shape[0]
    for i in range(n_points):
        for j in range(n_first):
            parents[i * n_first + j] = points[i]
            applied[i * n_first + j] = controls[i, j]
            reached[i * n_first + j] = firsts[i * n_first + j]
    grow(
        firsts,
        depth,
        geometry,
        values,
        value_strides,
        parents[count:].reshape(count, n_tree, n_dims),
        reached[count:].reshape(count, n_tree, n_dims),
        uncertainty[count:].reshape(count, n_tree),
        futures,
    )
    for i in range(count, parents.shape[0]):  # n_tree is a multiple of n_actions
        applied[i] = listed[(i - count) % n_actions]


@njit(nogil=True, cache=True)
def judge(
    rewards,  # [n * m + n * m * n_tree]
    ended,
    uncertainty,  # of all steps, 0 where what is uncertain counts as known
    futures,  # [n * m, n_leaves], overwritten
    discount,
    optimistic_value,
    n_actions,
    n_tried,  # controls of each actuator: m is a power of it
    out,  # [n, m]
):
    """What every first control is worth, smoothed over neighbouring ones: 1, 2, 1 along each actuator."""
    n_first = out.shape[1]
    count = out.size
    n_tree = rewards.size // count - 1
    after = futures
    if n_tree:
        after = np.empty((count, n_actions))
        value_backwards(
            rewards[count:].reshape(count, n_tree),
            ended[count:].reshape(count, n_tree),
            uncertainty[count:].reshape(count, n_tree),
            futures,
            discount,
            optimistic_value,
            n_actions,
            after,
        )
    for i in range(count):
        value = rewards[i]
        if not ended[i]:
            value += discount * after[i].max()
        out[i // n_first, i % n_first] = value + uncertainty[i] * (optimistic_value - value)
    before = np.empty(n_first)
    for i in range(out.shape[0]):
        stride = 1
        while stride < n_first:
            before[:] = out[i]
            for j in range(n_first):
                place = (j // stride) % n_tried
                if (
                    0 < place < n_tried - 1
                ):  # at a bound a straight line goes on, which smoothing leaves alone
                    out[i, j] = 0.25 * (before[j - stride] + before[j + stride]) + 0.5 * before[j]
            stride *= n_tried


@njit(nogil=True, cache=True)
def peak(
    values,  # [n, m], of controls on a lattice, the last actuator fastest
    chosen,  # [n], one of them
    axes,  # [k, n_tried], the lattice
    out,  # [n, k]
):
    """Where near the chosen control a parabola through it and its neighbours is highest, along each actuator.

    At a bound it goes through the two next to it; the highest point may still be the bound.
    """
    n_actuators, n_tried = axes.shape
    for i in range(values.shape[0]):
        stride = 1
        for q in range(n_actuators - 1, -1, -1):
            place = (chosen[i] // stride) % n_tried
            out[i, q] = axes[q, place]
            middle = min(max(place, 1), n_tried - 2)
            here = chosen[i] + (middle - place) * stride
            below, above = values[i, here - stride], values[i, here + stride]
            bending = 2.0 * values[i, here] - below - above
            if bending > 0.0:
                shift = middle - place + 0.5 * (above - below) / bending
                shift = max(min(shift, 0.5, n_tried - 1.0 - place), -0.5, -1.0 * place)
                if shift != 0.0:
                    to = axes[q, place + 1] if shift > 0.0 else axes[q, place - 1]
                    out[i, q] += abs(shift) * (to - axes[q, place])
            stride *= n_tried
