"""Mean and variance by structure against the plain posterior at every node, by every route."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.gp import on_grid
from optimist.gp.basis import choose_basis
from optimist.gp.covariance import Hyperparameters
from optimist.gp.inputs import Inputs
from optimist.gp.on_grid import evaluate_on_grid
from optimist.gp.posterior import Posterior, exact_posterior, projected_posterior
from optimist.grid import Grid
from tests.gp.cases import aligned, rotated, smooth
from tests.naive import gp as naive

SEEDS = st.integers(0, 2**32 - 1)
ROUTES = ("plain", "right", "both")
EVERY_ROUTE = pytest.mark.parametrize("route", ROUTES)
MEAN_ERROR = 1e-10  # of the largest mean
VARIANCE_ERROR = 1e-6  # of the prior variance; a bound on norms promises 1e-5


@dataclass(frozen=True, eq=False)
class Case:
    """A posterior, and the grid it is wanted on."""

    posterior: Posterior
    inputs: Inputs
    grid: Grid
    control: FloatArray | None

    @property
    def node_features(self) -> FloatArray:
        nodes = self.grid.nodes
        if self.control is not None:
            nodes = np.hstack([nodes, np.tile(self.control, (len(nodes), 1))])
        return self.inputs.features(nodes)

    @property
    def hyper(self) -> Hyperparameters:
        return self.posterior.hyperparameters


@dataclass(frozen=True, eq=False)
class Numbers:
    """Logarithms of hyperparameters, and how many of everything."""

    seed: int
    counts: tuple[int, ...]
    n_points: int
    n_controls: int
    log_signal: float
    log_bias: float
    log_noise: float
    log_precisions: tuple[float, float]  # between which they lie
    projected: bool
    regular: bool = False
    periodic: bool = True  # some axes may be
    slope: float = 0.0


NUMBERS = st.builds(
    Numbers,
    seed=SEEDS,
    counts=st.lists(st.integers(2, 7), min_size=1, max_size=4).map(tuple),
    n_points=st.integers(1, 60),
    n_controls=st.integers(0, 2),
    log_signal=st.floats(-4.0, 6.0),
    log_bias=st.floats(-8.0, 4.0),
    log_noise=st.floats(float(np.log(1e-7)), float(np.log(1e-1))),
    log_precisions=st.tuples(st.floats(-8.0, 5.0), st.floats(-8.0, 5.0)),
    projected=st.booleans(),
    regular=st.booleans(),
    slope=st.sampled_from([0.0, 1e-4, 0.05, 1.0, 50.0]),
)


def random_axis(
    low: float, high: float, periodic: bool, count: int, stream: np.random.Generator
) -> FloatArray:
    steps = np.cumsum(stream.uniform(0.1, 1.0, count + 1))
    if periodic:
        return np.asarray(low + (high - low) * steps[:-1] / steps[-1])
    return np.asarray(low + (high - low) * (steps[:-1] - steps[0]) / (steps[-2] - steps[0]))


def make_grid(numbers: Numbers, stream: np.random.Generator) -> Grid:
    d = len(numbers.counts)
    low = stream.uniform(-3.0, 1.0, d)
    periodic = stream.uniform(size=d) < (0.4 if numbers.periodic else 0.0)
    box = Box(low, low + stream.uniform(0.5, 7.0, d), periodic=periodic)
    if numbers.regular:
        return Grid.uniform(box, numbers.counts)
    axes = [
        random_axis(box.low[q], box.high[q], bool(periodic[q]), count, stream)
        for q, count in enumerate(numbers.counts)
    ]
    return Grid(box, axes)


def make_case(numbers: Numbers) -> Case:
    stream = np.random.default_rng(numbers.seed)
    grid = make_grid(numbers, stream)
    box = grid.box
    middle, reach = box.low + 0.5 * box.widths, stream.uniform(0.2, 0.5) * box.widths
    states = middle + reach * stream.uniform(-1.0, 1.0, (numbers.n_points, grid.n_dims))
    inputs = Inputs.spanning(box, states)
    points, control = states, None
    if numbers.n_controls:
        controls = stream.uniform(-3.0, 3.0, (4, numbers.n_controls))
        inputs = inputs.with_controls(controls)
        points = np.hstack([states, controls[stream.integers(0, 4, numbers.n_points)]])
        control = controls[0]
    features = inputs.features(points)
    hyper = aligned(
        np.exp(stream.uniform(min(numbers.log_precisions), max(numbers.log_precisions), inputs.n_axes)),
        inputs.axes,
        signal=float(np.exp(numbers.log_signal)),
        bias=float(np.exp(numbers.log_bias)),
        noise=float(np.exp(numbers.log_noise)),
        slope=numbers.slope,
    )
    targets = smooth(features, hyper.noise_variance, stream)
    posterior = exact_posterior(features, targets, hyper)
    if numbers.projected:
        posterior = projected_posterior(features, targets, hyper, choose_basis(features, hyper))
    return Case(posterior, inputs, grid, control)


def force(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_grid, "_costs", lambda *_: {name: float(name != route) for name in ROUTES})


def by_structure(case: Case) -> tuple[FloatArray, FloatArray]:
    mean, variance = evaluate_on_grid(case.posterior, case.inputs, case.grid, case.control)
    assert variance is not None
    assert mean.shape == variance.shape == (case.grid.n_nodes,)
    return mean, variance


def assert_as_plain(case: Case, mean: FloatArray, variance: FloatArray) -> None:
    """Against covariances from differences, and against `Posterior.predict`."""
    posterior, hyper = case.posterior, case.hyper
    cross = naive.covariance_under(case.node_features, posterior.basis, hyper)
    # no summation is better than its terms: where weights are large and cancel, digits are lost
    prior = naive.prior_under(case.node_features, hyper)
    terms = max(hyper.prior_variance, np.abs(cross).max()) * np.abs(posterior.weights).sum()
    slack = 1e-15 * terms
    expected = cross @ posterior.weights
    assert np.abs(mean - expected).max() <= MEAN_ERROR * np.abs(expected).max() + slack
    explained = ((cross @ posterior.reduction) ** 2).sum(axis=1)
    expected_variance = np.clip(prior - explained, 0.0, prior)
    assert (np.abs(variance - expected_variance) <= VARIANCE_ERROR * prior).all()
    plain_mean, plain_variance = posterior.predict(case.node_features)
    # the plain way takes differences of squares of projected features: their last digit, in every term
    size = max(1.0, float(((case.node_features @ hyper.projection) ** 2).sum(axis=1).max()))
    assert np.abs(mean - plain_mean).max() <= MEAN_ERROR * np.abs(expected).max() + slack * (1.0 + size)
    assert (np.abs(variance - plain_variance) <= VARIANCE_ERROR * prior).all()
    assert (variance >= 0.0).all()
    assert (variance <= prior * (1.0 + 1e-12)).all()


@settings(max_examples=150)
@given(numbers=NUMBERS)
def test_structured_is_plain(numbers: Numbers) -> None:
    case = make_case(numbers)
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
@settings(max_examples=60)
@given(numbers=NUMBERS)
def test_every_route_is_plain(route: str, numbers: Numbers) -> None:
    case = make_case(numbers)
    with pytest.MonkeyPatch.context() as patch:
        force(route, patch)
        assert_as_plain(case, *by_structure(case))


def ordinary(
    counts: tuple[int, ...] = (9, 7, 5), n_points: int = 80, log_precision: float = -1.0, n_controls: int = 0
) -> Case:
    precisions = (log_precision - 0.5, log_precision + 0.5)
    return make_case(Numbers(0, counts, n_points, n_controls, 0.5, -1.0, -9.0, precisions, projected=True))


@EVERY_ROUTE
def test_every_route_is_really_taken(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "plain": "_explained_plainly",
        "right": "_explained_by_node",
        "both": "_explained_in_low_rank",
    }
    called: list[str] = []

    def listen(name: str, inner: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
        def heard(*arguments: object) -> FloatArray:
            called.append(name)
            return inner(*arguments)

        return heard

    for name, function in names.items():
        monkeypatch.setattr(on_grid, function, listen(name, getattr(on_grid, function)))
    force(route, monkeypatch)
    by_structure(ordinary())
    assert set(called) == {route}  # more than once if the check asks for less to be dropped


def test_the_routes_agree_among_themselves() -> None:
    case = ordinary()
    found = {}
    for route in ROUTES:
        with pytest.MonkeyPatch.context() as patch:
            force(route, patch)
            found[route] = by_structure(case)
    for route in ("right", "both"):
        np.testing.assert_array_equal(found[route][0], found["plain"][0])
        difference = np.abs(found[route][1] - found["plain"][1]).max()
        assert difference <= VARIANCE_ERROR * case.hyper.prior_variance


def test_the_cheapest_route_depends_on_the_length_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    reckon = on_grid._costs

    def listening(*arguments: object) -> dict[str, float]:
        costs = reckon(*arguments)  # type: ignore[arg-type]
        taken.append(min(costs, key=lambda route: costs[route]))
        return costs

    monkeypatch.setattr(on_grid, "_costs", listening)
    for count, log_precision in ((40, -7.0), (4, 5.0)):
        precisions = (log_precision - 0.5, log_precision + 0.5)
        numbers = Numbers(0, (count, count), 150, 0, 0.5, -1.0, -9.0, precisions, projected=False)
        case = make_case(numbers)
        assert_as_plain(case, *by_structure(case))
    assert taken[0] != "plain"  # long: hardly any rank
    assert taken[-1] == "plain"  # short: every node for itself


@EVERY_ROUTE
def test_little_memory_means_more_blocks_and_the_same_values(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ordinary()
    force(route, monkeypatch)
    expected = by_structure(case)
    monkeypatch.setattr(on_grid, "MEMORY", 3 * 35 * len(case.posterior.weights))
    mean, variance = by_structure(case)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-13)
    np.testing.assert_allclose(variance, expected[1], atol=1e-12)


def test_too_little_memory_for_low_rank_leaves_the_plain_route(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_grid, "MEMORY", 1)
    case = ordinary()
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
@pytest.mark.parametrize("counts", [(2,), (40,), (30, 2), (2, 30), (2, 2, 2, 2), (3, 4, 2, 5)])
@pytest.mark.parametrize("n_points", [1, 2, 50])
def test_grids_of_all_shapes(
    route: str, counts: tuple[int, ...], n_points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(route, monkeypatch)
    case = ordinary(counts, n_points)
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
def test_a_control_behind_is_held_fixed(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    force(route, monkeypatch)
    case = ordinary((6, 5), n_controls=2)
    assert case.control is not None
    means = []
    for control in (case.control, -case.control, np.zeros(2)):
        with_control = Case(case.posterior, case.inputs, case.grid, control)
        mean, variance = by_structure(with_control)
        assert_as_plain(with_control, mean, variance)
        means.append(mean)
    assert np.abs(means[0] - means[1]).max() > 1e-3


def test_values_stand_in_the_order_of_the_grid() -> None:
    case = ordinary((4, 3, 2))
    mean, variance = by_structure(case)
    for number in range(case.grid.n_nodes):
        here = case.inputs.features(case.grid.nodes_between(number, number + 1))
        one_mean, one_variance = case.posterior.predict(here)
        assert mean[number] == pytest.approx(one_mean[0], abs=1e-9)
        assert variance[number] == pytest.approx(one_variance[0], abs=VARIANCE_ERROR)


@EVERY_ROUTE
def test_a_periodic_axis_is_the_same_whichever_turn_the_data_were_seen_in(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(route, monkeypatch)
    stream = np.random.default_rng(1)
    box = Box([-np.pi, -1.0], [np.pi, 1.0], periodic=[True, False])
    grid = Grid.uniform(box, (11, 6))
    states = stream.uniform(box.low, box.high, (40, 2))
    inputs = Inputs.spanning(box, states)
    targets = np.sin(states[:, 0]) * states[:, 1]
    turned = states + [[2.0 * np.pi, 0.0]] * stream.integers(-2, 3, (40, 1))
    hyper = aligned([1.0, 0.5], inputs.axes, noise=1e-4)
    found = [
        by_structure(Case(exact_posterior(inputs.features(x), targets, hyper), inputs, grid, None))
        for x in (states, turned)
    ]
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-8)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-7)


@settings(max_examples=30)
@given(numbers=NUMBERS)
def test_without_variance_the_mean_is_the_same(numbers: Numbers) -> None:
    case = make_case(numbers)
    mean, _ = by_structure(case)
    alone, nothing = evaluate_on_grid(
        case.posterior, case.inputs, case.grid, case.control, with_variance=False
    )
    assert nothing is None
    np.testing.assert_array_equal(alone, mean)


@EVERY_ROUTE
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_uniform_metric_is_one_of_equal_precisions(
    route: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(route, monkeypatch)
    case = make_case(Numbers(seed, (5, 4, 6), 40, 0, 0.0, -1.0, -8.0, (0.7, 0.7), projected=False))
    assert case.hyper.precisions is not None
    np.testing.assert_allclose(case.hyper.precisions, np.exp(0.7), rtol=1e-15)
    assert_as_plain(case, *by_structure(case))


@pytest.mark.parametrize("n_controls", [0, 1])
def test_the_factor_metric_goes_the_plain_way(n_controls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = ordinary((6, 5), n_controls=n_controls)
    stream = np.random.default_rng(2)
    features = case.posterior.basis
    hyper = rotated(stream.normal(size=(features.shape[1], 2)), noise=1e-3)
    posterior = exact_posterior(features, smooth(features, 1e-3, stream), hyper)
    rotated_case = Case(posterior, case.inputs, case.grid, case.control)
    monkeypatch.setattr(on_grid, "_axis_tables", lambda *_: pytest.fail("not a product over axes"))
    expected = posterior.predict(rotated_case.node_features)
    for block in (8192, 7):
        monkeypatch.setattr(on_grid, "BLOCK", block)
        mean, variance = by_structure(rotated_case)
        np.testing.assert_allclose(mean, expected[0], atol=1e-10)
        np.testing.assert_allclose(variance, expected[1], atol=1e-10)
    alone, nothing = evaluate_on_grid(posterior, case.inputs, case.grid, case.control, with_variance=False)
    assert nothing is None
    np.testing.assert_array_equal(alone, mean)


@EVERY_ROUTE
@pytest.mark.parametrize("log_bias", [-30.0, -8.0, 4.0, 8.0])
@pytest.mark.parametrize("log_signal", [-4.0, 6.0])
def test_hardly_any_bias_and_much_of_it(
    route: str, log_bias: float, log_signal: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(route, monkeypatch)
    case = make_case(Numbers(3, (7, 6), 50, 0, log_signal, log_bias, -9.0, (-3.0, 1.0), projected=True))
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
@pytest.mark.parametrize("log_precision", [-20.0, -8.0, 5.0, 12.0])
@pytest.mark.parametrize("projected", [False, True])
def test_very_long_and_very_short_length_scales(
    route: str, log_precision: float, projected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(route, monkeypatch)
    precisions = (log_precision, log_precision)
    case = make_case(Numbers(4, (8, 7), 40, 0, 0.0, -1.0, -10.0, precisions, projected=projected))
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
@pytest.mark.parametrize("log_precision", [-4.0, 0.0, 3.0])
@pytest.mark.parametrize("projected", [False, True], ids=["exact", "projected"])
def test_small_noise_and_clustered_points(
    route: str, log_precision: float, projected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(route, monkeypatch)
    stream = np.random.default_rng(5)
    box = Box([-1.0, -1.0], [1.0, 1.0])
    grid = Grid.uniform(box, (14, 11))
    centres = stream.uniform(-1.0, 1.0, (6, 2))
    states = box.clip(centres[stream.integers(0, 6, 300)] + 0.02 * stream.normal(size=(300, 2)))
    inputs = Inputs.spanning(box, states)
    features = inputs.features(states)
    hyper = aligned([np.exp(log_precision)] * 2, noise=1e-7)
    targets = smooth(features, 1e-7, stream)
    posterior = exact_posterior(features, targets, hyper)
    if projected:
        posterior = projected_posterior(features, targets, hyper, choose_basis(features, hyper))
    case = Case(posterior, inputs, grid, None)
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
@pytest.mark.parametrize("power", [1.0, 3.0, 7.0])
def test_what_is_dropped_shows_no_more_than_promised_where_the_variance_magnifies_it(
    route: str, power: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three points close together, the variance wanted far from them: weights that extrapolate are large.

    Nodes crowded in the middle make the largest singular value large, and what is small beside it is not
    small in itself.
    """
    force(route, monkeypatch)
    features = np.array([[0.164, 0.547], [-0.053, 0.525], [-0.112, 0.52]])
    inputs = Inputs(np.zeros(2), np.ones(2), np.zeros(2, dtype=np.bool_))
    grid = Grid.spaced(Box([-1.0, -1.0], [1.0, 1.0]), (27, 27), (power, power))
    for precision in np.linspace(2.8, 3.6, 31):
        hyper = aligned([precision, 0.13], signal=4.5, bias=0.07, noise=7e-6)
        case = Case(exact_posterior(features, np.ones(3), hyper), inputs, grid, None)
        assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
def test_dense_axes_and_many_points_keep_the_promise(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    force(route, monkeypatch)
    numbers = Numbers(6, (60, 40), 200, 0, 0.0, -3.0, -2.5, (0.0, 2.0), projected=True, periodic=False)
    case = make_case(numbers)
    assert_as_plain(case, *by_structure(case))


@EVERY_ROUTE
@pytest.mark.parametrize("counts", [(3,), (3, 4), (4, 3, 3)])
@pytest.mark.parametrize("far", [0, -1])
def test_nodes_out_of_reach_of_all_data_have_the_mean_and_variance_of_the_bias(
    route: str, counts: tuple[int, ...], far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """exp underflows on a whole axis: no singular value is left."""
    force(route, monkeypatch)
    d = len(counts)
    grid = Grid.uniform(Box([-1.0] * d, [1.0] * d), counts)
    inputs = Inputs(np.zeros(d), np.full(d, 0.01), np.zeros(d, dtype=np.bool_))
    point = np.zeros((1, d))
    point[0, far] = 0.005 if counts[far] % 2 == 0 else 0.5  # in between nodes of that axis
    hyper = aligned([100.0] * d, signal=2.0, bias=0.5, noise=0.1)
    posterior = exact_posterior(inputs.features(point), np.array([1.3]), hyper)
    mean, variance = by_structure(Case(posterior, inputs, grid, None))
    np.testing.assert_allclose(mean, 0.5 / 2.6 * 1.3, rtol=1e-12)
    np.testing.assert_allclose(variance, 2.5 - 0.5**2 / 2.6, rtol=1e-12)
