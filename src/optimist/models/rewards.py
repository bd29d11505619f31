"""Rewards: what is paid, learned from what was.

A few kinds of formula are tried, the simplest first, and judged by what they say of transitions that they
were not fitted to: a constant; one that depends on the control alone; polynomials of degree two of state and
control, before the step or after it, first of few terms, then of all; the root of one, which is a distance;
two levels, one of them beyond a side; a Gaussian process of state and control, before the step or after it,
where none of these explains what was paid. An end pays so much more, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from optimist.arrays import BoolArray, FloatArray, IntArray
from optimist.box import Box
from optimist.gp.inputs import Inputs
from optimist.models.ends import learn_ends
from optimist.models.regressor import Data, RegressorSettings, fit_regressor
from optimist.task import Terminal
from optimist.transitions import Transitions

FOLDS = 5
EXACT = 1e-3  # of the spread of rewards: a formula that errs by less is the formula
SIMPLER = 0.8  # a formula that is less simple must err by less than this share of the simpler one's error
RIDGE = 1e-9
PER_TERM = 4  # payments for each term of a polynomial of few
MOST_TERMS = 8
NOTHING_LEFT = 1e-9  # of what was paid: what is left to explain is rounding
BEYOND = 2.0  # spreads of the rewards seen: further from them nothing is believed ...
ROUNDING = 1e-10  # ... unless a formula errs by no more than this share of the spread: then it is the formula

EXPLAINED = 0.02  # of the spread of rewards: where a formula errs by less, no process is asked
FEWEST = 20  # payments that a process is fitted to
PROCESS = RegressorSettings(subset=200, max_basis=80, linear=False)
STREAM = 0x726577  # purpose number of the random stream that draws a likelihood subset
SMOOTH = {"smooth": 0, "smooth, after the step": 2}  # processes, and which of what is given they go by

# states [n, d], controls [n, k], next states [n, d] -> [n, p], or [n]
Columns = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class LearnedReward:
    """What is believed to be paid."""

    name: str  # of the kind
    formula: Columns
    level: float  # the mean of what was paid
    limits: tuple[float, float]
    error: float  # of what was not fitted, against the spread
    spread: float
    flat: bool  # it does not depend on the state
    n_fitted: int = 0
    jumps: tuple[float, ...] = ()  # what ends pay besides, for each kind of end
    ends: tuple[Terminal, ...] = ()  # where each kind of end is
    kinds: IntArray | None = None  # [n_ended], of which kind each end was that was seen
    most: float = np.inf  # that a step pays, what an end pays besides included

    def __call__(self, states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        """Of n transitions.  [n]"""
        paid = self.before(states, controls, next_states)
        for where, jump in zip(self.ends, self.jumps, strict=bool(self.ends)):
            if jump != 0.0:
                paid = paid + jump * where(next_states)
        return paid if np.isinf(self.most) else np.minimum(paid, self.most)

    def before(self, states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        """The same, ends aside.  [n]"""
        if self.name == "constant":
            return np.full(len(states), np.clip(self.level, *self.limits))
        controls = np.broadcast_to(controls, (len(states), controls.shape[1]))
        return np.clip(self.formula(states, controls, next_states), *self.limits)

    @property
    def said(self) -> str:
        """For `print(task)`."""
        jumps = " or ".join(f"{jump:+.4g}" for jump in self.jumps)
        jump = f", {jumps} at an end" if any(self.jumps) else ""
        value = f" {self.level:.4g}" if self.name == "constant" else ""
        return f"{self.name}{value}{jump}"


def learn_reward(seen: Transitions, box: Box, listed: FloatArray) -> LearnedReward:
    """From what was paid, with the controls `listed` [n_actions, k]; what ends pay is left for later."""
    controls = seen.controls(listed)
    live = ~seen.terminated
    live = live if live.any() else np.ones(len(seen), dtype=np.bool_)
    given = seen.states[live], controls[live], seen.next_states[live]
    paid = seen.rewards[live]
    spread = float(paid.max() - paid.min())
    fitted: list[tuple[str, Columns, bool, float]] = []
    sign = -1.0 if paid.max() <= 0.0 else 1.0 if paid.min() >= 0.0 else 0.0
    for kind in kinds(box, listed if seen.actions.ndim == 1 else None):
        if kind.root and sign == 0.0:
            continue
        table = kind.columns(*given)
        error = 0.0 if spread == 0.0 else kind.judged(table, paid, sign) / spread
        fitted.append((kind.name, kind.formula(table, paid, sign), kind.flat, error))
        if error <= EXACT:
            break
    if min(one[3] for one in fitted) > EXPLAINED and len(np.unique(paid)) == 2 and len(paid) > FOLDS:
        fitted.append(_levels(seen.only(live), paid, box))
    for smooth, at in SMOOTH.items():
        if min(one[3] for one in fitted) > EXPLAINED and len(paid) >= FEWEST:
            fitted.append(_process(smooth, at, given, paid, box, listed))
    chosen = fitted[0]
    for one in fitted[1:]:
        if one[3] < SIMPLER * chosen[3] or one[3] <= EXACT < chosen[3]:
            chosen = one
    name, formula, flat, error = chosen
    # Along a short path many a formula seems right to six digits or eight, and is not anywhere else.
    beyond = np.inf if error <= ROUNDING else BEYOND * spread
    low, high = paid.min() - beyond, paid.max() + beyond
    if paid.max() <= 0.0:
        high = min(high, 0.0)
    if paid.min() >= 0.0:
        low = max(low, 0.0)
    learned = LearnedReward(
        name, formula, float(paid.mean()), (float(low), float(high)), error, spread, flat, n_fitted=len(paid)
    )
    if seen.terminated.any():
        ended = seen.terminated
        said = learned.before(seen.states[ended], controls[ended], seen.next_states[ended])
        missed = seen.rewards[ended] - said
        size = max(spread, abs(float(paid.mean())))
        labels = kinds_of_ends(missed, size)
        jumps = [float(np.median(missed[labels == kind])) for kind in range(labels.max() + 1)]
        jumps = [jump if abs(jump) > 0.01 * size else 0.0 for jump in jumps]
        most = 0.0 if seen.rewards.max() <= 0.0 else np.inf  # what was never a gain is none at an end
        learned = replace(learned, jumps=tuple(jumps), kinds=labels, most=most)
    return learned


def kinds_of_ends(paid: FloatArray, size: float) -> IntArray:
    """Which of two kinds each end is, by what it `paid` [n] besides: a crash and a goal; or all of one.

    Two where the largest gap between payments is larger than what is usual (`size`), and than all other gaps
    together.
    """
    order = np.sort(paid)
    gaps = np.diff(order)
    if not gaps.size or gaps.max() <= max(size, gaps.sum() - gaps.max()):
        return np.zeros(len(paid), dtype=np.int64)
    return np.asarray(paid > order[gaps.argmax()], dtype=np.int64)


def _levels(seen: Transitions, paid: FloatArray, box: Box) -> tuple[str, Columns, bool, float]:
    """One of two levels, the rarer beyond some sides or near some places; judged by a fifth left out."""
    low, high = np.unique(paid)
    usual, rare = (low, high) if (paid == low).mean() >= 0.5 else (high, low)

    def learned(rows: BoolArray) -> Columns:
        marked = replace(seen.only(rows), terminated=paid[rows] == rare)
        # where a step began says nothing of the level that is paid where it ends
        marked = replace(marked, states=marked.next_states[~marked.terminated][:1].repeat(rows.sum(), axis=0))
        where = learn_ends(marked, box, failures=False)
        if where is None:
            return lambda _, __, after: np.full(len(after), usual)
        return lambda _, __, after: np.where(where(after), rare, usual)

    kept = np.arange(len(paid)) % FOLDS != 0
    missed = learned(kept)(seen.states, seen.states, seen.next_states)[~kept] != paid[~kept]
    error = float(np.sqrt(missed.mean()))
    return f"{usual:.4g}, elsewhere {rare:.4g}", learned(np.ones_like(kept)), False, error


def _process(
    name: str,
    at: int,
    given: tuple[FloatArray, FloatArray, FloatArray],
    paid: FloatArray,
    box: Box,
    listed: FloatArray,
) -> tuple[str, Columns, bool, float]:
    """A Gaussian process of state and control; judged by a fifth that it was not fitted to."""
    points = np.hstack([given[at], given[1]])
    inputs = Inputs.spanning(box, given[at]).with_controls(listed)
    kept = np.arange(len(paid)) % FOLDS != 0
    stream = np.random.default_rng([STREAM, len(paid)])
    with threadpool_limits(1, user_api="blas"):
        some = fit_regressor(Data(points[kept], paid[kept]), inputs, PROCESS, None, stream)
        missed = some.mean(points[~kept]) - paid[~kept]
        whole = replace(some, n_fitted=len(paid))  # keeps its hyperparameters
        whole = fit_regressor(Data(points, paid), inputs, PROCESS, whole, stream)
    error = float(np.sqrt((missed**2).mean()) / (paid.max() - paid.min()))
    return name, lambda *given: whole.mean(np.hstack([given[at], given[1]])), False, error


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of formula: weighted columns, or the `root` of their sum."""

    name: str
    columns: Columns
    flat: bool = False  # the state is left out
    root: bool = False
    few: bool = False  # of the columns only those that explain most, one after another

    def formula(self, table: FloatArray, paid: FloatArray, sign: float) -> Columns:
        """Fitted to what was `paid` [n] where its columns are the `table`; a root has the `sign` of them."""
        weights = self._weights(table, paid)
        return lambda *given: self._paid(self.columns(*given), weights, sign)

    def judged(self, table: FloatArray, paid: FloatArray, sign: float) -> float:
        """How far off it is, in the mean, of what it was not fitted to."""
        if len(paid) < 2:
            return float(np.abs(paid - paid.mean()).max())
        folds = np.arange(len(paid)) % min(FOLDS, len(paid))
        missed = np.empty(len(paid))
        for fold in range(int(folds.max()) + 1):
            out = folds == fold
            weights = self._weights(table[~out], paid[~out])
            missed[out] = self._paid(table[out], weights, sign) - paid[out]
        return float(np.sqrt((missed**2).mean()))

    def _weights(self, table: FloatArray, paid: FloatArray) -> FloatArray:
        if self.few:
            return _few_weights(table, paid)
        gram = table.T @ table
        ridge = RIDGE * max(float(np.trace(gram)), 1e-300) / len(gram)
        aim = paid**2 if self.root else paid
        return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), table.T @ aim))

    def _paid(self, table: FloatArray, weights: FloatArray, sign: float) -> FloatArray:
        sums = (table * weights).sum(axis=1)  # of each by itself: whoever is asked with it changes no bit
        return np.asarray(sign * np.sqrt(np.maximum(sums, 0.0)) if self.root else sums)


def _few_weights(table: FloatArray, paid: FloatArray) -> FloatArray:
    """Weights [p] of the columns of a `table` [n, p] for what was `paid` [n], most of them 0.

    The column comes next that explains most of what those before it left: what is paid depends on few things.
    """
    weights, chosen = np.zeros(table.shape[1]), [0]
    scale = float(np.linalg.norm(paid))
    for _ in range(min(MOST_TERMS, len(paid) // PER_TERM)):
        basis = np.linalg.qr(table[:, chosen])[0]
        left = paid - basis @ (basis.T @ paid)
        if np.linalg.norm(left) <= NOTHING_LEFT * scale:
            break
        others = table - basis @ (basis.T @ table)
        sizes = np.linalg.norm(others, axis=0)
        alive = sizes > NOTHING_LEFT * np.maximum(np.linalg.norm(table, axis=0), 1e-300)
        if not alive.any():
            break
        gains = np.where(alive, np.abs(others.T @ left) / np.where(alive, sizes, 1.0), -1.0)
        chosen.append(int(np.argmax(gains >= (1.0 - NOTHING_LEFT) * gains.max())))  # the simplest of equals
    norms = np.linalg.norm(table[:, chosen], axis=0)
    weights[chosen] = np.linalg.lstsq(table[:, chosen] / norms, paid, rcond=None)[0] / norms
    return weights


def kinds(box: Box, listed: FloatArray | None) -> list[Kind]:
    """The kinds of formula, the simplest first."""

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

    def together(states: FloatArray, controls: FloatArray) -> FloatArray:
        both = np.hstack([coordinates(states), controls])
        return np.hstack([np.ones((len(both), 1)), _products(both)])

    def before(states: FloatArray, controls: FloatArray, _: FloatArray) -> FloatArray:
        return quadratic(states, controls)

    def after(_: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return quadratic(next_states, controls)

    return [
        Kind("constant", lambda states, *_: np.ones((len(states), 1)), flat=True),
        Kind("of the control alone", lambda _, controls, __: of_controls(controls), flat=True),
        Kind("of few terms, before the step", lambda before, acts, _: together(before, acts), few=True),
        Kind("of few terms, after the step", lambda _, acts, after: together(after, acts), few=True),
        Kind("quadratic, before the step", before),
        Kind("quadratic, after the step", after),
        Kind("a distance, before the step", before, root=True),
        Kind("a distance, after the step", after, root=True),
    ]


def _products(columns: FloatArray) -> FloatArray:
    """All of them, and of each two.  [n, p + p (p + 1) / 2]"""
    rows, cols = np.triu_indices(columns.shape[1])
    return np.hstack([columns, columns[:, rows] * columns[:, cols]])
