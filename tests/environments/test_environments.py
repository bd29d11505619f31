"""The Gymnasium environments: found by id, true to their systems, and honest about how an episode ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.environments import registration
from optimist.environments.system_environment import SystemEnvironment
from optimist.systems import PAPER, SYSTEMS
from optimist.systems.system import System

EVERY_SYSTEM = pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))
IDS = {
    "mountain-car": "optimist/MountainCar-v0",
    "pendulum": "optimist/Pendulum-v0",
    "bicycle": "optimist/Bicycle-v0",
    "acrobot": "optimist/Acrobot-v0",
    "cart-pole": "optimist/CartPole-v0",
    "cart-pole-rail": "optimist/CartPoleRail-v0",
    "pendulum-continuous": "optimist/PendulumContinuous-v0",
    "cart-pole-continuous": "optimist/CartPoleContinuous-v0",
}

ROOT = Path(__file__).parents[2]

FRESH = """
import sys
import gymnasium
print([name for name in sys.modules if "optimist" in name], "numba" in sys.modules)
for name in sys.argv[1:]:
    environment = gymnasium.make(name)
    observation, _ = environment.reset(seed=0)
    observation, *_ = environment.step(getattr(environment.action_space, "low", 0))
    print(environment.spec.max_episode_steps, observation.tolist())
    print(environment.spec.id)
"""


def fresh(program: str, *arguments: str) -> list[str]:
    """What a new interpreter prints that was told nothing of us."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def make(system: System) -> gymnasium.Env[FloatArray, np.int64]:
    return gymnasium.make(system.gymnasium_id)


def first_action(system: System) -> Any:
    """The first control of the list, as the environment takes it."""
    return np.int64(0) if system.task.control_box is None else system.task.controls[0]


def trajectory(system: System, *, seed: int, n_steps: int = 40) -> list[Any]:
    environment = make(system)
    observation, _ = environment.reset(seed=seed)
    environment.action_space.seed(seed)
    seen: list[Any] = [observation.tolist()]
    for _ in range(n_steps):
        action = environment.action_space.sample()
        observation, reward, terminated, truncated, _ = environment.step(action)
        seen.append((np.asarray(action).tolist(), observation.tolist(), reward, terminated, truncated))
        if terminated or truncated:
            observation, _ = environment.reset()
            seen.append(observation.tolist())
    return seen


def test_the_ids_are_those_promised() -> None:
    assert {name: system.gymnasium_id for name, system in SYSTEMS.items()} == IDS


def test_gymnasium_finds_the_environments_when_told_the_package() -> None:
    before, *told = fresh(FRESH, *(f"optimist:{name}" for name in IDS.values()))
    assert before == "[] False"  # whoever imports Gymnasium does not pay for us
    assert told[1::2] == list(IDS.values())
    for name, stepped in zip(IDS, told[::2], strict=True):
        system = SYSTEMS[name]
        successors = system.dynamics(system.starts, system.task.controls[[0]])
        assert stepped in {f"500 {state}" for state in successors.tolist()}, name


def test_importing_the_package_registers_its_environments() -> None:
    program = "import sys, gymnasium, optimist\nfor name in sys.argv[1:]: print(gymnasium.make(name).spec.id)"
    assert fresh(program, *IDS.values()) == list(IDS.values())


def test_importing_again_registers_nothing_twice() -> None:
    program = """
import gymnasium, optimist
from optimist.environments.registration import register
before = dict(gymnasium.registry)
register()
print(before == dict(gymnasium.registry), sum(name.startswith("optimist/") for name in before))
"""
    assert fresh(program) == [f"True {len(SYSTEMS)}"]  # and without a warning: they are errors here


def test_without_the_package_gymnasium_does_not_know_them() -> None:
    program = "import gymnasium; print([name for name in gymnasium.registry if 'optimist' in name])"
    assert fresh(program) == ["[]"]


def test_starting_python_loads_nothing_of_ours() -> None:
    ours = "[name for name in sys.modules if 'optimist' in name]"
    assert fresh(f"import sys; print({ours}, 'gymnasium' in sys.modules)") == ["[] False"]


def test_nothing_is_installed_that_python_would_run_when_it_starts() -> None:
    """A wheel holds the package and no file beside it; `.pth` files are for Python's own use."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = document["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/optimist"]}  # no force-include, no shared-data
    assert set(document["tool"]["hatch"]["build"]) == {"targets"}
    assert [file.name for file in (ROOT / "src").rglob("*") if file.suffix == ".pth"] == []


def test_what_is_registered_is_what_there_is() -> None:
    registered = {
        specification.kwargs["problem"]: name
        for name, specification in gymnasium.registry.items()
        if name.startswith("optimist/")
    }
    assert registered == {name: system.gymnasium_id for name, system in SYSTEMS.items()} == IDS
    assert {SYSTEMS[name].task.max_steps for name in PAPER} == {registration.MAX_STEPS}


@EVERY_SYSTEM
def test_stable_baselines_checker_has_no_complaint(system: System) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(make(system), warn=False)


@EVERY_SYSTEM
def test_spaces_are_those_of_the_system(system: System) -> None:
    environment = SystemEnvironment(system.name)
    space = environment.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    assert space.dtype == np.float64
    np.testing.assert_array_equal(space.low, system.observation_box.low)
    np.testing.assert_array_equal(space.high, system.observation_box.high)
    box = system.task.control_box
    if box is None:
        assert environment.action_space == gymnasium.spaces.Discrete(len(system.task.controls))
    else:
        assert environment.action_space == gymnasium.spaces.Box(box.low, box.high, dtype=np.float64)


@EVERY_SYSTEM
def test_steps_are_those_of_the_dynamics(system: System) -> None:
    environment = make(system)
    observation, _ = environment.reset(seed=3)
    stream = np.random.default_rng(0)
    for _ in range(30):
        action = int(stream.integers(system.task.n_actions))
        states, controls = observation[np.newaxis], system.task.controls[[action]]
        expected = system.dynamics(states, controls)
        said = np.int64(action) if system.task.control_box is None else controls[0]
        observation, reward, terminated, truncated, _ = environment.step(said)
        np.testing.assert_array_equal(observation, expected[0])
        assert observation.dtype == np.float64
        assert observation in environment.observation_space
        assert reward == system.task.reward(states, controls, expected)[0]
        assert terminated == bool(system.task.terminal(expected)[0])
        assert truncated is False
        if terminated:
            observation, _ = environment.reset()


@EVERY_SYSTEM
def test_the_same_seed_gives_the_same_trajectory(system: System) -> None:
    assert trajectory(system, seed=11) == trajectory(system, seed=11)


def test_the_pendulum_is_truncated_after_500_steps_and_never_terminated() -> None:
    environment = make(SYSTEMS["pendulum"])
    environment.reset(seed=0)
    for step in range(1, 501):
        _, _, terminated, truncated, _ = environment.step(np.int64(step % 5))
        assert terminated is False
        assert truncated is (step == 500)


def test_the_limit_is_gymnasiums_and_not_the_environments() -> None:
    environment = SystemEnvironment("pendulum")
    environment.reset(seed=0)
    assert not any(environment.step(2)[3] for _ in range(510))


def test_the_mountain_car_terminates_at_the_goal() -> None:
    environment = make(SYSTEMS["mountain-car"])
    observation, _ = environment.reset(seed=0)
    n_steps, terminated, truncated = 0, False, False
    while not (terminated or truncated):
        action = np.int64(2 if observation[1] >= 0.0 else 0)  # push the way it moves
        observation, reward, terminated, truncated, _ = environment.step(action)
        assert reward == -1.0
        n_steps += 1
    assert terminated is True
    assert truncated is False
    assert observation[0] == 0.5
    assert 103 <= n_steps < 500  # nobody is faster than 103


def test_a_falling_bicycle_terminates_with_reward_minus_ten() -> None:
    environment = make(SYSTEMS["bicycle"])
    observation, _ = environment.reset(seed=0)
    rewards = []
    terminated = truncated = False
    while not (terminated or truncated):
        roll = observation[0]
        observation, reward, terminated, truncated, _ = environment.step(np.int64(4))
        rewards.append(reward)
        if not terminated:
            assert reward == -(roll**2)
    assert terminated
    assert not truncated
    assert rewards[-1] == -10.0
    assert len(rewards) > 1


def test_the_pendulums_first_reward_is_that_of_hanging() -> None:
    environment = make(SYSTEMS["pendulum"])
    environment.reset(seed=0)
    assert environment.step(np.int64(2))[1] == pytest.approx(-0.1 * np.pi**2)


def test_the_bicycle_starts_on_both_sides() -> None:
    environment = make(SYSTEMS["bicycle"])
    rolls = [environment.reset(seed=seed)[0][0] for seed in range(30)]
    assert {round(float(np.rad2deg(roll)), 6) for roll in rolls} == {-10.0, 10.0}
    again = [environment.reset(seed=seed)[0][0] for seed in range(30)]
    assert rolls == again
    unseeded = [environment.reset()[0][0] for _ in range(30)]
    assert len(set(unseeded)) == 2


@EVERY_SYSTEM
def test_an_episode_starts_where_it_is_told(system: System) -> None:
    environment = make(system)
    state = 0.3 * system.task.box.low + 0.7 * system.task.box.high
    observation, _ = environment.reset(options={"state": state.tolist()})
    np.testing.assert_array_equal(observation, state)
    successor, *_ = environment.step(first_action(system))
    expected = system.dynamics(state[np.newaxis], system.task.controls[[0]])[0]
    np.testing.assert_array_equal(successor, expected)


@EVERY_SYSTEM
def test_an_episode_may_start_at_any_nearby_start(system: System) -> None:
    environment = SystemEnvironment(system.name)
    for state in system.nearby_starts(20, seed=0):
        observation, _ = environment.reset(options={"state": state})
        moved = system.task.box.displacement(state, observation)
        assert np.abs(moved).max() < 1e-12


@EVERY_SYSTEM
def test_what_is_given_and_what_is_returned_are_not_shared(system: System) -> None:
    environment = SystemEnvironment(system.name)
    given = system.starts[0].copy()
    kept = system.starts.copy()
    observation, _ = environment.reset(options={"state": given})
    observation += 1.0
    given += 1.0
    successor, *_ = environment.step(first_action(system))
    expected = system.dynamics(kept[:1], system.task.controls[[0]])[0]
    np.testing.assert_array_equal(successor, expected)
    observation, _ = environment.reset(seed=0)
    observation += 1.0
    np.testing.assert_array_equal(system.starts, kept)


@EVERY_SYSTEM
def test_a_step_before_reset_is_refused(system: System) -> None:
    with pytest.raises(RuntimeError, match="`reset` must be called before `step`"):
        SystemEnvironment(system.name).step(0)


@EVERY_SYSTEM
@pytest.mark.parametrize("action", [-1, 5, 1000, 0.5, "left", None])
def test_a_bad_action_is_refused(system: System, action: Any) -> None:
    environment = SystemEnvironment(system.name)
    environment.reset(seed=0)
    last = system.task.n_actions - 1
    words = rf"action must be one of 0 to {last}; got "
    if system.task.control_box is not None:
        words = r"action must be 1 number\(s\) within .*; got "
        action = action if isinstance(action, str | None) else 1000.0 + action
    with pytest.raises((TypeError, ValueError), match=words):
        environment.step(action)


@EVERY_SYSTEM
def test_a_bad_state_is_refused(system: System) -> None:
    environment = SystemEnvironment(system.name)
    n_dims = system.task.box.n_dims
    for bad in (
        np.zeros(n_dims + 1),
        np.zeros((1, n_dims)),
        np.full(n_dims, np.nan),
        system.observation_box.high + 1000.0,
    ):
        with pytest.raises(ValueError, match=r"`state` to start from must lie in .*; got "):
            environment.reset(options={"state": bad})


def test_an_unknown_problem_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of .*; got 'unicycle'"):
        SystemEnvironment("unicycle")


# --- noise ----------------------------------------------------------------------------------------------


def test_noise_is_the_share_that_was_asked_for_and_none_is_none() -> None:
    clean = gymnasium.make("optimist/Pendulum-v0")
    noisy = gymnasium.make("optimist/Pendulum-v0", noise=0.05)
    deviations = noisy.unwrapped.noise  # type: ignore[attr-defined]
    np.testing.assert_allclose(
        deviations,
        0.05 * noisy.unwrapped.system.usual_displacement,  # type: ignore[attr-defined]
    )
    off = []
    for seed in range(300):
        for env in (clean, noisy):
            env.reset(seed=seed)
        states = [env.step(seed % 5)[0] for env in (clean, noisy)]
        off.append((states[1] - states[0] + np.pi) % (2 * np.pi) - np.pi)
    np.testing.assert_allclose(np.std(off, axis=0), deviations, rtol=0.2)


def test_noise_follows_from_the_seed_and_the_state_so_that_runs_go_on_as_they_were() -> None:
    paths = []
    for stop in (None, 5):
        env = gymnasium.make("optimist/Pendulum-v0", noise=0.1)
        state, _ = env.reset(seed=3)
        path = [state]
        for number in range(10):
            if number == stop:  # another process goes on
                env = gymnasium.make("optimist/Pendulum-v0", noise=0.1)
                env.reset(seed=3)
                env.unwrapped.restore(path[-1])  # type: ignore[attr-defined]
            path.append(env.step(number % 5)[0])
        paths.append(path)
    np.testing.assert_array_equal(paths[0], paths[1])


def test_noise_that_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match=r"`sensor_noise` must be finite and not negative; got -1"):
        gymnasium.make("optimist/Pendulum-v0", sensor_noise=-1.0)


def test_sensors_may_be_noisy_while_the_motion_is_not() -> None:
    clean = gymnasium.make("optimist/Pendulum-v0")
    read = gymnasium.make("optimist/Pendulum-v0", sensor_noise=0.1)
    ends = []
    for env in (clean, read):
        env.reset(seed=0)
        for number in range(20):
            state = env.step(number % 5)[0]
        ends.append((state, env.unwrapped._state))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
    assert (ends[0][0] != ends[1][0]).all()
    assert clean.unwrapped.restore is not None  # type: ignore[attr-defined]
    assert read.unwrapped.restore is None  # type: ignore[attr-defined]  # what was read is not where it was


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), [0.1], "much"])
def test_noise_must_be_shares(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError), match="must"):
        gymnasium.make("optimist/Pendulum-v0", noise=wrong)
