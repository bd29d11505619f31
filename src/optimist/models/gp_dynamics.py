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
- A stop inside the box, where something holds a coordinate again and again (`stops`), jolts whatever touches
  it: on arriving, while it is pushed on, and where it comes back within the step. What a model of the steps
  far from stops does not explain near one is left out, for all coordinates; `jolts` speaks there.
- Transitions that ended an episode are left out: the end may have cut the step short (an acrobot's stops at
  the goal), and a model that hardly knows noise bends over backwards to explain it. It is one in an episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.documents import parsed
from optimist.gp.inputs import Inputs
from optimist.grid import Grid
from optimist.models.jolts import Jolts, learn_jolts
from optimist.models.knownness import KNOWNNESS, Asked, Knownness, Variances
from optimist.models.model import Arrays, Document, Model, ModelSettings, Packed
from optimist.models.packed import ModelSaid, Seen, check_regressor, require_no_more
from optimist.models.regressor import Regressor, RegressorSettings, fit_regressor
from optimist.models.stops import Stop, far_from, find_stops, find_turns, place_all, reaches
from optimist.steps import Successors
from optimist.task import Task
from optimist.transitions import Transition, Transitions

THIN_ABOVE = 100_000  # nodes: on larger grids variances, which cost most, are found on every second node
EDGE = 1e-9  # of the width of an axis: so near counts as on the edge
USUAL = 0.9  # quantile of displacements that is called usual
SURE, MISFIT = 4.0, 0.1  # deviations, and share of a usual displacement: what is off by more touched a stop
FEWEST = 20  # steps for each coordinate, far from where something may be, to say what is usual
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
    stops: tuple[Stop, ...] = ()  # where something holds the system inside the box

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors of `states` [n, d] under `controls` [n, k] or [1, k].  [n, d]

        A control that belongs to no action is known to a joint model only; another predicts no move.
        """
        return self._held(states, self.smooth(states, controls)).next_states

    def smooth(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors if there were no stops, angles not wrapped.  [n, d]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        for regressors, rows, points in self._shares(states, controls):
            next_states[rows] += np.column_stack([regressor.mean(points) for regressor in regressors])
        return next_states

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """Successors if the model errs by `draws` [n, d] standard deviations everywhere.  [n, d]

        One row of standard normal numbers is one of the models that the data leave possible, its errors of
        one kind wherever it goes.
        """
        return self._held(states, self.drawn(states, controls, draws), draws).next_states

    def drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """The same if there were no stops, angles not wrapped.  [n, d]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        for regressors, rows, points in self._shares(states, controls):
            for axis, regressor in enumerate(regressors):
                mean, deviation = regressor.mean_and_deviation(points)
                next_states[rows, axis] += mean + draws[rows, axis] * deviation
        return next_states

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        """Successors, and the largest normalised variance of their coordinates.  [n, d], [n]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        uncertainty = np.ones(len(states))
        for regressors, rows, points in self._shares(states, controls):
            predicted = [regressor.predict(points) for regressor in regressors]
            next_states[rows] += np.column_stack([mean for mean, _ in predicted])
            uncertainty[rows] = np.max([variance for _, variance in predicted], axis=0)
        after, unsure = self._held(states, next_states)
        return Successors(after, uncertainty if unsure is None else np.maximum(uncertainty, unsure))

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
            next_states[action], unsure = self._held(nodes, next_states[action])
            if unsure is not None:
                uncertainty[action] = np.maximum(uncertainty[action], unsure)
        return Successors(next_states, uncertainty)

    def _held(self, states: FloatArray, smooth: FloatArray, draws: FloatArray | None = None) -> Successors:
        """Wrapped, and held or thrown back where the system is; how unsure that is, or None: not at all."""
        if self.jolts is None:
            return Successors(self.box.wrap(smooth), None)
        after, unsure = self.jolts(states, smooth, draws)
        return Successors(self.box.wrap(after), unsure)

    @cached_property
    def jolts(self) -> Jolts | None:
        """What happens at the stops; None: there are none."""
        if not self.stops:
            return None
        seen, usual = self.seen, usual_move(self.box, self.seen)
        smooth = self.smooth(seen.states, seen.controls(self.controls))
        return learn_jolts(self.stops, self.box, seen, smooth, usual)

    def touched(self, seen: Transitions) -> BoolArray:
        """Which transitions a stop had a hand in.  [n]"""
        touched = np.zeros(len(seen), dtype=np.bool_)
        if self.stops:
            smooth = self.smooth(seen.states, seen.controls(self.controls))
            for stop in self.stops:
                near = reaches(stop, self.box, seen.states, smooth, perhaps=True)
                touched |= near | stop.holds(self.box, seen.next_states)
        return touched

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
        row = Transitions.of([transition])
        if self.stops:  # across a stop nothing can be interpolated
            predicted = self.predict(row.states, row.controls(self.controls))[0]
        missed = np.abs(self.box.displacement(predicted, transition.next_state))
        allowed = np.array([regressor.allowance(share) for regressor in regressors])
        free = usable(self.box, row)[0] & ~self.touched(row)
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
        }

    def pack(self) -> Packed:
        """Every regressor as arrays and numbers."""
        arrays: Arrays = {}
        packed = [
            group and [one.pack(f"{number}.{axis}", arrays) for axis, one in enumerate(group)]
            for number, group in enumerate(self.regressors)
        ]
        stops = [asdict(stop) for stop in self.stops]
        return arrays, {"regressors": packed} | ({"stops": stops} if stops else {})


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


def untroubled(model: Model, box: Box, seen: Transitions) -> BoolArray:
    """Which transitions neither an edge nor a stop that the model knows of had a hand in.  [n]"""
    free = usable(box, seen).all(axis=1)
    return np.asarray(free & ~model.touched(seen) if isinstance(model, GPDynamics) else free)


def usual_move(box: Box, seen: Transitions) -> FloatArray:
    """A usual displacement of each coordinate.  [d]"""
    moved = np.abs(box.displacement(seen.states, seen.next_states))
    return np.asarray(np.quantile(moved, USUAL, axis=0)) if len(seen) else np.zeros(box.n_dims)


def untouched(seen: Transitions, model: GPDynamics) -> BoolArray:
    """Which of some transitions a model of what is far from all stops explains without any.  [n]"""
    box, applied = model.box, seen.controls(model.controls)
    smooth = model.smooth(seen.states, applied)
    erring = model.drawn(seen.states, applied, np.ones(smooth.shape))
    deviation = np.abs(erring - smooth) + (0.0 if model.noise is None else model.noise)
    allowed = SURE * deviation + MISFIT * usual_move(box, model.seen)
    free = np.asarray((np.abs(box.displacement(smooth, seen.next_states)) <= allowed).all(axis=1))
    for stop in model.stops:
        free &= ~stop.holds(box, seen.next_states) & (stop.beyond(smooth) <= allowed[:, stop.axis])
    return free


def _on(edge: FloatArray, states: FloatArray, box: Box) -> BoolArray:
    """Whether each coordinate lies on that edge of its axis; never on a periodic one.  [n, d]"""
    return np.asarray((np.abs(states - edge) <= EDGE * box.widths) & ~box.periodic)


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
    kept = usable(box, transitions)
    fit = _Fit(transitions, box, controls, settings, knownness, previous, fit_seed)
    stops = fit.find_stops(kept)
    if not stops:
        return fit(kept)
    if len(stops) > len(fit.known):
        fit = replace(fit, previous=None)  # what was found with the help of jolts is no beginning
    far = far_from(stops, box, transitions)
    free = far | untouched(transitions, fit(kept & far[:, np.newaxis], stops))
    return fit(kept & free[:, np.newaxis], stops)


@dataclass(frozen=True, eq=False)
class _Fit:
    """How to make a model of some of the transitions."""

    transitions: Transitions
    box: Box
    controls: FloatArray
    settings: GPSettings
    knownness: str
    previous: GPDynamics | None
    seed: int

    @property
    def known(self) -> tuple[Stop, ...]:
        """Stops that were known before."""
        return () if self.previous is None else self.previous.stops

    def find_stops(self, kept: BoolArray) -> tuple[Stop, ...]:
        """Those that are met; what gives way is looked for when hyperparameters are."""
        seen, box, previous = self.transitions, self.box, self.previous
        stops = find_stops(box, seen, self.known)
        if previous is not None and not self._grown(previous, kept):
            return stops
        stops = tuple(stop for stop in stops if stop.hard)
        turns = find_turns(box, seen, stops)
        if not turns:
            return stops
        far = far_from((*stops, *turns), box, seen)
        if far.sum() < FEWEST * box.n_dims:
            return stops
        model = replace(self, previous=None)(kept & far[:, np.newaxis], stops)
        smooth = model.smooth(seen.states, seen.controls(self.controls))
        free, asked = far | untouched(seen, model), ~model.touched(seen)
        return (*stops, *place_all(turns, box, seen.only(asked), smooth[asked], free[asked]))

    def _grown(self, previous: GPDynamics, kept: BoolArray) -> bool:
        """Whether hyperparameters would be looked for again if there were no stops.

        What was left out counts, too: a stop that is none may leave everything out that comes.
        """
        n_fitted = sum(min(one.n_fitted for one in group) for group in previous.regressors if group)
        return bool(kept.any(axis=1).sum() >= self.settings.refit_growth * n_fitted)

    def __call__(self, kept: BoolArray, stops: tuple[Stop, ...] = ()) -> GPDynamics:
        """Of those coordinates of those transitions [n, d]."""
        box, controls, settings, previous = self.box, self.controls, self.settings, self.previous
        states, actions = self.transitions.states, self.transitions.actions
        displacements = box.displacement(states, self.transitions.next_states)
        inputs = Inputs.spanning(box, states[kept.any(axis=1)])
        points = states
        if settings.joint:
            inputs = inputs.with_controls(controls)
            groups = [np.ones(len(actions), dtype=np.bool_)]
            points = np.hstack([states, self.transitions.controls(controls)])
        else:
            groups = [np.asarray(actions == action) for action in range(len(controls))]

        def fit_axis(number: int, axis: int, rows: BoolArray) -> Regressor:
            before = previous.regressors[number] if previous is not None else None
            stream = np.random.default_rng([self.seed, FIT_STREAM, number, axis, int(rows.sum())])
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
        model = box, controls, settings, self.knownness, regressors
        return GPDynamics(*model, self.transitions, stops)


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
        said = parsed(ModelSaid, document, "`knowledge.model`")
        regressors = tuple(
            None
            if group is None
            else tuple(Regressor.unpack(one, f"{number}.{axis}", arrays) for axis, one in enumerate(group))
            for number, group in enumerate(self._checked(arrays, said, transitions))
        )
        stops = tuple(Stop(*stop.model_dump().values()) for stop in said.stops)
        model = self.box, self.controls, self.settings, self.knownness, regressors
        return GPDynamics(*model, transitions, stops)

    def _checked(self, arrays: Arrays, said: ModelSaid, seen: Transitions) -> list[list[Document] | None]:
        """The numbers of every process, per group and coordinate."""
        joint, box = self.settings.joint, self.box
        n_groups = 1 if joint else len(self.controls)
        if len(said.regressors) != n_groups or any(
            group is not None and len(group) != box.n_dims for group in said.regressors
        ):
            raise ValueError(
                f"`knowledge.model` must have {n_groups} group(s) of {box.n_dims} processes; got others."
            )
        for stop in said.stops:
            if stop.axis >= box.n_dims or not box.low[stop.axis] < stop.place < box.high[stop.axis]:
                raise ValueError(f"A stop of `knowledge.model` must be inside the box; got {stop.place}.")
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
