"""Twins of the compiled sweeps: one node, one action, one corner at a time.

They work on padded values like the kernels do, since an in-place sweep sees the ghosts of periodic axes as
they were before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from tests.naive.interpolation import corners, flat, unflat

NodeRange = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class KernelInput:
    """What the kernels read, and the two shapes that say how."""

    shape: tuple[int, ...]
    padded_shape: tuple[int, ...]
    cells: NDArray[np.int32]  # [N, A]
    fractions: NDArray[np.float32]  # [N, A, d]
    rewards: FloatArray  # [N, A]
    discounts: FloatArray  # [N, A]
    selfs: NDArray[np.float32] | None  # [N, A], or None: self-loops left in
    bounds: tuple[float, float]

    @property
    def n_nodes(self) -> int:
        return int(self.cells.shape[0])

    @property
    def n_actions(self) -> int:
        return int(self.cells.shape[1])

    def place(self, node: int) -> int:
        """Where a node lies in the padded values."""
        return flat(unflat(node, self.shape), self.padded_shape)

    def at_successor(self, node: int, action: int, values: FloatArray) -> FloatArray:
        """Padded `values` [P, ...] interpolated where `action` leads from `node`."""
        cell = unflat(int(self.cells[node, action]), self.padded_shape)
        total = np.zeros(values.shape[1:])
        for corner, weight in corners(cell, self.fractions[node, action].tolist()):
            total = total + weight * values[flat(corner, self.padded_shape)]
        return total

    def self_weight(self, node: int, action: int) -> float:
        """Sum of the weights of all corners that are `node`, or one of its ghosts."""
        home = unflat(node, self.shape)
        cell = unflat(int(self.cells[node, action]), self.padded_shape)
        return sum(
            weight
            for corner, weight in corners(cell, self.fractions[node, action].tolist())
            if tuple(c % n for c, n in zip(corner, self.shape, strict=True)) == home
        )

    def backed_up(self, node: int, action: int, values: FloatArray) -> FloatArray:
        """R + g X, with X the padded `values` [P, ...] at the successor."""
        x = self.at_successor(node, action, values)
        return np.asarray(self.rewards[node, action] + self.discounts[node, action] * x)

    def solved(self, node: int, action: int, x: float, old: float) -> float:
        """(x - g s old) / (1 - g s): the self-loop of x = R + g X taken out and solved for."""
        if self.selfs is None:
            return x
        loop = float(self.discounts[node, action]) * float(self.selfs[node, action])
        return (x - loop * old) / (1.0 - loop)

    def kept(self, value: float) -> float:
        """`value`, kept within the bounds."""
        return min(max(value, self.bounds[0]), self.bounds[1])


def sweep_v(
    given: KernelInput, nodes: NodeRange, values: FloatArray, out: FloatArray
) -> tuple[float, dict[int, int]]:
    """V_i = max_a R_ia + g_ia X_ia, or solved for V_i. The largest change, and the best action per node."""
    change, policy = 0.0, {}
    for node in range(*nodes):
        place = given.place(node)
        old = float(values[place])
        candidates = [
            given.solved(node, a, float(given.backed_up(node, a, values)), old)
            for a in range(given.n_actions)
        ]
        policy[node] = int(np.argmax(candidates))
        out[place] = given.kept(max(candidates))
        change = max(change, abs(out[place] - old))
    return change, policy


def sweep_policy(
    given: KernelInput, policy: NDArray[np.uint16], nodes: NodeRange, values: FloatArray
) -> float:
    """The same for the actions of `policy`, in place. The largest change."""
    change = 0.0
    for node in range(*nodes):
        place, a = given.place(node), int(policy[node])
        old = float(values[place])
        values[place] = given.kept(given.solved(node, a, float(given.backed_up(node, a, values)), old))
        change = max(change, abs(values[place] - old))
    return change


def backup_q(given: KernelInput, values: FloatArray) -> FloatArray:
    """R + g sum_j w V_j for every node and action.  [N, A]"""
    out = np.empty(given.cells.shape)
    for node in range(given.n_nodes):
        for a in range(given.n_actions):
            out[node, a] = given.backed_up(node, a, values)
    return out


def sweep_q(given: KernelInput, nodes: NodeRange, q: FloatArray, out: FloatArray) -> float:
    """Q_ia = max_b R_ia + g_ia (X_iab - s_ia Q_ib); `q` and `out` [P, A]. The largest change.

    With s this is Eq. 7' as printed, when R and g have been divided by 1 - g s.
    """
    change = 0.0
    for node in range(*nodes):
        place = given.place(node)
        found = np.empty(given.n_actions)
        for a in range(given.n_actions):
            x = given.at_successor(node, a, q)
            if given.selfs is not None:
                x = x - float(given.selfs[node, a]) * q[place]
            found[a] = given.kept(given.rewards[node, a] + given.discounts[node, a] * float(x.max()))
        change = max(change, float(np.abs(found - q[place]).max()))
        out[place] = found
    return change


def sweep_q_exact(given: KernelInput, nodes: NodeRange, q: FloatArray, out: FloatArray) -> float:
    """Q_ia = max( max_{b != a} R + g X_b, (R + g (X_a - s Q_ia)) / (1 - g s) ); the largest change."""
    change = 0.0
    for node in range(*nodes):
        place = given.place(node)
        for a in range(given.n_actions):
            old = float(q[place, a])
            candidates = given.backed_up(node, a, q)
            candidates[a] = given.solved(node, a, float(candidates[a]), old)
            out[place, a] = given.kept(float(candidates.max()))
            change = max(change, abs(out[place, a] - old))
    return change
