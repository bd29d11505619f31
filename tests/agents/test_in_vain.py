"""What was just tried and led nowhere is not tried again at once, as long as it is not known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import optimist
from optimist.agents.looking import IN_VAIN, in_vain
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.planning import Flow
from optimist.steps import Successors
from optimist.transitions import Transition

GRID = Grid.uniform(Box([0.0], [1.0]), [3])
HERE, THERE = np.array([0.0]), np.array([0.5])


def unsure(*of_actions: float) -> Flow:
    """Three actions, each as unknown everywhere as is said."""
    next_states = np.repeat(GRID.nodes[np.newaxis], 3, axis=0)
    return Flow.of(GRID, Successors(next_states, np.repeat(np.array(of_actions)[:, np.newaxis], 3, axis=1)))


def tried(
    action: int, before: FloatArray = HERE, after: FloatArray = HERE, *, cut: bool = False
) -> Transition:
    return Transition(before, action, 0.0, after, False, cut)


@pytest.mark.parametrize(
    ("seen", "of_actions", "expected"),
    [
        ([], (1.0, 1.0, 1.0), [False, False, False]),
        ([tried(1)], (1.0, 1.0, 1.0), [False, True, False]),
        ([tried(1), tried(2)], (1.0, 0.2, 0.2), [False, True, True]),
        ([tried(1)], (1.0, IN_VAIN / 2, 1.0), [False, False, False]),  # it is known to stay there
        ([tried(0), tried(1), tried(2)], (1.0, 1.0, 1.0), [False, False, False]),  # nothing is left
        ([tried(0), tried(1), tried(2)], (1.0, 0.0, 1.0), [True, False, True]),
        ([tried(1), tried(2, THERE)], (1.0, 1.0, 1.0), [False, False, False]),  # it moved, and came back
        ([tried(1, cut=True)], (1.0, 1.0, 1.0), [False, False, False]),  # in another episode
        ([tried(1, THERE, THERE)], (1.0, 1.0, 1.0), [False, False, False]),  # elsewhere
    ],
)
def test_which(seen: list[Transition], of_actions: tuple[float, ...], expected: list[bool]) -> None:
    assert in_vain(unsure(*of_actions), seen, HERE, HERE).tolist() == expected


class Room(gymnasium.Env[Any, Any]):
    """A point between walls, in the corner at first; somewhere in the dark there is a prize."""

    observation_space = spaces.Box(-2.0, 2.0, (2,), np.float64)
    action_space = spaces.Discrete(5)
    moves = 0.25 * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])

    def __init__(self) -> None:
        self.streak = self.longest = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[FloatArray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1.8, -1.0, 2)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        after = np.clip(self.state + self.moves[action], -2.0, 2.0)
        self.streak = self.streak + 1 if np.array_equal(after, self.state) else 0
        self.longest, self.state = max(self.longest, self.streak), after
        found = bool(np.linalg.norm(after - 1.0) < 0.5)
        return after.copy(), 10.0 * found, found, False, {}


def test_who_searches_does_not_lean_against_a_wall() -> None:
    room = Room()
    optimist.GPRMax(TimeLimit(room, 80), seed=0).learn(80)
    assert room.longest <= 5  # 60 before
