"""Controls that may be anything within bounds: the short list that is planned with, and places between.

A box of controls is planned with as a lattice: a few levels on each actuator, its bounds and its rest among
them. Acting may take any control of the box.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.box import Box
from optimist.given import array_of, brief

MOST_ACTUATORS = 3
LEVELS = {1: 5, 2: 3, 3: 3}  # of each actuator, by how many there are: 5, 9 and 27 controls in all


def checked_box(box: Box) -> Box:
    """The box of controls, if it is one that can be planned with."""
    if box.n_dims > MOST_ACTUATORS:
        raise ValueError(
            f"A box of controls must have 1 to {MOST_ACTUATORS} actuators, since the planner tries all "
            f"combinations; got {box.n_dims}. Give `controls` as a list of the combinations that matter."
        )
    if box.periodic.any():
        raise ValueError(
            f"A box of controls must not be periodic; got {box.periodic.tolist()}. Give its bounds alone."
        )
    return box


def levels(box: Box) -> list[FloatArray]:
    """The levels of every actuator: its bounds, its rest (0, or else the middle), and places halfway."""
    count, found = LEVELS[box.n_dims], []
    for low, high in zip(box.low, box.high, strict=True):
        rest = 0.0 if low < 0.0 < high else 0.5 * (low + high)
        half = count // 2 + 1
        found.append(np.concatenate([np.linspace(low, rest, half), np.linspace(rest, high, half)[1:]]))
    return found


def lattice(box: Box) -> FloatArray:
    """All combinations of levels, the last actuator fastest: what is planned with.  [n_actions, k]"""
    return np.array(list(product(*levels(box))))


def finer(box: Box, count: int) -> list[FloatArray]:
    """`count` levels of every actuator, spread as `levels` are: those between are interpolated."""
    places = np.linspace(0.0, LEVELS[box.n_dims] - 1.0, count)
    return [np.interp(places, np.arange(len(one)), one) for one in levels(box)]


def rounded(box: Box, controls: FloatArray) -> FloatArray:
    """Controls [..., k] that survive single precision, within the box: what is chosen is what is done.

    Most environments take their actions in single precision, and the record shall say what was applied.
    """
    single = np.asarray(controls, dtype=np.float32).astype(np.float64)
    return np.clip(single, box.low, box.high)


def nearest(controls: FloatArray, listed: FloatArray) -> IntArray:
    """The number of the nearest of the controls `listed` [n_actions, k] to each of some [n, k].  [n]"""
    scale = np.maximum(np.ptp(listed, axis=0), 1e-300)
    return np.asarray((((controls[:, np.newaxis] - listed) / scale) ** 2).sum(axis=2).argmin(axis=1))


def require_within(box: Box, action: object) -> FloatArray:
    """An action as a control [k]; a ValueError when it is none, or out of bounds."""
    try:
        control = array_of("The action", action).reshape(-1)
    except ValueError:
        control = np.empty(0)
    # a bound in single precision may lie a little beyond the same in double
    slack = np.where(np.isfinite(control).all(), 1e-6, 0.0) * box.widths
    if control.size != box.n_dims or not ((control >= box.low - slack) & (control <= box.high + slack)).all():
        raise ValueError(
            f"The action must be {box.n_dims} number(s) within {box.low.tolist()} and {box.high.tolist()}; "
            f"got {brief(action)}."
        )
    return np.clip(control, box.low, box.high)
