"""The tree of all action sequences from a state through a flow: grown forwards, valued backwards.

Nodes of a tree lie level by level, without the root: level 1 has A nodes, level 2 A^2, and the children of
the k-th node of a level are A k to A k + A - 1 of the next.
"""

from __future__ import annotations

from numba import njit

from optimist.compiled.interpolation import follow


@njit(nogil=True, cache=True)
def grow(
    roots,  # [n, d]
    depth,
    geometry,  # lookup, fields, width, strides, low: as `follow` takes them
    values,  # padded [n_padded]
    value_strides,
    parents,  # out [n, n_tree, d]
    states,  # out [n, n_tree, d]
    uncertainty,  # out [n, n_tree], of the step that leads there
    futures,  # out [n, n_leaves], values of the leaves
):
    """Follow every sequence of actions from every root."""
    n_actions, n_dims = geometry[1].shape[0], roots.shape[1]
    actions = (0, n_actions)
    for k in range(roots.shape[0]):
        level = roots[k : k + 1]
        first = 0
        for height in range(depth, 0, -1):
            count = level.shape[0]
            last = first + count * n_actions
            reached = states[k, first:last].reshape(count, n_actions, n_dims)
            unsure = uncertainty[k, first:last].reshape(count, n_actions)
            if height > 1:
                follow(level, *geometry, actions, None, value_strides, reached, unsure, unsure)
            else:
                worth = futures[k].reshape(count, n_actions)
                follow(level, *geometry, actions, values, value_strides, reached, unsure, worth)
            for i in range(count):
                for a in range(n_actions):
                    parents[k, first + i * n_actions + a] = level[i]
            level = states[k, first:last]
            first = last


@njit(nogil=True, cache=True)
def value_backwards(rewards, ended, uncertainty, futures, discount, optimistic_value, n_actions, out):
    """out[k, a] = what action a at root k is worth: (1 - c) (r + g max) + c V_MAX, level by level.

    `rewards`, `ended`, `uncertainty` [n, n_tree] belong to the step that leads to a node; `futures`
    [n, n_leaves] is overwritten.
    """
    for k in range(rewards.shape[0]):
        last = rewards.shape[1]
        count = futures.shape[1]  # of the level at hand
        while True:
            first = last - count
            for i in range(count):
                value = rewards[k, first + i]
                if not ended[k, first + i]:
                    value += discount * futures[k, i]
                futures[k, i] = value + uncertainty[k, first + i] * (optimistic_value - value)
            if first == 0:
                break
            count //= n_actions
            for i in range(count):
                best = futures[k, i * n_actions]
                for a in range(1, n_actions):
                    best = max(best, futures[k, i * n_actions + a])
                futures[k, i] = best
            last = first
        for a in range(n_actions):
            out[k, a] = futures[k, a]
