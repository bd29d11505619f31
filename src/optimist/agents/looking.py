"""Looking: which plan an agent acts on in the episode that goes on, and how far it looks ahead.

A function of what it knows and of its transitions, so whoever comes back looks the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimist.agents.knowledge import Knowledge
from optimist.arrays import BoolArray, FloatArray
from optimist.models.readings import Readings
from optimist.planning import Flow, Lookahead, Planned, QFunction
from optimist.transitions import Transition

TIE = 1e-9
IN_VAIN = 0.01  # uncertainty from which on it may be what an action is tried for


class Looking:
    """Of one agent."""

    def __init__(self) -> None:
        # whether since the middle of an episode, since where, and how
        self._chosen: tuple[tuple[bool, bytes], QFunction | Lookahead] | None = None

    def at(
        self,
        knowledge: Knowledge,
        seen: Sequence[Transition],
        begun: int,
        state: FloatArray,
        readings: Readings,
    ) -> QFunction | Lookahead:
        """As is best from where the episode began, or from where it was when the plan was made.

        `begun` is how many transitions were `seen` when the last episode began, `state` [d] as it was read.
        """
        begins = not (seen and seen[-1].goes_on_from(state))
        since = max(len(seen) if begins else begun, knowledge.n_transitions)
        state = readings.plausible(seen[since].state if since < len(seen) else state)
        midway = not begins and begun < knowledge.n_transitions
        if self._chosen is None or self._chosen[0] != (midway, state.tobytes()):
            sights = knowledge.going_on if midway else knowledge.sights
            self._chosen = (midway, state.tobytes()), sights.looking_from(state)
        return self._chosen[1]

    def going_on(
        self, knowledge: Knowledge, seen: Sequence[Transition], begun: int, readings: Readings
    ) -> Planned | None:
        """The plan that the last episode is acted in by; None where it has ended."""
        if seen[-1].terminated or seen[-1].truncated:
            return None
        return knowledge.acted_by(self.at(knowledge, seen, begun, seen[-1].next_state, readings))


def one_of_best(values: FloatArray, seed: Sequence[int]) -> int:
    """The action of the greatest of `values` [n_actions]; of equals any, drawn from a stream of `seed`.

    Always taking the first of equals would starve the others of data.
    """
    best = np.flatnonzero(values >= values.max() - TIE)
    return int(best[0] if best.size == 1 else np.random.default_rng(seed).choice(best))


def in_vain(flow: Flow, seen: Sequence[Transition], state: FloatArray, here: FloatArray) -> BoolArray:
    """Which actions, not known `here` [d], have just left it in `state` [d] where it was, unless all have.

    Once more tells nothing. A wall holds whoever pushes against it, and what happens at an edge is not
    learned from: it would be unknown for ever, and tried for ever.  [n_actions]
    """
    tried = np.zeros(flow.n_actions, dtype=np.bool_)
    for transition in reversed(seen):
        if not (transition.goes_on_from(state) and np.array_equal(transition.state, state)):
            break
        tried[transition.action] = True
    if tried.any():
        tried &= flow.uncertainty(here[np.newaxis])[0] > IN_VAIN
    return np.zeros_like(tried) if tried.all() else tried
