"""Uneven: whether noise depends on where one is, and how.

The logarithm of a squared normal number has the variance pi^2 / 2, however large the noise is; so what a
model misses, squared and in logarithms, is regressed on the place: each coordinate and its square, angles as
sine and cosine. What that explains, against what chance would, says whether noise depends on the place at
all. If it does, the same regression, shrunk, says how: the logarithm of the variance is a sum over
coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box

VARIANCE = np.pi**2 / 2.0  # of the logarithm of a squared normal number
LEVEL = 1e-5  # chance that even noise is called uneven, of each coordinate
FEWEST = 100  # transitions
LEAST = 1.5  # times: deviations that differ by less between a calm place and a rough one are all the same
CALM, ROUGH = 0.1, 0.9  # quantiles of places that were seen
MOST = 4.0  # times the deviation of all: no place is said to be rougher, or so much calmer
SMALLEST = 1e-12  # of a usual square: what was missed by less says nothing more


@dataclass(frozen=True, eq=False)
class Places:
    """Where one is, as features of about unit size; outside of what was seen as at its edge."""

    box: Box
    centre: FloatArray  # [d]
    scale: FloatArray  # [d]
    low: FloatArray  # [d], the least that was seen
    high: FloatArray  # [d]

    @classmethod
    def seen(cls, box: Box, states: FloatArray) -> Places:
        """Of `states` [n, d]."""
        scale = states.std(axis=0)
        scale = np.where(scale > 0.0, scale, box.widths)
        return cls(box, states.mean(axis=0), scale, states.min(axis=0), states.max(axis=0))

    def __call__(self, states: FloatArray) -> FloatArray:
        """Of `states` [n, d].  [n, 2 d]"""
        box = self.box
        angles = 2.0 * np.pi * (states - box.low) / box.widths
        inside = (np.clip(states, self.low, self.high) - self.centre) / self.scale
        first = np.where(box.periodic, np.sin(angles), inside)
        second = np.where(box.periodic, np.cos(angles), inside**2 - 1.0)
        return np.hstack([first, second])


@dataclass(frozen=True, eq=False)
class Uneven:
    """Noise by the place."""

    places: Places
    means: FloatArray  # [2 d], of the features that were seen
    weights: FloatArray  # [2 d, d], of the logarithm of the variance; 0 of noise that is even
    noise: FloatArray  # [d], standard deviation where nothing of that counts
    typical: FloatArray  # [d], root mean square of all that was seen

    def __call__(self, states: FloatArray) -> FloatArray:
        """Standard deviations at `states` [n, d].  [n, d]"""
        found = self.noise * np.exp(0.5 * (self.places(states) - self.means) @ self.weights)
        return np.asarray(np.clip(found, self.typical / MOST, self.typical * MOST))


def find_uneven(
    box: Box, states: FloatArray, errors: FloatArray, free: BoolArray, noise: FloatArray
) -> Uneven | None:
    """What is said of noise by `errors` [n, d] at `states` [n, d], where `free` [n, d]; None: it is even.

    `noise` [d] is the standard deviation of all together.
    """
    rows = np.asarray(free.any(axis=1))
    if rows.sum() < FEWEST:
        return None
    places = Places.seen(box, states[rows])
    features = places(states)
    means = features[rows].mean(axis=0)
    features = features - means
    weights = np.zeros((features.shape[1], box.n_dims))
    levels = noise.copy()
    for axis in np.flatnonzero(noise > 0.0):
        mine = free[:, axis]
        if mine.sum() >= FEWEST:
            weights[:, axis] = _weights(features[mine], errors[mine, axis])
            levels[axis] /= np.sqrt(np.mean(np.exp(features[mine] @ weights[:, axis])))
    return Uneven(places, means, weights, levels, noise) if weights.any() else None


def _weights(features: FloatArray, errors: FloatArray) -> FloatArray:
    """Of the logarithm of the variance of `errors` [n], by `features` [n, p]; 0: they do not say.  [p]"""
    from scipy.special import chdtrc  # noqa: PLC0415  (importing is to be quick)

    nothing = np.zeros(features.shape[1])
    squares = errors**2
    targets = np.log(np.maximum(squares, SMALLEST * squares.mean()))
    targets = targets - targets.mean()
    centred = features - features.mean(axis=0)
    crossed, towards = centred.T @ centred, centred.T @ targets
    plain = np.linalg.lstsq(crossed, towards, rcond=1e-9)[0]
    if float(chdtrc(len(nothing), float(plain @ towards) / VARIANCE)) > LEVEL:
        return nothing
    shrunk = np.asarray(np.linalg.solve(crossed + VARIANCE * np.eye(len(nothing)), towards))
    calm, rough = np.quantile(centred @ shrunk, (CALM, ROUGH))
    return shrunk if np.exp(0.5 * (rough - calm)) >= LEAST else nothing
