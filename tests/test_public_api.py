"""The front door given bad numbers: what comes out is finite, or it refuses and names the argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optimist
from optimist import Box, Discretisation, GPRMax, Grid, Task, adapt, plan
from optimist.agents import AgentSettings
from optimist.transitions import Transitions

numbers = st.sampled_from(
    [
        *(np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 2e-308, 1e-300, 1e-12, 0.5, 1.0, 2, -1, 1e12),
        *(1e200, -1e200, 1.7e308, -1.7e308, 10**30, 10**400, True, np.float32(0.25), np.int8(3)),
    ]
)
wrong = st.sampled_from(["", "x", "0.5", b"1", None, (), [], {}, [[1.0], [1.0, 2.0]], 1 + 2j, object(), len])
wrong |= st.sampled_from(
    [np.array(["a"]), np.array([1j]), np.array([None]), np.zeros((2, 2, 2)), np.empty((0, 2))]
)
lists = st.lists(numbers, max_size=4)
anything = numbers | lists | wrong | st.lists(lists, max_size=3)


def sound(call: Callable[[], object], *names: str) -> object:
    """What the call returns, all of it finite; None when it is refused with words that name an argument."""
    try:
        with np.errstate(all="ignore"):
            made = call()
    except (ValueError, TypeError) as refused:
        said = str(refused)
        assert any(re.search(rf"\b{name}\b", said) for name in names), said
        assert "\n" not in said
        return None
    return made


def finite(*arrays: Any) -> bool:
    return all(np.isfinite(np.asarray(array, dtype=np.float64)).all() for array in arrays)


@settings(max_examples=150)
@given(low=anything, high=anything, periodic=st.none() | anything)
def test_a_box(low: Any, high: Any, periodic: Any) -> None:
    box = sound(lambda: Box(low, high, periodic), "low", "high", "periodic")
    if isinstance(box, Box):
        corners = np.stack([box.low, box.high])
        assert finite(box.low, box.high, box.widths, box.wrap(corners), box.clip(corners))
        assert finite(box.displacement(box.low, box.high), box.displacement(box.high, box.low))


BOX = Box([-1.0, -2.0], [1.0, 2.0], [False, True])


@settings(max_examples=120)
@given(counts=anything, powers=anything)
def test_a_grid(counts: Any, powers: Any) -> None:
    small = isinstance(counts, list) and len(counts) == 2 and all(count in range(2, 10) for count in counts)
    if small or not isinstance(counts, list):
        grid = sound(lambda: Grid.spaced(BOX, counts, powers), "counts", "powers", "axis", "Axis")
        assert grid is None or finite(grid.nodes)  # type: ignore[attr-defined]
    sound(lambda: Grid.spaced(BOX, counts, [1.0, 1.0]), "counts", "grid")
    sound(lambda: Grid(BOX, [counts, powers]), "axis", "Axis", "axes")


GRID = Grid.uniform(BOX, (3, 4))


@settings(max_examples=80)
@given(points=anything)
def test_points_in_a_grid(points: Any) -> None:
    located = sound(lambda: GRID.locate(points), "points")
    assert located is None or finite(located.fractions)  # type: ignore[attr-defined]


def cost(states: Any, controls: Any, next_states: Any) -> Any:
    return -(states**2).sum(axis=1)


def motion(states: Any, controls: Any) -> Any:
    return np.clip(0.9 * states + 0.1 * np.clip(controls, -1.0, 1.0), -2.0, 2.0)


ARGUMENTS: dict[str, Any] = {
    "box": BOX,
    "controls": [-1.0, 1.0],
    "reward": cost,
    "discount": 0.9,
    "optimistic_value": 0.0,
    "is_terminal": None,
    "max_steps": 20,
}


@settings(max_examples=200)
@given(name=st.sampled_from(list(ARGUMENTS)), value=anything)
def test_a_task(name: str, value: Any) -> None:
    task = sound(lambda: Task(**(ARGUMENTS | {name: value})), name)
    if isinstance(task, Task):
        assert finite(task.controls, task.discount, task.optimistic_value, task.max_steps)


TASK = Task(**ARGUMENTS)
FEW = Discretisation(nodes=(5, 6))


@settings(max_examples=40)
@given(value=anything)
def test_a_plan_of_a_task_with_odd_numbers(value: Any) -> None:
    for name in ("controls", "discount", "optimistic_value"):
        task = sound(lambda name=name: Task(**(ARGUMENTS | {name: value})), name)  # type: ignore[misc]
        if isinstance(task, Task):
            made = sound(lambda task=task: plan(task, motion, FEW, depth=0), name, "reward")  # type: ignore[misc]
            assert made is None or finite(made.plan.q_values)  # type: ignore[attr-defined]


@settings(max_examples=60)
@given(
    name=st.sampled_from(["task", "dynamics", "discretisation", "starts", "depth", "limits"]), value=anything
)
def test_a_plan(name: str, value: Any) -> None:
    given_: dict[str, Any] = {"task": TASK, "dynamics": motion, "discretisation": FEW, "depth": 0}
    if name == "dynamics" and value is len:
        return  # a function, and refused when it is called
    made = sound(lambda: plan(**(given_ | {name: value})), name, "lookahead")
    assert made is None or finite(made.plan.q_values)  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e150, 1e200, 1e299, 1e301, 1e308, np.inf, np.nan])
@pytest.mark.parametrize("what", ["reward", "dynamics"])
def test_a_plan_with_functions_of_any_size(what: str, size: float) -> None:
    def paid(states: Any, controls: Any, next_states: Any) -> Any:
        return cost(states, controls, next_states) * (size if what == "reward" else 1.0)

    def moved(states: Any, controls: Any) -> Any:
        return motion(states, controls) * (size if what == "dynamics" else 1.0)

    task = Task(**(ARGUMENTS | {"reward": paid}))
    made = sound(lambda: plan(task, moved, FEW), "reward", "dynamics")
    if made is not None:
        assert finite(made.plan.q_values)  # type: ignore[attr-defined]
        sound(lambda: made.policy.greedy(GRID.nodes), "reward")  # type: ignore[attr-defined]


@settings(max_examples=100)
@given(name=st.sampled_from(list(Discretisation.model_fields)), value=anything)
def test_a_discretisation(name: str, value: Any) -> None:
    sound(lambda: Discretisation(**{name: value}), name)


@settings(max_examples=100)
@given(name=st.sampled_from(list(AgentSettings.model_fields)), value=anything)
def test_settings_of_an_agent(name: str, value: Any) -> None:
    sound(lambda: AgentSettings(**{name: value}), name, "model")


@settings(max_examples=60)
@given(name=st.sampled_from(["states", "actions", "rewards", "next_states", "terminated"]), value=anything)
def test_transitions(name: str, value: Any) -> None:
    columns: dict[str, Any] = {"states": np.zeros((2, 2)), "next_states": np.zeros((2, 2))}
    columns |= {"actions": np.zeros(2, dtype=np.int64), "rewards": np.zeros(2)}
    columns |= {"terminated": np.zeros(2, dtype=bool), "truncated": np.zeros(2, dtype=bool)}
    made = sound(lambda: Transitions(**(columns | {name: value})), name, "columns")
    assert made is None or finite(made.states, made.next_states, made.rewards)  # type: ignore[attr-defined]


# --- learning ---


class Cart(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.state = np.array([[0.5, 0.5]])
        return self.state[0], {}

    def step(self, action: Any) -> Any:
        before = self.state
        self.state = motion(before, np.array([[(-1.0, 1.0)[action]]]))
        return self.state[0], float(cost(before, None, None)[0]), False, False, {}


GIVEN: dict[str, Any] = {"reward": cost, "low": [-1.0, -1.0], "high": [1.0, 1.0], "max_steps": 20}


@settings(max_examples=150)
@given(
    name=st.sampled_from(
        [
            "reward",
            "low",
            "high",
            "periodic",
            "controls",
            "discount",
            "optimistic_value",
            "max_steps",
            "is_terminal",
        ]
    ),
    value=anything,
)
def test_adapting_an_environment(name: str, value: Any) -> None:
    named = (name, "bounds", "low", "high", "optimistic_value") if name in ("low", "high") else (name,)
    env = sound(lambda: adapt(Cart(), **(GIVEN | {name: value})), *named)
    assert env is None or finite(env.task.box.widths, env.task.controls, env.task.discount)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def learned() -> GPRMax:
    small = AgentSettings(grid=Discretisation(nodes=(5, 5)), first_plans=(5,))
    return GPRMax(adapt(Cart(), **GIVEN), settings=small).learn(12)


@settings(max_examples=80)
@given(value=anything)
def test_asking_what_was_learned(learned: GPRMax, value: Any) -> None:
    for ask in (learned.value, learned.uncertainty, lambda states: learned.predict(states)[0]):
        answer = sound(lambda ask=ask: ask(value), "Observations", "reward")  # type: ignore[misc]
        assert answer is None or finite(answer)


@settings(max_examples=60)
@given(value=anything)
def test_starting_to_learn(learned: GPRMax, value: Any) -> None:
    env = learned.env
    for name in ("seed", "task", "settings", "agent"):
        if value is not None or name not in ("task", "settings"):
            sound(lambda name=name: GPRMax(env, **{name: value}), name)  # type: ignore[misc]
    sound(lambda: GPRMax(value), "env", "environment")
    short = isinstance(value, float | int) and 1 <= value <= 30
    if not short:
        for name in ("total_timesteps", "episodes"):
            agent = GPRMax(env)
            agent.env = None  # nothing is to be learned for so long
            sound(lambda name=name, agent=agent: agent.learn(**{name: value}), name, "environment")  # type: ignore[misc]


KNOWN = "must be one of budget, nodes, spacing, limits, hold; got another."
SUCH = "a Discretisation, such as Discretisation(nodes=(21, 21))"
FRONT: Any = optimist  # as somebody without a type checker sees it


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: FRONT.Discretisation(hold=0), "`hold` must be greater than or equal to 1; got 0."),
        (lambda: FRONT.Discretisation(colour=1), f"`colour` {KNOWN}"),
        (lambda: FRONT.plan(TASK, motion, (21, 21)), f"`discretisation` must be {SUCH}; got (21, 21)."),
        (lambda: Task(**(ARGUMENTS | {"reward": None})), "`reward` must be a function; got None."),
        (lambda: FRONT.GPRMax(3), "`env` must be a Gymnasium environment; got 3."),
    ],
)
def test_words_that_people_met(call: Any, said: str) -> None:
    """Each of these once gave somebody else's words, or none."""
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        call()
