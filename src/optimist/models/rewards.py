"""Rewards: what is paid, learned from what was.

A few kinds of formula are tried, the simplest first, and judged by what they say of transitions that they
were not fitted to: a constant; one that depends on the control alone; polynomials of degree two of state and
control, before the step or after it. An end pays so much more, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.task import Terminal
from optimist.transitions import Transitions

FOLDS = 5
EXACT = 1e-3  # of the spread of rewards: a formula that errs by less is the formula
SIMPLER = 0.8  # a formula that is less simple must err by less than this share of the simpler one's error
RIDGE = 1e-9
BEYOND = 2.0  # spreads of the rewards seen: further from them nothing is believed

Columns = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class LearnedReward:
    """What is believed to be paid."""

    name: str  # of the kind
    columns: Columns
    weights: FloatArray  # [p]
    limits: tuple[float, float]
    error: float  # of what was not fitted, against the spread
    spread: float
    flat: bool  # it does not depend on the state
    jump: float = 0.0  # what an end pays besides
    ends: Terminal | None = None
    n_fitted: int = 0

    def __call__(self, states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        """Of n transitions.  [n]"""
        paid = self.before(states, controls, next_states)
        if self.ends is not None and self.jump != 0.0:
            paid = paid + self.jump * self.ends(next_states)
        return paid

    def before(self, states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        """The same, ends aside.  [n]"""
        controls = np.broadcast_to(controls, (len(states), controls.shape[1]))
        paid = self.columns(states, controls, next_states) @ self.weights
        return np.clip(paid, *self.limits)

    @property
    def said(self) -> str:
        """For `print(task)`."""
        jump = f", {self.jump:+.4g} at an end" if self.jump else ""
        value = f" {self.weights[0]:.4g}" if self.name == "constant" else ""
        return f"{self.name}{value}{jump}"


def learn_reward(seen: Transitions, box: Box, listed: FloatArray) -> LearnedReward:
    """From what was paid, with the controls `listed` [n_actions, k]; what ends pay is left for later."""
    controls = seen.controls(listed)
    live = ~seen.terminated
    live = live if live.any() else np.ones(len(seen), dtype=np.bool_)
    given = seen.states[live], controls[live], seen.next_states[live]
    paid = seen.rewards[live]
    spread = float(paid.max() - paid.min())
    found = []
    for name, columns, flat in kinds(box, listed if seen.actions.ndim == 1 else None):
        table = columns(*given)
        error = 0.0 if spread == 0.0 else _judged(table, paid) / spread
        found.append((name, columns, flat, table, error))
        if error <= EXACT:
            break
    chosen = found[0]
    for one in found[1:]:
        if one[4] < SIMPLER * chosen[4] or one[4] <= EXACT < chosen[4]:
            chosen = one
    name, columns, flat, table, error = chosen
    low, high = paid.min() - BEYOND * spread, paid.max() + BEYOND * spread
    if paid.max() <= 0.0:
        high = min(high, 0.0)
    if paid.min() >= 0.0:
        low = max(low, 0.0)
    weights = _fitted(table, paid)
    limits = float(low), float(high)
    learned = LearnedReward(name, columns, weights, limits, error, spread, flat, n_fitted=len(paid))
    if seen.terminated.any():
        ended = seen.terminated
        said = learned.before(seen.states[ended], controls[ended], seen.next_states[ended])
        jump = float(np.median(seen.rewards[ended] - said))
        size = max(spread, abs(float(paid.mean())))
        learned = LearnedReward(
            name, columns, weights, limits, error, spread, flat,
            jump=jump if abs(jump) > 0.01 * size else 0.0, n_fitted=len(paid),
        )  # fmt: skip
    return learned


def kinds(box: Box, listed: FloatArray | None) -> list[tuple[str, Columns, bool]]:
    """The kinds of formula, the simplest first: name, columns of its table, whether the state is left out."""

    def of_controls(controls: FloatArray) -> FloatArray:
        if listed is not None:
            return np.asarray((controls[:, np.newaxis] == listed).all(axis=2), dtype=np.float64)
        return np.hstack([np.ones((len(controls), 1)), _products(controls)])

    def coordinates(states: FloatArray) -> FloatArray:
        parts = [(box.wrap(states) - 0.5 * (box.low + box.high)) / (0.5 * box.widths)]
        for axis in np.flatnonzero(box.periodic):
            turn = 2.0 * np.pi * states[:, axis : axis + 1] / box.widths[axis]
            parts += [np.cos(turn), np.sin(turn)]
        return np.hstack(parts)

    def quadratic(states: FloatArray, controls: FloatArray) -> FloatArray:
        where = coordinates(states)
        acts = of_controls(controls)
        acts = acts if listed is None else acts[:, 1:]
        acts = acts[:, 1:] if listed is None else acts
        crossed = (where[:, :, np.newaxis] * acts[:, np.newaxis]).reshape(len(where), -1)
        return np.hstack([np.ones((len(where), 1)), _products(where), acts, crossed])

    return [
        ("constant", lambda states, *_: np.ones((len(states), 1)), True),
        ("of the control alone", lambda _, controls, __: of_controls(controls), True),
        ("quadratic, before the step", lambda states, controls, _: quadratic(states, controls), False),
        ("quadratic, after the step", lambda _, controls, after: quadratic(after, controls), False),
    ]


def _products(columns: FloatArray) -> FloatArray:
    """All of them, and of each two.  [n, p + p (p + 1) / 2]"""
    rows, cols = np.triu_indices(columns.shape[1])
    return np.hstack([columns, columns[:, rows] * columns[:, cols]])


def _fitted(table: FloatArray, paid: FloatArray) -> FloatArray:
    gram = table.T @ table
    ridge = RIDGE * max(float(np.trace(gram)), 1e-300) / len(gram)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), table.T @ paid))


def _judged(table: FloatArray, paid: FloatArray) -> float:
    """How far off it is, in the mean, of what it was not fitted to."""
    if len(paid) < 2:
        return float(np.abs(paid - paid.mean()).max())
    folds = np.arange(len(paid)) % min(FOLDS, len(paid))
    missed = np.empty(len(paid))
    for fold in range(int(folds.max()) + 1):
        out = folds == fold
        missed[out] = table[out] @ _fitted(table[~out], paid[~out]) - paid[out]
    return float(np.sqrt((missed**2).mean()))
