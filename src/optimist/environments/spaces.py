"""From an environment's spaces to the box of its states and the command of each action, or to advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from optimist.arrays import BoolArray, FloatArray
from optimist.box import MAX_DIMS, Box
from optimist.controls import MOST_ACTUATORS, require_within
from optimist.given import array_of
from optimist.task import Task

# People write the largest float32 (3.4e38) when they mean "no bound".
NO_BOUND = 1e30


def find_box(
    space: spaces.Space[Any],
    *,
    low: ArrayLike | None,
    high: ArrayLike | None,
    periodic: Sequence[bool] | BoolArray | None,
    mapped: bool,
) -> Box:
    """The box of the states: what is given, else the bounds of the observation space.

    `mapped` says that states are computed from observations; the space then says nothing about them.
    """
    lows, highs = _given_bounds(low, high) if mapped else _bounds_within(space, low, high)
    if lows.size > MAX_DIMS:
        raise ValueError(
            f"The state must have at most {MAX_DIMS} coordinates, since the planner's grid grows "
            f"exponentially with them; got {lows.size}. Give `state`, a function that keeps the few that "
            "matter, with their `low` and `high`."
        )
    _require_finite(lows, highs)
    if periodic is not None and array_of("`periodic`", periodic).shape != lows.shape:
        example = [True] + [False] * (lows.size - 1)
        raise ValueError(
            f"`periodic` must have one bool per axis ({lows.size}), true for an angle; "
            f"got {np.asarray(periodic).tolist()}. For example `periodic={example}`."
        )
    return Box(lows, highs, periodic)


def action_space(task: Task, like: spaces.Space[Any] | None = None) -> spaces.Space[Any]:
    """The actions of a task: numbered ones, or the box of its controls in the shape and type of `like`."""
    box = task.control_box
    if box is None:
        return spaces.Discrete(task.n_actions)
    shape, kind = (box.low.shape, np.dtype(np.float64)) if like is None else (like.shape, like.dtype)
    assert shape is not None
    low, high = box.low.reshape(shape).astype(kind), box.high.reshape(shape).astype(kind)
    return spaces.Box(low, high, dtype=kind)  # type: ignore[arg-type]


def control_of(task: Task, action: Any) -> FloatArray:
    """The control that an action is; a ValueError when it is none of the task's.  [k]"""
    if task.control_box is not None:
        return require_within(task.control_box, action)
    if not spaces.Discrete(task.n_actions).contains(action):
        raise ValueError(f"The action must be one of 0 to {task.n_actions - 1}; got {action!r}.")
    return np.asarray(task.controls[int(action)])


def find_controls(space: spaces.Space[Any], controls: ArrayLike | Box | None) -> FloatArray | Box:
    """What may be applied: what is given, else the whole box, or 0, 1, 2, ... for discrete actions.

    [n_actions, k], or a box of k actuators.
    """
    if isinstance(space, spaces.Box):
        if controls is None or isinstance(controls, Box):
            return _control_box(space, controls)
        return _continuous_controls(space, controls)
    if isinstance(controls, Box):
        raise ValueError(
            f"`controls` must be a list where actions are numbered ({space}); got a Box. Leave it out, or "
            "give one control for each action."
        )
    if not isinstance(space, spaces.Discrete):
        raise ValueError(
            f"The actions of `env` must be Discrete or a Box; got {space}. Wrap the environment so that its "
            "actions are numbered: a `gymnasium.ActionWrapper` whose `action_space` is Discrete."
        )
    chosen = np.arange(space.n, dtype=np.float64) if controls is None else array_of("`controls`", controls)
    if chosen.ndim not in {1, 2} or len(chosen) != space.n:
        raise ValueError(
            f"`controls` must have one row per action ({space.n}); got shape {chosen.shape}. "
            "Leave it out to number the actions 0, 1, 2, ..."
        )
    return chosen.reshape(int(space.n), -1)


def find_commands(space: spaces.Space[Any], controls: FloatArray) -> list[Any]:
    """What the environment is given for each action: its own index, or the control in its own type."""
    if isinstance(space, spaces.Discrete):
        return list(np.arange(space.n) + space.start)
    return [np.array(row, dtype=space.dtype).reshape(space.shape) for row in controls]


def _control_box(space: spaces.Box, given: Box | None) -> Box:
    """The box of controls: as given, else all of the action space."""
    low, high = (bound.astype(np.float64).reshape(-1) for bound in (space.low, space.high))
    width = low.size
    if given is None:
        if width > MOST_ACTUATORS:
            raise ValueError(
                f"The actions of `env` must be 1 to {MOST_ACTUATORS} numbers to be optimised; got {space}. "
                f"Give `controls`, a list of the ones to choose from, each of {width} numbers."
            )
        if (_is_open(low) | _is_open(high)).any():
            raise ValueError(
                f"The actions of `env` must have finite bounds; got {space}. Say which are of interest: "
                f"`controls=optimist.Box(low={_fill_in(low)}, high={_fill_in(high)})`."
            )
        if not np.issubdtype(np.dtype(space.dtype), np.floating):
            raise ValueError(
                f"The actions of `env` must be real numbers to be optimised; got {space}. Give `controls`, a "
                f"list of the ones to choose from: `controls={_example(space, width)}`."
            )
        return Box(low, high)
    if given.n_dims != width:
        raise ValueError(
            f"`controls` must be a box of {width} actuator(s), as {space} asks; got {given.n_dims}."
        )
    for corner in (given.low, given.high):
        _require_possible(space, corner)
    return given


def _continuous_controls(space: spaces.Box, controls: ArrayLike) -> FloatArray:
    width = int(np.prod(space.shape))
    chosen = array_of("`controls`", controls)
    rows = chosen[:, np.newaxis] if chosen.ndim == 1 else chosen
    if rows.ndim != 2 or rows.size == 0 or rows.shape[1] != width:
        raise ValueError(
            f"`controls` must have one row per action, each of {width} number(s) as {space} asks; "
            f"got shape {chosen.shape}."
        )
    for row in rows:
        _require_possible(space, row)
    return rows


def _example(space: spaces.Box, width: int) -> str:
    if width == 1 and space.is_bounded("both"):
        return f"np.linspace({space.low.item():g}, {space.high.item():g}, 5)"
    return f"[{[-1.0] * width}, {[0.0] * width}, {[1.0] * width}]"


def _require_possible(space: spaces.Box, control: FloatArray) -> None:
    # Compared after the cast: 0.1 is above the float32 that is nearest to it, or below.
    command = control.astype(space.dtype).reshape(space.shape)
    if not ((command >= space.low) & (command <= space.high)).all():
        raise ValueError(
            f"`controls` must lie within the bounds of the action space, {space.low.tolist()} to "
            f"{space.high.tolist()}; got {control.tolist()}. The environment would cut it off silently."
        )
    if not np.allclose(command.ravel().astype(np.float64), control, rtol=1e-6):
        raise ValueError(
            f"`controls` must keep their values as {space.dtype}, the type of the action space; "
            f"got {control.tolist()}, which becomes {command.tolist()}."
        )


def _given_bounds(low: ArrayLike | None, high: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    if low is None or high is None:
        missing = " and ".join(f"`{name}`" for name, bound in (("low", low), ("high", high)) if bound is None)
        raise ValueError(
            f"{missing} must be given together with `state`, since the observation space does not bound "
            "what `state` returns; got none. Call `adapt(env, state=..., low=[...], high=[...], ...)`."
        )
    lows, highs = array_of("`low`", low), array_of("`high`", high)
    if lows.ndim != 1 or lows.shape != highs.shape:
        raise ValueError(
            "`low` and `high` must be two lists of equal length, one number per coordinate of the state; "
            f"got shapes {lows.shape} and {highs.shape}."
        )
    return lows, highs


def _bounds_within(
    space: spaces.Space[Any], low: ArrayLike | None, high: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    observed = _flat_box(space)
    lows = array_of("`low`", observed.low if low is None else low)
    highs = array_of("`high`", observed.high if high is None else high)
    for name, bounds in (("low", lows), ("high", highs)):
        if bounds.shape != observed.shape:
            raise ValueError(
                f"`{name}` must have one number per coordinate of the observation ({observed.shape[0]}); "
                f"got shape {bounds.shape}. If the state is something else, say how to compute it: `state`."
            )
    return lows, highs


def _flat_box(space: spaces.Space[Any]) -> spaces.Box:
    """The space itself, if observations can be states as they are."""
    if not isinstance(space, spaces.Box):
        raise ValueError(
            f"The observations of `env` must be one-dimensional arrays (a Box space); got {space}. "
            "Give `state`, a function from an observation to such an array, with `low` and `high`."
        )
    if len(space.shape) != 1:
        raise ValueError(
            f"The observations of `env` must be one-dimensional arrays; got shape {space.shape}. Optimist "
            "does not learn from images. If a short state can be computed from an observation, give `state`, "
            "the function that does it, with `low` and `high`."
        )
    return space


def _require_finite(lows: FloatArray, highs: FloatArray) -> None:
    unbounded = _is_open(lows) | _is_open(highs)
    if unbounded.any():
        raise ValueError(
            "The bounds of the state must be finite on every axis; got none on axis "
            f"{', '.join(map(str, np.flatnonzero(unbounded)))} (counted from 0). Say where the states of "
            f"interest lie: `adapt(env, low={_fill_in(lows)}, high={_fill_in(highs)}, ...)`."
        )


def _is_open(bounds: FloatArray) -> BoolArray:
    return np.asarray(~np.isfinite(bounds) | (np.abs(bounds) > NO_BOUND))


def _fill_in(bounds: FloatArray) -> str:
    shown = (
        "?" if missing else f"{bound:.6g}" for bound, missing in zip(bounds, _is_open(bounds), strict=True)
    )
    return f"[{', '.join(shown)}]"
