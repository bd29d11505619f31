"""The picture of a run says what the run says: values, policy, uncertainty from 0 to 1, the last path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from optimist import Box, Discretisation, GPRMax, Task, adapt
from optimist.arrays import FloatArray
from optimist.views.knowledge import Episode
from optimist.views.learning_figure import COARSE, draw_learning
from optimist.views.plan_figure import RESOLUTION, Slice, save_figure
from tests.runs.recording import SMALL, Line, ShortSystem

NAMES = ("x", "y")


@pytest.fixture(scope="module")
def run() -> GPRMax:
    return GPRMax(ShortSystem("mountain-car", 25), settings=SMALL, seed=0).learn(episodes=2)


@pytest.fixture(scope="module")
def figure(run: GPRMax) -> Figure:
    return draw_learning(run, "mine", axis_names=NAMES, best_known=-3.0)


def titles(figure: Figure) -> list[str]:
    return [axes.get_title().split("\n")[0] for axes in figure.axes if axes.get_title()]


def mesh(figure: Figure, title: str) -> QuadMesh:
    (axes,) = [axes for axes in figure.axes if axes.get_title() == title]
    (found,) = [one for one in axes.collections if isinstance(one, QuadMesh)]
    return found


def test_it_shows_all_there_is(figure: Figure) -> None:
    assert titles(figure) == [
        "learning curve", "value function", "greedy policy", "what it does not know", "where its nodes are",
        "episode 2: total reward -25",
    ]  # fmt: skip


def test_uncertainty_is_on_a_scale_from_0_to_1(run: GPRMax, figure: Figure) -> None:
    """However little is left: 4e-6 is black."""
    drawn = mesh(figure, "what it does not know")
    assert drawn.get_clim() == (0.0, 1.0)
    states = Slice((0, 1), np.zeros(2), NAMES).lattice(run.box)[2]
    expected = run.uncertainty(states).mean(axis=1)
    np.testing.assert_array_equal(np.asarray(drawn.get_array()).ravel(), expected)


def test_values_and_policy_are_those_of_the_run(run: GPRMax, figure: Figure) -> None:
    states = Slice((0, 1), np.zeros(2), NAMES).lattice(run.box)[2]
    values = np.asarray(mesh(figure, "value function").get_array()).ravel()
    np.testing.assert_array_equal(values, run.value(states))
    states = Slice((0, 1), np.zeros(2), NAMES).lattice(run.box, COARSE)[2]
    actions = np.asarray(mesh(figure, "greedy policy").get_array()).ravel()
    np.testing.assert_array_equal(actions, run.policy.greedy(states))


def test_the_last_path_is_on_both_maps(run: GPRMax, figure: Figure) -> None:
    path = Episode.of(run).states
    assert len(path) == 26
    for title in ("value function", "greedy policy"):
        (axes,) = [axes for axes in figure.axes if axes.get_title() == title]
        (line,) = [line for line in axes.lines if line.get_label() == "last episode"]
        np.testing.assert_array_equal(np.column_stack([line.get_xdata(), line.get_ydata()]), path)


def test_two_other_axes_are_shown_through_where_it_began() -> None:
    """Of a cart-pole before its first plan, which has nothing else to show, and after it."""
    small = SMALL.model_copy(update={"grid": Discretisation(nodes=(5, 5, 5, 5))})
    run = GPRMax(ShortSystem("cart-pole", 8), settings=small, seed=0)
    run.learn(total_timesteps=3)
    names = ("position", "speed", "angle", "rate")
    assert titles(draw_learning(run, "mine", axis_names=names, axes=(2, 3)))[0] == "learning curve"
    run.learn(episodes=1)
    figure = draw_learning(run, "mine", axis_names=names, axes=(3, 1))
    (axes,) = [axes for axes in figure.axes if axes.get_title() == "value function"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rate", "speed")
    states = Slice((3, 1), run.transitions.states[0], names).lattice(run.box)[2]
    assert np.ptp(states[:, [0, 2]], axis=0).tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(
        np.asarray(mesh(figure, "value function").get_array()).ravel(), run.value(states)
    )
    assert "position = 0, angle = 0" in figure.get_suptitle()


def along(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -(states[:, 0] ** 2)


def after(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    paid: FloatArray = -(next_states**2).sum(axis=1)
    return paid


class OneAxis(Line):
    """It has one axis only."""

    task = Task(Box([-1.0], [1.0]), np.array([-0.1, 0.1]), along, 0.9, 0.0, max_steps=10)

    def reset(self, **choices: Any) -> tuple[Any, Any]:
        return super().reset(**choices)[0][:1], {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        self.state = np.array([self.state[0] + 0.2 * (int(action) - 0.5), 0.0])
        return self.state[:1].copy(), 0.0, False, False, {}


def test_one_axis_is_drawn_as_curves_along_it(tmp_path: Path) -> None:
    small = SMALL.model_copy(update={"grid": Discretisation(nodes=(15,))})
    run = GPRMax(OneAxis(), settings=small, seed=0).learn(episodes=2)
    figure = draw_learning(run, "mine", axis_names=("x",), axes=None)
    assert "what it does not know" in titles(figure)
    (axes,) = [axes for axes in figure.axes if axes.get_title() == "value function"]
    xs, ys = (np.asarray(part, dtype=float) for part in axes.lines[0].get_data())
    assert len(xs) == 4 * RESOLUTION
    np.testing.assert_array_equal(ys, run.value(xs[:, np.newaxis]))
    save_figure(figure, tmp_path / "line.png")


def test_anybodys_environment_is_drawn(tmp_path: Path) -> None:
    box = {"low": [-1.0, -1.0], "high": [1.0, 1.0]}
    env = adapt(Line(), reward=after, **box, controls=[-0.1, 0.1], max_steps=9)  # type: ignore[arg-type]
    run = GPRMax(env, settings=SMALL, seed=0).learn(episodes=1)
    figure = draw_learning(run, "theirs", axis_names=env.axis_names, axes=(1, 0))
    save_figure(figure, tmp_path / "theirs.png")
    (axes,) = [axes for axes in figure.axes if axes.get_title() == "greedy policy"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("coordinate 1", "coordinate 0")
