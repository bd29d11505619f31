"""Problems: ours by name, anybody's by file and function; what is known of them, and who is told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from optimist.agents import settings_of
from optimist.discretisation import Discretisation
from optimist.experiments.kinds import learning_settings
from optimist.experiments.problems import OURS, Problem, find_problem, require_problem
from optimist.runs.loop import reset_seed
from optimist.systems import NAMES, SYSTEMS
from optimist.systems.system import Recipe
from tests.experiments.own_problem import MY_CART, STEPS, n_executed, write_my_cart


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "my_cart", raising=False)


@pytest.fixture
def cart(tmp_path: Path) -> Problem:
    return find_problem(f"{write_my_cart(tmp_path)}:make_env")


@pytest.mark.parametrize("name", NAMES)
def test_ours_is_all_that_its_system_says(name: str) -> None:
    problem, system = find_problem(name), SYSTEMS[name]
    assert (problem.name, problem.label, problem.system) == (name, name, system)
    assert problem.task is system.task is problem.env.get_wrapper_attr("task")
    assert problem.dynamics is system.dynamics
    assert problem.axis_names == system.axis_names
    assert problem.best_known == system.best_known
    assert problem.recipes == {"ours": OURS, **system.recipes}
    assert Recipe(Discretisation(), lookahead=None) == OURS  # nothing is fixed, whatever the system
    assert np.array_equal(problem.starts, system.starts)
    assert np.array_equal(problem.nearby_starts(7, seed=3), system.nearby_starts(7, seed=3))


def test_ones_own_is_named_by_file_and_function_wherever_it_lies(cart: Problem) -> None:
    assert cart.name == "my_cart.py:make_env"
    assert cart.label == "my_cart.make_env"


def test_of_ones_own_is_known_what_its_environment_brings(cart: Problem, tmp_path: Path) -> None:
    assert cart.system is None
    assert cart.best_known is None
    assert cart.task is cart.env.get_wrapper_attr("task")
    assert cart.task.max_steps == STEPS
    assert cart.axis_names == ("position [m]", "velocity [m/s]")
    assert cart.dynamics is not None
    moved = cart.dynamics(np.array([[1.0, 0.5]]), np.array([[1.0]]))
    np.testing.assert_allclose(moved, [[1.0 + 0.2 * 0.65, 0.65]], rtol=1e-14)
    blind = find_problem(f"{tmp_path / 'my_cart.py'}:make_blind_env")
    assert blind.dynamics is None
    assert blind.axis_names == ("coordinate 0", "coordinate 1")


def test_wrappers_around_an_adapted_environment_hide_nothing(cart: Problem, tmp_path: Path) -> None:
    (tmp_path / "wrapped.py").write_text(
        "import my_cart\nfrom gymnasium.wrappers import TimeLimit\n\n\n"
        "def make_env():\n    return TimeLimit(my_cart.make_env(), 7)\n",
        encoding="utf-8",
    )
    wrapped = find_problem(f"{tmp_path / 'wrapped.py'}:make_env")
    assert isinstance(wrapped.env, TimeLimit)
    assert wrapped.task.max_steps == STEPS
    assert wrapped.axis_names == cart.axis_names
    assert wrapped.dynamics is not None


def test_starts_are_some_of_those_the_environment_chooses(cart: Problem) -> None:
    seeds = [reset_seed(0, episode) for episode in (1, 2, 3)]
    expected = sorted(cart.env.reset(seed=seed)[0].tolist() for seed in seeds)
    assert cart.starts.tolist() == expected
    around = cart.nearby_starts(20, seed=0)
    assert around.shape == (20, 2)
    assert np.array_equal(around, cart.nearby_starts(20, seed=0))
    assert not np.array_equal(around, cart.nearby_starts(20, seed=1))
    assert not {tuple(start) for start in around} & {tuple(start) for start in cart.starts}


def test_an_environment_that_always_begins_in_one_place_has_one_start(tmp_path: Path) -> None:
    text = MY_CART.replace("self.np_random.uniform(-1.0, 1.0)", "0.75")
    (tmp_path / "fixed.py").write_text(text, encoding="utf-8")
    problem = find_problem(f"{tmp_path / 'fixed.py'}:make_env")
    assert problem.starts.tolist() == [[0.75, 0.0]]


def test_ones_own_is_planned_on_a_grid_that_suits_it_or_as_the_recipe_says(cart: Problem) -> None:
    assert list(cart.recipes) == ["ours"]
    small = cart.recipes["ours"].grid.model_copy(update={"nodes": (11, 15)})
    made = cart.plan(Recipe(small))
    assert made.grid.shape == (11, 15)
    assert made.plan.converged
    assert made.policy is made.q_function  # a recipe looks 0 steps ahead unless it says otherwise
    assert cart.plan(Recipe(small, lookahead=None)).policy is not made.q_function


def test_what_is_not_known_cannot_be_planned_with(tmp_path: Path) -> None:
    blind = find_problem(f"{write_my_cart(tmp_path)}:make_blind_env")
    with pytest.raises(
        ValueError, match=r"dynamics must be known .*; got none for my_cart\.py:make_blind_env"
    ):
        blind.plan(blind.recipes["ours"])


@pytest.mark.parametrize("preset", ["ours", "paper"])
def test_an_agent_is_given_the_papers_grid_or_none(preset: str, cart: Problem) -> None:
    assert learning_settings("gp-rmax-exp", cart, preset).grid.nodes is None
    acrobot = find_problem("acrobot")
    assert learning_settings("gp-rmax-exp", acrobot, preset).grid == acrobot.recipes[preset].grid


@pytest.mark.parametrize("name", NAMES)
def test_of_ours_an_agent_is_told_no_more_than_of_anybodys(name: str) -> None:
    assert learning_settings("gp-rmax-exp", find_problem(name)) == settings_of("gp-rmax-exp")


def test_files_of_the_same_name_do_not_get_in_each_others_way(cart: Problem, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "my_cart.py").write_text(MY_CART.replace("0.9 *", "0.5 *"), encoding="utf-8")
    other = find_problem(f"{tmp_path / 'other' / 'my_cart.py'}:make_env")
    moving, pushed = np.array([[0.0, 1.0]]), np.array([[0.0]])
    assert cart.dynamics is not None
    assert other.dynamics is not None
    assert cart.dynamics(moving, pushed)[0, 1] == pytest.approx(0.9)
    assert other.dynamics(moving, pushed)[0, 1] == pytest.approx(0.5)
    cart.env.reset(seed=0)
    other.env.reset(seed=0)
    for _ in range(2):
        here, there = cart.env.step(0)[0], other.env.step(0)[0]
    assert here[1] == pytest.approx(-0.2 * 1.9)
    assert there[1] == pytest.approx(-0.2 * 1.5)


def test_a_name_is_checked_without_running_anybodys_code(tmp_path: Path) -> None:
    file = write_my_cart(tmp_path)
    require_problem("acrobot")
    require_problem(f"{file}:make_env")
    require_problem(f"{file}:anything")  # whether it is there is not known until it is run
    with pytest.raises(ValueError, match=r"file of a problem must exist; got nowhere\.py"):
        require_problem("nowhere.py:make_env")
    with pytest.raises(ValueError, match=r"or your own as FILE\.py:FUNCTION; got 'unicycle'"):
        require_problem("unicycle")
    assert n_executed(file) == 0


@pytest.mark.parametrize("text", ["unicycle", "", ":", "my_cart.py", "my_cart.py:", "my_cart.py:make env"])
def test_what_names_no_problem_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_my_cart(tmp_path)
    monkeypatch.chdir(tmp_path)
    for refused in (find_problem, require_problem):
        with pytest.raises(ValueError, match="; got ") as said:
            refused(text)
        assert "\n" not in str(said.value)
    assert n_executed(file) == 0
