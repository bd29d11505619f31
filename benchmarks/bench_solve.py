"""Time to the same final error, from a cold start: the default solver, plain Jacobi with our own sweep,
and QuantEcon's value iteration and modified policy iteration.

The error is the largest distance from the exact fixed point (solved to 1e-11 beforehand). Everybody may
stop where the default solver has stopped by itself: Jacobi is run until its error is no larger than that,
told so by an oracle it would not have. One thread each, and both cores where we can use them.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks.measuring import Result, compared, fastest
from benchmarks.problems import SIZES, quantecon_problem, tables_of
from optimist.arrays import FloatArray
from optimist.planning import Limits, Plan, Tables, solve

ROUNDS = 5


def run() -> dict[str, Result]:
    return {
        f"to the same error, {size}": _measure(tables_of(problem, nodes))
        for size, (problem, nodes) in SIZES.items()
    }


def _measure(tables: Tables) -> Result:
    exact = solve(tables, limits=Limits(1e-11, 20_000)).q_values.max(axis=1)
    first = solve(tables)
    error = _error(first.q_values.max(axis=1), exact)
    sweeps = _jacobi_sweeps(tables, exact, error)

    def jacobi(threads: int | None) -> Plan:
        limits = Limits(1e-300, sweeps)
        return solve(tables, backup="v-plain", accelerate=False, limits=limits, threads=threads)

    seconds = fastest(
        {
            "optimist": lambda: solve(tables, threads=1),
            "optimist, both cores": lambda: solve(tables),
            "Jacobi, our sweep": lambda: jacobi(1),
            "Jacobi, our sweep, both cores": lambda: jacobi(None),
        },
        ROUNDS,
    )
    seconds |= _quantecon(tables, exact, error)
    return compared(
        seconds,
        "optimist",
        "Jacobi, our sweep",
        ratio_both_cores=seconds["Jacobi, our sweep, both cores"] / seconds["optimist, both cores"],
        error=error,
        sweeps=first.sweeps,
        jacobi_sweeps=sweeps,
    )


def _error(values: FloatArray, exact: FloatArray) -> float:
    return float(np.abs(values - exact).max())


def _jacobi_sweeps(tables: Tables, exact: FloatArray, error: float) -> int:
    """How many plain sweeps bring the error down to `error`, by bisection on the number."""
    low, high = 1, 4096
    while low < high:
        middle = (low + high) // 2
        plan = solve(tables, backup="v-plain", accelerate=False, limits=Limits(1e-300, middle))
        if _error(plan.q_values.max(axis=1), exact) <= error:
            high = middle
        else:
            low = middle + 1
    return low


def _quantecon(tables: Tables, exact: FloatArray, error: float) -> dict[str, float]:
    """QuantEcon's own loops, with the loosest tolerance of a power of ten that reaches the error."""
    if tables.discounts.max() == 1.0:
        return {}  # QuantEcon's loops want a discount below 1
    peer = quantecon_problem(tables)
    start = np.zeros(len(exact) + 1)
    seconds = {}
    for method in ("value_iteration", "modified_policy_iteration"):
        for exponent in range(1, -9, -1):
            began = perf_counter()
            found = peer.solve(method=method, v_init=start, epsilon=10.0**exponent, max_iter=10_000)
            seconds[f"QuantEcon {method.replace('_', ' ')}"] = perf_counter() - began
            if _error(found.v[:-1], exact) <= error:
                break
    return seconds
