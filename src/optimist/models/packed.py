"""What Gaussian processes have packed, as a schema: checked against the data before it predicts anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from optimist.arrays import BoolArray, FloatArray
from optimist.box import MAX_DIMS
from optimist.documents import NotNegative, Number, Positive, Said, parsed, require_array
from optimist.given import brief
from optimist.gp.covariance import Hyperparameters, Metric, n_parameters
from optimist.gp.evidence import N_SCALARS, unpack
from optimist.gp.inputs import Inputs
from optimist.gp.posterior import MOST_REDUCED
from optimist.models.model import Arrays

WIDEST = 4.0  # times the largest displacement: no mean and no spread of displacements is wider
NEAR = 1e-9  # relative: machines do not agree on the last bits of an exponential
Count = Annotated[int, Field(ge=1, lt=2**63)]


class RegressorSaid(Said):
    """The numbers of one process."""

    signal_variance: Positive
    bias_variance: Positive
    noise_variance: Positive
    precisions: None = None  # an array, or there are none
    slope_variance: NotNegative
    jitter: NotNegative
    target_mean: Number
    target_scale: Positive
    n_fitted: Count
    n_data: Count
    basis_cut: bool


class StopSaid(Said):
    """A place inside the box that holds the system."""

    axis: Annotated[int, Field(ge=0, lt=MAX_DIMS)]
    side: Literal[-1, 1]
    place: Number
    hard: bool
    unsure: NotNegative


class ModelSaid(Said):
    """All processes: per action (or one group, joint) and coordinate; None: nothing was seen."""

    regressors: list[list[dict[str, Any]] | None]
    stops: list[StopSaid] = Field(default=[], max_length=2 * MAX_DIMS)
    mirror: list[Literal[-1, 1]] | None = None  # which coordinates of states and controls turn round


@dataclass(frozen=True, eq=False)
class Seen:
    """What a process has to fit: its inputs, and the data of one coordinate."""

    periodic: BoolArray  # [k], of the inputs, controls behind
    metric: Metric
    linear: bool
    max_basis: int
    n_transitions: int
    largest: float  # displacement, in size
    copies: int  # of every transition, its image in a mirror too


def check_regressor(document: Any, prefix: str, arrays: Arrays, seen: Seen) -> set[str]:
    """Raise ValueError unless a process fits what was seen; the names of its arrays."""
    said = parsed(RegressorSaid, document, f"The process {prefix}")
    axes = Inputs(np.zeros(len(seen.periodic)), np.ones(len(seen.periodic)), seen.periodic).axes
    if (
        said.n_data > seen.n_transitions
    ):  # hyperparameters may be older: of data that are not learned from now
        raise ValueError(
            f"The process {prefix} must have seen at most {seen.n_transitions} transitions; got more."
        )

    def array(name: str, *shape: int, kind: type[Any] = np.float64) -> Any:
        return require_array(arrays, f"{prefix}.{name}", shape, kind)

    n_inputs, n_features = len(seen.periodic), len(axes)
    array("centres", n_inputs)
    scales = array("scales", n_inputs)
    periodic = array("periodic", n_inputs, kind=np.bool_)
    if not ((scales > 0.0).all() and np.array_equal(periodic, seen.periodic)):
        raise ValueError(f"The inputs of the process {prefix} must be those of the task; got others.")
    size = WIDEST * max(seen.largest, float(scales.max()))
    if abs(said.target_mean) > size or said.target_scale > size:
        raise ValueError(f"The targets of the process {prefix} must be those of its data; got others.")
    parameters = array("parameters", N_SCALARS + n_parameters(seen.metric, axes) + seen.linear)
    names = _check_hyperparameters(said, prefix, arrays, unpack(parameters, seen.metric, axes))
    basis = arrays.get(f"{prefix}.basis", np.empty(0))
    count = len(basis) if basis.ndim else 0
    if not 1 <= count <= min(seen.max_basis, seen.copies * said.n_data):
        raise ValueError(f"The basis of the process {prefix} must be some of its data; got {count} points.")
    array("basis", count, n_features)
    array("weights", count)
    array("reduction", *[min(count, MOST_REDUCED)] * 2)
    own = {"centres", "scales", "periodic", "parameters", "basis", "weights", "reduction"}
    return {f"{prefix}.{name}" for name in own | names}


def _check_hyperparameters(
    said: RegressorSaid, prefix: str, arrays: Arrays, hyper: Hyperparameters
) -> set[str]:
    """They follow from the parameters; which of them are arrays."""
    pairs: list[tuple[object, object]] = [
        (said.signal_variance, hyper.signal_variance),
        (said.bias_variance, hyper.bias_variance),
        (said.noise_variance, hyper.noise_variance),
        (said.slope_variance, hyper.slope_variance),
    ]
    names = set()
    for name in ("projection", "precisions"):
        expected: FloatArray | None = getattr(hyper, name)
        if expected is not None:
            pairs.append((require_array(arrays, f"{prefix}.{name}", expected.shape), expected))
            names.add(name)
    for found, wanted in pairs:
        if not np.allclose(found, wanted, rtol=NEAR, atol=0.0):  # type: ignore[arg-type]
            raise ValueError(f"The process {prefix} must have the hyperparameters it found; got others.")
    return names


def require_no_more(arrays: Arrays, names: set[str]) -> None:
    """Raise ValueError when there is an array that belongs to no process."""
    strange = set(arrays) - names
    if strange:
        raise ValueError(f"The array {brief(min(strange))} must belong to a process; got one of none.")
