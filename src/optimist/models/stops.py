"""Stops inside the box (a rail's end, a joint's limit), told from noise by their repeating in the same place.

Where a coordinate comes to the very same value again and again, and never goes beyond it, something holds it
there. Getting there jolts, and a smooth process that has to explain the jolt loses what it knew elsewhere. So
a stop is treated as the edge of the box is: what arrives there is not learned from. What is then predicted
beyond it is moved to it, and what always was the same on arriving there (a velocity of 0) is predicted so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.transitions import Transitions

SAME = 1e-9  # of the width of an axis: so near is the same place
ARRIVALS = 2  # that make a stop, ...
TIMES = 3  # and times of being there, arriving or staying
ALWAYS = 0.01  # of a usual displacement: what differs by less on arriving is always the same
MOVING = 0.9  # quantile of displacements that is called usual


@dataclass(frozen=True, eq=False)
class Stops:
    """Where coordinates are held. Where they are not, the limits are infinite."""

    low: FloatArray  # [d]
    high: FloatArray  # [d]
    at_low: FloatArray  # [d, d], of the stop of each axis: what the coordinates always are there, or NaN
    at_high: FloatArray  # [d, d]

    def __call__(self, next_states: FloatArray) -> FloatArray:
        """Predicted states [..., d], those beyond a stop moved to it."""
        for beyond, limits, there in (
            (next_states < self.low, self.low, self.at_low),
            (next_states > self.high, self.high, self.at_high),
        ):
            for axis in np.flatnonzero(np.isfinite(limits)):
                rows = beyond[..., axis]
                for other in np.flatnonzero(np.isfinite(there[axis])):
                    next_states[rows, other] = there[axis, other]
                next_states[rows, axis] = limits[axis]
        return next_states


def find_stops(box: Box, seen: Transitions) -> Stops | None:
    """Those that were met; None if there are none."""
    limits = {side: np.full(box.n_dims, side * np.inf) for side in (-1, 1)}
    there = {side: np.full((box.n_dims,) * 2, np.nan) for side in (-1, 1)}
    states, after = seen.states, seen.next_states
    if not len(seen):
        return None
    usual = np.quantile(np.abs(box.displacement(states, after)), MOVING, axis=0)
    for axis in np.flatnonzero(~box.periodic):
        slack = SAME * box.widths[axis]
        for side, edge in ((-1, box.low[axis]), (1, box.high[axis])):
            farthest = side * max((side * states[:, axis]).max(), (side * after[:, axis]).max())
            on: BoolArray = np.abs(after[:, axis] - farthest) <= slack
            arrived = on & (np.abs(states[:, axis] - farthest) > slack)
            inside = side * (edge - farthest) > slack
            if not inside or arrived.sum() < ARRIVALS or on.sum() < TIMES:
                continue
            limits[side][axis] = farthest
            spread = np.ptp(after[arrived], axis=0)
            same = (spread <= ALWAYS * usual) & ~box.periodic
            same[axis] = False
            there[side][axis, same] = after[arrived][:, same].mean(axis=0)
    if not (np.isfinite(limits[-1]).any() or np.isfinite(limits[1]).any()):
        return None
    return Stops(limits[-1], limits[1], there[-1], there[1])
