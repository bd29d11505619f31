"""The paper's model-learner: Gaussian processes on displacements (Section 3.2).

One process per action and coordinate, each with its own hyperparameters (the paper), or one joint process per
coordinate over state and control, which lets every transition inform every action when the dynamics are
smooth in the control.

What is learned from, and what is not:

- Displacements are taken the short way round on periodic axes.
- Transitions that arrive *on* the edge of an axis that is not periodic are left out, for all coordinates.
  Such a successor was moved there (a wall, a speed limit, the goal line), often with a jolt in the other
  coordinates; a smooth model that has to explain it loses what it had learned elsewhere. The model then does
  not know the wall; the planner clips to the box.
- Transitions that stay on an edge (a handlebar at its stop) are left out for that coordinate only: the others
  move as freely as anywhere, and without them the agent would never learn what happens there.
- Transitions that ended an episode are left out: the end may have cut the step short (an acrobot's stops at
  the goal), and a model that hardly knows noise bends over backwards to explain it. It is one in an episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.gp import Inputs
from optimist.grid import Grid
from optimist.models.knownness import KNOWNNESS, Knownness, Variances
from optimist.models.prediction import Prediction
from optimist.models.regressor import Regressor, RegressorSettings, fit_regressor
from optimist.transitions import Transitions

THIN_ABOVE = 100_000  # nodes: on larger grids variances, which cost most, are found on every second node
EDGE = 1e-9  # of the width of an axis: so near counts as on the edge
FIT_STREAM = 0x6F7074  # purpose number of the random streams that draw likelihood subsets


@dataclass(frozen=True)
class ModelSettings:
    """Which model."""

    joint: bool = False  # one process per coordinate over (state, control) instead of one per action
    regressor: RegressorSettings = field(default_factory=RegressorSettings)
    knownness: str = "gp-variance"

    def __post_init__(self) -> None:
        if self.knownness not in KNOWNNESS:
            known = ", ".join(KNOWNNESS)
            raise ValueError(f"`knownness` must be one of {known}; got {self.knownness!r}.")


@dataclass(frozen=True, eq=False)
class GPDynamics:
    """A learned model. Immutable: more data make a new one (`fit_dynamics`)."""

    box: Box
    controls: FloatArray  # [n_actions, k]
    settings: ModelSettings
    regressors: tuple[tuple[Regressor, ...] | None, ...]  # [n_actions] or [1] joint, each [d]; None: no data
    seen: Transitions  # all, those left out too

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors of `states` [n, d] under `controls` [n, k] or [1, k].  [n, d]

        A control that belongs to no action is known to a joint model only; another predicts no move.
        """
        return self.predict_with_uncertainty(states, controls)[0]

    def predict_with_uncertainty(
        self, states: FloatArray, controls: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Successors, and the largest normalised variance of their coordinates.  [n, d], [n]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        uncertainty = np.ones(len(states))
        for regressors, rows, points in self._shares(states, controls):
            predicted = [regressor.predict(points) for regressor in regressors]
            next_states[rows] += np.column_stack([mean for mean, _ in predicted])
            uncertainty[rows] = np.max([variance for _, variance in predicted], axis=0)
        return self.box.wrap(next_states), uncertainty

    def predict_on(self, grid: Grid) -> Prediction:
        """Successors of all nodes under all actions. An action without data leads nowhere, unknown."""
        if grid.n_dims != self.box.n_dims:
            raise ValueError(f"The grid must have {self.box.n_dims} axes; got {grid.n_dims}.")
        n_actions, rule = len(self.controls), KNOWNNESS[self.settings.knownness]
        next_states = np.empty((n_actions, grid.n_nodes, grid.n_dims))
        uncertainty = np.empty((n_actions, grid.n_nodes))
        nodes = grid.nodes
        for action in range(n_actions):
            next_states[action] = nodes
            uncertainty[action] = self._fill(action, grid, rule, next_states[action])
            next_states[action] = self.box.wrap(next_states[action])
        return Prediction(next_states, uncertainty)

    def _fill(self, action: int, grid: Grid, rule: Knownness, next_states: FloatArray) -> FloatArray:
        """Add the displacements of one action to `next_states` [N, d]; its uncertainty [N]."""
        regressors = self.regressors[0 if self.settings.joint else action]
        if regressors is None:
            tried = (self.seen.actions == action).any()
            if tried and not rule.needs_variance:
                return rule.uncertainty(grid, action, None, self.seen)
            return np.full(grid.n_nodes, rule.untried)
        control = self.controls[action] if self.settings.joint else None
        thin = grid.thinned() if grid.n_nodes > THIN_ABOVE else grid
        normalised = np.empty((grid.n_dims, thin.n_nodes))
        for axis, regressor in enumerate(regressors):
            together = rule.needs_variance and thin is grid
            mean, variance = regressor.predict_on(grid, control, with_variance=together)
            next_states[:, axis] += mean
            if rule.needs_variance and variance is None:
                _, variance = regressor.predict_on(thin, control)
            if variance is not None:
                normalised[axis] = variance
        if not rule.needs_variance:
            return rule.uncertainty(grid, action, None, self.seen)
        priors = np.array([regressor.prior_variance for regressor in regressors])
        normalised = normalised if thin is grid else thin.spread(normalised, grid)
        return rule.uncertainty(grid, action, Variances(normalised, priors), self.seen)

    def _shares(
        self, states: FloatArray, controls: FloatArray
    ) -> Iterator[tuple[tuple[Regressor, ...], BoolArray, FloatArray]]:
        """The regressors with the rows they answer for, and their raw inputs."""
        if self.settings.joint:
            if self.regressors[0] is not None:
                yield self.regressors[0], np.ones(len(states), dtype=np.bool_), np.hstack([states, controls])
            return
        unanswered = np.ones(len(states), dtype=np.bool_)
        for action, regressors in enumerate(self.regressors):
            rows = unanswered & (controls == self.controls[action]).all(axis=1)
            unanswered &= ~rows
            if regressors is not None and rows.any():
                yield regressors, rows, states[rows]


def usable(box: Box, transitions: Transitions) -> BoolArray:
    """Which coordinates of which transitions to learn from: those no edge had a hand in.  [n, d]"""
    states, next_states = transitions.states, transitions.next_states
    arrived = np.zeros(len(states), dtype=np.bool_)
    touches = np.zeros(states.shape, dtype=np.bool_)
    for edge in (box.low, box.high):
        after = _on(edge, next_states, box)
        touches |= after
        arrived |= (after & ~_on(edge, states, box)).any(axis=1)
    return np.asarray(~touches & ~(arrived | transitions.terminated)[:, np.newaxis])


def _on(edge: FloatArray, states: FloatArray, box: Box) -> BoolArray:
    """Whether each coordinate lies on that edge of its axis; never on a periodic one.  [n, d]"""
    return np.asarray((np.abs(states - edge) <= EDGE * box.widths) & ~box.periodic)


def fit_dynamics(
    transitions: Transitions,
    box: Box,
    controls: FloatArray,
    settings: ModelSettings | None = None,
    *,
    previous: GPDynamics | None = None,
    fit_seed: int,
) -> GPDynamics:
    """The model given `transitions`; what `previous` had found is kept until the data grew enough."""
    settings = settings or ModelSettings()
    controls = np.array(controls, dtype=np.float64)
    controls = controls[:, np.newaxis] if controls.ndim == 1 else controls
    if transitions.states.shape[1:] != (box.n_dims,):
        raise ValueError(f"States must have {box.n_dims} coordinates; got {transitions.states.shape[1]}.")
    if len(transitions) and transitions.actions.max() >= len(controls):
        row = int(transitions.actions.argmax())
        raise ValueError(
            f"`actions` must be below {len(controls)}, the number of controls; "
            f"got {transitions.actions[row]} in row {row}."
        )
    if previous is not None and not (
        (previous.settings, previous.box) == (settings, box) and np.array_equal(previous.controls, controls)
    ):
        previous = None  # another kind of model: nothing of it fits
    kept = usable(box, transitions)
    states, actions = transitions.states, transitions.actions
    displacements = box.displacement(states, transitions.next_states)
    inputs = Inputs.spanning(box, states[kept.any(axis=1)])
    groups = [actions == action for action in range(len(controls))]
    points = states
    if settings.joint:
        inputs = inputs.with_controls(controls)
        groups = [np.ones(len(actions), dtype=np.bool_)]
        points = np.hstack([states, controls[actions]])

    def fit_axis(number: int, axis: int, rows: BoolArray) -> Regressor:
        before = previous.regressors[number] if previous is not None else None
        stream = np.random.default_rng([fit_seed, FIT_STREAM, number, axis, int(rows.sum())])
        return fit_regressor(
            points[rows],
            displacements[rows, axis],
            inputs,
            settings.regressor,
            before[axis] if before is not None else None,
            stream,
            unit=float(inputs.scales[axis]),
        )

    def fit_group(number: int, members: BoolArray) -> tuple[Regressor, ...] | None:
        rows = kept & members[:, np.newaxis]
        if not rows.any(axis=0).all():
            return None  # of some coordinate nothing was seen
        return tuple(fit_axis(number, axis, rows[:, axis]) for axis in range(box.n_dims))

    # A few hundred points are too few to share: two BLAS threads take three times as long as one.
    with threadpool_limits(1, user_api="blas"):
        regressors = tuple(fit_group(number, rows) for number, rows in enumerate(groups))
    return GPDynamics(box, controls, settings, regressors, transitions)
