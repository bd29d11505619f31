"""The loop: one generator. It acts, records and learns; whoever wants to know listens to what it yields.

The order is what makes a run survive anything: a transition is recorded before the agent may act on it,
and an update is a function of what is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from optimist.agents.agent import Agent, Update
from optimist.agents.doubts import UNEXPLAINED
from optimist.arrays import Action, Actions, FloatArray
from optimist.given import GivenError, blamed, brief, flag, real_numbers, told
from optimist.runs.agent_file import save_checkpoint
from optimist.runs.errors import RunError
from optimist.runs.record import EpisodeRow
from optimist.runs.store import RunStore
from optimist.task import Task
from optimist.transitions import Transition

RESET_STREAM = 0x726573  # purpose number of the seeds that episodes begin with


Environment = gymnasium.Env[Any, Any]  # whose observations are states


@dataclass(frozen=True, eq=False)
class Place:
    """Where in a run the loop is: an episode that goes on, or (without a state) one to begin."""

    episode: int = 1
    step: int = 0
    total_reward: float = 0.0
    state: FloatArray | None = None  # [d]
    expected: float | None = None  # what the agent expected of the episode when it began


@dataclass(frozen=True, eq=False)
class Stepped:
    """A transition was made and recorded."""

    number: int  # from 1
    episode: int  # from 1
    step: int  # in the episode, from 1
    transition: Transition
    outside: bool  # the successor, or where an episode begins the start, lies outside the task's box
    place: Place  # where the run is now
    ended: EpisodeRow | None  # the episode, if this was its last


@dataclass(frozen=True, eq=False)
class Updated:
    """The agent learned and planned."""

    update: Update


@dataclass(frozen=True, eq=False)
class Ended:
    """An episode ended, of an agent that tells of nothing smaller."""

    ended: EpisodeRow


Event = Stepped | Updated | Ended


def interact(
    environment: Environment,
    agent: Agent,
    *,
    seed: int,
    place: Place | None = None,
    store: RunStore | None = None,
) -> Iterator[Event]:
    """Episodes without end, from `place` on. Updates that are due come first."""
    place = place or Place()
    noted = set() if store is None else store.marked(UNEXPLAINED)
    while True:
        noted = note_doubts(agent, store, noted)
        yield from catch_up(agent, store)
        noted = note_doubts(agent, store, noted)
        if place.state is None:
            state = begin(environment, agent.task, seed, place.episode)
            place = Place(place.episode, state=state, expected=expected_by(agent))
        made = stepped(environment, agent.task, agent.act, place, number=len(agent.transitions) + 1)
        if store is not None:
            store.append(made.transition, place.episode, outside=made.outside, ended=made.ended)
        with blamed("The agent's `observe`"):
            agent.observe(made.transition)
        yield made
        place = made.place


def catch_up(agent: Agent, store: RunStore | None) -> Iterator[Event]:
    """The update that is due, if one is, recorded."""
    if agent.due:
        with blamed("The agent's `update`"):
            update = agent.update()
        if store is not None:
            store.record_plan(update)
            save_checkpoint(agent, store)
        yield Updated(update)


def note_doubts(agent: Agent, store: RunStore | None, noted: set[int]) -> set[int]:
    """Mark in the record what the agent cannot explain, and take back what it now can; what is marked."""
    doubted = {number for number, why in getattr(agent, "void", {}).items() if why == UNEXPLAINED}
    if store is not None and doubted != noted:
        store.mark(*sorted(doubted - noted), reason=UNEXPLAINED)
        store.mark(*sorted(noted - doubted), void=False, reason=UNEXPLAINED)
    return doubted


def is_outside(task: Task, transition: Transition, *, begins: bool) -> bool:
    """Whether a successor lies outside the task's box, or, where an episode `begins`, the start does."""
    away = not transition.terminated and not task.box.contains(transition.next_state)
    return bool(away or (begins and not task.box.contains(transition.state)))


def stepped(
    environment: Environment, task: Task, act: Callable[[FloatArray], Action], place: Place, *, number: int
) -> Stepped:
    """One step of the environment, the `number`-th of all: nothing is recorded yet, nothing learned."""
    episode, step = place.episode, place.step + 1
    transition = _step(environment, task, act, place)
    total = place.total_reward + transition.reward
    outside = is_outside(task, transition, begins=step == 1)
    if transition.terminated or transition.truncated:
        ending = "terminated" if transition.terminated else "truncated"
        row = EpisodeRow(episode, step, total, number, ending, place.expected)
        return Stepped(number, episode, step, transition, outside, Place(episode + 1), row)
    on = Place(episode, step, total, transition.next_state, place.expected)
    return Stepped(number, episode, step, transition, outside, on, None)


def in_space(environment: Environment, actions: Action | Actions) -> Any:
    """Numbers as the environment counts; controls [k] or [n, k] in the shape and type of its own actions."""
    space = environment.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return actions if space.start == 0 else actions + int(space.start)
    if not isinstance(actions, np.ndarray) or not isinstance(space, gymnasium.spaces.Box):
        return actions
    shape = space.shape if actions.ndim == 1 else (len(actions), *space.shape)
    return actions.astype(space.dtype).reshape(shape)


def expected_by(agent: Agent) -> float | None:
    """What the agent expects an episode to earn, if it is of a kind that says so, and finite."""
    expected = getattr(agent, "expected", None)
    return float(expected) if expected is not None and np.isfinite(expected) else None


def reset_seed(seed: int, episode: int) -> int:
    """The seed an episode begins with: the environment need not remember anything between episodes."""
    return int(np.random.SeedSequence([seed, RESET_STREAM, episode]).generate_state(1)[0])


def begin(environment: Environment, task: Task, seed: int, episode: int) -> FloatArray:
    """The state that an episode begins with.  [d]"""
    observation = reset(environment, seed, episode)
    return checked_state(task, observation, f"at the beginning of episode {episode}")


def reset(environment: Environment, seed: int, episode: int) -> Any:
    """What the environment shows first of an episode."""
    try:
        observation, _ = environment.reset(seed=reset_seed(seed, episode))
    except GivenError:
        raise  # a function of the task, and named
    except (Exception, SystemExit) as error:
        raise RunError(
            f"The environment's `reset` failed at the beginning of episode {episode}: {told(error)}."
        ) from error
    return observation


def _step(
    environment: Environment, task: Task, act: Callable[[FloatArray], Action], place: Place
) -> Transition:
    assert place.state is not None
    step = place.step + 1
    with blamed("The agent's `act`"):
        action = act(place.state.copy())  # what is recorded is not its to change
    where = f"in step {step} of episode {place.episode}"
    try:
        observation, reward, terminated, truncated, _ = environment.step(in_space(environment, action))
    except GivenError:
        raise
    except (Exception, SystemExit) as error:
        raise RunError(
            f"The environment's `step` failed at action {action} {where}: {told(error)}."
        ) from error
    next_state = checked_state(task, observation, where)
    paid = _number("The reward", reward, where) + 0.0  # no negative zero: the record does not keep its sign
    ended = _flag("`terminated`", terminated, where)
    cut = _flag("`truncated`", truncated, where) or step >= task.max_steps
    return Transition(place.state, action, paid, next_state, ended, cut and not ended)


def _number(what: str, value: Any, where: str) -> float:
    """One finite number, whatever array it comes in."""
    try:
        number = float(real_numbers(value).item())
    except (TypeError, ValueError) as error:
        raise RunError(f"{what} must be one number; got {brief(value)} {where}.") from error
    if not np.isfinite(number):
        raise RunError(f"{what} must be finite; got {value} {where}.")
    return number


def _flag(what: str, value: Any, where: str) -> bool:
    found = flag(value)
    if found is None:
        raise RunError(f"{what} must be true or false; got {brief(value)} {where}.")
    return found


def checked_state(task: Task, observation: Any, where: str) -> FloatArray:
    """An observation as a state, as it is recorded; an error when it cannot be one.  [d]"""
    try:
        state = np.array(real_numbers(observation))
    except (TypeError, ValueError) as error:
        raise RunError(
            f"An observation must be an array of numbers; got {brief(observation)} {where}."
        ) from error
    if state.shape != (task.box.n_dims,):
        raise RunError(f"An observation must have shape ({task.box.n_dims},); got {state.shape} {where}.")
    if not np.isfinite(state).all():
        raise RunError(f"An observation must be finite; got {state.tolist()} {where}.")
    return task.as_read(state)
