"""The runs of Figure 4 as data, and what is read off them once they are recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from optimist.experiments.specs import Experiment, Group
from optimist.paper.runs import curves, figure4_runs, recorded_runs
from optimist.runs import EpisodeRow, RunStore
from optimist.systems import PAPER

# --- the runs ---


@pytest.mark.parametrize("quick", [False, True])
def test_figure4_is_every_agent_on_every_problem(quick: bool) -> None:
    specs = figure4_runs(quick=quick).specs()
    agents = {"gp-rmax-exp", "gp-rmax-grid", "gp-rmax-noexp", "sarsa-fine", "sarsa-coarse"}
    for problem in PAPER:
        mine = [spec for spec in specs if spec.problem == problem]
        assert {spec.agent for spec in mine} == agents
        seeds = {agent: sorted(spec.seed for spec in mine if spec.agent == agent) for agent in agents}
        counts = {agent: len(found) for agent, found in seeds.items()}
        assert counts["sarsa-fine"] == counts["sarsa-coarse"] == counts["gp-rmax-exp"]
        assert counts["gp-rmax-grid"] == counts["gp-rmax-noexp"] <= counts["gp-rmax-exp"]
        assert min(counts.values()) >= 2  # fewer have no interval
        assert all(found == list(range(len(found))) for found in seeds.values())


def test_figure4_has_ten_seeds_of_who_is_compared() -> None:
    specs = figure4_runs(quick=False).specs()
    for problem in PAPER:
        for agent in ("gp-rmax-exp", "sarsa-fine", "sarsa-coarse"):
            mine = {spec.seed for spec in specs if (spec.problem, spec.agent) == (problem, agent)}
            assert mine == set(range(10))


def test_ids_of_figure4_are_stable() -> None:
    ids = {spec.id for spec in figure4_runs(quick=False).specs()}
    assert "figure4/mountain-car/gp-rmax-exp/seed-3" in ids
    assert "figure4/acrobot/sarsa-coarse/seed-0" in ids


def test_the_quick_figure4_is_smaller_and_recorded_elsewhere() -> None:
    full, quick = (figure4_runs(quick=quick).specs() for quick in (False, True))
    assert sum(spec.episodes for spec in quick) < 0.5 * sum(spec.episodes for spec in full)
    assert not {spec.id for spec in full} & {spec.id for spec in quick}


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
    found = curves(recorded_runs(TRIAL, trial))
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
    first, second = (curves(recorded_runs(TRIAL, trial))["pendulum"][0] for _ in range(2))
    assert np.array_equal(first.low, second.low)
    assert np.array_equal(first.high, second.high)


def test_a_curve_ends_with_the_experiment_however_long_the_runs_are(trial: Path) -> None:
    shorter = TRIAL.model_copy(update={"runs": (TRIAL.runs[1].model_copy(update={"episodes": 2}),)})
    (curve,) = curves(recorded_runs(shorter, trial))["pendulum"]
    (whole,) = curves(recorded_runs(TRIAL.model_copy(update={"runs": (TRIAL.runs[1],)}), trial))["pendulum"]
    assert np.array_equal(curve.median, whole.median[:2])


def test_a_single_seed_has_no_interval_and_that_is_said(trial: Path) -> None:
    single = TRIAL.model_copy(update={"runs": (TRIAL.runs[0].model_copy(update={"seeds": 1}),)})
    with pytest.raises(ValueError, match="at least two seeds for an interval; got 1"):
        curves(recorded_runs(single, trial))


def test_a_run_that_is_not_there_is_named(trial: Path, tmp_path: Path) -> None:
    shutil.copytree(trial, tmp_path / "results")
    shutil.rmtree(TRIAL.specs()[1].directory(tmp_path / "results"))
    with pytest.raises(ValueError, match="trial/pendulum/gp-rmax-exp/seed-1"):
        curves(recorded_runs(TRIAL, tmp_path / "results"))


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
        curves(recorded_runs(TRIAL, root))
