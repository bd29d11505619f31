"""Filtered: acting in episodes from where they are believed to be, not from the last reading alone."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from optimist.arrays import Actions, BoolArray, FloatArray, IntArray
from optimist.filtering import Belief, Filter
from optimist.given import brief
from optimist.planning.policy import Acting
from optimist.task import Task

FOR_EVER = 2**30  # steps


class Memory(NamedTuple):
    """What is remembered of n episodes from one action to the next."""

    which: IntArray  # [n], the sight of each
    left: IntArray  # [n], how many steps it has left
    had: IntArray  # [n], and had
    readings: FloatArray  # [n, d]
    off: FloatArray  # [n, d]
    spread: FloatArray  # [n, d, d]
    controls: FloatArray  # [n, k], the last

    @classmethod
    def fresh(cls, count: int, task: Task) -> Self:
        """Nothing yet."""
        n_dims = task.box.n_dims
        off, spread = np.zeros((count, n_dims)), np.zeros((count, n_dims, n_dims))
        controls = np.zeros((count, task.controls.shape[1]))
        which, left = np.zeros(count, dtype=np.intp), np.full(count, FOR_EVER, dtype=np.intp)
        return cls(which, left, left.copy(), off.copy(), off, spread, controls)

    @classmethod
    def checked(cls, memory: object, count: int, n_sights: int, task: Task) -> Self:
        """What somebody handed back; a ValueError when it is nothing of ours."""
        fresh = cls.fresh(count, task)
        given = tuple(memory) if isinstance(memory, tuple) else ()
        sound = len(given) == len(fresh) and all(
            isinstance(part, np.ndarray) and part.shape == mine.shape and part.dtype == mine.dtype
            for part, mine in zip(given, fresh, strict=True)
        )
        if sound:
            sound = bool(
                (given[0] >= 0).all()
                and (given[0] < n_sights).all()
                and min(given[1].min(), given[2].min()) >= 0
            )
            sound = sound and all(bool(np.isfinite(part).all()) for part in given[3:])
        if not sound:
            raise ValueError(f"`state` must be what the last call returned; got {brief(memory)}.")
        return cls(*(part.copy() for part in given))

    @property
    def belief(self) -> Belief:
        """Where the episodes were."""
        return Belief(self.readings, self.off, self.spread)


def believed(
    filtering: Filter, belief: Belief, controls: FloatArray, fresh: BoolArray, readings: FloatArray
) -> Belief:
    """After `readings` [n, d], of episodes of which those `fresh` [n] begin here."""
    found = filtering.begin(np.array(readings, dtype=np.float64))
    if not fresh.all():
        on = ~fresh
        after = filtering.go_on(belief.rows(on), controls[on], readings[on])
        for whole, part in zip(found, after, strict=True):
            whole[on] = part
    return found


class Following:
    """Episodes that go on, each from where it is believed to be."""

    def __init__(self, acting: Acting, filtering: Filter, task: Task, count: int) -> None:
        self._acting, self._filtering, self._task = acting, filtering, task
        self._memory = Memory.fresh(count, task)
        self._fresh = np.ones(count, dtype=np.bool_)

    def __call__(self, states: FloatArray, episodes: IntArray) -> Actions:
        """Actions after the readings `states` [n, d] of `episodes` [n].  [n]"""
        kept = self._memory
        belief = believed(
            self._filtering,
            kept.belief.rows(episodes),
            kept.controls[episodes],
            self._fresh[episodes],
            states,
        )
        actions = self._acting(self._filtering.states(belief), episodes)
        for whole, part in zip(kept.belief, belief, strict=True):
            whole[episodes] = part
        kept.controls[episodes] = self._task.applied(actions)
        self._fresh[episodes] = False
        return actions
