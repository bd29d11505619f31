"""Jolts: what happens where the smooth model leads beyond a stop.

A smooth model knows no stop. Where it leads beyond one, the stop had a hand in the step, and what came out is
a function of where the step would have led: how far beyond, how fast, in which position of the rest. That is
learned by small processes of their own, one for each stop and coordinate, of the steps that touched it.
Before they know better, the coordinate is held at the stop, the others go on as they would have, and what was
always the same on arriving (a velocity of 0) is so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.gp.evidence import fit_hyperparameters
from optimist.gp.inputs import Inputs
from optimist.gp.posterior import Posterior, exact_posterior
from optimist.models.stops import Stop, reaches
from optimist.transitions import Transitions

MOST = 100  # touches that are learned from, the last ones
ALWAYS = 0.01  # of a usual displacement: what differs by less on arriving is always the same
NEGLIGIBLE = 1e-6  # of a usual displacement


@dataclass(frozen=True, eq=False)
class Felt:
    """What was felt at one stop."""

    stop: Stop
    always: FloatArray  # [d], what the coordinates always are there, or NaN
    inputs: Inputs
    scales: FloatArray  # [d], of what is added
    posteriors: tuple[Posterior | None, ...]  # [d]; None: nothing is to be added

    def __call__(self, smooth: FloatArray, draws: FloatArray | None) -> FloatArray:
        """Successors of steps that would have led to `smooth`, if it errs by `draws` deviations.  [n, d]"""
        after, features = _held(self.stop, self.always, smooth), self.inputs.features(smooth)
        for axis, posterior in enumerate(self.posteriors):
            if posterior is None:
                continue
            mean, variance = posterior.predict(features)
            if draws is not None:
                mean = mean + draws[:, axis] * np.sqrt(variance)
            after[:, axis] += self.scales[axis] * mean
        if self.stop.hard:
            after[:, self.stop.axis] -= self.stop.side * np.maximum(self.stop.beyond(after), 0.0)
        return after


@dataclass(frozen=True, eq=False)
class Jolts:
    """Of all stops."""

    box: Box
    felt: tuple[Felt, ...]

    def __call__(self, states: FloatArray, smooth: FloatArray, draws: FloatArray | None = None) -> FloatArray:
        """Where steps lead that would have led to `smooth` [n, d] if there were no stops.  [n, d]"""
        for felt in self.felt:
            rows = reaches(felt.stop, self.box, states, smooth)
            if rows.any():
                smooth[rows] = felt(smooth[rows], None if draws is None else draws[rows])
        return smooth


def learn_jolts(
    stops: tuple[Stop, ...], box: Box, seen: Transitions, smooth: FloatArray, usual: FloatArray
) -> Jolts:
    """Of what was seen, and where it would have led [n, d]; a `usual` displacement [d]."""
    return Jolts(box, tuple(_felt(stop, box, seen, smooth, usual) for stop in stops))


def _felt(stop: Stop, box: Box, seen: Transitions, smooth: FloatArray, usual: FloatArray) -> Felt:
    after = seen.next_states
    at = stop.holds(box, after)
    rows = np.flatnonzero(at | reaches(stop, box, seen.states, smooth))[-MOST:]
    always = _always(after[at], usual, box.periodic)
    would, did = smooth[rows], after[rows]
    missed = box.displacement(_held(stop, always, would), did)
    inputs = Inputs.spanning(box, would)
    features, scales = inputs.features(would), np.sqrt((missed**2).sum(axis=0) / max(len(rows), 1))
    posteriors = tuple(
        _process(features, missed[:, axis] / scales[axis], inputs)
        if scales[axis] > NEGLIGIBLE * usual[axis]
        else None
        for axis in range(box.n_dims)
    )
    return Felt(stop, always, inputs, scales, posteriors)


def _always(arrived: FloatArray, usual: FloatArray, periodic: BoolArray) -> FloatArray:
    """What of states [n, d] at a stop is always the same, or NaN.  [d]"""
    if not len(arrived):
        return np.full(len(usual), np.nan)
    same = (np.ptp(arrived, axis=0) <= ALWAYS * usual) & ~periodic
    return np.where(same, arrived.mean(axis=0), np.nan)


def _held(stop: Stop, always: FloatArray, smooth: FloatArray) -> FloatArray:
    """What is foreseen before anything was learned."""
    there = np.where(np.isnan(always), smooth, always)
    there[:, stop.axis] = stop.place
    return np.where((stop.beyond(smooth) > 0.0)[:, np.newaxis], there, smooth)


def _process(features: FloatArray, targets: FloatArray, inputs: Inputs) -> Posterior:
    found = fit_hyperparameters(features, targets, inputs.axes)
    return exact_posterior(features, targets, found.hyperparameters)
