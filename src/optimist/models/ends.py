"""Ends: where episodes end, learned from those that did.

Most ends are thresholds on one coordinate or two: a rail that stops, a pole that has fallen, a goal line. As
few sides as can be are found that have all ends beyond them and nobody alive. Sides that explain the same
ends equally well are all believed: one that is wrong is crossed sooner or later, and believed no more.
Failures are feared on the other side of a symmetric axis, too, until somebody lived there. What no side
explains may lie beyond a curve (`curves`), a goal beyond all likely ones of few terms; what none does is
known around the places where it happened, a failure in all coordinates, a goal in the two that tell it best.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.box import Box
from optimist.compiled.ends import near_ends
from optimist.models.curves import Agreed, Curve, agreed_curves, learn_curve
from optimist.transitions import Transitions

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

REACH = 0.1  # of the box: an end says nothing of places further away
BOTH = 2.01  # reaches: from an end to somebody who lived within reach of the same place, at most
CAUTION = 0.1  # of the gap between the last who lived and the first who did not: where a failure begins
LIKELY = 0.2  # of how likely the most likely side is: less likely ones that explain the same are luck
ANYWHERE, ANYWHERE_SEED = 4096, 0  # places, to compare how much of the box is believed to end an episode
FEW_SIDES = 0.5  # sides for each end that they explain, besides the first: with more they are luck


@dataclass(frozen=True)
class Side:
    """sign * coordinate >= bound ends an episode."""

    axis: int
    sign: float
    bound: float
    n_ends: int

    def beyond(self, states: FloatArray) -> BoolArray:
        """Which of `states` [n, d] lie there.  [n]"""
        return np.asarray(self.sign * states[:, self.axis] >= self.bound)

    def __str__(self) -> str:
        relation = ">=" if self.sign > 0 else "<="
        return f"coordinate {self.axis} {relation} {self.sign * self.bound:.4g}"


@dataclass(frozen=True, eq=False)
class Ends:
    """Where episodes are believed to end."""

    sides: tuple[Side, ...]
    near: Near | None
    n_ends: int
    curve: Curve | Agreed | None = None
    # what was asked last, and the answer: what a step pays and whether it ends an episode is asked one after
    # the other, of the same states
    _last: list[tuple[FloatArray, BoolArray]] = field(default_factory=list, init=False, repr=False)

    def __call__(self, states: FloatArray) -> BoolArray:
        """Which of `states` [n, d] end an episode.  [n]"""
        if self.near is None and self.curve is None:
            return self._beyond(states)
        for asked, answer in self._last:
            if np.array_equal(asked, states):
                return answer.copy()
        answer = self._beyond(states)
        self._last[:] = [(states.copy(), answer)]
        return answer.copy()

    def _beyond(self, states: FloatArray) -> BoolArray:
        ended = np.zeros(len(states), dtype=np.bool_)
        for side in self.sides:
            ended |= side.beyond(states)
        for others in (self.near, self.curve):
            if others is not None:
                ended |= others(states)
        return ended

    @property
    def said(self) -> str:
        """For `print(task)`."""
        parts = [str(side) for side in self.sides]
        parts += [] if self.curve is None else [str(self.curve)]
        parts += [] if self.near is None else [f"near {self.near.n_ends} places"]
        return " or ".join(parts)


@dataclass(frozen=True, eq=False)
class AllEnds:
    """Ends of several kinds."""

    kinds: tuple[Ends, ...]

    def __call__(self, states: FloatArray) -> BoolArray:
        """Which of `states` [n, d] end an episode, in whatever way.  [n]"""
        return np.asarray(np.any([kind(states) for kind in self.kinds], axis=0))

    @property
    def n_ends(self) -> int:
        """How many were seen."""
        return sum(kind.n_ends for kind in self.kinds)

    @property
    def said(self) -> str:
        """For `print(task)`."""
        return "; or ".join(kind.said for kind in self.kinds)


@dataclass(frozen=True, eq=False)
class Near:
    """Ends that no side explains: where the nearest place that is known ended an episode."""

    box: Box
    axes: IntArray  # [k], the coordinates that are looked at
    ended: FloatArray  # [n_ends, k], in widths of the box
    lived: FloatArray  # [n, k], the same: those so near to an end that they matter

    @classmethod
    def of(cls, box: Box, axes: IntArray, ended: FloatArray, lived: FloatArray) -> Near:
        """Of places that `ended` [n_ends, d] an episode, and others where somebody `lived` [n, d]."""
        ends, lives = (np.ascontiguousarray(scaled(box, places)[:, axes]) for places in (ended, lived))
        made = cls(box, axes, ends, lives[:0])
        # a place within reach of an end is told apart by those who lived no further from that place
        return replace(made, lived=lives[made._within(lived, BOTH * REACH)])

    @property
    def n_ends(self) -> int:
        """How many places these are."""
        return len(self.ended)

    def __call__(self, states: FloatArray) -> BoolArray:
        """Which of `states` [n, d] are nearer to an end than to any place where somebody lived.  [n]"""
        return self._within(states, REACH)

    def _within(self, states: FloatArray, reach: float) -> BoolArray:
        found = np.empty(len(states), dtype=np.bool_)
        box, axes = self.box, self.axes
        looked_at = np.ascontiguousarray(states[:, axes])
        shape = box.low[axes], box.widths[axes], box.periodic[axes]
        near_ends(looked_at, *shape, self.ended, self.lived, reach, found)
        return found


def learn_ends(seen: Transitions, box: Box, *, failures: bool) -> Ends | None:
    """Where episodes end; None as long as none did. Whether ends are `failures` says where to draw a line."""
    if not seen.terminated.any():
        return None
    ended = seen.next_states[seen.terminated]
    lived = np.concatenate([seen.states, seen.next_states[~seen.terminated]])
    sides, explained, n_needed = _sides(ended, lived, box, failures=failures)
    if n_needed > 1 + FEW_SIDES * explained.sum():
        sides, explained = [], np.zeros(len(ended), dtype=np.bool_)
    if explained.all():
        return Ends(tuple(sides), None, len(ended))
    others = ended[~explained]
    axes = np.arange(box.n_dims) if failures else _telling(others, lived, box)
    near = Near.of(box, axes, others, lived)
    agreed = None if failures else agreed_curves(others, lived, box)
    if agreed is not None:
        anywhere = np.random.default_rng(ANYWHERE_SEED).uniform(box.low, box.high, (ANYWHERE, box.n_dims))
        if agreed(anywhere).sum() >= near(anywhere).sum():  # or they agree on next to nothing
            return Ends(tuple(sides), None, len(ended), agreed)
    curve = learn_curve(others, lived, box, failures=failures)
    if curve is not None and not curve(lived).any():
        return Ends(tuple(sides), None, len(ended), curve)
    return Ends(tuple(sides), near, len(ended))


def _telling(ended: FloatArray, lived: FloatArray, box: Box) -> IntArray:
    """The two coordinates by which places that `ended` [n, d] are furthest from all who `lived` [m, d].

    Most goals depend on few coordinates. One that is believed wrongly is looked for, not found, and believed
    no more. All coordinates where there are not more.
    """
    best, axes = 0.0, np.arange(box.n_dims)
    for two in combinations(range(box.n_dims), 2):
        some = list(two)
        part = Box(box.low[some], box.high[some], box.periodic[some])
        margin = float(tree(part, lived[:, two]).query(scaled(part, ended[:, two]))[0].min())
        if margin > best:
            best, axes = margin, np.array(two)
    return axes


def _sides(
    ended: FloatArray, lived: FloatArray, box: Box, *, failures: bool
) -> tuple[list[Side], BoolArray, int]:
    """Sides that explain `ended` [n, d], those they do [n], and how many would have done."""
    explained = np.zeros(len(ended), dtype=np.bool_)
    chosen: list[Side] = []
    n_needed = 0
    signs = [(axis, sign) for axis in map(int, np.flatnonzero(~box.periodic)) for sign in (1.0, -1.0)]
    while not explained.all():
        options = []
        for axis, sign in signs:
            last = (sign * lived[:, axis]).max()
            beyond = sign * ended[:, axis] > last
            options.append(int((beyond & ~explained).sum()))
        most = max(options, default=0)
        if most == 0:
            break
        n_needed += 1
        equals = [one for one, count in zip(signs, options, strict=True) if count == most]
        gaps = np.array([_gap(ended, lived, box, *one) for one in equals])
        for (axis, sign), gap in zip(equals, gaps, strict=True):
            if gap >= LIKELY * gaps.max():
                last, there = (sign * lived[:, axis]).max(), sign * ended[:, axis]
                beyond = there > last
                first = there[beyond].min()
                bound = last + CAUTION * (first - last) if failures else first
                chosen.append(Side(int(axis), sign, float(bound), int(beyond.sum())))
                explained |= beyond
    return chosen + (_mirrored(chosen, lived, box) if failures else []), explained, n_needed


def _gap(ended: FloatArray, lived: FloatArray, box: Box, axis: int, sign: float) -> float:
    """How much room there is for a side between who lived and who did not, in widths of the box.

    Were any place as likely as any other, that is how likely there is one. Where only those who ended
    reached an edge of the box it is that edge.
    """
    last, there = (sign * lived[:, axis]).max(), sign * ended[:, axis]
    first, edge = there[there > last].min(), sign * (box.high if sign > 0.0 else box.low)[axis]
    return 1.0 if last < edge <= first else float((first - last) / box.widths[axis])


def _mirrored(sides: list[Side], lived: FloatArray, box: Box) -> list[Side]:
    """The same on the other side of an axis that is symmetric: caution, until somebody lives there."""
    found = []
    for side in sides:
        symmetric = np.isclose(-box.low[side.axis], box.high[side.axis])
        there = [one for one in sides if (one.axis, one.sign) == (side.axis, -side.sign)]
        mirrored = Side(side.axis, -side.sign, side.bound, 0)
        if symmetric and not there and not mirrored.beyond(lived).any():
            found.append(mirrored)
    return found


def scaled(box: Box, states: FloatArray) -> FloatArray:
    """States [n, d] in widths of the box, angles within one turn."""
    points = (box.wrap(states) - box.low) / box.widths
    return np.where(box.periodic, np.mod(points, 1.0), points)


def tree(box: Box, states: FloatArray) -> cKDTree:
    """To look for neighbours of `states` [n, d] in widths of the box."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - it takes time, and few need it

    return cKDTree(scaled(box, states), boxsize=np.where(box.periodic, 1.0, 0.0))
