"""GPRMax: the front door, in the shape people know from Stable-Baselines3. It assembles, no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from optimist.agents import AgentSettings, GPRMaxAgent, Knowledge, settings_of
from optimist.agents.settings import parse_settings
from optimist.arrays import FloatArray
from optimist.grid import Grid
from optimist.models import GPDynamics
from optimist.planning import Plan, QFunction, Search
from optimist.runs import (
    EpisodeRow,
    Event,
    Place,
    RunError,
    RunStore,
    Stepped,
    interact,
    load_agent,
    save_agent,
)
from optimist.runs.checkpoint import describe_task, require_same_task, run_header
from optimist.runs.progress import LearningProgress
from optimist.runs.resume import abandon, open_place, put, replay, resume
from optimist.task import Task
from optimist.transitions import Transitions

Environment = gymnasium.Env[Any, Any]
Callback = Callable[[Event], object]


class GPRMax:
    """Learns to control an environment in a handful of episodes (GP-RMAX).

    Args:
        env: a Gymnasium environment whose observations are states and whose actions are numbered: one of
            ours, or anybody's through `optimist.adapt`.
        task: what the agent is told; by default the environment's own `task`.
        settings: all choices; by default those of `agent` in our preset. See `optimist.agents.settings_of`.
        agent: when no settings are given: `gp-rmax-exp` (explores), `gp-rmax-grid` (explores cell by cell),
            `gp-rmax-noexp` (does not).
        seed: of everything random.
        run: a directory to record the run in, so that it survives anything (`GPRMax.resume`).

    >>> import gymnasium, optimist
    >>> agent = optimist.GPRMax(gymnasium.make("optimist/MountainCar-v0"), seed=0)
    >>> _ = agent.learn(total_timesteps=60)
    >>> action, _ = agent.predict([-0.5, 0.0])

    """

    def __init__(
        self,
        env: Environment | None,
        *,
        task: Task | None = None,
        settings: AgentSettings | None = None,
        agent: str = "gp-rmax-exp",
        seed: int = 0,
        run: str | Path | None = None,
    ) -> None:
        task = task if task is not None else _task_of(env)
        settings = settings if settings is not None else settings_of(agent)
        learner = GPRMaxAgent(task, settings, seed=_checked_seed(seed))
        self._assemble(learner, env, None, name=agent)
        if run is not None:
            self.record(run)

    def _assemble(
        self, agent: GPRMaxAgent, env: Environment | None, store: RunStore | None, name: str = "gp-rmax"
    ) -> None:
        self._agent = agent
        self._name = name
        self._store = store
        self._episodes: list[EpisodeRow] = []
        self._n_outside = 0
        self._place = Place()
        self._events: Iterator[Event] | None = None
        self._interrupted = False
        self.env = env
        if env is not None:
            _require_discrete(env, agent.task)

    def record(self, run: str | Path, *, episodes: int | None = None) -> None:
        """Record what follows in a new directory; `episodes` is for whoever resumes it."""
        if self._store is not None or self.num_timesteps:
            raise ValueError("A run must be recorded from its first transition on; got one that has begun.")
        header = run_header(self._agent, self._name, _problem_of(self.env))
        self._store = RunStore.create(Path(run), header | {"episodes": episodes or 1})

    @classmethod
    def resume(
        cls,
        run: str | Path,
        env: Environment | None,
        *,
        task: Task | None = None,
        writing: bool = True,
    ) -> Self:
        """Go on with a recorded run. Of ours bit for bit; an outside one begins a fresh episode."""
        task = task if task is not None else _task_of(env)
        store = RunStore.open(Path(run), writing=writing)
        try:
            header = store.header
            if not {"task", "settings", "seed", "agent"} <= set(header):
                raise RunError(f"The record of the run in {store.directory} is damaged: no settings.")
            require_same_task(header["task"], task, store.directory)
            agent = GPRMaxAgent(task, parse_settings(header["settings"]), seed=header["seed"])
            self = cls.__new__(cls)
            self._assemble(agent, env, store, name=header["agent"])
            if writing and env is not None:
                self._place = resume(store, agent, env)
            else:
                replay(store, agent, recording=False)
                self._place = open_place(store, agent)
            self._episodes = store.episodes()
            self._n_outside = store.n_outside()
        except BaseException:
            store.close()
            raise
        return self

    def learn(
        self,
        total_timesteps: int | None = None,
        *,
        episodes: int | None = None,
        callback: Callback | None = None,
        progress_bar: bool = False,
    ) -> Self:
        """Act and learn for so many more transitions, or until so many episodes have ended in all.

        Args:
            total_timesteps: transitions to make. An episode that is cut short goes on in the next call.
            episodes: instead, or also: stop when the run has so many episodes.
            callback: called with every event (`Stepped`, `Updated`); stops when it
                returns False.
            progress_bar: show one, on standard error.

        """
        if total_timesteps is None and episodes is None:
            raise ValueError("`learn` must be given `total_timesteps` or `episodes`; got neither.")
        for name, value in (("total_timesteps", total_timesteps), ("episodes", episodes)):
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1; got {value}.")
        if self.env is None:
            raise ValueError("`learn` must have an environment; got none. Call `set_env` first.")
        most = None if total_timesteps is None else self.num_timesteps + total_timesteps
        callbacks = [callback] if callback is not None else []
        if self._store is not None and episodes is not None:
            self._store.want(episodes)
        done = len(self._episodes) if most is None else self.num_timesteps
        with LearningProgress.shown(progress_bar, most, episodes, done) as listener:
            self._run(most, episodes, [listener, *callbacks])
        return self

    def _run(self, most: int | None, episodes: int | None, callbacks: list[Callback]) -> None:
        def enough() -> bool:
            return (most is not None and self.num_timesteps >= most) or (
                episodes is not None and len(self._episodes) >= episodes
            )

        assert self.env is not None
        if self._events is None:
            self._events = self._begin()
        elif self._place.state is not None:
            put(self.env, self._place, seed=self.seed)  # whoever used it in between
        try:
            while not enough():
                event = next(self._events)
                if isinstance(event, Stepped):
                    self._note(event)
                heard = [callback(event) for callback in callbacks]
                if any(isinstance(answer, bool | np.bool_) and not answer for answer in heard):
                    break
            while self._agent.due:  # what is known at the end is planned with
                event = next(self._events)
                for callback in callbacks:
                    callback(event)
        except BaseException:
            self._events, self._interrupted = None, True
            raise

    def _begin(self) -> Iterator[Event]:
        """The events from here on; after an interruption, from where things can go on."""
        assert self.env is not None
        agent, store = self._agent, self._store
        if self._interrupted:
            if store is not None:
                self._place = resume(store, agent, self.env)
                self._episodes, self._n_outside = store.episodes(), store.n_outside()
            elif put(self.env, self._place, seed=agent.seed) is None:
                self._abandon()
            self._interrupted = False
        return interact(self.env, agent, seed=agent.seed, place=self._place, store=store)

    def _note(self, event: Stepped) -> None:
        self._place = event.place
        self._n_outside += event.outside
        if event.ended is not None:
            self._episodes.append(event.ended)

    def predict(
        self,
        observation: ArrayLike,
        state: object = None,
        episode_start: object = None,
        deterministic: bool = True,
    ) -> tuple[Any, None]:
        """The best action in one observation [d], or the best actions in many [n, d].

        `state` and `episode_start` are there for Stable-Baselines3's sake and change nothing; nor does
        `deterministic`: exploration is in the plan, not in the choice. Of equals the first is taken.
        """
        states = self._states(observation)
        actions = self._agent.policy.greedy(states)
        return (actions[0], None) if np.ndim(observation) == 1 else (actions, None)

    def value(self, states: ArrayLike) -> FloatArray:
        """The value of `states` [n, d] or [d], optimistic where little is known.  [n]"""
        self._asked()
        assert self._agent.q_function is not None
        return self._agent.q_function.value(self._states(states))

    def uncertainty(self, states: ArrayLike) -> FloatArray:
        """How unknown each action is in `states` [n, d] or [d]: 0 known to 1 unknown.  [n, n_actions]"""
        self._asked()
        assert self._agent.flow is not None
        return self._agent.flow.uncertainty(self._states(states))

    @property
    def plan(self) -> Plan:
        """The plan it acts on."""
        return self._asked().plan

    @property
    def model(self) -> GPDynamics:
        """The learned dynamics."""
        return self._asked().model

    @property
    def policy(self) -> Search | QFunction:
        """What it acts on, for many states at a time."""
        return self._agent.policy

    @property
    def grid(self) -> Grid:
        """Where it plans."""
        return self._agent.grid

    @property
    def task(self) -> Task:
        """What it was told."""
        return self._agent.task

    @property
    def settings(self) -> AgentSettings:
        """All choices."""
        return self._agent.settings

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self._agent.seed

    @property
    def num_timesteps(self) -> int:
        """Transitions made so far."""
        return self._agent.n_transitions

    @property
    def transitions(self) -> Transitions:
        """All that it has seen."""
        return Transitions.of(self._agent.transitions)

    @property
    def episodes(self) -> list[EpisodeRow]:
        """How the episodes went that have ended."""
        return list(self._episodes)

    @property
    def n_outside(self) -> int:
        """How many successors lay outside the task's box, where the plan sees them at its edge."""
        return self._n_outside

    @property
    def stopped_learning_at(self) -> int | None:
        """Transitions after which the model had settled and learning stopped; None while it goes on."""
        knowledge = self._agent.knowledge
        return knowledge.n_transitions if knowledge is not None and knowledge.settled else None

    def set_env(self, env: Environment) -> None:
        """Go on in another environment of the same task; an episode that was going on is abandoned."""
        _require_discrete(env, self.task)
        if env.has_wrapper_attr("task"):
            require_same_task(describe_task(self.task), env.get_wrapper_attr("task"), "this agent")
        self._abandon()
        self._events, self.env = None, env

    def _abandon(self) -> None:
        self._place, row = abandon(self._place, self.num_timesteps, self._store)
        self._episodes += [row] if row is not None else []

    def save(self, path: str | Path) -> None:
        """Write all it has learned, its transitions too, to one file. Nothing in that file can run."""
        save_agent(self._agent, Path(path))

    @classmethod
    def load(cls, path: str | Path, env: Environment | None = None, *, task: Task | None = None) -> Self:
        """An agent from a file; it needs its task, from `env` or given, since rewards are functions."""
        self = cls.__new__(cls)
        agent = load_agent(Path(path), task if task is not None else _task_of(env))
        self._assemble(agent, env, None)
        begun = 1 + sum(row.terminated or row.truncated for row in agent.transitions)
        self._place = Place(begun + 1)  # seeds of episodes do not repeat
        return self

    def close(self) -> None:
        """Let go of the run directory, if there is one."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(self) -> Knowledge:
        self._agent.policy  # noqa: B018  # says so when there is none
        assert self._agent.knowledge is not None
        return self._agent.knowledge

    def _states(self, observations: ArrayLike) -> FloatArray:
        states = np.array(observations, dtype=np.float64)
        n_dims = self.task.box.n_dims
        if states.ndim not in (1, 2) or states.shape[-1] != n_dims:
            raise ValueError(
                f"Observations must have shape ({n_dims},) or (n, {n_dims}); got {states.shape}."
            )
        return np.atleast_2d(states)


def _task_of(env: Environment | None) -> Task:
    """The environment's own task."""
    if env is not None and env.has_wrapper_attr("task"):
        task = env.get_wrapper_attr("task")
        if isinstance(task, Task):
            return task
    raise ValueError(
        "The environment must bring its task, or `task` must be given; got neither. "
        "`optimist.adapt(env, ...)` makes an environment that does."
    )


def _problem_of(env: Environment | None) -> str | None:
    """The name of the environment, for the record."""
    if env is None:
        return None
    name = getattr(env.unwrapped, "problem", None)
    if isinstance(name, str):
        return name
    return env.spec.id if env.spec is not None else None


def _checked_seed(seed: int) -> int:
    if seed < 0 or int(seed) != seed:
        raise ValueError(f"`seed` must be a whole number, not negative; got {seed}.")
    return int(seed)


def _require_discrete(env: Environment, task: Task) -> None:
    space = env.action_space
    if not isinstance(space, gymnasium.spaces.Discrete) or space.n != task.n_actions or space.start != 0:
        raise ValueError(
            f"The environment must have {task.n_actions} numbered actions, one per control; got {space}. "
            "`optimist.adapt(env, controls=[...], ...)` makes one that has."
        )
