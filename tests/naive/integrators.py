"""Fixed-step integration of batched ordinary differential equations."""

from __future__ import annotations

from collections.abc import Callable

from optimist.arrays import FloatArray


def runge_kutta_4(
    derivative: Callable[[FloatArray], FloatArray], states: FloatArray, step: float, n_steps: int
) -> FloatArray:
    """The classical fourth-order method, `n_steps` steps of length `step`."""
    for _ in range(n_steps):
        k1 = derivative(states)
        k2 = derivative(states + 0.5 * step * k1)
        k3 = derivative(states + 0.5 * step * k2)
        k4 = derivative(states + step * k3)
        states = states + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return states
