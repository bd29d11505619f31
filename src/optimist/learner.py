"""GPRMax: the front door, in the shape people know from Stable-Baselines3. It assembles, no more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from optimist.agents import AGENTS, AgentSettings, GPRMaxAgent, settings_of
from optimist.agents.settings import find_agent, parse_settings
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.discretisation import Layout
from optimist.environments.finding import find
from optimist.given import KindError, brief, require_kind, whole
from optimist.grid import Grid
from optimist.models import Model
from optimist.models.outcomes import OpenTask
from optimist.planning import Plan, QFunction
from optimist.planning.rehearsal import Expectation
from optimist.planning.sights import Sights
from optimist.runs import Session
from optimist.runs.agent_file import load_saved, save_agent
from optimist.runs.given_environment import environment_of
from optimist.runs.loop import Environment
from optimist.runs.session import Make
from optimist.task import Task

DEFAULT = "gp-rmax-exp"


class GPRMax(Session[GPRMaxAgent]):
    """Learns to control an environment in a handful of episodes (GP-RMAX).

    Args:
        env: a Gymnasium environment whose observations are states and whose actions are numbered: one of
            ours, or anybody's through `optimist.adapt`. Or its id, or a vector environment of one.
        task: what the agent is told; by default the environment's own `task`.
        settings: what should differ from our preset, as a file of settings would say it:
            `{"replan_every": 50, "grid": {"nodes": [61, 61]}}`. Or all choices, as
            `optimist.agents.settings_of` makes them.
        agent: its name in the record, and its settings if none are given: `gp-rmax-exp` (explores),
            `gp-rmax-grid` (explores cell by cell), `gp-rmax-noexp` (does not).
        seed: of everything random.
        run: a directory to record the run in, so that it survives anything (`GPRMax.resume`).
        verbose: 0 says nothing, 1 says how every episode went, 2 what every plan took as well.
        tensorboard_log: a folder for TensorBoard's files (`pip install 'optimist[tensorboard]'`).

    >>> import gymnasium, optimist
    >>> agent = optimist.GPRMax(gymnasium.make("optimist/MountainCar-v0"), seed=0)
    >>> _ = agent.learn(total_timesteps=60)
    >>> action, _ = agent.predict([-0.5, 0.0])

    """

    def __init__(
        self,
        env: Environment | str | Any,
        *,
        task: Task | None = None,
        settings: AgentSettings | Mapping[str, Any] | None = None,
        agent: str = DEFAULT,
        seed: int = 0,
        run: str | Path | None = None,
        verbose: int = 0,
        tensorboard_log: str | Path | None = None,
    ) -> None:
        find_agent(agent)
        env, task = told_of(env, task)
        if settings is None or isinstance(settings, Mapping):
            settings = settings_of(agent, changes=settings)
        require_kind("`task`", task, Task)
        require_kind("`settings`", settings, AgentSettings, "optimist.agents.settings_of('gp-rmax-exp')")
        super().__init__(GPRMaxAgent(task, settings, seed=_seed(seed)), env, name=agent)
        self.verbose, self.tensorboard_log = whole("`verbose`", verbose, 0), tensorboard_log
        if run is not None:
            self.record(run)

    @classmethod
    def resume(
        cls,
        run: str | Path,
        env: Environment | str | Any,
        *,
        task: Task | None = None,
        writing: bool = True,
    ) -> Self:
        """Go on with a recorded run. Of ours bit for bit; an outside one begins a fresh episode."""
        env, task = told_of(env, task)
        return cls.reopen(run, env, task, _maker(task), writing=writing)

    def value(self, states: ArrayLike) -> FloatArray:
        """The value of `states` [n, d] or [d], optimistic where little is known.  [n]"""
        return self._agent.known().planned.q_function.value(self._states(states))

    def uncertainty(self, states: ArrayLike) -> FloatArray:
        """How unknown each action is in `states` [n, d] or [d]: 0 known to 1 unknown.  [n, n_actions]"""
        return self._agent.known().flow.uncertainty(self._states(states))

    @property
    def plan(self) -> Plan:
        """The plan it explores with."""
        return self._agent.known().plan

    @property
    def model(self) -> Model:
        """The learned dynamics."""
        return self._agent.known().model

    @property
    def policy(self) -> Sights:
        """The best it knows, for many states at a time. Unlike `learn`, it does not explore."""
        return self._agent.policy

    @property
    def q_function(self) -> QFunction:
        """The values of all actions in the best plan it knows, interpolated; it does not look ahead."""
        return self._agent.known().best.q_function

    @property
    def expected(self) -> Expectation | None:
        """What it expects an episode to earn, with `low` and `high`; None before the first plan."""
        return self._agent.expected

    @property
    def layout(self) -> Layout:
        """The discretisation that it has chosen."""
        return self._agent.layout

    @property
    def grid(self) -> Grid:
        """Where it plans."""
        return self._agent.grid

    @property
    def box(self) -> Box:
        """What of the task's box it plans on."""
        return self.grid.box

    @property
    def settings(self) -> AgentSettings:
        """All choices."""
        return self._agent.settings

    def set_random_seed(self, seed: int | None = None) -> None:
        """Another seed for everything random; only before the first transition, which depends on it."""
        if seed is None:
            return
        if self._agent.transitions or self._store is not None:
            raise ValueError(
                "The seed must be set before the first transition, and before a run is recorded; got "
                f"{len(self._agent.transitions)} transitions{' and a record' if self._store else ''}. "
                "`GPRMax(..., seed=...)` sets it in time."
            )
        self._agent = GPRMaxAgent(self._agent.told, self.settings, seed=_seed(seed))

    def save(self, path: str | Path) -> None:
        """Write all it has learned, its transitions and episodes too, to one file. Nothing in it can run."""
        save_agent(self._agent, Path(path), episodes=self._episodes)

    @classmethod
    def load(cls, path: str | Path, env: Environment | str | Any = None, *, task: Task | None = None) -> Self:
        """An agent from a file; it needs its task, from `env` or given, since rewards are functions.

        The episode that was going on when it was saved is closed as abandoned; `learn` begins the next one.
        """
        env, task = told_of(env, task)
        agent, episodes = load_saved(Path(path), task, _maker(task))
        names = [name for name, rule in AGENTS.items() if rule == agent.settings.knownness]
        self = cls.of(agent, env, name=names[0] if names else DEFAULT)
        self._take_up(episodes)
        return self


def told_of(env: Environment | str | Any, task: Task | None) -> tuple[Environment | None, Task]:
    """The environment that was meant, and its task unless one is given."""
    found = environment_of(env)
    if task is not None:
        return found, task
    if found is None:
        raise ValueError("`env` or `task` must be given; got neither.")
    if not hasattr(found, "has_wrapper_attr"):
        raise KindError(f"`env` must be a Gymnasium environment; got {brief(found)}.")
    return with_task(found)


def with_task(env: Environment) -> tuple[Environment, Task]:
    """An environment and its own task; what it does not say is found, and the rest left to be learned."""
    told = env.has_wrapper_attr("task") and not env.has_wrapper_attr("found")
    if told and isinstance(env.get_wrapper_attr("task"), Task):
        return env, env.get_wrapper_attr("task")
    if not env.has_wrapper_attr("found"):
        env = find(env)
    return env, OpenTask.of(env.get_wrapper_attr("found"))


def _seed(seed: Any) -> int:
    try:
        return whole("`seed`", seed, 0)
    except (TypeError, ValueError):
        raise ValueError(f"`seed` must be a whole number, not negative; got {brief(seed)}.") from None


def _maker(task: Task) -> Make[GPRMaxAgent]:
    return lambda settings, seed: GPRMaxAgent(task, parse_settings(settings), seed=seed)
