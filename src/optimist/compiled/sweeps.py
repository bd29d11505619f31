"""One sweep of value iteration over a slice of nodes.

V form:  V_i  = max_a  R_ia + g_ia X_ia,           X_ia  = sum_j w_iaj V_j
Q form:  Q_ia = max_b  R_ia + g_ia X_iab,          X_iab = sum_j w_iaj Q_jb

With `selfs` None these are the plain backups. Otherwise `selfs` holds s, the weight of node i in the
interpolation of its own successor, and the self-loop is solved: x = (R + g (X - s x_old)) / (1 - g s).

A sweep reads `v` and writes `out`: the same array makes it Gauss-Seidel, another one Jacobi. Nodes go
from `first` to `last` in steps of `step` (-1 sweeps backwards). Every sweep returns its largest change.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint32, uint64

from optimist.compiled.interpolation import (
    FAST,
    fraction_spot,
    interpolate,
    interpolate_both,
    interpolate_two,
    prefetch,
)


@njit(nogil=True, inline="always", fastmath=FAST)
def without_self(x, loop, old):
    """Solve x = rest + loop * x for x, given rest + loop * old.

    Discount 1 can bring `loop` to 1: such a state never leaves, and the value bounds catch the result.
    """
    return (x - loop * old) / max(1.0 - loop, 1e-12)


@njit(nogil=True, cache=True)
def terms(rewards, discounts, palette, i, a):
    """R and g; without `discounts`, `rewards` are the numbers of such pairs in the `palette` [n, 2]."""
    r, g = 0.0, 0.0
    if discounts is not None:
        r, g = rewards[i, a], discounts[i, a]
    if palette is not None:
        k = uint64(rewards[i, a])
        r, g = palette[k, 0], palette[k, 1]
    return r, g


@njit(nogil=True, cache=True)
def one_row(fractions, i, a, n_axes):
    """Those of one action that has no partner (see `fraction_spot`)."""
    if fractions.ndim == 2:
        return fractions[i, a * n_axes : (a + 1) * n_axes]
    return fractions[i, a]


@njit(nogil=True, inline="always", fastmath=FAST)
def backed_up(reward, discount, future, weight, old):
    """R + g X; with a `weight` of the node in its own future, that loop solved."""
    x = reward + discount * future
    if weight is not None and weight > 0.0:
        x = without_self(x, discount * weight, old)
    return x


@njit(nogil=True, cache=True, fastmath=FAST)
def sweep_v(
    cells,
    fractions,
    rewards,
    discounts,
    selfs,
    strides,
    places,
    bounds,
    nodes,
    v,
    out,
    policy,
    ahead=None,
    actions=None,
    ghosts=None,
    palette=None,
    exact=None,
    keeps=None,
):
    """Best action at every node; `policy` [n] keeps which, unless it is None.

    With `ahead`, the corners of the successors so many nodes on are fetched into the cache meanwhile: of the
    first action and of the last, the others mostly lie between. A tuple of as many `actions` as there are
    lets their number be known when this is compiled, which is faster. `ghosts` are second places for the
    values of nodes that have one, for the others their own. For `palette` see `terms`.

    With `exact`, those are the values and `v` is what noise makes of them: X is read there. Where the node
    `keeps` so much of its own value in it, both are changed in place, and `out` is `v`.
    """
    n_nodes = cells.shape[0]
    n_actions = uint64(cells.shape[1] if actions is None else len(actions))
    paired = n_actions & ~uint64(1)
    floor, ceiling = bounds
    first, last, step = nodes
    change = 0.0
    for node in range(first, last, step):
        i = uint64(node)
        p = uint64(places[i])
        old = v[p] if exact is None else exact[p]
        best = floor
        choice = uint64(0)
        if ahead is not None and 0 <= node + ahead * step < n_nodes:
            prefetch(v, uint64(cells[uint64(node + ahead * step), 0]), strides)
            prefetch(v, uint64(cells[uint64(node + ahead * step), n_actions - uint64(1)]), strides)
        for a in range(uint64(0), paired, uint64(2)):
            b = a + uint64(1)
            y, z = interpolate_both(v, uint64(cells[i, a]), uint64(cells[i, b]), strides, fractions, i, a)
            r, g = terms(rewards, discounts, palette, i, a)
            y = backed_up(r, g, y, None if selfs is None else selfs[i, a], old)
            r, g = terms(rewards, discounts, palette, i, b)
            z = backed_up(r, g, z, None if selfs is None else selfs[i, b], old)
            if y > best:
                best = y
                choice = a
            if z > best:
                best = z
                choice = b
        if paired < n_actions:
            a = paired
            y = interpolate(v, uint64(cells[i, a]), strides, one_row(fractions, i, a, len(strides)))
            r, g = terms(rewards, discounts, palette, i, a)
            y = backed_up(r, g, y, None if selfs is None else selfs[i, a], old)
            if y > best:
                best = y
                choice = a
        best = min(best, ceiling)
        if policy is not None:
            policy[i] = choice
        if keeps is None:
            out[p] = best
        else:
            exact[p] = best
            out[p] = v[p] + keeps * (best - old)
        if ghosts is not None and ghosts[i] != places[i]:
            out[uint64(ghosts[i])] = best
        change = max(change, abs(best - old))
    return change


@njit(nogil=True, cache=True, fastmath=FAST)
def sweep_policy(
    cells,
    fractions,
    rewards,
    discounts,
    selfs,
    strides,
    places,
    bounds,
    nodes,
    v,
    ahead=None,
    exact=None,
    keeps=None,
):
    """The same for one given action per node (tables without action axis), in place."""
    n_nodes = cells.shape[0]
    floor, ceiling = bounds
    first, last, step = nodes
    change = 0.0
    for node in range(first, last, step):
        i = uint64(node)
        p = uint64(places[i])
        old = v[p] if exact is None else exact[p]
        if ahead is not None and 0 <= node + ahead * step < n_nodes:
            prefetch(v, uint64(cells[uint64(node + ahead * step)]), strides)
        x = rewards[i]
        g = discounts[i]
        if g != 0.0:
            x += g * interpolate(v, uint64(cells[i]), strides, fractions[i])
            if selfs is not None and selfs[i] > 0.0:
                x = without_self(x, g * selfs[i], old)
        x = min(max(x, floor), ceiling)
        if exact is None:
            v[p] = x
        else:
            exact[p] = x
            v[p] += keeps * (x - old)
        change = max(change, abs(x - old))
    return change


@njit(nogil=True, cache=True)
def take_policy(cells, fractions, rewards, discounts, selfs, policy, nodes, out, palette=None):
    """The rows of the tables that `policy` chooses, packed for `sweep_policy`."""
    first, last, _ = nodes
    out_cells, out_fractions, out_rewards, out_discounts, out_selfs = out
    n_actions, n_dims = cells.shape[1], out_fractions.shape[1]
    for i in range(first, last):
        a = policy[i]
        out_cells[i] = cells[i, a]
        for q in range(n_dims):
            if fractions.ndim == 2:
                out_fractions[i, q] = fractions[i, fraction_spot(a, q, n_actions, n_dims)]
            else:
                out_fractions[i, q] = fractions[i, a, q]
        out_rewards[i], out_discounts[i] = terms(rewards, discounts, palette, i, a)
        if selfs is not None:
            out_selfs[i] = selfs[i, a]


@njit(nogil=True, cache=True, fastmath=FAST)
def backup_q(cells, fractions, rewards, discounts, strides, places, bounds, nodes, v, out, exact=None):
    """out[i, a] = R + g sum_j w V_j, the Q-values that follow from V; how far their best are from V.

    With `exact` those are V, and `v` is what noise makes of them.
    """
    floor, ceiling = bounds
    first, last, _ = nodes
    change = 0.0
    for node in range(first, last):
        i = uint64(node)
        best = floor
        for a in range(uint64(cells.shape[1])):
            x = rewards[i, a]
            g = discounts[i, a]
            if g != 0.0:
                x += g * interpolate(v, uint64(cells[i, a]), strides, fractions[i, a])
            x = min(max(x, floor), ceiling)
            out[i, a] = x
            best = max(best, x)
        old = v[uint64(places[i])] if exact is None else exact[uint64(places[i])]
        change = max(change, abs(best - old))
    return change


@njit(nogil=True, cache=True, fastmath=FAST)
def sweep_q(cells, fractions, rewards, discounts, selfs, strides, places, bounds, nodes, q, out, exact=None):
    """Eq. 7; with `selfs` Eq. 7' as printed, R and g divided by 1 - g s beforehand.

    `q` is padded and flat, [n_padded * n_actions + 1]: actions are read in pairs. With `exact` those are the
    Q-values, and `q` is what noise makes of them.
    """
    own = q if exact is None else exact
    n_actions = uint64(cells.shape[1])
    floor, ceiling = bounds
    first, last, step = nodes
    change = 0.0
    found = np.empty(cells.shape[1])
    for node in range(first, last, step):
        i = uint64(node)
        p = uint64(places[i]) * n_actions
        for a in range(n_actions):
            x = rewards[i, a]
            g = discounts[i, a]
            if g != 0.0:
                best = -1e300
                cell = uint64(cells[i, a]) * n_actions
                for b in range(uint64(0), n_actions, uint64(2)):
                    y, z = interpolate_two(q, cell + b, strides, fractions[i, a])
                    if selfs is not None:
                        y -= selfs[i, a] * own[p + b]
                        z -= selfs[i, a] * own[p + b + uint64(1)]
                    best = max(best, y)
                    if z > best and b + uint64(1) < n_actions:
                        best = z
                x += g * best
            found[a] = min(max(x, floor), ceiling)
        # Only now: in place, the node's own old values must last until all its actions are done.
        for a in range(n_actions):
            change = max(change, abs(found[a] - own[p + a]))
            out[p + a] = found[a]
    return change


@njit(nogil=True, cache=True, fastmath=FAST)
def sweep_q_exact(
    cells, fractions, rewards, discounts, selfs, strides, places, bounds, nodes, q, out, exact=None
):
    """Eq. 7 with the self-loop solved where it belongs, to the action's own term:

    Q_ia = max( max_{b != a} R + g X_b,  (R + g (X_a - s Q_ia)) / (1 - g s) )
    """
    own = q if exact is None else exact
    n_actions = uint64(cells.shape[1])
    floor, ceiling = bounds
    first, last, step = nodes
    change = 0.0
    for node in range(first, last, step):
        i = uint64(node)
        p = uint64(places[i]) * n_actions
        for a in range(n_actions):
            r = rewards[i, a]
            g = discounts[i, a]
            s = selfs[i, a]
            old = own[p + a]
            x = r
            if g != 0.0:
                x = -1e300
                cell = uint64(cells[i, a]) * n_actions
                for b in range(uint64(0), n_actions, uint64(2)):
                    y, z = interpolate_two(q, cell + b, strides, fractions[i, a])
                    y = r + g * y
                    z = r + g * z
                    if b == a:
                        y = without_self(y, g * s, old)
                    if b + uint64(1) == a:
                        z = without_self(z, g * s, old)
                    x = max(x, y)
                    if z > x and b + uint64(1) < n_actions:
                        x = z
            x = min(max(x, floor), ceiling)
            change = max(change, abs(x - old))
            out[p + a] = x
    return change


@njit(nogil=True, cache=True)
def rearrange(cells, fractions, nodes, shape, axes, strides, out_cells, out_fractions):
    """The rows of `nodes`, with cells and fractions of a grid that has its axes in another order.

    `shape` is the padded one of the grid the cells are numbered in; `axes` says which of its axes those of
    the other grid are, `strides` are the other grid's. The fractions of actions are interleaved as
    `fraction_spot` says.
    """
    n_actions, n_dims = cells.shape[1], len(shape)
    place = np.empty(n_dims, np.uint32)
    spots = np.empty((n_actions, n_dims), np.int64)
    for a in range(n_actions):
        for q in range(n_dims):
            spots[a, q] = fraction_spot(a, q, n_actions, n_dims)
    for k in range(nodes.size):
        for a in range(n_actions):
            cell = uint32(cells[nodes[k], a])
            for q in range(n_dims - 1, -1, -1):
                whole = cell // uint32(shape[q])
                place[q] = cell - whole * uint32(shape[q])
                cell = whole
            moved = 0
            for q in range(n_dims):
                moved += place[axes[q]] * strides[q]
                out_fractions[k, spots[a, q]] = fractions[nodes[k], a, axes[q]]
            out_cells[k, a] = moved


@njit(nogil=True, cache=True)
def encode(rewards, discounts, nodes, palette, codes):
    """The number of different pairs (R, g) at `nodes`, put in `palette` [n, 2]; -1 if they do not fit.

    codes[k, a] is the number of the pair of the k-th node and action a.
    """
    count = 0
    code = 0
    for k in range(nodes.size):
        for a in range(rewards.shape[1]):
            r, g = rewards[nodes[k], a], discounts[nodes[k], a]
            if count == 0 or r != palette[code, 0] or g != palette[code, 1]:
                code = 0
                while code < count and (r != palette[code, 0] or g != palette[code, 1]):
                    code += 1
                if code == palette.shape[0]:
                    return -1
                if code == count:
                    palette[code, 0], palette[code, 1] = r, g
                    count += 1
            codes[k, a] = code
    return count


@njit(nogil=True, cache=True)
def self_weights(cells, fractions, shape, padded_shape, nodes, out):
    """out[i, a]: weight of node i in the interpolation of its own successor (the paper's w_ii)."""
    first, last, _ = nodes
    for i in range(first, last):
        for a in range(cells.shape[1]):
            weight = 1.0
            node = i
            cell = int(cells[i, a])
            for q in range(len(shape) - 1, -1, -1):
                place = node % shape[q]
                corner = cell % padded_shape[q]
                node //= shape[q]
                cell //= padded_shape[q]
                if place == corner:
                    weight *= 1.0 - fractions[i, a, q]
                elif place == (corner + 1) % shape[q]:
                    weight *= fractions[i, a, q]
                else:
                    weight = 0.0
                    break
            out[i, a] = weight
