"""Fitting: a model of the dynamics from transitions, stops and all.

Processes are fitted to what no edge had a hand in (`gp_dynamics`). Where there are stops, a model of the
steps far from them says first which of the others they had a hand in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.documents import parsed
from optimist.gp.inputs import Inputs
from optimist.models.edges import usable, usual_move
from optimist.models.gp_dynamics import (
    DEFAULT_KNOWNNESS,
    DEFAULT_SETTINGS,
    GPDynamics,
    GPSettings,
)
from optimist.models.kicks import kicks, without_kicks
from optimist.models.knownness import KNOWNNESS
from optimist.models.mirrors import Asked, Mirror, mirrors, same
from optimist.models.model import Arrays, Document, Packed
from optimist.models.packed import ModelSaid, Seen, check_regressor, require_no_more
from optimist.models.regressor import Data, Regressor, fit_regressor
from optimist.models.stops import Stop, far_from, find_stops, find_turns, place_all
from optimist.task import Task
from optimist.threads import shared
from optimist.transitions import Transitions

SURE, MISFIT = 4.0, 0.1  # deviations, and share of a usual displacement: what is off by more touched a stop
FEWEST = 20  # steps for each coordinate, far from where something may be, to say what is usual
FEWEST_HELD = 8  # the same where it was at the very same place more than once: that is hardly chance
MOST_LOOKS = 2  # for what holds, then for what turns back elsewhere
FIT_STREAM = 0x6F7074  # purpose number of the random streams that draw likelihood subsets


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
        for _ in range(MOST_LOOKS):
            found = self._asked(find_turns(box, seen, stops), stops, kept)
            stops = (*stops, *found)
            if not any(stop.hard for stop in found):
                break
        return stops

    def _asked(self, turns: tuple[Stop, ...], stops: tuple[Stop, ...], kept: BoolArray) -> tuple[Stop, ...]:
        """Those of the `turns` that are stops, asked of a model of what is far from all of them."""
        seen, box = self.transitions, self.box
        far = far_from((*stops, *turns), box, seen)
        fewest = FEWEST_HELD if any(turn.hard for turn in turns) else FEWEST
        if not turns or far.sum() < fewest * box.n_dims:
            return ()
        model = replace(self, previous=None)(kept & far[:, np.newaxis], stops)
        smooth = model.smooth(seen.states, seen.controls(self.controls))
        free, asked = far | untouched(seen, model), ~model.touched(seen) & kept.all(axis=1)
        return tuple(place_all(turns, box, seen.only(asked), smooth[asked], free[asked]))

    def _grown(self, previous: GPDynamics, kept: BoolArray) -> bool:
        """Whether hyperparameters would be looked for again if there were no stops.

        What was left out counts, too: a stop that is none may leave everything out that comes.
        """
        n_fitted = sum(min(one.n_fitted for one in group) for group in previous.regressors if group)
        return bool(kept.any(axis=1).sum() >= self.settings.refit_growth * n_fitted)

    def __call__(self, kept: BoolArray, stops: tuple[Stop, ...] = ()) -> GPDynamics:
        """Of those coordinates of those transitions [n, d]."""
        if self.previous is not None:
            return self._made(kept, stops, self._mirror(kept))
        made = self._made(kept, stops, None)
        again = replace(self, previous=made)
        mirror = again._mirror(kept, anew=True)
        return made if mirror is None else again._made(kept, stops, mirror)

    @cached_property
    def _points(self) -> FloatArray:
        """What processes learn from: states, of joint ones with their controls.  [n, d or d + k]"""
        seen = self.transitions
        return np.hstack([seen.states, seen.controls(self.controls)]) if self.settings.joint else seen.states

    @cached_property
    def _displacements(self) -> FloatArray:
        return self.box.displacement(self.transitions.states, self.transitions.next_states)

    def _made(self, kept: BoolArray, stops: tuple[Stop, ...], mirror: Mirror | None) -> GPDynamics:
        """Of those, and of their images."""
        box, controls, settings, points = self.box, self.controls, self.settings, self._points
        actions, learned_from = self.transitions.actions, points[kept.any(axis=1)]
        if settings.joint:
            groups = [np.ones(len(actions), dtype=np.bool_)]
        else:
            groups = [np.asarray(actions == action) for action in range(len(controls))]
        if mirror is not None:
            learned_from = np.concatenate([learned_from, mirror.image(learned_from)])
        inputs = Inputs.spanning(box, learned_from[:, : box.n_dims])
        inputs = inputs.with_controls(controls) if settings.joint else inputs

        def fit_axis(number: int, axis: int, rows: BoolArray) -> Regressor:
            stream = np.random.default_rng([self.seed, FIT_STREAM, number, axis, int(rows.sum())])
            seen = Data(points[rows], self._displacements[rows, axis])
            if mirror is not None:
                seen = seen.mirrored(mirror.image(seen.points), float(mirror.signs[axis]))
            before = self._before(number, axis, mirror)
            return fit_regressor(seen, inputs, settings, before, stream, unit=float(inputs.scales[axis]))

        def fit_group(number: int, members: BoolArray) -> tuple[Regressor, ...] | None:
            rows = kept & members[:, np.newaxis]
            if not rows.any(axis=0).all():
                return None  # of some coordinate nothing was seen

            def fit(some: BoolArray) -> tuple[Regressor, ...]:
                return tuple(shared(lambda axis: fit_axis(number, axis, some[:, axis]), range(box.n_dims)))

            return without_kicks(points, self._displacements, rows, fit)

        regressors = tuple(fit_group(number, rows) for number, rows in enumerate(groups))
        model = box, controls, settings, self.knownness, regressors
        return GPDynamics(*model, self.transitions, stops, mirror)

    def _before(self, number: int, axis: int, mirror: Mirror | None) -> Regressor | None:
        """The process to go on from; with another mirror than it had, its hyperparameters are old."""
        group = None if self.previous is None else self.previous.regressors[number]
        if self.previous is None or group is None:
            return None
        return group[axis] if same(mirror, self.previous.mirror) else replace(group[axis], n_fitted=0)

    def _mirror(self, kept: BoolArray, *, anew: bool = False) -> Mirror | None:
        """The mirror that all speaks for, looked for when hyperparameters are, or `anew`."""
        previous = self.previous
        before = None if previous is None else previous.regressors[0]
        if not (self.settings.joint and self.settings.mirror):
            return None
        if previous is None or before is None or not kept.any(axis=0).all():
            return None
        counts, growth = kept.sum(axis=0), self.settings.refit_growth
        grown = any(count >= growth * one.n_fitted for count, one in zip(counts, before, strict=True))
        known = [] if previous.mirror is None else [previous.mirror]
        # what the processes had learned from, and miss by far, is no evidence of how the rest goes
        off = kicks(self._points, self._displacements, kept, before)
        off[len(previous.seen) :] = False
        asked = Asked(before, self._points, self._displacements, kept & ~off[:, np.newaxis])
        return asked.best(mirrors(self.box, self.controls) if grown or anew else known)


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
        mirror = None if said.mirror is None else Mirror.of(said.mirror, self.box, self.controls)
        model = self.box, self.controls, self.settings, self.knownness, regressors
        return GPDynamics(*model, transitions, stops, mirror)

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
        if said.mirror is not None and not (joint and len(said.mirror) == box.n_dims + n_controls):
            raise ValueError("`knowledge.model.mirror` must have a sign for each coordinate; got others.")
        copies = 1 if said.mirror is None else 2
        periodic = np.append(box.periodic, np.zeros(n_controls, dtype=np.bool_))
        largest = np.abs(box.displacement(seen.states, seen.next_states)).max(axis=0, initial=0.0)
        names: set[str] = set()
        for number, group in enumerate(said.regressors):
            for axis, one in enumerate(group or ()):
                settings = self.settings
                fits = settings.metric, settings.linear, settings.max_basis, len(seen), float(largest[axis])
                names |= check_regressor(one, f"{number}.{axis}", arrays, Seen(periodic, *fits, copies))
        require_no_more(arrays, names)
        return said.regressors
