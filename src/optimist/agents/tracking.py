"""Tracking: where an agent believes to be, of what it has read in the episode that goes on.

A function of the readings and the filter, one reading at a time, so whoever comes back believes the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimist.arrays import FloatArray
from optimist.filtering import Belief, Filter
from optimist.task import Task
from optimist.transitions import Transition


class Tracking:
    """Of one agent."""

    def __init__(self) -> None:
        self._filtering: Filter | None = None
        self._first: Transition | None = None  # of the episode
        self._count = 0  # transitions of it that are in the belief
        self._belief: Belief | None = None

    def at(
        self, filtering: Filter | None, task: Task, episode: Sequence[Transition], reading: FloatArray
    ) -> FloatArray:
        """Where it is after `episode` so far, which led to `reading` [d].  [d]

        An episode without a transition begins here, and nothing else is known.
        """
        if filtering is None or not episode:
            return reading
        same = self._filtering is filtering and self._first is episode[0] and self._count <= len(episode)
        belief, done = (self._belief, self._count) if same else (None, 0)
        if belief is None:
            belief = filtering.begin(episode[0].state[np.newaxis])
        for row in episode[done:]:
            controls = task.applied(np.array([row.action]))
            belief = filtering.go_on(belief, controls, row.next_state[np.newaxis])
        self._filtering, self._first = filtering, episode[0]
        self._count, self._belief = len(episode), belief
        return np.asarray(filtering.states(belief)[0])
