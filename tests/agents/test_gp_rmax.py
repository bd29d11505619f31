"""The agent: a function of settings, seed and transitions. It is made of a task and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from optimist import GPRMax
from optimist.agents import AgentSettings, GPRMaxAgent, settings_of
from optimist.agents.settings import PlanningOptions
from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.discretisation import Discretisation
from optimist.models import StoppingRule
from optimist.models.model import Packed
from optimist.planning import Flow, Limits, Lookahead, QFunction, solve, tabulate
from optimist.task import Task
from optimist.transitions import Transition
from tests.runs.recording import ShortSystem

GRID = Discretisation(nodes=(9, 9))
HERE = np.array([0.1, -0.2])


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - states[:, 0] ** 2


def beyond(states: FloatArray) -> BoolArray:
    over: BoolArray = states[:, 0] > 0.9
    return over


BOX = Box([-1.0, -1.0], [1.0, 1.0])
TASK = Task(BOX, np.array([-1.0, 0.0, 1.0]), cost, 0.95, 0.0, beyond, max_steps=12)


def world(state: FloatArray, action: int) -> Transition:
    """What the agent is never told: an oscillator that is pushed."""
    place, speed = state
    faster = speed + 0.15 * float(TASK.controls[action, 0]) - 0.1 * np.sin(2.0 * place)
    following = np.array([place + 0.3 * faster, 0.98 * faster])
    reward = float(TASK.rewards(state[np.newaxis], TASK.controls[[action]], following[np.newaxis])[0])
    return Transition(state, action, reward, following, bool(beyond(following[np.newaxis])[0]), False)


def walk(count: int, *, seed: int = 0) -> list[Transition]:
    """Random actions from random states: the agent may be fed whatever happened."""
    stream = np.random.default_rng(seed)
    states = stream.uniform(-0.6, 0.6, size=(count, 2))
    return [
        world(state, int(action))
        for state, action in zip(states, stream.integers(3, size=count), strict=True)
    ]


def enough(preset: str) -> list[Transition]:
    """For some plans, whose schedule is the preset's."""
    return walk({"ours": 17, "paper": 60}[preset])


def settings_for(agent: str = "gp-rmax-exp", preset: str = "ours") -> AgentSettings:
    return settings_of(agent, preset=preset, grid=GRID)


def with_few_plans(settings: AgentSettings, *plans: int) -> AgentSettings:
    """Planning takes most of the time."""
    return settings.model_copy(update={"first_plans": plans})


def made(settings: AgentSettings | None = None, *, seed: int = 0) -> GPRMaxAgent:
    return GPRMaxAgent(TASK, settings or settings_for(), seed=seed)


def feed(agent: GPRMaxAgent, transitions: list[Transition]) -> GPRMaxAgent:
    """As the loop does: update when due, then see what happened next; what is due at the end is done."""
    for transition in transitions:
        agent.observe(transition)
        if agent.due:
            agent.update()
    return agent


@dataclass(frozen=True, eq=False)
class Moment:
    """An agent at some time: all that it takes to bring it back."""

    n_transitions: int
    packed: Packed | None


def lived(agent: GPRMaxAgent, count: int, start: FloatArray) -> list[Moment]:
    """A run of its own choices; where it was after every step."""
    moments, state = [Moment(0, None)], start
    for _ in range(count):
        transition = world(state, int(agent.act(state)))
        agent.observe(transition)
        if agent.due:
            agent.update()
        moments.append(Moment(agent.n_transitions, agent.pack()))
        state = start if transition.terminated else transition.next_state
    return moments


def q_of(agent: GPRMaxAgent) -> FloatArray:
    return agent.known().plan.q_values


def exploring(agent: GPRMaxAgent) -> QFunction | Lookahead:
    """What it acts on."""
    return agent.known().planned.policy


def flow_of(agent: GPRMaxAgent) -> Flow:
    return agent.known().flow


# --- before the first plan, and on ties -----------------------------------------------------------------


def test_before_the_first_plan_actions_are_uniform_over_seeds() -> None:
    counts = np.bincount([int(made(seed=seed).act(HERE)) for seed in range(600)], minlength=3)
    assert chisquare(counts).pvalue > 0.001


def test_before_the_first_plan_actions_are_uniform_over_time() -> None:
    agent = made(settings_for(preset="paper").model_copy(update={"replan_every": 1000}))
    actions = []
    for transition in walk(600):
        actions.append(int(agent.act(HERE)))
        agent.observe(transition)
    counts = np.bincount(actions, minlength=3)
    assert chisquare(counts).pvalue > 0.001
    pairs = np.bincount(np.array(actions[:-1]) * 3 + np.array(actions[1:]), minlength=9)
    assert chisquare(pairs).pvalue > 0.001


def test_random_actions_are_those_of_the_seed_and_the_number_of_transitions() -> None:
    one, other, third = made(seed=3), made(seed=3), made(seed=4)
    chosen = []
    for transition in walk(4):
        chosen.append((one.act(HERE), third.act(HERE)))
        assert one.act(HERE) == other.act(-HERE) == chosen[-1][0]  # asked twice, the same answer
        for agent in (one, other, third):
            agent.observe(transition)
    assert any(first != second for first, second in chosen)


def test_ties_are_broken_uniformly_and_among_the_best_only() -> None:
    """Where action 0 was tried and costs, and the others never were, they are worth V_MAX = 0 both."""
    agent = made(settings_for("gp-rmax-grid"))
    tried = [world(np.array([-0.35 + 0.01 * k, -0.35]), 0) for k in range(5)]
    feed(agent, tried)
    state = np.array([-0.33, -0.33])
    values = exploring(agent)(state[np.newaxis])[0]
    assert values[1] == values[2] == 0.0
    assert values[0] < -0.1
    actions = []
    for transition in walk(300):
        actions.append(int(agent.act(state)))
        agent.observe(transition)  # seen, not yet learned from
    counts = np.bincount(actions, minlength=3)
    assert counts[0] == 0
    assert chisquare(counts[1:]).pvalue > 0.001


def test_without_ties_the_best_action_is_taken() -> None:
    for preset in ("ours", "paper"):
        agent = feed(made(settings_for("gp-rmax-noexp", preset)), enough(preset))
        for state in np.random.default_rng(1).uniform(-1.0, 1.0, size=(50, 2)):
            values = agent.known().sights.looking_from(state)(state[np.newaxis])[0]
            best = np.flatnonzero(values >= values.max() - 1e-9)
            assert agent.act(state) in best
            assert best.size > 1 or agent.act(state) == values.argmax()


# --- a function of settings, seed and transitions -------------------------------------------------------


@pytest.mark.parametrize("preset", ["ours", "paper"])
@pytest.mark.parametrize("agent", ["gp-rmax-exp", "gp-rmax-grid", "gp-rmax-noexp"])
def test_two_agents_that_saw_the_same_know_the_same_to_the_last_bit(agent: str, preset: str) -> None:
    one, other = (feed(made(settings_for(agent, preset), seed=5), enough(preset)) for _ in range(2))
    np.testing.assert_array_equal(q_of(one), q_of(other))
    states = np.random.default_rng(0).uniform(-1.0, 1.0, size=(30, 2))
    np.testing.assert_array_equal(one.policy(states), other.policy(states))
    np.testing.assert_array_equal(flow_of(one).uncertainty(states), flow_of(other).uncertainty(states))
    assert [one.act(state) for state in states[:5]] == [other.act(state) for state in states[:5]]


def test_asking_an_agent_changes_nothing() -> None:
    one, other = made(), made()
    for transition in walk(20):
        one.act(HERE)
        one.act(-HERE)
        for agent in (one, other):
            feed(agent, [transition])
        if one.knowledge is not None:
            one.policy(np.zeros((3, 2)))
    np.testing.assert_array_equal(q_of(one), q_of(other))


@pytest.mark.parametrize("agent", ["gp-rmax-exp", "gp-rmax-grid"])
def test_an_agent_brought_back_to_any_moment_goes_on_as_it_did(agent: str) -> None:
    settings = with_few_plans(settings_for(agent), 5, 12, 20)
    undisturbed = made(settings, seed=2)
    moments = lived(undisturbed, 22, HERE)
    transitions = undisturbed.transitions
    for moment in (moments[k] for k in (4, 5, 6, 13, 20)):
        again = made(settings, seed=2)
        again.restore(transitions[: moment.n_transitions], moment.packed)
        for transition in transitions[moment.n_transitions :]:
            assert again.act(transition.state) == transition.action
            feed(again, [transition])
        np.testing.assert_array_equal(q_of(again), q_of(undisturbed))
        assert again.due == undisturbed.due


def test_an_agent_brought_back_forgets_what_it_saw_elsewhere() -> None:
    agent = feed(made(seed=2), walk(9, seed=9))
    agent.restore([], None)
    assert agent.n_transitions == 0
    with pytest.raises(ValueError, match="must have planned"):
        agent.policy  # noqa: B018
    feed(agent, walk(12))
    np.testing.assert_array_equal(q_of(agent), q_of(feed(made(seed=2), walk(12))))


def test_bringing_an_agent_back_does_not_touch_what_was_handed_over() -> None:
    transitions = walk(12)
    agent = made()
    agent.restore(transitions[:6], None)
    handed = walk(3)
    agent.restore(handed, None)
    agent.observe(transitions[6])
    assert len(handed) == 3


# --- updates --------------------------------------------------------------------------------------------


EXPECTED = {"ours": [5, 8, 12, 16, 20, 26, 32, 40, 50, 62, 76, 94], "paper": [50, 100]}


@pytest.mark.parametrize(("preset", "expected"), EXPECTED.items(), ids=list(EXPECTED))
def test_updates_are_due_when_the_settings_say_so_and_once(preset: str, expected: list[int]) -> None:
    never = StoppingRule(mean_drift_tolerance=1e-12, uncertainty_drift_tolerance=1e-12)
    quick = PlanningOptions(depth=0, rehearse=False)
    agent = made(settings_for(preset=preset).model_copy(update={"stopping": never, "planning": quick}))
    found: list[int] = []
    assert not agent.due
    for transition in walk(105):
        agent.observe(transition)
        if agent.due:
            update = agent.update()
            found.append(update.n_transitions)
            assert update.n_transitions == agent.n_transitions
            assert not agent.due
    assert found == expected


def ending(transition: Transition) -> Transition:
    return replace(transition, truncated=True)


@pytest.mark.parametrize(("news", "due"), [(4, False), (5, True)])
@pytest.mark.parametrize("rehearse", [True, False])
def test_an_episode_that_ends_with_news_is_learned_from_before_the_next(
    news: int, due: bool, rehearse: bool
) -> None:
    planning = PlanningOptions(rehearse=rehearse)
    agent = made(settings_for().model_copy(update={"first_plans": (5, 90), "planning": planning}))
    feed(agent, walk(5))
    for transition in walk(news - 1, seed=1):
        agent.observe(transition)
        assert not agent.due
    agent.observe(ending(walk(1, seed=2)[0]))
    assert agent.due == (due and rehearse)


def test_before_the_first_plan_the_end_of_an_episode_changes_nothing() -> None:
    agent = made(settings_for().model_copy(update={"first_plans": (20,)}))
    for transition in walk(10):
        agent.observe(ending(transition))
        assert not agent.due


def test_an_update_tells_what_it_did() -> None:
    agent = made()
    updates = []
    for transition in walk(20):
        agent.observe(transition)
        if agent.due:
            updates.append(agent.update())
    first, second, *_ = updates
    assert first.drift is None
    assert second.drift is not None
    assert second.drift.mean_drift > 0.0
    (sizes,) = first.model["basis_sizes"]
    assert len(sizes) == 2
    assert all(1 <= size <= 5 for size in sizes)
    assert len(first.model["hyperparameters"]) == 1
    assert len(first.model["hyperparameters"][0]) == 2
    assert updates[-1].model == agent.known().model.record()
    nodes = agent.grid.nodes
    assert updates[-1].mean_uncertainty == pytest.approx(float(flow_of(agent).uncertainty(nodes).mean()))
    assert updates[-1].converged
    assert updates[-1].residual <= agent.settings.planning.tolerance
    assert min(updates[-1].fit_seconds, updates[-1].predict_seconds, updates[-1].plan_seconds) >= 0.0


def test_a_plan_depends_on_what_was_learned_last_and_not_on_what_came_after() -> None:
    agent = feed(made(), walk(22))
    np.testing.assert_array_equal(q_of(agent), q_of(feed(made(), walk(22)[:20])))


def eager(surprise: float = 1e9) -> AgentSettings:
    """Stops as soon as there are two models to compare; by default nothing surprises it."""
    stopping = StoppingRule(
        mean_drift_tolerance=1e9,
        uncertainty_drift_tolerance=1e9,
        patience=1,
        surprise=surprise,
        disagreement=1e9,
    )
    return settings_for().model_copy(update={"stopping": stopping, "first_plans": (5, 10, 20, 35)})


def test_an_agent_that_has_settled_learns_no_more_and_goes_on_acting() -> None:
    agent = made(eager())
    feed(agent, walk(5))
    assert agent.settled_at is None
    feed(agent, walk(5, seed=1))
    assert agent.settled_at == 10
    settled = q_of(agent).copy()
    transitions = walk(100, seed=2)
    for transition in transitions:
        agent.observe(transition)
        assert not agent.due
    assert agent.n_transitions == 110
    np.testing.assert_array_equal(q_of(agent), settled)
    assert {agent.act(transition.state) for transition in transitions[:3]} <= {0, 1, 2}
    assert agent.settled_at == 10


def test_an_agent_that_was_settled_is_settled_when_brought_back() -> None:
    agent = feed(made(eager()), walk(10))
    again = made(eager())
    again.restore(agent.transitions, agent.pack())
    assert again.settled_at == agent.settled_at == 10
    assert not again.due


def surprising(transition: Transition) -> Transition:
    """As if something had given it a push."""
    away = transition.next_state + np.array([0.0, 0.5])
    return Transition(transition.state, transition.action, transition.reward, away, False, False)


def test_what_was_foreseen_wakes_nobody() -> None:
    agent = feed(made(eager(surprise=0.5)), walk(10))
    assert agent.settled_at == 10
    for transition in walk(10):  # the same again
        agent.observe(transition)
    assert agent.settled_at == 10


def test_a_surprise_wakes_an_agent_that_has_settled_and_it_learns_when_next_due() -> None:
    agent = feed(made(eager(surprise=0.5)), walk(10))
    before = q_of(agent).copy()
    agent.observe(surprising(walk(1)[0]))
    assert agent.settled_at is None
    np.testing.assert_array_equal(q_of(agent), before)  # it acts on what it has until then
    for transition in walk(8, seed=1):
        agent.observe(transition)
        assert not agent.due
    agent.observe(walk(1, seed=2)[0])
    assert agent.n_transitions == 20
    assert agent.due
    agent.update()
    assert not np.array_equal(q_of(agent), before)


def test_a_surprise_just_when_an_update_is_due_is_not_learned_from_before_it_is_judged() -> None:
    agent = feed(made(eager(surprise=0.5)), walk(10))
    for transition in walk(9, seed=1):
        agent.observe(transition)
    assert agent.settled_at == 10
    agent.observe(surprising(walk(1)[0]))
    assert agent.settled_at is None
    assert agent.n_transitions == 20
    assert not agent.due
    ending = made(eager(surprise=0.5))  # nothing will follow that could judge it
    for transition in [*agent.transitions[:19], replace(agent.transitions[19], truncated=True)]:
        if ending.due:
            ending.update()
        ending.observe(transition)
    assert ending.settled_at is None
    assert ending.due


def test_an_agent_brought_back_is_surprised_by_the_same() -> None:
    agent = feed(made(eager(surprise=0.5)), walk(10))
    settled = agent.pack()
    later = [walk(1, seed=7)[0], surprising(walk(1, seed=8)[0]), *walk(8, seed=9)]
    feed(agent, later)
    again = made(eager(surprise=0.5))
    again.restore(walk(10), settled)
    assert again.settled_at == 10
    feed(again, later)
    assert again.settled_at == agent.settled_at
    np.testing.assert_array_equal(q_of(again), q_of(agent))


def test_before_there_is_a_plan_there_is_no_policy() -> None:
    for preset, first in (("ours", 5), ("paper", 50)):
        agent = made(settings_for(preset=preset))
        agent.observe(walk(1)[0])
        assert agent.pack() is None
        told = rf"got 1 transitions?, and the first plan comes after {first}"
        with pytest.raises(ValueError, match=told):
            agent.policy  # noqa: B018
        with pytest.raises(ValueError, match=told):
            agent.known()


# --- variants -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["ours", "paper"])
def test_without_exploration_nothing_is_uncertain(preset: str) -> None:
    agent = feed(made(settings_for("gp-rmax-noexp", preset)), enough(preset))
    states = np.random.default_rng(0).uniform(-1.2, 1.2, size=(100, 2))
    np.testing.assert_array_equal(flow_of(agent).uncertainty(states), 0.0)


@pytest.mark.parametrize("preset", ["ours", "paper"])
def test_cell_by_cell_everything_is_known_or_unknown(preset: str) -> None:
    agent = feed(made(settings_for("gp-rmax-grid", preset)), enough(preset))
    assert set(np.unique(flow_of(agent).uncertainty(agent.grid.nodes))) == {0.0, 1.0}


def test_with_exploration_uncertainty_falls_where_something_was_seen() -> None:
    agent = feed(made(settings_for("gp-rmax-exp", "paper")), walk(50))
    unsure = flow_of(agent).uncertainty
    seen, unseen = np.zeros((1, 2)), np.array([[-1.0, 1.0]])
    assert (unsure(seen) < 0.5 * unsure(unseen)).all()
    assert ((unsure(agent.grid.nodes) >= 0.0) & (unsure(agent.grid.nodes) <= 1.0)).all()


@pytest.mark.parametrize("hold", [1, 3])
def test_an_agent_that_knows_nothing_believes_the_best_everywhere(hold: int) -> None:
    """Every step ends on an edge, which nothing can be learned from."""
    task = Task(TASK.box, TASK.controls, cost, 0.95, 2.5, beyond, max_steps=12)
    settings = settings_of("gp-rmax-exp", grid=Discretisation(nodes=(9, 9), hold=hold))
    agent = GPRMaxAgent(task, settings, seed=0)
    against_the_wall = [
        Transition(t.state, t.action, t.reward, np.array([-1.0, 0.0]), False, False) for t in walk(5)
    ]
    feed(agent, against_the_wall)
    alive = ~beyond(agent.grid.nodes)
    np.testing.assert_allclose(q_of(agent)[alive], 2.5, atol=1e-12)
    np.testing.assert_array_equal(flow_of(agent).uncertainty(agent.grid.nodes), 1.0)
    np.testing.assert_allclose(exploring(agent)(HERE[np.newaxis]), 2.5, atol=1e-12)


@pytest.mark.parametrize(("preset", "kind"), [("ours", Lookahead), ("paper", QFunction)])
def test_presets_act_as_they_say(preset: str, kind: type) -> None:
    policy = feed(made(settings_for(preset=preset)), enough(preset)).policy
    assert all(isinstance(sight, kind) for sight in policy.sights)
    assert (len(policy.sights) > 1) == (preset == "ours")


def test_a_search_too_deep_to_be_made_is_refused_before_anything_is_learned() -> None:
    planning = settings_for().planning.model_copy(update={"depth": 60})
    with pytest.raises(ValueError, match=r"lookahead must be from 1 to 11 steps with 3 actions.*; got 60"):
        made(settings_for().model_copy(update={"planning": planning}))


@pytest.mark.parametrize("hold", [1, 4])
def test_what_an_agent_plans_is_the_fixed_point_of_its_own_model(hold: int) -> None:
    settings = settings_of("gp-rmax-exp", grid=Discretisation(nodes=(9, 9), hold=hold))
    agent = feed(GPRMaxAgent(TASK, with_few_plans(settings, 5, 20, 60), seed=0), walk(60))
    flow = Flow.of(agent.grid, agent.known().model.predict_on(agent.grid))
    tables = tabulate(agent.grid, TASK, flow, holding=agent.layout.holding)
    cold = solve(tables, limits=Limits(1e-9, 5000)).q_values
    # both are within tolerance / (1 - discount) of the fixed point
    np.testing.assert_allclose(q_of(agent), cold, atol=1e-2 / (1.0 - 0.95**hold))
    assert q_of(agent).max() <= 1e-9


@pytest.fixture(scope="module")
def usual() -> GPRMaxAgent:
    """One that was paid in the usual unit; not to be changed."""
    return feed(made(with_few_plans(settings_for("gp-rmax-noexp"), 5, 20, 60)), walk(60))


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_what_an_agent_does_does_not_depend_on_the_currency(unit: float, usual: GPRMaxAgent) -> None:
    """Rewards and V_MAX times a number: the same decisions, and values times that number."""

    def paid(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
        return unit * cost(states, controls, next_states)

    task = Task(TASK.box, TASK.controls, paid, 0.95, 0.0, beyond, max_steps=12)
    here, there = usual, feed(GPRMaxAgent(task, usual.settings, seed=0), walk(60))
    np.testing.assert_allclose(q_of(there) / unit, q_of(here), rtol=0.02, atol=0.3)
    states = np.random.default_rng(0).uniform(-0.8, 0.8, size=(50, 2))
    same = here.policy.greedy(states) == there.policy.greedy(states)
    assert same.mean() > 0.9


def test_ties_of_large_values_are_ties_too() -> None:
    """Where nothing is known every action is worth V_MAX to rounding, and none may be starved."""
    task = replace(TASK, reward=lambda s, u, n: 1e9 * cost(s, u, n), optimistic_value=3e11 / 7.0)
    agent = GPRMaxAgent(task, settings_for("gp-rmax-grid"), seed=0)
    feed(agent, [world(np.array([-0.35 + 0.01 * k, -0.35]), k % 3) for k in range(5)])
    actions = []
    for transition in walk(60):
        actions.append(agent.act(np.array([0.55, 0.55])))
        agent.observe(transition)
    assert set(actions) == {0, 1, 2}


def test_planning_on_less_than_the_box_still_acts_everywhere_in_it() -> None:
    settings = settings_of("gp-rmax-exp", grid=Discretisation(nodes=(9, 9), limits=(0.5, 0.5)))
    agent = feed(GPRMaxAgent(TASK, settings, seed=0), walk(20))
    assert agent.grid.box == Box([-0.5, -0.5], [0.5, 0.5])
    for state in ([-1.0, -1.0], [0.9, 1.0], [3.0, -7.0]):
        assert agent.act(np.array(state)) in {0, 1, 2}


def test_many_axes_one_control_and_one_action_will_do() -> None:
    box = Box([-1.0] * 3, [1.0] * 3, periodic=[True, False, False])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.9, 0.0, max_steps=12)
    agent = GPRMaxAgent(task, settings_of("gp-rmax-exp", grid=Discretisation(nodes=(4, 4, 4))), seed=0)
    stream = np.random.default_rng(0)
    for state in stream.uniform(-0.9, 0.9, size=(10, 3)):
        feed(agent, [Transition(state, 0, -1.0, box.wrap(state + 0.05), False, False)])
    assert agent.act(np.zeros(3)) == 0


def test_trying_what_the_plan_held_for_unknown_keeps_learning_awake() -> None:
    # Counting cells, the agent must not stop because its processes have: cells are still to be visited.
    # They are those of one layout: on another, smaller ones may be unknown again.
    settings = settings_for("gp-rmax-grid").model_copy(
        update={
            "stopping": StoppingRule(mean_drift_tolerance=1e6, uncertainty_drift_tolerance=1e6),
            "planning": PlanningOptions(rehearse=False),
        }
    )
    everywhere = np.stack(np.meshgrid(*[np.linspace(-0.95, 0.75, 18)] * 2), axis=-1).reshape(-1, 2)
    thorough = [world(state, action) for state in everywhere for action in range(3)]
    for news, expected in ((world(np.array([0.5, 0.95]), 0), False), (world(HERE, 0), True)):
        agent = made(settings)
        for transition in thorough:
            agent.observe(transition)
        for _ in range(3):  # nothing unknown in between: as settled as can be
            agent.update()
        assert agent.settled_at == len(thorough)
        agent.observe(news)
        assert (agent.settled_at is not None) is expected
        agent.update()
        agent.update()
        agent.observe(news)  # by now known
        agent.update()
        assert agent.settled_at == len(thorough) + 2
        again = made(settings)
        again.restore(agent.transitions, agent.pack())
        assert again.settled_at == agent.settled_at


def test_an_agent_brought_back_remembers_that_it_tried_something_unknown() -> None:
    settings = settings_for("gp-rmax-grid")
    agent = made(settings)
    for transition in walk(20):
        agent.observe(transition)
    agent.update()
    agent.observe(world(np.array([0.5, 0.95]), 0))
    again = made(settings)
    again.restore(agent.transitions, agent.pack())
    assert again._tried_unknown
    assert agent._tried_unknown


@pytest.mark.parametrize("depth", [None, 0])
def test_the_flow_is_asked_once_for_a_decision_and_what_came_of_it(
    depth: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AgentSettings(grid=Discretisation(nodes=(9, 9)), planning=PlanningOptions(depth=depth))
    learner = GPRMax(ShortSystem("mountain-car"), settings=settings, seed=0).learn(12)
    agent, last = learner._agent, learner._agent.transitions[-1]
    action = agent.act(last.next_state)  # here it tries out how far to look from now on
    agent.observe(Transition(last.next_state, action, -1.0, last.next_state + 0.001, False, False))
    last = agent.transitions[-1]
    asked: list[str] = []
    for name in ("grow", "__call__"):
        real = getattr(Flow, name)

        def counted(*arguments: Any, real: Any = real, name: str = name) -> Any:
            asked.append(name)
            return real(*arguments)

        monkeypatch.setattr(Flow, name, counted)
    action = agent.act(last.next_state)
    agent.observe(Transition(last.next_state, action, -1.0, last.next_state + 0.001, False, False))
    assert len(asked) == 1
