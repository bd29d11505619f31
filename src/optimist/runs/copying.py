"""Copies of sessions: what cannot change is shared, what cannot be shared is left out."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

from optimist.runs.logs import Logs

if TYPE_CHECKING:
    from optimist.runs.session import Session

S = TypeVar("S", bound="Session[Any]")
LEFT_OUT = ("_store", "_events", "_logs", "env")  # one writer per run; a generator cannot be copied


def copied(session: S, memo: dict[int, Any]) -> S:
    """A session that goes on by itself from where this one is; it is not recorded, and logs nothing.

    Its environment is a copy, too. Of one that cannot be copied it has none (`set_env`).
    """
    agent = session._agent
    for fixed in (agent.task, agent.settings, getattr(agent, "knowledge", None), *agent.transitions):
        memo[id(fixed)] = fixed
    made = type(session).__new__(type(session))
    memo[id(session)] = made
    for name, value in vars(session).items():
        setattr(made, name, None if name in LEFT_OUT else deepcopy(value, memo))
    made._logs = Logs()
    with suppress(Exception):  # of somebody's environment
        made.env = deepcopy(session.env, memo)
    return made
