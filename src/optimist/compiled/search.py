"""The tree of all action sequences from a state through a flow: grown forwards, valued backwards. And a beam.

Nodes of a tree lie level by level, without the root: level 1 has A nodes, level 2 A^2, and the children of
the k-th node of a level are A k to A k + A - 1 of the next.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.compiled.interpolation import follow


@njit(nogil=True, cache=True)
def _grow_one(
    root, depth, geometry, values, value_strides, parents, states, uncertainty, futures, costs, charged
):
    """Follow every sequence of actions from one root [1, d]."""
    n_actions, n_dims = geometry[1].shape[0], root.shape[1]
    actions = (0, n_actions)
    level, first = root, 0
    free, here = np.empty(0), np.empty(0)  # nothing is charged at a root
    for height in range(depth, 0, -1):
        count = level.shape[0]
        last = first + count * n_actions
        reached = states[first:last].reshape(count, n_actions, n_dims)
        unsure = uncertainty[first:last].reshape(count, n_actions)
        if height > 1:
            follow(level, *geometry, actions, None, value_strides, reached, unsure, unsure, free, here)
        else:
            worth = futures.reshape(count, n_actions)
            follow(level, *geometry, actions, values, value_strides, reached, unsure, worth, free, here)
        for i in range(count):
            for a in range(n_actions):
                for q in range(n_dims):
                    parents[first + i * n_actions + a, q] = level[i, q]
        level = states[first:last]
        if costs.size:
            free, here = costs, charged[first:last]
        first = last


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
    none = np.empty(0)
    for k in range(roots.shape[0]):
        tree = parents[k], states[k], uncertainty[k], futures[k]
        _grow_one(roots[k : k + 1], depth, geometry, values, value_strides, *tree, none, none)


@njit(nogil=True, cache=True)
def grow_each(
    roots,  # [n, d]
    depths,  # [n]
    starts,  # [n + 1], where each tree begins, and where the last ends
    leaf_starts,  # [n + 1], likewise of the leaves
    geometry,
    values,
    value_strides,
    parents,  # out [n_all, d], tree after tree
    states,  # out [n_all, d]
    uncertainty,  # out [n_all]
    futures,  # out [n_all_leaves]
    costs,  # padded [n_padded], of being somewhere; or [0]
    charged,  # out [n_all], those of all nodes but the leaves; or [0]
):
    """The same of trees that differ in their depth."""
    for k in range(roots.shape[0]):
        first, last = starts[k], starts[k + 1]
        tree = parents[first:last], states[first:last], uncertainty[first:last]
        leaves = futures[leaf_starts[k] : leaf_starts[k + 1]]
        here = charged[first:last] if costs.size else charged
        _grow_one(roots[k : k + 1], depths[k], geometry, values, value_strides, *tree, leaves, costs, here)


@njit(nogil=True, cache=True)
def _value_one(rewards, ended, uncertainty, futures, discount, optimistic_value, n_actions, out):
    """out[a] = what action a at the root of one tree is worth."""
    last = rewards.size
    count = futures.size  # of the level at hand
    while True:
        first = last - count
        for i in range(count):
            value = rewards[first + i]
            if not ended[first + i]:
                value += discount * futures[i]
            futures[i] = value + uncertainty[first + i] * (optimistic_value - value)
        if first == 0:
            break
        count //= n_actions
        for i in range(count):
            best = futures[i * n_actions]
            for a in range(1, n_actions):
                best = max(best, futures[i * n_actions + a])
            futures[i] = best
        last = first
    for a in range(n_actions):
        out[a] = futures[a]


@njit(nogil=True, cache=True)
def value_backwards(rewards, ended, uncertainty, futures, discount, optimistic_value, n_actions, out):
    """out[k, a] = what action a at root k is worth: (1 - c) (r + g max) + c V_MAX, level by level.

    `rewards`, `ended`, `uncertainty` [n, n_tree] belong to the step that leads to a node; `futures`
    [n, n_leaves] is overwritten.
    """
    for k in range(rewards.shape[0]):
        steps = rewards[k], ended[k], uncertainty[k], futures[k]
        _value_one(*steps, discount, optimistic_value, n_actions, out[k])


@njit(nogil=True, cache=True)
def value_each(
    rewards, ended, uncertainty, futures, starts, leaf_starts, discount, optimistic_value, n_actions, out
):
    """The same of trees that differ in their depth, as `grow_each` has them."""
    for k in range(out.shape[0]):
        first, last = starts[k], starts[k + 1]
        steps = rewards[first:last], ended[first:last], uncertainty[first:last]
        leaves = futures[leaf_starts[k] : leaf_starts[k + 1]]
        _value_one(*steps, leaves, discount, optimistic_value, n_actions, out[k])


@njit(nogil=True, cache=True)
def carry(
    totals,  # [n, m], earned so far; -inf: there is no such path
    counts,  # [n, m], how much of what follows counts
    firsts,  # [n, m], the first action of each path; -1: it has none yet
    states,  # [n, m * n_actions, d], where every action leads
    rewards,  # [n, m * n_actions]
    ended,  # [n, m * n_actions]
    uncertainty,  # [n, m * n_actions], or [0, 0]: all is known
    futures,  # [n, m * n_actions]
    discount,
    optimistic_value,
    n_actions,
    over,  # in and out [n, n_actions], the best that ended, by its first action
    worth,  # scratch [m * n_actions]
    kept,  # out, as `totals`, `counts`, `firsts`, `states` of the next level, and what each is worth
):
    """One level of a beam: the best of what every path may become. Of equals the first."""
    next_totals, next_counts, next_firsts, next_states, next_worth = kept
    sure = uncertainty.shape[0] == 0
    for k in range(totals.shape[0]):
        for j in range(worth.size):
            i = j // n_actions
            first = firsts[k, i] if firsts[k, i] >= 0 else j
            unsure = 0.0 if sure else uncertainty[k, j]
            gained = (1.0 - unsure) * rewards[k, j] + unsure * optimistic_value
            value = totals[k, i] + counts[k, i] * gained
            if ended[k, j]:
                over[k, first] = max(over[k, first], value)
                worth[j] = np.inf
            else:
                worth[j] = -(value + counts[k, i] * (1.0 - unsure) * discount * futures[k, j])
        order = np.argsort(worth, kind="mergesort")
        for place in range(next_totals.shape[1]):
            j = order[place]
            i = j // n_actions
            unsure = 0.0 if sure else uncertainty[k, j]
            gained = (1.0 - unsure) * rewards[k, j] + unsure * optimistic_value
            alive = worth[j] < np.inf
            next_totals[k, place] = totals[k, i] + counts[k, i] * gained if alive else -np.inf
            next_counts[k, place] = counts[k, i] * (1.0 - unsure) * discount if alive else 0.0
            next_firsts[k, place] = firsts[k, i] if firsts[k, i] >= 0 else j
            next_worth[k, place] = -worth[j]
            for q in range(states.shape[2]):
                next_states[k, place, q] = states[k, j, q]
