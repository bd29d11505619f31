"""Agreement: does an environment do what its task says? Says so once when it does not."""

from __future__ import annotations

import warnings

import numpy as np

from optimist.arrays import Action, FloatArray
from optimist.task import Task

# Environments compute in float32; a wrong formula is off by far more.
RELATIVE_TOLERANCE = 1e-3
ABSOLUTE_TOLERANCE = 1e-6


class Agreement:
    """Compares each transition with the task, and warns once of each kind of contradiction.

    The planner never asks the environment: it believes the task. A reward that was copied wrongly would
    go unnoticed, and the agent would learn another problem well.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._warned: set[str] = set()

    def check(
        self, state: FloatArray, action: Action, next_state: FloatArray, reward: float, terminated: bool
    ) -> None:
        """Compare one transition with the task; not where neither need mean anything."""
        if not (self._task.box.near(state) and self._task.box.near(next_state)):
            return
        self._check_reward(state, action, next_state, reward)
        self._check_end(next_state, terminated)

    def _check_reward(self, state: FloatArray, action: Action, next_state: FloatArray, reward: float) -> None:
        control = self._task.applied(np.array([action]))
        one = state[np.newaxis], control, next_state[np.newaxis]
        promised = float(self._task.rewards(*one)[0])
        if abs(promised - reward) > RELATIVE_TOLERANCE * abs(reward) + ABSOLUTE_TOLERANCE:
            self._warn(
                "reward",
                f"The environment paid {reward:.6g} for {_named(action)} in state {_brief(state)} (next "
                f"state {_brief(next_state)}), but `reward` says {promised:.6g}. The planner believes "
                "`reward`: correct it. Is it paid for the state before the step or after it?",
            )

    def _check_end(self, state: FloatArray, terminated: bool) -> None:
        if bool(self._task.terminal(state[np.newaxis])[0]) != terminated:
            self._warn("terminal", self._wrong_end(state, terminated))

    def _wrong_end(self, state: FloatArray, terminated: bool) -> str:
        did = "terminated" if terminated else "did not terminate"
        said = "is not given" if self._task.is_terminal is None else f"says {not terminated}"
        return (
            f"The environment {did} at state {_brief(state)}, but `is_terminal` {said}. The planner "
            "believes `is_terminal`: give the states at which episodes end (a time limit is not one)."
        )

    def _warn(self, kind: str, sentence: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(sentence, UserWarning, stacklevel=5)  # at the caller of `step`


def _named(action: Action) -> str:
    return f"action {action}" if np.ndim(action) == 0 else f"the control {_brief(np.asarray(action))}"


def _brief(state: FloatArray) -> str:
    return f"[{', '.join(f'{coordinate:.6g}' for coordinate in state)}]"
