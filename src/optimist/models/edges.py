"""Edges: which transitions they had a hand in. A smooth model does not learn from those."""

from __future__ import annotations

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.transitions import Transitions

EDGE = 1e-9  # of the width of an axis: so near counts as on the edge
USUAL = 0.9  # quantile of displacements that is called usual


def usable(box: Box, transitions: Transitions) -> BoolArray:
    """Which coordinates of which transitions to learn from: those no edge had a hand in.  [n, d]"""
    states, next_states = transitions.states, transitions.next_states
    arrived = np.zeros(len(states), dtype=np.bool_)
    touches = np.zeros(states.shape, dtype=np.bool_)
    for edge in (box.low, box.high):
        after = _on(edge, next_states, box)
        touches |= after
        arrived |= (after & ~_on(edge, states, box)).any(axis=1)
    return np.asarray(~touches & ~(arrived | transitions.terminated)[:, np.newaxis])


def usual_move(box: Box, seen: Transitions) -> FloatArray:
    """A usual displacement of each coordinate.  [d]"""
    moved = np.abs(box.displacement(seen.states, seen.next_states))
    return np.asarray(np.quantile(moved, USUAL, axis=0)) if len(seen) else np.zeros(box.n_dims)


def _on(edge: FloatArray, states: FloatArray, box: Box) -> BoolArray:
    """Whether each coordinate lies on that edge of its axis; never on a periodic one.  [n, d]"""
    return np.asarray((np.abs(states - edge) <= EDGE * box.widths) & ~box.periodic)
