"""The strangers of the suite: ordinary environments that know nothing of us, truly described."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import benchmarks.suite
import gymnasium
import numpy as np
import pytest
from benchmarks.suite.members import MEMBERS
from gymnasium.utils import env_checker
from scipy.integrate import solve_ivp

from optimist.arrays import FloatArray
from optimist.environments.adapter import AdaptedEnvironment

FOLDER = Path(benchmarks.suite.__file__).parent
OURS = ("__init__", "__main__", "members", "runs")  # what is told of the strangers, and what tries them
SHARED = "stranger"  # what they share among themselves
STRANGERS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in (*OURS, SHARED))
EVERY_MEMBER = pytest.mark.parametrize("name", MEMBERS)
ALLOWED = {"__future__", "collections.abc", "gymnasium", "numpy", "numpy.typing", "typing"}
ALLOWED |= {f"benchmarks.suite.{SHARED}"}

# The action that does nothing, and how many points that costs at least, of 20 starts on average.
NOTHING = {
    "double-integrator": (1, 90.0),
    "magnetic-levitation": (3, 300.0),
    "dubins-car": (1, 150.0),
    "stirred-tank": (2, 300.0),
    "reaction-wheel": (2, 130.0),
    "furuta-pendulum": (2, 180.0),
    "ball-and-beam": (2, 100.0),
    "air-table": (4, 79.0),
    "parking-car": (4, 50.0),
    "planar-quadrotor": (0, 75.0),
}


def made(name: str) -> AdaptedEnvironment:
    env = MEMBERS[name]()
    assert isinstance(env, AdaptedEnvironment)
    return env


def module_of(name: str) -> ModuleType:
    return import_module(f"benchmarks.suite.{name.replace('-', '_')}")


def motion_of(env: AdaptedEnvironment) -> Callable[[FloatArray, FloatArray], FloatArray]:
    assert env.dynamics is not None
    return env.dynamics


def starts_of(env: AdaptedEnvironment, count: int) -> FloatArray:
    return np.array([env.reset(seed=seed)[0] for seed in range(count)])


def box_states(env: AdaptedEnvironment, count: int) -> FloatArray:
    box = env.task.box
    return np.random.default_rng(0).uniform(box.low, box.high, size=(count, box.n_dims))


def test_every_stranger_is_a_member() -> None:
    assert len(MEMBERS) == 10
    assert sorted(name.replace("-", "_") for name in MEMBERS) == STRANGERS


@pytest.mark.parametrize("stem", [*STRANGERS, SHARED])
def test_strangers_import_gymnasium_and_numpy_and_nothing_of_ours(stem: str) -> None:
    found: set[str | None] = set()
    for node in ast.walk(ast.parse((FOLDER / f"{stem}.py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(node.module)
    assert found <= ALLOWED


@EVERY_MEMBER
def test_gymnasiums_checker_has_no_complaint(name: str) -> None:
    env_checker.check_env(made(name).unwrapped, skip_render_check=True)


@EVERY_MEMBER
def test_the_environment_is_what_its_owner_says(name: str) -> None:
    """Step by step the batched functions; not a word from `adapt` about a contradiction."""
    env, module = made(name), module_of(name)
    ends = getattr(module, "is_terminal", None)
    stream = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(seed=0)
        for _ in range(150):
            action = int(stream.integers(env.task.n_actions))
            states, controls = env.get_wrapper_attr("state")[np.newaxis], module.CONTROLS[[action]]
            expected = module.dynamics(states, controls)
            state, paid, terminated, truncated, _ = env.step(action)
            np.testing.assert_array_equal(env.get_wrapper_attr("state"), expected[0])
            np.testing.assert_allclose(state, expected[0], rtol=1e-14, atol=1e-14)
            assert paid == module.reward(states, controls, expected)[0]
            assert terminated == (ends is not None and bool(ends(expected)[0]))
            if terminated or truncated:
                env.reset()


@EVERY_MEMBER
def test_batches_are_rows_and_one_control_stands_for_all(name: str) -> None:
    env = made(name)
    states, motion = box_states(env, 40), motion_of(env)
    kept = states.copy()
    for control in env.task.controls:
        once, repeated = control[np.newaxis], np.tile(control, (40, 1))
        next_states = motion(states, once)
        np.testing.assert_array_equal(states, kept)
        np.testing.assert_allclose(motion(states, repeated), next_states, rtol=1e-13, atol=1e-13)
        alone = np.concatenate([motion(states[[k]], once) for k in range(40)])
        np.testing.assert_allclose(alone, next_states, rtol=1e-12, atol=1e-12)
        rewards = env.task.rewards(states, once, next_states)
        np.testing.assert_allclose(rewards, env.task.rewards(states, repeated, next_states), rtol=1e-13)
        assert rewards.max() <= env.task.optimistic_value == 0.0


@EVERY_MEMBER
def test_no_step_leads_far_out_of_the_box(name: str) -> None:
    """Or an integrator broke down in some corner of it."""
    env = made(name)
    box, states, motion = env.task.box, box_states(env, 2000), motion_of(env)
    corners = np.stack(np.meshgrid(*np.stack([box.low, box.high]).T, indexing="ij"), axis=-1)
    states = np.concatenate([states, corners.reshape(-1, box.n_dims)])
    for control in env.task.controls:
        next_states = motion(states, control[np.newaxis])
        assert (next_states >= box.low - box.widths).all()
        assert (next_states <= box.high + box.widths).all()


@pytest.mark.parametrize("name", [name for name in MEMBERS if hasattr(module_of(name), "rates")])
def test_steps_solve_the_differential_equation(name: str) -> None:
    """From where episodes begin, until the first stop or seam."""
    env, module = made(name), module_of(name)
    for start in starts_of(env, 3):
        for control in env.task.controls:
            u = control[np.newaxis]

            def flow(t: float, y: FloatArray, u: FloatArray = u) -> FloatArray:
                rates: FloatArray = module.rates(y[np.newaxis], u)[0]
                return rates

            end = solve_ivp(flow, (0.0, module.STEP), start, rtol=1e-10, atol=1e-12).y[:, -1]
            found = module.dynamics(start[np.newaxis], u)[0]
            missed = env.task.box.displacement(end, found) / env.task.box.widths
            assert np.abs(missed).max() < 1e-5


@EVERY_MEMBER
def test_episodes_begin_near_one_place_chosen_by_the_seed(name: str) -> None:
    env, module = made(name), module_of(name)
    starts = starts_of(env, 20)
    np.testing.assert_array_equal(starts, starts_of(env, 20))
    assert len(np.unique(starts, axis=0)) == 20
    assert (np.abs(env.task.box.displacement(module.START, starts)) <= module.SPREAD + 1e-9).all()
    assert env.task.box.contains(starts).all()
    assert not env.task.terminal(starts).any()


@EVERY_MEMBER
def test_doing_nothing_is_bad(name: str) -> None:
    env = made(name)
    action, cost = NOTHING[name]
    task, motion = env.task, motion_of(env)
    states, control = starts_of(env, 20), task.controls[[action]]
    totals, going = np.zeros(20), np.ones(20, dtype=np.bool_)
    for _ in range(task.max_steps):
        next_states = motion(states, control)
        totals += going * task.rewards(states, control, next_states)
        going &= ~task.terminal(next_states)
        states = next_states
    assert totals.mean() <= -cost


@EVERY_MEMBER
def test_episodes_and_actions_are_few(name: str) -> None:
    env = made(name)
    assert 30 <= env.task.max_steps <= 200
    assert 3 <= env.task.n_actions <= 9
    assert 0.95 <= env.task.discount <= 1.0
    assert (env.task.discount < 1.0) or env.task.is_terminal is not None
    inner: gymnasium.Env[Any, Any] = env.unwrapped
    assert isinstance(inner.observation_space, gymnasium.spaces.Box)


@EVERY_MEMBER
def test_where_an_axis_can_end_the_episode_the_box_reaches_beyond(name: str) -> None:
    env = made(name)
    limits = {"ball-and-beam": (0,), "air-table": (0, 1), "dubins-car": (0, 1)}
    for axis in limits.get(name, ()):
        for edge in (env.task.box.low, env.task.box.high):
            state = 0.5 * (env.task.box.low + env.task.box.high)
            state[axis] = edge[axis]
            assert env.task.terminal(state[np.newaxis])[0]
