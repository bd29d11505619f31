"""An update in the middle of an episode: the plan it was acted in by stays a choice, and is brought back."""

from __future__ import annotations

import numpy as np
import pytest

from optimist import Discretisation
from optimist.agents import AgentSettings, GPRMaxAgent
from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.planning.policy import Lookahead, QFunction
from optimist.planning.sights import Sights
from optimist.task import Task
from optimist.transitions import Transition

CONTROLS = np.array([-1.0, 0.0, 1.0])


def cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.asarray(-(next_states**2).sum(axis=1) - 0.01 * controls[:, 0] ** 2)


class Searching(Task):
    """A task of which nothing is known that is worth anything."""

    @property
    def searching(self) -> bool:
        return True


GIVEN = Box([-1.0, -1.0], [1.0, 1.0]), CONTROLS, cost, 0.95, 0.0
TASK, UNPROMISING = (kind(*GIVEN, max_steps=12) for kind in (Task, Searching))
SETTINGS = AgentSettings(grid=Discretisation(nodes=(7, 7)), first_plans=(4, 8))
HERE, THERE, FAR = np.array([0.3, 0.2]), np.array([0.28, 0.1]), np.array([0.3, 40.0])


def pushed(state: FloatArray, action: int) -> FloatArray:
    return np.clip(state + 0.1 * np.array([state[1], CONTROLS[action]]), -1.0, 1.0)


def updated(at_update: FloatArray, task: Task = TASK, settings: AgentSettings = SETTINGS) -> GPRMaxAgent:
    """After eight transitions of one episode, the last of which leads to some reading."""
    agent, state = GPRMaxAgent(task, settings, seed=0), HERE
    for number in range(8):
        if agent.due:
            agent.update()
        action = int(agent.act(state.copy()))
        after = at_update if number == 7 else pushed(state, action)
        agent.observe(Transition(state, action, -1.0, after, False, False))
        state = after
    agent.update()
    return agent


def brought_back(agent: GPRMaxAgent) -> GPRMaxAgent:
    made = GPRMaxAgent(TASK, SETTINGS, seed=0)
    made.restore(agent.transitions, agent.pack())
    return made


def watched(agent: GPRMaxAgent, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which choice it is given, whenever it chooses."""
    known, asked, choose = agent.known(), list[str](), Sights.looking_from

    def looking_from(sights: Sights, start: FloatArray) -> QFunction | Lookahead:
        if sights in (known.sights, known.going_on):
            asked.append("going on" if sights is known.going_on else "from the start")
        return choose(sights, start)

    monkeypatch.setattr(Sights, "looking_from", looking_from)
    return asked


def test_the_plan_in_use_stays_a_choice_until_the_episode_ends() -> None:
    agent = updated(HERE)
    known = agent.known()
    assert known.begun is not None
    assert known.begun.plan is not known.plan
    plans = [one if isinstance(one, QFunction) else one.q_function for one in known.going_on.sights]
    count = len(known.sights.sights)
    assert set(plans[:count]) == {known.planned.q_function}
    assert set(plans[count:]) == {known.begun.q_function}
    assert known.acted_by(known.going_on.sights[-1]) is known.begun
    assert known.acted_by(known.sights.sights[0]) is known.planned
    assert brought_back(agent).known().begun is not None
    agent.observe(Transition(HERE, 1, -1.0, THERE, False, True))
    agent.observe(Transition(HERE, 1, -1.0, THERE, False, False))
    assert brought_back(agent).known().begun is None  # nobody needs it any more


@pytest.mark.parametrize(
    ("at_update", "truncated", "expected"), [(FAR, False, "going on"), (HERE, True, "from the start")]
)
def test_who_was_brought_back_has_the_same_choice(
    at_update: FloatArray, truncated: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading that is far outside at the update, and an episode that begins just where that was."""
    live = updated(at_update)
    twin = brought_back(live)
    last = Transition(at_update, 1, -1.0, THERE, False, truncated)
    then = HERE if truncated else THERE
    asked = watched(live, monkeypatch)
    live.act(at_update.copy())
    live.observe(last)
    acted = live.act(then.copy())
    assert asked[-1] == expected
    asked = watched(twin, monkeypatch)
    twin.observe(last)
    assert twin.act(then.copy()) == acted
    assert asked == [expected]


def test_who_searches_follows_the_plan_that_won() -> None:
    """In a model that knows of no prize whoever does least earns most, and nothing would be found."""
    open_nodes = SETTINGS.model_copy(update={"grid": Discretisation(budget=50)})
    assert updated(HERE, TASK, open_nodes).known().second is not None
    searching = updated(HERE, UNPROMISING, open_nodes).known()
    assert searching.second is None
    assert searching.begun is None
