"""Box: the hyperrectangle the states live in, with some axes periodic (angles)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import BoolArray, FloatArray
from optimist.given import array_of, brief

MAX_DIMS = 6
NARROWEST, WIDEST = 1e-290, 1e290  # of an axis: what is divided by its width stays finite

FARTHEST = 10.0  # widths outside of a box: further away nothing can be planned


@dataclass(frozen=True, eq=False)
class Box:
    """A hyperrectangle [low, high] in 1 to 6 dimensions.

    On a periodic axis `high` is the same place as `low`; such coordinates are wrapped into
    [low, high) instead of being clipped.

    >>> Box([-1.0, -3.14], [1.0, 3.14], periodic=[False, True]).n_dims
    2
    """

    low: FloatArray  # [d]
    high: FloatArray  # [d]
    periodic: BoolArray  # [d]

    def __init__(
        self, low: ArrayLike, high: ArrayLike, periodic: Sequence[bool] | BoolArray | None = None
    ) -> None:
        lows, highs = array_of("`low`", low), array_of("`high`", high)
        if lows.ndim != 1 or lows.shape != highs.shape or not 1 <= lows.size <= MAX_DIMS:
            raise ValueError(
                f"`low` and `high` must be two lists of equal length from 1 to {MAX_DIMS}; "
                f"got shapes {lows.shape} and {highs.shape}."
            )
        if not (np.isfinite(lows).all() and np.isfinite(highs).all() and (lows < highs).all()):
            raise ValueError(
                "`low` must be finite and below `high` on every axis; "
                f"got low {lows.tolist()} and high {highs.tolist()}."
            )
        with np.errstate(over="ignore"):
            widths = highs - lows
        if not ((widths >= NARROWEST) & (widths <= WIDEST)).all():
            raise ValueError(
                f"`low` and `high` must be {NARROWEST} to {WIDEST} apart on every axis; "
                f"got {widths.tolist()}."
            )
        flags = np.zeros(lows.size, dtype=np.bool_)
        if periodic is not None:
            said = array_of("`periodic`", periodic)
            if not np.isin(said, (0.0, 1.0)).all():
                raise ValueError(f"`periodic` must be true or false on every axis; got {brief(periodic)}.")
            flags = said.astype(np.bool_)
        if flags.shape != lows.shape:
            raise ValueError(f"`periodic` must have one entry per axis ({lows.size}); got {flags.size}.")
        for name, value in (("low", lows), ("high", highs), ("periodic", flags)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box)
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
            and np.array_equal(self.periodic, other.periodic)
        )

    def __hash__(self) -> int:
        return hash((self.low.tobytes(), self.high.tobytes(), self.periodic.tobytes()))

    @property
    def n_dims(self) -> int:
        """Number of axes."""
        return int(self.low.size)

    @property
    def widths(self) -> FloatArray:
        """Extent of each axis; on a periodic axis, the period.  [d]"""
        return self.high - self.low

    @property
    def periods(self) -> FloatArray:
        """Of each axis, 0 where it is not periodic, as compiled code reads it.  [d]"""
        return np.where(self.periodic, self.widths, 0.0)

    def narrowed(self, limits: ArrayLike) -> Box:
        """What of the box lies within +- `limits` [d]; periodic axes stay whole."""
        bounds = np.where(self.periodic, np.inf, np.asarray(limits, dtype=np.float64))
        if not ((bounds > self.low) & (-bounds < self.high)).all():
            raise ValueError(f"`limits` must leave some of the box; got {np.asarray(limits).tolist()}.")
        return Box(np.maximum(self.low, -bounds), np.minimum(self.high, bounds), self.periodic)

    def wrap(self, points: FloatArray) -> FloatArray:
        """Bring periodic coordinates into [low, high); leave the others alone."""
        wrapped = np.array(points, dtype=np.float64)
        for axis, low, high, width in self._turns:
            turned = np.mod(wrapped[..., axis] - low, width)
            turned += low
            # mod of a tiny negative number rounds up to the period itself
            wrapped[..., axis] = np.where(turned >= high, low, turned)
        return wrapped

    @cached_property
    def _turns(self) -> list[tuple[int, float, float, float]]:
        """Of each periodic axis where it begins and ends, and its period."""
        ends = self.low.tolist(), self.high.tolist(), self.widths.tolist()
        return [(axis, *(end[axis] for end in ends)) for axis in np.flatnonzero(self.periodic).tolist()]

    def clip(self, points: FloatArray) -> FloatArray:
        """The nearest point inside the box: wrapped on periodic axes, clipped on the others."""
        return np.clip(self.wrap(points), self.low, self.high)

    def contains(self, points: FloatArray) -> BoolArray:
        """Whether each point is inside; periodic axes never put a point outside."""
        points = np.asarray(points, dtype=np.float64)
        inside = (points >= self.low) & (points <= self.high)
        return np.asarray((inside | (self.periodic & np.isfinite(points))).all(axis=-1))

    def near(self, points: FloatArray) -> BoolArray:
        """Which points [..., d] are in it or not too far outside for anything to be said there.  [...]"""
        with np.errstate(all="ignore"):
            out = np.where(self.periodic, 0.0, np.abs(points - self.clip(points)) / self.widths)
        return np.asarray((out <= FARTHEST).all(axis=-1))

    def astray(self, points: FloatArray, offsets: FloatArray) -> FloatArray:
        """Points [..., d] moved by noise within the box. What an edge holds it goes on holding.

        A system that is stopped at an edge, or ends there, was on its way further out.
        """
        held = ~self.periodic & ((points <= self.low) | (points >= self.high))
        return self.clip(np.where(held, points, points + offsets))

    def displacement(self, states: FloatArray, next_states: FloatArray) -> FloatArray:
        """`next_states - states`, the short way round on periodic axes: in [-period/2, period/2)."""
        difference = np.asarray(next_states, dtype=np.float64) - states
        widths = self.widths
        turns = np.where(self.periodic, np.floor(difference / widths + 0.5), 0.0)
        shorter: FloatArray = difference - turns * widths
        return shorter
