"""Transition: one row of what was seen. Transitions: the columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import Action, Actions, BoolArray, FloatArray
from optimist.controls import nearest
from optimist.given import array_of


@dataclass(frozen=True, eq=False)
class Transition:
    """One step of an environment."""

    state: FloatArray  # [d]
    action: Action  # a number of the task's list, or the control itself [k]
    reward: float
    next_state: FloatArray  # [d]
    terminated: bool
    truncated: bool

    def goes_on_from(self, state: FloatArray) -> bool:
        """Whether `state` [d] is where it led, in the same episode."""
        return not (self.terminated or self.truncated) and np.array_equal(self.next_state, state)


@dataclass(frozen=True, eq=False)
class Transitions:
    """Many of them, checked: finite, and of one length."""

    states: FloatArray  # [n, d]
    actions: Actions  # [n], numbers of the task's list; or [n, k], the controls themselves
    rewards: FloatArray  # [n]
    next_states: FloatArray  # [n, d]
    terminated: BoolArray  # [n]
    truncated: BoolArray  # [n]
    begun: BoolArray | None = None  # [n], which begin an episode; None: as it looks

    def __post_init__(self) -> None:
        actions = np.asarray(self.actions)
        whole = np.issubdtype(actions.dtype, np.integer)
        if not whole and actions.size and actions.ndim != 2:
            raise ValueError(f"`actions` must be whole numbers; got {actions.dtype}.")
        kinds = {
            "actions": np.int64 if whole or actions.ndim != 2 else np.float64,
            "terminated": np.bool_,
            "truncated": np.bool_,
            "begun": np.bool_,
        }
        for name in self.__dataclass_fields__:
            given = getattr(self, name)
            if name == "begun" and given is None:
                continue
            if not isinstance(given, np.ndarray) or given.dtype.kind not in "biuf":
                given = array_of(f"`{name}`", given)
            column: NDArray[np.generic] = np.array(given, dtype=kinds.get(name, np.float64))
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        shape = self.states.shape
        actions = self.actions[:, 0] if self.are_controls else self.actions
        columns = [actions, self.rewards, self.terminated, self.truncated]
        columns += [] if self.begun is None else [self.begun]
        if len(shape) != 2 or self.next_states.shape != shape or any(c.shape != shape[:1] for c in columns):
            raise ValueError(
                "The columns of transitions must be states and next states [n, d] and others [n]; got "
                f"{shape}, {self.next_states.shape} and {[column.shape for column in columns]}."
            )
        for name, values in (
            ("states", self.states),
            ("next_states", self.next_states),
            ("rewards", self.rewards[:, np.newaxis]),
            ("actions", self.actions if self.are_controls else self.rewards[:, np.newaxis]),
        ):
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if bad.size:
                raise ValueError(f"`{name}` must be finite; got {values[bad[0]].tolist()} in row {bad[0]}.")
        if not self.are_controls and self.actions.size and self.actions.min() < 0:
            row = int(self.actions.argmin())
            raise ValueError(f"`actions` must not be negative; got {self.actions[row]} in row {row}.")

    @classmethod
    def of(cls, rows: Iterable[Transition]) -> Transitions:
        """The columns of at least one row."""
        listed = list(rows)
        return cls(
            states=np.array([row.state for row in listed], dtype=np.float64),
            actions=np.array([row.action for row in listed], dtype=_kind(listed)),
            rewards=np.array([row.reward for row in listed], dtype=np.float64),
            next_states=np.array([row.next_state for row in listed], dtype=np.float64),
            terminated=np.array([row.terminated for row in listed], dtype=np.bool_),
            truncated=np.array([row.truncated for row in listed], dtype=np.bool_),
        )

    @classmethod
    def stepped(cls, states: FloatArray, actions: Actions, next_states: FloatArray) -> Transitions:
        """Transitions of which only states and actions matter."""
        n = len(states)
        nothing = np.zeros(n, dtype=np.bool_)
        return cls(states, actions, np.zeros(n), next_states, nothing, nothing)

    @property
    def are_controls(self) -> bool:
        """Whether `actions` are the controls themselves."""
        return self.actions.ndim == 2 and self.actions.dtype.kind == "f"

    def controls(self, listed: FloatArray) -> FloatArray:
        """What was applied, where actions are numbers of the controls `listed` [n_actions, k].  [n, k]"""
        return np.asarray(self.actions) if self.are_controls else listed[self.actions]

    def numbered(self, listed: FloatArray) -> Transitions:
        """The same with the number of the nearest control `listed` [n_actions, k] as the action."""
        if not self.are_controls:
            return self
        return replace(self, actions=nearest(self.actions, listed))

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Which of them begin an episode: the first, those after an end, those that do not go on.  [n]"""
        if self.begun is not None:
            return self.begun
        fresh = np.ones(len(self), dtype=np.bool_)
        if len(self) > 1:
            apart = (self.states[1:] != self.next_states[:-1]).any(axis=1)
            fresh[1:] = self.terminated[:-1] | self.truncated[:-1] | apart
        return fresh

    def without(self, numbers: Collection[int]) -> Transitions:
        """All but those of these numbers (from 1). What follows them does not begin an episode by that."""
        if not numbers:
            return self
        kept = np.ones(len(self), dtype=np.bool_)
        kept[np.array(sorted(numbers), dtype=np.int64) - 1] = False
        return self.only(kept)

    def only(self, kept: BoolArray) -> Transitions:
        """Some of them [n]. What follows those left out does not begin an episode by that."""
        columns = {name: getattr(self, name)[kept] for name in self.__dataclass_fields__ if name != "begun"}
        begun = self.begins[kept]
        begun[:1] |= not begun.any()
        return replace(self, **columns, begun=begun)

    def rows(self) -> list[Transition]:
        """One by one: the opposite of `of`."""
        columns = (
            self.states, self.actions, self.rewards, self.next_states, self.terminated, self.truncated,
        )  # fmt: skip
        return [
            Transition(
                row[0],
                row[1] if self.are_controls else int(row[1]),
                float(row[2]),
                row[3],
                bool(row[4]),
                bool(row[5]),
            )
            for row in zip(*columns, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.states)


def _kind(rows: list[Transition]) -> type:
    """Of the actions of some transitions."""
    return np.int64 if not rows or isinstance(rows[0].action, int | np.integer) else np.float64
