"""Agents: they are given a `Task` and the transitions they made, and nothing else."""

from optimist.agents.gp_rmax import GPRMaxAgent, Knowledge, Update
from optimist.agents.settings import AGENTS, PRESETS, AgentSettings, GridSettings, settings_of

__all__ = [
    "AGENTS",
    "PRESETS",
    "AgentSettings",
    "GPRMaxAgent",
    "GridSettings",
    "Knowledge",
    "Update",
    "settings_of",
]
