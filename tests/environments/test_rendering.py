"""Drawings agree with what the tasks say of the same states; pixels are where the drawings say."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import env_checker

from optimist import Box, Task
from optimist.arrays import FloatArray
from optimist.environments.rendering import WIDTH, picture_of
from optimist.environments.system_environment import SystemEnvironment
from optimist.systems import SYSTEMS
from optimist.systems.drawing import BODY, GOAL, PUSH, Area, Disc, Drawing, Line, Shape, bars
from optimist.systems.system import System

EVERY_SYSTEM = pytest.mark.parametrize("name", list(SYSTEMS))
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def random_states(name: str, count: int = 60) -> FloatArray:
    box = SYSTEMS[name].task.box
    return np.random.default_rng(0).uniform(box.low, box.high, (count, box.n_dims))


def shapes(name: str, state: FloatArray, control: FloatArray | None = None) -> list[Shape]:
    return list(SYSTEMS[name].drawing.shapes(state, control))


def coloured(found: list[Shape], kind: type[Shape], colour: str) -> list[Shape]:
    return [shape for shape in found if isinstance(shape, kind) and shape.colour == colour]


# --- drawings and tasks


def test_the_tip_of_the_acrobot_is_above_the_line_where_the_episode_ends() -> None:
    states = random_states("acrobot")
    ended = SYSTEMS["acrobot"].task.terminal(states)
    assert 0 < ended.sum() < len(states)
    for state, end in zip(states, ended, strict=True):
        drawn = shapes("acrobot", state)
        (goal,) = coloured(drawn, Line, GOAL)
        (link,) = coloured(drawn, Line, "#56b4e9")
        assert isinstance(goal, Line)
        assert isinstance(link, Line)
        assert (link.points[-1][1] > goal.points[0][1]) == end


@pytest.mark.parametrize("name", ["cart-pole", "cart-pole-rail"])
def test_the_reward_of_the_cart_pole_is_how_far_its_tip_is_from_the_mark(name: str) -> None:
    states = random_states(name)
    task = SYSTEMS[name].task
    rewards = task.rewards(states, task.controls[[0]], states)
    for state, reward in zip(states, rewards, strict=True):
        drawn = shapes(name, state)
        (mark,), (pole,) = coloured(drawn, Disc, GOAL), coloured(drawn, Line, BODY)
        assert isinstance(mark, Disc)
        assert isinstance(pole, Line)
        squared = sum((a - b) ** 2 for a, b in zip(mark.centre, pole.points[-1], strict=True))
        if not task.terminal(state[np.newaxis])[0]:
            assert reward == pytest.approx(np.expm1(-squared / (2.0 * 0.25**2)), abs=1e-12)
        assert -1.6 < pole.points[0][0] < 1.6  # however far it went, it is in the picture


def test_posts_stand_where_the_rail_ends() -> None:
    for side in (-1.0, 1.0):
        drawn = shapes("cart-pole-rail", np.array([side * 2.4, 0.0, 0.0, 0.0]))
        (post,), (pole,) = coloured(drawn, Line, PUSH), coloured(drawn, Line, BODY)
        assert isinstance(post, Line)
        assert isinstance(pole, Line)
        assert post.points[0][0] == pytest.approx(pole.points[0][0])
    assert coloured(shapes("cart-pole-rail", np.zeros(4)), Line, PUSH) == []


def test_the_pendulum_is_on_its_mark_when_upright_and_opposite_when_it_hangs() -> None:
    for angle, place in ((0.0, (0.0, 1.0)), (np.pi, (0.0, -1.0)), (np.pi / 2.0, (1.0, 0.0))):
        (tip,) = coloured(shapes("pendulum", np.array([angle, 0.0])), Disc, BODY)
        assert isinstance(tip, Disc)
        assert tip.centre == pytest.approx(place)


def test_the_bicycle_has_fallen_where_the_rider_is_beyond_the_lines() -> None:
    for state in random_states("bicycle") * np.array([2.0, 1.0, 1.0, 1.0]):
        (head,) = coloured(shapes("bicycle", state), Disc, BODY)
        assert isinstance(head, Disc)
        lean = np.arctan2(head.centre[0] + 0.75, head.centre[1])
        assert lean == pytest.approx(state[0])
        assert (abs(lean) > np.deg2rad(12.0)) == SYSTEMS["bicycle"].task.terminal(state[np.newaxis])[0]


def test_the_car_stands_on_a_hill_whose_slope_is_what_pulls_it() -> None:
    """v' = v - 0.0025 cos 3x: the force is minus the slope of the height, up to a factor."""
    places = np.linspace(-1.2, 0.5, 50)
    drawn = shapes("mountain-car", np.zeros(2))
    hill = next(shape for shape in drawn if isinstance(shape, Line))
    x, y = np.array(hill.points).T
    slope = np.interp(places, 0.5 * (x[1:] + x[:-1]), np.diff(y) / np.diff(x))
    pulled = SYSTEMS["mountain-car"].dynamics(
        np.column_stack([places, np.zeros(50)]), SYSTEMS["mountain-car"].task.controls[[1]]
    )[:, 1]
    inside = slice(2, -2)  # walls stop it at the ends
    np.testing.assert_allclose(pulled[inside], -slope[inside] * 0.0025 / 1.35, atol=2e-5)


@EVERY_SYSTEM
def test_what_pushes_is_drawn_and_nothing_else_changes_with_it(name: str) -> None:
    task = SYSTEMS[name].task
    state = SYSTEMS[name].starts[0]
    at_rest = [shape for shape in shapes(name, state) if shape.colour != PUSH]
    for control in task.controls:
        drawn = shapes(name, state, control)
        arrows = [shape for shape in drawn if shape.colour == PUSH]
        assert bool(arrows) == bool(np.any(control != 0.0))
        if name != "bicycle":  # whose rider moves
            assert [shape for shape in drawn if shape.colour != PUSH] == at_rest


# --- pixels


def test_pixels_are_where_the_drawing_says() -> None:
    drawn: list[Shape] = [
        Area([(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0)], "#00ff00"),
        Disc((1.0, 2.0), 0.5, "#ff0000"),
        Line([(3.0, 0.5), (3.0, 2.5)], 0.4, "#0000ff"),
    ]
    drawing = Drawing(lambda state, control: drawn, (0.0, 0.0), (4.0, 3.0), fps=10)
    picture = picture_of(drawing, np.zeros(1))
    assert picture.shape == (360, WIDTH, 3)
    assert picture.dtype == np.uint8

    def at(x: float, y: float) -> tuple[int, ...]:
        return tuple(int(part) for part in picture[round(360 - y * 120), round(x * 120)])

    assert at(1.0, 0.5) == at(1.9, 0.9) == GREEN
    assert at(1.0, 2.0) == at(1.45, 2.0) == at(1.0, 1.55) == RED
    assert at(3.0, 1.0) == at(3.15, 2.0) == at(3.0, 2.6) == BLUE  # its ends are round
    assert at(2.1, 0.5) == at(1.55, 2.0) == at(3.3, 1.0) == at(3.0, 2.8) == WHITE


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")  # controls in the system's own units
@EVERY_SYSTEM
def test_gymnasiums_checker_has_no_complaint_of_what_is_rendered(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    environment = gymnasium.make(SYSTEMS[name].gymnasium_id)
    assert environment.metadata["render_modes"] == ["rgb_array", "human"]
    assert environment.metadata["render_fps"] == SYSTEMS[name].drawing.fps
    env_checker.check_env(environment.unwrapped)


@EVERY_SYSTEM
def test_an_episode_is_rendered_without_changing_it(name: str) -> None:
    plain = gymnasium.make(SYSTEMS[name].gymnasium_id)
    shown = gymnasium.make(SYSTEMS[name].gymnasium_id, render_mode="rgb_array")
    assert plain.reset(seed=1)[0].tolist() == shown.reset(seed=1)[0].tolist()
    task = SYSTEMS[name].task
    for number in (0, 1, 0):
        action: Any = np.int64(number) if task.control_box is None else task.controls[number]
        state = plain.step(action)[0]
        assert state.tolist() == shown.step(action)[0].tolist()
        picture: Any = shown.render()
        np.testing.assert_array_equal(picture, SystemEnvironment(name).picture(state, action))
    assert not np.array_equal(picture, SystemEnvironment(name).picture(SYSTEMS[name].starts[0], action))


def test_a_window_shows_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    environment = SystemEnvironment("bicycle", render_mode="human")  # the quickest
    environment.reset(seed=0)
    seen = []
    for action in (0, 1):
        environment.step(action)
        assert environment._state is not None
        surface = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        np.testing.assert_array_equal(surface, environment.picture(environment._state, action))
        seen.append(surface)
    assert not np.array_equal(*seen)
    assert environment.render() is None
    environment.close()
    environment.close()
    assert pygame.display.get_surface() is None


def test_without_a_screen_a_window_is_refused_in_one_sentence() -> None:
    program = (
        "import gymnasium, optimist\n"
        "try:\n    gymnasium.make('optimist/Pendulum-v0', render_mode='human').reset(seed=0)\n"
        "except ValueError as error:\n    print(error)"
    )
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER")
    blind = {name: value for name, value in os.environ.items() if name not in hidden}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=blind, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.startswith("`render_mode` 'human' must have a screen; got none")
    assert ran.stdout.endswith("'rgb_array' does without.\n")


@pytest.mark.parametrize(("mode", "missing"), [("rgb_array", "PIL"), ("human", "pygame")])
def test_what_is_not_installed_is_named(mode: str, missing: str) -> None:
    program = (
        f"import sys\nsys.modules[{missing!r}] = None\nimport gymnasium, optimist\n"
        f"try:\n    gymnasium.make('optimist/Pendulum-v0', render_mode={mode!r})\n"
        "except ValueError as error:\n    print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert "pip install 'optimist[" in ran.stdout


def test_rendering_before_the_first_reset_and_in_no_mode() -> None:
    with pytest.raises(RuntimeError, match="`reset` must be called before `render`"):
        SystemEnvironment("pendulum", render_mode="rgb_array").render()
    with pytest.raises(ValueError, match="must be one of rgb_array, human or None; got 'ansi'"):
        SystemEnvironment("pendulum", render_mode="ansi")
    with pytest.warns(UserWarning, match="got no mode"):
        assert SystemEnvironment("pendulum").render() is None


def test_a_system_without_a_drawing_shows_its_coordinates() -> None:
    box = Box([-1.0, 0.0], [1.0, 10.0])
    task = Task(
        box=box,
        controls=np.array([0.0, 1.0]),
        reward=lambda states, controls, next_states: -(states[:, 0] ** 2),
        discount=0.9,
        optimistic_value=0.0,
    )
    system = System(
        "mine", "", task, np.zeros((1, 2)), np.ones(2), ("a", "b"), dynamics=lambda states, controls: states
    )
    marks = [shape for shape in system.drawing.shapes(np.array([0.0, 99.0]), None) if isinstance(shape, Disc)]
    assert [mark.centre[0] for mark in marks] == pytest.approx([2.0 / 3.0, 1.2333], abs=1e-3)
    assert [mark.centre[1] for mark in marks] == [0.75, 0.25]
    assert picture_of(bars(box), np.zeros(2)).shape == (360, WIDTH, 3)
