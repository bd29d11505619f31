"""Sights: looking as far ahead as pays from where an episode begins.

Interpolated values are blurred, and how far acting looks past the blur decides which of two ways it takes.
No distance is best from everywhere: an acrobot needs 64 steps or 84 from one start, depending on the
distance, and from the next start it is another that is good. Whoever has a model can try: before an episode
every distance is followed through the model, and what earns most is what is done. Without noise the model
says of whatever is chosen that it earns no less than any of them throughout; with noise the best are tried
more often, and of these a steadier one may be preferred.

What the model says may still be wrong, or bad luck come between. A pole that spins as fast as it never did
before is where nothing is known, and a plan that explores stays there: the unknown is worth most. Who has
gone on for twice as long as it should have taken to arrive chooses again from where it is, of the sights that
do not explore. Only with noise: without, nothing moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import Actions, BoolArray, FloatArray, IntArray
from optimist.filtering import Filter
from optimist.given import brief
from optimist.planning.beam import LEVELS, Beam
from optimist.planning.filtered import FOR_EVER, Following, Memory, believed
from optimist.planning.finalists import FINALISTS, steadiest
from optimist.planning.flow import Flow
from optimist.planning.planner import Planned
from optimist.planning.policy import FEW, Acting, Lookahead, Policy, QFunction, decide
from optimist.planning.rehearsal import Starts, imagine
from optimist.steps import Imagined, Noisy
from optimist.task import Task

MOST_SIGHTS = 6
MOST_STEPS = 200  # of an episode: a decision by a beam takes ten times as long as one by a tree
MOST_PLANS = 4  # whose sights are tried together
MOST_REMEMBERED = 1024  # starts
PATIENCE = 2.0  # times as long as it should take: then the sight is chosen again


@dataclass(frozen=True, eq=False)
class Begun:
    """Episodes, each with its sight."""

    sights: tuple[QFunction | Lookahead, ...]
    which: IntArray  # [n_episodes]
    _known: dict[bytes, dict[int, IntArray]] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, states: FloatArray, episodes: IntArray) -> Actions:
        """Actions in `states` [n, d] of `episodes` [n].  [n]"""
        rows = self._rows(episodes)
        if len(rows) == 1:
            return self.sights[next(iter(rows))].greedy(states)
        found: dict[int, Actions] = {}
        kin: dict[object, list[tuple[int, Lookahead]]] = {}
        for number, mine in rows.items():
            sight = self.sights[number]
            if type(sight) is Lookahead and len(mine) <= FEW:
                kin.setdefault(sight.kin, []).append((number, sight))
            else:
                found[number] = sight.greedy(states[mine])
        for some in kin.values():
            decided = decide([(sight, states[rows[number]]) for number, sight in some])
            found.update(zip((number for number, _ in some), decided, strict=True))
        actions: Actions = np.empty(len(states), dtype=np.intp)
        for number, chosen in found.items():
            if actions.ndim != chosen.ndim:  # controls that are a box
                actions = np.empty((len(states), chosen.shape[1]))
            actions[rows[number]] = chosen
        return actions

    def _rows(self, episodes: IntArray) -> dict[int, IntArray]:
        """Which of `episodes` [n] have each of the sights; mostly they are the same as before."""
        key = episodes.tobytes()
        rows = self._known.get(key)
        if rows is None:
            which = self.which[episodes]
            rows = {int(number): np.flatnonzero(which == number) for number in np.unique(which)}
            self._known.clear()
            self._known[key] = rows
        return rows


class Patience(NamedTuple):
    """Which sight each of n episodes is acted in by, and for how long."""

    which: IntArray  # [n]
    left: IntArray  # [n], steps that it has left
    had: IntArray  # [n], and had in all

    def begin(self, sights: Sights, rows: IntArray, starts: FloatArray) -> None:
        """Episodes `rows` [m] begin at `starts` [m, d]."""
        self.which[rows], self.had[rows] = sights.chosen_from(starts)
        self.left[rows] = self.had[rows]

    def step(self, sights: Sights, rows: IntArray, states: FloatArray) -> bool:
        """Episodes `rows` [m] are in `states` [m, d]; whether a sight was chosen again.

        Who chooses again has at least twice as long as before.
        """
        late = self.left[rows] <= 0
        if late.any():
            some = rows[late]
            self.which[some], promised = sights.chosen_again(states[late])
            self.had[some] = np.minimum(np.maximum(promised, 2 * np.maximum(self.had[some], 1)), FOR_EVER)
            self.left[some] = self.had[some]
        self.left[rows] -= 1
        return bool(late.any())


class Going:
    """Episodes that go on: each with its sight, until that has taken too long."""

    def __init__(self, sights: Sights, starts: FloatArray) -> None:
        self._sights, rows = sights, np.arange(len(starts))
        self._patience = Patience(*np.zeros((3, len(starts)), dtype=np.intp))
        self._patience.begin(sights, rows, starts)
        self._acting = Begun(sights.sights, self._patience.which)

    def __call__(self, states: FloatArray, episodes: IntArray) -> Actions:
        """Actions in `states` [n, d] of `episodes` [n].  [n]"""
        if self._patience.step(self._sights, episodes, states):
            self._acting = Begun(self._sights.sights, self._patience.which)
        return self._acting(states, episodes)


def _sights_of(made: Planned, *, far: bool) -> tuple[QFunction | Lookahead, ...]:
    """All up to that of the plan's own policy, the longest first; only that where its layout fixes it."""
    policy = made.policy
    if isinstance(policy, QFunction) or made.layout.depth is not None:
        return (policy,)
    depths = range(policy.depth, max(0, policy.depth - MOST_SIGHTS), -1)
    sights = tuple(policy.looking(depth) for depth in depths)
    # with noise nothing goes as far as a beam looks
    listed = type(policy) is Lookahead and isinstance(policy.step, Flow) and policy.noise_costs is None
    if far and listed and policy.depth < LEVELS and made.task.imagined_steps <= MOST_STEPS:
        return (*sights, Beam.like(policy))
    return sights


@dataclass(frozen=True, eq=False)
class Sights:
    """A plan, or several, acted on with the sight that is best from the start of each episode.

    Asked for an action only, without an episode, it looks as far as all sequences can be tried.
    """

    task: Task
    sights: tuple[QFunction | Lookahead, ...]  # of each plan the longest first; a beam, if there is one, last
    imagined: Imagined  # what they are tried out in, of whatever start
    # by the start: whoever begins there again need not be tried again
    remembered: dict[bytes, int] = field(default_factory=dict, repr=False)
    filtering: Filter | None = None  # of what is read in an episode; None: it is taken as it is
    # what the first earns there, by the start, where that is known and there are only costs: it need not be
    # followed again, nor others that have lost against it
    heard: Mapping[bytes, float] = field(default_factory=dict, repr=False)
    rough: bool = False  # enough to compare plans: with noise the best are not tried once more
    _lasting: dict[bytes, int] = field(default_factory=dict, init=False, repr=False)  # steps, by the start

    @classmethod
    def of(
        cls,
        made: Planned,
        imagined: Imagined,
        filtering: Filter | None = None,
        *,
        rough: bool = False,
        others: Sequence[Planned | None] = (),
        heard: Mapping[bytes, float] | None = None,
    ) -> Sights:
        """All sights of a plan, and of `others` of the same task: no two plans on grids err alike.

        A beam, too, where episodes are short enough to be followed with it. `rough` is enough where plans are
        compared: no beam, and with noise the best sight is taken as it seems.
        """
        plans = [made, *(other for other in others if other is not None)]
        sights = [sight for planned in plans for sight in _sights_of(planned, far=not rough)]
        return cls(made.task, tuple(sights), imagined, filtering=filtering, heard=heard or {}, rough=rough)

    @property
    def depth(self) -> int:
        """How far it looks at most."""
        return getattr(self.sights[0], "depth", 0)

    def __call__(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d], with the longest sight.  [n, n_actions]"""
        return self.sights[0](states)

    def greedy(self, states: FloatArray) -> Actions:
        """With the longest sight.  [n]"""
        return self.sights[0].greedy(states)

    def looking_from(self, start: FloatArray) -> QFunction | Lookahead:
        """The sight for an episode from `start` [d]."""
        return self.sights[int(self.best_from(start[np.newaxis])[0])]

    def best_from(self, starts: FloatArray) -> IntArray:
        """Which sight earns most from each of `starts` [n, d], the longest of equals.  [n]"""
        if len(self.sights) == 1:
            return np.zeros(len(starts), dtype=np.intp)
        keys = [start.tobytes() for start in starts]
        new = {key: start for key, start in zip(keys, starts, strict=True) if key not in self.remembered}
        found = dict(zip(new, self._tried_from(np.array(list(new.values()))), strict=True)) if new else {}
        best = [found[key] if key in found else self.remembered[key] for key in keys]
        if len(self.remembered) + len(found) > MOST_REMEMBERED:
            self.remembered.clear()
        self.remembered.update(list(found.items())[:MOST_REMEMBERED])
        return np.array(best, dtype=np.intp)

    def chosen_from(self, starts: FloatArray) -> tuple[IntArray, IntArray]:
        """Which sight earns most from each of `starts` [n, d], and how many steps it has.  [n], [n]"""
        which = self.best_from(starts)
        noisy, endless = isinstance(self.imagined, Noisy), self.task.is_terminal is None
        if not noisy or endless or len(self.sights) == 1 or not len(self._sober[0]):
            return which, np.full(len(starts), FOR_EVER, dtype=np.intp)
        keys = [start.tobytes() for start in starts]
        rows = {key: row for row, key in enumerate(keys) if key not in self._lasting}
        new = list(rows.values())
        found = dict(zip(rows, self._lasting_from(starts[new], which[new]), strict=True)) if new else {}
        left = [found[key] if key in found else self._lasting[key] for key in keys]
        if len(self._lasting) + len(found) > MOST_REMEMBERED:
            self._lasting.clear()
        self._lasting.update(list(found.items())[:MOST_REMEMBERED])
        return which, np.array(left, dtype=np.intp)

    def _lasting_from(self, starts: FloatArray, which: IntArray) -> list[int]:
        """Twice as many steps as it takes from `starts` [n, d] in the model, in the mean.

        For ever where it does not end, or where the end is no aim: who has not fallen yet is not late.
        """
        heard = imagine(self.task, Begun(self.sights, which), self.imagined, Starts.alike(starts))
        assert heard.steps is not None
        assert heard.aimed is not None
        steps = np.where(heard.aimed, np.maximum(PATIENCE * heard.steps, 1.0), FOR_EVER).astype(int)
        found: list[int] = steps.tolist()
        return found

    def chosen_again(self, states: FloatArray) -> tuple[IntArray, IntArray]:
        """The same in `states` [n, d] of episodes that have taken too long, of those that do not explore."""
        numbers, sober = self._sober
        if not len(numbers):
            return self.chosen_from(states)
        which, left = sober.chosen_from(states)
        return numbers[which], left

    @cached_property
    def _sober(self) -> tuple[IntArray, Sights]:
        """The numbers of the sights to which the unknown is no prize, and they alone."""
        numbers = [row for row, sight in enumerate(self.sights) if not getattr(sight, "optimistic", True)]
        some = tuple(self.sights[number] for number in numbers)
        return np.array(numbers, dtype=np.intp), replace(self, sights=some, remembered={}, heard={})

    def _tried_from(self, starts: FloatArray) -> list[int]:
        """The same of starts [n, d] that are all different, each sight followed from each of them."""
        if np.isfinite(self.task.most):
            return self._first_that_does(starts)
        noisy = isinstance(self.imagined, Noisy)
        if noisy and not self.rough and len(self.sights) <= FINALISTS:
            return self._best_of_few(starts, np.zeros((len(self.sights), len(starts))))
        known = [np.nan if noisy else self.heard.get(start.tobytes(), np.nan) for start in starts]
        totals = np.full((len(self.sights), len(starts)), np.nan)
        totals[0] = known
        which, rows = np.nonzero(np.isnan(totals))

        def lost(so_far: FloatArray, over: BoolArray) -> BoolArray:
            """Which need not be gone on with: from the same start as many as are looked for were better.

            Of who has given up nobody knows how much worse it would have become.
            """
            enough = np.full(len(starts), -np.inf)
            for row in range(len(starts)):
                done = so_far[over & (rows == row)]
                done = done if np.isnan(known[row]) else np.append(done, known[row])
                if len(done) >= finalists:
                    enough[row] = np.sort(done)[-finalists]
            return np.asarray(so_far < enough[rows])

        finalists = FINALISTS if noisy and not self.rough else 1
        trying, imagined = Begun(self.sights, which), self.imagined
        if isinstance(imagined, Noisy) and self.rough:  # what it earns is asked on other paths
            imagined = replace(imagined, seed=imagined.seed + 1)
        heard = imagine(self.task, trying, imagined, Starts.alike(starts[rows]), lost)
        totals[which, rows] = heard.totals
        best: list[int] = totals.argmax(axis=0).tolist()
        return self._best_of_few(starts, totals) if noisy and not self.rough else best

    def _best_of_few(self, starts: FloatArray, totals: FloatArray) -> list[int]:
        """With noise the best of many was lucky, too: those with the best `totals` [n_sights, n] go on."""
        assert isinstance(self.imagined, Noisy)
        few = np.argsort(-totals, axis=0, kind="stable")[:FINALISTS]
        best = steadiest(self.task, lambda which: Begun(self.sights, which), self.imagined, starts, few)
        found: list[int] = best.tolist()
        return found

    def _first_that_does(self, starts: FloatArray) -> list[int]:
        """The same where it is known what no episode can exceed: who earns it need not look for better."""
        best, which = np.full(len(starts), -np.inf), np.zeros(len(starts), dtype=np.intp)
        for number, sight in enumerate(self.sights):
            rows = np.flatnonzero(best < self.task.most)
            if not rows.size:
                break
            trying = Begun((sight,), np.zeros(rows.size, dtype=np.intp))
            totals = imagine(self.task, trying, self.imagined, Starts.alike(starts[rows])).totals
            better = totals > best[rows]
            best[rows[better]], which[rows[better]] = totals[better], number
        found: list[int] = which.tolist()
        return found

    def begin(self, starts: FloatArray, *, imagining: bool = False) -> Acting:
        """How episodes from `starts` [n, d] are acted in. Those that are imagined stay with their sight."""
        if imagining:
            return Begun(self.sights, self.best_from(starts))
        acting = Going(self, starts)
        if self.filtering is None:
            return acting
        return Following(acting, self.filtering, self.task, len(starts))


def remembered(
    policy: Policy, states: FloatArray, memory: object, starts: ArrayLike | None
) -> tuple[Actions, IntArray | Memory | None]:
    """Actions in `states` [n, d] of n episodes, and what to remember of these, None where nothing is.

    `starts` says which of the episodes begin here (a flag, or [n] of them), `memory` is what the last call
    said to remember.
    """
    if not isinstance(policy, Sights):
        return policy.greedy(states), None
    count = len(states)
    begins = np.zeros(count, dtype=np.bool_)
    if starts is not None:
        flags = np.asarray(starts)
        if flags.dtype != np.bool_ or flags.size not in (1, count):
            raise ValueError(f"`episode_start` must be {count} flags, True or False; got {brief(starts)}.")
        begins = np.broadcast_to(flags.reshape(-1), count)
    if policy.filtering is not None:
        return _following(policy, policy.filtering, states, memory, begins)
    fresh = np.tile(np.array([0, FOR_EVER, FOR_EVER]), (count, 1))
    kept = fresh if memory is None else np.array(memory)
    sound = kept.shape == fresh.shape and kept.dtype.kind == "i"
    if not sound or (kept < 0).any() or (kept[:, 0] >= MOST_PLANS * (MOST_SIGHTS + 1)).any():
        raise ValueError(f"`state` must be what the last call returned; got {brief(memory)}.")
    patience = _gone_on(policy, Patience(*kept.astype(np.intp).T.copy()), begins, states)
    return Begun(policy.sights, patience.which)(states, np.arange(count)), np.column_stack(patience)


def _gone_on(policy: Sights, patience: Patience, begins: BoolArray, states: FloatArray) -> Patience:
    """The patience of episodes in `states` [n, d], of which some begin here, after this step."""
    patience.which[patience.which >= len(policy.sights)] = 0  # of a plan that there was before
    patience.begin(policy, np.flatnonzero(begins), states[begins])
    patience.step(policy, np.arange(len(states)), states)
    return patience


def _following(
    policy: Sights, filtering: Filter, readings: FloatArray, memory: object, begins: BoolArray
) -> tuple[Actions, Memory]:
    """The same where readings are filtered: what is remembered is where each is believed to be, too."""
    count, task = len(readings), policy.task
    kept = Memory.fresh(count, task)
    if memory is not None:
        kept = Memory.checked(memory, count, MOST_PLANS * (MOST_SIGHTS + 1), task)
    fresh = begins if memory is not None else np.ones(count, dtype=np.bool_)
    belief = believed(filtering, kept.belief, kept.controls, fresh, readings)
    states = filtering.states(belief)
    patience = _gone_on(policy, Patience(kept.which, kept.left, kept.had), begins, states)
    actions = Begun(policy.sights, patience.which)(states, np.arange(count))
    return actions, Memory(*patience, *belief, task.applied(actions))
