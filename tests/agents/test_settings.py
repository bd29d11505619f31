"""Settings: what the names stand for, when plans are due, and what is refused, in which words."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from optimist.agents import AGENTS, PRESETS, AgentSettings, GPRMaxAgent, settings_of
from optimist.agents.settings import parse_settings
from optimist.box import Box
from optimist.discretisation import Discretisation, Holding
from optimist.grid import Grid
from optimist.models import GPSettings
from optimist.planning import Limits
from optimist.task import Task


def task_in(*widths: float, max_steps: int = 500, periodic: list[bool] | None = None) -> Task:
    half = np.array(widths) / 2.0
    return Task(
        Box(-half, half, periodic),
        np.array([-1.0, 1.0]),
        lambda s, u, n: -np.ones(len(s)),
        0.9,
        0.0,
        max_steps=max_steps,
    )


def grid_for(task: Task, settings: AgentSettings) -> Grid:
    return settings.chooser(task).first().grid


def processes(settings: AgentSettings) -> GPSettings:
    assert isinstance(settings.model, GPSettings)
    return settings.model


def first_due(settings: AgentSettings, most: int) -> list[int]:
    return [n for n in range(most + 1) if settings.due(n)]


def written(directory: Path, text: str, name: str = "settings.toml") -> Path:
    file = directory / name
    file.write_text(text, encoding="utf-8")
    return file


# --- names ----------------------------------------------------------------------------------------------


def test_the_paper_is_one_named_preset() -> None:
    paper = PRESETS["paper"]
    assert paper.replan_every == 50
    assert processes(paper) == GPSettings(
        kind="per-action", subset=150, linear=False, mirror=False, max_basis=1000
    )
    assert not processes(paper).joint
    assert paper.knownness == "gp-variance"
    assert paper.first_plans == ()
    assert paper.planning.depth == 0  # acts on Q-values
    assert not paper.planning.rehearse
    assert paper.grid == Discretisation(hold=1)


def test_ours_is_another_and_the_default() -> None:
    ours = PRESETS["ours"]
    assert ours == AgentSettings() == settings_of("gp-rmax-exp")
    assert processes(ours) == GPSettings(kind="joint", subset=300)
    assert processes(ours).joint
    assert ours.knownness == "cell-variance"
    assert ours.first_plans == (5, 8, 12, 16, 20, 26, 32, 40, 50, 62, 76, 94, 115)
    assert ours.grid == Discretisation()  # nothing is fixed
    assert ours.planning.rehearse
    assert set(PRESETS) == {"ours", "paper"}


@pytest.mark.parametrize("preset", list(PRESETS))
def test_agents_differ_in_what_they_hold_for_known_and_nothing_else(preset: str) -> None:
    assert list(AGENTS) == ["gp-rmax-exp", "gp-rmax-grid", "gp-rmax-noexp"]
    found = [settings_of(agent, preset=preset) for agent in AGENTS]
    rules = [PRESETS[preset].knownness, "visited-cells", "none"]
    assert [settings.knownness for settings in found] == rules
    for settings in found:
        same: Any = settings.model_dump() | {"knownness": PRESETS[preset].knownness}
        assert same == PRESETS[preset].model_dump()


@pytest.mark.parametrize(
    ("agent", "preset", "sentence"),
    [
        ("gp-rmax", "ours", r"agent must be one of gp-rmax-exp, gp-rmax-grid, gp-rmax-noexp; got 'gp-rmax'"),
        ("gp-rmax-exp", "theirs", r"preset must be one of ours, paper; got 'theirs'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(agent: str, preset: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        settings_of(agent, preset=preset)


def test_the_grid_of_a_problem_takes_the_place_of_the_presets() -> None:
    grid = Discretisation(nodes=(7, 9), spacing=(1.0, 2.0), limits=(3.0, 4.0), hold=5)
    for preset in PRESETS:
        found = settings_of("gp-rmax-exp", preset=preset, grid=grid)
        assert found.grid == grid
        assert found.model_copy(update={"grid": PRESETS[preset].grid}) == PRESETS[preset]


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        PRESETS["ours"].replan_every = 3


# --- when plans are due ---------------------------------------------------------------------------------


def test_our_plans_come_early_and_then_regularly() -> None:
    early = [5, 8, 12, 16, 20, 26, 32, 40, 50, 62, 76, 94, 115]
    assert first_due(PRESETS["ours"], 200) == [*early, 140, 165, 190]


def test_the_papers_plans_come_every_fifty_transitions() -> None:
    assert first_due(PRESETS["paper"], 210) == [50, 100, 150, 200]


@given(
    firsts=st.sets(st.integers(1, 60), max_size=6),
    every=st.integers(1, 40),
)
def test_plans_are_due_at_the_first_ones_and_every_so_many_after_the_last(
    firsts: set[int], every: int
) -> None:
    settings = AgentSettings(first_plans=tuple(sorted(firsts)), replan_every=every)
    expected, at = sorted(firsts), max(firsts, default=0) + every
    while at <= 200:
        expected.append(at)
        at += every
    assert first_due(settings, 200) == expected


@pytest.mark.parametrize("given_plans", [[10, 5], [5, 5], [0, 5], [-1], [2.5], ["five"]])
def test_first_plans_must_be_increasing_counts(given_plans: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"first_plans.* must .*; got"):
        parse_settings({"first_plans": given_plans})


# --- files ----------------------------------------------------------------------------------------------

NESTED = """
replan_every = 30
first_plans = [4, 8]
[grid]
nodes = [21, 31]
[model]
kind = "per-action"
max_basis = 200
[planning]
depth = 2
[stopping]
patience = 3
"""


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_file_changes_what_it_names_and_leaves_the_rest(tmp_path: Path, suffix: str) -> None:
    text = NESTED if suffix == ".toml" else json.dumps(tomllib.loads(NESTED))
    found = settings_of("gp-rmax-grid", file=written(tmp_path, text, f"mine{suffix}"))
    assert (found.replan_every, found.first_plans) == (30, (4, 8))
    assert found.grid == Discretisation(nodes=(21, 31))
    assert (processes(found).kind, processes(found).max_basis) == ("per-action", 200)
    assert processes(found).subset == processes(PRESETS["ours"]).subset
    assert found.planning.depth == 2
    assert found.planning.tolerance == PRESETS["ours"].planning.tolerance
    assert found.stopping.patience == 3
    assert found.knownness == "visited-cells"


def test_a_file_goes_over_the_grid_of_the_problem_key_by_key(tmp_path: Path) -> None:
    grid = Discretisation(nodes=(7, 9), spacing=(1.0, 2.0), hold=5)
    found = settings_of("gp-rmax-exp", grid=grid, file=written(tmp_path, "[grid]\nhold = 2\n"))
    assert found.grid == Discretisation(nodes=(7, 9), spacing=(1.0, 2.0), hold=2)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert settings_of("gp-rmax-exp", file=written(tmp_path, "")) == PRESETS["ours"]


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("replan_every = ", "bad.toml", r"must be valid TOML; got .*bad\.toml"),
        ("{", "bad.json", r"must be valid JSON; got .*bad\.json"),
        ("[1, 2]", "list.json", r"The settings must hold a table; got .*list\.json"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, text: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        settings_of("gp-rmax-exp", file=written(tmp_path, text, name))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"The settings must be a readable text file; got .*nowhere\.toml"):
        settings_of("gp-rmax-exp", file=tmp_path / "nowhere.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"The settings must be a readable text file; got .*bytes\.toml"):
        settings_of("gp-rmax-exp", file=tmp_path / "bytes.toml")
    with pytest.raises(ValueError, match=r"The settings must be a readable text file; got"):
        settings_of("gp-rmax-exp", file=tmp_path)


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "key", "known"),
    [
        ({"replan": 3}, "replan", "replan_every"),
        ({"grid": {"node": [3, 3]}}, "grid.node", "nodes, spacing, limits, hold"),
        ({"model": {"kernel": "se"}}, "model.kernel", "basis_tolerance"),
        ({"planning": {"gamma": 0.9}}, "planning.gamma", "tolerance, max_sweeps"),
        ({"stopping": {"delta": 0.9}}, "stopping.delta", "mean_drift_tolerance"),
    ],
)
def test_unknown_keys_are_refused_with_the_known_ones(document: dict[str, Any], key: str, known: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown keys; got '{key}'\. Known here: .*{known}"):
        parse_settings(document)


def test_an_unknown_key_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown keys; got 'grid\.node'"):
        settings_of("gp-rmax-exp", file=written(tmp_path, "[grid]\nnode = [3, 3]\n"))


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"replan_every": 0}, "replan_every"),
        ({"replan_every": 2.5}, "replan_every"),
        ({"replan_every": "often"}, "replan_every"),
        ({"replan_every": True}, "replan_every"),
        ({"replan_every": None}, "replan_every"),
        ({"knownness": "everything"}, "knownness"),
        ({"grid": 3}, "grid"),
        ({"grid": {"nodes": [1, 5]}}, "grid.nodes"),
        ({"grid": {"nodes": "many"}}, "grid.nodes"),
        ({"grid": {"nodes": [9.5, 9]}}, "grid.nodes"),
        ({"grid": {"spacing": [0.0, 1.0]}}, "grid.spacing"),
        ({"grid": {"spacing": [float("nan"), 1.0]}}, "grid.spacing"),
        ({"grid": {"limits": [-1.0]}}, "grid.limits"),
        ({"grid": {"limits": [float("inf")]}}, "grid.limits"),
        ({"grid": {"hold": 0}}, "grid.hold"),
        ({"grid": {"budget": 0}}, "grid.budget"),
        ({"grid": {"budget": 1e5}}, "grid.budget"),
        ({"planning": {"rehearse": "often"}}, "planning.rehearse"),
        ({"planning": {"challengers": 0}}, "planning.challengers"),
        ({"model": {"kind": "neural"}}, "model.kind"),
        ({"model": {"metric": "l1"}}, "model.metric"),
        ({"model": {"subset": 1}}, "model.subset"),
        ({"model": {"max_basis": 0}}, "model.max_basis"),
        ({"model": {"basis_tolerance": -1.0}}, "model.basis_tolerance"),
        ({"model": {"basis_tolerance": float("nan")}}, "model.basis_tolerance"),
        ({"model": {"refit_growth": 0.5}}, "model.refit_growth"),
        ({"planning": {"tolerance": 0.0}}, "planning.tolerance"),
        ({"planning": {"max_sweeps": 0}}, "planning.max_sweeps"),
        ({"planning": {"depth": -1}}, "planning.depth"),
        ({"planning": {"depth": "deep"}}, "planning.depth"),
        ({"stopping": {"patience": 0}}, "stopping.patience"),
        ({"stopping": {"mean_drift_tolerance": -0.1}}, "stopping.mean_drift_tolerance"),
    ],
)
def test_wrong_values_are_refused_with_their_key_and_what_was_given(
    document: dict[str, Any], key: str
) -> None:
    with pytest.raises(ValueError, match=rf"The setting '{key}.* must .*; got .+\.$") as refused:
        parse_settings(document)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["nodes", "spacing", "limits"])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_entries_that_do_not_fit_the_axes_are_refused(name: str, n_dims: int) -> None:
    settings = parse_settings({"grid": {name: [3, 3]}})
    with pytest.raises(ValueError, match=rf"`grid.{name}` must have one entry per axis \({n_dims}\); got 2"):
        settings.chooser(task_in(*[1.0] * n_dims)).first()
    with pytest.raises(ValueError, match=rf"`grid.{name}` must have one entry per axis"):
        GPRMaxAgent(task_in(*[1.0] * n_dims), settings, seed=0)


def test_holding_for_longer_than_an_episode_is_refused() -> None:
    settings = AgentSettings(grid=Discretisation(hold=11))
    with pytest.raises(ValueError, match=r"hold` must be .* 10; got 11"):
        GPRMaxAgent(task_in(1.0, max_steps=10), settings, seed=0)
    GPRMaxAgent(task_in(1.0, max_steps=11), settings, seed=0)


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1200, "must fit in memory; 1200 x 1200 x 1200"), (2000, "must fit in memory; 2000 x 2000 x 2000")],
)
def test_a_grid_that_does_not_fit_into_memory_is_refused_before_it_is_made(count: int, sentence: str) -> None:
    settings = AgentSettings(grid=Discretisation(nodes=(count,) * 3))
    with pytest.raises(ValueError, match=sentence):
        GPRMaxAgent(task_in(1.0, 1.0, 1.0), settings, seed=0)


@pytest.mark.parametrize("n_dims", [1, 2, 4])
def test_a_budget_too_small_for_any_grid_is_refused_with_the_least_that_will_do(n_dims: int) -> None:
    task, least = task_in(*[1.0] * n_dims), 3**n_dims
    with pytest.raises(
        ValueError, match=rf"`grid.budget` must be at least {least}, .*; got {least - 1}"
    ) as no:
        GPRMaxAgent(task, AgentSettings(grid=Discretisation(budget=least - 1)), seed=0)
    assert "\n" not in str(no.value)
    agent = GPRMaxAgent(task, AgentSettings(grid=Discretisation(budget=least)), seed=0)
    assert agent.grid.shape == (3,) * n_dims


@given(n_dims=st.integers(1, 6), budget=st.integers(729, 10**6))
def test_a_grid_keeps_to_its_budget_and_wastes_little_of_it(n_dims: int, budget: int) -> None:
    counts = Discretisation(budget=budget).nodes_for(n_dims)
    assert len(set(counts)) == 1
    assert counts[0] % 2 == 1
    assert counts[0] ** n_dims <= budget
    assert counts[0] == 101 or (counts[0] + 2) ** n_dims > budget


@pytest.mark.parametrize("learner", ["neural", 7])
def test_a_learner_that_is_not_in_the_table_is_refused_with_those_that_are(learner: object) -> None:
    with pytest.raises(ValueError, match=rf"`model.learner` must be one of gp; got {learner!r}"):
        parse_settings({"model": {"learner": learner, "depth": 3}})


# --- grids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dims", range(1, 7))
def test_a_grid_that_is_not_given_has_a_node_in_the_middle_of_every_axis(n_dims: int) -> None:
    grid = grid_for(task_in(*[2.0] * n_dims), AgentSettings())
    assert all((axis == 0.0).any() for axis in grid.axes)
    assert grid.n_nodes <= AgentSettings().grid.budget


def test_limits_cut_the_box_where_it_is_wider() -> None:
    settings = AgentSettings(grid=Discretisation(nodes=(5, 5), limits=(1.0, 30.0)))
    grid = grid_for(task_in(8.0, 20.0), settings)
    assert grid.box == Box([-1.0, -10.0], [1.0, 10.0])


def test_limits_do_not_change_the_period_of_an_angle() -> None:
    """A circle cut at +-1 is no circle: refuse, or leave the angle whole."""
    settings = AgentSettings(grid=Discretisation(nodes=(5, 5), limits=(1.0, 1.0)))
    task = task_in(2.0 * np.pi, 20.0, periodic=[True, False])
    try:
        grid = grid_for(task, settings)
    except ValueError as refused:
        assert "limits" in str(refused)  # noqa: PT017
    else:
        assert grid.box.widths[0] == task.box.widths[0]


def test_limits_that_leave_nothing_of_the_box_are_refused_by_name() -> None:
    task = Task(Box([2.0], [3.0]), np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.9, 0.0)
    with pytest.raises(ValueError, match="limits"):
        grid_for(task, AgentSettings(grid=Discretisation(nodes=(5,), limits=(1.0,))))


def test_an_agent_plans_as_its_settings_say() -> None:
    task = task_in(1.0, 1.0)
    settings = parse_settings(
        {"grid": {"nodes": [5, 4], "hold": 2}, "planning": {"tolerance": 0.3, "max_sweeps": 7, "depth": 3}}
    )
    planner, first = settings.planner(task), settings.chooser(task).first()
    assert planner.task is task
    assert planner.limits == Limits(0.3, 7, relative=True)
    assert first.grid.shape == (5, 4)
    assert (first.holding, first.depth) == (Holding(2), 3)
    assert GPRMaxAgent(task, settings, seed=0).layout.holding == Holding(2)


# --- there and back -------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", list(AGENTS))
@pytest.mark.parametrize("preset", list(PRESETS))
def test_settings_come_back_from_json(agent: str, preset: str) -> None:
    grid = Discretisation(nodes=(7, 9), spacing=(1.5, 1.0), limits=(0.1, 4.0), hold=3)
    settings = settings_of(agent, preset=preset, grid=grid)
    assert parse_settings(json.loads(json.dumps(settings.model_dump(mode="json")))) == settings
    assert parse_settings(json.loads(settings.model_dump_json())) == settings


def test_the_document_of_a_model_names_its_learner_and_may_leave_it_out() -> None:
    document = PRESETS["paper"].model_dump(mode="json")
    assert document["model"] == {
        "learner": "gp",
        "kind": "per-action",
        "metric": "axes",
        "subset": 150,
        "max_basis": 1000,
        "basis_tolerance": 0.01,
        "refit_growth": 1.25,
        "linear": False,
        "mirror": False,
    }
    del document["model"]["learner"]  # as files and runs said it before there was a choice
    assert parse_settings(document) == PRESETS["paper"]


@given(
    tolerance=st.floats(1e-12, 1e3),
    growth=st.floats(1.0, 10.0),
    spacing=st.floats(0.1, 5.0),
    limit=st.floats(1e-6, 1e6),
)
def test_numbers_come_back_from_json_to_the_last_bit(
    tolerance: float, growth: float, spacing: float, limit: float
) -> None:
    settings = parse_settings(
        {
            "grid": {"spacing": [spacing], "limits": [limit]},
            "model": {"refit_growth": growth},
            "planning": {"tolerance": tolerance},
        }
    )
    assert parse_settings(json.loads(json.dumps(settings.model_dump(mode="json")))) == settings


def test_settings_that_are_accepted_come_back_however_extreme() -> None:
    """A run that cannot be resumed because of its own settings must be refused at once."""
    try:
        settings = parse_settings({"model": {"refit_growth": float("inf")}})
    except ValueError:
        return
    assert parse_settings(json.loads(json.dumps(settings.model_dump(mode="json")))) == settings
