"""Every kind of agent on every system of ours, and GP-RMAX on anybody's environment: the same contract.

What takes time is learning, so runs are shared by the tests, which leave them as they are. Which agent it is
and which environment are different matters: not every pair of them is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import optimist
from optimist.agents import AGENTS, PRESETS, AgentSettings, settings_of
from optimist.agents.settings import PlanningOptions
from optimist.arrays import FloatArray
from optimist.discretisation import Discretisation
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.kinds import KINDS
from optimist.experiments.online import evaluate, open_run, start_run
from optimist.experiments.problems import Problem, find_problem
from optimist.experiments.sarsa_runs import SarsaRun
from optimist.experiments.sarsa_settings import SARSA_AGENTS, SETTINGS
from optimist.runs import Event, RunError, RunStore, Session, Stepped
from optimist.runs.loop import Ended
from optimist.systems import NAMES
from optimist.task import Task
from tests.environments.test_adapter import cart_pole, mountain_car, pendulum
from tests.quick import short_episodes

LONGEST = 20  # steps of an episode, and of every rehearsal; plans are due where episodes end
COLUMNS = ("states", "actions", "rewards", "next_states", "terminated", "truncated")


@pytest.fixture(scope="module", autouse=True)
def _short() -> Iterator[None]:
    with short_episodes(LONGEST):
        yield


def nodes_for(n_dims: int) -> tuple[int, ...]:
    """Few of them."""
    return (9 if n_dims <= 2 else 5,) * n_dims


def states_of(run: Session[Any], count: int = 25) -> FloatArray:
    """Inside the box and somewhat beyond."""
    box, stream = run.task.box, np.random.default_rng(3)
    return stream.uniform(box.low - 0.1 * box.widths, box.high + 0.1 * box.widths, size=(count, box.n_dims))


def assert_equal_runs(one: Session[Any], other: Session[Any]) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one.transitions, name), getattr(other.transitions, name))
    assert one.episodes == other.episodes
    assert one.num_timesteps == other.num_timesteps
    assert one.stopped_learning_at == other.stopped_learning_at
    states = states_of(one)
    np.testing.assert_array_equal(one.policy.greedy(states), other.policy.greedy(states))
    np.testing.assert_array_equal(one.value(states), other.value(states))
    np.testing.assert_array_equal(one.uncertainty(states), other.uncertainty(states))
    if isinstance(one, optimist.GPRMax) and isinstance(other, optimist.GPRMax):
        np.testing.assert_array_equal(one.plan.q_values, other.plan.q_values)


def assert_possible(run: Session[Any]) -> None:
    """Transitions are connected, paid and ended as the task says, and episodes are theirs."""
    seen, task = run.transitions, run.task
    assert len(seen) == run.num_timesteps
    over = seen.terminated | seen.truncated
    for t in np.flatnonzero(~over[:-1]) + 1:
        np.testing.assert_array_equal(seen.states[t], seen.next_states[t - 1])
    promised = task.rewards(seen.states, seen.controls(task.controls), seen.next_states)
    np.testing.assert_allclose(seen.rewards, promised, rtol=2e-3, atol=1e-5)
    np.testing.assert_array_equal(seen.terminated, task.terminal(seen.next_states))
    assert [row.transitions for row in run.episodes] == (np.flatnonzero(over) + 1).tolist()


def assert_answers_for_one_and_for_many(run: Session[Any]) -> None:
    states = states_of(run)
    many, nothing = run.predict(states)
    assert nothing is None
    listed = run.task.control_box is None
    assert many.shape == ((25,) if listed else (25, run.task.controls.shape[1]))
    assert np.issubdtype(many.dtype, np.integer if listed else np.floating)
    np.testing.assert_array_equal(run.policy.greedy(states), many)
    for state, action in zip(states[:10], many[:10], strict=True):
        one, nothing = run.predict(state)
        assert nothing is None
        assert np.ndim(one) == (0 if listed else 1)
        np.testing.assert_array_equal(one, action)
        assert run.env is not None
        assert run.env.action_space.contains(one)
        again, _ = run.predict(state.tolist(), state=None, episode_start=None, deterministic=False)
        np.testing.assert_array_equal(again, one)
    row, _ = run.predict(states[:1])
    assert row.shape == many[:1].shape


# --- every kind of agent on every system of ours --------------------------------------------------------

EVERY_KIND = ("mountain-car", "cart-pole-continuous")  # on these all of GP-RMAX, on the others one
CASES = [
    (system, agent)
    for system, agent in product(NAMES, KINDS)
    if (system in SETTINGS if agent in SARSA_AGENTS else agent == "gp-rmax-exp" or system in EVERY_KIND)
]  # the tilings of Sarsa are chosen problem by problem

SOME = 12  # transitions


@dataclass(frozen=True, eq=False)
class Case:
    """A run that was closed and opened again on its way, and one that was not."""

    problem: Problem
    agent: str
    directory: Path
    heard: list[Event]  # by a callback, before it was closed
    whole: Session[Any]


def go_on(run: Session[Any], amount: int, heard: list[Event] | None = None) -> None:
    """Some transitions more, or episodes, of an agent that learns those whole."""
    heard = heard if heard is not None else []
    if isinstance(run, SarsaRun):
        run.learn(episodes=len(run.episodes) + amount, callback=heard.append)
    else:
        run.learn(SOME * amount, callback=heard.append)


@pytest.fixture(scope="module", params=CASES, ids="/".join)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name, agent = request.param
    problem, directory = find_problem(name), tmp_path_factory.mktemp("run") / "run"
    file = None
    if agent in AGENTS:
        file = tmp_path_factory.mktemp("settings") / "tiny.toml"
        file.write_text(
            "first_plans = [5, 12, 20]\n[planning]\ndepth = 1\n[model]\nrefit_growth = 9.0\n"
            f"[grid]\nnodes = {list(nodes_for(problem.task.box.n_dims))}\n",
            encoding="utf-8",
        )
    heard: list[Event] = []
    with start_run(problem, agent, seed=0, run=directory, episodes=9, file=file) as run:
        go_on(run, 2, heard)
    reopened, _ = open_run(directory, writing=True)
    with reopened:
        go_on(reopened, 1)
    kind = KINDS[agent]
    whole = kind.start(problem, kind.choose(problem, "ours", file), 0)
    go_on(whole, 3)
    return Case(problem, agent, directory, heard, whole)


def looked_at(case: Case) -> Session[Any]:
    run, problem = open_run(case.directory, writing=False)
    assert problem.name == case.problem.name
    return run


def test_a_run_that_was_opened_again_went_on_as_if_it_had_never_been_closed(case: Case) -> None:
    with looked_at(case) as run:
        assert type(run) is type(case.whole)
        assert_equal_runs(run, case.whole)


def test_a_run_says_what_it_is(case: Case) -> None:
    with RunStore.open(case.directory, writing=False) as store:
        header = store.header
    assert (header["agent"], header["problem"], header["seed"]) == (case.agent, case.problem.name, 0)
    with looked_at(case) as run:
        assert (run.seed, run.task) == (case.whole.seed, case.problem.task)


def test_a_run_makes_the_transitions_or_episodes_it_was_told_to(case: Case) -> None:
    whole = case.whole
    if case.agent in SARSA_AGENTS:
        assert [row.episode for row in whole.episodes] == [1, 2, 3]
        assert whole.num_timesteps == sum(row.steps for row in whole.episodes)
        assert len(whole.transitions) == 0  # nobody sees them
    else:
        assert whole.num_timesteps == 3 * SOME
        assert_possible(whole)


def test_whoever_listens_hears_of_everything_once(case: Case) -> None:
    steps = [event.number for event in case.heard if isinstance(event, Stepped)]
    ended = [
        event.ended
        for event in case.heard
        if isinstance(event, Ended) or (isinstance(event, Stepped) and event.ended is not None)
    ]
    if case.agent in SARSA_AGENTS:
        assert not steps
        assert ended == case.whole.episodes[:2]
    else:
        assert steps == list(range(1, 2 * SOME + 1))
        assert ended == [row for row in case.whole.episodes if row.transitions <= 2 * SOME]


def test_every_kind_answers_for_one_observation_and_for_many(case: Case) -> None:
    assert_answers_for_one_and_for_many(case.whole)


def test_every_kind_says_what_states_are_worth_and_how_unsure_that_is_or_nothing(case: Case) -> None:
    states = states_of(case.whole)
    values, unsure = case.whole.value(states), case.whole.uncertainty(states)
    if values is not None:
        assert values.shape == (25,)
        assert np.isfinite(values).all()
    if unsure is not None:
        assert unsure.shape == (25, case.problem.task.n_actions)
        assert ((unsure >= 0.0) & (unsure <= 1.0 + 1e-12)).all()
    assert case.problem.task.box.contains(np.array([case.whole.box.low, case.whole.box.high])).all()


def test_every_kind_can_be_evaluated_and_learns_nothing_from_it(case: Case) -> None:
    with looked_at(case) as run:
        found = evaluate(run, case.problem, n_random=3, seed=1)
        assert_equal_runs(run, case.whole)
    assert [kind for kind, _ in found] == ["paper", "random"]
    np.testing.assert_array_equal(found[0][1].starts, case.problem.starts)
    for _, rollouts in found:
        assert np.isfinite(rollouts.total_rewards).all()
        assert (rollouts.steps[~rollouts.terminated] == case.problem.task.max_steps).all()


def test_what_is_only_looked_at_cannot_be_gone_on_with(case: Case) -> None:
    with looked_at(case) as run, pytest.raises(RunError):
        go_on(run, 1)
    with looked_at(case) as run:
        assert_equal_runs(run, case.whole)


# --- GP-RMAX on anybody's environment -------------------------------------------------------------------

STEPS = 60
ENVIRONMENTS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "mountain-car": lambda: SystemEnvironment("mountain-car"),
    "pendulum": lambda: gymnasium.make("optimist/Pendulum-v0"),
    "bicycle": lambda: gymnasium.make("optimist/Bicycle-v0"),
    "acrobot": lambda: SystemEnvironment("acrobot"),
    "MountainCar-v0": lambda: mountain_car(max_steps=LONGEST),
    "Pendulum-v1": lambda: pendulum(max_steps=LONGEST),
    "CartPole-v1": lambda: cart_pole(max_steps=LONGEST),
}
OURS = ("gp-rmax-exp", "ours")
CHOSEN = list(
    dict.fromkeys(
        [
            *((environment, *OURS) for environment in ENVIRONMENTS),
            *product(["mountain-car"], AGENTS, PRESETS),
            *product(["CartPole-v1"], AGENTS, ["paper"]),
        ]
    )
)
every_environment = pytest.mark.parametrize("environment", list(ENVIRONMENTS))


def task_of(environment: str) -> Task:
    task = ENVIRONMENTS[environment]().get_wrapper_attr("task")
    assert isinstance(task, Task)
    return task


def tiny(n_dims: int, agent: str, preset: str) -> AgentSettings:
    settings = settings_of(agent, preset=preset, grid=Discretisation(nodes=nodes_for(n_dims)))
    if preset == "paper":
        return settings
    planning = PlanningOptions(depth=1) if n_dims > 2 else settings.planning  # rehearsals take time
    return settings.model_copy(update={"first_plans": (5, 20, 40), "planning": planning})


def made(
    environment: str, agent: str = "gp-rmax-exp", preset: str = "ours", *, seed: int = 0
) -> optimist.GPRMax:
    settings = tiny(task_of(environment).box.n_dims, agent, preset)
    return optimist.GPRMax(ENVIRONMENTS[environment](), settings=settings, agent=agent, seed=seed)


@cache
def learned(environment: str, agent: str, preset: str) -> optimist.GPRMax:
    """Not to be changed: shared by the tests."""
    return made(environment, agent, preset).learn(STEPS)


# of the module: so the tests of one run follow each other, and one process makes it
@pytest.fixture(scope="module", params=CHOSEN, ids="-".join)
def chosen(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    found: tuple[str, str, str] = request.param
    return found


def test_every_agent_and_preset_and_environment_is_among_the_chosen() -> None:
    assert {system for system, _ in CASES} == set(NAMES)
    assert {agent for _, agent in CASES} == set(KINDS)
    assert {environment for environment, _, _ in CHOSEN} == set(ENVIRONMENTS)
    assert {(agent, preset) for _, agent, preset in CHOSEN} == set(product(AGENTS, PRESETS))


def test_it_makes_the_transitions_it_was_told_to(chosen: tuple[str, str, str]) -> None:
    learner = learned(*chosen)
    assert len(learner.transitions) == learner.num_timesteps == STEPS
    assert_possible(learner)


def test_it_answers_for_one_observation_and_for_many(chosen: tuple[str, str, str]) -> None:
    assert_answers_for_one_and_for_many(learned(*chosen))


def test_values_and_uncertainties_have_their_shapes_and_ranges(chosen: tuple[str, str, str]) -> None:
    learner = learned(*chosen)
    states, task = states_of(learner), learner.task
    values, unsure = learner.value(states), learner.uncertainty(states)
    assert values.shape == (25,)
    assert unsure.shape == (25, task.n_actions)
    assert np.isfinite(values).all()
    # the plan is within tolerance / (1 - discount) of its fixed point, which V_MAX bounds
    slack = learner.settings.planning.tolerance / max(1.0 - task.discount, 1e-2)
    assert values.max() <= task.optimistic_value + slack
    assert unsure.min() >= 0.0
    assert unsure.max() <= 1.0 + 1e-12
    if chosen[1] == "gp-rmax-noexp":
        assert unsure.max() == 0.0
    else:
        assert unsure.max() > 0.0
    assert learner.value(states[0]).shape == (1,)
    assert learner.uncertainty(states[0]).shape == (1, task.n_actions)
    np.testing.assert_array_equal(learner.uncertainty(states[0]), unsure[:1])


def test_what_is_saved_comes_back(chosen: tuple[str, str, str], tmp_path: Path) -> None:
    learner = learned(*chosen)
    learner.save(tmp_path / "agent.optimist")
    loaded = optimist.GPRMax.load(tmp_path / "agent.optimist", env=ENVIRONMENTS[chosen[0]]())
    states = states_of(learner)
    np.testing.assert_array_equal(loaded.predict(states)[0], learner.predict(states)[0])
    np.testing.assert_array_equal(loaded.value(states), learner.value(states))
    np.testing.assert_array_equal(loaded.uncertainty(states), learner.uncertainty(states))
    np.testing.assert_array_equal(loaded.policy(states), learner.policy(states))
    assert loaded.settings == learner.settings
    assert (loaded.seed, loaded.num_timesteps) == (learner.seed, learner.num_timesteps)


@pytest.mark.parametrize(
    ("environment", "agent", "preset"),
    [
        # ours can be put back into a state, others cannot
        *((environment, *OURS) for environment in ENVIRONMENTS if environment not in ("bicycle", "acrobot")),
        ("CartPole-v1", "gp-rmax-grid", "paper"),
    ],
)
def test_stopped_by_a_callback_it_goes_on_as_if_it_had_not_been(
    environment: str, agent: str, preset: str
) -> None:
    """And so two equal seeds give equal runs."""
    learner = made(environment, agent, preset)
    heard = []

    def until_the_23rd(event: Event) -> bool | None:
        heard.append(event)
        return False if isinstance(event, Stepped) and event.number == 23 else None

    learner.learn(STEPS, callback=until_the_23rd)
    assert learner.num_timesteps == 23
    assert [event.number for event in heard if isinstance(event, Stepped)] == list(range(1, 24))
    learner.learn(STEPS - 23)
    assert_equal_runs(learner, learned(environment, agent, preset))


@every_environment
def test_other_seeds_make_other_runs(environment: str) -> None:
    """As soon as before the first plan."""
    other = made(environment, seed=1).learn(4).transitions
    assert not np.array_equal(learned(environment, *OURS).transitions.actions[:4], other.actions)


@every_environment
def test_another_environment_of_the_same_task_begins_a_fresh_episode(environment: str) -> None:
    learner = made(environment).learn(12)
    other = ENVIRONMENTS[environment]()
    learner.set_env(other)
    assert learner.env is other
    learner.learn(8)
    assert learner.num_timesteps == 20
    starts = learner.transitions.states[12]
    assert not np.array_equal(starts, learner.transitions.next_states[11])
    learner.learn(4)
    assert learner.predict(starts)[0] in range(learner.task.n_actions)


@every_environment
def test_after_loading_it_goes_on_learning(environment: str, tmp_path: Path) -> None:
    whole = learned(environment, *OURS)
    whole.save(tmp_path / "agent.optimist")
    loaded = optimist.GPRMax.load(tmp_path / "agent.optimist", env=ENVIRONMENTS[environment]())
    loaded.learn(5)
    assert loaded.num_timesteps == STEPS + 5
    np.testing.assert_array_equal(loaded.transitions.states[:STEPS], whole.transitions.states)


@pytest.mark.parametrize("agent", SARSA_AGENTS)
def test_an_agent_that_learns_compiled_systems_only_refuses_other_problems(agent: str) -> None:
    env = cart_pole()
    problem = Problem("mine.py:cart_pole", env, task_of("CartPole-v1"), ("x", "v", "angle", "rate"))
    with pytest.raises(ValueError, match=rf"problem of {agent} must be compiled .*; got mine\.py:cart_pole"):
        KINDS[agent].choose(problem, "ours", None)
    settings = KINDS[agent].choose(find_problem("acrobot"), "ours", None)
    with pytest.raises(ValueError, match=rf"problem of {agent} must be compiled .*; got mine\.py:cart_pole"):
        KINDS[agent].start(problem, settings, 0)
