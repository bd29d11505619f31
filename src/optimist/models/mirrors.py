"""Mirrors: a system that does the same when some of its coordinates turn round.

Whatever swings, rolls or drives to the left does so to the right. Such a system owes every transition a
second one, its image in the mirror, and who knows that learns from twice as many. Nobody has to tell: the
evidence does. With S the mirror and s its sign on the coordinate that moves, functions with f(Sx) = s f(x)
have the covariance

    k_S(x, x') = 1/2 [k(x, x') + k(Sx, Sx') + s (k(x, Sx') + k(Sx, x'))]

and log p(y | k_S) - log p(y | k), added up over the coordinates, is how much the data speak for the mirror.
One transition that differs from the image of another is enough against it. What was seen on one side only
says nothing of the other, although k_S, which knows of no offset, may explain it better: so both sides must
have been seen of every coordinate that turns round and matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.gp.covariance import covariance
from optimist.models.regressor import Regressor
from optimist.threads import shared

ENOUGH = 10.0  # nats of evidence for a mirror, all coordinates together
HOPELESS = -1000.0  # so far down nobody has to look further
ABSURD = 100.0  # times the squares that a process expects: it understands nothing, and is not to be asked
ALIKE = 0.9  # correlation of two places along a coordinate: so little it matters
FEWEST, SHARE = 3, 0.1  # of the transitions: at least so many lie on either side
LEAST = 12  # transitions: fewer say nothing of either side
FEW_ASKED, MOST_ASKED = 60, 300  # transitions that are asked, of all mirrors and of those that are left
MOST_MIRRORS = 256  # of more, controls turn together


@dataclass(frozen=True, eq=False)
class Mirror:
    """Which coordinates of states and controls turn round, and where."""

    signs: FloatArray  # [d + k], -1 or 1
    centres: FloatArray  # [d + k]

    @classmethod
    def of(cls, signs: Sequence[float], box: Box, controls: FloatArray) -> Mirror:
        """States turn round 0, or round the middle where 0 is not inside the box; so do controls."""
        inside = box.periodic | ((box.low < 0.0) & (box.high > 0.0))
        middles = np.where(inside, 0.0, 0.5 * (box.low + box.high))
        centres = np.append(middles, 0.5 * (controls.min(axis=0) + controls.max(axis=0)))
        return cls(np.array(signs, dtype=np.float64), centres)

    def image(self, points: FloatArray) -> FloatArray:
        """Of states with their controls [n, d + k]."""
        return np.asarray(self.centres + self.signs * (points - self.centres))


def same(one: Mirror | None, other: Mirror | None) -> bool:
    """Whether both turn the same round, or there is none."""
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one.signs, other.signs))


def mirrors(box: Box, controls: FloatArray) -> list[Mirror]:
    """All there may be. Controls that are always the same turn round nothing; very many turn together."""
    n_dims, varies = box.n_dims, np.ptp(controls, axis=0) > 0.0
    each = [(-1.0, 1.0)] * n_dims
    turns = [tuple(np.where(varies, -1.0, 1.0)), (1.0,) * len(varies)]
    if 2 ** (n_dims + int(varies.sum())) <= MOST_MIRRORS:
        turns = list(product(*[(-1.0, 1.0) if varying else (1.0,) for varying in varies]))
    choices = [(*signs, *turn) for turn in turns for signs in product(*each)]
    return [Mirror.of(signs, box, controls) for signs in choices if min(signs[:n_dims]) < 0.0]


@dataclass(frozen=True, eq=False)
class Asked:
    """Transitions that are asked whether there is a mirror, and processes that know how smooth things are."""

    regressors: Sequence[Regressor]  # [d]
    points: FloatArray  # [n, d + k]
    moves: FloatArray  # [n, d], displacements
    kept: BoolArray  # [n, d], those that are learned from

    def best(self, candidates: Sequence[Mirror]) -> Mirror | None:
        """The one that most evidence speaks for; None: not enough does for any."""
        left = list(candidates) if self.kept.sum(axis=0).min() >= LEAST else []
        if len(left) > 1:
            few = self._processes(FEW_ASKED)
            hopes = shared(lambda mirror: gain(few, mirror), left)
            left = [mirror for mirror, hope in zip(left, hopes, strict=True) if hope > -np.inf]
        many = self._processes(MOST_ASKED) if left else []
        gains = shared(lambda mirror: gain(many, mirror), left)
        best = int(np.argmax(gains)) if gains else 0
        return left[best] if gains and gains[best] >= ENOUGH else None

    def _processes(self, count: int) -> list[_Process]:
        """One for every coordinate, with at most so many transitions."""
        made = []
        for axis, fitted in enumerate(self.regressors):
            rows = np.flatnonzero(self.kept[:, axis])
            rows = rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, count)).astype(np.intp))]
            made.append(_Process.of(axis, fitted, self.points[rows], self.moves[rows, axis]))
        return made


@dataclass(frozen=True, eq=False)
class _Process:
    """Of one coordinate, before it knows of a mirror."""

    axis: int
    fitted: Regressor
    points: FloatArray  # [n, d + k]
    moves: FloatArray  # [n]
    plain: FloatArray  # [n, n], its covariance
    evidence: float  # without a mirror; -inf: it understands nothing

    @classmethod
    def of(cls, axis: int, fitted: Regressor, points: FloatArray, moves: FloatArray) -> _Process:
        """Given what it has learned of smoothness."""
        hyper, here = fitted.posterior.hyperparameters, fitted.inputs.features(points)
        plain = covariance(here, here, hyper)
        centred = (moves - fitted.target_mean) / fitted.target_scale
        evidence, squares = _evidence(plain.copy(), centred, hyper.noise_variance)
        evidence = evidence if squares <= ABSURD * len(moves) else -np.inf
        return cls(axis, fitted, points, moves, plain, evidence)

    def gain(self, mirror: Mirror) -> float:
        """Nats of evidence for a mirror; -inf where nothing can be said."""
        fitted, sign = self.fitted, float(mirror.signs[self.axis])
        hyper = fitted.posterior.hyperparameters
        here = fitted.inputs.features(self.points)
        there = fitted.inputs.features(mirror.image(self.points))
        if not self._on_both_sides(here - there):
            return -np.inf
        across, image = covariance(here, there, hyper), covariance(there, there, hyper)
        middle = 0.0 if sign < 0.0 else fitted.target_mean
        turned = (self.moves - middle) / fitted.target_scale
        mirrored = 0.5 * (self.plain + image + sign * (across + across.T))
        evidence, _ = _evidence(mirrored, turned, hyper.noise_variance)
        return evidence - self.evidence if np.isfinite(self.evidence) else -np.inf

    def _on_both_sides(self, across: FloatArray) -> bool:
        """Whether something was seen on either side of all that turns round and matters.

        `across` [n, p] are features less those of their images.
        """
        inputs, precisions = self.fitted.inputs, self.fitted.posterior.hyperparameters.precisions
        least = max(FEWEST, SHARE * len(across))
        for axis in range(inputs.n_axes):
            along = across[:, inputs.axes == axis]
            far = float(np.median((along**2).sum(axis=1)))
            if far == 0.0 or (precisions is not None and np.exp(-0.5 * precisions[axis] * far) >= ALIKE):
                continue
            sides = along[:, -1]  # of an angle its sine
            if (sides > 0.0).sum() < least or (sides < 0.0).sum() < least:
                return False
        return True


def gain(processes: Sequence[_Process], mirror: Mirror) -> float:
    """Nats of evidence for a mirror, all coordinates together; -inf where it is hopeless."""
    total = 0.0
    for process in processes:
        total += process.gain(mirror)
        if not total >= HOPELESS:
            return -np.inf
    return total


def _evidence(total: FloatArray, targets: FloatArray, noise: float) -> tuple[float, float]:
    """The logarithm of p(y), but for a constant, and y^T K^-1 y; -inf where K is not positive definite.

    Overwrites K.
    """
    total[np.diag_indices_from(total)] += noise
    try:
        lower = cholesky(total, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return -np.inf, np.inf
    whitened = solve_triangular(lower, targets, lower=True, check_finite=False)
    squares = float(whitened @ whitened)
    return -0.5 * squares - float(np.log(np.diag(lower)).sum()), squares
