"""Curves: ends beyond a curve in two coordinates (an acrobot's tip above a line, a circle around a goal).

The curve is where a polynomial of degree two is 0; of an angle it sees cosine and sine. With all its terms it
is found by logistic regression, for each two coordinates, and believed only if it foretells ends it was not
fitted to.

Most goals need two terms: a height is a sum of cosines. Of two terms few ends tell enough: all curves that
explain them are looked for, those with wide gaps between who ended and who lived are likely, and a goal is
where all of these agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.ends import beyond_curve

FEWEST = 3  # ends, for a curve of all terms
MOST_LEFT_OUT = 8
FORETOLD = 0.7  # of the ends left out
RIDGE = 1e-3
ROUNDS = 25
MOST_LIVED = 1000  # states that are looked at, those nearest to an end first
DIRECTIONS, FINER = 48, 3  # in which a gap is looked for, and how often again around the widest
TURNS = 720  # directions, to say how far a curve may be turned
LIKELY = 0.5  # of the widest gap: curves with less are luck
MOST_ENDED = 100  # ends that others are compared with, to find those nearest
JUST_BEFORE = 0.1  # of the gap: as far before the first that ended a goal begins


@dataclass(frozen=True, eq=False)
class Curve:
    """polynomial(state) >= bound ends an episode."""

    box: Box
    axes: tuple[int, ...]
    weights: FloatArray  # [p]
    bound: float
    n_ends: int

    def __call__(self, states: FloatArray) -> BoolArray:
        """Which of `states` [n, d] lie beyond.  [n]"""
        found = np.empty(len(states), dtype=np.bool_)
        beyond_curve(_columns(self.box, self.axes, states), self.weights, self.bound, found)
        return found

    def __str__(self) -> str:
        return f"beyond a curve in coordinates {' and '.join(map(str, self.axes))}"


@dataclass(frozen=True, eq=False)
class Agreed:
    """Curves of which each explains all ends: an episode ends beyond all of them."""

    curves: tuple[Curve, ...]

    def __call__(self, states: FloatArray) -> BoolArray:
        """Which of `states` [n, d] lie beyond every one.  [n]"""
        found = self.curves[0](states)
        for curve in self.curves[1:]:
            rows = np.flatnonzero(found)
            if not rows.size:
                break
            found[rows] = curve(states[rows])
        return found

    def __str__(self) -> str:
        return str(self.curves[0]) if len(self.curves) == 1 else f"where {len(self.curves)} curves agree"


def polynomial(box: Box, axes: tuple[int, ...], states: FloatArray) -> FloatArray:
    """1, the coordinates and all products of two.  [n, p]"""
    table = _columns(box, axes, states).T
    rows, cols = np.triu_indices(table.shape[1])
    return np.asarray(table[:, rows] * table[:, cols])


def _columns(box: Box, axes: tuple[int, ...], states: FloatArray) -> FloatArray:
    """1 and the coordinates, of an angle cosine and sine; outside of the box as at its edge.  [c, n]

    Of places where nobody can be a curve knows nothing, and may come back there from the other side.
    """
    columns = [np.ones(len(states))]
    for axis in axes:
        if box.periodic[axis]:
            turn = 2.0 * np.pi * states[:, axis] / box.widths[axis]
            columns += [np.cos(turn), np.sin(turn)]
        else:
            place = (states[:, axis] - box.low[axis]) / box.widths[axis] * 2.0 - 1.0
            columns.append(np.clip(place, -1.0, 1.0))
    return np.array(columns)


def learn_curve(ended: FloatArray, lived: FloatArray, box: Box, *, failures: bool) -> Curve | None:
    """The curve in two coordinates that foretells most ends; None if none has all ends beyond it, alone."""
    if len(ended) < FEWEST:
        return None
    lived = _nearest(ended, lived, box)
    best: tuple[float, float, Curve] | None = None
    for axes in combinations(range(box.n_dims), 2) if box.n_dims > 1 else [(0,)]:
        tables = polynomial(box, axes, ended), polynomial(box, axes, lived)
        weights = _logistic(*tables)
        beyond, within = tables[0] @ weights, tables[1] @ weights
        if beyond.min() <= within.max():
            continue
        foretold = _foretold(*tables)
        margin = float((beyond.min() - within.max()) / (np.abs(within).mean() + 1e-12))
        bound = within.max() + (0.1 if failures else 0.5) * (beyond.min() - within.max())
        if foretold >= FORETOLD and (best is None or (foretold, margin) > best[:2]):
            best = foretold, margin, Curve(box, axes, weights, float(bound), len(ended))
    return None if best is None else best[2]


def agreed_curves(ended: FloatArray, lived: FloatArray, box: Box) -> Agreed | None:
    """Curves of two terms that have all ends beyond them, alone: the likely ones. None if there is none.

    Of every two terms there is the curve with the widest gap, and the furthest that it can be turned to
    either side while its gap stays likely.
    """
    near = _nearest(ended, lived, box)
    found: list[tuple[float, FloatArray, tuple[int, ...], FloatArray, FloatArray, FloatArray]] = []
    for axes in combinations(range(box.n_dims), 2) if box.n_dims > 1 else [(0,)]:
        terms = _terms(box, axes)
        ends, lives = (polynomial(box, axes, states) @ terms.T for states in (ended, near))
        for two in map(list, combinations(range(len(terms)), 2)):
            gap, best = _widest(ends[:, two], lives[:, two])
            if gap > 0.0:
                found.append((gap, best, axes, terms[two], ends[:, two], lives[:, two]))
    found.sort(key=lambda one: -one[0])
    curves = []
    for gap, best, of, terms, ends, lives in found:
        least = LIKELY * found[0][0]
        if gap >= least:
            for direction in [best, *_turned(best, ends, lives, least)]:
                first, last = (ends @ direction).min(), (lives @ direction).max()
                bound = float(first - JUST_BEFORE * (first - last))
                curves.append(Curve(box, of, direction @ terms, bound, len(ended)))
    likely = tuple(curve for curve in curves if not curve(lived).any())
    return Agreed(likely) if likely else None


def _terms(box: Box, axes: tuple[int, ...]) -> FloatArray:
    """What a curve may be made of, each as weights of a polynomial: coordinates, their squares, products.

    Of angles cosines and sines, also of the sum and the difference of two.  [n, p]
    """
    columns, count = [], 1
    for axis in axes:
        width = 2 if box.periodic[axis] else 1
        columns.append(list(range(count, count + width)))
        count += width
    pairs = combinations_with_replacement(range(count), 2)  # as `polynomial` has them
    places = {pair: at for at, pair in enumerate(pairs)}

    def term(*products: tuple[float, int, int]) -> FloatArray:
        weights = np.zeros(len(places))
        for weight, one, other in products:
            weights[places[min(one, other), max(one, other)]] = weight
        return weights

    found = [term((1.0, 0, one)) for mine in columns for one in mine]
    found += [term((1.0, mine[0], mine[0])) for mine in columns if len(mine) == 1]
    for mine, others in combinations(columns, 2):
        if len(mine) == len(others) == 2:
            (cos, sin), (other_cos, other_sin) = mine, others
            for sign in (1.0, -1.0):
                found.append(term((1.0, cos, other_cos), (-sign, sin, other_sin)))
                found.append(term((1.0, sin, other_cos), (sign, cos, other_sin)))
        else:
            found += [term((1.0, one, other)) for one in mine for other in others]
    return np.array(found)


def _widest(ended: FloatArray, lived: FloatArray) -> tuple[float, FloatArray]:
    """How far apart `ended` [n, 2] and `lived` [m, 2] lie in the direction [2] in which that is most.

    No entry exceeds 1, so the gap grows nowhere faster than two lengths: where it is far from any, nobody
    looks closer. One that is there in a sliver of directions only may be missed.
    """
    low, step = 0.0, 2.0 * np.pi / DIRECTIONS
    gap, best = -np.inf, np.zeros(2)
    for finer in range(1 + FINER):
        turns = low + step * np.arange(DIRECTIONS + (finer > 0))
        directions = np.array([np.cos(turns), np.sin(turns)])
        gaps = (ended @ directions).min(axis=0) - (lived @ directions).max(axis=0)
        at = int(gaps.argmax())
        if gaps[at] > gap:
            gap, best = float(gaps[at]), directions[:, at]
        if gap < -2.0 * np.sqrt(2.0) * step:
            break
        low, step = turns[at] - step, 2.0 * step / DIRECTIONS
    return gap, best


def _turned(best: FloatArray, ended: FloatArray, lived: FloatArray, least: float) -> list[FloatArray]:
    """How far the direction of the widest gap, `best` [2], can be turned either way and leave `least`."""
    turns = np.arctan2(best[1], best[0]) + 2.0 * np.pi / TURNS * np.arange(TURNS)
    directions = np.array([np.cos(turns), np.sin(turns)])
    wide = (ended @ directions).min(axis=0) - (lived @ directions).max(axis=0) >= least
    one_way, other_way = (int(np.append(way, False).argmin()) for way in (wide[1:], wide[:0:-1]))
    return [directions[:, turn] for turn in (one_way, -other_way) if turn]


def _nearest(ended: FloatArray, lived: FloatArray, box: Box) -> FloatArray:
    if len(lived) <= MOST_LIVED:
        return lived
    apart = np.full(len(lived), np.inf)
    for one in ended[:: max(1, len(ended) // MOST_ENDED)]:
        steps = box.displacement(lived, one) / box.widths
        apart = np.minimum(apart, (steps**2).sum(axis=1))
    near = np.argsort(apart, kind="stable")
    others = near[MOST_LIVED // 2 :]
    spread = others[:: max(1, len(others) // (MOST_LIVED // 2))]
    return np.asarray(lived[np.concatenate([near[: MOST_LIVED // 2], spread])])


def _foretold(ended: FloatArray, lived: FloatArray) -> float:
    """The share of ends, some left out one at a time, that lie beyond the curve of the others."""
    numbers = np.unique(np.linspace(0, len(ended) - 1, MOST_LEFT_OUT).astype(np.int64))
    hits = 0
    for number in numbers:
        weights = _logistic(np.delete(ended, number, axis=0), lived)
        hits += bool(ended[number] @ weights > (lived @ weights).max())
    return hits / len(numbers)


def _logistic(ended: FloatArray, lived: FloatArray) -> FloatArray:
    """Weights of logistic regression by Newton's method, both classes counting the same.  [p]"""
    table = np.vstack([ended, lived])
    signs = np.repeat([1.0, 0.0], [len(ended), len(lived)])
    counts = np.repeat([0.5 / len(ended), 0.5 / len(lived)], [len(ended), len(lived)])
    ridge = RIDGE / len(table) * np.eye(table.shape[1])
    weights = np.zeros(table.shape[1])
    for _ in range(ROUNDS):
        said = 1.0 / (1.0 + np.exp(-np.clip(table @ weights, -30.0, 30.0)))
        slope = table.T @ (counts * (said - signs)) + ridge @ weights
        curvature = (
            table * (counts * np.maximum(said * (1.0 - said), 1e-6))[:, np.newaxis]
        ).T @ table + ridge
        step = np.linalg.solve(curvature, slope)
        weights = weights - step / max(1.0, float(np.abs(table @ step).max()) / 5.0)
    return weights
