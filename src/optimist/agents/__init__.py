"""Agents: they are given a `Task` and the transitions they made, and nothing else."""

from optimist.agents.agent import Agent, Update
from optimist.agents.gp_rmax import GPRMaxAgent
from optimist.agents.settings import AGENTS, PRESETS, AgentSettings, settings_of

__all__ = [
    "AGENTS",
    "PRESETS",
    "Agent",
    "AgentSettings",
    "GPRMaxAgent",
    "Update",
    "settings_of",
]
