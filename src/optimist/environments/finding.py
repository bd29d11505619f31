"""find: an environment nobody said anything about, as one that Optimist can learn.

What its spaces say and what a few episodes begin with is looked at; nothing is stepped. What cannot be found
like that (what is paid, where episodes end, how far open sides reach) is left to be learned.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from optimist.arrays import FloatArray
from optimist.box import MAX_DIMS
from optimist.environments.observing import Observing, find_observing
from optimist.environments.spaces import NO_BOUND, find_controls
from optimist.found import Found
from optimist.given import GivenError, brief, told

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

    """

    found: Found

    def __init__(self, env: gymnasium.Env[Any, Any], found: Found, observing: Observing) -> None:
        super().__init__(env)
        self.found, self.observing = found, observing
        low, high = np.full(len(found.low), -np.inf), np.full(len(found.high), np.inf)
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        if isinstance(env.action_space, spaces.Discrete):
            self.action_space = spaces.Discrete(int(env.action_space.n))
        self.axis_names = tuple(
            f"{'angle' if angle else 'coordinate'} {index}"
            for index, angle in zip(observing.kept, observing.angles, strict=True)
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.observing(flat(observation, self.observing.n_observed)), info

    def step(self, action: Any) -> tuple[FloatArray, Any, Any, Any, dict[str, Any]]:
        """One step."""
        if isinstance(self.env.action_space, spaces.Discrete):
            action = self.env.action_space.start + int(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        state = self.observing(flat(observation, self.observing.n_observed))
        return state, reward, terminated, truncated, info


def find(env: gymnasium.Env[Any, Any]) -> FoundEnvironment:
    """An environment with all that can be found of its task; a ValueError with advice where that is too little."""
    space = _vectors(env.observation_space)
    low, high = (bounds.astype(np.float64) for bounds in (space.low, space.high))
    low = np.where(np.abs(low) > NO_BOUND, -np.inf, low)
    high = np.where(np.abs(high) > NO_BOUND, np.inf, high)
    observing = find_observing(_first_observations(env, space.shape[0]), low, high)
    kept, angles = observing.kept, observing.angles
    if len(kept) > MAX_DIMS:
        raise ValueError(
            f"The state must have at most {MAX_DIMS} coordinates, since the planner's grid grows exponentially "
            f"with them; got {len(kept)}. `optimist.adapt(env, state=..., low=[...], high=[...])` keeps the few "
            "that matter."
        )
    turns = np.abs(high[kept] - low[kept] - TURN) < 1e-3  # bounds that are one turn apart are those of an angle
    periodic = angles | turns
    low, high = np.where(angles, -np.pi, low[kept]), np.where(angles, np.pi, high[kept])
    limit = time_limit(env)
    found = Found(
        low=low,
        high=high,
        periodic=periodic,
        controls=find_controls(env.action_space, None),
        discount=discount_of(limit),
        max_steps=UNLIMITED if limit is None else limit,
        sources=_sources(observing, limit, turns & ~angles),
    )
    return FoundEnvironment(env, found, observing)


def flat(observation: Any, count: int) -> FloatArray:
    """An observation as numbers; a ValueError when it is none.  [m]"""
    try:
        seen = np.array(observation, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"An observation must be an array of numbers; got {brief(observation)}.") from None
    if seen.shape != (count,) or not np.isfinite(seen).all():
        raise ValueError(f"An observation must be {count} finite numbers; got {brief(seen.tolist())}.")
    return seen


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
            f"The observations of the environment must be one-dimensional arrays of numbers; got {brief(space)}. "
            "`optimist.adapt(env, state=..., low=[...], high=[...])` computes a state from anything."
        )
    if len(space.shape) != 1 or np.dtype(space.dtype) == np.uint8 and space.shape[0] > MAX_DIMS:
        raise ValueError(
            f"The observations of the environment must be one-dimensional; got {brief(space)}. Optimist does "
            "not learn from images: `optimist.adapt(env, state=..., low=[...], high=[...])` may compute a "
            "short state from one."
        )
    return space


def _first_observations(env: gymnasium.Env[Any, Any], count: int) -> FloatArray:
    rows = []
    for number in range(RESETS):
        try:
            observation, _ = env.reset(seed=RESET_SEED + number)
        except GivenError:
            raise
        except (Exception, SystemExit) as error:
            raise ValueError(f"The environment's `reset` must not fail; got {told(error)}.") from error
        rows.append(flat(observation, count))
    return np.array(rows)


def _sources(observing: Observing, limit: int | None, turns: FloatArray) -> dict[str, str]:
    circles = "; ".join(observing.told())
    angles = f"found: {circles}" if circles else "found"
    if turns.any():
        angles += "; bounds one turn apart"
    limited = "nothing limits episodes" if limit is None else f"the time limit of {limit} steps"
    return {
        "from": "found in the space",
        "to": "found in the space",
        "angles (axes from 0)": angles,
        "controls": "found in the space",
        "discount": f"found: {limited}",
        "most steps": f"found: {limited}",
    }
