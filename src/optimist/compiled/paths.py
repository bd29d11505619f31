"""Displacements between many points at once: what following paths over a whole grid spends its time on."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, inline="always")
def _shorter(difference, period):
    """The short way round; a period of 0 is none."""
    if period > 0.0:
        return difference - np.floor(difference / period + 0.5) * period
    return difference


@njit(nogil=True, cache=True)
def displace(
    points,  # [n, d]
    next_points,  # [n, d]
    uncertainty,  # [n]
    periods,  # [d], 0 where an axis is not periodic
    places,  # [n], rows of `out`
    out,  # [at least n, at least d + 1]
):
    """out[places[k]] = from point to next point, the short way round on periodic axes, and how unsure."""
    n_dims = points.shape[1]
    for k in range(points.shape[0]):
        row = places[k]
        for q in range(n_dims):
            out[row, q] = _shorter(next_points[k, q] - points[k, q], periods[q])
        out[row, n_dims] = uncertainty[k]


@njit(nogil=True, cache=True)
def crossed(origins, points, k, widths, row, periods):
    """How far it is from origin k to point k, in widths of a row, along the axis where that is most."""
    most = 0.0
    for q in range(origins.shape[1]):
        share = abs(_shorter(points[k, q] - origins[k, q], periods[q])) / widths[row, q]
        most = max(most, share)
    return most


@njit(nogil=True, cache=True)
def carry_on(
    next_states,  # [n, d], where one more step has led
    earned,  # [n]
    ended,  # [n]
    uncertainty,  # [n], or [0]: nothing is folded in
    worth,  # discount, optimistic value
    rule,  # number of the step, of all steps, share that must be known
    widths,  # [m, d] of the cells, or [0, 0]: whatever is crossed
    periods,  # [d]
    going,  # in and out, the first n: which path, origin, state, total, counts, known
    made,  # out [m]: ends, rewards, discounts, steps of each path
):
    """Add a step to paths; those that go on are moved to the front, the others are done. How many go on."""
    discount, optimistic_value = worth
    number, hold, guessed = rule
    where, origins, states, totals, counts, known = going
    ends, rewards, discounts, held = made
    n = 0
    for k in range(next_states.shape[0]):
        row, total, count, sure = where[k], totals[k], counts[k], known[k]
        if uncertainty.size:
            unsure = uncertainty[k]
            total = total + count * ((1.0 - unsure) * earned[k] + unsure * optimistic_value)
            count = count * (1.0 - unsure) * discount
            sure = sure * (1.0 - unsure)
        else:
            total = total + count * earned[k]
            count = count * discount
        if ended[k]:
            count = 0.0
        held[row] += 1.0
        # dynamics need not mean anything beyond an end: those paths stay there
        goes_on = count != 0.0 and number < hold - 1
        if goes_on and widths.shape[0]:
            # let go, too, of what is at rest and will cross nothing, and of what is mostly guessed
            cells = crossed(origins, next_states, k, widths, row, periods)
            goes_on = cells < 1.0 and cells * hold >= number + 1.0 and sure > guessed
        if goes_on:
            for q in range(next_states.shape[1]):
                origins[n, q], states[n, q] = origins[k, q], next_states[k, q]
            where[n], totals[n], counts[n], known[n] = row, total, count, sure
            n += 1
        else:
            for q in range(next_states.shape[1]):
                ends[row, q] = next_states[k, q]
            rewards[row], discounts[row] = total, count
    return n


@njit(nogil=True, cache=True)
def along(
    states,  # [n, d]
    next_states,  # [n, d]
    low,  # [d]
    widths,  # [d]
    periodic,  # [d]
    shares,  # [s], of the way
    out,  # [s, n, d]
    near,  # out [n], which are no further than the box is wide; of the others nothing is said
):
    """Where straight ways have led after so much of them."""
    n_dims = states.shape[1]
    moved = np.empty(n_dims)
    for k in range(states.shape[0]):
        near[k] = True
        for q in range(n_dims):
            moved[q] = _shorter(next_states[k, q] - states[k, q], widths[q] if periodic[q] else 0.0)
            near[k] = near[k] and abs(moved[q]) <= widths[q]  # NaN is not
        for s in range(shares.size if near[k] else 0):
            for q in range(n_dims):
                there = states[k, q] + shares[s] * moved[q]
                if periodic[q]:
                    there -= np.floor((there - low[q]) / widths[q]) * widths[q]
                out[s, k, q] = there
