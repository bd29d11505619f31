"""Sensing: noise of the sensors told from noise of the motion.

A sensor that reads x + n shifts the beginning and the end of a step. What a model F misses of a transition
is then e_t = n_(t+1) - A_t n_t + w_t, where A is the slope of F, n has variance R and w, the noise of the
motion, variance Q. The n of one reading is in two transitions with opposite signs, that of the motion in one:

    E[e_(t+1) e_t'] = -A_(t+1) R              R from it, coordinate by coordinate, least squares
    E[e_t e_t']     = R + A_t R A_t' + Q      Q is what is left

Whether there is any R is a test: the sum of these products against what it would be by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.filtering import Around, Filter, begun, updated
from optimist.transitions import Transitions

SURE = 4.0  # standard deviations of chance, of one coordinate or all together: then sensors are noisy
LIKELY = 2.0  # the same of each coordinate, once it is sure that sensors are
LEAST_MOTION = 0.02  # of the variance of what is missed: so much a filter leaves to the motion at least
TINY = 1e-6  # of the width of an axis: a step to take slopes with where nothing is missed
FEWEST = 30  # pairs of transitions


class Predicting(Protocol):
    """What is asked of a model."""

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors.  [n, d]"""
        ...

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """Successors if it errs by so many standard deviations.  [n, d]"""
        ...


@dataclass(frozen=True, eq=False)
class Slopes:
    """A model as a step that is linear around states, by differences as wide as its noise."""

    model: Predicting
    box: Box
    noise: FloatArray  # [d], standard deviation of what it misses

    def __call__(self, states: FloatArray, controls: FloatArray) -> Around:
        """Of `states` [n, d] under `controls` [n, k]."""
        count, n_dims = states.shape
        wide = np.maximum(self.noise, TINY * self.box.widths)
        places = np.concatenate([states[np.newaxis], states + _offsets(wide), states - _offsets(wide)])
        many = np.tile(controls, (len(places), 1))
        found = self.model.predict(places.reshape(-1, n_dims), many).reshape(-1, count, n_dims)
        across = self.box.displacement(found[1 + n_dims :], found[1 : 1 + n_dims])
        slopes = np.moveaxis(across / (2.0 * wide[:, np.newaxis, np.newaxis]), 0, 2)
        moved = self.model.predict_drawn(states, controls, np.ones_like(states))
        return Around(found[0], slopes, self.box.displacement(found[0], moved) ** 2)


def _offsets(wide: FloatArray) -> FloatArray:
    """One coordinate at a time.  [d, 1, d]"""
    return np.diag(wide)[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class Missed:
    """What a model misses of transitions that it has seen."""

    around: Around  # the model at their states
    errors: FloatArray  # [n, d], from where it leads to what was read
    free: BoolArray  # [n, d]: no edge had a hand in it
    follows: BoolArray  # [n]: it goes on from the one before

    @classmethod
    def of(cls, step: Slopes, seen: Transitions, controls: FloatArray, free: BoolArray) -> Missed:
        """By that model."""
        around = step(seen.states, seen.controls(controls))
        follows = ~seen.begins
        follows[1:] &= (seen.states[1:] == seen.next_states[:-1]).all(axis=1)
        return cls(around, step.box.displacement(around.mean, seen.next_states), free, follows)


@dataclass(frozen=True, eq=False)
class Sensing:
    """Noise of a sensor, and of the motion, as variances."""

    reading: FloatArray  # [d], R; 0 where there is none that could be told
    motion: FloatArray  # [d], Q
    sure: FloatArray  # [d], standard deviations of chance that R is away from 0

    def filtering(self, step: Slopes) -> Filter:
        """The filter for a system that is read and moves like that."""
        least = np.maximum(LEAST_MOTION * step.noise**2, (TINY * step.box.widths) ** 2)
        return Filter(step.box, step, self.reading, np.maximum(self.motion, least))


def tell_apart(missed: Missed, noise: FloatArray) -> Sensing | None:
    """Noise of sensors and motion, given the standard deviation `noise` [d] of both; None: of motion only."""
    slopes, free = missed.around.slopes, missed.free
    squares = (missed.errors**2 * free).sum(axis=0) / np.maximum(free.sum(axis=0), 1)
    known = (squares > 0.0) & (noise > 0.0)
    # a model bends towards what it has seen and misses too little of it; its noise says how much
    scales = np.where(known, noise / np.sqrt(np.where(known, squares, 1.0)), 0.0)
    errors = missed.errors * free * scales
    counts = np.where(known, 1.0 / np.where(known, noise, 1.0) ** 2, 0.0)
    pairs = (missed.follows[1:, np.newaxis] & free[:-1]) * 1.0  # [n - 1, d]
    if pairs.sum(axis=0).min(initial=FEWEST) < FEWEST:
        return None
    products = -pairs * errors[:-1] * np.einsum("ti,tij,i->tj", errors[1:], slopes[1:], counts)
    sizes = pairs * np.einsum("ti,tij,i->tj", free[1:] * 1.0, slopes[1:] ** 2, counts)
    chance = np.sqrt((products**2).sum(axis=0))
    sure = products.sum(axis=0) / np.where(chance > 0.0, chance, 1.0)
    if max(sure.max(), sure.sum() / np.sqrt(max(known.sum(), 1))) < SURE:
        return None
    likely = (sure >= LIKELY) & (sizes.sum(axis=0) > 0.0)
    reading = np.where(likely, products.sum(axis=0) / np.where(likely, sizes.sum(axis=0), 1.0), 0.0)
    reading = np.minimum(reading, noise**2)
    both = np.eye(len(noise)) + (slopes**2 * free[:, :, np.newaxis]).sum(axis=0) / np.maximum(
        free.sum(axis=0), 1
    ).reshape(-1, 1)
    return Sensing(reading, np.maximum(noise**2 - both @ reading, 0.0), sure)


def pays(missed: Missed, filtering: Filter, noise: FloatArray) -> bool:
    """Whether readings are foretold better from filtered states than from the readings before them.

    Of what was seen: a filter knows what went before, and nothing of what it foretells.
    """
    slopes, unsure = missed.around.slopes, missed.around.unsure
    reading, nothing = filtering.reading, np.zeros((1, len(noise)))
    counts = np.where(noise > 0.0, 1.0 / np.where(noise > 0.0, noise, 1.0) ** 2, 0.0)
    belief, gains = begun(nothing, reading), []
    for row, errors in enumerate(missed.errors):
        if not missed.follows[row] or not missed.free[row - 1].all():
            belief = begun(nothing, reading)
        slope = slopes[row]
        news = errors - slope @ belief.off[0]
        spread = slope @ belief.spread[0] @ slope.T + np.diag(filtering.motion + unsure[row])
        belief = updated(nothing, news[np.newaxis], spread[np.newaxis], reading)
        if missed.free[row].all():
            gains.append(float(counts @ (errors**2 - news**2)))
    total, squares = float(np.sum(gains)), float(np.sum(np.square(gains)))
    return bool(total > LIKELY * squares**0.5)


@dataclass(frozen=True, eq=False)
class ToldApart:
    """What noise is whose, where it was told and filtering pays."""

    sensing: Sensing
    filtering: Filter


def told_apart(step: Slopes, seen: Transitions, controls: FloatArray, free: BoolArray) -> ToldApart | None:
    """Of transitions `seen`, `free` [n, d] of edges, under listed `controls`; None: it is all the motion's.

    So it counts, too, where filtering does not pay.
    """
    missed = Missed.of(step, seen, controls, free)
    sensing = tell_apart(missed, step.noise)
    if sensing is None:
        return None
    filtering = sensing.filtering(step)
    return ToldApart(sensing, filtering) if pays(missed, filtering, step.noise) else None
