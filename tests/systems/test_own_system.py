"""A system of one's own: batched dynamics, or a compiled step, or both; and the table, which loads lazily."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import njit

from optimist import Box, Discretisation, Task, plan
from optimist.arrays import FloatArray
from optimist.environments.system_environment import SystemEnvironment
from optimist.systems import NAMES, SYSTEMS
from optimist.systems.system import System

TASK = Task(
    box=Box([-1.0, -1.0], [1.0, 1.0]),
    controls=np.array([-0.1, 0.0, 0.1]),
    reward=lambda states, controls, next_states: -(states**2).sum(axis=1),
    discount=0.95,
    optimistic_value=0.0,
    max_steps=40,
)
STARTS = np.array([[0.5, 0.0], [-0.5, 0.0]])


def spring(states: FloatArray, controls: FloatArray) -> FloatArray:
    """A mass on a spring, pushed."""
    speed = 0.9 * states[:, 1] + controls[:, 0] - 0.1 * states[:, 0]
    return np.column_stack([states[:, 0] + 0.2 * speed, speed])


@njit
def spring_step(state, control, next_state):  # type: ignore[no-untyped-def]
    next_state[1] = 0.9 * state[1] + control[0] - 0.1 * state[0]
    next_state[0] = state[0] + 0.2 * next_state[1]


def system(**given: Any) -> System:
    chosen: dict[str, Any] = {
        "name": "spring",
        "summary": "bring a mass to rest",
        "task": TASK,
        "starts": STARTS,
        "start_spread": np.array([0.1, 0.1]),
        "axis_names": ("position", "speed"),
    }
    return System(**chosen | given)


def left_alone(states: FloatArray) -> FloatArray:
    """Total rewards of episodes in which nobody pushes.  [n]"""
    total = np.zeros(len(states))
    for _ in range(TASK.max_steps):
        total -= (states**2).sum(axis=1)
        states = spring(states, TASK.controls[[1]])
    return total


def random_states(count: int) -> FloatArray:
    return np.random.default_rng(0).uniform(-1.0, 1.0, size=(count, 2))


@pytest.mark.parametrize("given", [{"dynamics": spring}, {"step": spring_step}], ids=["dynamics", "step"])
def test_a_system_with_either_can_be_an_environment_and_be_planned(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = system(**given)
    monkeypatch.setitem(SYSTEMS, "spring", own)
    environment = SystemEnvironment("spring")
    assert environment.system is own
    state, _ = environment.reset(seed=0)
    assert state.tolist() in STARTS.tolist()
    for action in (2, 0, 1):
        expected = spring(state[np.newaxis], TASK.controls[[action]])[0]
        reward = -float((state**2).sum())
        state, paid, terminated, truncated, _ = environment.step(action)
        np.testing.assert_allclose(state, expected, rtol=0.0, atol=1e-15)
        assert paid == pytest.approx(reward, abs=1e-15)
        assert not terminated
        assert not truncated
    planned = plan(own.task, own.dynamics, Discretisation(nodes=(21, 21)), depth=0)
    assert planned.plan.converged
    starts = own.nearby_starts(4, seed=0)
    assert (planned.roll_out(starts).total_rewards > left_alone(starts)).all()


def test_a_system_without_compiled_code_has_none_and_keeps_its_dynamics() -> None:
    own = system(dynamics=spring)
    assert own.dynamics is spring
    assert own.step is None
    assert own.outcome is None


def test_a_system_with_a_compiled_step_only_gets_its_batched_dynamics() -> None:
    own = system(step=spring_step)
    states = random_states(30)
    for controls in (TASK.controls[[2]], TASK.controls[np.arange(30) % 3]):
        found = own.dynamics(states, controls)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, spring(states, controls), rtol=0.0, atol=1e-15)
    alone = np.concatenate([own.dynamics(states[[k]], TASK.controls[[2]]) for k in range(30)])
    np.testing.assert_array_equal(alone, own.dynamics(states, TASK.controls[[2]]))


@pytest.mark.parametrize(
    ("states", "controls", "match"),
    [
        (np.zeros((4, 3)), np.zeros((1, 1)), r"States must have shape \(n, 2\); got \(4, 3\)"),
        (np.zeros(2), np.zeros((1, 1)), r"States must have shape \(n, 2\); got \(2,\)"),
        (np.zeros((4, 2)), np.zeros((3, 1)), r"Controls must have shape \(4, 1\) or \(1, 1\); got \(3, 1\)"),
        (np.zeros((4, 2)), np.zeros((4, 2)), r"Controls must have shape \(4, 1\) or \(1, 1\); got \(4, 2\)"),
        (np.zeros((4, 2)), np.zeros(4), r"Controls must have shape \(4, 1\) or \(1, 1\); got \(4,\)"),
    ],
)
def test_compiled_code_which_checks_nothing_is_given_nothing_of_the_wrong_shape(
    states: FloatArray, controls: FloatArray, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        system(step=spring_step).dynamics(states, controls)


def test_a_system_with_both_keeps_both() -> None:
    own = system(dynamics=spring, step=spring_step)
    assert own.dynamics is spring
    assert own.step is spring_step


def test_a_system_with_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="The system spring must have `dynamics` or `step`; got neither"):
        system()


def test_by_default_all_states_are_those_of_the_task() -> None:
    assert system(dynamics=spring).observation_box is TASK.box
    wider = Box([-2.0, -2.0], [2.0, 2.0])
    assert system(dynamics=spring, observation_box=wider).observation_box is wider


@pytest.mark.parametrize(
    ("name", "expected"),
    [("spring", "optimist/Spring-v0"), ("double-integrator", "optimist/DoubleIntegrator-v0")],
)
def test_its_gymnasium_id_follows_from_its_name(name: str, expected: str) -> None:
    assert system(name=name, dynamics=spring).gymnasium_id == expected


# The table


def printed_by(program: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


LOADED = "print(*sorted(m for m in sys.modules if m.startswith('optimist.systems.')), 'numba' in sys.modules)"


def test_asking_for_names_loads_no_system_and_no_compiler() -> None:
    program = f"""
import sys
from optimist.systems import NAMES, SYSTEMS, gymnasium_id
{LOADED}
assert list(SYSTEMS) == list(NAMES) and len(SYSTEMS) == len(NAMES)
assert "pendulum" in SYSTEMS and "unicycle" not in SYSTEMS
[gymnasium_id(name) for name in SYSTEMS]
{LOADED}
"""
    assert printed_by(program) == ["False", "False"]


BUILT_ON = {
    "cart-pole-rail": ["optimist.systems.cart_pole"],
    "cart-pole-continuous": ["optimist.systems.cart_pole"],
    "pendulum-continuous": ["optimist.systems.pendulum"],
}


@pytest.mark.parametrize("name", NAMES)
def test_asking_for_a_system_loads_it_and_no_other_but_what_it_is_built_on(name: str) -> None:
    program = f"""
import sys
from optimist.systems import SYSTEMS, find_system
assert find_system({name!r}) is SYSTEMS[{name!r}]
{LOADED}
"""
    own = f"optimist.systems.{name.replace('-', '_')}"
    loaded = sorted([own, "optimist.systems.drawing", "optimist.systems.system", *BUILT_ON.get(name, [])])
    assert printed_by(program) == [f"{' '.join(loaded)} True"]


def test_the_table_is_read_like_a_dictionary() -> None:
    assert dict(SYSTEMS.items()) == {name: SYSTEMS[name] for name in NAMES}
    assert list(SYSTEMS.values()) == [SYSTEMS[name] for name in NAMES]
    assert SYSTEMS.get("unicycle") is None
    with pytest.raises(KeyError):
        SYSTEMS["unicycle"]
