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
- A stop inside the box, where something holds a coordinate again and again, is treated as an edge (`stops`).
- Transitions that ended an episode are left out: the end may have cut the step short (an acrobot's stops at
  the goal), and a model that hardly knows noise bends over backwards to explain it. It is one in an episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.documents import parsed
from optimist.filtering import Filter
from optimist.gp.inputs import Inputs
from optimist.grid import Grid
from optimist.models.edges import usable
from optimist.models.knownness import KNOWNNESS, Asked, Knownness, Variances
from optimist.models.model import Arrays, Document, ModelSettings, Packed
from optimist.models.packed import ModelSaid, Seen, check_regressor, require_no_more
from optimist.models.regressor import NOISE_DEVIATIONS, Regressor, RegressorSettings, fit_regressor
from optimist.models.sensing import Slopes, ToldApart, told_apart
from optimist.models.stops import Stops, find_stops
from optimist.models.uneven import Uneven, find_uneven
from optimist.steps import Successors
from optimist.task import Task
from optimist.transitions import Transition, Transitions

THIN_ABOVE = 100_000  # nodes: on larger grids variances, which cost most, are found on every second node
FIT_STREAM = 0x6F7074  # purpose number of the random streams that draw likelihood subsets


class GPSettings(ModelSettings, RegressorSettings):
    """Which processes, and how they are fitted."""

    learner: Literal["gp"] = "gp"
    kind: Literal["joint", "per-action"] = "joint"  # one process per coordinate over (state, control), or ...

    @property
    def joint(self) -> bool:
        """Whether all actions share their processes."""
        return self.kind == "joint"


DEFAULT_SETTINGS, DEFAULT_KNOWNNESS = GPSettings(), "cell-variance"


@dataclass(frozen=True, eq=False)
class GPDynamics:
    """A learned model. Immutable: more data make a new one (`fit_dynamics`)."""

    box: Box
    controls: FloatArray  # [n_actions, k]
    settings: GPSettings
    knownness: str
    regressors: tuple[tuple[Regressor, ...] | None, ...]  # [n_actions] or [1] joint, each [d]; None: no data
    seen: Transitions  # all, those left out too

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors of `states` [n, d] under `controls` [n, k] or [1, k].  [n, d]

        A control that belongs to no action is known to a joint model only; another predicts no move.
        """
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        for regressors, rows, points in self._shares(states, controls):
            next_states[rows] += np.column_stack([regressor.mean(points) for regressor in regressors])
        return self._held(next_states)

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """Successors if the model errs by `draws` [n, d] standard deviations everywhere.  [n, d]

        One row of standard normal numbers is one of the models that the data leave possible, its errors of
        one kind wherever it goes.
        """
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        for regressors, rows, points in self._shares(states, controls):
            for axis, regressor in enumerate(regressors):
                mean, deviation = regressor.mean_and_deviation(points)
                next_states[rows, axis] += mean + draws[rows, axis] * deviation
        return self._held(next_states)

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        """Successors, and the largest normalised variance of their coordinates.  [n, d], [n]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        uncertainty = np.ones(len(states))
        for regressors, rows, points in self._shares(states, controls):
            predicted = [regressor.predict(points) for regressor in regressors]
            next_states[rows] += np.column_stack([mean for mean, _ in predicted])
            uncertainty[rows] = np.max([variance for _, variance in predicted], axis=0)
        return Successors(self._held(next_states), uncertainty)

    def predict_on(self, grid: Grid) -> Successors:
        """Successors of all nodes under all actions. An action without data leads nowhere, unknown."""
        if grid.n_dims != self.box.n_dims:
            raise ValueError(f"The grid must have {self.box.n_dims} axes; got {grid.n_dims}.")
        n_actions, rule = len(self.controls), KNOWNNESS[self.knownness]
        next_states = np.empty((n_actions, grid.n_nodes, grid.n_dims))
        uncertainty = np.empty((n_actions, grid.n_nodes))
        nodes = grid.nodes
        for action in range(n_actions):
            next_states[action] = nodes
            uncertainty[action] = self._fill(action, grid, rule, next_states[action])
            next_states[action] = self._held(next_states[action])
        return Successors(next_states, uncertainty)

    def _held(self, next_states: FloatArray) -> FloatArray:
        """Wrapped, and held where the system is."""
        return self.box.wrap(next_states if self.stops is None else self.stops(next_states))

    @cached_property
    def stops(self) -> Stops | None:
        """Where something holds the system inside the box; None: nowhere."""
        return find_stops(self.box, self.seen)

    def _fill(self, action: int, grid: Grid, rule: Knownness, next_states: FloatArray) -> FloatArray:
        """Add the displacements of one action to `next_states` [N, d]; its uncertainty [N]."""
        regressors = self.regressors[0 if self.settings.joint else action]
        if regressors is None:
            tried = (self._numbered.actions == action).any()
            if tried and not rule.needs_variance:
                return rule.uncertainty(grid, Asked(action, self._numbered))
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
            return rule.uncertainty(grid, Asked(action, self._numbered))
        priors = np.array([regressor.prior_variance for regressor in regressors])
        normalised = normalised if thin is grid else thin.spread(normalised, grid)
        return rule.uncertainty(grid, Asked(action, self._numbered, Variances(normalised, priors)))

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

    def surprised_by(self, transition: Transition, predicted: FloatArray, *, share: float) -> bool:
        """Whether a successor is far from its prediction [d], against spread and noise of displacements."""
        regressors = self.regressors[0 if self.settings.joint else int(transition.action)]
        if regressors is None:
            return False
        missed = np.abs(self.box.displacement(predicted, transition.next_state))
        allowed = np.array([regressor.allowance(share) for regressor in regressors])
        if self.uneven is not None:
            allowed = np.maximum(allowed, NOISE_DEVIATIONS * self.uneven(transition.state[np.newaxis])[0])
        free = usable(self.box, Transitions.of([transition]), self.stops)[0]
        return bool((missed > allowed)[free].any())

    @cached_property
    def noise(self) -> FloatArray | None:
        """Standard deviation [d] of where a step leads, apart from what is not known; None: there is none.

        Of several groups of processes the median.
        """
        groups = [[one.noise for one in group] for group in self.regressors if group is not None]
        noise = np.median(groups, axis=0) if groups else np.zeros(self.box.n_dims)
        return np.asarray(noise) if noise.any() else None

    @cached_property
    def motion(self) -> FloatArray | None:
        """What of the noise is the system's own and no sensor's; None: nothing that could be told.  [d]"""
        if self._told_apart is None:
            return self.noise
        motion = np.sqrt(self._told_apart.sensing.motion)
        return motion if motion.any() else None

    @property
    def filtering(self) -> Filter | None:
        """How readings are put together with what went before; None: they are best taken as they are."""
        return None if self._told_apart is None else self._told_apart.filtering

    @property
    def sensors(self) -> FloatArray | None:
        """Standard deviation [d] of what is read; None: sensors are exact as far as can be told."""
        return None if self._told_apart is None else np.sqrt(self._told_apart.sensing.reading)

    @cached_property
    def _told_apart(self) -> ToldApart | None:
        if self.noise is None:
            return None
        step = Slopes(self, self.box, self.noise)
        free = usable(self.box, self.seen, self.stops)
        return told_apart(step, self.seen, self.controls, free)

    @cached_property
    def uneven(self) -> Uneven | None:
        """How noise depends on the place; None: it does not. Not asked where sensors are noisy, too."""
        if self.noise is None or self._told_apart is not None:
            return None
        seen, free = self.seen, usable(self.box, self.seen, self.stops)
        errors = self.box.displacement(
            self.predict(seen.states, seen.controls(self.controls)), seen.next_states
        )
        return find_uneven(self.box, seen.states, errors, free, self.noise)

    @cached_property
    def _numbered(self) -> Transitions:
        """What was seen, as if the nearest listed control had been taken."""
        return self.seen.numbered(self.controls)

    def record(self) -> Document:
        """Per action (or one, joint) and coordinate: how many basis points, and the fitted logarithms."""
        return {
            "basis_sizes": [[len(one.posterior.basis) for one in group or ()] for group in self.regressors],
            "hyperparameters": [
                [one.parameters.tolist() for one in group or ()] for group in self.regressors
            ],
            **({} if self.noise is None else {"noise": self.noise.tolist()}),
            **({} if self.sensors is None else {"sensors": self.sensors.tolist()}),
            **({} if self.uneven is None else {"uneven": self.uneven.weights.tolist()}),
        }

    def pack(self) -> Packed:
        """Every regressor as arrays and numbers."""
        arrays: Arrays = {}
        packed = [
            group and [one.pack(f"{number}.{axis}", arrays) for axis, one in enumerate(group)]
            for number, group in enumerate(self.regressors)
        ]
        return arrays, {"regressors": packed}


def _require_fits(transitions: Transitions, box: Box, n_actions: int) -> None:
    if transitions.states.shape[1:] != (box.n_dims,):
        raise ValueError(f"States must have {box.n_dims} coordinates; got {transitions.states.shape[1]}.")
    if len(transitions) and not transitions.are_controls and transitions.actions.max() >= n_actions:
        row = int(transitions.actions.argmax())
        raise ValueError(
            f"`actions` must be below {n_actions}, the number of controls; "
            f"got {transitions.actions[row]} in row {row}."
        )


def fit_dynamics(
    transitions: Transitions,
    box: Box,
    controls: FloatArray,
    settings: GPSettings = DEFAULT_SETTINGS,
    *,
    knownness: str = DEFAULT_KNOWNNESS,
    previous: GPDynamics | None = None,
    fit_seed: int,
) -> GPDynamics:
    """The model given `transitions`; what `previous` had found is kept until the data grew enough."""
    if knownness not in KNOWNNESS:
        raise ValueError(f"`knownness` must be one of {', '.join(KNOWNNESS)}; got {knownness!r}.")
    controls = np.array(controls, dtype=np.float64)
    controls = controls[:, np.newaxis] if controls.ndim == 1 else controls
    _require_fits(transitions, box, len(controls))
    if transitions.are_controls and not settings.joint:
        raise ValueError(
            "`model.kind` must be 'joint' where controls are a box, since no action is taken twice; got "
            "'per-action'. Give `controls` as a list, or leave the kind out."
        )
    if previous is not None and not (
        (previous.settings, previous.knownness, previous.box) == (settings, knownness, box)
        and np.array_equal(previous.controls, controls)
    ):
        previous = None  # another kind of model: nothing of it fits
    kept = usable(box, transitions, find_stops(box, transitions))
    states, actions = transitions.states, transitions.actions
    displacements = box.displacement(states, transitions.next_states)
    inputs = Inputs.spanning(box, states[kept.any(axis=1)])
    points = states
    if settings.joint:
        inputs = inputs.with_controls(controls)
        groups = [np.ones(len(actions), dtype=np.bool_)]
        points = np.hstack([states, transitions.controls(controls)])
    else:
        groups = [np.asarray(actions == action) for action in range(len(controls))]

    def fit_axis(number: int, axis: int, rows: BoolArray) -> Regressor:
        before = previous.regressors[number] if previous is not None else None
        stream = np.random.default_rng([fit_seed, FIT_STREAM, number, axis, int(rows.sum())])
        return fit_regressor(
            points[rows],
            displacements[rows, axis],
            inputs,
            settings,
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
    return GPDynamics(box, controls, settings, knownness, regressors, transitions)


@dataclass(frozen=True, eq=False)
class GPLearner:
    """`fit_dynamics` as a `ModelLearner`."""

    box: Box
    controls: FloatArray  # [n_actions, k]
    settings: GPSettings
    knownness: str
    seed: int

    @classmethod
    def of(cls, task: Task, settings: GPSettings, knownness: str, seed: int) -> GPLearner:
        """For the states and controls of a task."""
        return cls(task.box, task.controls, settings, knownness, seed)

    def fit(self, transitions: Transitions, previous: GPDynamics | None) -> GPDynamics:
        """See `fit_dynamics`."""
        how = self.box, self.controls, self.settings
        return fit_dynamics(
            transitions, *how, knownness=self.knownness, previous=previous, fit_seed=self.seed
        )

    def unpack(self, packed: Packed, transitions: Transitions) -> GPDynamics:
        """What `GPDynamics.pack` packed; a ValueError when it does not fit what was seen."""
        arrays, document = packed
        regressors = tuple(
            None
            if group is None
            else tuple(Regressor.unpack(one, f"{number}.{axis}", arrays) for axis, one in enumerate(group))
            for number, group in enumerate(self._checked(arrays, document, transitions))
        )
        return GPDynamics(self.box, self.controls, self.settings, self.knownness, regressors, transitions)

    def _checked(self, arrays: Arrays, document: Document, seen: Transitions) -> list[list[Document] | None]:
        """The numbers of every process, per group and coordinate."""
        said = parsed(ModelSaid, document, "`knowledge.model`")
        joint, box = self.settings.joint, self.box
        n_groups = 1 if joint else len(self.controls)
        if len(said.regressors) != n_groups or any(
            group is not None and len(group) != box.n_dims for group in said.regressors
        ):
            raise ValueError(
                f"`knowledge.model` must have {n_groups} group(s) of {box.n_dims} processes; got others."
            )
        n_controls = self.controls.shape[1] if joint else 0
        periodic = np.append(box.periodic, np.zeros(n_controls, dtype=np.bool_))
        largest = np.abs(box.displacement(seen.states, seen.next_states)).max(axis=0, initial=0.0)
        names: set[str] = set()
        for number, group in enumerate(said.regressors):
            for axis, one in enumerate(group or ()):
                fits = self.settings.metric, self.settings.max_basis, len(seen), float(largest[axis])
                names |= check_regressor(one, f"{number}.{axis}", arrays, Seen(periodic, *fits))
        require_no_more(arrays, names)
        return said.regressors
