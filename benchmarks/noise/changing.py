"""Systems that change, a cliff beside the short way, a rail with stops: strangers, with noise or without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

import optimist
from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.task import Task

Step = Callable[[FloatArray, FloatArray], FloatArray]


class Stranger(gymnasium.Env[FloatArray, Any]):
    """Any dynamics with any noise, episodes as long as the task says; the dynamics may be replaced."""

    def __init__(
        self, task: Task, dynamics: Step, starts: FloatArray, noise: Sequence[float] | FloatArray = ()
    ) -> None:
        self.task, self.dynamics, self.starts = task, dynamics, starts
        self.noise = np.array(noise if len(noise) else np.zeros(task.box.n_dims))
        self.noise_at: Callable[[FloatArray], FloatArray] | None = None  # standard deviations by the place
        low, high = np.full(task.box.n_dims, -np.inf), np.full(task.box.n_dims, np.inf)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(task.n_actions)
        self._state, self._steps = starts[0], 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = self.starts[self.np_random.integers(len(self.starts))].copy()
        self._steps = 0
        return self._state.copy(), {}

    def step(self, action: int) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        states, controls = self._state[np.newaxis], self.task.controls[[int(action)]]
        after = self.dynamics(states, controls)
        noise = self.noise if self.noise_at is None else self.noise_at(states)
        after = self.task.box.wrap(after + noise * self.np_random.standard_normal(after.shape))
        reward = float(self.task.rewards(states, controls, after)[0])
        self._state, self._steps = after[0], self._steps + 1
        ended = bool(self.task.terminal(after)[0])
        return self._state.copy(), reward, ended, self._steps >= self.task.max_steps and not ended, {}


def pendulum(mass: float = 1.0) -> Step:
    """A torque that cannot lift it at once; angle from upright, rate."""

    def step(states: FloatArray, controls: FloatArray) -> FloatArray:
        angle, rate, torque = states[:, 0], states[:, 1], np.broadcast_to(controls[:, 0], len(states))
        for _ in range(10):
            rate = rate + 0.01 * (9.81 * np.sin(angle) - 0.05 * rate / mass + torque / mass)
            angle = angle + 0.01 * rate
        return np.column_stack([(angle + np.pi) % (2 * np.pi) - np.pi, np.clip(rate, -9.0, 9.0)])

    return step


def _upright(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.asarray(np.cos(next_states[:, 0]) - 1.0 - 0.005 * next_states[:, 1] ** 2)


PENDULUM = Task(
    box=Box([-np.pi, -9.0], [np.pi, 9.0], [True, False]),
    controls=np.array([-5.0, -2.5, 0.0, 2.5, 5.0]),
    reward=_upright,
    discount=0.98,
    optimistic_value=0.0,
    max_steps=60,
)
HANGING = np.array([[np.pi - 1e-3, 0.0]])


def _cliff(states: FloatArray) -> BoolArray:
    return np.asarray((states[:, 1] < 0.2) & (states[:, 0] > 0.2) & (states[:, 0] < 0.8))


def _arrived(states: FloatArray) -> BoolArray:
    return np.asarray((states[:, 0] > 0.9) & (states[:, 1] < 0.3))


CLIFF = Task(
    box=Box([0.0, 0.0], [1.0, 1.0]),
    controls=0.04 * np.array([[np.cos(k * np.pi / 4), np.sin(k * np.pi / 4)] for k in range(8)]),
    reward=lambda _states, _controls, after: np.where(_cliff(after), -30.0, -1.0),
    is_terminal=lambda states: _cliff(states) | _arrived(states),
    discount=0.99,
    optimistic_value=0.0,
    max_steps=150,
)
CLIFF_START, CLIFF_NOISE = np.array([[0.1, 0.22]]), np.array([0.012, 0.02])


def walk(states: FloatArray, controls: FloatArray) -> FloatArray:
    """A step in one of eight directions."""
    return np.asarray(np.clip(states + controls, 0.0, 1.0))


def rough(states: FloatArray) -> FloatArray:
    """Standard deviations that fall from 0.03 at the cliff to a quarter of that far above it."""
    return np.column_stack([np.full(len(states), 0.012), 0.03 * np.exp(-3.5 * (states[:, 1] - 0.22))])


ROCKS = np.array([[0.0, 0.35], [0.9, -0.3], [1.0, 0.65]])  # where, of a vehicle that is steered past them
ROCK = 0.25


def _struck(states: FloatArray) -> BoolArray:
    apart = np.linalg.norm(states[:, np.newaxis, :2] - ROCKS, axis=2)
    return np.asarray((apart < ROCK).any(axis=1))


def steer(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Forward at constant speed, the heading turned."""
    heading = states[:, 2] + np.broadcast_to(controls[:, 0], len(states))
    moved = 0.12 * np.column_stack([np.cos(heading), np.sin(heading)])
    return np.column_stack([states[:, :2] + moved, (heading + np.pi) % (2 * np.pi) - np.pi])


VEHICLE = Task(
    box=Box([-1.0, -1.0, -np.pi], [2.0, 1.5, np.pi], [False, False, True]),
    controls=np.array([-0.4, -0.2, 0.0, 0.2, 0.4]),
    reward=lambda _states, _controls, after: np.where(_struck(after), -40.0, -1.0),
    is_terminal=lambda states: _struck(states) | (states[:, 0] > 1.8),
    discount=0.99,
    optimistic_value=0.0,
    max_steps=80,
)
VEHICLE_START, VEHICLE_NOISE = np.array([[-0.8, 0.1, 0.0]]), np.array([0.02, 0.02, 0.1])


def rail(stop: float, *, length: float = 0.5) -> Step:
    """A cart with a pole on a rail that stops it hard at +- `stop` m: position, velocity, angle, rate."""

    def step(states: FloatArray, controls: FloatArray) -> FloatArray:
        x, v, angle, rate = states.T.copy()
        force = np.broadcast_to(controls[:, 0], len(states))
        for _ in range(10):
            sin, cos = np.sin(angle), np.cos(angle)
            pulled = (force + 0.1 * length * rate**2 * sin - 0.1 * v) / 1.1
            turned = (9.81 * sin - cos * pulled) / (length * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
            pushed = pulled - 0.1 * length * turned * cos / 1.1
            v, rate = v + 0.005 * pushed, rate + 0.005 * turned
            x, angle = x + 0.005 * v, angle + 0.005 * rate
            hit = (np.abs(x) >= stop) & (x * v > 0.0)
            rate = np.where(hit, rate + cos * v / (length * 4.0 / 3.0), rate)
            v, x = np.where(hit, 0.0, v), np.clip(x, -stop, stop)
        return np.column_stack([x, v, (angle + np.pi) % (2 * np.pi) - np.pi, rate])

    return step


RAIL = Task(
    box=Box([-1.9, -6.0, -np.pi, -15.0], [1.9, 6.0, np.pi, 15.0], [False, False, True, False]),
    controls=np.array([-10.0, 0.0, 10.0]),
    reward=lambda _states, _controls, after: np.cos(after[:, 2]) - 1.0 - 0.02 * after[:, 0] ** 2,
    discount=0.98,
    optimistic_value=0.0,
    max_steps=80,
)
RAIL_START = np.array([[0.0, 0.0, np.pi - 1e-3, 0.0]])


def agent_of(env: Stranger, seed: int, changes: dict[str, Any] | None = None) -> optimist.GPRMax:
    """A default agent for it."""
    return optimist.GPRMax(env, task=env.task, seed=seed, settings=changes)
