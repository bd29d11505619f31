"""Dynamics: a transition function, and its answers checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimist.arrays import FloatArray

# states [n, d], controls [n, k] or [1, k] -> next states [n, d]
Dynamics = Callable[[FloatArray, FloatArray], FloatArray]


def successors(dynamics: Dynamics, states: FloatArray, controls: FloatArray) -> FloatArray:
    """What `dynamics` returns, if it is finite and of the right shape.  [n, d]"""
    next_states = np.asarray(dynamics(states, controls), dtype=np.float64)
    if next_states.shape != states.shape:
        raise ValueError(
            f"The dynamics must return one state per state, shape {states.shape}; "
            f"got shape {next_states.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(next_states).all(axis=1))
    if bad.size:
        raise ValueError(
            f"The dynamics must return finite states; got {next_states[bad[0]].tolist()} "
            f"from state {states[bad[0]].tolist()} (and {bad.size - 1} more of {len(states)})."
        )
    return next_states
