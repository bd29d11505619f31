"""The paper's experiments as data, and what is read off recorded runs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from optimist.agents.settings import GridSettings
from optimist.arrays import FloatArray
from optimist.experiments import reproduce as paper
from optimist.experiments.offline import plan_offline
from optimist.experiments.online import learning_settings, start_run
from optimist.experiments.specs import Experiment, Group
from optimist.experiments.sweep import run_sweep
from optimist.runs import EpisodeRow, Event, RunStore, Updated
from optimist.systems import SYSTEMS
from tests.runs.recording import NEVER, cut_short

CAR = SYSTEMS["mountain-car"]
SCATTERED = np.random.default_rng(5).uniform(CAR.task.box.low, CAR.task.box.high, size=(200, 2))
STATES = np.concatenate([CAR.starts, SCATTERED])


# --- the experiments ---


@pytest.mark.parametrize("quick", [False, True])
def test_figure4_is_every_agent_on_every_problem(quick: bool) -> None:
    specs = paper.figure4(quick=quick).specs()
    agents = {"gp-rmax-exp", "gp-rmax-grid", "gp-rmax-noexp", "sarsa-fine", "sarsa-coarse"}
    for problem in SYSTEMS:
        mine = [spec for spec in specs if spec.problem == problem]
        assert {spec.agent for spec in mine} == agents
        seeds = {agent: sorted(spec.seed for spec in mine if spec.agent == agent) for agent in agents}
        counts = {len(found) for found in seeds.values()}
        assert len(counts) == 1
        assert min(counts) >= 2  # fewer have no interval
        assert all(found == list(range(len(found))) for found in seeds.values())


def test_figure4_has_ten_seeds_in_two_dimensions() -> None:
    specs = paper.figure4(quick=False).specs()
    for problem in ("mountain-car", "pendulum"):
        assert {spec.seed for spec in specs if spec.problem == problem} == set(range(10))


def test_ids_of_figure4_are_stable() -> None:
    ids = {spec.id for spec in paper.figure4(quick=False).specs()}
    assert "figure4/mountain-car/gp-rmax-exp/seed-3" in ids
    assert "figure4/acrobot/sarsa-coarse/seed-0" in ids


def test_the_quick_figure4_is_smaller_and_recorded_elsewhere() -> None:
    full, quick = (paper.figure4(quick=quick).specs() for quick in (False, True))
    assert sum(spec.episodes for spec in quick) < 0.5 * sum(spec.episodes for spec in full)
    assert not {spec.id for spec in full} & {spec.id for spec in quick}


def test_figure5_is_two_agents_on_mountain_car() -> None:
    ids = [spec.id for spec in paper.figure5(seed=4).specs()]
    assert ids == ["figure5/mountain-car/gp-rmax-exp/seed-4", "figure5/mountain-car/gp-rmax-grid/seed-4"]


# --- curves ---


def record(directory: Path, totals: list[float]) -> None:
    """A run that has nothing but its episodes."""
    with RunStore.create(directory, {"agent": "x", "problem": "y", "seed": 0, "settings": {}}) as store:
        for k, total in enumerate(totals, 1):
            store.end_episodes([EpisodeRow(k, 10, total, 10 * k, "terminated")])


TRIAL = Experiment(
    name="trial",
    runs=(
        Group(problems=("pendulum",), agents=("gp-rmax-exp",), seeds=4, episodes=3),
        Group(problems=("pendulum",), agents=("sarsa-fine",), seeds=(2, 9, 5), episodes=4),
        Group(problems=("acrobot",), agents=("gp-rmax-exp",), seeds=2, episodes=2),
    ),
)


def totals_of(seed: int, n_episodes: int) -> list[float]:
    found: list[float] = np.random.default_rng([seed, n_episodes]).normal(-50.0, 20.0, n_episodes).tolist()
    return found


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trial")
    for spec in TRIAL.specs():
        record(spec.directory(root), totals_of(spec.seed, spec.episodes))
    return root


def test_curves_are_medians_over_seeds_per_problem_and_agent(trial: Path) -> None:
    found = paper.curves(paper.recorded_runs(TRIAL, trial))
    assert list(found) == ["pendulum", "acrobot"]
    assert [curve.agent for curve in found["pendulum"]] == ["gp-rmax-exp", "sarsa-fine"]
    for group, curve in zip(TRIAL.runs, [*found["pendulum"], *found["acrobot"]], strict=True):
        seeds = range(group.seeds) if isinstance(group.seeds, int) else group.seeds
        totals = np.array([totals_of(seed, group.episodes) for seed in seeds])
        assert curve.n_seeds == len(totals)
        np.testing.assert_allclose(curve.median, np.median(totals, axis=0), rtol=1e-14)
        assert (totals.min(axis=0) <= curve.low).all()
        assert (curve.low <= curve.median).all()
        assert (curve.median <= curve.high).all()
        assert (curve.high <= totals.max(axis=0)).all()


def test_curves_are_the_same_every_time(trial: Path) -> None:
    first, second = (paper.curves(paper.recorded_runs(TRIAL, trial))["pendulum"][0] for _ in range(2))
    assert np.array_equal(first.low, second.low)
    assert np.array_equal(first.high, second.high)


def test_a_curve_ends_with_the_experiment_however_long_the_runs_are(trial: Path) -> None:
    shorter = TRIAL.model_copy(update={"runs": (TRIAL.runs[1].model_copy(update={"episodes": 2}),)})
    (curve,) = paper.curves(paper.recorded_runs(shorter, trial))["pendulum"]
    (whole,) = paper.curves(paper.recorded_runs(TRIAL.model_copy(update={"runs": (TRIAL.runs[1],)}), trial))[
        "pendulum"
    ]
    assert np.array_equal(curve.median, whole.median[:2])


def test_a_single_seed_has_no_interval_and_that_is_said(trial: Path) -> None:
    single = TRIAL.model_copy(update={"runs": (TRIAL.runs[0].model_copy(update={"seeds": 1}),)})
    with pytest.raises(ValueError, match="at least two seeds for an interval; got 1"):
        paper.curves(paper.recorded_runs(single, trial))


def test_a_run_that_is_not_there_is_named(trial: Path, tmp_path: Path) -> None:
    shutil.copytree(trial, tmp_path / "results")
    shutil.rmtree(TRIAL.specs()[1].directory(tmp_path / "results"))
    with pytest.raises(ValueError, match="trial/pendulum/gp-rmax-exp/seed-1"):
        paper.curves(paper.recorded_runs(TRIAL, tmp_path / "results"))


@pytest.mark.parametrize("which", [slice(0, 1), slice(0, 4)], ids=["one", "all"])
def test_runs_with_too_few_episodes_are_named_and_not_drawn(
    which: slice, trial: Path, tmp_path: Path
) -> None:
    root = tmp_path / "results"
    shutil.copytree(trial, root)
    for spec in TRIAL.specs()[which]:
        shutil.rmtree(spec.directory(root))
        record(spec.directory(root), totals_of(spec.seed, 2))
    with pytest.raises(ValueError, match="trial/pendulum/gp-rmax-exp/seed-0"):
        paper.curves(paper.recorded_runs(TRIAL, root))


# --- beliefs ---


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
    experiment = paper.figure5(seed=3)
    known: dict[tuple[str, int], Known] = {}
    for spec in experiment.specs():
        settings = learning_settings(spec.problem, spec.agent).model_copy(
            update={
                "first_plans": (40,),
                "replan_every": 40,
                "grid": GridSettings(nodes=(31, 31)),
                "stopping": NEVER,
            }
        )
        run = spec.directory(root)
        with start_run(spec.problem, settings, agent=spec.agent, seed=spec.seed, run=run) as learner:

            def note(event: Event) -> None:
                if isinstance(event, Updated):
                    uncertainty = learner.uncertainty(STATES).mean(axis=1)
                    known[spec.agent, event.update.n_transitions] = Known(  # noqa: B023
                        learner.value(STATES),
                        uncertainty,
                    )

            learner.learn(130, callback=note)
    return Runs(root, experiment, known)


@pytest.fixture(scope="module")
def found(runs: Runs) -> list[paper.Belief]:
    return paper.beliefs(runs.experiment, runs.root, STATES)


def test_beliefs_are_what_the_agents_had_planned_at_that_moment(
    runs: Runs, found: list[paper.Belief]
) -> None:
    moments = [("gp-rmax-exp", 40), ("gp-rmax-exp", 120), ("gp-rmax-grid", 120)]
    assert len(found) == len(moments) + 1
    for (agent, count), belief in zip(moments, found[:-1], strict=True):
        assert np.array_equal(belief.values, runs.known[agent, count].values)
        assert belief.uncertainty is not None
        assert np.array_equal(belief.uncertainty, runs.known[agent, count].uncertainty)
        assert agent in belief.title
        assert str(count) in belief.title


def test_samples_are_the_states_seen_until_then(runs: Runs, found: list[paper.Belief]) -> None:
    for belief, spec, count in zip(found, [0, 0, 1], [40, 120, 120], strict=False):
        with RunStore.open(runs.experiment.specs()[spec].directory(runs.root), writing=False) as store:
            seen = [transition.state for transition in store.transitions()]
        assert np.array_equal(belief.samples, np.array(seen[:count]))


def test_the_truth_stands_beside_the_beliefs(found: list[paper.Belief]) -> None:
    truth = found[-1]
    assert truth.uncertainty is None
    assert truth.samples.shape == (0, 2)
    planned = plan_offline(CAR, CAR.recipes["ours"]).q_function.value(STATES)
    assert np.array_equal(truth.values, planned)
    # 103 steps of -1, discounted, from the start
    assert truth.values[0] == pytest.approx(-(1.0 - 0.99**103) / (1.0 - 0.99), rel=0.02)


def test_a_run_that_is_too_short_is_named(runs: Runs, tmp_path: Path) -> None:
    first, second = runs.experiment.specs()
    first.directory(tmp_path).parent.mkdir(parents=True)
    cut_short(first.directory(runs.root), first.directory(tmp_path), 119)
    shutil.copytree(second.directory(runs.root), second.directory(tmp_path))
    with pytest.raises(ValueError, match=f"{first.id} must have 120 transitions; got 119"):
        paper.beliefs(runs.experiment, tmp_path, STATES)


def test_looking_at_beliefs_does_not_touch_the_runs(runs: Runs) -> None:
    def contents() -> dict[Path, bytes]:
        files = [*runs.root.rglob("run.sqlite"), *runs.root.rglob("agent.optimist")]
        return {file: file.read_bytes() for file in files}

    before = contents()
    paper.beliefs(runs.experiment, runs.root, STATES[:3])
    assert contents() == before


def test_the_runs_of_figure5_are_long_enough_whatever_the_seed(tmp_path: Path) -> None:
    """With seed 2 the explorer is at the top after 111 transitions."""
    experiment = paper.figure5(seed=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIMIST_THREADS", "1")
        outcomes = run_sweep(experiment.specs(), tmp_path, workers=1)
    assert [outcome.status for outcome in outcomes] == ["done", "done"]
    assert len(paper.beliefs(experiment, tmp_path, CAR.starts)) == 4


# --- the table ---


def test_the_best_possible_of_mountain_car_is_the_papers() -> None:
    row = paper.best_possible("mountain-car")
    assert (row.paper, row.paper_grid, row.ours) == (-103.0, -103.0, -103.0)
    assert -110.0 < row.nearby < -90.0


def test_the_table_has_a_line_for_every_problem() -> None:
    pendulum, bicycle = SYSTEMS["pendulum"], SYSTEMS["bicycle"]
    rows = [
        paper.BestRow(pendulum, pendulum.paper_best, -17.9, -17.78, -17.94),
        paper.BestRow(bicycle, bicycle.paper_best, -3.0, -2.35, -2.93),
    ]
    text = paper.table_as_markdown(rows)
    header, rule, *body = [line.strip("|").split("|") for line in text.splitlines()]
    assert len({len(line) for line in (header, rule, *body)}) == 1
    assert set("".join(rule)) == {"-"}
    cells = [[cell.strip() for cell in line] for line in body]
    assert cells == [
        ["pendulum", "-18.41", "-17.9", "-17.78", "-17.94"],
        ["bicycle", "-3.49", "-3", "-2.35", "-2.93"],
    ]
    assert text.endswith("\n")
