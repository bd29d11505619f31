"""GP-RMAX: the paper's algorithm box (Section 3.1), where model and planner meet.

    act greedily on the current plan (at random before there is one)
    every K transitions, and earlier at the very start:
        update the model with all transitions             ModelLearner.fit
        stop once it has stopped changing                 Knowledge.drift_to, StoppingRule
        plan with it, optimistic where it is unsure       Planner.plan, from the previous Q

Learning that has stopped goes on when a transition surprises: a model can settle on what it has seen of one
side of a symmetric problem and be wrong on the other. Drift is measured per planned step (`hold` steps),
since that is where it does harm.

On purpose actions are random before the first plan, and so are ties. Random numbers come from streams derived
of (seed, purpose, number of transitions), so an agent is a function of settings, seed and transitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from optimist.agents.agent import Update
from optimist.agents.choosing import Choosing
from optimist.agents.doubts import Doubts
from optimist.agents.knowledge import Knowledge
from optimist.agents.looking import Looking, in_vain, one_of_best
from optimist.agents.packed import Unpacking, packed, recorded
from optimist.agents.plan_map import PlanMap
from optimist.agents.settings import AgentSettings
from optimist.agents.sleep import Sleep, awake
from optimist.agents.tracking import Tracking
from optimist.arrays import Action, FloatArray
from optimist.controls import rounded
from optimist.discretisation import Layout
from optimist.grid import Grid
from optimist.models import Model
from optimist.models.catching import ends_catch
from optimist.models.drift import Drift, Drifting
from optimist.models.learners import make_learner
from optimist.models.model import Packed, imagined_by
from optimist.models.outcomes import OpenTask
from optimist.models.readings import Readings
from optimist.planning import Flow, Lookahead, QFunction
from optimist.planning.between import Between
from optimist.planning.rehearsal import Expectation
from optimist.planning.sights import Sights
from optimist.steps import Successors
from optimist.task import Task
from optimist.threads import single_blas
from optimist.transitions import Transition, Transitions

ACTION_STREAM = 0x616374  # purpose number of the random streams that choose actions
NEWS = 5  # transitions that make a new plan worth while at the end of an episode
UNKNOWN = 0.5  # uncertainty of a state and action from which trying it is news


class GPRMaxAgent:
    """Learns a task from its own transitions."""

    def __init__(self, task: Task, settings: AgentSettings, *, seed: int) -> None:
        self.told, self.settings, self.seed = task, settings, seed
        self.transitions: list[Transition] = []
        self.doubts = Doubts(task)
        self._believe(task)
        self._woken = False  # by the last transition
        self.knowledge: Knowledge | None = None
        self._tried_unknown = False  # since the last update
        self._foreseen: tuple[FloatArray, Successors] | None = None  # the last state acted in; of all actions
        self._begun = 0  # how many transitions there were when the current episode began
        self._looking = Looking()
        self._tracking, self._drifting = Tracking(), Drifting()

    def _believe(self, task: Task) -> None:
        """Learn and plan by this task from now on: what was told, or what is believed by now."""
        settings = self.settings
        self.task = task
        self.planner = settings.planner(task)
        self.chooser = settings.chooser(task)
        self._first = self.chooser.first()
        self.planner.require_fits(self._first)
        self._unpacking = Unpacking(settings, self.chooser, self._first)
        self._choosing = Choosing(task, settings, self.seed, self.planner, self.chooser)
        self._sleep = Sleep(self._choosing)
        self._learner = make_learner(task, settings.model, settings.knownness, seed=self.seed)
        self.doubts.readings = Readings(task.box, task.controls)

    @property
    def grid(self) -> Grid:
        """Where it plans."""
        return self.layout.grid

    @property
    def layout(self) -> Layout:
        """Where its nodes are and how long it holds: its own choice."""
        return self._first if self.knowledge is None else self.knowledge.planned.layout

    @property
    def expected(self) -> Expectation | None:
        """What it expects an episode to earn; None before the first plan."""
        return None if self.knowledge is None else self.knowledge.expectation

    @property
    def n_transitions(self) -> int:
        """How many transitions it has seen."""
        return len(self.transitions)

    @property
    def settled_at(self) -> int | None:
        """Transitions after which it stopped learning; None while it goes on."""
        return self.knowledge.n_transitions if self.knowledge is not None and self.knowledge.settled else None

    def known(self) -> Knowledge:
        """What it knows; a ValueError before the first plan."""
        if self.knowledge is None:
            raise ValueError(self.settings.not_planned(self.n_transitions))
        return self.knowledge

    @property
    def policy(self) -> Sights:
        """The best it knows, without exploring; a ValueError before the first plan."""
        return self.known().best_sights

    def act(self, state: FloatArray) -> Action:
        """The action to try in `state` [d]: greedy, ties and all before the first plan at random."""
        if self.task.control_box is not None:
            return self._control(state)
        values = np.zeros(self.task.n_actions)
        if self.knowledge is not None:
            here = self.doubts.readings.plausible(state)
            vain = in_vain(self.knowledge.flow, self.transitions, state, here)
            values = np.where(vain, -np.inf, self._values(self.knowledge, state))
        return self._best(values)

    def _best(self, values: FloatArray) -> int:
        """An action of the greatest of `values` [n_actions]."""
        return one_of_best(values, [self.seed, ACTION_STREAM, self.n_transitions])

    def _control(self, state: FloatArray) -> FloatArray:
        """The control to try where they are a box; the best of those tried first is looked around.  [k]"""
        box = self.task.control_box
        assert box is not None
        here = self.doubts.readings.plausible(state)
        policy = None if self.knowledge is None else self._look(self.knowledge, state)
        if self.knowledge is not None:
            here = self._believed(self.knowledge, here)
        if not isinstance(policy, Between):  # listed ones do
            values = np.zeros(self.task.n_actions) if policy is None else policy(here[np.newaxis])[0]
            return rounded(box, self.task.controls[self._best(values)])
        tried = policy.trying(here[np.newaxis])
        return np.asarray(policy.finest(tried, np.array([self._best(tried.values[0])]))[0])

    def _values(self, knowledge: Knowledge, state: FloatArray) -> FloatArray:
        """Of all actions [n_actions]; where they lead is kept for when it has happened."""
        looking, state = self._look(knowledge, state), self.doubts.readings.plausible(state)
        here = self._believed(knowledge, state)
        if isinstance(looking, QFunction):
            return np.asarray(looking(here[np.newaxis])[0])
        seen = looking.foresee(here[np.newaxis])
        own = looking.step is knowledge.flow  # or whoever comes back would be surprised by something else
        self._foreseen = (state, Successors(seen.next_states[0], seen.uncertainty[0])) if own else None
        return np.asarray(seen.q_values[0])

    def _believed(self, knowledge: Knowledge, state: FloatArray) -> FloatArray:
        """Where it is when `state` [d] is read: there, unless sensors are noisy.  [d]"""
        if knowledge.filtering is None or not (self.transitions and self.transitions[-1].goes_on_from(state)):
            return state
        episode = self.transitions[self._begun :]
        return self._tracking.at(knowledge.filtering, self.task, episode, state)

    def _look(self, knowledge: Knowledge, state: FloatArray) -> QFunction | Lookahead:
        """How it acts where `state` [d] was read."""
        return self._looking.at(knowledge, self.transitions, self._begun, state, self.doubts.readings)

    def observe(self, transition: Transition) -> None:
        """Remember what happened; wake up if it should not have."""
        if not (self.transitions and self.transitions[-1].goes_on_from(transition.state)):
            self._begun = self.n_transitions
        self.transitions.append(transition)
        self._watch(since=self.n_transitions)
        knowledge, woken = self.knowledge, self._woken
        self._woken = False
        if knowledge is None:
            return
        if woken and self.doubts.goes_on_without(self.transitions, knowledge.model):
            # what woke it was no news, and neither is what follows from it
            self.knowledge = replace(knowledge, settled=True, stirred=False)
            self._tried_unknown = False
            return
        if woken and not knowledge.stirred:
            knowledge = self.knowledge = replace(knowledge, drifts=())
        if knowledge.settled:
            knowledge = self._sleep.watched(knowledge, self.doubts, self.transitions, self._begun)
            self.knowledge = knowledge
        predicted, uncertainty = self._predicted(knowledge, transition, self.transitions[self._begun : -1])
        self._tried_unknown |= uncertainty > UNKNOWN
        if self._tried_unknown and knowledge.stirred:
            knowledge = self.knowledge = awake(knowledge)
        before = self.transitions[knowledge.n_transitions : -1]
        if knowledge.settled and (
            self._tried_unknown or self._sleep.surprised(knowledge, transition, predicted, before)
        ):
            stirred = None if self._tried_unknown else self._sleep.stirred(knowledge)
            self.knowledge, self._woken = stirred or replace(knowledge, settled=False), True

    def _watch(self, *, since: int) -> None:
        """Doubt what cannot be true; who has to find out how far things go believes the first readings."""
        if self.knowledge is not None or not isinstance(self.told, OpenTask):
            self.doubts.watch(self.transitions, since=since)

    def _predicted(
        self, knowledge: Knowledge, transition: Transition, before: Sequence[Transition]
    ) -> tuple[FloatArray, float]:
        """Where the action was to lead [d], and how unsure that was: as foreseen, else asked now.

        `before` are those of the same episode.
        """
        here = self._tracking.at(knowledge.filtering, self.task, before, transition.state)
        foreseen, action = self._foreseen, transition.action
        if foreseen is None or not np.array_equal(foreseen[0], transition.state):
            return knowledge.led(here, action)
        assert foreseen[1].uncertainty is not None
        return foreseen[1].next_states[action], float(foreseen[1].uncertainty[action])

    def mark(self, number: int, *, void: bool) -> None:
        """Leave a transition out of what is learned, or (not void) take it in again."""
        if not 1 <= number <= self.n_transitions:
            raise ValueError(f"The number must be from 1 to {self.n_transitions}; got {number}.")
        self.doubts.hear(number, void=void)
        if self.knowledge is not None and number <= self.knowledge.n_transitions:
            self.knowledge, self.doubts.unlearn = awake(self.knowledge), True

    @property
    def void(self) -> dict[int, str]:
        """Numbers of transitions that are not learned from, and why."""
        return self.doubts.void

    @property
    def due(self) -> bool:
        """Whether now is the time to update."""
        knowledge, count = self.knowledge, self.n_transitions
        done, n_drifts = (0, 0) if knowledge is None else (knowledge.n_transitions, len(knowledge.drifts))
        nothing_new = count == done and not self.doubts.unlearn
        if nothing_new or len(self.doubts.void) == count:
            return False
        if self.doubts.unlearn:
            return True
        if knowledge is not None and knowledge.settled:
            return self._ended and self._learns_anew(knowledge)
        if self._woken and not self._ended:
            return False  # the next transition says whether this was a wrong reading
        if knowledge is not None and knowledge.stirred:
            return self._ended or not self._sleep.waits(knowledge, self.transitions, self._begun)
        by_now = self.settings.due(count) or self.settings.due_again(count, done, n_drifts)
        # before an episode begins is a good time, if there is something new
        between = self._ended and self.settings.planning.rehearse and count >= done + NEWS and done > 0
        return by_now or between

    @property
    def _ended(self) -> bool:
        return self.transitions[-1].terminated or self.transitions[-1].truncated

    def _learns_anew(self, knowledge: Knowledge) -> bool:
        """Whether who has settled learns at the end of an episode, and sleeps on."""
        return self._sleep.learns_anew(knowledge, self.doubts, self.transitions, self._begun, self._learner)

    @single_blas()  # matrices are small: more threads of its own take longer
    def update(self) -> Update:
        """Learn from all transitions and plan anew."""
        previous, settings, began, box = self.knowledge, self.settings, perf_counter(), self.task.box
        had = (None, 0) if previous is None else (previous.model, previous.n_transitions)
        previous, resting = self._faded(previous)
        model, seen = self._learned(*had)
        drift: Drift | None = None
        drifts: tuple[Drift, ...] = ()
        same_box = self.task.box == box  # or nothing of the plan fits, and models cannot be compared
        if previous is not None and resting and not same_box:
            previous, resting = replace(previous, drifts=()), False
        if previous is not None:
            drift = previous.drift_to(model, self._drifting) if same_box else Drift(np.inf, np.inf)
            drifts = previous.drifts if resting else (*(() if self._woken else previous.drifts), drift)
        fitted = perf_counter()
        n_updates = 1 if previous is None else previous.n_updates + 1
        settled = settings.stopping.settled(drifts) and not self._tried_unknown and not self.task.searching
        if settled and previous is not None and not resting and settings.planning.rehearse:
            news = self.n_transitions - previous.n_transitions >= NEWS  # or a small drift says nothing
            settled = news and self._sleep.certain(self._choosing.from_seen(model, previous.sights, seen))
        before = None if previous is None or not same_box else previous.planned
        woken = previous is not None and previous.n_updates > 1 and not previous.drifts
        searching = self.task.searching  # plans cannot be compared: who does least seems best
        acting = None
        if previous is not None and before is not None and settings.planning.rehearse and not searching:
            acting = self._looking.going_on(previous, self.transitions, self._begun, self.doubts.readings)
        rehearsed = self._choosing.choose(model, seen, before, n_updates, polish=settled, woken=woken)
        made, second = rehearsed.planned, None if searching else rehearsed.won.second
        kept = None
        if resting and before is not None and not searching:
            kept = self._choosing.seen_anew(before, model, made, second)
        sights = Sights.of(made, imagined_by(model), others=(second, kept), heard=rehearsed.heard)
        foretold = self._choosing.from_seen(model, sights, seen)
        settled = settled and self._sleep.certain(foretold)
        flow = made.step
        assert isinstance(flow, Flow)
        expectation, try_out = foretold.expectation, self._choosing.stage(model, seen)
        begun = None if acting is None else self._choosing.seen_anew(acting, model, made, second)
        counts = expectation, n_updates, self.planner, try_out, second, sights, begun, kept
        self._take(Knowledge(self.n_transitions, model, made, flow, drifts, settled, *counts))
        return Update(
            n_transitions=self.n_transitions,
            fit_seconds=fitted - began,
            predict_seconds=rehearsed.predict_seconds,
            plan_seconds=perf_counter() - fitted - rehearsed.predict_seconds,
            sweeps=made.plan.sweeps,
            residual=made.plan.residual,
            converged=made.plan.converged,
            drift=drift,
            mean_uncertainty=flow.mean_uncertainty,
            model=model.record() | self.doubts.record(),
            settled=settled,
            rehearsal=rehearsed.record() | expectation.record() | recorded(self.task),
            plan_map=PlanMap.of(made.q_function, flow.uncertainty_at_nodes, foretold.path),
        )

    def _faded(self, previous: Knowledge | None) -> tuple[Knowledge | None, bool]:
        """What it knew, what the system was before it changed left out, and whether it sleeps on."""
        if previous is None:
            return None, False
        # it sleeps on after this update, if the system has not changed
        resting = not self._tried_unknown and (previous.stirred or self._learns_anew(previous))
        looking = resting or self._sleep.may_have_changed(previous)
        little = self.settings.planning.rehearse and (looking or self._ended)
        if self.doubts.fade(self.transitions, self._learner, previous.model, another=looking, little=little):
            return replace(previous, drifts=()), False
        return previous, resting

    def _learned(self, previous: Model | None, n_learned: int) -> tuple[Model, Transitions]:
        """The model of all that can be explained, and that; what is believed of the task follows from it."""
        seen = self.doubts.of(self.transitions)
        self._believe_anew(seen, self.transitions)
        model = self.doubts.learn(self.transitions, self._learner, previous, n_learned)
        learned = self.doubts.of(self.transitions)
        if isinstance(self.told, OpenTask) and len(learned) != len(seen):
            self._believe_anew(learned, self.transitions)
            model = self._learner.fit(learned, model)
        if self.settings.planning.rehearse:
            self._believe_ends(ends_catch(self.task, model, learned))
        return model, learned

    def _believe_ends(self, catch: bool) -> None:
        """Whether ends stop steps on their way; readings are judged as before."""
        readings, believed = self.doubts.readings, self.task.catching(catch)
        if believed is not self.task:
            self._believe(believed)
            self.doubts.readings = readings

    def _believe_anew(self, seen: Transitions, read: Sequence[Transition]) -> None:
        """What is believed after `seen`, of all that was `read`; a task that was told stays what it is."""
        if isinstance(self.told, OpenTask):
            believed = self.told.after(seen)
            self._believe(believed)
            self.doubts.readings = Readings(believed.readable(Transitions.of(read)), believed.controls)

    def pack(self) -> Packed | None:
        """Model and plan as arrays, the rest as numbers."""
        knowledge = self.knowledge
        if knowledge is None:
            return None
        if self._begun >= knowledge.n_transitions:  # the episode that was going on has ended
            knowledge = replace(knowledge, begun=None)
        marks = {"woken": self._woken, "unknown": self._tried_unknown}
        return packed(knowledge, self.doubts.pack() | marks)

    def restore(self, transitions: Sequence[Transition], packed: Packed | None) -> None:
        """Go back to a state the agent was in."""
        self.transitions = list(transitions)
        begins = np.flatnonzero(Transitions.of(transitions).begins) if transitions else np.zeros(1, np.intp)
        self._begun = int(begins[-1])
        self.knowledge, self._foreseen, self._tried_unknown = None, None, False
        self.doubts, self._woken = Doubts(self.task), False
        if self.task is not self.told:
            self._believe(self.told)
        if packed is None and transitions:
            self._watch(since=1)
        if packed is not None:
            said = self._unpacking.said(packed[1], len(self.transitions))
            self.doubts.restore(said.marks)
            read = self.transitions[: said.n_transitions]
            seen = self.doubts.of(read)
            self._believe_anew(seen, read)
            self._believe_ends(said.ends_catch)
            self._take(self._unpacking.knowledge(packed[0], said, seen, self._learner, self._choosing))
            self._woken = said.marks.woken
            self._tried_unknown = said.marks.unknown and self.n_transitions > self.known().n_transitions

    def _take(self, knowledge: Knowledge) -> None:
        self.knowledge, self._foreseen, self._tried_unknown = knowledge, None, False
        self._woken, self._looking = False, Looking()
