"""Sleep: when an agent may stop learning, and what of whole episodes wakes it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimist.agents.choosing import Choosing, Foretold
from optimist.agents.doubts import Doubts
from optimist.agents.knowledge import Knowledge
from optimist.arrays import BoolArray, FloatArray
from optimist.models.change import ENOUGH, deviations, evidence
from optimist.models.gp_dynamics import untroubled
from optimist.models.model import ModelLearner, imagined_by, noise_of
from optimist.models.outcomes import OpenTask
from optimist.models.regressor import FEWEST_DATA
from optimist.planning import rehearse
from optimist.planning.rehearsal import MOST_STARTS, Rehearsal, Starts, kinds_of
from optimist.steps import Noisy
from optimist.transitions import Transition, Transitions

BAD_LUCK = 4.0  # standard deviations of what noise does to an episode: nobody is disappointed by less ...
MANY = 64  # ... nor by what one of so many rehearsals came to
FEW, RECENT = (
    10,
    100,
)  # transitions after which a noisy model is asked whether it still holds, of the last so many
LATELY = 8  # updates
ALIKE = 0.05  # of the box: episodes that begin so near to each other begin alike
TRIED = 2  # episodes that began alike: the first explores, the second knows what to do
MORE = 2  # times as many transitions tell what noise hid from who settled early ...
ENOUGH_SEEN = 300  # ... from fewer than these; then so many at least


@dataclass(frozen=True, eq=False)
class Sleep:
    """Of an agent that chooses like this."""

    choosing: Choosing

    @property
    def _allowed(self) -> float:
        return self.choosing.settings.stopping.disagreement

    def certain(self, foretold: Foretold) -> bool:
        """Whether it is certain enough what a plan earns from where episodes began."""
        return not self.choosing.settings.planning.rehearse or foretold.agree(self._allowed)

    def watched(
        self, knowledge: Knowledge, doubts: Doubts, transitions: Sequence[Transition], begun: int
    ) -> Knowledge:
        """What who has settled knows: awake or stirred if there is something to learn.

        The last transition says so, or the episode that has `begun` then and ended with it.
        """
        last, since, task = transitions[-1], knowledge.n_transitions, self.choosing.task
        if (
            self.shifted(knowledge, doubts, transitions)
            or (isinstance(task, OpenTask) and task.surprised_by(last))
            or (begun == len(transitions) - 1 and self._begins_unlike(knowledge, doubts, transitions))
        ):
            return awake(knowledge)
        whole = (last.terminated or last.truncated) and begun >= since  # the plan did not change on the way
        if (whole and self.disappointed(knowledge, *last_two(transitions, begun, since))) or self.strained(
            knowledge, transitions[since:]
        ):
            return self.stirred(knowledge) or awake(knowledge)
        return knowledge

    def disappointed(
        self, knowledge: Knowledge, episode: Sequence[Transition], before: Sequence[Transition] = ()
    ) -> bool:
        """Whether an episode that went by this plan earned clearly less than it should have.

        With noise there is bad luck. Few rehearsals do not say how bad it may be, many do; and over hundreds
        of episodes even what hardly ever happens does. It is no reason unless the episode `before`, by the
        same plan, disappointed, too; there may be none.
        """
        if self._as_hoped(knowledge, episode):
            return False
        return noise_of(knowledge.model) is None or bool(before and not self._as_hoped(knowledge, before))

    def _as_hoped(self, knowledge: Knowledge, episode: Sequence[Transition]) -> bool:
        """Whether what is rehearsed from where an episode began explains what it earned."""
        followed = episode[: self.choosing.task.imagined_steps]
        earned, imagined = sum(row.reward for row in followed), imagined_by(knowledge.model)
        asked = self.choosing.task, knowledge.sights
        start = Starts.alike(episode[0].state[np.newaxis])
        if self._explained(earned, rehearse(*asked, imagined, start)):
            return True
        if not isinstance(imagined, Noisy):
            return False
        return self._explained(earned, rehearse(*asked, replace(imagined, repeats=MANY), start))

    def _explained(self, earned: float, heard: Rehearsal) -> bool:
        allowed = self.choosing.settings.stopping.disappointment * abs(heard.total)
        if heard.spreads is not None and heard.worst is not None:
            allowed = max(allowed, BAD_LUCK * float(heard.spreads[0]), heard.total - float(heard.worst[0]))
        return bool(np.isfinite(heard.total) and earned >= heard.total - allowed)

    def surprised(
        self,
        knowledge: Knowledge,
        transition: Transition,
        predicted: FloatArray,
        before: Sequence[Transition],
    ) -> bool:
        """Whether a transition is far from what was `predicted` [d]. With noise it is luck, unless another of
        the last few that came `before`, since the plan was made, was as far.
        """
        share = self.choosing.settings.stopping.surprise

        def far(row: Transition, foreseen: FloatArray) -> bool:
            inside = knowledge.planned.grid.box.contains(row.state)
            return bool(inside and knowledge.model.surprised_by(row, foreseen, share=share))

        if not far(transition, predicted):
            return False
        noisy, few = noise_of(knowledge.model) is not None, before[-FEW:]
        return not noisy or any(far(row, knowledge.led(row.state, row.action)[0]) for row in few)

    def strained(self, knowledge: Knowledge, since: Sequence[Transition]) -> bool:
        """Whether what came `since` a noisy model was made is, all in all, more than its noise explains.

        Asked every tenth transition. Single ones surprise nobody who knows noise.
        """
        if noise_of(knowledge.model) is None or len(since) < FEW or len(since) % FEW:
            return False
        task, recent = self.choosing.task, Transitions.of(since[-RECENT:])
        usual = np.quantile(np.abs(task.box.displacement(recent.states, recent.next_states)), 0.9, axis=0)
        off = deviations(recent, knowledge.model, task.box, task.controls, usual)
        return evidence(off, untroubled(knowledge.model, task.box, recent))[1] > ENOUGH

    def shifted(self, knowledge: Knowledge, doubts: Doubts, transitions: Sequence[Transition]) -> bool:
        """Whether a noisy system does a little otherwise than before; without noise single steps show that.

        Asked when an episode ends, and every hundredth transition.
        """
        if not self.choosing.settings.planning.rehearse:
            return False
        now_and_then = (len(transitions) - knowledge.n_transitions) % RECENT == 0
        ended = transitions[-1].terminated or transitions[-1].truncated
        return (ended or now_and_then) and doubts.shifted(transitions, knowledge.model) > 0

    def stirred(self, knowledge: Knowledge) -> Knowledge | None:
        """Woken by what noise does not explain: it will learn once, and sleep on. None without noise."""
        if not self.choosing.settings.planning.rehearse or noise_of(knowledge.model) is None:
            return None  # the paper's agents wake for good
        return replace(knowledge, settled=False, stirred=True)

    def waits(self, knowledge: Knowledge, transitions: Sequence[Transition], begun: int) -> bool:
        """Whether who is stirred waits for the end of the episode that has `begun` then.

        It has learned once and slept on in it already: where little is known one step after the other
        surprises, and what they all say is one lesson. It waits for a hundred transitions at most, and not if
        all that came since is more than noise explains: then the system may have changed.
        """
        done = knowledge.n_transitions
        lately = knowledge.kept is not None and done > begun and len(transitions) - done < RECENT
        return lately and not self.strained(knowledge, transitions[done:])

    def learns_anew(
        self,
        knowledge: Knowledge,
        doubts: Doubts,
        transitions: Sequence[Transition],
        begun: int,
        learner: ModelLearner,
    ) -> bool:
        """Whether who has settled learns at the end of the episode that has `begun` then, and sleeps on."""
        count, faded = len(transitions), doubts.n_faded
        if noise_of(knowledge.model) is None:  # settled on too little to tell noise from nothing?
            asks = self.asks_for_noise(knowledge, count, begun, faded)
            return asks and noise_of(learner.fit(doubts.of(transitions), knowledge.model)) is not None
        if self.learns_once_more(knowledge, count, faded):
            return True
        read = Transitions.of(transitions[faded : knowledge.n_transitions])
        plausible = doubts.readings.plausible
        before = np.array([plausible(state) for state in read.states[read.begins]])
        return self.begins_elsewhere(knowledge, before, plausible(transitions[begun].state))

    def learns_once_more(self, knowledge: Knowledge, count: int, faded: int) -> bool:
        """Whether who has settled learns again from `count` transitions: twice as many, of a noisy system.

        Those that have `faded` are not learned from. Noise hides what more data tell, and who has settled
        goes on acting: the data come by themselves. It does so once.
        """
        if not self.choosing.settings.planning.rehearse or noise_of(knowledge.model) is None:
            return False  # the paper's agents stop for good
        done = knowledge.n_transitions - faded
        return knowledge.settled and done < ENOUGH_SEEN and count - faded >= max(MORE * done, ENOUGH_SEEN)

    def asks_for_noise(self, knowledge: Knowledge, count: int, begun: int, faded: int) -> bool:
        """Whether who settled on too few transitions for noise to be told has enough now.

        Of `count` those that have `faded` are not learned from. Only after the episode, `begun` then, in
        which there came to be enough.
        """
        few = knowledge.settled and knowledge.n_transitions - faded < FEWEST_DATA
        enough = begun - faded < ENOUGH_SEEN <= count - faded
        return self.choosing.settings.planning.rehearse and few and enough

    def begins_elsewhere(self, knowledge: Knowledge, begins: FloatArray, start: FloatArray) -> bool:
        """Whether who has settled has never planned for episodes that begin like one from `start` [d].

        Of all that it can do it took what is best from where episodes began by then, `begins` [n, d]. From
        elsewhere it may know well how little it earns, and never ask for more. It plans for as many kinds of
        starts as are rehearsed. Not without noise: there nothing moves.
        """
        if not self.choosing.settings.planning.rehearse or noise_of(knowledge.model) is None:
            return False
        if not knowledge.settled or self._alike(begins, start).any():
            return False
        kinds = kinds_of(begins, self.choosing.task.box)
        return len(kinds) < MOST_STARTS or any(self._alike(kinds, kind).sum() > 1 for kind in kinds)

    def _alike(self, begins: FloatArray, start: FloatArray) -> BoolArray:
        """Which episodes began so near to `start` [d] that they began alike.  [n]"""
        box = self.choosing.task.box
        apart = np.abs(box.displacement(begins, start)) / box.widths
        return np.asarray((apart <= ALIKE).all(axis=1))

    def may_have_changed(self, knowledge: Knowledge) -> bool:
        """Whether it is worth looking for a change of the system: it has settled, and was woken lately."""
        n_since = len(knowledge.drifts)
        return knowledge.n_updates > n_since + 1 and n_since < LATELY

    def _begins_unlike(self, knowledge: Knowledge, doubts: Doubts, transitions: Sequence[Transition]) -> bool:
        """Whether hardly any episode seen began like the one that begins now, and it may earn far less.

        The plan may be none for there, or nobody can say how it will go, or what was learned there when
        nothing was known yet says that nothing can be done.
        """
        if not self.choosing.settings.planning.rehearse:
            return False
        seen, start = doubts.of(transitions[: knowledge.n_transitions]), transitions[-1].state
        if self._alike(seen.states[seen.begins], start).sum() >= TRIED:
            return False
        asked = knowledge.model, knowledge.sights, start[np.newaxis], len(seen)
        return not self.choosing.foretell(*asked).agree(self._allowed, hoped=float(knowledge.expectation))


def awake(knowledge: Knowledge) -> Knowledge:
    """Who knows this learns on until it settles again."""
    return replace(knowledge, settled=False, drifts=(), stirred=False)


def last_two(
    transitions: Sequence[Transition], begun: int, since: int
) -> tuple[Sequence[Transition], Sequence[Transition]]:
    """The last episode, which has `begun` then, and the one before: none if that began before `since`."""
    first = begun - 1
    while first > 0 and transitions[first - 1].goes_on_from(transitions[first].state):
        first -= 1
    return transitions[begun:], transitions[first:begun] if since <= first < begun else []
