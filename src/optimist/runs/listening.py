"""Who listens to a run: functions of an event, callbacks in the shape of Stable-Baselines3, lists of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from optimist.given import KindError, brief
from optimist.runs.logs import Logger, episode_scalars, update_scalars
from optimist.runs.loop import Event, Stepped, Updated

if TYPE_CHECKING:
    from optimist.runs.session import Session

Callback = Callable[[Event], object]


@contextmanager
def listening(session: Session[Any], given: object) -> Iterator[list[Callback]]:
    """Functions of an event, of what was given as `callback`; objects are told of beginning and end."""
    listeners = _listed(given)
    staged = [one for one in listeners if _is_staged(one)]
    for one in staged:
        one.init_callback(session)
        one.on_training_start({"self": session}, {})
    yield [_hearing(session, one) if _is_staged(one) else one for one in listeners]
    for one in staged:
        one.on_training_end()


def _listed(given: object) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, list | tuple):
        return [one for item in given for one in _listed(item)]
    if not callable(given) and not _is_staged(given):
        raise KindError(
            f"`callback` must be a function of an event, a callback, or a list of them; got {brief(given)}."
        )
    return [given]


def _is_staged(one: object) -> bool:
    """Whether it is an object in the shape of Stable-Baselines3, ours or theirs."""
    return all(
        hasattr(one, name) for name in ("init_callback", "on_training_start", "on_step", "on_training_end")
    )


def _hearing(session: Session[Any], one: Any) -> Callback:
    """Every step, and every event if it wants to hear them."""
    hear = getattr(one, "on_event", None)

    def call(event: Event) -> object:
        heard = hear(event) if hear is not None else None
        if not isinstance(event, Stepped):
            return heard
        one.update_locals(_locals(session, event))
        return bool(one.on_step()) and not said_no(heard)

    return call


def _locals(session: Session[Any], event: Stepped) -> dict[str, Any]:
    """What a callback of Stable-Baselines3 may look for: arrays of one."""
    row = event.transition
    return {
        "self": session,
        "new_obs": row.next_state[np.newaxis],
        "actions": np.array([row.action]),
        "rewards": np.array([row.reward]),
        "dones": np.array([row.terminated or row.truncated]),
        "infos": [{"TimeLimit.truncated": row.truncated}],
    }


def said_no(answer: object) -> bool:
    """Whether a callback's answer means that it is enough."""
    return isinstance(answer, bool | np.bool_) and not answer


class Logging:
    """Listens for a logger: every episode, or every so many; every plan."""

    def __init__(self, session: Session[Any], logger: Logger, every: int) -> None:
        self._session, self._logger, self._every = session, logger, every

    def __call__(self, event: Event) -> None:
        """Log it."""
        if isinstance(event, Updated):
            self._log(update_scalars(event.update))
        elif event.ended is not None and event.ended.episode % self._every == 0:
            self._log(episode_scalars(self._session.episodes))

    def _log(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._logger.record(name, value)
        self._logger.dump(self._session.num_timesteps)


class Saying:
    """Says on standard output how it goes: every episode, or every so many; if asked to, every plan."""

    def __init__(self, verbose: int, every: int) -> None:
        self._verbose, self._every = verbose, every

    def __call__(self, event: Event) -> None:
        """Say it."""
        if isinstance(event, Updated):
            update = event.update
            if self._verbose > 1:
                state = ", settled" if update.settled else ""
                took = update.fit_seconds + update.predict_seconds + update.plan_seconds
                print(
                    f"  plan after {update.n_transitions} transitions: "
                    f"{1.0 - update.mean_uncertainty:.0%} known{state}, {update.sweeps} sweeps, {took:.2f} s",
                    flush=True,
                )
        elif event.ended is not None and event.ended.episode % self._every == 0:
            print(f"  {event.ended.told()}", flush=True)
