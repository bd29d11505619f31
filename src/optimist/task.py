"""Task: all that the agent is told about the problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import Actions, BoolArray, FloatArray
from optimist.box import Box
from optimist.compiled.paths import along
from optimist.controls import checked_box, lattice
from optimist.given import (
    GivenError,
    array_of,
    brief,
    called,
    numbers,
    real,
    require_callable,
    require_kind,
    whole,
)
from optimist.shown import block

LARGEST_REWARD = 1e300  # sums of larger ones are not finite
MOST_IMAGINED = 1000  # steps of an episode that are followed in imagination
NEVER_TOLD = {"an end on the way": "learned"}  # where it comes from instead
ON_THE_WAY = np.array([1.0, 2.0]) / 3.0  # shares of a step at which ends that catch are looked for


def _called(function: object) -> str:
    """What a function is called, or says of itself."""
    said = getattr(function, "said", None) or getattr(function, "__qualname__", type(function).__name__)
    return str(said)


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
        controls: the control applied by each action, [n_actions, k]; a flat list means k = 1. Or a `Box` of
            one to three actuators: any control within its bounds may be applied. Then `controls` becomes the
            short list that is planned with, and `control_box` says the bounds.
        reward: batched reward of a transition.
        discount: in (0, 1]; 1 needs a terminal set.
        optimistic_value: the best value any state can have (the paper's V_MAX); what the planner
            believes of what it does not know. 0 when rewards are costs.
        is_terminal: batched predicate of the states that end an episode, if any do.
        max_steps: episodes are cut off after so many steps. With discount 1 it also bounds the
            values from below (a state that never terminates has no finite value otherwise).
        control_box: not to be given: `controls` is a list or a box.
        ends_catch: not to be given: whether a step that leads through an end stops there. It is learned.

    """

    box: Box
    controls: FloatArray  # [n_actions, k]; given as a list or a Box
    reward: Reward
    discount: float
    optimistic_value: float
    is_terminal: Terminal | None = None
    max_steps: int = 500
    control_box: Box | None = None  # [k]; None: nothing but the controls listed may be applied
    ends_catch: bool = False

    def __init__(
        self,
        box: Box,
        controls: ArrayLike | Box,
        reward: Reward,
        discount: float,
        optimistic_value: float,
        is_terminal: Terminal | None = None,
        max_steps: int = 500,
        control_box: Box | None = None,
        ends_catch: bool = False,
    ) -> None:
        told = (box, controls, reward, discount, optimistic_value, is_terminal, max_steps)
        given = (*told, control_box, ends_catch)
        for name, value in zip(self.__dataclass_fields__, given, strict=True):
            object.__setattr__(self, name, value)
        self._check(controls)

    def _check(self, controls: ArrayLike | Box) -> None:
        require_kind("`box`", self.box, Box)
        require_callable("`reward`", self.reward)
        if self.is_terminal is not None:
            require_callable("`is_terminal`", self.is_terminal)
        for name in ("discount", "optimistic_value"):
            object.__setattr__(self, name, real(f"`{name}`", getattr(self, name)))
        object.__setattr__(self, "max_steps", whole("`max_steps`", self.max_steps, 1))
        listed = self._listed(controls)
        listed.setflags(write=False)
        object.__setattr__(self, "controls", listed)
        if not 0.0 < self.discount <= 1.0:
            raise ValueError(f"`discount` must be in (0, 1]; got {self.discount}.")
        if self.discount == 1.0 and self.is_terminal is None:
            raise ValueError(
                "`discount` 1 must come with `is_terminal`, or no value is finite; got none. "
                "Give the states that end an episode, or a discount below 1."
            )
        if not abs(self.optimistic_value) <= LARGEST_REWARD:
            raise ValueError(f"`optimistic_value` must be finite; got {self.optimistic_value}.")

    def _listed(self, given: ArrayLike | Box) -> FloatArray:
        """The controls that are planned with; a box that was given instead is kept.  [n_actions, k]"""
        if isinstance(given, Box) and self.control_box is None:
            object.__setattr__(self, "control_box", checked_box(given))
            return lattice(given)
        if isinstance(given, list | tuple) and any(isinstance(one, Box) for one in given):
            raise ValueError(
                f"`controls` must be a list of controls or one Box, not both; got {brief(given)}. Give a Box "
                "to have any control within its bounds, a list to have those alone."
            )
        controls = array_of("`controls`", given)
        if controls.ndim == 1:
            controls = controls[:, np.newaxis]
        if controls.ndim != 2 or controls.size == 0 or not np.isfinite(controls).all():
            raise ValueError(
                "`controls` must be a non-empty list of finite controls, one row per action; "
                f"got shape {controls.shape}."
            )
        if self.control_box is not None:  # a task that is made of another one says both
            require_kind("`control_box`", self.control_box, Box)
            if not np.array_equal(controls, lattice(checked_box(self.control_box))):
                raise ValueError(
                    "`controls` must be a list or a Box, not both; got a list and `control_box`. Give the "
                    "Box as `controls` to have any control within its bounds."
                )
        return controls

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.controls.shape[0])

    def applied(self, actions: Actions) -> FloatArray:
        """The controls of actions, numbers of the list [n] or controls already [n, k].  [n, k]"""
        return actions if actions.ndim == 2 else self.controls[actions]

    def _controls_shown(self) -> str:
        if self.control_box is not None:
            ends = zip(self.control_box.low, self.control_box.high, strict=True)
            return "any of " + ", ".join(f"[{low:.4g}, {high:.4g}]" for low, high in ends)
        return "; ".join(", ".join(f"{one:.4g}" for one in row) for row in self.controls)

    @property
    def searching(self) -> bool:
        """Whether something that must be there has not been seen yet: nobody may stop learning before."""
        return False

    @property
    def most(self) -> float:
        """What no episode can exceed, as far as that is known: who earns it need not look for better."""
        return np.inf

    @property
    def imagined_steps(self) -> int:
        """How long an episode is followed in imagination: who has gone on for so long goes on."""
        return min(self.max_steps, MOST_IMAGINED)

    def unseen(self, states: FloatArray) -> FloatArray | None:
        """How little is known of what is paid around `states` [n, d]: 0 to 1 [n]; None: all is known."""
        return None

    @property
    def evidence(self) -> dict[str, str]:
        """Where each part comes from: told, found or learned, and from what."""
        return {}

    def __str__(self) -> str:
        rows = self._shown()
        lines = [f"Task of {self.box.n_dims} coordinates and {self.n_actions} actions"]
        for name, value in rows.items():
            if value is not None:
                shown = f"{value:.4g}" if isinstance(value, float) else value
                shown = np.array2string(value, precision=4) if isinstance(value, np.ndarray) else shown
                lines.append(f"  {name}: {shown} ({self.evidence.get(name, NEVER_TOLD.get(name, 'told'))})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return block(f"Task of {self.box.n_dims} coordinates and {self.n_actions} actions", self._shown())

    def _shown(self) -> dict[str, Any]:
        ends = "only after so many steps" if self.is_terminal is None else _called(self.is_terminal)
        return {
            "from": self.box.low,
            "to": self.box.high,
            "angles (axes from 0)": np.flatnonzero(self.box.periodic) if self.box.periodic.any() else None,
            "controls": self._controls_shown(),
            "reward": _called(self.reward),
            "ends": ends,
            "an end on the way": "stops a step" if self.ends_catch else None,
            "discount": self.discount,
            "optimistic value": self.optimistic_value,
            "most steps": self.max_steps,
        }

    def as_read(self, state: FloatArray) -> FloatArray:
        """An observed state as it is recorded: angles within their turn.  [d]"""
        return self.box.wrap(state)

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
            wanted = f"at most {LARGEST_REWARD:g} in size" if np.isfinite(rewards[bad[0]]) else "finite"
            raise GivenError(
                f"`reward` must be {wanted}; got {rewards[bad[0]]} at state "
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

    def caught(self, states: FloatArray, next_states: FloatArray) -> FloatArray:
        """Where steps from `states` to `next_states` [n, d] lead: no further than to an end on the way.

        Nothing is stopped unless ends catch. Steps are taken to be straight; one further than the box is wide
        is none that could be.  [n, d]
        """
        if not self.ends_catch or self.is_terminal is None:
            return next_states
        found = next_states.copy()
        ways, near = self._ways(states, next_states)
        for way in ways[::-1]:  # the first end is found last
            ended = self._ended(way, near)
            found[ended] = way[ended]
        return found

    def meets_end(self, states: FloatArray, next_states: FloatArray) -> BoolArray:
        """Which straight steps meet an end well before they are over, whether it stops them or not.  [n]"""
        ways, near = self._ways(states, next_states)
        return np.asarray(np.any([self._ended(way, near) for way in ways[:-1]], axis=0))

    def _ended(self, states: FloatArray, asked: BoolArray) -> BoolArray:
        """Which of the states [n, d] that are `asked` about are ends; nobody is asked about nothing.  [n]"""
        if asked.all() and len(asked):
            return self.terminal(states)
        ended = np.zeros(len(asked), dtype=np.bool_)
        if asked.any():
            ended[asked] = self.terminal(states[asked])
        return ended

    def catching(self, catches: bool) -> Self:
        """The same task, where ends stop steps on their way or do not."""
        if catches == self.ends_catch:
            return self
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__ | {"ends_catch": catches})
        return made

    def _ways(self, states: FloatArray, next_states: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Where straight steps are on their way, and which are steps that could be.  [2, n, d], [n]"""
        box, ways = self.box, np.empty((len(ON_THE_WAY), *next_states.shape))
        near = np.empty(len(next_states), dtype=np.bool_)
        along(states, next_states, box.low, box.widths, box.periodic, ON_THE_WAY, ways, near)
        return ways, near
