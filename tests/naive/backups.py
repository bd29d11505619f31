"""The Bellman backups as the paper writes them, on dense weight matrices.

One Jacobi step each, from Q [N, A] to Q' [N, A], given rewards R [N, A], discounts g [N, A] (0 where an
episode ends), weights W [A, N, N], uncertainties C [N, A] and the optimistic value V_MAX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optimist.arrays import FloatArray
from tests.naive.interpolation import self_weights


@dataclass(frozen=True, eq=False)
class Problem:
    """The discretised Bellman equation."""

    rewards: FloatArray  # [N, A]
    discounts: FloatArray  # [N, A]
    weights: FloatArray  # [A, N, N]
    uncertainty: FloatArray  # [N, A]
    optimistic_value: float

    @property
    def selfs(self) -> FloatArray:
        """w_ii.  [N, A]"""
        return self_weights(self.weights)

    @property
    def others(self) -> FloatArray:
        """The weights with w_ii removed: the sum over j != i.  [A, N, N]"""
        removed = self.weights.copy()
        for w in removed:
            np.fill_diagonal(w, 0.0)
        return removed

    @property
    def n_actions(self) -> int:
        return int(self.rewards.shape[1])


Step = Callable[[FloatArray, Problem], FloatArray]


def v_plain(q: FloatArray, problem: Problem) -> FloatArray:
    """(1 - C) (R + g sum_j w_ij V_j) + C V_MAX with V_j = max_a Q_j^a."""
    values = q.max(axis=1)
    out = np.empty_like(q)
    for a in range(problem.n_actions):
        backed_up = problem.rewards[:, a] + problem.discounts[:, a] * (problem.weights[a] @ values)
        c = problem.uncertainty[:, a]
        out[:, a] = (1.0 - c) * backed_up + c * problem.optimistic_value
    return out


def v_exact(q: FloatArray, problem: Problem) -> FloatArray:
    """The same, solved for V_i (Gruene 1997; with C as in PAPER_NOTES on Eq. 7''):

    [1 - (1-C) g w_ii]^-1 [(1-C) (R + g sum_{j != i} w_ij V_j) + C V_MAX]
    """
    values = q.max(axis=1)
    selfs, others = problem.selfs, problem.others
    out = np.empty_like(q)
    for a in range(problem.n_actions):
        r, g, c = problem.rewards[:, a], problem.discounts[:, a], problem.uncertainty[:, a]
        mixed = (1.0 - c) * (r + g * (others[a] @ values)) + c * problem.optimistic_value
        out[:, a] = mixed / (1.0 - (1.0 - c) * g * selfs[:, a])
    return out


def eq7(q: FloatArray, problem: Problem) -> FloatArray:
    """Eq. 7: R + g max_a' sum_j w_ij^a Q_j^a', mixed with V_MAX by C."""
    out = np.empty_like(q)
    for a in range(problem.n_actions):
        best = (problem.weights[a] @ q).max(axis=1)
        backed_up = problem.rewards[:, a] + problem.discounts[:, a] * best
        c = problem.uncertainty[:, a]
        out[:, a] = (1.0 - c) * backed_up + c * problem.optimistic_value
    return out


def eq7_exact(q: FloatArray, problem: Problem) -> FloatArray:
    """Eq. 7 with the self term solved where it belongs, S_b = sum_{j != i} w_ij Q_j^b (PAPER_NOTES, 1):

    Q_i^a = max( max_{b != a} [R + g (S_b + w_ii Q_i^b)],  (R + g S_a) / (1 - g w_ii) )
    """
    folded = fold(problem)
    selfs, others = folded.selfs, folded.others
    out = np.empty_like(q)
    for a in range(folded.n_actions):
        r, g, s = folded.rewards[:, a], folded.discounts[:, a], selfs[:, a]
        sums = others[a] @ q
        candidates = [
            (r + g * sums[:, a]) / (1.0 - g * s) if b == a else r + g * (sums[:, b] + s * q[:, b])
            for b in range(folded.n_actions)
        ]
        out[:, a] = np.max(candidates, axis=0)
    return out


def eq7_printed(q: FloatArray, problem: Problem) -> FloatArray:
    """Eq. 7' and 7'' as printed:

    (1-C) [1 - g w_ii]^-1 (R + g max_a' sum_{j != i} w_ij Q_j^a') + C V_MAX
    """
    selfs, others = problem.selfs, problem.others
    out = np.empty_like(q)
    for a in range(problem.n_actions):
        r, g, c = problem.rewards[:, a], problem.discounts[:, a], problem.uncertainty[:, a]
        solved = (r + g * (others[a] @ q).max(axis=1)) / (1.0 - g * selfs[:, a])
        out[:, a] = (1.0 - c) * solved + c * problem.optimistic_value
    return out


BACKUPS: dict[str, Step] = {
    "v-plain": v_plain,
    "v-exact": v_exact,
    "eq7": eq7,
    "eq7-exact": eq7_exact,
    "eq7-printed": eq7_printed,
}


def fold(problem: Problem) -> Problem:
    """The mixture written as rewards (1-C) R + C V_MAX and discounts (1-C) g, without uncertainty."""
    c = problem.uncertainty
    return replace(
        problem,
        rewards=(1.0 - c) * problem.rewards + c * problem.optimistic_value,
        discounts=(1.0 - c) * problem.discounts,
        uncertainty=np.zeros_like(c),
    )


def iterate(step: Step, q: FloatArray, problem: Problem, sweeps: int) -> FloatArray:
    """Jacobi iteration: `sweeps` steps from `q`."""
    for _ in range(sweeps):
        q = step(q, problem)
    return q


def value_iteration(step: Step, problem: Problem, tolerance: float = 1e-11) -> FloatArray:
    """The fixed point: steps from 0 until nothing changes by more than `tolerance`."""
    q = np.zeros_like(problem.rewards)
    for _ in range(20_000):
        following = step(q, problem)
        if np.abs(following - q).max() <= tolerance:
            return following
        q = following
    raise AssertionError("value iteration did not converge")
