"""smooth: changes of control that cost, or that are limited, as a part of the task.

What a change costs depends on the control before it. So the last control becomes part of the state, behind
the others, one more coordinate per actuator. That is its price: the same number of nodes is shared by more
axes (101 x 101 become 57 x 57 x 57), and there is more to learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.controls import levels, require_within
from optimist.environments.spaces import action_space
from optimist.given import array_of, brief
from optimist.steps import Dynamics
from optimist.task import Task

MARGIN = (
    0.05  # of an actuator's range, beyond its bounds: a last control on a bound is nothing out of the way
)


class SmoothEnvironment(gymnasium.Wrapper[FloatArray, Any, Any, Any]):
    """An environment whose state ends with the last control; made by `smooth`."""

    task: Task

    def __init__(
        self, env: gymnasium.Env[Any, Any], bounds: Box, task: Task, cost: FloatArray | None
    ) -> None:
        super().__init__(env)
        self.task, self._bounds, self._cost = task, bounds, cost
        inner = env.observation_space
        assert isinstance(inner, gymnasium.spaces.Box)
        room = MARGIN * bounds.widths
        self.observation_space = gymnasium.spaces.Box(
            np.append(inner.low, bounds.low - room),
            np.append(inner.high, bounds.high + room),
            dtype=np.float64,
        )
        self.action_space = action_space(task)
        self._last = _rest(bounds)

    @property
    def dynamics(self) -> Dynamics | None:
        """The motion itself where it is known, the last control included."""
        known = _attribute(self.env, "dynamics")
        return None if known is None else _moved(known, self._bounds, changes=self._cost is None)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Of the state, for pictures."""
        n_inner = self.task.box.n_dims - self._bounds.n_dims
        names = _attribute(self.env, "axis_names") or [f"coordinate {axis}" for axis in range(n_inner)]
        return (*names, *(f"last control {number}" for number in range(self._bounds.n_dims)))

    @property
    def restore(self) -> Callable[[FloatArray], None] | None:
        """How to go on from a state, if the environment inside can: what resuming a run needs."""
        inner = getattr(self.env, "restore", None)
        if inner is None:
            return None

        def restored(state: FloatArray) -> None:
            n_inner = len(state) - self._bounds.n_dims
            self._last = np.array(state[n_inner:])
            inner(state[:n_inner])

        return restored

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode, with every actuator at rest."""
        state, info = self.env.reset(seed=seed, options=options)
        self._last = _rest(self._bounds)
        return np.append(state, self._last), info

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step with a control, or a change of it."""
        assert self.task.control_box is not None
        said, last = require_within(self.task.control_box, action), self._last
        control = said if self._cost is not None else _changed(last, said, self._bounds)
        state, reward, terminated, truncated, info = self.env.step(control)
        paid = float(reward)
        if self._cost is not None:
            paid -= float(((control - last) ** 2) @ self._cost)
        self._last = control
        return np.append(state, control), paid, terminated, truncated, info


def smooth(
    env: gymnasium.Env[Any, Any],
    *,
    cost: ArrayLike | None = None,
    most_change: ArrayLike | None = None,
) -> SmoothEnvironment:
    """Have changes of control cost, or limit them. One of the two must be given.

    The last control becomes part of the state, one more axis for each actuator; episodes begin at rest.

    Args:
        env: an environment that brings its task, with controls that are a box: one of ours, or of `adapt`.
        cost: what a change by 1 costs, for each actuator [k] or for all; a change by x costs x^2 times that.
        most_change: how much a control may change in a step, for each actuator [k] or for all. Then the
            actions are changes: any within these bounds.

    """
    task = env.get_wrapper_attr("task") if hasattr(env, "has_wrapper_attr") else None
    if not isinstance(task, Task) or task.control_box is None:
        raise ValueError(
            "`smooth` must be given an environment whose task has a box of controls; got "
            f"{brief(env)}. `optimist.adapt(env, ...)` makes one of any with continuous actions."
        )
    if (cost is None) == (most_change is None):
        given = "neither" if cost is None else "both"
        raise ValueError(f"`smooth` must be given `cost` or `most_change`; got {given}.")
    bounds = task.control_box
    if cost is not None:
        costs = _per_actuator("`cost`", cost, bounds)
        return SmoothEnvironment(env, bounds, _with_cost(task, bounds, costs), costs)
    most = _per_actuator("`most_change`", most_change, bounds)
    return SmoothEnvironment(env, bounds, _with_changes(task, bounds, most), None)


def _with_cost(task: Task, bounds: Box, cost: FloatArray) -> Task:
    """The task with the last control in its state, and a cost on leaving it."""
    n_inner = task.box.n_dims

    def reward(states: FloatArray, applied: FloatArray, next_states: FloatArray) -> FloatArray:
        paid = task.reward(states[:, :n_inner], applied, next_states[:, :n_inner])
        found: FloatArray = paid - ((applied - states[:, n_inner:]) ** 2) @ cost
        return found

    return replace(_remembering(task, bounds), reward=reward)


def _with_changes(task: Task, bounds: Box, most: FloatArray) -> Task:
    """The task with the last control in its state, whose actions are changes of it."""
    n_inner = task.box.n_dims

    def reward(states: FloatArray, changes: FloatArray, next_states: FloatArray) -> FloatArray:
        controls = _changed(states[:, n_inner:], changes, bounds)
        return task.reward(states[:, :n_inner], controls, next_states[:, :n_inner])

    remembering = replace(_remembering(task, bounds), reward=reward)
    return replace(remembering, controls=Box(-most, most), control_box=None)  # type: ignore[arg-type]


def _remembering(task: Task, bounds: Box) -> Task:
    n_inner, inner, room = task.box.n_dims, task.is_terminal, MARGIN * bounds.widths
    box = Box(
        np.append(task.box.low, bounds.low - room),
        np.append(task.box.high, bounds.high + room),
        np.append(task.box.periodic, np.zeros(bounds.n_dims, dtype=np.bool_)),
    )
    ends = None if inner is None else lambda states: inner(states[:, :n_inner])
    return replace(task, box=box, is_terminal=ends)


def _moved(known: Dynamics, bounds: Box, *, changes: bool) -> Dynamics:
    def dynamics(states: FloatArray, actions: FloatArray) -> FloatArray:
        n_inner = states.shape[1] - bounds.n_dims
        last = states[:, n_inner:]
        controls = _changed(last, actions, bounds) if changes else np.broadcast_to(actions, last.shape)
        return np.hstack([known(states[:, :n_inner], controls), controls])

    return dynamics


def _changed(last: FloatArray, changes: FloatArray, bounds: Box) -> FloatArray:
    """Controls after changes, within their bounds."""
    return np.clip(last + changes, bounds.low, bounds.high)


def _rest(bounds: Box) -> FloatArray:
    """Where an actuator is before anything was done: 0, or the middle.  [k]"""
    return np.array([one[len(one) // 2] for one in levels(bounds)])


def _per_actuator(name: str, given: ArrayLike | None, bounds: Box) -> FloatArray:
    found = array_of(name, given)
    if found.shape not in ((), bounds.low.shape) or not (np.isfinite(found) & (found > 0.0)).all():
        raise ValueError(
            f"{name} must be positive numbers, one for each of {bounds.n_dims} actuator(s) or one for all; "
            f"got {brief(given)}."
        )
    return np.broadcast_to(found, bounds.low.shape).copy()


def _attribute(env: gymnasium.Env[Any, Any], name: str) -> Any:
    if env.has_wrapper_attr(name):
        return env.get_wrapper_attr(name)
    return getattr(getattr(env.unwrapped, "system", None), name, None)
