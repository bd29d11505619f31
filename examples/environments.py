"""The four benchmark systems are ordinary Gymnasium environments, registered by importing Optimist."""

from __future__ import annotations

import gymnasium

import optimist  # noqa: F401  # registers them


def main() -> None:
    for name in ("MountainCar", "Pendulum", "Bicycle", "Acrobot"):
        environment = gymnasium.make(f"optimist/{name}-v0")
        environment.action_space.seed(0)
        environment.reset(seed=0)
        total, ended = 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = environment.step(environment.action_space.sample())
            total += float(reward)
            ended = terminated or truncated
        how = "terminated" if terminated else "truncated"
        print(f"{name}: total reward {total:.1f} at random, {how}")


if __name__ == "__main__":
    main()
