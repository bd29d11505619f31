"""adapt: anybody's Gymnasium environment as one that Optimist can learn.

What the agent needs to know and Gymnasium does not say (where the states live, what is paid for in states
never visited, where episodes end) is given here, and becomes a `Task`.
What is missing is refused with advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.environments.agreement import Agreement
from optimist.environments.spaces import action_space, control_of, find_box, find_commands, find_controls
from optimist.environments.state_map import StateMap, ToState
from optimist.given import brief, flag, real_numbers
from optimist.steps import Dynamics, successors
from optimist.task import Reward, Task, Terminal

DEFAULT_MAX_STEPS = 500


class AdaptedEnvironment(gymnasium.Wrapper[FloatArray, Any, Any, Any]):
    """An environment whose observations are states; made by `adapt`.

    Actions are numbered, or, where the controls are a box, those of the environment itself.

    States are float64, wrapped on periodic axes and not clipped. Every transition is compared with the
    task; a contradiction is warned of, once. An episode is truncated after `task.max_steps` steps, or
    earlier by the environment itself.

    Attributes:
        task: all that an agent is told.
        dynamics: the motion itself where it is known, for planning with it. No agent is told.
        axis_names: of the state, for pictures.

    """

    task: Task

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        task: Task,
        state: ToState | None = None,
        *,
        dynamics: Dynamics | None = None,
        axis_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        self.task = task
        self.dynamics = dynamics
        self.axis_names = _checked_names(axis_names, task.box)
        self.observation_space = _state_space(task.box)
        self.action_space = action_space(task, env.action_space)
        self._commands = find_commands(env.action_space, task.controls)
        self._to_state = StateMap(env.observation_space, task.box, state)
        self._agreement = Agreement(task)
        self._state: FloatArray | None = None
        self._n_steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode; the environment chooses where."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._state, self._n_steps = self._to_state(observation), 0
        return self._state.copy(), info

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step with the control of `action`."""
        state = self._state
        if state is None:
            raise RuntimeError("`reset` must be called before `step`.")
        control = control_of(self.task, action)
        said = int(action) if self.task.control_box is None else control
        self._state = None  # an observation that is refused ends the episode
        observation, paid, ended, cut, info = self.env.step(self._command(action, control))
        next_state, reward = self._to_state(observation), _finite_reward(paid)
        terminated, truncated = _flag("terminated", ended), _flag("truncated", cut)
        self._agreement.check(state, said, next_state, reward, terminated)
        self._state, self._n_steps = next_state, self._n_steps + 1
        truncated = truncated or self._n_steps >= self.task.max_steps
        return next_state.copy(), reward, terminated, truncated, info

    def _command(self, action: Any, control: FloatArray) -> Any:
        """What the environment is given."""
        if self.task.control_box is None:
            return self._commands[int(action)].copy()
        space = self.env.action_space
        return control.astype(space.dtype).reshape(space.shape)


def adapt(
    env: gymnasium.Env[Any, Any],
    *,
    reward: Reward | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    periodic: Sequence[bool] | BoolArray | None = None,
    state: ToState | None = None,
    controls: ArrayLike | Box | None = None,
    is_terminal: Terminal | None = None,
    discount: float = 0.99,
    optimistic_value: float = 0.0,
    max_steps: int | None = None,
    dynamics: Dynamics | None = None,
    axis_names: Sequence[str] | None = None,
) -> AdaptedEnvironment:
    """Make an environment of anybody's one that Optimist can learn. Refuses with advice what it cannot.

    Args:
        env: a Gymnasium environment with up to six continuous state variables.
        reward: required. Batched: states [n, d], controls [n, k] or [1, k], next states [n, d] -> [n]. It
            is compared with what the environment pays.
        low: lower bounds of the states of interest, [d]. Default: those of the observation space.
        high: upper bounds, [d]. Beyond them a state is planned for as at the edge, and counted.
        periodic: which axes are angles, [d]; there `high` is the same place as `low`.
        state: computes the state [d] from one observation, where the two differ. Default: they do not.
        controls: what may be applied. Continuous actions need none: any within their bounds is (one to three
            actuators), or within a `Box` that is given; a list, [n_actions, k] or flat when k = 1, leaves
            those alone. For discrete actions it may give the magnitudes behind the numbers (default 0, 1, 2,
            ...): the joint model uses their order and distances.
        is_terminal: where episodes end, a time limit aside. Batched: states [n, d] -> [n] bools.
        discount: in (0, 1]; 1 needs `is_terminal`.
        optimistic_value: the best value any state can have; 0 when rewards are costs,
            else (largest reward) / (1 - discount) is safe.
        max_steps: steps after which an episode is truncated. Default: what `env.spec` says, else 500.
        dynamics: (states [n, d], controls [n, k] or [1, k]) -> next states [n, d], if you happen to know it:
            `optimist plan` then says how well it could be done. The agent is never told.
        axis_names: of the coordinates of the state, with units, for pictures.

    """
    require_one_environment(env)
    if reward is None:
        raise ValueError(
            "`reward` must be a function (states [n, d], controls [n, k] or [1, k], next_states [n, d]) -> "
            "[n]; got none. The planner evaluates the reward in states that were never visited, so what "
            "`env.step` pays is not enough: write down the formula that the environment uses, or have it "
            "learned: `optimist.find(env)`."
        )
    box = find_box(env.observation_space, low=low, high=high, periodic=periodic, mapped=state is not None)
    task = Task(
        box=box,
        controls=find_controls(env.action_space, controls),
        reward=reward,
        discount=discount,
        optimistic_value=optimistic_value,
        is_terminal=is_terminal,
        max_steps=_default_max_steps(env) if max_steps is None else max_steps,
    )
    _try_out(task, dynamics)
    return AdaptedEnvironment(env, task, state, dynamics=dynamics, axis_names=axis_names)


def require_one_environment(env: object) -> None:
    """Raise ValueError unless it is one environment of Gymnasium."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise ValueError(
            f"`env` must be a single environment; got {env}, a vector of them. Optimist learns from one "
            "transition at a time: make it with `gymnasium.make`, not `gymnasium.make_vec`."
        )
    if not isinstance(env, gymnasium.Env):
        raise ValueError(
            f"`env` must be a gymnasium.Env, such as `gymnasium.make(...)` returns; got {env!r}."
        )


def _checked_names(names: Sequence[str] | None, box: Box) -> tuple[str, ...]:
    if names is None:
        return tuple(f"coordinate {axis}" for axis in range(box.n_dims))
    if isinstance(names, str) or len(names) != box.n_dims:
        raise ValueError(f"`axis_names` must have one name per coordinate ({box.n_dims}); got {names!r}.")
    return tuple(map(str, names))


def _default_max_steps(env: gymnasium.Env[Any, Any]) -> int:
    limit = None if env.spec is None else env.spec.max_episode_steps
    return DEFAULT_MAX_STEPS if limit is None else limit


def _state_space(box: Box) -> gymnasium.spaces.Space[Any]:
    """Where states may lie: nothing is clipped here, so that the box of the task does not bound them."""
    low = np.where(box.periodic, box.low, -np.inf)
    high = np.where(box.periodic, box.high, np.inf)
    return gymnasium.spaces.Box(low, high, dtype=np.float64)


def _try_out(task: Task, dynamics: Dynamics | None) -> None:
    """Call the task's functions at the corners and middles of the box: refuse now what would fail later."""
    sides = np.stack([task.box.low, (task.box.low + task.box.high) / 2.0, task.box.high])
    states = np.stack(np.meshgrid(*sides.T, indexing="ij"), axis=-1).reshape(-1, task.box.n_dims)
    task.terminal(states)
    if dynamics is not None:
        successors(dynamics, states, task.controls[:1])
    rewards = np.concatenate(
        [task.rewards(states, task.controls[[a]], states) for a in range(task.n_actions)]
    )
    _require_optimism(task, rewards)


def _require_optimism(task: Task, rewards: FloatArray) -> None:
    # Where no reward is negative, a state is worth at least its first reward.
    best = float(rewards.max())
    if rewards.min() >= 0.0 and best > task.optimistic_value:
        steps = task.max_steps if task.discount == 1.0 else 1.0 / (1.0 - task.discount)
        raise ValueError(
            f"`optimistic_value` must be at least the best value of any state; got {task.optimistic_value:g} "
            f"where a single reward is {best:g}. (Largest reward) / (1 - discount) is safe, "
            f"here {best * steps:g} or more."
        )


def _finite_reward(reward: Any) -> float:
    try:
        paid = real_numbers(reward)
    except (TypeError, ValueError):
        paid = np.empty(0)
    if paid.size != 1 or not np.isfinite(paid).all():
        raise ValueError(f"The environment must pay one finite number; got the reward {brief(reward)}.")
    return float(paid.item())


def _flag(name: str, value: Any) -> bool:
    found = flag(value)
    if found is None:
        raise ValueError(f"The environment must say true or false; got `{name}` {brief(value)}.")
    return found
