"""When an agent that has settled wakes, when it may not settle, and how soon it plans again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from optimist import Box, Discretisation, Task
from optimist.agents import AgentSettings, GPRMaxAgent
from optimist.agents.settings import PlanningOptions
from optimist.agents.sleep import Sleep
from optimist.arrays import BoolArray, FloatArray
from optimist.grid import Grid
from optimist.models import LEARNERS, Model, ModelSettings
from optimist.models.drift import StoppingRule
from optimist.models.learners import LearnerKind
from optimist.models.model import ModelLearner
from optimist.planning import QFunction
from optimist.steps import Successors
from optimist.transitions import Transition, Transitions
from tests.agents.fakes import Learning, MadeUp

LEFT, RIGHT = np.array([-0.6]), np.array([0.6])


def fallen(states: FloatArray) -> BoolArray:
    off: BoolArray = np.abs(states[:, 0]) >= 1.0
    return off


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.where(fallen(next_states), -100.0, -1.0)


TASK = Task(Box([-1.0], [1.0]), np.array([-1.0, 1.0]), cost, 0.95, 0.0, fallen, max_steps=12)


def moved(states: FloatArray, controls: FloatArray) -> FloatArray:
    return states + 0.02 * controls


class Swept(MadeUp):
    """A model that is sure on the left, and on the right sure or not, or sure of being swept off."""

    def __init__(self, right: str) -> None:
        self.right = right

    def predict(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        after = moved(states, np.broadcast_to(controls, (len(states), 1)))
        return after + 0.1 * (states > 0.2) if self.right == "swept" else after

    def predict_drawn(self, states: FloatArray, controls: FloatArray, draws: FloatArray) -> FloatArray:
        spread = 0.3 * (states > 0.2) if self.right == "unsure" else np.zeros_like(states)
        return self.predict(states, controls) + spread * np.abs(draws)

    def predict_with_uncertainty(self, states: FloatArray, controls: FloatArray) -> Successors:
        return Successors(self.predict(states, controls), np.zeros(len(states)))

    def predict_on(self, grid: Grid) -> Successors:
        found = [self.predict(grid.nodes, control[np.newaxis]) for control in TASK.controls]
        return Successors(np.stack(found), np.zeros((2, grid.n_nodes)))


class Shaken(Swept):
    """Knows all, and that there is a little noise."""

    noise = np.array([1e-3])


FAR = 0.05  # a step that surprises


class Startled(Shaken):
    """Surprised by steps that are too long."""

    def surprised_by(self, transition: Transition, predicted: FloatArray, *, share: float) -> bool:
        return bool(np.abs(transition.next_state - transition.state).max() > 0.04)


@dataclass(frozen=True, eq=False)
class Changing:
    """Learns something else from 250 transitions on."""

    before: Model
    after: Model

    def fit(self, transitions: Transitions, previous: Any) -> Model:
        return self.before if len(transitions) < 250 else self.after

    def unpack(self, packed: Any, transitions: Transitions) -> Model:
        return self.fit(transitions, None)


LEARNING: dict[str, ModelLearner] = {
    "sure": Learning(Swept("sure")),
    "unsure": Learning(Swept("unsure")),
    "swept": Learning(Swept("swept")),
    "noisy": Learning(Shaken("sure")),
    "noisy, then other": Changing(Shaken("sure"), Shaken("swept")),
    "noisy, then unsure": Changing(Shaken("sure"), Shaken("unsure")),
    "startled": Learning(Startled("sure")),
    "startled, then other": Changing(Startled("sure"), Startled("swept")),
    "sure, then noisy": Changing(Swept("sure"), Shaken("sure")),
    "sure, then other": Changing(Swept("sure"), Swept("swept")),
}


@pytest.fixture(autouse=True)
def own_learners() -> Iterator[None]:
    for name, learning in LEARNING.items():
        LEARNERS[name] = LearnerKind(
            ModelSettings,
            lambda task, settings, knownness, seed, learning=learning: learning,  # type: ignore[misc]
        )
    yield
    for name in LEARNING:
        del LEARNERS[name]


def agent_with(right: str, *, rehearse: bool = True, **changes: Any) -> GPRMaxAgent:
    settings = AgentSettings(
        planning=PlanningOptions(rehearse=rehearse),
        grid=Discretisation(nodes=(41,)),
        first_plans=(5, 10),
        replan_every=25,
        model=ModelSettings(learner=right),
        stopping=StoppingRule(**({"patience": 1} | changes)),
    )
    return GPRMaxAgent(TASK, settings, seed=0)


def episode(agent: GPRMaxAgent, start: FloatArray, count: int = TASK.max_steps) -> None:
    """To and fro from `start`, as the loop would; the last of twelve is cut off."""
    states = start + 0.02 * (np.arange(count + 1)[:, np.newaxis] % 2)
    for number, (state, after) in enumerate(pairwise(states), start=1):
        agent.observe(Transition(state, number % 2, -1.0, after, False, number == TASK.max_steps))
        if agent.due:
            agent.update()


def test_who_knows_all_settles_and_sleeps_wherever_an_episode_begins() -> None:
    agent = agent_with("sure")
    episode(agent, LEFT)
    assert agent.settled_at is not None
    episode(agent, RIGHT)
    assert agent.settled_at == agent.known().n_transitions < 24


@pytest.mark.parametrize("right", ["sure", "noisy, then other"])
def test_who_settled_with_noise_learns_once_more_between_episodes_and_sleeps_on(right: str) -> None:
    agent, learned_from = agent_with(right), []
    for _ in range(100):
        episode(agent, LEFT)
        if agent.known().n_transitions not in learned_from:
            learned_from.append(agent.known().n_transitions)
        if agent.settled_at is not None:
            break
    settled, drifts = len(learned_from), agent.known().drifts
    while agent.n_transitions < 1020:
        episode(agent, LEFT)
        assert agent.settled_at == agent.known().n_transitions
        if agent.settled_at not in learned_from:
            learned_from.append(agent.settled_at)
    assert learned_from[settled:] == ([] if right == "sure" else [300])  # the end of an episode of 12
    assert agent.known().drifts == drifts  # however much it has changed: it did not ask
    other = agent_with(right)
    other.restore(agent.transitions, agent.pack())
    assert (other.settled_at, other.due) == (agent.settled_at, agent.due) == (learned_from[-1], False)
    assert np.array_equal(other.known().plan.q_values, agent.known().plan.q_values)


@pytest.mark.parametrize("right", ["sure, then noisy", "sure, then other"])
def test_who_settled_on_too_little_to_tell_noise_asks_for_it_once(right: str) -> None:
    """If there is none nothing happens, however much else has changed."""
    agent, learned_from = agent_with(right), []
    while agent.n_transitions < 700:
        episode(agent, LEFT)
        if agent.settled_at not in learned_from:
            learned_from.append(agent.settled_at)
    assert learned_from == ([10, 300] if right == "sure, then noisy" else [10])
    paper = agent_with(right, rehearse=False)
    while paper.n_transitions < 700:
        episode(paper, LEFT)
    assert paper.settled_at is not None
    assert paper.settled_at < 30


def test_what_it_had_slept_on_stays_a_choice() -> None:
    agent = agent_with("noisy, then other")
    episode(agent, LEFT)
    slept_on = agent.known()
    assert slept_on.settled
    assert slept_on.kept is None
    while agent.known().n_transitions < 300:
        episode(agent, LEFT)
    known = agent.known()
    assert known.kept is not None
    assert np.array_equal(known.kept.plan.q_values, slept_on.plan.q_values)
    other = agent_with("noisy, then other")
    other.restore(agent.transitions, agent.pack())
    kept = other.known().kept
    assert kept is not None
    for sights in (known.sights, known.best_sights, other.known().sights, other.known().best_sights):
        plans = [sight if isinstance(sight, QFunction) else sight.q_function for sight in sights.sights]
        assert any(np.array_equal(plan.q_values, slept_on.plan.q_values) for plan in plans)
    assert known.acted_by(known.kept.policy) is known.kept


@pytest.mark.parametrize("right", ["sure", "noisy"])
def test_with_noise_who_begins_elsewhere_plans_for_there_once_and_sleeps_on(right: str) -> None:
    agent = agent_with(right)
    episode(agent, LEFT)
    assert agent.settled_at == agent.known().n_transitions == 10
    for start in (LEFT, RIGHT, LEFT, RIGHT):
        episode(agent, start)
        assert agent.settled_at == agent.known().n_transitions
    assert agent.settled_at == (36 if right == "noisy" else agent.known().n_transitions)


@pytest.mark.parametrize("right", ["startled", "startled, then other"])
def test_what_noise_does_not_explain_is_learned_once_and_slept_on(right: str) -> None:
    """Two surprises within ten steps; the first alone is luck. However much it changes, it sleeps on."""
    agent = agent_with(right)
    while agent.n_transitions < 264:
        episode(agent, LEFT)
    settled, drifts = agent.settled_at, agent.known().drifts
    assert settled == 10
    states = LEFT + np.array([[0.0], [FAR], [FAR + 0.02], [2.0 * FAR + 0.02], [0.14], [0.16], [0.18]])
    learned_from = []
    for state, after in pairwise(states):
        agent.observe(Transition(state, 1, -1.0, after, False, False))
        woken = agent_with(right)
        woken.restore(agent.transitions, agent.pack())
        assert woken.due == agent.due
        if agent.due:
            agent.update()
            learned_from.append(agent.n_transitions)
    assert learned_from == [268]  # the second surprise, and one more that says whether it was a wrong reading
    assert agent.settled_at == 268
    assert agent.known().drifts == drifts


@pytest.mark.parametrize("right", ["sure", "noisy"])
def test_with_noise_who_is_disappointed_learns_once_and_sleeps_on(
    right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_with(right, patience=2)
    while agent.settled_at is None:
        episode(agent, LEFT)
    drifts, slept_on = agent.known().drifts, agent.settled_at
    monkeypatch.setattr(
        Sleep, "disappointed", lambda self, knowledge, *_: knowledge.n_transitions == slept_on
    )
    episode(agent, LEFT)
    assert agent.known().n_transitions == agent.n_transitions > slept_on
    assert (agent.settled_at is not None) == (right == "noisy")  # who wakes needs two updates to be settled
    assert (agent.known().drifts == drifts) == (right == "noisy")
    assert (agent.known().kept is not None) == (right == "noisy")


@pytest.mark.parametrize(("ends", "learned"), [(True, [279, 324]), (False, [279, 379])])
def test_who_is_stirred_again_in_the_same_episode_learns_when_it_ends(ends: bool, learned: list[int]) -> None:
    """Or after a hundred transitions: what comes of one and the same accident is one lesson."""
    agent, learned_from, state = agent_with("startled"), [], LEFT
    while agent.n_transitions < 264:
        episode(agent, LEFT)
    for number in range(1, 61 if ends else 120):
        after = state + (FAR if number % 7 == 0 else 0.02) * (-1.0) ** number  # every seventh is too long
        agent.observe(Transition(state, 1 - number % 2, -1.0, after, False, ends and number == 60))
        state, other = after, agent_with("startled")
        other.restore(agent.transitions, agent.pack())
        assert other.due == agent.due
        if agent.due:
            agent.update()
            learned_from.append(agent.n_transitions)
    assert learned_from == learned


def test_the_papers_agents_are_not_stirred() -> None:
    """They wake, and plan when it is time to."""
    agent = agent_with("startled", rehearse=False)
    while agent.n_transitions < 264:
        episode(agent, LEFT)
    assert agent.settled_at is not None
    for at in range(3):
        state = LEFT + at * FAR
        agent.observe(Transition(state, 1, -1.0, state + FAR, False, False))
    assert agent.settled_at is None
    assert not agent.known().stirred
    assert agent.known().drifts == ()
    assert agent.known().kept is None


def stirred(right: str) -> GPRMaxAgent:
    """An agent that has been surprised twice by the 267th transition, and not updated yet."""
    agent = agent_with(right)
    while agent.n_transitions < 264:
        episode(agent, LEFT)
    for at in range(3):
        state = LEFT + at * FAR
        agent.observe(Transition(state, 1, -1.0, state + FAR, False, False))
    assert agent.known().stirred
    return agent


def test_who_is_stirred_and_tries_the_unknown_wakes_and_looks_for_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And plans as soon, and as often, as who wakes does."""
    agent, asked = stirred("startled"), []
    state = LEFT + 3 * FAR
    with monkeypatch.context() as unsure:
        unsure.setattr(agent, "_predicted", lambda *_: (state, 1.0))
        agent.observe(Transition(state, 1, -1.0, state + 0.02, False, False))
    assert not agent.known().stirred
    assert agent.known().drifts == ()
    other = agent_with("startled")
    other.restore(agent.transitions, agent.pack())
    assert agent.due
    assert other.due

    def fade(*given: Any, **how: bool) -> bool:
        asked.append(how)
        return False

    monkeypatch.setattr(agent.doubts, "fade", fade)
    agent.update()
    assert asked == [{"another": True, "little": True}]
    assert agent.settled_at is None
    assert len(agent.known().drifts) == 1


def test_who_is_stirred_and_whose_box_changes_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = stirred("startled")
    learned = agent._learned

    def wider(*given: Any) -> Any:
        found = learned(*given)
        agent._believe(replace(TASK, box=Box([-1.5], [1.5])))
        return found

    monkeypatch.setattr(agent, "_learned", wider)
    agent.update()
    assert agent.settled_at is None
    assert [drift.mean_drift for drift in agent.known().drifts] == [np.inf]
    assert agent.known().kept is None


def test_a_mark_by_hand_wakes_who_was_stirred(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = stirred("startled")
    agent.mark(3, void=True)
    assert not agent.known().stirred
    agent.update()
    assert len(agent.known().drifts) == 1


def test_who_was_stirred_by_a_wrong_reading_sleeps_on_as_it_was() -> None:
    agent = agent_with("startled")
    while agent.n_transitions < 264:
        episode(agent, LEFT)
    states = LEFT + np.array([[0.0], [0.02], [FAR + 0.02], [2 * FAR + 0.02], [3 * FAR], [9.0], [2 * FAR]])
    for state, after in pairwise(states[:4]):
        agent.observe(Transition(state, 1, -1.0, after, False, False))
    was = agent.settled_at
    agent.doubts.goes_on_without = lambda *_: True  # type: ignore[method-assign]
    agent.observe(Transition(states[3], 1, -1.0, states[4], False, False))
    assert (was, agent.settled_at) == (None, 10)
    assert not agent.known().stirred
    other = agent_with("startled")
    other.restore(agent.transitions, agent.pack())
    assert other.settled_at == 10


def test_what_is_kept_is_seen_through_the_new_model_and_a_choice_midway() -> None:
    agent = agent_with("noisy, then other")
    while agent.n_transitions < 300:
        episode(agent, LEFT)
    known = agent.known()
    assert known.kept is not None
    assert known.kept.step is known.flow or known.kept.grid is not known.planned.grid
    begun = replace(known, begun=known.second or known.planned)
    plans = [one if isinstance(one, QFunction) else one.q_function for one in begun.going_on.sights]
    assert known.kept.q_function in plans
    twice = replace(known, begun=known.kept)  # the same plan is one choice, not two
    assert len(twice.going_on.sights) == len(known.sights.sights)


def test_who_strains_learns_once_and_sleeps_on(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = agent_with("noisy")
    episode(agent, LEFT)
    assert agent.settled_at == 10
    monkeypatch.setattr(Sleep, "strained", lambda self, knowledge, since: len(since) == 5)
    episode(agent, LEFT)
    assert agent.settled_at == agent.known().n_transitions == 15 + 5  # and once more, after five more
    assert not agent.known().stirred


def test_who_learns_once_more_and_is_then_unsure_wakes() -> None:
    agent = agent_with("noisy, then unsure")
    episode(agent, RIGHT)
    assert agent.settled_at is not None
    while agent.n_transitions < 288:
        episode(agent, RIGHT)
    assert agent.settled_at is not None
    episode(agent, RIGHT)
    assert agent.known().n_transitions == 300
    assert agent.settled_at is None


def test_an_update_that_nobody_asked_for_is_none_of_who_sleeps() -> None:
    """Models that are made again of a recorded run, one after another, may change as they like."""
    agent = agent_with("sure, then other")
    episode(agent, LEFT)
    assert agent.settled_at is not None
    before = agent.known().drifts
    agent.transitions = agent.transitions * 25
    agent.update()
    assert len(agent.known().drifts) == len(before) + 1
    assert agent.known().drifts[-1].mean_drift > 1.0
    assert agent.settled_at is None


@pytest.mark.parametrize("right", ["unsure", "swept"])
def test_a_start_unlike_any_before_wakes_where_it_may_go_badly(right: str) -> None:
    """Possible models disagree there, or the plan falls and the model knows."""
    agent = agent_with(right)
    episode(agent, LEFT)
    assert agent.settled_at is not None
    settled = agent.known().n_transitions
    episode(agent, LEFT + 0.03)  # as before
    assert agent.settled_at == settled
    episode(agent, RIGHT, 1)
    assert agent.known().n_transitions == agent.n_transitions  # it has planned already, with this start
    assert (agent.settled_at is None) == (right == "unsure")  # a plan for there may be all that was missing


@pytest.mark.parametrize("tried", [1, 2])
def test_a_start_that_was_tried_twice_is_not_looked_at_again(tried: int) -> None:
    """The first episode from somewhere explores: what it says of that place may be wrong."""
    agent = agent_with("unsure", disagreement=1e9, patience=3 + tried)
    for _ in range(tried):
        episode(agent, RIGHT)
    assert agent.settled_at is None
    for _ in range(4):
        episode(agent, LEFT)
    assert agent.settled_at is not None
    agent.settings.stopping.__dict__["disagreement"] = 0.5
    episode(agent, LEFT)
    assert agent.settled_at is not None
    episode(agent, RIGHT - 0.04)
    assert (agent.settled_at is None) == (tried == 1)


def test_nobody_settles_while_possible_models_disagree_on_what_will_be_earned() -> None:
    for right, settles in (("sure", True), ("unsure", False), ("swept", True)):
        agent = agent_with(right)
        episode(agent, RIGHT)
        episode(agent, RIGHT)
        assert (agent.settled_at is not None) is settles, right


def test_without_rehearsal_nothing_is_asked() -> None:
    agent = agent_with("unsure", rehearse=False)
    for start in (RIGHT, RIGHT, LEFT):
        episode(agent, start)
    assert agent.settled_at is not None


def test_after_waking_plans_come_in_quick_succession() -> None:
    settings = AgentSettings(first_plans=(5, 8, 12, 20), replan_every=25)
    assert settings.due_again(100, 99, 0) is False
    assert next(count for count in range(100, 130) if settings.due_again(count, 100, 0)) == 103
    assert next(count for count in range(100, 130) if settings.due_again(count, 100, 1)) == 104
    assert next(count for count in range(100, 130) if settings.due_again(count, 100, 2)) == 108
    assert not any(settings.due_again(count, 100, 3) for count in range(100, 200))  # regularly again
    assert not any(settings.due_again(count, 0, 0) for count in range(21))  # the first have their own times
    assert not AgentSettings(first_plans=()).due_again(100, 0, 0)
