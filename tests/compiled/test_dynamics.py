"""One implementation of each system: single steps, batches and the task say the same, bit for bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from numba import float64, njit

from optimist.arrays import FloatArray
from optimist.compiled.dynamics import READ, STEP_ROWS, compiled_for, step_rows
from optimist.systems import SYSTEMS
from optimist.systems.system import System

EVERY_SYSTEM = pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))


def random_rows(system: System, count: int, *, seed: int) -> tuple[FloatArray, FloatArray]:
    """States of the box and somewhat outside, and controls."""
    stream, box = np.random.default_rng(seed), system.task.box
    spread = 0.6 * box.widths
    states = box.wrap((box.low + box.high) / 2.0 + stream.uniform(-spread, spread, (count, box.n_dims)))
    return states, system.task.controls[stream.integers(0, system.task.n_actions, count)]


@EVERY_SYSTEM
def test_a_single_step_is_a_row_of_a_batch(system: System) -> None:
    states, controls = random_rows(system, 300, seed=0)
    together = system.dynamics(states, controls)
    alone = np.empty_like(states)
    assert system.step is not None
    for k in range(len(states)):
        system.step(states[k], controls[k], alone[k])
    np.testing.assert_array_equal(alone, together)


@EVERY_SYSTEM
def test_a_row_does_not_depend_on_its_batch(system: System) -> None:
    states, controls = random_rows(system, 1001, seed=1)
    together = system.dynamics(states, controls)
    np.testing.assert_array_equal(system.dynamics(states[::-1], controls[::-1])[::-1], together)
    halves = [system.dynamics(states[part], controls[part]) for part in (slice(0, 7), slice(7, None))]
    np.testing.assert_array_equal(np.concatenate(halves), together)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: system.dynamics(states, controls), range(4)):
            np.testing.assert_array_equal(found, together)


@EVERY_SYSTEM
def test_outcomes_are_the_rewards_and_ends_of_the_task(system: System) -> None:
    states, controls = random_rows(system, 2000, seed=2)
    next_states = system.dynamics(states, controls)
    rewards = system.task.rewards(states, controls, next_states)
    ended = system.task.terminal(next_states)
    assert system.outcome is not None
    outcomes = [system.outcome(*row) for row in zip(states, controls.copy(), next_states, strict=True)]
    np.testing.assert_allclose([reward for reward, _ in outcomes], rewards, rtol=1e-15, atol=0.0)
    assert [end for _, end in outcomes] == ended.tolist()
    assert system.task.is_terminal is None or 0 < ended.sum() < len(ended)


@EVERY_SYSTEM
def test_what_is_not_finite_stays_so(system: System) -> None:
    """A broken state must not be clipped into a good one."""
    state = np.full((1, system.task.box.n_dims), np.nan)
    assert np.isnan(system.dynamics(state, system.task.controls[[0]])).all()


@EVERY_SYSTEM
def test_wrong_shapes_are_refused_before_compiled_code_reads_past_the_end(system: System) -> None:
    states, controls = random_rows(system, 5, seed=3)
    with pytest.raises(ValueError, match=r"Controls must have shape \(5, "):
        system.dynamics(states, controls[:3])
    with pytest.raises(ValueError, match=r"Controls must have shape \(5, "):
        system.dynamics(states, controls[:, :0])
    with pytest.raises(ValueError, match=r"States must have shape \(n, "):
        system.dynamics(states[:, :1], controls)


def test_one_loop_over_rows_is_compiled_for_all_systems() -> None:
    for system in SYSTEMS.values():
        system.dynamics(*random_rows(system, 3, seed=4))
    assert step_rows.signatures == [STEP_ROWS.args]


def test_functions_are_compiled_once_for_one_signature_from_any_thread() -> None:
    def twice(values: FloatArray) -> object:
        return 2.0 * values[0]

    function, signature = njit(twice), float64(READ)
    start = Barrier(4)

    def use(k: int) -> float:
        start.wait()
        return float(compiled_for(function, signature)(np.array([float(k)])))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [0.0, 2.0, 4.0, 6.0]
    assert function.signatures == [signature.args]
