"""Inputs of a Gaussian process: scaled, and angles laid out on the circle.

A periodic coordinate becomes (cos, sin) of its angle, so that the model is continuous across the seam; the
two features belong to one axis and share its precision. Their squared distance, 2 (1 - cos D), is a
function of that axis alone, so the covariance stays a product over axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box

NARROWEST = 0.02  # of the box: inputs that hardly vary are not blown up further than this


@dataclass(frozen=True, eq=False)
class Inputs:
    """From raw coordinates [n, k] to features [n, p]."""

    centres: FloatArray  # [k]
    scales: FloatArray  # [k], on a periodic axis the period over 2 pi
    periodic: BoolArray  # [k]

    @classmethod
    def spanning(cls, box: Box, points: FloatArray) -> Inputs:
        """Scaled so that `points` [n, d] fill about [-1, 1]: by what was visited, not by the box.

        A box is often drawn much wider than where a system lives; length scales are easier to find on
        the scale of the data.
        """
        low, high = box.low, box.high
        if len(points):
            low, high = points.min(axis=0), points.max(axis=0)
        halves = np.maximum(0.5 * (high - low), NARROWEST * 0.5 * box.widths)
        centres = np.where(box.periodic, 0.0, 0.5 * (low + high))
        scales = np.where(box.periodic, box.widths / (2.0 * np.pi), halves)
        return cls(centres, scales, box.periodic)

    def with_controls(self, controls: FloatArray) -> Inputs:
        """The same with control coordinates behind, scaled by their largest magnitude.  [n_actions, k]"""
        magnitudes = np.abs(controls).max(axis=0)
        magnitudes = np.where(magnitudes > 0.0, magnitudes, 1.0)
        return Inputs(
            np.append(self.centres, np.zeros(len(magnitudes))),
            np.append(self.scales, magnitudes),
            np.append(self.periodic, np.zeros(len(magnitudes), dtype=np.bool_)),
        )

    @property
    def n_axes(self) -> int:
        """Number of raw coordinates."""
        return int(self.centres.size)

    @property
    def axes(self) -> NDArray[np.int64]:
        """The axis each feature belongs to.  [p]"""
        return np.repeat(np.arange(self.n_axes), np.where(self.periodic, 2, 1))

    def of_axis(self, axis: int, positions: FloatArray) -> FloatArray:
        """Features of positions [n] along one axis.  [n, 1 or 2]"""
        scaled = (positions - self.centres[axis]) / self.scales[axis]
        if self.periodic[axis]:
            return np.column_stack([np.cos(scaled), np.sin(scaled)])
        return np.asarray(scaled[:, np.newaxis])

    def features(self, points: FloatArray) -> FloatArray:
        """Features of raw points [n, k].  [n, p]"""
        return np.hstack([self.of_axis(axis, points[:, axis]) for axis in range(self.n_axes)])
