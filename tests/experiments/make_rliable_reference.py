"""Prints what rliable says of two made-up agents: `python -m tests.experiments.make_rliable_reference`.

The numbers stand in test_statistics.py. Made with rliable 1.2.0, arch 7.2.0 and pandas 2 (arch 7 cannot be
imported with pandas 3): `pip install rliable "pandas<3"` in an environment of its own, from the root of the
repository. Only numpy and rliable are needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_RESAMPLES = 50_000
SEED = 0


def made_up_scores(n_seeds: int, shift: int) -> NDArray[np.float64]:
    """Whole numbers without pattern, with ties, the same on every machine; [n_seeds, 1], one problem."""
    places = 4 * np.arange(n_seeds)[:, np.newaxis] + 1 + shift
    scores = (7919 * places**3 + 104729 * places) % 83 - 120
    return scores.astype(np.float64)


OURS = made_up_scores(10, 0)
THEIRS = made_up_scores(8, 300) - 12.0


def points() -> dict[str, float]:
    """What rliable says of the scores as they are."""
    metrics: Any = import_module("rliable.metrics")
    return {
        "iqm": float(metrics.aggregate_iqm(OURS)),
        "median": float(metrics.aggregate_median(OURS.T)),  # every score a problem of its own
        "improvement": float(metrics.probability_of_improvement(OURS, THEIRS)),
    }


def intervals() -> dict[str, tuple[float, float]]:
    """And how sure it is."""
    metrics: Any = import_module("rliable.metrics")

    def iqm(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([metrics.aggregate_iqm(scores)])

    def median(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([metrics.aggregate_median(scores.T)])

    def improvement(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([metrics.probability_of_improvement(ours, theirs)])

    return {
        "iqm": _interval(OURS, iqm),
        "median": _interval(OURS, median),
        "improvement": _interval([OURS, THEIRS], improvement),
    }


def _interval(scores: Any, statistic: Any) -> tuple[float, float]:
    library: Any = import_module("rliable.library")
    np.random.seed(SEED)  # noqa: NPY002 - rliable draws from the global stream
    _, found = library.get_interval_estimates({"agent": scores}, statistic, reps=N_RESAMPLES)
    low, high = found["agent"][:, 0]
    return float(low), float(high)


def main() -> None:
    """Print them."""
    print(points())
    print(intervals())


if __name__ == "__main__":
    main()
