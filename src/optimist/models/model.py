"""Model: what a learned model of the dynamics must be able to do, and who makes one of transitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from optimist.arrays import FloatArray, IntArray
from optimist.documents import Settings
from optimist.filtering import Filter
from optimist.grid import Grid
from optimist.steps import Imagined, Step, Successors, shaken
from optimist.transitions import Transition, Transitions

Arrays = dict[str, NDArray[Any]]
Document = dict[str, Any]  # what JSON can say
Packed = tuple[Arrays, Document]
ERRS = 0.5  # of its spread less than a model imagines an episode earns, where models of ours were asked


class ModelSettings(Settings):
    """The settings of some model-learner: `learner` is its name in `LEARNERS`."""

    learner: str


class Model(Protocol):
    """A learned model. Immutable: more data make a new one."""

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """Successors of `states` [n, d] under `controls` [n, k] or [1, k].  [n, d]"""
        ...

    def predict_on(self, grid: Grid) -> Successors:
        """Successors of all nodes under all actions, and how unsure they are.  [A, N, d], [A, N]"""
        ...

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        """Successors at points, and how little is known of them, whatever the planner would notice."""
        ...

    def surprised_by(self, transition: Transition, predicted: FloatArray, *, share: float) -> bool:
        """Whether a transition is further from what was `predicted` [d] than `share` of what is usual."""
        ...

    def record(self) -> Document:
        """What the record of a run says of it."""
        ...

    def pack(self) -> Packed:
        """All of it but the transitions."""
        ...


@runtime_checkable
class DrawnModel(Model, Protocol):
    """A model that can also say how it may be wrong: then what is expected comes with an interval."""

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        """Successors if it errs by `draws` [n, d] standard deviations everywhere.  [n, d]

        Where they are 0 it does not err: as `predict` says.
        """
        ...


@runtime_checkable
class NoisyModel(Model, Protocol):
    """A model that knows noise apart from what it does not know."""

    @property
    def noise(self) -> FloatArray | None:
        """Standard deviation [d] of where a step leads; None: there is none that could be told."""
        ...


def noise_of(model: Model) -> FloatArray | None:
    """What noise a model has learned of, if it learns any.  [d]"""
    return model.noise if isinstance(model, NoisyModel) else None


@runtime_checkable
class SensingModel(NoisyModel, Protocol):
    """A model that knows noise of sensors apart from noise of the motion."""

    @property
    def motion(self) -> FloatArray | None:
        """What of the noise is the system's own [d]; None: nothing."""
        ...

    @property
    def filtering(self) -> Filter | None:
        """How readings are put together with what went before; None: they are taken as they are."""
        ...


def motion_of(model: Model) -> FloatArray | None:
    """What noise is to be planned for: sensors move nothing.  [d]"""
    return model.motion if isinstance(model, SensingModel) else noise_of(model)


def filtering_of(model: Model) -> Filter | None:
    """How readings are to be filtered, if they are."""
    return model.filtering if isinstance(model, SensingModel) else None


@runtime_checkable
class UnevenModel(NoisyModel, Protocol):
    """A model that knows how noise depends on the place."""

    @property
    def uneven(self) -> Callable[[FloatArray], FloatArray] | None:
        """Standard deviations [n, d] at states [n, d]; None: it is the same everywhere."""
        ...


def uneven_of(model: Model) -> Callable[[FloatArray], FloatArray] | None:
    """How noise depends on the place, if it does."""
    return model.uneven if isinstance(model, UnevenModel) else None


@runtime_checkable
class CovaryingModel(NoisyModel, Protocol):
    """A model that says how what it explains hangs together: then small changes of the system can be told."""

    def covariances(
        self, seen: Transitions, misfit: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Of each noisy coordinate: covariance of displacements before any was seen, noise variance, they.

        [n, n], [n], [n], in units of their spread. Who is off by `misfit` [d] counts that as noise.
        """
        ...


def motion_on(model: Model, grid: Grid) -> FloatArray | None:
    """What noise is to be planned for on a grid: [d], or [n_nodes, d] where it depends on the place."""
    uneven = uneven_of(model)
    return motion_of(model) if uneven is None else uneven(grid.nodes)


def step_of(model: Model, controls: FloatArray) -> Step:
    """The model itself as a step, under the control [n_actions, k] of each action: exact, and slow."""
    return lambda states, action: model.predict_with_uncertainty(states, controls[action : action + 1])


def imagined_by(model: Model) -> Imagined:
    """The model itself, to rehearse in, noise and all."""
    return shaken(
        lambda states, controls, _: model.predict(states, controls),
        motion_of(model),
        at=uneven_of(model),
        errs=ERRS,
    )


def imagined_if(model: DrawnModel, draws: FloatArray) -> Imagined:
    """The same if it errs by `draws` [n_starts, d] standard deviations, each start in a model of its own.

    From starts whose draws are 0 it does not err.
    """

    def imagined(states: FloatArray, controls: FloatArray, rows: IntArray) -> FloatArray:
        return model.predict_drawn(states, controls, draws[rows])

    return shaken(imagined, motion_of(model), at=uneven_of(model), errs=ERRS)


class ModelLearner(Protocol):
    """Makes models of transitions, and brings packed ones back."""

    def fit(self, transitions: Transitions, previous: Any) -> Model:
        """The model given all `transitions`; `previous` is the one before, of this learner, or None."""
        ...

    def unpack(self, packed: Packed, transitions: Transitions) -> Model:
        """The model that was packed, given the transitions it had seen."""
        ...
