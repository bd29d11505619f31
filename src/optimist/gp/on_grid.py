"""Mean and variance at all nodes of a tensor grid, by structure.

With a metric aligned to the axes the covariance of node (i_1 .. i_d) with basis point j is a product of table
entries, v0 prod_q E_q[i_q, j] + b, and exp is needed for sum n_q * m numbers only. Cut the axes into two
groups, with A [N1, m] and C [N2, m] the products of tables over each:

    mean      = v0 A diag(w) C^T + b sum w + l x^T (X_m^T w)           one matrix product
    explained = |H^T k|^2,  k = v0 a * c + b 1 + l X_m x

The second would cost N m^2. But smooth tables have low rank: E_q = U_q B_q with orthonormal U_q (its singular
value decomposition, small values dropped), so a = U_a B_a, c = U_c B_c with few columns r, and with
T_st = H^T (v0 B_a[s] * B_c[t]) the quadratic form is

    sum_{s s'} a_s a_s' sum_{t t'} c_t c_t' T_st . T_s't'   =   P_a G P_c^T,

where P holds the products of pairs of columns (s <= s') and G the sums of the T . T: two matrix products for
all nodes, whose size does not depend on m. With middling ranks it is cheaper to keep `a` as it is and to
compress `c` only; with high ones (short length scales) the plain product is cheapest. What is cheapest is
reckoned beforehand. How much is dropped follows from a bound on the error it can make, and the result is
checked at 250 nodes; if it is not within 5e-7 of the prior variance there, less is dropped. Elsewhere
errors of 2e-6 were seen (an acrobot's).

What bias and trend add to the quadratic form needs no compression: cross terms like the mean's, one for each
feature, and a small quadratic form of the features.

The factor analysis metric is no product over axes: it is evaluated plainly, by blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.gp.inputs import Inputs
from optimist.gp.posterior import Posterior, bounded_variance
from optimist.gp.trend import Trend, add_trend, combined, prior_on_grid
from optimist.grid import Grid

# Of the prior variance: how large the error of the structured variance may be where it is checked, and the
# bounds on it that are tried in turn. The bounds are pessimistic by four to five orders.
CHECKED_ERROR = 5e-7
BOUNDS = (1e-2, 1e-4, 1e-6)
CHECKED_NODES = 250
BLOCK = 8192
MEMORY = 15_000_000  # numbers that an intermediate matrix may have


def evaluate_on_grid(
    posterior: Posterior,
    inputs: Inputs,
    grid: Grid,
    control: FloatArray | None = None,
    *,
    with_variance: bool = True,
) -> tuple[FloatArray, FloatArray | None]:
    """Mean [N] and variance [N] (None if not wanted) at all nodes, in the grid's order.

    `control` [k] is held fixed when the inputs have control coordinates behind those of the grid.
    """
    if posterior.hyperparameters.precisions is None:
        return _plain(posterior, inputs, grid, control, with_variance=with_variance)
    tables = _axis_tables(posterior, inputs, grid, control)
    half = _halves(grid)
    left, right = _product(tables[:half]), _product(tables[half:])
    hyper = posterior.hyperparameters
    weights = posterior.weights
    mean = combined(left, right, hyper.signal_variance * weights)
    mean += hyper.bias_variance * weights.sum()
    trend = Trend.of(posterior, inputs, grid, control, half) if hyper.slope_variance else None
    if trend is not None:
        mean += trend.along(trend.coefficients.T @ weights)
    if not with_variance:
        return mean.reshape(-1), None
    prior, judging = prior_on_grid(hyper, inputs, grid, control), posterior.judging
    count = len(judging.basis)
    if count < len(posterior.basis):
        tables = [table[:, :count] for table in tables]
        left, right = left[:, :count], right[:, :count]
        trend = None if trend is None else replace(trend, coefficients=trend.coefficients[:count])
    for bound in BOUNDS:
        explained = _explained(judging, tables[:half], tables[half:], left, right, bound, trend)
        if _right(judging, left, right, explained, trend, prior):
            break
    else:
        explained = _explained_plainly(judging, left, right, trend)
    return mean.reshape(-1), bounded_variance(explained.reshape(-1), prior)


def _right(
    posterior: Posterior,
    left: FloatArray,
    right: FloatArray,
    explained: FloatArray,
    trend: Trend | None,
    prior: FloatArray,
) -> bool:
    """Whether `explained` [N1, N2] is what it is without structure, at some nodes: what was dropped shows."""
    count = left.shape[0] * right.shape[0]
    nodes = np.arange(count)
    if count > CHECKED_NODES:
        nodes = np.random.default_rng(0).choice(count, CHECKED_NODES, replace=False)
    rows, columns = np.divmod(nodes, right.shape[0])
    hyper = posterior.hyperparameters
    cross = left[rows] * right[columns]
    cross = hyper.signal_variance * cross + hyper.bias_variance
    if trend is not None:
        cross += trend.at(rows, columns)
    reduced = cross @ posterior.reduction
    difference = np.abs(explained[rows, columns] - np.einsum("ij,ij->i", reduced, reduced))
    return bool((difference <= CHECKED_ERROR * prior[nodes]).all())


def _explained(
    posterior: Posterior,
    left_tables: list[FloatArray],
    right_tables: list[FloatArray],
    left: FloatArray,
    right: FloatArray,
    bound: float,
    trend: Trend | None,
) -> FloatArray:
    """|H^T k|^2 at all nodes, on the cheapest route.  [N1, N2]"""
    droppable = _droppable(posterior, len(left_tables) + len(right_tables), bound)
    lefts, rights = _compressed(left_tables, droppable), _compressed(right_tables, droppable)
    if len(lefts.coefficients) < len(rights.coefficients):
        # the routes are cheaper the lower the rank of the right group is
        other = None if trend is None else Trend(trend.coefficients, trend.right, trend.left)
        return _on_cheapest_route(posterior, right, left, rights, lefts, other).T
    return _on_cheapest_route(posterior, left, right, lefts, rights, trend)


def _on_cheapest_route(
    posterior: Posterior,
    left: FloatArray,
    right: FloatArray,
    lefts: _LowRank,
    rights: _LowRank,
    trend: Trend | None,
) -> FloatArray:
    """The same with both groups in low rank, too."""
    costs = _costs(lefts, rights, len(posterior.weights))
    route = min(costs, key=lambda name: costs[name])
    if route == "plain":
        return _explained_plainly(posterior, left, right, trend)
    if route == "right":
        explained = _explained_by_node(posterior, left, rights)
    else:
        explained = _explained_in_low_rank(posterior, lefts, rights)
    explained += _constant_part(posterior, left, right)
    if trend is not None:
        add_trend(explained, posterior, left, right, trend)
    return explained


@dataclass(frozen=True, eq=False)
class _LowRank:
    """A = basis @ coefficients, the basis orthonormal."""

    basis: FloatArray  # [N, r]
    coefficients: FloatArray  # [r, m]


def _axis_tables(
    posterior: Posterior, inputs: Inputs, grid: Grid, control: FloatArray | None
) -> list[FloatArray]:
    """exp(-1/2 theta_q D_q^2) between node positions and basis points, per axis.  [d] of [n_q, m]

    The factor of the fixed control goes into the first table.
    """
    precisions = posterior.hyperparameters.precisions
    assert precisions is not None
    axes = inputs.axes

    def table(axis: int, positions: FloatArray) -> FloatArray:
        here, there = inputs.of_axis(axis, positions), posterior.basis[:, axes == axis]
        squares = ((here[:, np.newaxis, :] - there[np.newaxis, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.exp(-0.5 * precisions[axis] * squares))

    tables = [table(axis, nodes) for axis, nodes in enumerate(grid.axes)]
    for k, axis in enumerate(range(grid.n_dims, inputs.n_axes)):
        assert control is not None
        tables[0] = tables[0] * table(axis, control[k : k + 1])
    return tables


def _halves(grid: Grid) -> int:
    """After how many axes to cut so that both groups have about as many nodes."""
    sizes = np.cumsum(np.log(grid.shape))
    return int(np.abs(sizes - 0.5 * sizes[-1]).argmin()) + 1


def _product(tables: list[FloatArray]) -> FloatArray:
    """All products of rows, one from each table, in C order.  [prod n_q, m]; no table: one row of ones"""
    if not tables:
        return np.ones((1, 1))
    product = tables[0]
    for table in tables[1:]:
        product = (product[:, np.newaxis, :] * table[np.newaxis, :, :]).reshape(-1, table.shape[1])
    return product


def _droppable(posterior: Posterior, n_axes: int, bound: float) -> float:
    """How large an error of a table, or of a product of tables, may be at any node.

    An error e of k changes |H^T k|^2 by at most 2 sqrt(prior) |H| |e|. There are fewer than 2 n_axes steps in
    which something is dropped, and their errors add up, since no entry of a table exceeds 1.
    """
    hyper = posterior.hyperparameters
    magnified = 2.0 * np.linalg.norm(posterior.reduction) * hyper.signal_variance * 2 * n_axes
    return float(bound * np.sqrt(hyper.prior_variance) / max(magnified, 1e-300))


def _compressed(tables: list[FloatArray], droppable: float) -> _LowRank:
    """The product of tables in low rank: singular vectors per axis, small products dropped."""
    if not tables:
        return _LowRank(np.ones((1, 1)), np.ones((1, 1)))
    basis, coefficients = _decomposed(tables[0], droppable)
    for table in tables[1:]:
        more_basis, more = _decomposed(table, droppable)
        products = (coefficients[:, np.newaxis, :] * more[np.newaxis, :, :]).reshape(-1, table.shape[1])
        kept = _kept(np.linalg.norm(products, axis=1), droppable)
        first, second = np.divmod(kept, len(more))
        basis = (basis[:, np.newaxis, first] * more_basis[np.newaxis, :, second]).reshape(-1, first.size)
        coefficients = products[kept]
    return _LowRank(basis, coefficients)


def _decomposed(table: FloatArray, droppable: float) -> tuple[FloatArray, FloatArray]:
    vectors, values, rest = np.linalg.svd(table, full_matrices=False)
    kept = _kept(values, droppable)
    return vectors[:, kept], values[kept, np.newaxis] * rest[kept]


def _kept(sizes: FloatArray, droppable: float) -> NDArray[np.int64]:
    """Which rows to keep so that the others, on an orthonormal basis, make no larger error anywhere.

    Rows of an orthonormal basis are no longer than 1: dropped rows err by their sum of squares at most.
    """
    order = np.argsort(sizes)
    small = np.sqrt(np.cumsum(sizes[order] ** 2)) <= droppable
    small[-1] = False  # nodes may be so far from all data that nothing would be left
    return np.sort(order[~small])


def _costs(lefts: _LowRank, rights: _LowRank, m: int) -> dict[str, float]:
    """Multiplications of each route."""
    n1, n2 = lefts.basis.shape[0], rights.basis.shape[0]
    r, t = lefts.coefficients.shape[0], rights.coefficients.shape[0]
    pairs_left, pairs_right = r * (r + 1) // 2, t * (t + 1) // 2
    last = n1 * n2 * pairs_right
    both = m * m * r * t + m * (r * t) ** 2 + n1 * pairs_left * pairs_right + last
    right = n1 * (m * m * t + m * t * t) + last
    if max(pairs_left * pairs_right, m * r * t) > MEMORY:
        both = np.inf
    if max(pairs_right * n1, pairs_right * n2) > MEMORY:
        both = right = np.inf
    return {"plain": n1 * n2 * m * m, "right": right, "both": both}


def _explained_in_low_rank(posterior: Posterior, lefts: _LowRank, rights: _LowRank) -> FloatArray:
    """|H^T v0 a * c|^2 at all nodes, both groups in low rank.  [N1, N2]"""
    r, t, m = *map(len, (lefts.coefficients, rights.coefficients)), len(posterior.reduction)
    outer = lefts.coefficients[:, np.newaxis, :] * rights.coefficients[np.newaxis, :, :]
    outer *= posterior.hyperparameters.signal_variance
    spread = (outer.reshape(r * t, m) @ posterior.reduction).reshape(r, t, m)  # T
    grams = _pair_products(lefts.basis) @ _pair_sums(spread)
    return np.asarray(grams @ _pair_products(rights.basis).T)


def _explained_by_node(posterior: Posterior, left: FloatArray, rights: _LowRank) -> FloatArray:
    """The same with the right group in low rank only.  [N1, N2]"""
    t, m = len(rights.coefficients), len(posterior.reduction)
    upper = np.triu_indices(t)
    counts = np.where(upper[0] == upper[1], 1.0, 2.0)
    grams = np.empty((len(left), upper[0].size))
    rows = max(1, MEMORY // 4 // (t * m))
    scaled = posterior.hyperparameters.signal_variance * left
    for first in range(0, len(left), rows):
        some = scaled[first : first + rows]
        products = (some[:, np.newaxis, :] * rights.coefficients[np.newaxis, :, :]).reshape(-1, m)
        spread = (products @ posterior.reduction).reshape(len(some), t, m)
        both = spread @ spread.transpose(0, 2, 1)
        grams[first : first + rows] = both[:, upper[0], upper[1]] * counts
    return np.asarray(grams @ _pair_products(rights.basis).T)


def _constant_part(posterior: Posterior, left: FloatArray, right: FloatArray) -> FloatArray:
    """What the bias b adds to |H^T k|^2: its cross term, and its own.  [N1, N2]"""
    hyper, reduction = posterior.hyperparameters, posterior.reduction
    constant = hyper.bias_variance * reduction.sum(axis=0)
    part = combined(left, right, 2.0 * hyper.signal_variance * (reduction @ constant))
    part += constant @ constant
    return part


def _pair_sums(spread: FloatArray) -> FloatArray:
    """G: T_st . T_s't' summed over the orders of (s, s') and of (t, t').  [r (r+1)/2, t (t+1)/2]"""
    r, t, m = spread.shape
    upper = np.triu_indices(t)
    doubled = np.where(upper[0] == upper[1], 0.5, 1.0)
    sums = np.empty((r * (r + 1) // 2, upper[0].size))
    row = 0
    for s in range(r):
        grams = spread[s:].reshape(-1, m) @ spread[s].T  # [(r - s) t, t]
        grams = grams.reshape(r - s, t, t)
        symmetric = (grams + grams.transpose(0, 2, 1))[:, upper[0], upper[1]] * doubled
        symmetric[1:] *= 2.0
        sums[row : row + r - s] = symmetric
        row += r - s
    return sums


def _pair_products(basis: FloatArray) -> FloatArray:
    """Products of columns s <= s'.  [N, r (r+1)/2]"""
    first, second = np.triu_indices(basis.shape[1])
    return basis[:, first] * basis[:, second]


def _explained_plainly(
    posterior: Posterior, left: FloatArray, right: FloatArray, trend: Trend | None = None
) -> FloatArray:
    """|H^T k|^2 with k from the tables, a few rows of the left group at a time.  [N1, N2]"""
    hyper, reduction = posterior.hyperparameters, posterior.reduction
    m = len(reduction)
    n1, n2 = left.shape[0], right.shape[0]
    explained = np.empty((n1, n2))
    rows = max(1, MEMORY // 2 // (n2 * m))
    for first in range(0, n1, rows):
        some = left[first : first + rows]
        cross = (some[:, np.newaxis, :] * right[np.newaxis, :, :]).reshape(-1, m)
        cross *= hyper.signal_variance
        cross += hyper.bias_variance
        if trend is not None:
            numbers = np.arange(first * n2, (first + len(some)) * n2)
            cross += trend.at(*np.divmod(numbers, n2))
        reduced = cross @ reduction
        explained[first : first + rows] = np.einsum("ij,ij->i", reduced, reduced).reshape(-1, n2)
    return explained


def _plain(
    posterior: Posterior,
    inputs: Inputs,
    grid: Grid,
    control: FloatArray | None,
    *,
    with_variance: bool,
) -> tuple[FloatArray, FloatArray | None]:
    """Without structure, by blocks of nodes."""
    mean = np.empty(grid.n_nodes)
    variance = np.empty(grid.n_nodes) if with_variance else None
    for first, last in grid.blocks(BLOCK):
        points = grid.nodes_between(first, last)
        if control is not None:
            points = np.hstack([points, np.tile(control, (last - first, 1))])
        mean[first:last], some = posterior.predict(inputs.features(points))
        if variance is not None:
            variance[first:last] = some
    return mean, variance
