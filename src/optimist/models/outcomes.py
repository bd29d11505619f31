"""Outcomes: a task of which parts are learned: what is paid, where episodes end, the box, what is possible.

What is believed is a function of what was told or found before the first transition, and of the transitions:
so an agent that is resumed, or loaded, believes the same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.found import Found
from optimist.models.ends import AllEnds, Ends, learn_ends
from optimist.models.places import Places
from optimist.models.rewards import LearnedReward, learn_reward
from optimist.task import Reward, Task, Terminal
from optimist.transitions import Transition, Transitions

ROOM = 1.25  # times what was seen, at least, on an open side
OCTAVES = 0.5  # an open side grows in steps of so many
LEAP = 0.75  # of all that was seen of a coordinate, in one step: a turn
SELDOM = 3  # times as many steps are none, at least
SLIP = 1e-6  # of a turn, beyond its ends: rounding
TURNS = (1.0, 2.0, 2.0 * np.pi, 360.0)  # in the units that people use
UNSEEN = 1.0  # half the width of an axis of which nothing was seen
EARLY = 50  # transitions after which bounds are judged, once and for all
SLIVER = 0.005  # of the bounds: who has seen no more of them by then does not believe them
LIVES = 150  # steps that an episode is followed in imagination where nothing matters but not to end
MOST = 0.95  # of all readings lie below; the others may be wrong
FREE = 0.01  # of the largest cost of a step: less is next to nothing
MISSED = 0.02  # of the spread of rewards: a larger error is a surprise ...
UNLIKELY = 6.0  # ... if it is so many times the usual one: payments may be noisy, and there will be thousands


class OpenTask(Task):
    """What is believed of a task that was not told wholly. `after` gives the next belief."""

    found: Found
    seen: Transitions | None
    learned: LearnedReward | None
    ends: Ends | AllEnds | None

    @classmethod
    def of(cls, found: Found, seen: Transitions | None = None) -> OpenTask:
        """What is believed after these transitions."""
        box = believed_box(found, seen)
        blank = cls._made(found, box, not_known_yet, None, found.optimistic_value or 0.0, seen)
        if seen is None or not len(seen):
            return blank
        learned = learn_reward(seen, box, blank.controls) if found.reward is None else None
        kinds = [] if found.is_terminal is not None or found.endless else ends_by_kind(seen, box, learned)
        ends = None if not kinds else kinds[0] if len(kinds) == 1 else AllEnds(tuple(kinds))
        terminal = found.is_terminal or ends
        if learned is not None and terminal is not None:
            where: list[Terminal] = list(kinds) or [terminal] * len(learned.jumps)
            learned = replace(learned, ends=tuple(where), jumps=learned.jumps[: len(where)])
        reward = found.reward or learned
        assert reward is not None
        value = found.optimistic_value
        value = best_possible(found, seen, learned) if value is None else value
        made = cls._made(found, box, reward, terminal, value, seen)
        made._hold(learned=learned, ends=ends)
        return made

    @classmethod
    def _made(
        cls,
        found: Found,
        box: Box,
        reward: Reward,
        terminal: Terminal | None,
        value: float,
        seen: Transitions | None,
    ) -> OpenTask:
        made = cls(
            box=box,
            controls=found.controls,
            reward=reward,
            discount=found.discount,
            optimistic_value=value,
            is_terminal=terminal,
            max_steps=found.max_steps,
        )
        made._hold(found=found, seen=seen, learned=None, ends=None)
        return made

    def _hold(self, **parts: object) -> None:
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def after(self, seen: Transitions) -> OpenTask:
        """What is believed once these transitions were seen."""
        return OpenTask.of(self.found, seen)

    def as_read(self, state: FloatArray) -> FloatArray:
        """As it is recorded: what is only believed to be an angle is left as it is, beliefs change.  [d]"""
        return self._before_all.wrap(state)

    @cached_property
    def _before_all(self) -> Box:
        """What was believed before anything was seen."""
        return believed_box(self.found, None)

    def readable(self, read: Transitions) -> Box:
        """What readings are judged by: open sides reach as far as most of what was `read`, true or not."""
        open_axes = ~(np.isfinite(self.found.low) & np.isfinite(self.found.high)) & ~self.box.periodic
        low, high = self.box.low.copy(), self.box.high.copy()
        both = np.concatenate([read.states, read.next_states])
        for axis in np.flatnonzero(open_axes):
            bottom, top = np.quantile(both[:, axis], [1.0 - MOST, MOST])
            span = top - bottom
            if np.isfinite(span) and span > 0.0:
                low[axis], high[axis] = bottom - span, top + span
        return Box(low, high, self.box.periodic)

    @property
    def searching(self) -> bool:
        """Whether nothing that was seen so far is worth anything: somewhere there must be more."""
        if self.learned is None or self.seen is None or not self.learned.flat:
            return False
        return _best_paid(self.seen) <= 0.0 and not _goal_seen(self.seen)

    def unseen(self, states: FloatArray) -> FloatArray | None:
        """How little is known of what is paid around `states` [n, d].  [n]"""
        return self._places.unseen(states) if self.searching else None

    @cached_property
    def _places(self) -> Places:
        assert self.seen is not None
        ends = self.seen.next_states[self.seen.terminated]
        return Places.of(self.box, np.concatenate([self.seen.states, ends]))

    @property
    def most(self) -> float:
        """What no episode can exceed: that of a whole one, where steps pay the same and ends do not help."""
        if not (self._pays_always or self._never_ends):
            return np.inf
        assert self.learned is not None
        whole = self.learned.level * self.imagined_steps
        return whole - 1e-9 * abs(whole)

    @property
    def _pays_always(self) -> bool:
        """Whether every step pays the same gain: then nothing matters but not to end."""
        learned = self.learned
        return (
            learned is not None
            and learned.name == "constant"
            and max(learned.jumps, default=0.0) <= 0.0
            and learned.level > 0.0
        )

    @property
    def _never_ends(self) -> bool:
        """Whether every step pays the same, and no end is known: then all plans earn the same."""
        return self.learned is not None and self.learned.name == "constant" and self.is_terminal is None

    @property
    def imagined_steps(self) -> int:
        """Where every step pays the same, who has lived so long goes on living."""
        steps = super().imagined_steps
        return min(steps, LIVES) if self._pays_always or self._never_ends else steps

    def surprised_by(self, transition: Transition) -> bool:
        """Whether an end, or what was paid, is not what was believed; or a place far outside."""
        if self.learned is None and self.ends is None and self.found.is_terminal is None:
            return True
        after = transition.next_state[np.newaxis]
        if self._pays_always and transition.terminated:
            return True  # nothing but that can go wrong
        if not self.found.endless and self.found.is_terminal is None:
            believed = self.ends is not None and bool(self.ends(after)[0])
            if believed != transition.terminated:
                return True
        if self.learned is not None:
            control = self.applied(np.array([transition.action]))
            paid = float(self.learned(transition.state[np.newaxis], control, after)[0])
            size = max(self.learned.spread, abs(transition.reward))
            if transition.terminated:
                size = max([size, *map(abs, self.learned.jumps)])
            allowed = max(MISSED * size, UNLIKELY * self.learned.error * self.learned.spread)
            return abs(paid - transition.reward) > allowed
        return False

    @property
    def evidence(self) -> dict[str, str]:
        """Where each part comes from."""
        sources = dict(self.found.sources)
        count = 0 if self.seen is None else len(self.seen)
        if self.found.reward is None:
            said = (
                "to be learned" if self.learned is None else f"learned from {self.learned.n_fitted} payments"
            )
            if self.learned is not None and self.learned.spread > 0.0:
                said += f", off by {self.learned.error:.1%} of their spread"
            sources["reward"] = said
        if self.found.is_terminal is None and not self.found.endless:
            n_ends = 0 if self.ends is None else self.ends.n_ends
            sources["ends"] = f"learned from {n_ends} ends in {count} transitions"
        if self.found.optimistic_value is None:
            sources["optimistic value"] = "learned: the best that could be, by what was paid"
        for name, bounds in (("from", self.found.low), ("to", self.found.high)):
            if not np.isfinite(bounds).all():
                sources[name] = f"found in the space, and seen in {count} transitions where it is open"
        return sources


def not_known_yet(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Before anything was paid."""
    return np.zeros(len(states))


not_known_yet.said = "not known yet"  # type: ignore[attr-defined]


def believed_box(found: Found, seen: Transitions | None) -> Box:
    """Finite sides as they were found; open ones around what was seen, with room, in steps.

    Bounds that are far wider than the first transitions are none: people write any number that is large. But
    what was told is so, whatever is seen.
    """
    low, high = found.low.copy(), found.high.copy()
    if seen is not None and len(seen) >= EARLY:
        early = np.concatenate([seen.states[:EARLY], seen.next_states[:EARLY]])
        absurd = (np.ptp(early, axis=0) < SLIVER * (high - low)) & np.isfinite(high - low) & ~found.periodic
        low[absurd & (not found.low_told)], high[absurd & (not found.high_told)] = -np.inf, np.inf
    for axis in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high))):
        bottom, top = -UNSEEN, UNSEEN
        if seen is not None and len(seen):
            values = np.concatenate([seen.states[:, axis], seen.next_states[:, axis]])
            bottom, top = _around(float(values.min()), float(values.max()))
        low[axis] = low[axis] if np.isfinite(low[axis]) else bottom
        high[axis] = high[axis] if np.isfinite(high[axis]) else top
        if not low[axis] < high[axis]:  # a side that was found, and nothing seen beyond it yet
            low[axis], high[axis] = min(low[axis], bottom), max(high[axis], top)
    periodic = found.periodic.copy()
    told = (found.low_told & np.isfinite(found.low)) | (found.high_told & np.isfinite(found.high))
    if seen is not None and len(seen) and not found.periodic_told:
        for axis in np.flatnonzero(~periodic & ~told):
            turn = _turn(seen.states[:, axis], seen.next_states[:, axis])
            if turn is not None:
                low[axis], high[axis] = turn
                periodic[axis] = True
    bounded = np.isfinite(found.low) & np.isfinite(found.high)
    low = np.where(bounded, np.maximum(low, found.low), low)
    high = np.where(bounded, np.minimum(high, found.high), high)
    return Box(low, high, periodic)


def _turn(before: FloatArray, after: FloatArray) -> tuple[float, float] | None:
    """Where a coordinate [n] begins and ends that leaps by a fixed turn from one end to the other.

    None unless it did so more than once, seldom, nothing else moves nearly as far, and all that was seen is
    one turn: who swings to and fro in steps as wide as that goes further some day.
    """
    moved = np.abs(after - before)
    leaps = moved > LEAP * max(float(np.ptp(np.concatenate([before, after]))), 1e-12)
    if leaps.sum() < 2 or (~leaps).sum() < SELDOM * leaps.sum():
        return None
    short = float(moved[~leaps].max())
    turn = float(moved[leaps].max()) + short
    if short > 0.25 * turn or float(np.ptp(moved[leaps])) > 2.0 * short:
        return None
    full = _known_turn(turn, short)
    if full is None:
        return None
    lowest, highest = min(before.min(), after.min()), max(before.max(), after.max())
    middle = round((lowest + highest) / full) * 0.5 * full
    low, high = middle - 0.5 * full, middle + 0.5 * full
    return (low, high) if low - SLIP * full <= lowest and highest <= high + SLIP * full else None


def _known_turn(turn: float, short: float) -> float | None:
    """The turn that people use nearest below about that size: of radians, degrees, or a whole one."""
    near = [full for full in TURNS if turn - 2.5 * short <= full <= turn + 0.5 * short]
    return near[-1] if near else None


def _around(lowest: float, highest: float) -> tuple[float, float]:
    """What was seen, and room around it: about 0 where that is nearly within, else about its middle."""
    span = highest - lowest
    if lowest - span <= 0.0 <= highest + span:
        half = _stepped(ROOM * max(abs(lowest), abs(highest)))
        return -half, half
    middle = 0.5 * (lowest + highest)
    step = _stepped(span) / 4.0
    middle = round(middle / step) * step
    half = _stepped(ROOM * max(highest - middle, middle - lowest))
    return middle - half, middle + half


def _stepped(size: float) -> float:
    """The next size in steps of half an octave, so that it changes seldom."""
    if size <= 0.0:
        return UNSEEN
    return float(2.0 ** (np.ceil(np.log2(size) / OCTAVES) * OCTAVES))


def _best_paid(seen: Transitions) -> float:
    """While an episode goes on."""
    live = seen.rewards[~seen.terminated]
    return float(live.max()) if live.size else 0.0


def _goal_seen(seen: Transitions) -> bool:
    """Whether some episode ended well: with no less than the usual pay, where that is no gain."""
    ended, live = seen.rewards[seen.terminated], seen.rewards[~seen.terminated]
    return bool(ended.size and (not live.size or ended.max() >= live.min()))


def ends_by_kind(seen: Transitions, box: Box, learned: LearnedReward | None) -> list[Ends]:
    """Where episodes end, for each kind of end by what it pays. Where others end is nowhere for a kind."""
    kinds = None if learned is None else learned.kinds
    if kinds is None or kinds.max() == 0:
        ends = learn_ends(seen, box, failures=ends_are_failures(seen))
        return [] if ends is None else [ends]
    found = []
    for kind in range(int(kinds.max()) + 1):
        mine = seen.terminated.copy()
        mine[mine] = kinds == kind
        others = seen.only(mine | ~seen.terminated)
        marked = replace(seen, terminated=mine)
        ends = learn_ends(marked, box, failures=ends_are_failures(others))
        assert ends is not None
        found.append(ends)
    return found


def ends_are_failures(seen: Transitions) -> bool:
    """Whether it is better not to end: where staying pays, or where an end costs more than a usual step."""
    ended, live = seen.rewards[seen.terminated], seen.rewards[~seen.terminated]
    if not live.size or not ended.size:
        return True
    if live.mean() > 0.0:
        return bool(ended.mean() <= 2.0 * live.max())
    return bool(ended.mean() < live.min())


def best_possible(found: Found, seen: Transitions, learned: LearnedReward | None) -> float:
    """The best value any state could have, by what was paid: nothing above costs, a gain for ever."""
    steps = 1.0 / (1.0 - found.discount) if found.discount < 1.0 else float(found.max_steps)
    best, most = _best_paid(seen), float(seen.rewards.max())
    if best > 0.0:
        return max(best * steps, most)
    if most > 0.0:  # a prize at an end
        return most
    size = float(np.abs(seen.rewards[~seen.terminated]).max(initial=0.0))
    if learned is None or not learned.flat or best < -FREE * size or _goal_seen(seen):
        return 0.0
    # to do nothing costs next to nothing: somewhere there must be a prize, worth any way there
    return steps * (size if size > 0.0 else 1.0)
