"""What is compared: each environment with any control and with a list, and what its owner says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

import optimist
from benchmarks.continuous import planar_mass, two_tanks
from optimist.environments.system_environment import SystemEnvironment

Env = gymnasium.Env[Any, Any]
FORCES = np.array([-10.0, 0.0, 10.0])


class ListedSystem(SystemEnvironment):
    """A system of ours with a list of controls of its own."""

    def __init__(self, problem: str, controls: ArrayLike) -> None:
        super().__init__(problem)
        self.system = replace(self.system, task=replace(self.system.task, controls=np.array(controls)))
        self.action_space = gymnasium.spaces.Discrete(self.system.task.n_actions)


def pendulum(listed: bool) -> Env:
    """The paper's pendulum, any torque or its five."""
    return SystemEnvironment("pendulum" if listed else "pendulum-continuous")


def cart_pole(listed: bool) -> Env:
    """The published cart-pole, any force or three."""
    return ListedSystem("cart-pole", FORCES) if listed else SystemEnvironment("cart-pole-continuous")


def _angle_and_rate(observation: Any) -> Any:
    return np.array([np.arctan2(observation[1], observation[0]), observation[2]])


def _swung(states: Any, controls: Any, next_states: Any) -> Any:
    angle = np.mod(states[:, 0] + np.pi, 2.0 * np.pi) - np.pi
    return -(angle**2) - 0.1 * states[:, 1] ** 2 - 0.001 * controls[:, 0] ** 2


def gymnasium_pendulum(listed: bool) -> Env:
    """Pendulum-v1, any torque or five."""
    return optimist.adapt(
        gymnasium.make("Pendulum-v1"),
        reward=_swung,
        state=_angle_and_rate,
        low=[-np.pi, -8.0],
        high=[np.pi, 8.0],
        periodic=[True, False],
        controls=np.linspace(-2.0, 2.0, 5) if listed else None,
    )


def _arrived(states: Any) -> Any:
    return (states[:, 0] >= 0.45) & (states[:, 1] >= 0.0)


def _climbed(states: Any, controls: Any, next_states: Any) -> Any:
    return 100.0 * _arrived(next_states) - 0.1 * controls[:, 0] ** 2


def gymnasium_mountain_car(listed: bool) -> Env:
    """MountainCarContinuous-v0, any push or five."""
    return optimist.adapt(
        gymnasium.make("MountainCarContinuous-v0"),
        reward=_climbed,
        is_terminal=_arrived,
        discount=0.999,  # with 1, standing still is worth as much as arriving
        optimistic_value=100.0,
        controls=np.linspace(-1.0, 1.0, 5) if listed else None,
    )


def own(module: ModuleType, make: Callable[[], Env], discount: float) -> Callable[[bool], Env]:
    """One of the plants beside this file, with any two controls or nine pairs."""
    return lambda listed: optimist.adapt(
        make(),
        reward=module.reward,
        low=module.LOW,
        high=module.HIGH,
        discount=discount,
        max_steps=60,
        controls=module.NINE if listed else None,
        dynamics=module.dynamics,
    )


MEMBERS: dict[str, Callable[[bool], Env]] = {
    "pendulum": pendulum,
    "cart-pole": cart_pole,
    "Pendulum-v1": gymnasium_pendulum,
    "MountainCarContinuous-v0": gymnasium_mountain_car,
    "planar-mass": own(planar_mass, planar_mass.PlanarMass, 0.98),
    "two-tanks": own(two_tanks, two_tanks.TwoTanks, 0.97),
}
