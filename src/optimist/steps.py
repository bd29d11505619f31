"""Step: where one action leads from some states. The seam between whatever predicts and whatever plans.

The true dynamics (`known`), a flow over a grid and a learned model all are steps; tables, looking ahead and
the certificate ask nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.given import GivenError, called, numbers

# states [n, d], controls [n, k] or [1, k] -> next states [n, d]
Dynamics = Callable[[FloatArray, FloatArray], FloatArray]


class Successors(NamedTuple):
    """Where states lead, and how unsure that is; of all actions at once with their axis in front."""

    next_states: FloatArray  # [n, d], or [n_actions, n, d]
    uncertainty: FloatArray | None = None  # [n], or [n_actions, n]: 0 known to 1 unknown; None: all is known


Step = Callable[[FloatArray, int], Successors]  # states [n, d], number of the action


def known(dynamics: Dynamics, controls: FloatArray) -> Step:
    """The step of known dynamics, under the control [n_actions, k] of each action."""
    return lambda states, action: Successors(successors(dynamics, states, controls[action : action + 1]))


# states [n, d], controls [n, k], which of the starts each belongs to [n] -> next states [n, d]
Imagined = Callable[[FloatArray, FloatArray, IntArray], FloatArray]


NOISE_STREAM = 0x6E6F69  # purpose number of the random streams that noise is drawn from
REPEATS = 16  # paths from each start, each with noise of its own


@dataclass(frozen=True, eq=False)
class Noisy:
    """To rehearse in with noise: every start several times, each time with other noise.

    Whoever is rehearsed meets the same noise (common random numbers): what differs is what they do.
    """

    mean: Imagined
    noise: FloatArray  # [d], standard deviation of where a step leads
    seed: int = 0
    repeats: int = REPEATS
    at: Callable[[FloatArray], FloatArray] | None = None  # the same [n, d] at states [n, d], where it differs
    # so much of its spread less than what is imagined an episode will earn: what noise upsets, what the mean
    # gets wrong upsets, too; 0: the mean is true
    errs: float = 0.0

    def __call__(self, *asked: Any) -> FloatArray:
        """Where it leads in the mean.  [n, d]"""
        return self.mean(*asked)

    def astray(self, number: int, rows: IntArray, states: FloatArray) -> FloatArray:
        """That of one step from `states` [n, d] of episodes that have these `rows` [n] of it.  [n, d]"""
        noise = self.noise_of(number)[rows]
        if self.at is None:
            return noise
        return np.asarray(noise * self.at(states) / np.where(self.noise > 0.0, self.noise, 1.0))

    def noise_of(self, number: int) -> FloatArray:
        """That of one step of all episodes.  [repeats, d]"""
        stream = np.random.default_rng([self.seed, NOISE_STREAM, number])
        half = stream.standard_normal((-(-self.repeats // 2), len(self.noise)))
        return np.concatenate([half, -half])[: self.repeats] * self.noise  # in pairs, so that the mean is 0


def shaken(
    imagined: Imagined,
    noise: FloatArray | None,
    *,
    seed: int = 0,
    at: Callable[[FloatArray], FloatArray] | None = None,
    errs: float = 0.0,
) -> Imagined:
    """With `noise` [d], if there is any; `at` states it may be another, and the mean may err."""
    return imagined if noise is None or not noise.any() else Noisy(imagined, noise, seed, at=at, errs=errs)


def imagined_through(dynamics: Dynamics) -> Imagined:
    """Known dynamics, to rehearse in: there imagination is no other than the truth."""
    return lambda *asked: successors(dynamics, *asked[:2])  # of whatever start


def successors(dynamics: Dynamics, states: FloatArray, controls: FloatArray) -> FloatArray:
    """What `dynamics` returns, if it is finite and of the right shape.  [n, d]"""
    next_states = numbers("The dynamics", called("The dynamics", dynamics, states, controls))
    if next_states.shape != states.shape:
        raise GivenError(
            f"The dynamics must return one state per state, shape {states.shape}; "
            f"got shape {next_states.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(next_states).all(axis=1))
    if bad.size:
        raise GivenError(
            f"The dynamics must return finite states; got {next_states[bad[0]].tolist()} "
            f"from state {states[bad[0]].tolist()} (and {bad.size - 1} more of {len(states)})."
        )
    return next_states
