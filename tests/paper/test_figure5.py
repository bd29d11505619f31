"""Figure 5: its runs, what they believed, and the drawing of it, which must say the same as the numbers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure

from optimist.arrays import FloatArray
from optimist.experiments.online import start_run
from optimist.experiments.problems import OURS, find_problem
from optimist.experiments.specs import Experiment
from optimist.paper.figure5 import Belief, beliefs, draw_figure5, figure5_runs
from optimist.runs import Event, RunStore, Updated
from optimist.systems import SYSTEMS
from optimist.views.plan_figure import RESOLUTION, Slice, save_figure
from tests.runs.recording import cut_short

CAR = SYSTEMS["mountain-car"]
SCATTERED = np.random.default_rng(5).uniform(CAR.task.box.low, CAR.task.box.high, size=(200, 2))
STATES = np.concatenate([CAR.starts, SCATTERED])


def test_figure5_is_two_agents_on_mountain_car() -> None:
    ids = [spec.id for spec in figure5_runs(seed=4).specs()]
    assert ids == ["figure5/mountain-car/gp-rmax-exp/seed-4", "figure5/mountain-car/gp-rmax-grid/seed-4"]


# --- beliefs ---

SETTINGS = """
first_plans = [40]
replan_every = 40
[grid]
nodes = [31, 31]
[planning]
depth = 1
rehearse = false
[stopping]
mean_drift_tolerance = 1e-12
uncertainty_drift_tolerance = 1e-12
"""


@dataclass(frozen=True)
class Known:
    """What an agent said of the states after a plan."""

    values: FloatArray
    uncertainty: FloatArray


@dataclass(frozen=True)
class Runs:
    """The runs of a figure 5, with plans after 40, 80 and 120 transitions, and what they knew then."""

    root: Path
    experiment: Experiment
    known: dict[tuple[str, int], Known]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root = tmp_path_factory.mktemp("beliefs")
    experiment = figure5_runs(seed=3)
    known: dict[tuple[str, int], Known] = {}
    (root / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    for spec in experiment.specs():
        problem, run, file = find_problem(spec.problem), spec.directory(root), root / "settings.toml"
        with start_run(problem, spec.agent, seed=spec.seed, run=run, file=file) as learner:

            def note(event: Event) -> None:
                if isinstance(event, Updated):
                    values, uncertainty = learner.value(STATES), learner.uncertainty(STATES)
                    assert values is not None
                    assert uncertainty is not None
                    known[spec.agent, event.update.n_transitions] = Known(  # noqa: B023
                        values, uncertainty.mean(axis=1)
                    )

            learner.learn(130, callback=note)
    return Runs(root, experiment, known)


def contents(root: Path) -> dict[Path, bytes]:
    files = [*root.rglob("run.sqlite"), *root.rglob("agent.optimist")]
    return {file: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def before(runs: Runs) -> dict[Path, bytes]:
    """The files of the runs before anybody looked at them."""
    return contents(runs.root)


@pytest.fixture(scope="module")
def found(runs: Runs, before: dict[Path, bytes]) -> list[Belief]:
    return beliefs(runs.experiment, runs.root, STATES)


def test_beliefs_are_what_the_agents_had_planned_at_that_moment(runs: Runs, found: list[Belief]) -> None:
    moments = [("gp-rmax-exp", 40), ("gp-rmax-exp", 120), ("gp-rmax-grid", 120)]
    assert len(found) == len(moments) + 1
    for (agent, count), belief in zip(moments, found[:-1], strict=True):
        assert np.array_equal(belief.values, runs.known[agent, count].values)
        assert belief.uncertainty is not None
        assert np.array_equal(belief.uncertainty, runs.known[agent, count].uncertainty)
        assert agent in belief.title
        assert str(count) in belief.title


def test_samples_are_the_states_seen_until_then(runs: Runs, found: list[Belief]) -> None:
    for belief, spec, count in zip(found, [0, 0, 1], [40, 120, 120], strict=False):
        with RunStore.open(runs.experiment.specs()[spec].directory(runs.root), writing=False) as store:
            seen = [transition.state for transition in store.transitions()]
        assert np.array_equal(belief.samples, np.array(seen[:count]))


def test_the_truth_stands_beside_the_beliefs(found: list[Belief]) -> None:
    truth = found[-1]
    assert truth.uncertainty is None
    assert truth.samples.shape == (0, 2)
    planned = find_problem("mountain-car").plan(OURS).q_function.value(STATES)
    assert np.array_equal(truth.values, planned)
    # 103 steps of -1, discounted, from the start
    assert truth.values[0] == pytest.approx(-(1.0 - 0.99**103) / (1.0 - 0.99), rel=0.02)


def test_a_run_that_is_too_short_is_named(runs: Runs, tmp_path: Path) -> None:
    first, second = runs.experiment.specs()
    first.directory(tmp_path).parent.mkdir(parents=True)
    cut_short(first.directory(runs.root), first.directory(tmp_path), 119)
    shutil.copytree(second.directory(runs.root), second.directory(tmp_path))
    with pytest.raises(ValueError, match=f"{first.id} must have 120 transitions; got 119"):
        beliefs(runs.experiment, tmp_path, STATES)


def test_looking_at_beliefs_does_not_touch_the_runs(
    runs: Runs, before: dict[Path, bytes], found: list[Belief]
) -> None:
    assert len(before) == 4
    assert contents(runs.root) == before


# --- the drawing ---

SHOWN = Slice((0, 1), CAR.starts[0], CAR.axis_names)
XS, YS, LATTICE = SHOWN.lattice(CAR.task.box)


def snapshots() -> list[Belief]:
    stream = np.random.default_rng(0)
    samples = stream.uniform(CAR.task.box.low, CAR.task.box.high, size=(40, 2))
    first = Belief("first", -np.abs(LATTICE[:, 0]), np.full(len(LATTICE), 0.25), samples)
    unknown = Belief("unknown", np.zeros(len(LATTICE)), np.ones(len(LATTICE)), samples[:7])
    truth = Belief("truth", -50.0 * LATTICE[:, 1] ** 2 - 3.0, None, np.empty((0, 2)))
    return [first, unknown, truth]


@pytest.fixture(scope="module")
def figure5() -> Figure:
    return draw_figure5(snapshots(), SHOWN, XS, YS, "seed 3")


def mesh_of(axes: Axes) -> QuadMesh:
    (mesh,) = [found for found in axes.collections if isinstance(found, QuadMesh)]
    return mesh


def points_of(axes: Axes) -> FloatArray:
    (points,) = [found for found in axes.collections if isinstance(found, PathCollection)]
    return np.ma.getdata(points.get_offsets()).astype(np.float64)


def test_figure5_has_values_above_and_uncertainty_below(figure5: Figure) -> None:
    upper, lower = figure5.axes[:3], figure5.axes[3:6]
    assert [axes.get_title() for axes in upper] == ["first", "unknown", "truth"]
    for axes, snapshot in zip(upper, snapshots(), strict=True):
        shown = np.asarray(mesh_of(axes).get_array())
        assert np.array_equal(shown.reshape(RESOLUTION, RESOLUTION).ravel(), snapshot.values)
    for axes, snapshot in zip(lower, snapshots(), strict=True):
        expected = snapshot.uncertainty if snapshot.uncertainty is not None else np.zeros(len(LATTICE))
        assert np.array_equal(np.asarray(mesh_of(axes).get_array()).ravel(), expected)
    assert [text.get_text() for text in lower[2].texts] == ["nothing unknown"]


def test_colours_of_figure5_mean_the_same_in_every_panel(figure5: Figure) -> None:
    values = [snapshot.values for snapshot in snapshots()]
    limits = (min(v.min() for v in values), max(v.max() for v in values))
    assert {mesh_of(axes).get_clim() for axes in figure5.axes[:3]} == {limits}
    assert {mesh_of(axes).get_clim() for axes in figure5.axes[3:6]} == {(0.0, 1.0)}
    labels = [axes.get_ylabel() for axes in figure5.axes[6:]]
    assert len(labels) == 2
    assert any("value" in label for label in labels)
    assert any("uncertainty" in label for label in labels)


def test_observed_samples_are_where_they_were_observed(figure5: Figure) -> None:
    for column, snapshot in enumerate(snapshots()):
        for axes in (figure5.axes[column], figure5.axes[3 + column]):
            assert np.array_equal(points_of(axes), snapshot.samples)


def test_axes_of_figure5_are_named_and_span_the_box(figure5: Figure) -> None:
    box = CAR.task.box
    for axes in figure5.axes[:6]:
        assert axes.get_xlim() == (box.low[0], box.high[0])
        assert axes.get_ylim() == (box.low[1], box.high[1])
    assert figure5.axes[3].get_xlabel() == CAR.axis_names[0]
    assert figure5.axes[0].get_ylabel() == CAR.axis_names[1]
    assert figure5.get_supxlabel() == "seed 3"


def test_figure5_can_be_saved(figure5: Figure, tmp_path: Path) -> None:
    save_figure(figure5, tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF-")
