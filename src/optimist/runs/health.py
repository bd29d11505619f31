"""Health: what in a record says that the task was told wrongly. Each kind is said once, with what to do.

An agent that was told a wrong box learns another problem, and says nothing. But it shows: an angle that is
not said to be one leaps from end to end, a box in degrees is hardly used, one too small is left all the time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from optimist.box import Box
from optimist.runs.record import EpisodeRow
from optimist.task import MOST_IMAGINED
from optimist.transitions import Transitions

FEWEST = 100  # transitions to judge a box by
LEAP = 0.75  # of an axis in one step, from one end to the other
ENDS = 0.2  # of an axis: how near to its ends that is
SLIVER = 0.025  # of an axis, all that was ever visited of it
OUTSIDE = 0.3  # of the observations
RESTLESS = 10  # episodes in which it has not settled, and FOREVER transitions
FOREVER = 2000
LESS = 0.5  # of what is expected is missing, in each of the last LAST episodes
LAST = 5


class Complaint(NamedTuple):
    """Something that looks wrong."""

    kind: str
    says: str


def complaints(
    box: Box, n_actions: int, seen: Transitions | None, episodes: Sequence[EpisodeRow], *, settled: bool
) -> list[Complaint]:
    """All that looks wrong by now."""
    found = [] if n_actions > 1 else [_one_control()]
    if seen is not None and len(seen):
        found += _leaps(box, seen)
        if len(seen) >= FEWEST:
            found += [*_slivers(box, seen), *_outside(box, seen)]
        if len(seen) >= FOREVER and len(episodes) >= RESTLESS and not settled:
            found.append(_restless(len(seen)))
    return found + _disappointed(episodes)


def nothing_to_learn(seen: Transitions | None, n_episodes: int) -> str | None:
    """What to say of an environment that pays the same whatever is done, and never ends; None: nothing."""
    if seen is None or len(seen) < FEWEST or n_episodes < LAST or seen.terminated.any():
        return None
    if float(np.ptp(seen.rewards)) > 0.0:
        return None
    return (
        "An environment must pay for something, or end, or there is nothing to learn; got "
        f"{seen.rewards[0]:g} for each of {len(seen)} transitions in {n_episodes} episodes, and no end. Is "
        "it paid for something far away? More episodes go on looking for it; a reward that is told is known."
    )


class Complaining:
    """Warns of every kind once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def hear(self, found: Sequence[Complaint]) -> None:
        """Warn of what is new."""
        for complaint in found:
            if complaint.kind not in self._said:
                self._said.add(complaint.kind)
                warnings.warn(complaint.says, UserWarning, stacklevel=5)  # at the caller of `learn`


def _one_control() -> Complaint:
    return Complaint(
        "controls", "There is only one control, so nothing can be chosen. Give `controls` several."
    )


def _leaps(box: Box, seen: Transitions) -> Iterator[Complaint]:
    """From one end of an axis to the other in a single step, while other steps are short."""
    before, after = ((states - box.low) / box.widths for states in (seen.states, seen.next_states))
    moved = np.abs(after - before)
    ends = (np.minimum(np.abs(before), np.abs(1.0 - before)) < ENDS) & (
        np.minimum(np.abs(after), np.abs(1.0 - after)) < ENDS
    )
    leaps = (moved > LEAP) & (moved < 1.0 + ENDS) & ends & ~box.periodic
    for axis in np.flatnonzero(leaps.any(axis=0)):
        if np.median(moved[:, axis]) < 0.5 * LEAP:
            row = int(np.flatnonzero(leaps[:, axis])[0])
            yield Complaint(
                f"periodic {axis}",
                f"Coordinate {axis} leapt from {seen.states[row, axis]:.4g} to "
                f"{seen.next_states[row, axis]:.4g} in one step, almost the whole of its axis. If it is an "
                f"angle, say so: `periodic` must be True for it.",
            )


def _slivers(box: Box, seen: Transitions) -> Iterator[Complaint]:
    states = np.concatenate([seen.states, seen.next_states])
    low, high = np.quantile(states, [0.0, 1.0], axis=0)
    for axis in np.flatnonzero((high - low < SLIVER * box.widths) & ~box.periodic):
        yield Complaint(
            f"sliver {axis}",
            f"Coordinate {axis} has stayed between {low[axis]:.4g} and {high[axis]:.4g}, a sliver of its "
            f"axis ({box.low[axis]:.4g} to {box.high[axis]:.4g}). Is the box in other units (degrees)? "
            "Draw it where the system goes.",
        )


def _outside(box: Box, seen: Transitions) -> Iterator[Complaint]:
    out = ((seen.next_states < box.low) | (seen.next_states > box.high)) & ~box.periodic
    share = out.any(axis=1).mean()
    if share > OUTSIDE:
        axes = ", ".join(str(axis) for axis in np.flatnonzero(out.mean(axis=0) > 0.5 * share))
        yield Complaint(
            "outside",
            f"{share:.0%} of all observations lie outside of the box (coordinates: {axes}), where nothing "
            "can be planned. Draw it wider there.",
        )


def _restless(count: int) -> Complaint:
    return Complaint(
        "restless",
        f"After {count} transitions learning has not settled. Is the state complete (rates, too), and is the "
        "system without much noise? Is a coordinate an angle that was not said to be one?",
    )


def _disappointed(episodes: Sequence[EpisodeRow]) -> list[Complaint]:
    # of longer ones only the beginning was imagined
    last = [row for row in episodes if row.ending != "abandoned" and row.steps <= MOST_IMAGINED][-LAST:]
    if len(last) < LAST:
        return []
    for row in last:
        if row.expected is None or row.total_reward >= row.expected - LESS * max(abs(row.expected), 1e-9):
            return []
    return [
        Complaint(
            "disappointed",
            f"The last {LAST} episodes earned far less than expected (the last {last[-1].total_reward:.4g} "
            f"instead of {last[-1].expected:.4g}). Do `reward` and `is_terminal` say what the environment "
            "does, and is the state complete?",
        )
    ]
