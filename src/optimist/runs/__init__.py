"""Runs: an agent in its environment, recorded so that nothing taken from the world is ever lost.

A run is a directory: `run.sqlite` (settings, every transition, episodes, one row per plan), `agent.optimist`
(the agent as it was after its last plan) and `run.lock` (held by the one process that writes).
"""

from optimist.runs.checkpoint import load_agent, save_agent
from optimist.runs.loop import Event, Place, Stepped, Updated, interact
from optimist.runs.resume import restorer, resume
from optimist.runs.store import EpisodeRow, RunError, RunStore

__all__ = [
    "EpisodeRow",
    "Event",
    "Place",
    "RunError",
    "RunStore",
    "Stepped",
    "Updated",
    "interact",
    "load_agent",
    "restorer",
    "resume",
    "save_agent",
]
