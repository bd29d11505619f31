"""What a run knows and did, as arrays to draw: maps over two axes, the path of an episode."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimist.arrays import Actions, FloatArray
from optimist.runs import EpisodeRow, Session
from optimist.transitions import Transitions
from optimist.views.plan_figure import RESOLUTION, Slice


@dataclass(frozen=True, eq=False)
class Maps:
    """What a run says of some states; None where its agent says nothing, or not yet."""

    values: FloatArray | None  # [...]
    unknown: FloatArray | None  # [...], mean over actions, 0 to 1

    @classmethod
    def of(cls, run: Session[Any], states: FloatArray) -> Maps:
        """Of `states` [n, d]."""
        values = unknown = None
        with suppress(ValueError):  # before its first plan an agent has nothing to show
            values, unknown = run.value(states), run.uncertainty(states)
        return cls(values, None if unknown is None else unknown.mean(axis=1))

    @classmethod
    def over(cls, run: Session[Any], shown: Slice, resolution: int = RESOLUTION) -> Maps:
        """Over two axes.  [resolution, resolution]"""
        found = cls.of(run, shown.lattice(run.box, resolution)[2])
        shape = (resolution, resolution)
        return cls(*(None if part is None else part.reshape(shape) for part in (found.values, found.unknown)))


def policy_of(run: Session[Any], states: FloatArray) -> Actions | None:
    """What it does in `states` [n, d], if it knows anything.  [n]"""
    with suppress(ValueError):
        return run.policy.greedy(states)
    return None


@dataclass(frozen=True, eq=False)
class Episode:
    """A recorded episode, transition by transition."""

    row: EpisodeRow
    first: int  # transitions there were before it
    states: FloatArray  # [t + 1, d]
    actions: Actions  # [t]
    rewards: FloatArray  # [t]

    @classmethod
    def of(cls, run: Session[Any], number: int | None = None) -> Episode:
        """The one of that number, from 1, or the last that ended."""
        rows = run.episodes
        seen = run.transitions if rows else ()
        if not isinstance(seen, Transitions) or not len(seen):
            what = "episodes without their transitions" if rows else "none"
            raise ValueError(f"The run must have recorded an episode that has ended; got {what}.")
        number = len(rows) if number is None else number
        if not 1 <= number <= len(rows):
            raise ValueError(f"The episode must be from 1 to {len(rows)}; got {number}.")
        row = rows[number - 1]
        first, last = row.transitions - row.steps, row.transitions
        states = np.vstack([seen.states[first:last], seen.next_states[last - 1 : last]])
        return cls(row, first, states, seen.actions[first:last], seen.rewards[first:last])
