"""Gymnasium ids. Called by Gymnasium itself through the `gymnasium.envs` entry point."""

from __future__ import annotations

import gymnasium

from optimist.systems import SYSTEMS


def register() -> None:
    """Make `gymnasium.make("optimist/MountainCar-v0")` and the others work."""
    for system in SYSTEMS.values():
        gymnasium.register(
            id=system.gymnasium_id,
            entry_point="optimist.environments.system_environment:SystemEnvironment",
            max_episode_steps=system.task.max_steps,
            kwargs={"problem": system.name},
        )
