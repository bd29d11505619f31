"""One step of a system, compiled: the signatures all systems share, and stepping many states.

A system that is compiled (`optimist.systems`) has two functions of single states. Their types are the same
for all systems, so a loop over steps (`step_rows` here, `optimist.compiled.sarsa`) is compiled once and is
given them as arguments:

    step(state [d], control [k], next_state [d] out)
    outcome(state [d], control [k], next_state [d]) -> (reward, terminated)

A row's result depends on that row alone, bit for bit. Compiling takes seconds, the first time on a machine,
so it is done when a function is first needed (`compiled_for`) and not when its module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from numba import boolean, float64, njit, types, void

from optimist.arrays import FloatArray

Step = Callable[[FloatArray, FloatArray, FloatArray], None]
Outcome = Callable[[FloatArray, FloatArray, FloatArray], tuple[float, bool]]

READ = types.Array(float64, 1, "C", readonly=True)
READ_ROWS = types.Array(float64, 2, "C", readonly=True)

STEP = void(READ, READ, float64[::1])
OUTCOME = types.Tuple((float64, boolean))(READ, READ, READ)
STEP_FUNCTION = types.FunctionType(STEP)
OUTCOME_FUNCTION = types.FunctionType(OUTCOME)
STEP_ROWS = void(STEP_FUNCTION, READ_ROWS, READ_ROWS, float64[:, ::1])


_compiling = Lock()


def compiled_for(function: Any, signature: Any) -> Any:
    """`function`, compiled for `signature`, and if it was not yet, from then on for nothing else.

    Any thread may ask.
    """
    if signature.args not in function.overloads:
        with _compiling:
            if signature.args not in function.overloads:
                function.compile(signature)
                function.disable_compile()
    return function


@njit(nogil=True, cache=True)
def step_rows(step, states, controls, next_states):
    """`step` for every row of `states` [n, d]; `controls` [n, k], or [1, k] for all."""
    stride = 0 if controls.shape[0] == 1 else 1
    for k in range(states.shape[0]):
        step(states[k], controls[k * stride], next_states[k])


@njit(nogil=True, cache=True)
def wrapped(angle, low, high):
    """`angle` brought into [low, high), as `Box.wrap` does it."""
    turned = low + (angle - low) % (high - low)
    # the remainder of a tiny negative number rounds up to the period itself
    return low if turned >= high else turned


@njit(nogil=True, cache=True)
def clipped(value, bound):
    """`value`, at most `bound` in size; NaN stays NaN."""
    if value > bound:
        return bound
    return -bound if value < -bound else value
