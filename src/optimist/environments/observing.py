"""Observing: which coordinates of an observation are a state: pairs on a circle are one angle, copies go.

Looked for in a few first observations, and checked at every later one: what was found by luck is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.given import brief, real_numbers

ON_CIRCLE = 1e-3  # how far from 1 the radius may be: environments compute in single precision
COPIED = 1e-4  # of the spread of a coordinate: how far a copy may be off
VARIES = 1e-9
DISTINCT = 3  # values, at least, or nothing can be said


@dataclass(frozen=True)
class Copy:
    """observation[index] = slope * observation[of] + offset."""

    index: int
    of: int
    slope: float
    offset: float
    scale: float


@dataclass(frozen=True, eq=False)
class Observing:
    """From observations [m] to states [d]."""

    n_observed: int
    circles: tuple[tuple[int, int], ...]  # cosine and sine
    copies: tuple[Copy, ...]

    @property
    def kept(self) -> list[int]:
        """Which coordinate of the observation each of the state comes from, of an angle its cosine.  [d]"""
        gone = {sine for _, sine in self.circles} | {copy.index for copy in self.copies}
        return [index for index in range(self.n_observed) if index not in gone]

    @property
    def angles(self) -> BoolArray:
        """Which coordinates of the state are angles.  [d]"""
        cosines = {cosine for cosine, _ in self.circles}
        return np.array([index in cosines for index in self.kept])

    @property
    def is_identity(self) -> bool:
        """Whether states are what is observed."""
        return not self.circles and not self.copies

    def __call__(self, observation: Any) -> FloatArray:
        """The state that `observation` [m] shows; a ValueError when it contradicts what was found.  [d]"""
        seen = flat(observation, self.n_observed)
        for cosine, sine in self.circles:
            radius = float(np.hypot(seen[cosine], seen[sine]))
            if abs(radius - 1.0) > 10.0 * ON_CIRCLE:
                raise ValueError(
                    f"Coordinates {cosine} and {sine} of the observation must lie on a circle, as they did "
                    f"at first; got a radius of {radius:.4g}. Say that they are no angle: "
                    "`optimist.find(env, state=lambda observation: observation)`."
                )
        for copy in self.copies:
            off = abs(seen[copy.index] - copy.slope * seen[copy.of] - copy.offset)
            if off > 100.0 * COPIED * copy.scale:
                raise ValueError(
                    f"Coordinate {copy.index} of the observation must follow from coordinate {copy.of}, as "
                    "it did at first; got one that does not. Say that it matters: "
                    "`optimist.find(env, state=lambda observation: observation)`."
                )
        for cosine, sine in self.circles:
            seen[cosine] = np.arctan2(seen[sine], seen[cosine])
        return np.asarray(seen[self.kept])

    def names(self) -> tuple[str, ...]:
        """Of the coordinates of the state, after those of the observation."""
        kinds = zip(self.kept, self.angles, strict=True)
        return tuple(f"{'angle' if angle else 'coordinate'} {index}" for index, angle in kinds)

    def told(self) -> list[str]:
        """What was found, one sentence each."""
        said = [f"coordinates {c} and {s} lie on a circle: one angle" for c, s in self.circles]
        return said + [f"coordinate {one.index} follows from {one.of}: left out" for one in self.copies]


def find_observing(first: FloatArray, low: FloatArray, high: FloatArray) -> Observing:
    """What first observations [n, m] of several episodes, and the bounds [m] of their space, tell."""
    count = first.shape[1]
    varies = [len(np.unique(first[:, index])) >= DISTINCT for index in range(count)]
    circles: list[tuple[int, int]] = []
    for gap in range(1, count):  # neighbours first
        for one in range(count - gap):
            other = one + gap
            taken = {index for pair in circles for index in pair}
            if one in taken or other in taken or not (varies[one] and varies[other]):
                continue
            if not all(_may_be_unit(low[index], high[index]) for index in (one, other)):
                continue
            radius = np.hypot(first[:, one], first[:, other])
            if np.abs(radius - 1.0).max() <= ON_CIRCLE:
                circles.append((one, other))
    paired = {index for pair in circles for index in pair}
    copies: list[Copy] = []
    for index in range(count):
        gone = {copy.index for copy in copies}
        for of in range(index):
            if {index, of} & paired or of in gone or not (varies[index] and varies[of]):
                continue
            slope, offset = np.polyfit(first[:, of], first[:, index], 1)
            scale = float(np.ptp(first[:, index]))
            if np.abs(slope * first[:, of] + offset - first[:, index]).max() <= COPIED * scale:
                copies.append(Copy(index, of, float(slope), float(offset), scale))
                break
    return Observing(count, tuple(circles), tuple(copies))


def _may_be_unit(low: float, high: float) -> bool:
    """Whether a cosine may have such bounds: those of one, or none."""
    within = abs(low + 1.0) < 1e-3 and abs(high - 1.0) < 1e-3
    return within or not (np.isfinite(low) or np.isfinite(high))


def flat(observation: Any, count: int) -> FloatArray:
    """An observation as numbers; a ValueError when it is none.  [m]"""
    try:
        seen = np.array(real_numbers(observation))
    except (TypeError, ValueError):
        raise ValueError(f"An observation must be an array of numbers; got {brief(observation)}.") from None
    if seen.shape != (count,) or not np.isfinite(seen).all():
        raise ValueError(f"An observation must be {count} finite numbers; got {brief(seen.tolist())}.")
    return seen
