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
- Kicks, single steps that nothing explains (`kicks`), are left out, for all coordinates.
- Transitions that ended an episode are left out: the end may have cut the step short (an acrobot's stops at
  the goal), and a model that hardly knows noise bends over backwards to explain it. It is one in an episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.filtering import Filter
from optimist.gp.covariance import covariance
from optimist.grid import Grid
from optimist.models.edges import usable, usual_move
from optimist.models.jolts import Jolts, learn_jolts
from optimist.models.kicks import kicks
from optimist.models.knownness import KNOWNNESS, Asked, Knownness, Variances
from optimist.models.mirrors import Mirror
from optimist.models.model import Arrays, Document, Model, ModelSettings, Packed
from optimist.models.regressor import NOISE_DEVIATIONS, Regressor, RegressorSettings, moves
from optimist.models.sensing import Slopes, ToldApart, told_apart
from optimist.models.stops import Stop, reaches
from optimist.models.uneven import Uneven, find_uneven
from optimist.steps import Successors
from optimist.threads import shared, single_blas
from optimist.transitions import Transition, Transitions

MOST_AT_ONCE = 4  # processes that are evaluated on a grid together: each takes some hundred megabytes
THIN_ABOVE = 100_000  # nodes: on larger grids variances, which cost most, are found on every second node


class GPSettings(ModelSettings, RegressorSettings):
    """Which processes, and how they are fitted."""

    learner: Literal["gp"] = "gp"
    kind: Literal["joint", "per-action"] = "joint"  # one process per coordinate over (state, control), or ...
    mirror: bool = True  # look whether the system does the same in a mirror; joint processes only

    @property
    def joint(self) -> bool:
        """Whether all actions share their processes."""
        return self.kind == "joint"


DEFAULT_SETTINGS, DEFAULT_KNOWNNESS = GPSettings(), "cell-variance"


@dataclass(frozen=True, eq=False)
class GPDynamics:
    """A learned model. Immutable: more data make a new one (`fitting`)."""

    box: Box
    controls: FloatArray  # [n_actions, k]
    settings: GPSettings
    knownness: str
    regressors: tuple[tuple[Regressor, ...] | None, ...]  # [n_actions] or [1] joint, each [d]; None: no data
    seen: Transitions  # all, those left out too
    stops: tuple[Stop, ...] = ()  # where something holds the system inside the box
    mirror: Mirror | None = None  # what was seen was learned from a second time, as its image

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors of `states` [n, d] under `controls` [n, k] or [1, k].  [n, d]

        A control that belongs to no action is known to a joint model only; another predicts no move.
        """
        return self._held(states, self.smooth(states, controls))

    def smooth(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors if there were no stops, angles not wrapped.  [n, d]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        for regressors, rows, points in self._shares(states, controls):
            next_states[rows] += moves(regressors, points)
        return next_states

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """Successors if the model errs by `draws` [n, d] standard deviations everywhere.  [n, d]

        One row of standard normal numbers is one of the models that the data leave possible, its errors of
        one kind wherever it goes.
        """
        return self._held(states, self.drawn(states, controls, draws), draws)

    def drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """The same if there were no stops, angles not wrapped.  [n, d]"""
        controls = np.broadcast_to(controls, (len(states), self.controls.shape[1]))
        next_states = np.array(states, dtype=np.float64)
        for regressors, rows, points in self._shares(states, controls):
            next_states[rows] += moves(regressors, points, draws[rows])
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
        return Successors(self._held(states, next_states), uncertainty)

    def predict_on(self, grid: Grid) -> Successors:
        """Successors of all nodes under all actions. An action without data leads nowhere, unknown."""
        if grid.n_dims != self.box.n_dims:
            raise ValueError(f"The grid must have {self.box.n_dims} axes; got {grid.n_dims}.")
        n_actions, rule = len(self.controls), KNOWNNESS[self.knownness]
        next_states = np.empty((n_actions, grid.n_nodes, grid.n_dims))
        uncertainty = np.empty((n_actions, grid.n_nodes))
        nodes, _ = grid.nodes, self.jolts  # found once, not by each thread
        thin = grid.thinned() if rule.needs_variance and grid.n_nodes > THIN_ABOVE else grid
        normalised = np.empty((n_actions, grid.n_dims, thin.n_nodes if rule.needs_variance else 0))

        def move(where: tuple[int, int]) -> None:
            """One coordinate under one action."""
            action, axis = where
            regressors, control = self._speaking(action)
            next_states[action, :, axis] = nodes[:, axis]
            if regressors is None:
                return
            together = rule.needs_variance and thin is grid
            mean, variance = regressors[axis].predict_on(grid, control, with_variance=together)
            next_states[action, :, axis] += mean
            if rule.needs_variance and variance is None:
                _, variance = regressors[axis].predict_on(thin, control)
            if variance is not None:
                normalised[action, axis] = variance

        def judge(action: int) -> None:
            uncertainty[action] = self._unsure(action, grid, rule, (thin, normalised[action]))
            next_states[action] = self._held(nodes, next_states[action])

        pairs = [(action, axis) for action in range(n_actions) for axis in range(grid.n_dims)]
        shared(move, pairs, most=MOST_AT_ONCE)
        shared(judge, range(n_actions), most=MOST_AT_ONCE)
        return Successors(next_states, uncertainty)

    def _held(self, states: FloatArray, smooth: FloatArray, draws: FloatArray | None = None) -> FloatArray:
        """Wrapped, and held or thrown back where the system is."""
        return self.box.wrap(smooth if self.jolts is None else self.jolts(states, smooth, draws))

    @cached_property
    def jolts(self) -> Jolts | None:
        """What happens at the stops; None: there are none."""
        if not self.stops:
            return None
        seen, usual = self.seen, usual_move(self.box, self.seen)
        with single_blas():  # bit for bit the same, however many there are
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

    def _speaking(self, action: int) -> tuple[tuple[Regressor, ...] | None, FloatArray | None]:
        """Who speaks for an action, and the control they are asked about; None: nobody, or none."""
        joint = self.settings.joint
        return self.regressors[0 if joint else action], self.controls[action] if joint else None

    def _unsure(self, action: int, grid: Grid, rule: Knownness, found: tuple[Grid, FloatArray]) -> FloatArray:
        """Of one action at all nodes, where variances, on a grid, were `found` to be so much of prior ones.

        [N]
        """
        regressors, control = self._speaking(action)
        if regressors is None:
            tried = (self._numbered.actions == action).any()
            if tried and not rule.needs_variance:
                return rule.uncertainty(grid, Asked(action, self._numbered))
            return np.full(grid.n_nodes, rule.untried)
        if not rule.needs_variance:
            return rule.uncertainty(grid, Asked(action, self._numbered))
        thin, normalised = found  # [d, n_nodes] of that grid
        normalised = normalised if thin is grid else thin.spread(normalised, grid)
        priors = np.array([regressor.prior_on(grid, control) for regressor in regressors])
        return rule.uncertainty(grid, Asked(action, self._numbered, Variances(normalised, priors)))

    def _shares(
        self, states: FloatArray, controls: FloatArray
    ) -> Iterator[tuple[tuple[Regressor, ...], BoolArray | slice, FloatArray]]:
        """The regressors with the rows they answer for, and their raw inputs."""
        if self.settings.joint:
            if self.regressors[0] is not None:
                yield self.regressors[0], slice(None), np.hstack([states, controls])
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
        if self.uneven is not None:
            allowed = np.maximum(allowed, NOISE_DEVIATIONS * self.uneven(transition.state[np.newaxis])[0])
        free = usable(self.box, row)[0] & ~self.touched(row)
        return bool((missed > allowed)[free].any())

    def covariances(
        self, seen: Transitions, misfit: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Of joint processes, of every coordinate that is noisy: covariance, noise variance, displacements.

        [n, n], [n], [n], in units of their spread. What processes may be off besides, `misfit` [d], counts as
        noise. Images in a mirror are left out.
        """
        group = self.regressors[0] if self.settings.joint else None
        points = np.hstack([seen.states, seen.controls(self.controls)])
        moved = self.box.displacement(seen.states, seen.next_states)
        rough = None if self.uneven is None else self.uneven(seen.states)
        for axis, one in enumerate(group or ()):
            if not one.noise:
                continue
            features, hyper = one.inputs.features(points), one.posterior.hyperparameters
            noise = np.full(len(seen), hyper.noise_variance)
            if rough is not None:
                noise = (rough[:, axis] / one.target_scale) ** 2
            noise = noise + (misfit[axis] / one.target_scale) ** 2
            targets = (moved[:, axis] - one.target_mean) / one.target_scale
            yield covariance(features, features, hyper), noise, targets

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
        return told_apart(step, self.seen, self.controls, self._free)

    @cached_property
    def uneven(self) -> Uneven | None:
        """How noise depends on the place; None: it does not. Not asked where sensors are noisy, too."""
        if self.noise is None or self._told_apart is not None:
            return None
        seen = self.seen
        errors = self.box.displacement(
            self.predict(seen.states, seen.controls(self.controls)), seen.next_states
        )
        return find_uneven(self.box, seen.states, errors, self._free, self.noise)

    @cached_property
    def _free(self) -> BoolArray:
        """What noise alone made of the coordinates of what was seen.  [n, d]"""
        seen, box = self.seen, self.box
        free = usable(box, seen) & ~self.touched(seen)[:, np.newaxis]
        moved = box.displacement(seen.states, seen.next_states)
        for regressors, rows, points in self._shares(seen.states, seen.controls(self.controls)):
            off = kicks(points, moved[rows], free[rows], regressors)
            free[rows] &= ~off[:, np.newaxis]
        return free

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
            **self._turned(),
        }

    def pack(self) -> Packed:
        """Every regressor as arrays and numbers."""
        arrays: Arrays = {}
        packed = [
            group and [one.pack(f"{number}.{axis}", arrays) for axis, one in enumerate(group)]
            for number, group in enumerate(self.regressors)
        ]
        stops = [asdict(stop) for stop in self.stops]
        return arrays, {"regressors": packed} | ({"stops": stops} if stops else {}) | self._turned()

    def _turned(self) -> Document:
        """Which coordinates turn round in the mirror, if there is one."""
        return {} if self.mirror is None else {"mirror": self.mirror.signs.astype(int).tolist()}


def untroubled(model: Model, box: Box, seen: Transitions) -> BoolArray:
    """Which transitions neither an edge nor a stop that the model knows of had a hand in.  [n]"""
    free = usable(box, seen).all(axis=1)
    return np.asarray(free & ~model.touched(seen) if isinstance(model, GPDynamics) else free)
