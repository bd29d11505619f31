"""Task: all that the agent is told about the problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.given import (
    GivenError,
    array_of,
    called,
    numbers,
    real,
    require_callable,
    require_kind,
    whole,
)
from optimist.shown import block

LARGEST_REWARD = 1e300  # sums of larger ones are not finite


def _called(function: object) -> str:
    """What a function is called."""
    return str(getattr(function, "__qualname__", type(function).__name__))


class Reward(Protocol):
    """A batched reward: one number for every transition."""

    def __call__(self, states: FloatArray, controls: FloatArray, next_states: FloatArray, /) -> FloatArray:
        """`states` [n, d], `controls` [n, k] or [1, k], `next_states` [n, d] -> [n]."""
        ...


Terminal = Callable[[FloatArray], BoolArray]  # states [n, d] -> [n]


@dataclass(frozen=True, eq=False)
class Task:
    """What the agent knows: where the states live, what it can do, what it is paid for.

    The dynamics are not part of it: those are what the agent learns.

    Args:
        box: the states of interest. Successors outside are clipped to it, and counted.
        controls: the control applied by each action, [n_actions, k]; a flat list means k = 1.
        reward: batched reward of a transition.
        discount: in (0, 1]; 1 needs a terminal set.
        optimistic_value: the best value any state can have (the paper's V_MAX); what the planner
            believes of what it does not know. 0 when rewards are costs.
        is_terminal: batched predicate of the states that end an episode, if any do.
        max_steps: episodes are cut off after so many steps. With discount 1 it also bounds the
            values from below (a state that never terminates has no finite value otherwise).

    """

    box: Box
    controls: FloatArray  # [n_actions, k]
    reward: Reward
    discount: float
    optimistic_value: float
    is_terminal: Terminal | None = None
    max_steps: int = 500

    def __post_init__(self) -> None:
        require_kind("`box`", self.box, Box)
        require_callable("`reward`", self.reward)
        if self.is_terminal is not None:
            require_callable("`is_terminal`", self.is_terminal)
        for name in ("discount", "optimistic_value"):
            object.__setattr__(self, name, real(f"`{name}`", getattr(self, name)))
        object.__setattr__(self, "max_steps", whole("`max_steps`", self.max_steps, 1))
        controls = array_of("`controls`", self.controls)
        if controls.ndim == 1:
            controls = controls[:, np.newaxis]
        if controls.ndim != 2 or controls.size == 0 or not np.isfinite(controls).all():
            raise ValueError(
                "`controls` must be a non-empty list of finite controls, one row per action; "
                f"got shape {controls.shape}."
            )
        controls.setflags(write=False)
        object.__setattr__(self, "controls", controls)
        if not 0.0 < self.discount <= 1.0:
            raise ValueError(f"`discount` must be in (0, 1]; got {self.discount}.")
        if self.discount == 1.0 and self.is_terminal is None:
            raise ValueError(
                "`discount` 1 must come with `is_terminal`, or no value is finite; got none. "
                "Give the states that end an episode, or a discount below 1."
            )
        if not abs(self.optimistic_value) <= LARGEST_REWARD:
            raise ValueError(f"`optimistic_value` must be finite; got {self.optimistic_value}.")

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.controls.shape[0])

    def _repr_html_(self) -> str:
        ends = "only after so many steps" if self.is_terminal is None else _called(self.is_terminal)
        shown = {
            "from": self.box.low,
            "to": self.box.high,
            "angles (axes from 0)": np.flatnonzero(self.box.periodic) if self.box.periodic.any() else None,
            "controls": "; ".join(", ".join(f"{one:.4g}" for one in row) for row in self.controls),
            "reward": _called(self.reward),
            "ends": ends,
            "discount": self.discount,
            "optimistic value": self.optimistic_value,
            "most steps": self.max_steps,
        }
        return block(f"Task of {self.box.n_dims} coordinates and {self.n_actions} actions", shown)

    def rewards(self, states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        """The reward function, its answer checked.  [n]"""
        rewards = numbers("`reward`", called("`reward`", self.reward, states, controls, next_states))
        if rewards.shape != states.shape[:1]:
            raise GivenError(
                f"`reward` must return one number per state, shape {states.shape[:1]}; "
                f"got shape {rewards.shape}."
            )
        if rewards.size and not np.abs(rewards).max() <= LARGEST_REWARD:  # NaN is not, either
            bad = np.flatnonzero(~(np.abs(rewards) <= LARGEST_REWARD))
            raise GivenError(
                f"`reward` must be finite; got {rewards[bad[0]]} at state "
                f"{states[bad[0]].tolist()} (and at {bad.size - 1} more of {rewards.size})."
            )
        return rewards

    def terminal(self, states: FloatArray) -> BoolArray:
        """The terminal predicate, its answer checked; nowhere when the task has none.  [n]"""
        if self.is_terminal is None:
            return np.zeros(states.shape[0], dtype=np.bool_)
        terminal = np.asarray(called("`is_terminal`", self.is_terminal, states))
        if terminal.shape != states.shape[:1] or terminal.dtype != np.bool_:
            raise GivenError(
                f"`is_terminal` must return one bool per state, shape {states.shape[:1]}; "
                f"got shape {terminal.shape} of {terminal.dtype}."
            )
        return terminal
