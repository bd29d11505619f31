"""Experiments as data: stable ids, the file format, and every way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from optimist.experiments.kinds import KINDS
from optimist.experiments.specs import Experiment, Group, RunSpec, read_experiment
from optimist.systems import SYSTEMS
from tests.experiments.own_problem import n_executed, write_my_cart

GOOD = """
name = "trial"

[[runs]]
problems = ["mountain-car"]
agents = ["sarsa-fine"]
seeds = 2
episodes = 5
"""


def written(directory: Path, text: str) -> Path:
    file = directory / "trial.toml"
    file.write_text(text, encoding="utf-8")
    return file


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_the_id_of_a_run_is_experiment_problem_agent_seed() -> None:
    spec = RunSpec(experiment="figure4", problem="mountain-car", agent="gp-rmax-exp", seed=3, episodes=5)
    assert spec.id == "figure4/mountain-car/gp-rmax-exp/seed-3"
    assert spec.directory(Path("results")) == Path("results/figure4/mountain-car/gp-rmax-exp/seed-3")


def test_the_id_does_not_change_with_the_number_of_episodes() -> None:
    short, long = (
        RunSpec(experiment="x", problem="acrobot", agent="sarsa-fine", seed=0, episodes=n) for n in (1, 9)
    )
    assert short.id == long.id


def test_a_group_is_every_combination() -> None:
    group = Group(
        problems=("pendulum", "acrobot"), agents=("gp-rmax-exp", "sarsa-coarse"), seeds=3, episodes=2
    )
    specs = group.specs("x")
    assert len(specs) == len({spec.id for spec in specs}) == 2 * 2 * 3
    assert {spec.seed for spec in specs} == {0, 1, 2}
    assert all(spec.episodes == 2 and spec.preset == "ours" for spec in specs)


def test_seeds_are_a_number_or_a_list(tmp_path: Path) -> None:
    counted = read_experiment(written(tmp_path, GOOD)).specs()
    assert [spec.seed for spec in counted] == [0, 1]
    listed = read_experiment(written(tmp_path, changed("seeds = 2", "seeds = [7, 3]"))).specs()
    assert [spec.seed for spec in listed] == [7, 3]


def test_a_file_says_the_same_as_the_data(tmp_path: Path) -> None:
    text = GOOD + '[[runs]]\nproblems = ["pendulum"]\nagents = ["gp-rmax-exp"]\nseeds = 1\nepisodes = 2\n'
    text += 'preset = "paper"\n'
    cars = Group(problems=("mountain-car",), agents=("sarsa-fine",), seeds=2, episodes=5)
    swings = Group(problems=("pendulum",), agents=("gp-rmax-exp",), seeds=1, episodes=2, preset="paper")
    assert read_experiment(written(tmp_path, text)) == Experiment(name="trial", runs=(cars, swings))


def test_every_problem_and_every_agent_of_the_contract_is_accepted() -> None:
    ours = ("cart-pole", "cart-pole-rail", "pendulum-continuous", "cart-pole-continuous")
    assert tuple(SYSTEMS) == ("mountain-car", "pendulum", "bicycle", "acrobot", *ours)
    assert set(KINDS) == {"gp-rmax-exp", "gp-rmax-grid", "gp-rmax-noexp", "sarsa-fine", "sarsa-coarse"}
    group = Group(problems=tuple(SYSTEMS), agents=tuple(KINDS), seeds=1, episodes=1)
    assert len(group.specs("all")) == 40


def test_specs_are_frozen() -> None:
    spec = RunSpec(experiment="x", problem="acrobot", agent="sarsa-fine", seed=0, episodes=1)
    with pytest.raises(ValidationError, match="frozen"):
        spec.seed = 1


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "-flag", "two words", "end\n"])
def test_a_name_that_is_no_plain_directory_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        RunSpec(experiment=name, problem="acrobot", agent="sarsa-fine", seed=0, episodes=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "must be valid TOML"),
        (changed("mountain-car", "unicycle"), "problem must be one of mountain-car, .*; got 'unicycle'"),
        (changed("sarsa-fine", "sarsa"), "`agent` must be one of .*sarsa-coarse; got 'sarsa'"),
        (GOOD + 'preset = "theirs"\n', "`preset` must be one of ours, paper; got 'theirs'"),
        (GOOD + "colour = 3\n", "'runs.0.colour': it is not known"),
        ("colour = 3\n" + GOOD, "'colour': it is not known"),
        (changed("episodes = 5", "episodes = 0"), "'runs.0.episodes'.*1; got 0"),
        (changed("episodes = 5", "episodes = 2.5"), "'runs.0.episodes'.*; got 2.5"),
        (changed("episodes = 5", "episodes = true"), "'runs.0.episodes'.*; got True"),
        (changed("seeds = 2", "seeds = [-1]"), "got -1"),
        (changed("seeds = 2", "seeds = [1, 1]"), "trial/mountain-car/sarsa-fine/seed-1 twice"),
        (changed("seeds = 2", ""), "'runs.0.seeds'"),
        (changed('name = "trial"', ""), "'name'"),
        (changed('"trial"', '"../trial"'), "'name'.*'../trial'"),
        ('name = "trial"', "'runs'"),
        ('name = "trial"\nruns = []', "'runs'"),
        (changed('["mountain-car"]', '"mountain-car"'), "'runs.0.problems'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_one_line(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        read_experiment(written(tmp_path, text))
    assert not isinstance(refused.value, ValidationError)
    assert "\n" not in str(refused.value)


def test_two_groups_with_the_same_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trial/mountain-car/sarsa-fine/seed-0 twice"):
        read_experiment(written(tmp_path, GOOD + GOOD[GOOD.index("[[runs]]") :]))


@pytest.mark.parametrize("seeds", ["0", "-2"])
def test_too_few_seeds_are_refused_as_too_few(seeds: str, tmp_path: Path) -> None:
    """Not as something that should have been a tuple: a number is allowed."""
    with pytest.raises(ValueError, match=rf"'runs.0.seeds'.*1; got {seeds}\.$"):
        read_experiment(written(tmp_path, changed("seeds = 2", f"seeds = {seeds}")))


@pytest.mark.parametrize("seeds", ["1.5", "true", '"3"', "[-1]", "[0.5]"])
def test_what_is_said_about_seeds_is_said_in_the_words_of_the_file(seeds: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'runs\.0\.seeds(\.0)?'") as refused:
        read_experiment(written(tmp_path, changed("seeds = 2", f"seeds = {seeds}")))
    assert "constrained" not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [("seeds = 2", "seeds = []"), ('["mountain-car"]', "[]"), ('["sarsa-fine"]', "[]")],
)
def test_a_group_without_any_run_is_refused(old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"runs\.0"):
        read_experiment(written(tmp_path, changed(old, new)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must be a readable text file; got .*nowhere\.toml"):
        read_experiment(tmp_path / "nowhere.toml")
    with pytest.raises(ValueError, match="must be a readable text file"):
        read_experiment(tmp_path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trial.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"trial\.toml"):
        read_experiment(tmp_path / "trial.toml")


# --- problems of one's own ---


def test_the_file_of_a_problem_is_looked_for_beside_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    file = write_my_cart(tmp_path / "below")
    monkeypatch.chdir("/")
    for text in ("below/my_cart.py:make_env", f"{file}:make_env"):
        specs = read_experiment(written(tmp_path, changed("mountain-car", text))).specs()
        assert {spec.problem for spec in specs} == {f"{file}:make_env"}
    assert n_executed(file) == 0  # an experiment is data


def test_the_id_of_a_run_of_ones_own_problem_names_file_and_function(tmp_path: Path) -> None:
    problem = f"{write_my_cart(tmp_path)}:make_env"
    spec = RunSpec(experiment="x", problem=problem, agent="gp-rmax-exp", seed=3, episodes=5)
    assert spec.id == "x/my_cart.make_env/gp-rmax-exp/seed-3"


def test_two_files_of_the_same_name_are_refused_since_their_runs_would_be_one(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_my_cart(tmp_path / folder)
    text = changed('"mountain-car"', '"a/my_cart.py:make_env", "b/my_cart.py:make_env"')
    with pytest.raises(ValueError, match=r"trial/my_cart\.make_env/sarsa-fine/seed-0 twice"):
        read_experiment(written(tmp_path, text))


@pytest.mark.parametrize(
    "problem", ["my_cart.py", "nowhere.py:make_env", "my_cart.py:", "my_cart.py:make env"]
)
def test_what_can_be_no_problem_is_refused_in_one_line(problem: str, tmp_path: Path) -> None:
    file = write_my_cart(tmp_path)
    with pytest.raises(ValueError, match=r"problem must .*; got ") as refused:
        read_experiment(written(tmp_path, changed("mountain-car", problem)))
    assert not isinstance(refused.value, ValidationError)
    assert "\n" not in str(refused.value)
    assert n_executed(file) == 0
