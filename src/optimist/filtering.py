"""Filtering: where a system is, put together of what is read of it and where it should have come.

Sensors read x + n, n with variance R; a step leads to F(x) + w, w with variance Q. What was believed before,
moved on through the step, and the new reading are weighed by their variances: an extended Kalman filter. The
belief is kept as a distance from the last reading, which is small, so the step is made linear at the reading:

    missed = y' - F(y)                what the step misses of the next reading
    news   = missed - A off           the same from where it was believed to be; A is the slope of F at y
    off'   = -(1 - K) news            K = S (S + R)^-1,  S = A P A' + Q + what F itself is unsure of

News too far out for noise (an edge, a jolt, a wrong model) begin a new belief at the reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.box import Box

FARTHEST = 36.0  # squared standard deviations of all coordinates together: no noise is further off


class Around(NamedTuple):
    """A step, linear around some states."""

    mean: FloatArray  # [n, d], where it leads
    slopes: FloatArray  # [n, d, d], by which coordinate of the state it changes how
    unsure: FloatArray  # [n, d], variance of what is not known of it


# states [n, d], controls [n, k] -> the step there
Linearised = Callable[[FloatArray, FloatArray], Around]


class Belief(NamedTuple):
    """Where some systems are."""

    readings: FloatArray  # [n, d], the last
    off: FloatArray  # [n, d], from there to where they are believed to be
    spread: FloatArray  # [n, d, d], covariance of what is believed

    def rows(self, rows: IntArray | BoolArray) -> Belief:
        """Of some of the systems."""
        return Belief(*(part[rows] for part in self))


@dataclass(frozen=True, eq=False)
class Filter:
    """Of a system with this step, read and moved with noise of these variances."""

    box: Box
    step: Linearised
    reading: FloatArray  # [d], R
    motion: FloatArray  # [d], Q: more than 0 where R is 0

    def begin(self, readings: FloatArray) -> Belief:
        """Of `readings` [n, d] before which nothing is known."""
        return begun(readings, self.reading)

    def go_on(self, belief: Belief, controls: FloatArray, readings: FloatArray) -> Belief:
        """After `controls` [n, k] were applied, and `readings` [n, d] followed."""
        with np.errstate(all="ignore"):
            around = self.step(belief.readings, controls)
            missed = self.box.displacement(around.mean, readings)
            moved = around.slopes @ belief.spread @ np.swapaxes(around.slopes, 1, 2)
            spread = moved + _diagonal(self.motion + around.unsure)
            news = missed - (around.slopes @ belief.off[..., np.newaxis])[..., 0]
        return updated(readings, news, spread, self.reading)

    def states(self, belief: Belief) -> FloatArray:
        """Where the systems are believed to be.  [n, d]"""
        return self.box.wrap(belief.readings + belief.off)


def begun(readings: FloatArray, reading: FloatArray) -> Belief:
    """Nothing but `readings` [n, d] is known, of variance `reading` [d]."""
    return Belief(
        readings, np.zeros_like(readings), _diagonal(np.broadcast_to(reading, readings.shape)).copy()
    )


def updated(readings: FloatArray, news: FloatArray, spread: FloatArray, reading: FloatArray) -> Belief:
    """Once `readings` [n, d] are `news` [n, d] away from what was believed with covariance `spread`."""
    sound = np.asarray(np.isfinite(spread).all(axis=(1, 2)) & np.isfinite(news).all(axis=1))
    if not sound.all():  # a step that means nothing here
        spread = np.where(sound[:, np.newaxis, np.newaxis], spread, np.eye(len(reading)))
        news = np.where(sound[:, np.newaxis], news, 0.0)
    total = spread + np.diag(reading)
    weights = np.linalg.solve(total, np.concatenate([spread, news[..., np.newaxis]], axis=2))
    trusted = np.swapaxes(weights[..., :-1], 1, 2)  # K: how much the readings count
    off = (trusted @ news[..., np.newaxis])[..., 0] - news
    kept = spread - trusted @ spread
    kept = 0.5 * (kept + np.swapaxes(kept, 1, 2))
    with np.errstate(all="ignore"):
        squared = (news * weights[..., -1]).sum(axis=1)
    fresh = ~(sound & (squared <= FARTHEST))
    if not fresh.any():
        return Belief(readings, off, kept)
    anew = begun(readings, reading)
    off = np.where(fresh[:, np.newaxis], anew.off, off)
    return Belief(readings, off, np.where(fresh[:, np.newaxis, np.newaxis], anew.spread, kept))


def _diagonal(variances: FloatArray) -> FloatArray:
    """Matrices [n, d, d] with these diagonals [n, d]."""
    return np.asarray(variances[..., np.newaxis] * np.eye(variances.shape[-1]))
