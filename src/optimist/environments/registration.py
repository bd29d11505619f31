"""The Gymnasium ids of the systems, known without loading them: this runs whenever Gymnasium is imported."""

from __future__ import annotations

from gymnasium.envs.registration import register as register_environment
from gymnasium.envs.registration import registry

MAX_STEPS = 500
PROBLEMS = {
    "optimist/MountainCar-v0": "mountain-car",
    "optimist/Pendulum-v0": "pendulum",
    "optimist/Bicycle-v0": "bicycle",
    "optimist/Acrobot-v0": "acrobot",
}


def register() -> None:
    """Make `gymnasium.make("optimist/MountainCar-v0")` and the others work."""
    for name, problem in PROBLEMS.items():
        if name not in registry:
            register_environment(
                id=name,
                entry_point="optimist.environments.system_environment:SystemEnvironment",
                max_episode_steps=MAX_STEPS,
                kwargs={"problem": problem},
            )
