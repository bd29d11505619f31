"""The Gymnasium ids of the systems; their modules are loaded when an environment is made."""

from __future__ import annotations

from gymnasium.envs.registration import register as register_environment
from gymnasium.envs.registration import registry

from optimist.systems import SYSTEMS, gymnasium_id

MAX_STEPS = 500


def register() -> None:
    """Make `gymnasium.make("optimist/MountainCar-v0")` and the others work."""
    for problem in SYSTEMS:
        name = gymnasium_id(problem)
        if name not in registry:
            register_environment(
                id=name,
                entry_point="optimist.environments.system_environment:SystemEnvironment",
                max_episode_steps=MAX_STEPS,
                kwargs={"problem": problem},
            )
