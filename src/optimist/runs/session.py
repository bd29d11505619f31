"""Session: an agent in its environment, recorded or not. Every kind of agent is run by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from optimist.agents.agent import Agent
from optimist.agents.doubts import UNEXPLAINED
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.controls import rounded
from optimist.given import array_of, brief, whole
from optimist.planning import Policy
from optimist.runs.describe import describe_task, require_same_task, run_header
from optimist.runs.errors import RunError
from optimist.runs.headers import of_run, require_settings, require_whole
from optimist.runs.health import Complaining, Complaint, complaints
from optimist.runs.loop import Environment, Event, Place, Stepped, catch_up, in_space, interact, note_doubts
from optimist.runs.progress import LearningProgress
from optimist.runs.record import EpisodeRow, finished
from optimist.runs.resume import abandon, open_place, put, replay, resume
from optimist.runs.store import RunStore
from optimist.task import Task
from optimist.transitions import Transitions

Callback = Callable[[Event], object]
A = TypeVar("A", bound=Agent)
Make = Callable[[dict[str, Any], int], A]  # an agent that knows nothing, of settings as in a file and a seed


class Session(Generic[A]):
    """An agent, its environment, what happened between them; `name` and `problem` are for the record."""

    def __init__(self, agent: A, env: Environment | None, *, name: str, problem: str | None = None) -> None:
        self._agent = agent
        self._name = name
        self._problem = problem if problem is not None else _name_of(env)
        self._store: RunStore | None = None
        self._episodes: list[EpisodeRow] = []
        self._n_outside = 0
        self._complaining = Complaining()
        self._place = Place()
        self._events: Iterator[Event] | None = None
        self._interrupted = False
        self.env = env
        if env is not None:
            _require_actions(env, agent.task)

    @classmethod
    def of(cls, agent: A, env: Environment | None, *, name: str, problem: str | None = None) -> Self:
        """A session of this class around an agent there is; its own `__init__` is not called."""
        self = cls.__new__(cls)
        Session.__init__(self, agent, env, name=name, problem=problem)
        return self

    def record(self, run: str | Path, *, episodes: int | None = None) -> None:
        """Record what follows in a new directory; `episodes` is for whoever resumes it."""
        if self._store is not None or self.num_timesteps:
            raise ValueError("A run must be recorded from its first transition on; got one that has begun.")
        if not str(run):
            raise ValueError("`run` must name a directory; got ''.")
        agent = self._agent
        header = run_header(self._name, self._problem, agent.task, agent.settings, seed=agent.seed)
        self._store = RunStore.create(Path(run), header | {"episodes": episodes or 1})

    @classmethod
    def reopen(
        cls, run: str | Path, env: Environment | None, task: Task, make: Make[A], *, writing: bool = True
    ) -> Self:
        """A recorded run, to go on with or (not writing) to look at."""
        store = RunStore.open(Path(run), writing=writing)
        try:
            header = checked_header(store, task)
            with of_run(run):
                agent = make(header["settings"], header["seed"])
                require_settings(header["settings"], agent.settings.model_dump(mode="json"), whole=False)
            self = cls.of(agent, env, name=header["agent"], problem=header.get("problem"))
            self._store = store
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
        total_timesteps = None if total_timesteps is None else whole("`total_timesteps`", total_timesteps, 1)
        episodes = None if episodes is None else whole("`episodes`", episodes, 1)
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
                episodes is not None and finished(self._episodes) >= episodes
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
            for event in catch_up(self._agent, self._store):  # what is known at the end is planned with
                for callback in callbacks:
                    callback(event)
            if self._store is not None:
                note_doubts(self._agent, self._store, self._store.marked(UNEXPLAINED))
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
            self._complaining.hear(self.complaints)

    @property
    def complaints(self) -> list[Complaint]:
        """What looks wrong: mostly a task that was told wrongly."""
        settled = getattr(self._agent, "settled_at", 0) is not None
        seen = Transitions.of(self._agent.transitions) if self._agent.transitions else None
        return complaints(self.box, self.task.n_actions, seen, self._episodes, settled=settled)

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
        actions = self.policy.greedy(states)
        if self.task.control_box is not None:
            actions = rounded(self.task.control_box, self.task.applied(actions))
            actions = actions if self.env is None else in_space(self.env, actions)
        return (actions[0], None) if np.ndim(observation) == 1 else (actions, None)

    def value(self, states: ArrayLike) -> FloatArray | None:
        """What `states` [n, d] or [d] are worth, if this kind of agent says so.  [n]"""
        return None

    def uncertainty(self, states: ArrayLike) -> FloatArray | None:
        """How unknown each action is in `states` [n, d] or [d], if it says so.  [n, n_actions]"""
        return None

    @property
    def policy(self) -> Policy:
        """What it acts on, for many states at a time."""
        return self._agent.policy

    @property
    def box(self) -> Box:
        """Where it can act well."""
        return self.task.box

    @property
    def task(self) -> Task:
        """What it was told."""
        return self._agent.task

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self._agent.seed

    @property
    def num_timesteps(self) -> int:
        """Transitions made so far."""
        return len(self._agent.transitions)

    @property
    def transitions(self) -> Transitions:
        """All that it has seen."""
        return Transitions.of(self._agent.transitions)

    @property
    def void(self) -> list[int]:
        """Numbers, from 1, of the transitions that it does not learn from."""
        return sorted(getattr(self._agent, "void", ()))

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
        return self._agent.settled_at

    def set_env(self, env: Environment) -> None:
        """Go on in another environment of the same task; an episode that was going on is abandoned."""
        _require_actions(env, self.task)
        if env.has_wrapper_attr("task"):
            require_same_task(describe_task(self.task), env.get_wrapper_attr("task"), "this agent")
        self._abandon()
        self._events, self.env = None, env

    def _abandon(self) -> None:
        self._place, row = abandon(self._place, self.num_timesteps, self._store)
        self._episodes += [row] if row is not None else []

    def close(self) -> None:
        """Let go of the run directory, if there is one."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _states(self, observations: ArrayLike) -> FloatArray:
        states = array_of("Observations", observations)
        n_dims = self.task.box.n_dims
        if states.ndim not in (1, 2) or states.shape[-1] != n_dims:
            raise ValueError(
                f"Observations must have shape ({n_dims},) or (n, {n_dims}); got {states.shape}."
            )
        if not np.isfinite(states).all():
            raise ValueError(f"Observations must be finite; got {brief(states.tolist())}.")
        return np.atleast_2d(states)


def checked_header(store: RunStore, task: Task) -> dict[str, Any]:
    """What a run says about itself, if it is whole and the run one of that task."""
    header = store.header
    if not {"task", "settings", "seed", "agent"} <= set(header):
        raise RunError(f"The record of the run in {store.directory} is damaged: no settings.")
    require_whole(header, store.directory)
    require_same_task(header["task"], task, store.directory)
    return header


def _name_of(env: Environment | None) -> str | None:
    """The name of the environment, for the record."""
    if env is None:
        return None
    name = getattr(env.unwrapped, "problem", None)
    if isinstance(name, str):
        return name
    return env.spec.id if env.spec is not None else None


def _require_actions(env: Environment, task: Task) -> None:
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
    if not isinstance(space, gymnasium.spaces.Discrete) or space.n != task.n_actions or space.start != 0:
        raise ValueError(
            f"The environment must have {task.n_actions} numbered actions, one per control; got {space}. "
            "`optimist.adapt(env, controls=[...], ...)` makes one that has."
        )
