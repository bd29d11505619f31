"""Where episodes are believed to end, one state and one place at a time."""

from __future__ import annotations

from math import cos, pi, sin, sqrt

from optimist.arrays import FloatArray
from optimist.box import Box


def apart(box: Box, one: FloatArray, other: FloatArray) -> float:
    """Distance in widths of the box, the short way round."""
    gaps = []
    for axis in range(box.n_dims):
        gap = abs(float(one[axis]) - float(other[axis])) / float(box.widths[axis])
        gaps.append(min(gap % 1.0, 1.0 - gap % 1.0) if box.periodic[axis] else gap)
    return sqrt(sum(gap**2 for gap in gaps))


def near_an_end(box: Box, state: FloatArray, ended: FloatArray, lived: FloatArray, reach: float) -> bool:
    """Whether the nearest end is within reach, and nearer than all who lived."""
    end = min(apart(box, state, place) for place in ended)
    return end < reach and all(apart(box, state, place) > end for place in lived)


def height(box: Box, state: FloatArray, axes: tuple[int, ...], weights: FloatArray) -> float:
    """The polynomial of a curve, outside of the box as at its edge."""
    columns = [1.0]
    for axis in axes:
        share = (float(state[axis]) - float(box.low[axis])) / float(box.widths[axis])
        turn = 2.0 * pi * float(state[axis]) / float(box.widths[axis])
        turned = [cos(turn), sin(turn)]
        columns += turned if box.periodic[axis] else [2.0 * min(max(share, 0.0), 1.0) - 1.0]
    products = [one * other for k, one in enumerate(columns) for other in columns[k:]]
    return sum(float(weight) * product for weight, product in zip(weights, products, strict=True))
