"""Mirrors: a system that does the same when some of its coordinates turn round.

Whatever swings, rolls or drives to the left does so to the right. Such a system owes every transition a
second one, its image in the mirror, and who knows that learns from twice as many. Nobody has to tell: the
evidence does. With S the mirror and s its sign on the coordinate that moves, functions with f(Sx) = s f(x)
have the covariance

    k_S(x, x') = 1/2 [k(x, x') + k(Sx, Sx') + s (k(x, Sx') + k(Sx, x'))]

and log p(y | k_S) - log p(y | k), added up over the coordinates, is how much the data speak for the mirror.
Where nothing has been seen on both sides it is about 0; one transition that differs from the image of another
is enough against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
MOST_ASKED = 300  # transitions


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


def mirrors(box: Box, controls: FloatArray) -> Iterator[Mirror]:
    """All there may be."""
    for signs in product((-1.0, 1.0), repeat=box.n_dims + controls.shape[1]):
        if min(signs[: box.n_dims]) < 0.0:
            yield Mirror.of(signs, box, controls)


@dataclass(frozen=True, eq=False)
class Asked:
    """Transitions that are asked whether there is a mirror, and processes that know how smooth things are."""

    regressors: Sequence[Regressor]  # [d]
    points: FloatArray  # [n, d + k]
    moves: FloatArray  # [n, d], displacements
    kept: BoolArray  # [n, d], those that are learned from

    def best(self, candidates: Sequence[Mirror]) -> Mirror | None:
        """The one that most evidence speaks for; None: not enough does for any."""
        gains = shared(self.gain, candidates)
        best = int(np.argmax(gains)) if gains else 0
        return candidates[best] if gains and gains[best] >= ENOUGH else None

    def gain(self, mirror: Mirror) -> float:
        """Nats of evidence for a mirror, all coordinates together; -inf where it is hopeless."""
        total = 0.0
        for axis in range(len(self.regressors)):
            total += self._gain(axis, mirror)
            if total < HOPELESS:
                return -np.inf
        return total

    def _gain(self, axis: int, mirror: Mirror) -> float:
        rows = np.flatnonzero(self.kept[:, axis])
        rows = rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, MOST_ASKED)).astype(np.intp))]
        fitted, sign = self.regressors[axis], float(mirror.signs[axis])
        hyper, points = fitted.posterior.hyperparameters, self.points[rows]
        here, there = fitted.inputs.features(points), fitted.inputs.features(mirror.image(points))
        plain, across = covariance(here, here, hyper), covariance(here, there, hyper)
        image = covariance(there, there, hyper)
        moves = self.moves[rows, axis]
        centred = (moves - fitted.target_mean) / fitted.target_scale
        turned = moves / fitted.target_scale if sign < 0.0 else centred
        mirrored = 0.5 * (plain + image + sign * (across + across.T))
        return _evidence(mirrored, turned, hyper.noise_variance) - _evidence(
            plain, centred, hyper.noise_variance
        )


def _evidence(total: FloatArray, targets: FloatArray, noise: float) -> float:
    """The logarithm of p(y), but for a constant; -inf where K is not positive definite. Overwrites K."""
    total[np.diag_indices_from(total)] += noise
    try:
        lower = cholesky(total, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return -np.inf
    whitened = solve_triangular(lower, targets, lower=True, check_finite=False)
    return float(-0.5 * (whitened @ whitened) - np.log(np.diag(lower)).sum())
