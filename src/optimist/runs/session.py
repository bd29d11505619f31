"""Session: an agent in its environment, recorded or not. Every kind of agent is run by it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from optimist.agents.doubts import UNEXPLAINED
from optimist.given import KindError, whole
from optimist.runs.asked import A, Asked
from optimist.runs.copying import copied
from optimist.runs.describe import describe_task, require_same_task, run_header, told_to
from optimist.runs.frames import Frames
from optimist.runs.given_environment import (
    axis_names_of,
    environment_of,
    name_of,
    require_actions,
)
from optimist.runs.headers import of_run, require_settings
from optimist.runs.health import Complaining, Complaint, complaints
from optimist.runs.in_notebook import session_html
from optimist.runs.listening import Callback, Logging, Saying, listening, said_no
from optimist.runs.logs import Logger, Logs
from optimist.runs.loop import Environment, Event, Place, Stepped, catch_up, interact, note_doubts
from optimist.runs.progress import LearningProgress
from optimist.runs.record import EpisodeRow, finished
from optimist.runs.resume import (
    abandon,
    checked_header,
    count_outside,
    open_place,
    place_after,
    put,
    relive,
    replay,
    resume,
)
from optimist.runs.store import RunStore
from optimist.task import Task
from optimist.transitions import Transitions

Make = Callable[[dict[str, Any], int], A]  # an agent that knows nothing, of settings as in a file and a seed


class Session(Asked[A]):
    """An agent, its environment, what happened between them; `name` and `problem` are for the record."""

    verbose = 0  # 1: says how every episode went; 2: every plan as well
    tensorboard_log: str | Path | None = None  # a folder for TensorBoard's files

    def __init__(self, agent: A, env: Environment | None, *, name: str, problem: str | None = None) -> None:
        env = environment_of(env)
        self._agent = agent
        self._name = name
        self._problem = problem if problem is not None else name_of(env)
        self._store: RunStore | None = None
        self._episodes: list[EpisodeRow] = []
        self._n_outside = 0
        self._complaining = Complaining()
        self._place = Place()
        self._events: Iterator[Event] | None = None
        self._interrupted = False
        self._counted_from = 0  # transitions that `num_timesteps` leaves out
        self._logs = Logs()
        self.env = env
        if env is not None:
            require_actions(env, agent.task)

    @classmethod
    def of(cls, agent: A, env: Environment | None, *, name: str, problem: str | None = None) -> Self:
        """A session of this class around an agent there is; its own `__init__` is not called."""
        self = cls.__new__(cls)
        Session.__init__(self, agent, env, name=name, problem=problem)
        return self

    def record(self, run: str | Path, *, episodes: int | None = None) -> None:
        """Record what follows in a new directory; `episodes` is for whoever resumes it."""
        if self._store is not None or self.num_timesteps or self._counted_from:
            raise ValueError("A run must be recorded from its first transition on; got one that has begun.")
        if not str(run):
            raise ValueError("`run` must name a directory; got ''.")
        agent = self._agent
        header = run_header(self._name, self._problem, told_to(agent), agent.settings, seed=agent.seed)
        header |= ({} if episodes is None else {"episodes": episodes}) | axis_names_of(self.env)
        self._store = RunStore.create(Path(run), header)

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

    def relive(self) -> Iterator[int]:
        """Be once more as it was before every recorded transition, and at the end; how many it knows is said.

        Its plans are made again from nothing, which takes as long as it took. However far that comes, it is
        then as it was.
        """
        store, agent = self._store, self._agent
        if store is None:
            raise ValueError("`relive` must have a recorded run (`run=...`); got one that is not recorded.")
        try:
            yield from relive(store, agent)
        finally:
            replay(store, agent, recording=False)

    @property
    def planned_at(self) -> int | None:
        """How many transitions its plan knows, of a recorded run that has one; None otherwise."""
        plans = self._store.plans() if self._store is not None else []
        return int(plans[-1]["n_transitions"]) if plans else None

    def learn(
        self,
        total_timesteps: int | None = None,
        callback: object = None,
        log_interval: int | None = 1,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = False,
        progress_bar: bool = False,
        *,
        episodes: int | None = None,
    ) -> Self:
        """Act and learn for so many more transitions, or until so many episodes have ended in all.

        Args:
            total_timesteps: transitions to make. An episode that is cut short goes on in the next call.
            callback: called with every event (`Stepped`, `Updated`); stops when it returns False. Or one of
                `optimist.callbacks`, or a list of such.
            log_interval: of how many episodes one is logged and said (`verbose`); None: of none.
            tb_log_name: the folder of TensorBoard's files in `tensorboard_log`, before its number.
            reset_num_timesteps: count from 0 again, in a fresh episode and a new folder of logs. Nothing is
                forgotten by that, and nothing is removed from a record.
            progress_bar: show one: on standard error, or in the notebook.
            episodes: instead of transitions, or also: stop when the run has so many episodes.

        """
        if total_timesteps is None and episodes is None:
            raise ValueError("`learn` must be given `total_timesteps` or `episodes`; got neither.")
        total_timesteps = None if total_timesteps is None else whole("`total_timesteps`", total_timesteps, 1)
        episodes = None if episodes is None else whole("`episodes`", episodes, 1)
        log_interval = sys.maxsize if log_interval is None else whole("`log_interval`", log_interval, 1)
        if self.env is None:
            raise ValueError("`learn` must have an environment; got none. Call `set_env` first.")
        if self._store is not None and self._store.closed:
            raise ValueError(
                "`learn` must have an open run; got one that was closed. Open it again with `GPRMax.resume`."
            )
        if reset_num_timesteps:
            self._count_anew()
        most = None if total_timesteps is None else self.num_timesteps + total_timesteps
        if self._store is not None and episodes is not None:
            self._store.want(episodes)
        done = len(self._episodes) if most is None else self.num_timesteps
        logger = self._logs.begin(self.tensorboard_log, tb_log_name or self._name)
        with (
            LearningProgress.shown(progress_bar, most, episodes, done) as bar,
            listening(self, callback) as callbacks,
        ):
            saying: list[Callback] = [Saying(self.verbose, log_interval)] if self.verbose else []
            logging: list[Callback] = [Logging(self, logger, log_interval)] if logger else []
            drawing: list[Callback] = [Frames(self._store.directory, self.env)] if self._store else []
            self._run(most, episodes, [bar, *saying, *logging, *drawing, *callbacks])
        return self

    def _count_anew(self) -> None:
        self._abandon()
        self._events, self._counted_from = None, len(self._agent.transitions)
        self._logs.renew()

    @property
    def logger(self) -> Logger:
        """Where numbers are logged: `record` and `dump`."""
        return self._logs.logger

    def set_logger(self, logger: Logger) -> None:
        """Log to this one from now on: see `optimist.runs.logs.configure`."""
        self._logs.give(logger)

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
                if any(said_no(answer) for answer in heard):
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
        knowledge = getattr(self._agent, "knowledge", None)  # who is stirred learns once, and sleeps on
        settled = getattr(self._agent, "settled_at", 0) is not None or getattr(knowledge, "stirred", False)
        seen = Transitions.of(self._agent.transitions) if self._agent.transitions else None
        return complaints(self.box, self.task.n_actions, seen, self._episodes, settled=settled)

    def set_env(self, env: Environment | str) -> None:
        """Go on in another environment of the same task; an episode that was going on is abandoned."""
        found = environment_of(env)
        if found is None:
            raise KindError("`env` must be a Gymnasium environment; got None.")
        env = found
        require_actions(env, self.task)
        if env.has_wrapper_attr("task"):
            require_same_task(describe_task(told_to(self._agent)), env.get_wrapper_attr("task"), "this agent")
        self._abandon()
        self._events, self.env = None, env

    def _take_up(self, episodes: list[EpisodeRow]) -> None:
        """Go on after these episodes; what was seen since is one that cannot go on."""
        self._episodes, seen = list(episodes), self._agent.transitions
        self._place = place_after(episodes, seen)
        self._abandon()
        self._n_outside = count_outside(self.task, seen)

    def _abandon(self) -> None:
        self._place, row = abandon(self._place, len(self._agent.transitions), self._store)
        self._episodes += [row] if row is not None else []

    def close(self) -> None:
        """Let go of the run directory and of logs, if there are any."""
        if self._store is not None:
            self._store.close()
        self._logs.close()

    def __repr__(self) -> str:
        """Who it is, and how far it has come."""
        so_far = f"{self.num_timesteps} transitions, {len(self._episodes)} episodes"
        of = f" of {self._problem}" if self._problem else ""
        return f"<{type(self).__name__} {self._name}{of}, seed {self._agent.seed}: {so_far}>"

    def _repr_html_(self) -> str:
        return session_html(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """One that goes on by itself from here, in a copy of the environment; it is not recorded."""
        return copied(self, memo)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
