"""An agent whose ends stop steps on their way: it learns so, plans with it, and comes back bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from optimist.agents.agent import Update
from optimist.agents.gp_rmax import GPRMaxAgent
from optimist.agents.settings import AgentSettings, PlanningOptions
from optimist.discretisation import Discretisation
from optimist.transitions import Transition
from tests.models.test_catching import CONTROLS, TASK, USUAL, glided, in_gate

SETTINGS = AgentSettings(
    grid=Discretisation(nodes=(15, 15)), planning=PlanningOptions(depth=2), first_plans=(10, 30, 60)
)
START = np.array([-0.6, 0.0])


def lived(agent: GPRMaxAgent, count: int, *, stops: bool = True) -> Update | None:
    """So many noisy transitions, episodes of 25 from one place; the last update."""
    update = None
    while count:
        last = agent.transitions[-1] if agent.transitions else None
        begins = last is None or last.terminated or last.truncated
        state = START if begins or last is None else last.next_state
        action = agent.act(state)
        assert isinstance(action, int)
        stream = np.random.default_rng([1, agent.n_transitions])
        after = glided(state, CONTROLS[action], stops=stops) + 0.05 * USUAL * stream.standard_normal(2)
        after = TASK.box.clip(after)
        over = bool(in_gate(after[np.newaxis])[0])
        agent.observe(
            Transition(state, action, -1.0, after, over, agent.n_transitions % 25 == 24 and not over)
        )
        count -= 1
        if agent.due:
            update = agent.update()
    return update


@cache
def grown(stops: bool) -> GPRMaxAgent:
    agent = GPRMaxAgent(TASK, SETTINGS, seed=0)
    lived(agent, 120, stops=stops)
    return agent


def test_it_learns_whether_ends_stop_steps() -> None:
    assert sum(row.terminated for row in grown(True).transitions) > 4
    assert grown(True).known().planned.task.ends_catch
    assert not grown(False).known().planned.task.ends_catch
    assert not TASK.ends_catch


def test_it_is_recorded() -> None:
    update = lived(GPRMaxAgent(TASK, SETTINGS, seed=0), 120)
    assert update is not None
    assert update.rehearsal["ends_catch"] is True
    assert "an end on the way: stops a step (learned)" in str(grown(True).known().planned.task)
    assert "on the way" not in str(TASK)


def test_the_papers_agents_do_not_ask() -> None:
    options = PlanningOptions(depth=2, rehearse=False)
    agent = GPRMaxAgent(TASK, SETTINGS.model_copy(update={"planning": options}), seed=0)
    lived(agent, 100)
    assert sum(row.terminated for row in agent.transitions) > 2
    assert not agent.known().planned.task.ends_catch
    packed = agent.pack()
    assert packed is not None
    with pytest.raises(ValueError, match=r"`knowledge.ends_catch` must fit the settings"):
        agent.restore(agent.transitions, (packed[0], packed[1] | {"ends_catch": True}))


def test_who_comes_back_believes_the_same_and_goes_on_the_same() -> None:
    agent = GPRMaxAgent(TASK, SETTINGS, seed=0)
    lived(agent, 110)
    other = GPRMaxAgent(TASK, SETTINGS, seed=0)
    other.restore(agent.transitions, agent.pack())
    assert other.known().planned.task.ends_catch
    for one in (agent, other):
        lived(one, 40)
    assert [row.action for row in agent.transitions] == [row.action for row in other.transitions]
    np.testing.assert_array_equal(agent.known().plan.q_values, other.known().plan.q_values)
    begun = GPRMaxAgent(TASK, SETTINGS, seed=0)
    begun.restore(agent.transitions[:5], None)
    assert not begun.task.ends_catch


def test_an_agent_that_was_packed_before_this_was_learned_comes_back() -> None:
    agent = grown(True)
    packed = agent.pack()
    assert packed is not None
    arrays, document = packed
    del document["ends_catch"]
    other = GPRMaxAgent(TASK, SETTINGS, seed=0)
    other.restore(agent.transitions, (arrays, document))
    assert not other.known().planned.task.ends_catch
