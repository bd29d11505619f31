"""Going on after an interruption of whatever kind, as if it had not been.

The agent is brought to where it was by its checkpoint and by making again whatever updates came after it.
If the environment can be put into a state (ours can), the episode goes on where it stopped and the whole run
ends bit-identical to one never disturbed. An outside environment cannot: its episode is closed as
abandoned, and a fresh one begins with everything learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from optimist.agents.agent import Agent
from optimist.agents.doubts import BY_HAND
from optimist.arrays import FloatArray
from optimist.runs.agent_file import load_checkpoint
from optimist.runs.describe import require_same_task
from optimist.runs.errors import RunError
from optimist.runs.headers import require_whole
from optimist.runs.loop import Place, catch_up, is_outside, reset
from optimist.runs.record import EpisodeRow, Mark
from optimist.runs.store import RunStore
from optimist.task import Task
from optimist.transitions import Transition, Transitions

TRANSPARENT = (OrderEnforcing, PassiveEnvChecker, TimeLimit)  # wrappers that leave states alone

Restore = Callable[[FloatArray], None]


def innermost(environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment within those wrappers that leave states alone."""
    while isinstance(environment, TRANSPARENT):
        environment = environment.env
    return environment


def restorer(environment: gymnasium.Env[Any, Any]) -> Restore | None:
    """How to put `environment` into a state, if it can be: `restore(state)` of the innermost one."""
    restore: Restore | None = getattr(innermost(environment), "restore", None)
    return restore


def resume(store: RunStore, agent: Agent, environment: gymnasium.Env[Any, Any]) -> Place:
    """Bring agent and environment to where the run stopped; where that is."""
    replay(store, agent)
    place = open_place(store, agent)
    return put(environment, place, seed=agent.seed) or abandon(place, len(agent.transitions), store)[0]


def open_place(store: RunStore, agent: Agent) -> Place:
    """Where the record stops."""
    episode, steps, total = store.open_episode()
    if not steps:
        return Place(episode)
    return Place(episode, steps, total, agent.transitions[-1].next_state, store.expected_of(episode))


def place_after(episodes: list[EpisodeRow], transitions: list[Transition]) -> Place:
    """Where a run is that has ended these episodes: what was seen since belongs to the next."""
    begun = transitions[episodes[-1].transitions if episodes else 0 :]
    total = sum((row.reward for row in begun), 0.0)
    return Place(len(episodes) + 1, len(begun), total, begun[-1].next_state if begun else None)


def count_outside(task: Task, transitions: list[Transition]) -> int:
    """How many transitions began an episode, or led, outside the task's box."""
    begins = Transitions.of(transitions).begins.tolist() if transitions else []
    return sum(is_outside(task, row, begins=new) for row, new in zip(transitions, begins, strict=True))


def put(environment: gymnasium.Env[Any, Any], place: Place, *, seed: int) -> Place | None:
    """Put the environment where `place` is; None when it cannot be."""
    restore = restorer(environment)
    if place.state is None:
        return place
    if restore is None:
        return None
    reset(environment, seed, place.episode)  # wrappers insist on it
    _count_steps(environment, place.step)
    restore(place.state.copy())
    return place


def _count_steps(environment: gymnasium.Env[Any, Any], steps: int) -> None:
    """Have time limits know how long the episode has been going on; Gymnasium offers no public way."""
    while isinstance(environment, TRANSPARENT):
        if isinstance(environment, TimeLimit):
            environment._elapsed_steps = steps  # type: ignore[assignment]
        environment = environment.env


def abandon(place: Place, n_transitions: int, store: RunStore | None) -> tuple[Place, EpisodeRow | None]:
    """Close the episode that cannot go on: where the next one begins, and what is recorded of this one."""
    if place.step == 0:
        return Place(place.episode), None
    row = EpisodeRow(
        place.episode, place.step, place.total_reward, n_transitions, "abandoned", place.expected
    )
    if store is not None:
        store.end_episodes([row])
    return Place(place.episode + 1), row


def replay(store: RunStore, agent: Agent, *, recording: bool = True) -> None:
    """Bring the agent to where it was after the last recorded transition.

    What was marked by hand counts from the transition after which it was. What the agent marks itself it
    marks again.
    """
    kept = store if recording else None
    packed = load_checkpoint(store, agent)
    known = packed[1]["n_transitions"] if packed is not None else 0
    transitions = store.transitions()
    try:
        agent.restore(transitions[:known], packed)
    except ValueError:  # a checkpoint that does not fit together costs time, no more
        packed, known = None, 0
        agent.restore([], None)
    heard = packed[1].get("marks", {}).get("heard", 0) if packed is not None else 0
    for _ in _lived(agent, transitions[known:], _by_hand(store)[heard:], known, kept):
        pass


def relive(store: RunStore, agent: Agent) -> Iterator[int]:
    """From nothing through all that is recorded: the agent as it was before every transition, and at the end.

    How many transitions it knows is said. Its plans are made again, and nothing is recorded.
    """
    agent.restore([], None)
    yield from _lived(agent, store.transitions(), _by_hand(store), 0, None)


def _by_hand(store: RunStore) -> list[Mark]:
    return [mark for mark in store.marks() if mark.reason == BY_HAND]


def _lived(
    agent: Agent, transitions: list[Transition], marks: list[Mark], known: int, store: RunStore | None
) -> Iterator[int]:
    for number, transition in enumerate(transitions, known):
        marks = _heed(marks, number, agent, store)
        list(catch_up(agent, store))
        yield number
        agent.observe(transition)
    _heed(marks, known + len(transitions), agent, store)
    yield known + len(transitions)


def _heed(marks: list[Mark], number: int, agent: Agent, store: RunStore | None) -> list[Mark]:
    """Tell the agent what was marked after so many transitions; what was marked later."""
    now = [mark for mark in marks if mark.made_after <= number]
    if now:
        list(catch_up(agent, store))  # as it was made before they were
        for mark in now:
            agent.mark(mark.transition, void=mark.void)
        list(catch_up(agent, store))
    return marks[len(now) :]


def checked_header(store: RunStore, task: Task) -> dict[str, Any]:
    """What a run says about itself, if it is whole and the run one of that task."""
    header = store.header
    if not {"task", "settings", "seed", "agent"} <= set(header):
        raise RunError(f"The record of the run in {store.directory} is damaged: no settings.")
    require_whole(header, store.directory)
    require_same_task(header["task"], task, store.directory)
    _require_as_told(store, task)
    return header


def _require_as_told(store: RunStore, task: Task) -> None:
    """Raise ValueError when what was told then is to be learned now, or the other way round.

    A run from Python may have been told what an environment pays; the id of that environment alone says less.
    """
    plans, open_now = store.plans(), bool(task.evidence)
    if plans and ("believed" in plans[-1]["rehearsal"]) != open_now:
        then, now = ("told", "to be learned") if open_now else ("learned", "told")
        raise ValueError(
            f"The task must be the one of {store.directory}: what it pays and where it ends was {then}; "
            f"got one where it is {now}. The command takes an environment that is told in your own words as "
            "`--problem FILE.py:FUNCTION`."
        )
