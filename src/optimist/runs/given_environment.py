"""What people give as an environment: one, its id, or a vector environment of one"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import FloatArray
from optimist.given import array_of, brief, one_line
from optimist.runs.loop import Environment
from optimist.task import Task


def environment_of(given: Any) -> Environment | None:
    """The environment that was meant: made of an id, or the only one of a vector environment."""
    if isinstance(given, str):
        return _made(given)
    return OnlyOne(given) if _is_vector(given) else given


def _made(name: str) -> Environment:
    try:
        made: Environment = gymnasium.make(name)
    except Exception as error:  # of Gymnasium, of a module that the id names, of the environment itself
        said = one_line(str(error)).rstrip(".")
        raise ValueError(
            f"`env` must be an environment, or the id of one that Gymnasium knows; got {brief(name)}: {said}."
        ) from error
    return made


def _is_vector(given: object) -> bool:
    if isinstance(given, gymnasium.vector.VectorEnv):
        return True
    return hasattr(given, "num_envs") and hasattr(given, "step_wait")  # Stable-Baselines3's


def axis_names_of(env: Environment | None) -> dict[str, list[str]]:
    """What the environment calls its coordinates, if it says so, for the record."""
    if env is None or not env.has_wrapper_attr("axis_names"):
        return {}
    names = env.get_wrapper_attr("axis_names")
    return {} if names is None else {"axis_names": [str(name)[:200] for name in names]}


def name_of(env: Environment | None) -> str | None:
    """The name of the environment, for the record."""
    if env is None:
        return None
    name = getattr(env.unwrapped, "problem", None)
    if isinstance(name, str):
        return name
    return env.spec.id if env.spec is not None else None


def spaces_of(env: Environment | None, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """What is observed and what can be done: the environment's spaces, else those that the task implies."""
    if env is not None:
        return env.observation_space, env.action_space
    observations = gymnasium.spaces.Box(task.box.low, task.box.high, dtype=np.float64)
    return observations, gymnasium.spaces.Discrete(task.n_actions)


def states_of(task: Task, observations: ArrayLike) -> FloatArray:
    """Observations [d] or [n, d] as states; a ValueError when they cannot be.  [n, d]"""
    states = array_of("Observations", observations)
    n_dims = task.box.n_dims
    if states.ndim not in (1, 2) or states.shape[-1] != n_dims:
        raise ValueError(f"Observations must have shape ({n_dims},) or (n, {n_dims}); got {states.shape}.")
    if not np.isfinite(states).all():
        raise ValueError(f"Observations must be finite; got {brief(states.tolist())}.")
    return np.atleast_2d(states)


class OnlyOne(gymnasium.Env[Any, Any]):
    """The only environment of a vector environment: Gymnasium's, or one in the shape of Stable-Baselines3.

    Vector environments begin the next episode by themselves, at the last step of one or at the step after.
    Here an episode ends with the observation that it ended with, and the next begins when it is asked for.
    """

    def __init__(self, vector: Any) -> None:
        if vector.num_envs != 1:
            raise ValueError(
                "A vector environment must have one environment, since transitions come one at a time; "
                f"got {vector.num_envs}."
            )
        self.vector = vector
        self._gymnasium = isinstance(vector, gymnasium.vector.VectorEnv)
        prefix = "single_" if self._gymnasium else ""
        self.observation_space = getattr(vector, f"{prefix}observation_space")
        self.action_space = getattr(vector, f"{prefix}action_space")
        self.render_mode = getattr(vector, "render_mode", None)
        self.spec = getattr(vector, "spec", None)
        inner = vector.unwrapped if self._gymnasium else vector  # Gymnasium's wrappers have no `get_attr`
        for name in ("task", "problem"):
            with suppress(Exception):  # whatever it says of what it does not have
                setattr(self, name, inner.get_attr(name)[0])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        if self._gymnasium:
            observations, _ = self.vector.reset(seed=seed, options=options)
        else:
            self.vector.seed(seed)
            if options:
                self.vector.set_options(options)
            observations = self.vector.reset()
        return observations[0], {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; an episode shows where it ended, wherever the vector environment is by then."""
        actions = np.array([action])
        if self._gymnasium:
            observations, rewards, terminated, truncated, infos = self.vector.step(actions)
            last = infos.get("final_obs") if terminated[0] or truncated[0] else None
            observation = observations[0] if last is None else last[0]
            return observation, rewards[0], terminated[0], truncated[0], {}
        observations, rewards, dones, infos = self.vector.step(actions)
        cut = bool(dones[0]) and bool(infos[0].get("TimeLimit.truncated", False))
        observation = infos[0].get("terminal_observation", observations[0]) if dones[0] else observations[0]
        return observation, rewards[0], bool(dones[0]) and not cut, cut, {}

    def close(self) -> None:
        """Close the vector environment."""
        self.vector.close()


def require_actions(env: Environment, task: Task) -> None:
    """Raise ValueError where the actions of `env` are not those of `task`."""
    space, box = env.action_space, task.control_box
    if box is not None:
        # a bound in single precision may lie a little beside the same in double
        fits = isinstance(space, gymnasium.spaces.Box) and space.low.size == box.n_dims
        if isinstance(space, gymnasium.spaces.Box) and fits:
            mine, theirs = (box.low, box.high), (space.low.reshape(-1), space.high.reshape(-1))
            fits = np.allclose(mine, theirs, rtol=1e-6, atol=0.0)
        if not fits:
            raise ValueError(
                f"The environment must have the actions of the task, any from {box.low.tolist()} to "
                f"{box.high.tolist()}; got {space}. `optimist.adapt(env, controls=optimist.Box(...), ...)` "
                "makes one that has."
            )
        return
    if not isinstance(space, gymnasium.spaces.Discrete) or space.n != task.n_actions:
        raise ValueError(
            f"The environment must have {task.n_actions} numbered actions, one per control; got {space}. "
            "`optimist.adapt(env, controls=[...], ...)` makes one that has."
        )
