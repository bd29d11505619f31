"""Sleep: when an agent may stop learning, and what of whole episodes wakes it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimist.agents.choosing import Choosing
from optimist.agents.knowledge import Knowledge
from optimist.arrays import FloatArray
from optimist.models import Model
from optimist.models.change import ENOUGH, deviations, evidence
from optimist.models.gp_dynamics import usable
from optimist.models.model import imagined_by, noise_of
from optimist.planning import Policy, rehearse
from optimist.planning.rehearsal import Starts, kinds_of
from optimist.transitions import Transition, Transitions

BAD_LUCK = 4.0  # standard deviations of what noise does to an episode: nobody is disappointed by less
FEW, RECENT = (
    10,
    100,
)  # transitions after which a noisy model is asked whether it still holds, of the last so many
LATELY = 8  # updates
ALIKE = 0.05  # of the box: episodes that begin so near to each other begin alike


@dataclass(frozen=True, eq=False)
class Sleep:
    """Of an agent that chooses like this."""

    choosing: Choosing

    def certain(self, model: Model, policy: Policy, seen: Transitions) -> bool:
        """Whether it is certain enough what `policy` earns from where episodes began."""
        if not self.choosing.settings.planning.rehearse:
            return True
        starts = kinds_of(seen.states[seen.begins], self.choosing.task.box)
        return self.choosing.agree(model, policy, starts, len(seen))

    def disappointed(self, knowledge: Knowledge, episode: Sequence[Transition]) -> bool:
        """Whether an episode that went by this plan earned clearly less than it should have."""
        earned = sum(row.reward for row in episode)
        start = Starts.alike(episode[0].state[np.newaxis])
        heard = rehearse(self.choosing.task, knowledge.sights, imagined_by(knowledge.model), start)
        allowed = self.choosing.settings.stopping.disappointment * abs(heard.total)
        if heard.spreads is not None:
            allowed = max(allowed, BAD_LUCK * float(heard.spreads[0]))
        return not (np.isfinite(heard.total) and earned >= heard.total - allowed)

    def strained(self, knowledge: Knowledge, since: Sequence[Transition]) -> bool:
        """Whether what came `since` a noisy model was made is, all in all, more than its noise explains.

        Asked every tenth transition. Single ones surprise nobody who knows noise.
        """
        if noise_of(knowledge.model) is None or len(since) < FEW or len(since) % FEW:
            return False
        task, recent = self.choosing.task, Transitions.of(since[-RECENT:])
        usual = np.quantile(np.abs(task.box.displacement(recent.states, recent.next_states)), 0.9, axis=0)
        off = deviations(recent, knowledge.model, task.box, task.controls, usual)
        return evidence(off, np.asarray(usable(task.box, recent).all(axis=1)))[1] > ENOUGH

    def may_have_changed(self, knowledge: Knowledge) -> bool:
        """Whether it is worth looking for a change of the system: it has settled, and was woken lately."""
        n_since = len(knowledge.drifts)
        return knowledge.n_updates > n_since + 1 and n_since < LATELY

    def begins_unlike(self, knowledge: Knowledge, seen: Transitions, start: FloatArray) -> bool:
        """Whether an episode from `start` [d] is like none `seen`, and may earn far less than they do.

        The plan may be none for there, or nobody can say how it will go.
        """
        if not self.choosing.settings.planning.rehearse:
            return False
        box = self.choosing.task.box
        apart = np.abs(box.displacement(seen.states[seen.begins], start)) / box.widths
        if (apart <= ALIKE).all(axis=1).any():
            return False
        asked = knowledge.model, knowledge.sights, start[np.newaxis], len(seen)
        return not self.choosing.agree(*asked, expected=float(knowledge.expectation))
