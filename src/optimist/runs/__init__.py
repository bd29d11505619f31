"""Runs: an agent in its environment, recorded so that nothing taken from the world is ever lost.

A run is a directory: `run.sqlite` (settings, every transition, episodes, one row per plan), `agent.optimist`
(the agent as it was after its last plan) and `run.head` (how far the record had come). The directory itself
is locked by the one process that writes.
"""

from optimist.runs.errors import DamagedError, RunError
from optimist.runs.loop import Ended, Event, Stepped, Updated
from optimist.runs.record import EpisodeRow
from optimist.runs.session import Session
from optimist.runs.store import RunStore

__all__ = [
    "DamagedError",
    "Ended",
    "EpisodeRow",
    "Event",
    "RunError",
    "RunStore",
    "Session",
    "Stepped",
    "Updated",
]
