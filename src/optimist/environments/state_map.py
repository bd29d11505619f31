"""StateMap: from what an environment shows to the state, checked at every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.given import GivenError, real_numbers, told

ToState = Callable[[Any], ArrayLike]  # observation -> state [d]


@dataclass(frozen=True, eq=False)
class StateMap:
    """Observation to state: float64, of the box's length, finite, wrapped on periodic axes, not clipped.

    `function` is given a float64 array where the space is a Box, and the observation as it is elsewhere.
    """

    space: spaces.Space[Any]
    box: Box
    function: ToState | None = None

    def __call__(self, observation: Any) -> FloatArray:
        """The state that `observation` shows.  [d]"""
        seen = observation
        if isinstance(self.space, spaces.Box):
            seen = _numbers(observation, self.space.shape, "The observation")
        if self.function is None:
            return self.box.wrap(_finite(seen, "The observation"))
        try:
            answer = self.function(seen)
        except (Exception, SystemExit) as error:
            raise GivenError(f"`state` must not fail; got {told(error)}{_after(seen)}.") from error
        state = _numbers(answer, self.box.low.shape, "What `state` returns", seen)
        return self.box.wrap(_finite(state, "What `state` returns", seen))


def _numbers(value: Any, shape: tuple[int, ...], name: str, source: Any = None) -> FloatArray:
    """A float64 array of this shape without NaN, a copy."""
    try:
        array = np.array(real_numbers(value))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers; got {value!r}{_after(source)}.") from None
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}{_after(source)}.")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN; got {_shown(array)}{_after(source)}.")
    return array


def _finite(array: FloatArray, name: str, source: Any = None) -> FloatArray:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got {_shown(array)}{_after(source)}.")
    return array


def _after(source: Any) -> str:
    return "" if source is None else f" from the observation {_shown(source)}"


def _shown(value: Any) -> str:
    """One line, short even for an image."""
    if isinstance(value, np.ndarray):
        return " ".join(np.array2string(value, threshold=12, separator=", ").split())
    return repr(value)
