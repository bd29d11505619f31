"""How far states are outside a box, through the sides that are open."""

from __future__ import annotations

from numba import njit

from optimist.arrays import BoolArray, FloatArray

FAR = 1e300  # cells: from here on the share is 1


@njit(nogil=True, cache=True)
def shares_outside(
    states: FloatArray,  # [n, d]
    low: FloatArray,  # [d]
    high: FloatArray,  # [d]
    open_low: BoolArray,  # [d]
    open_high: BoolArray,  # [d]
    cells: FloatArray,  # [d], widths
    shares: FloatArray,  # out [n]: 0 inside, a half one cell beyond the edge, then towards 1
) -> None:
    """The share x / (1 + x) of every state, x cells beyond the side it is furthest outside of."""
    for k in range(states.shape[0]):
        out = 0.0
        for q in range(states.shape[1]):
            below = low[q] - states[k, q] if open_low[q] else 0.0
            above = states[k, q] - high[q] if open_high[q] else 0.0
            beyond = max(below, above) / cells[q]
            if not beyond <= out:  # what is no number is nowhere inside
                out = beyond
        shares[k] = out / (1.0 + out) if out < FAR else 1.0
