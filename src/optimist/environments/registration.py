"""The Gymnasium ids of the systems."""

from __future__ import annotations

from gymnasium.envs.registration import register as register_environment
from gymnasium.envs.registration import registry

from optimist.systems import SYSTEMS


def register() -> None:
    """Make `gymnasium.make("optimist/MountainCar-v0")` and the others work."""
    for system in SYSTEMS.values():
        if system.gymnasium_id not in registry:
            register_environment(
                id=system.gymnasium_id,
                entry_point="optimist.environments.system_environment:SystemEnvironment",
                max_episode_steps=system.task.max_steps,
                kwargs={"problem": system.name},
            )
