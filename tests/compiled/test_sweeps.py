from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.compiled import sweeps as kernels
from tests.naive import sweeps as naive
from tests.naive.random_tables import random_tables
from tests.naive.sweeps import KernelInput, NodeRange

SHAPES = {  # the kernels are compiled anew for every number of axes, and that takes most of the time
    1: (5,),
    2: (4, 3),
    3: (3, 2, 4),
    4: (3, 2, 2, 3),
    6: (2, 2, 2, 3, 2, 2),
}
UNBOUNDED = (-np.inf, np.inf)
BOUNDED = (-0.4, 0.6)
PLAIN = (None, None, None, None)  # said as the solver says it, or a kernel would be compiled twice

every_size = pytest.mark.parametrize(
    ("dims", "n_actions"),
    [(dims, n_actions) for dims in SHAPES for n_actions in range(1, 6) if dims < 5 or n_actions in (1, 3, 4)],
)
every_order = pytest.mark.parametrize("order", ["jacobi", "forwards", "backwards"])
solved_or_not = pytest.mark.parametrize("solved", [False, True])


@dataclass(frozen=True, eq=False)
class Case:
    """A random input, with the arguments the kernels want beside it."""

    given: KernelInput
    strides: tuple[int, ...]  # of the padded nodes
    places: NDArray[np.int32]  # [N]
    stream: np.random.Generator

    @property
    def arrays(self) -> tuple[NDArray[np.generic] | None, ...]:
        given = self.given
        return given.cells, given.fractions, given.rewards, given.discounts, given.selfs

    def geometry(self, width: int) -> tuple[object, ...]:
        strides = tuple(np.uint64(stride * width) for stride in self.strides)
        return strides, self.places, self.given.bounds

    def values(self, width: int) -> FloatArray:
        """Random padded values with true ghosts.  [P, width]"""
        inner = self.stream.normal(size=(*self.given.shape, width))
        for axis, (count, padded) in enumerate(zip(self.given.shape, self.given.padded_shape, strict=True)):
            inner = np.take(inner, np.arange(padded) % count, axis=axis)
        return inner.reshape(-1, width)


def make(
    dims: int, n_actions: int, *, solved: bool, bounds: tuple[float, float] = UNBOUNDED, seed: int = 0
) -> Case:
    """Every other axis periodic."""
    shape = SHAPES[dims]
    periodic = [(axis + seed) % 2 == 1 for axis in range(dims)]
    tables = random_tables(seed, shape, n_actions, periodic=periodic)
    padded = tuple(count + int(turns) for count, turns in zip(shape, periodic, strict=True))
    given = KernelInput(
        shape, padded, tables.cells, tables.fractions, tables.rewards, tables.discounts, None, bounds
    )
    places = np.array([given.place(node) for node in range(given.n_nodes)], dtype=np.int32)
    if solved:
        weights = [
            [given.self_weight(node, action) for action in range(n_actions)] for node in range(given.n_nodes)
        ]
        given = replace(given, selfs=np.array(weights, dtype=np.float32))
    strides = tuple(prod(padded[axis + 1 :]) for axis in range(dims))
    return Case(given, strides, places, np.random.default_rng([seed, dims, n_actions]))


def assert_close(found: FloatArray, expected: FloatArray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def order_of(order: str, n_nodes: int) -> NodeRange:
    return (n_nodes - 1, -1, -1) if order == "backwards" else (0, n_nodes, 1)


def with_spare(values: FloatArray) -> FloatArray:
    """Flat, with the spare entry that reading in pairs needs; a huge one, which must never be used."""
    return np.append(values, 1e6)


@every_size
@every_order
@solved_or_not
def test_sweep_v_is_its_twin(dims: int, n_actions: int, order: str, solved: bool) -> None:
    case = make(dims, n_actions, solved=solved)
    nodes = order_of(order, case.given.n_nodes)
    start = case.values(1)[:, 0]
    values = with_spare(start)
    out = values.copy() if order == "jacobi" else values
    policy = np.zeros(case.given.n_nodes, dtype=np.uint16)
    change = kernels.sweep_v(*case.arrays, *case.geometry(1), nodes, values, out, policy, *PLAIN)
    expected = start.copy()
    expected_out = start.copy() if order == "jacobi" else expected
    expected_change, expected_policy = naive.sweep_v(case.given, nodes, expected, expected_out)
    assert_close(out[:-1], expected_out)
    assert change == pytest.approx(expected_change, rel=1e-12, abs=1e-12)
    assert {node: int(a) for node, a in enumerate(policy)} == expected_policy


@every_size
@every_order
@solved_or_not
def test_sweep_q_is_its_twin(dims: int, n_actions: int, order: str, solved: bool) -> None:
    case = make(dims, n_actions, solved=solved)
    nodes = order_of(order, case.given.n_nodes)
    start = case.values(n_actions)
    q = with_spare(start)
    out = q.copy() if order == "jacobi" else q
    change = kernels.sweep_q(*case.arrays, *case.geometry(n_actions), nodes, q, out)
    expected = start.copy()
    expected_out = start.copy() if order == "jacobi" else expected
    expected_change = naive.sweep_q(case.given, nodes, expected, expected_out)
    assert_close(out[:-1].reshape(-1, n_actions), expected_out)
    assert change == pytest.approx(expected_change, rel=1e-12, abs=1e-12)


@every_size
@every_order
def test_sweep_q_exact_is_its_twin(dims: int, n_actions: int, order: str) -> None:
    case = make(dims, n_actions, solved=True)
    nodes = order_of(order, case.given.n_nodes)
    start = case.values(n_actions)
    q = with_spare(start)
    out = q.copy() if order == "jacobi" else q
    change = kernels.sweep_q_exact(*case.arrays, *case.geometry(n_actions), nodes, q, out)
    expected = start.copy()
    expected_out = start.copy() if order == "jacobi" else expected
    expected_change = naive.sweep_q_exact(case.given, nodes, expected, expected_out)
    assert_close(out[:-1].reshape(-1, n_actions), expected_out)
    assert change == pytest.approx(expected_change, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize("dims", SHAPES)
@solved_or_not
def test_take_policy_then_sweep_policy_is_the_twin_on_those_actions(
    dims: int, order: str, solved: bool
) -> None:
    n_actions = 3
    case = make(dims, n_actions, solved=solved)
    n_nodes = case.given.n_nodes
    policy = case.stream.integers(n_actions, size=n_nodes).astype(np.uint16)
    packed = (
        np.empty(n_nodes, dtype=np.int32),
        np.empty((n_nodes, dims), dtype=np.float32),
        np.empty(n_nodes),
        np.empty(n_nodes),
        np.empty(n_nodes, dtype=np.float32) if solved else None,
    )
    kernels.take_policy(*case.arrays, policy, (0, n_nodes, 1), packed)
    for array, rows in zip(case.arrays, packed, strict=True):
        if array is not None:
            np.testing.assert_array_equal(rows, array[np.arange(n_nodes), policy])
    values = with_spare(case.values(1)[:, 0])
    expected = values[:-1].copy()
    nodes = order_of(order, n_nodes)
    change = kernels.sweep_policy(*packed, *case.geometry(1), nodes, values, None)
    assert change == pytest.approx(naive.sweep_policy(case.given, policy, nodes, expected), rel=1e-12)
    assert_close(values[:-1], expected)


@pytest.mark.parametrize("n_actions", [1, 2, 3])
@pytest.mark.parametrize("dims", SHAPES)
def test_backup_q_is_its_twin(dims: int, n_actions: int) -> None:
    case = make(dims, n_actions, solved=False)
    values = case.values(1)[:, 0]
    out = np.empty(case.given.cells.shape)
    nodes = (0, case.given.n_nodes, 1)
    change = kernels.backup_q(*case.arrays[:4], *case.geometry(1), nodes, with_spare(values), out)
    expected = np.clip(naive.backup_q(case.given, values), *case.given.bounds)
    assert_close(out, expected)
    here = values[[case.given.place(node) for node in range(case.given.n_nodes)]]
    assert change == pytest.approx(np.abs(expected.max(axis=1) - here).max())


@pytest.mark.parametrize("step", [1, -1])
def test_prefetching_changes_nothing(step: int) -> None:
    case = make(4, 2, solved=False)
    values = with_spare(case.values(1)[:, 0])
    last = case.given.n_nodes - 1
    nodes = (0, last + 1, 1) if step > 0 else (last, -1, -1)
    results = []
    for ahead in (None, 5):
        out = values.copy()
        kernels.sweep_v(*case.arrays, *case.geometry(1), nodes, values, out, None, ahead, *PLAIN[1:])
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("dims", SHAPES)
def test_interpolation_gives_constants_back_exactly(dims: int) -> None:
    case = make(dims, 3, solved=False)
    given = case.given
    values = np.full(prod(given.padded_shape) + 1, np.pi)
    out = np.empty(given.cells.shape)
    nodes = (0, given.n_nodes, 1)
    nothing, whole = np.zeros(out.shape), np.ones(out.shape)
    endless = (*case.geometry(1)[:2], (-np.inf, np.inf))
    kernels.backup_q(given.cells, given.fractions, nothing, whole, *endless, nodes, values, out)
    np.testing.assert_array_equal(out, np.pi)


@pytest.mark.parametrize("n_actions", [1, 3])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("dims", SHAPES)
def test_self_weights_are_the_weights_of_the_node_and_its_ghosts(
    dims: int, n_actions: int, seed: int
) -> None:
    given = make(dims, n_actions, solved=False, seed=seed).given
    arguments = given.cells, given.fractions, given.shape, given.padded_shape, (0, given.n_nodes, 1)
    out = np.empty(given.cells.shape, dtype=np.float32)
    kernels.self_weights(*arguments, out)
    expected = [
        [given.self_weight(node, action) for action in range(n_actions)] for node in range(given.n_nodes)
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-7)  # float32
    assert (out > 0.0).any(), "an example without self-loops would show nothing"
    uncompiled = np.empty_like(out)
    kernels.self_weights.py_func(*arguments, uncompiled)
    np.testing.assert_allclose(uncompiled, out, rtol=1e-6)  # numpy multiplies in float32


def test_take_policy_gives_the_same_without_compiling() -> None:
    case = make(2, 3, solved=True)
    n_nodes = case.given.n_nodes
    policy = case.stream.integers(3, size=n_nodes).astype(np.uint16)
    for function in (kernels.take_policy, kernels.take_policy.py_func):
        packed = (
            np.empty(n_nodes, dtype=np.int32),
            np.empty((n_nodes, 2), dtype=np.float32),
            np.empty(n_nodes),
            np.empty(n_nodes),
            np.empty(n_nodes, dtype=np.float32),
        )
        function(*case.arrays, policy, (0, n_nodes, 1), packed)
        for array, rows in zip(case.arrays, packed, strict=True):
            assert array is not None
            np.testing.assert_array_equal(rows, array[np.arange(n_nodes), policy])


@pytest.mark.parametrize("dims", [1, 3])
@pytest.mark.parametrize("n_actions", [2, 3])
def test_values_are_kept_within_the_bounds(dims: int, n_actions: int) -> None:
    case = make(dims, n_actions, solved=True, bounds=BOUNDED)
    nodes = (0, case.given.n_nodes, 1)
    start = case.values(n_actions)
    for kernel, twin in ((kernels.sweep_q, naive.sweep_q), (kernels.sweep_q_exact, naive.sweep_q_exact)):
        q, expected = with_spare(start), start.copy()
        kernel(*case.arrays, *case.geometry(n_actions), nodes, q, q)
        twin(case.given, nodes, expected, expected)
        assert_close(q[:-1].reshape(-1, n_actions), expected)
    values, expected_values = with_spare(start[:, 0].copy()), start[:, 0].copy()
    policy = np.zeros(case.given.n_nodes, dtype=np.uint16)
    kernels.sweep_v(*case.arrays, *case.geometry(1), nodes, values, values, policy, *PLAIN)
    naive.sweep_v(case.given, nodes, expected_values, expected_values)
    assert_close(values[:-1], expected_values)
    inner = values[case.places]
    assert inner.min() == BOUNDED[0] or inner.max() == BOUNDED[1], "an example that meets no bound"


@pytest.mark.parametrize("step", [1, -1])
def test_a_slice_of_nodes_leaves_all_others_alone(step: int) -> None:
    case = make(2, 3, solved=False)
    nodes = (3, 7, 1) if step > 0 else (6, 2, -1)
    start = case.values(3)
    q, expected = with_spare(start), start.copy()
    kernels.sweep_q(*case.arrays, *case.geometry(3), nodes, q, q)
    naive.sweep_q(case.given, nodes, expected, expected)
    assert_close(q[:-1].reshape(-1, 3), expected)
    others = np.setdiff1d(np.arange(len(start)), case.places[3:7])
    np.testing.assert_array_equal(q[:-1].reshape(-1, 3)[others], start[others])


def test_sweep_v_records_the_first_of_equal_actions_and_only_when_asked() -> None:
    case = make(2, 4, solved=False)
    given = case.given
    arrays = given.cells, given.fractions, given.rewards, given.discounts
    same = [np.repeat(array[:, :1], 4, axis=1) for array in arrays]
    values = with_spare(case.values(1)[:, 0])
    nodes = (0, case.given.n_nodes, 1)
    policy = np.full(case.given.n_nodes, 9, dtype=np.uint16)
    kernels.sweep_v(*same, None, *case.geometry(1), nodes, values, values.copy(), policy, *PLAIN)
    np.testing.assert_array_equal(policy, 0)
    policy[:] = 9
    kernels.sweep_v(*same, None, *case.geometry(1), nodes, values, values.copy(), None, *PLAIN)
    np.testing.assert_array_equal(policy, 9)


@pytest.mark.parametrize(("n_actions", "solved"), [(1, True), (2, False), (3, True), (5, False)])
def test_knowing_the_number_of_actions_beforehand_changes_nothing(n_actions: int, solved: bool) -> None:
    case = make(3, n_actions, solved=solved)
    values = with_spare(case.values(1)[:, 0])
    results = []
    for actions in (None, (0,) * n_actions):
        out, policy = values.copy(), np.zeros(case.given.n_nodes, dtype=np.uint16)
        nodes = order_of("jacobi", case.given.n_nodes)
        kernels.sweep_v(
            *case.arrays, *case.geometry(1), nodes, values, out, policy, None, actions, *PLAIN[2:]
        )
        results.append((out, policy))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
