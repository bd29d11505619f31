"""Drawings of systems as data: lines, discs and areas in a plane. Whoever shows them makes pixels of them.

A system's drawing stands in its own file. `bars` draws any other: its coordinates, one below the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box

# colour-blind safe (Okabe & Ito)
INK, PALE, GROUND = "#333333", "#cccccc", "#8a8a8a"
BODY, PUSH, GOAL = "#0072b2", "#d55e00", "#009e73"

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """Straight pieces from point to point, with round ends."""

    points: Sequence[Point]
    width: float  # in the units of the plane, as all lengths here
    colour: str


@dataclass(frozen=True)
class Disc:
    """A filled circle."""

    centre: Point
    radius: float
    colour: str


@dataclass(frozen=True)
class Area:
    """A filled polygon."""

    points: Sequence[Point]
    colour: str


Shape = Line | Disc | Area
Shapes = Callable[
    [FloatArray, FloatArray | None], Sequence[Shape]
]  # of state [d] and control [k]; later on top


@dataclass(frozen=True)
class Drawing:
    """How a system looks in a state, and while a control acts on it."""

    shapes: Shapes
    low: Point  # lower left corner of what is shown
    high: Point  # upper right corner
    fps: int  # steps of the system shown in a second


def arrow(tail: Point, tip: Point, width: float) -> list[Shape]:
    """An arrow for what pushes; nothing where nothing does."""
    start, end = np.array(tail), np.array(tip)
    length = float(np.hypot(*(end - start)))
    if length < 1e-9:
        return []
    along = (end - start) / length
    across = np.array([-along[1], along[0]])
    neck = end - min(3.0 * width, length) * along
    head = [end, neck + 1.6 * width * across, neck - 1.6 * width * across]
    shaft = Line([tail, _point(neck)], width, PUSH)
    return [shaft, Area([_point(corner) for corner in head], PUSH)]


def turning(centre: Point, radius: float, angles: tuple[float, float], width: float) -> list[Shape]:
    """An arrow around `centre` from one angle to another; nothing where they are the same."""
    if abs(angles[1] - angles[0]) < 1e-9:
        return []
    around = np.linspace(*angles, 24)
    points = [(centre[0] + radius * np.cos(a), centre[1] + radius * np.sin(a)) for a in around]
    return [Line(points[:-4], width, PUSH), *arrow(points[-5], points[-1], width)]


def turned(points: Sequence[Point], angle: float, to: Point) -> list[Point]:
    """Points turned by an angle, counted against the clock, and moved."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return [(float(to[0] + cosine * x - sine * y), float(to[1] + sine * x + cosine * y)) for x, y in points]


def bars(box: Box) -> Drawing:
    """Every coordinate as a mark on a bar from one end of the box to the other."""
    count = box.n_dims

    def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
        places = (box.clip(state[np.newaxis])[0] - box.low) / box.widths
        heights = [(count - axis - 0.5) / count for axis in range(count)]
        drawn: list[Shape] = []
        for place, height in zip(places, heights, strict=True):
            at = 0.1 + 1.1333 * float(place)
            drawn += [Line([(0.1, height), (1.2333, height)], 0.012, PALE), Disc((at, height), 0.03, BODY)]
        return drawn

    return Drawing(shapes, (0.0, 0.0), (4.0 / 3.0, 1.0), fps=20)


def _point(place: FloatArray) -> Point:
    return float(place[0]), float(place[1])
