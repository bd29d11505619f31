"""Stops inside the box (a rail's end, a joint's limit), told from noise by their repeating in the same place.

Where a coordinate comes to the very same value again and again, and never goes beyond it, something holds it
there. Where it turns back again and again, far more sharply than anywhere else, something may throw it back
(a buffer, a bounce): whether there is anything that a smooth model does not explain is then asked of one.
Getting there jolts, and a smooth process that has to explain the jolt loses what it knew elsewhere. So steps
that touched a stop are kept from the smooth model (`models.gp_dynamics`), whichever coordinate the jolt
reached and whether or not they ended at the stop, and a local one speaks of them (`models.jolts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.transitions import Transitions

SAME = 1e-9  # of the width of an axis: so near is the same place
ARRIVALS = 2  # that make a stop, ...
TIMES = 3  # and times of being there, arriving or staying
TURNS = 2  # that are sharp, near the farthest place, or times at it, make it worth asking
SHARP = 2.0  # times what the course of a coordinate is bent by elsewhere, ...
BENT = 0.9  # at most, but for the rest of this quantile
MISPLACED = 0.1  # of the steps beyond a stop may have felt nothing, or as many before it something


@dataclass(frozen=True)
class Stop:
    """A place on an axis beyond which nothing goes freely."""

    axis: int
    side: int  # -1: what is below is beyond it; 1: what is above
    place: float
    hard: bool = True  # nothing is ever beyond; or it gives way, or throws back before that was seen
    unsure: float = 0.0  # how far before or behind it may be

    def beyond(self, states: FloatArray) -> FloatArray:
        """How far states [..., d] lie beyond it; negative before it.  [...]"""
        return np.asarray(self.side * (states[..., self.axis] - self.place))

    def holds(self, box: Box, states: FloatArray) -> BoolArray:
        """Which states [..., d] are at it.  [...]"""
        near = np.abs(self.beyond(states)) <= SAME * box.widths[self.axis]
        return np.asarray(near & self.hard)


def reaches(
    stop: Stop, box: Box, states: FloatArray, smooth: FloatArray, *, perhaps: bool = False
) -> BoolArray:
    """Which steps from `states` [n, d] that would lead to `smooth` [n, d] a stop has a hand in.  [n]

    It may still hold for a part of the step what is at it and comes away. Or those in which it may have one.
    """
    nearer = stop.unsure if perhaps else 0.0
    at_it = stop.beyond(states) >= -nearer - SAME * box.widths[stop.axis]
    return np.asarray(at_it | (stop.beyond(smooth) > -nearer))


def find_stops(box: Box, seen: Transitions, known: tuple[Stop, ...] = ()) -> tuple[Stop, ...]:
    """Those that hold, and those that were `known` to, unless something has gone beyond them.

    Who takes steps of one length comes to the same farthest place again without being held. So it must have
    come there from different places, or have stayed there whichever control was tried.
    """
    if not len(seen):
        return known
    found: list[Stop] = []
    for axis in map(int, np.flatnonzero(~box.periodic)):
        for side, edge in ((-1, box.low[axis]), (1, box.high[axis])):
            both = side * np.append(seen.states[:, axis], seen.next_states[:, axis])
            stop = Stop(axis, side, float(side * both.max()))
            on = stop.holds(box, seen.next_states)
            slack = SAME * box.widths[axis]
            stays = on & stop.holds(box, seen.states)
            came_from = np.sort(seen.states[on & ~stays, axis])
            cut_short = bool((np.diff(came_from) > slack).any())
            pushed = len(np.unique(seen.actions[stays], axis=0)) > 1
            inside = side * (edge - stop.place) > slack
            often = len(came_from) >= ARRIVALS and on.sum() >= TIMES
            met = inside and often and (cut_short or pushed)
            same = (one for one in known if (one.axis, one.side) == (axis, side))
            kept = [one for one in same if not one.hard or side * (stop.place - one.place) <= slack]
            found += [stop] if met else kept
    return tuple(found)


def far_from(stops: tuple[Stop, ...], box: Box, seen: Transitions) -> BoolArray:
    """Which transitions surely touched no stop: one step more would not have reached it.  [n]

    Of several lengths of a step the longest that leaves at least half of them.
    """
    far = np.ones(len(seen), dtype=np.bool_)
    for stop in stops if len(seen) else ():
        moved = np.abs(box.displacement(seen.states, seen.next_states)[:, stop.axis])
        nearest = -np.maximum(stop.beyond(seen.states), stop.beyond(seen.next_states))
        for share in (1.0, 0.9, 0.5):
            here = nearest > np.quantile(moved, share)
            if 2 * here.sum() >= len(seen):
                break
        far &= here
    return far


def find_turns(box: Box, seen: Transitions, known: tuple[Stop, ...] = ()) -> tuple[Stop, ...]:
    """Where coordinates stood or turned back sharply near their farthest place, without a `known` stop there.

    Hard are those where it was at the very same place, however it came there. If there are any, nothing else
    is found: what turns back elsewhere may do so because of them. Nor is it a turn that a known stop makes.
    """
    found = []
    told = np.zeros(len(seen), dtype=np.bool_)
    for stop in known:
        told |= stop.holds(box, seen.states) | stop.holds(box, seen.next_states)
    for axis in map(int, np.flatnonzero(~box.periodic)):
        for side in (-1, 1):
            if any((one.axis, one.side) == (axis, side) for one in known) or not len(seen):
                continue
            farthest = float(side * (side * seen.next_states[:, axis]).max())
            if not box.low[axis] < farthest < box.high[axis]:
                continue
            stop = Stop(axis, side, farthest)
            stood = stop.holds(box, seen.next_states).sum() >= TURNS
            if stood or _sharp_turns(stop, box, seen, told) >= TURNS:
                found.append(replace(stop, hard=bool(stood)))
    return tuple(stop for stop in found if stop.hard) or tuple(found)


def _sharp_turns(stop: Stop, box: Box, seen: Transitions, told: BoolArray) -> int:
    """How often the course near a place was bent back far more than elsewhere, but for what is `told` [n]."""
    moved = box.displacement(seen.states, seen.next_states)[:, stop.axis]
    goes_on = ~seen.begins[1:] & ~told[1:] & ~told[:-1]
    bends, turns = (moved[1:] - moved[:-1])[goes_on], seen.next_states[:-1][goes_on]
    near = stop.beyond(turns) > -np.abs(moved).max()
    elsewhere = np.abs(bends[~near])
    if not elsewhere.size:
        return 0
    return int((-stop.side * bends[near] > SHARP * np.quantile(elsewhere, BENT)).sum())


def place_all(
    turns: tuple[Stop, ...], box: Box, seen: Transitions, smooth: FloatArray, free: BoolArray
) -> list[Stop]:
    """Where the stops are that explain what is not `free` [n], those first that explain most.

    `smooth` [n, d] is where steps would have led. What one stop explains is no evidence of another: who
    is fast is soon at a stop, and no speed is one.
    """
    left, found = list(turns), list[Stop]()
    while left:
        tried = [_placed(turn, box, seen, smooth, free) for turn in left]
        best = int(np.argmax([count for count, _ in tried]))
        count, stop = tried[best]
        if not count:
            break
        found.append(stop)
        left.pop(best)
        rest = ~reaches(stop, box, seen.states, smooth)
        seen, smooth, free = seen.only(rest), smooth[rest], free[rest]
    return found


def _placed(turn: Stop, box: Box, seen: Transitions, smooth: FloatArray, free: BoolArray) -> tuple[int, Stop]:
    """How many steps a stop near a `turn` explains, and where it is; 0: none is there."""
    near = ~far_from((turn,), box, seen)
    fresh = np.append(True, free[:-1] | seen.begins[1:])[near]  # those that did not go on feeling it
    depths = np.maximum(turn.side * smooth, turn.side * seen.states)[near, turn.axis]
    order = np.argsort(depths)
    depths, felt = depths[order], ~free[near][order]
    n_before = np.concatenate([[0], np.cumsum(felt)])  # that felt something, of those before each cut
    n_beyond = np.concatenate([np.cumsum(~felt[::-1])[::-1], [0]])  # that felt nothing, of those behind it
    cut = int(np.argmin(n_before + n_beyond))
    n_felt, n_times = int(felt[cut:].sum()), int((felt & (fresh[order] | turn.hard))[cut:].sum())
    if n_times < TURNS or n_before[cut] + n_beyond[cut] > MISPLACED * (len(depths) - cut):
        return 0, turn
    if turn.hard:
        return n_felt, turn
    edge = max(turn.side * box.low[turn.axis], turn.side * box.high[turn.axis])
    last, first = depths[max(cut - 1, 0)], min(depths[cut], edge)  # that felt nothing, that felt something
    if last >= edge:
        return 0, turn
    place, unsure = float(turn.side * 0.5 * (last + first)), float(0.5 * (first - last))
    return n_felt, Stop(turn.axis, turn.side, place, hard=False, unsure=unsure)
