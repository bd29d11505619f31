"""find: an environment nobody said anything about, as one that Optimist can learn.

What its spaces say and what a few episodes begin with is looked at; nothing is stepped. What cannot be found
like that (what is paid, where episodes end, how far open sides reach) is left to be learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from optimist.arrays import BoolArray, FloatArray
from optimist.box import MAX_DIMS, Box
from optimist.environments.adapter import require_one_environment
from optimist.environments.observing import Observing, find_observing, flat
from optimist.environments.spaces import NO_BOUND, find_commands, find_controls
from optimist.environments.state_map import ToState
from optimist.found import Found
from optimist.given import GivenError, array_of, brief, listed, real, require_callable, told, whole
from optimist.task import Reward, Terminal

RESETS = 8  # first observations that are looked at
RESET_SEED = 0x66696E64
UNLIMITED = 500  # steps of an episode where nothing limits it
LEAST_DISCOUNT, MOST_DISCOUNT, USUAL_DISCOUNT = 0.95, 0.995, 0.99
HORIZONS = 2.0  # how many times a discounted horizon fits into the time limit
TURN = 2.0 * np.pi


class FoundEnvironment(gymnasium.Wrapper[FloatArray, Any, Any, Any]):
    """An environment whose observations are states as they were found; made by `find`.

    Attributes:
        found: what is known of its task before the first transition.
        observing: how states come of observations.
        axis_names: of the state, for pictures.

    """

    found: Found

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        found: Found,
        observing: Observing | Told,
        axis_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        self.found, self.observing = found, observing
        low, high = np.full(len(found.low), -np.inf), np.full(len(found.high), np.inf)
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        self._commands: list[Any] | None = None  # of actions that are numbered here and not there
        if not isinstance(found.controls, Box) and not isinstance(env.action_space, spaces.Discrete):
            self.action_space = spaces.Discrete(len(found.controls))
            self._commands = find_commands(env.action_space, found.controls)
        self.axis_names = observing.names() if axis_names is None else tuple(map(str, axis_names))
        if observing.is_identity and env.has_wrapper_attr("restore"):
            self.restore = env.get_wrapper_attr("restore")  # then runs go on where they stopped

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.observing(observation), info

    def step(self, action: Any) -> tuple[FloatArray, Any, Any, Any, dict[str, Any]]:
        """One step."""
        command = action if self._commands is None else self._commands[int(action)]
        observation, reward, terminated, truncated, info = self.env.step(command)
        return self.observing(observation), reward, terminated, truncated, info


def find(
    env: gymnasium.Env[Any, Any],
    *,
    reward: Reward | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    periodic: Sequence[bool] | BoolArray | None = None,
    state: ToState | None = None,
    controls: ArrayLike | Box | None = None,
    is_terminal: Terminal | None = None,
    discount: float | None = None,
    optimistic_value: float | None = None,
    max_steps: int | None = None,
    axis_names: Sequence[str] | None = None,
) -> FoundEnvironment:
    """An environment with all that can be found of its task. Refuses with advice what it cannot learn.

    What is told is used instead of what could be found or learned, and is better. `optimist.GPRMax(env)`
    calls it for an environment that says nothing of its task.

    Args:
        env: a Gymnasium environment with up to six continuous state variables.
        reward: as in `optimist.adapt`. Default: learned from what is paid.
        low: lower bounds of the states, [d]. Default: those of the space; where it has none, what was seen.
        high: upper bounds, [d].
        periodic: which axes are angles, [d]. Default: pairs on a circle, and bounds one turn apart.
        state: computes the state [d] from one observation. Default: as it is, pairs on a circle as one angle.
        controls: as in `optimist.adapt`.
        is_terminal: where episodes end, as in `optimist.adapt`. Default: learned from those that did.
        discount: in (0, 1). Default: after the time limit.
        optimistic_value: the best value any state can have. Default: by what was paid.
        max_steps: steps after which an episode is truncated. Default: the time limit, else 500.
        axis_names: of the coordinates of the state, for pictures.

    """
    require_one_environment(env)
    _require_functions(reward=reward, is_terminal=is_terminal, state=state)
    _require_numbers(discount, optimistic_value)
    observing: Observing | Told
    if state is None:
        space = _vectors(env.observation_space)
        lows, highs = (bounds.astype(np.float64) for bounds in (space.low, space.high))
        lows = np.where(np.abs(lows) > NO_BOUND, -np.inf, lows)
        highs = np.where(np.abs(highs) > NO_BOUND, np.inf, highs)
        observing = find_observing(_first_observations(env, Whole(space.shape[0])), lows, highs)
        kept, angles = observing.kept, observing.angles
        lows, highs = np.where(angles, -np.pi, lows[kept]), np.where(angles, np.pi, highs[kept])
    else:
        observing = Told(state, _first_observations(env, Told(state, None))[0].size)
        angles = np.zeros(observing.n_dims or 0, dtype=np.bool_)
        lows, highs = np.full(len(angles), -np.inf), np.full(len(angles), np.inf)
    if len(angles) > MAX_DIMS:
        raise ValueError(
            f"The state must have at most {MAX_DIMS} coordinates, since the planner's grid grows "
            f"exponentially with them; got {len(angles)}. `optimist.find(env, state=...)` keeps the few "
            "that matter."
        )
    axis_names = None if axis_names is None else _names(axis_names, len(angles))
    lows = lows if low is None else _one_each("`low`", low, len(angles))
    highs = highs if high is None else _one_each("`high`", high, len(angles))
    if not (lows < highs).all():
        raise ValueError(
            f"`low` must be below `high` on every axis; got low {lows.tolist()} and high {highs.tolist()}."
        )
    turns = np.abs(highs - lows - TURN) < 1e-3  # bounds that are one turn apart are those of an angle
    turning = angles | turns if periodic is None else _one_each("`periodic`", periodic, len(angles)) > 0.5
    limit = time_limit(env) if max_steps is None else whole("`max_steps`", max_steps, 1)
    if not np.isfinite(highs - lows)[turning].all():
        raise ValueError("`low` and `high` must be given for axes that are `periodic`; got none.")
    given = {
        "from": low,
        "to": high,
        "angles (axes from 0)": periodic,
        "controls": controls,
        "ends": is_terminal,
    }
    given |= {"discount": discount, "optimistic value": optimistic_value, "most steps": max_steps}
    sources = _sources(observing, limit, turns & ~angles)
    found = Found(
        low=lows,
        high=highs,
        periodic=turning,
        controls=find_controls(env.action_space, controls),
        discount=discount_of(limit) if discount is None else discount,
        max_steps=UNLIMITED if limit is None else limit,
        reward=reward,
        is_terminal=is_terminal,
        optimistic_value=optimistic_value,
        low_told=low is not None,
        high_told=high is not None,
        periodic_told=periodic is not None,
        sources={name: said for name, said in sources.items() if given.get(name) is None},
    )
    return FoundEnvironment(env, found, observing, axis_names)


@dataclass(frozen=True, eq=False)
class Told:
    """States that are computed as somebody said."""

    state: ToState
    n_dims: int | None
    is_identity = False
    n_observed = -1

    def __call__(self, observation: Any) -> FloatArray:
        """The state that `observation` shows.  [d]"""
        try:
            answer = self.state(observation)
        except (Exception, SystemExit) as error:
            raise GivenError(f"`state` must not fail; got {told(error)}.") from error
        seen = np.atleast_1d(array_of("What `state` returns", answer))
        if seen.ndim != 1 or not np.isfinite(seen).all() or self.n_dims not in (None, seen.size):
            raise GivenError(
                f"`state` must return {self.n_dims or 'some'} finite numbers; got {brief(answer)}."
            )
        return seen

    def names(self) -> tuple[str, ...]:
        """Of the coordinates."""
        return tuple(f"coordinate {axis}" for axis in range(self.n_dims or 0))

    def told(self) -> list[str]:
        """Nothing was found."""
        return []


@dataclass(frozen=True)
class Whole:
    """Observations as they are."""

    n_observed: int

    def __call__(self, observation: Any) -> FloatArray:
        """All of it.  [m]"""
        return flat(observation, self.n_observed)


def _one_each(name: str, given: Any, count: int) -> FloatArray:
    array = array_of(name, given)
    if array.shape != (count,):
        raise ValueError(f"{name} must have one entry per coordinate ({count}); got shape {array.shape}.")
    return array


def _names(given: Sequence[str], count: int) -> list[str]:
    names = listed("`axis_names`", given)
    if len(names) != count:
        raise ValueError(
            f"`axis_names` must have one name per coordinate of the state ({count}); got {brief(names)}."
        )
    return names


def _require_functions(**given: object) -> None:
    for name, function in given.items():
        if function is not None:
            require_callable(f"`{name}`", function)


def _require_numbers(discount: float | None, optimistic_value: float | None) -> None:
    if discount is not None and not 0.0 < real("`discount`", discount) < 1.0:
        raise ValueError(f"`discount` must be between 0 and 1; got {brief(discount)}.")
    if optimistic_value is not None and not np.isfinite(real("`optimistic_value`", optimistic_value)):
        raise ValueError(f"`optimistic_value` must be finite; got {brief(optimistic_value)}.")


def time_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """After how many steps episodes are cut off, if something says so."""
    limits = []
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, gymnasium.wrappers.TimeLimit):
            limits.append(int(inner._max_episode_steps))
        inner = inner.env
    if not limits and env.spec is not None and env.spec.max_episode_steps is not None:
        limits.append(int(env.spec.max_episode_steps))
    return min(limits) if limits else None


def discount_of(limit: int | None) -> float:
    """A horizon of half the time limit, within reason."""
    if limit is None:
        return USUAL_DISCOUNT
    return float(np.clip(1.0 - HORIZONS / limit, LEAST_DISCOUNT, MOST_DISCOUNT))


def _vectors(space: spaces.Space[Any]) -> spaces.Box:
    if not isinstance(space, spaces.Box):
        raise ValueError(
            "The observations of the environment must be one-dimensional arrays of numbers; got "
            f"{brief(space)}. "
            "`optimist.find(env, state=...)` computes a state from anything."
        )
    if len(space.shape) != 1 or (np.dtype(space.dtype) == np.uint8 and space.shape[0] > MAX_DIMS):
        raise ValueError(
            f"The observations of the environment must be one-dimensional; got {brief(space)}. Optimist does "
            "not learn from images or tables: `optimist.find(env, state=...)` may compute a short state from "
            "one (`numpy.ravel` where they are few numbers in rows)."
        )
    return space


def _first_observations(env: gymnasium.Env[Any, Any], observing: Told | Whole) -> FloatArray:
    """What several episodes begin with.  [n, m]"""
    rows = []
    for number in range(RESETS):
        try:
            observation, _ = env.reset(seed=RESET_SEED + number)
        except GivenError:
            raise
        except (Exception, SystemExit) as error:
            raise ValueError(f"The environment's `reset` must not fail; got {told(error)}.") from error
        rows.append(observing(observation))
    return np.array(rows)


def _sources(observing: Observing | Told, limit: int | None, turns: BoolArray) -> dict[str, str]:
    circles = "; ".join(observing.told())
    angles = f"found: {circles}" if circles else "found"
    if turns.any():
        angles += "; bounds one turn apart"
    limited = "nothing says what limits episodes" if limit is None else f"the time limit of {limit} steps"
    return {
        "from": "found in the space",
        "to": "found in the space",
        "angles (axes from 0)": angles,
        "controls": "found in the space",
        "discount": f"found: {limited}",
        "most steps": f"found: {limited}",
    }
