"""Contest: layouts challenge the one in use, each is planned on and tried out, the best is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimist.arrays import FloatArray
from optimist.discretisation import Layout
from optimist.planning.chooser import Chooser
from optimist.planning.planner import Planned
from optimist.planning.rehearsal import Rehearsal, better

MOST_ROUNDS = 3  # of placing nodes again along the paths of the plan that is best by then

Attempt = Callable[[Layout], Planned]  # plan on a layout
TryOut = Callable[[Planned, Rehearsal | None], Rehearsal]  # or until it has lost against another


@dataclass(frozen=True, eq=False)
class Contest:
    """How layouts are compared, and what nodes are placed by besides rehearsed paths."""

    chooser: Chooser
    attempt: Attempt
    try_out: TryOut
    visited: FloatArray  # [n, d]

    def between(self, first: Planned, turns: Sequence[str]) -> Won:
        """A few challengers. Who is in use stays, unless one promises clearly more: a model errs."""
        won = self._began(first)
        for kind in turns:
            won = self._challenged(won, kind, better)
        return won

    def among_all(self, first: Planned) -> Won:
        """Every kind, and nodes placed again and again as long as that helps. The best is taken as it is."""
        won = self._began(first)
        for _ in range(MOST_ROUNDS):
            before = won.planned
            for kind in self.chooser.placed:
                won = self._challenged(won, kind, _more)
            if won.planned is before:
                break
        for kind in self.chooser.last:
            won = self._challenged(won, kind, _more)
        return won

    def _began(self, first: Planned) -> Won:
        heard = self.try_out(first, None)
        return Won(first, heard, ((first.layout.name, heard.total),))

    def _challenged(self, won: Won, kind: str, wins: Callable[[Rehearsal, Rehearsal], bool]) -> Won:
        if won.rehearsal.totals.min() >= self.chooser.task.most:
            return won  # nobody can do better
        states = np.concatenate([self.visited, won.rehearsal.states])
        layout = self.chooser.challenger(kind, won.planned, states)
        if layout is None:
            return won
        other = self.attempt(layout)
        heard = self.try_out(other, won.rehearsal)
        tried = (*won.tried, (other.layout.name, heard.total))
        if wins(heard, won.rehearsal):
            return Won(other, heard, tried, won.planned, won.rehearsal.total)
        if won.second is None or heard.total > won.second_total:
            return replace(won, tried=tried, second=other, second_total=heard.total)
        return replace(won, tried=tried)


@dataclass(frozen=True, eq=False)
class Won:
    """The plan that won, what it came to, what was tried, and another one.

    From some starts the other is better: whoever acts may have a choice of both. It is the one that lost to
    the winner when that won, unless a later challenger came nearer. How near is known only until it was given
    up: where there are only costs who loses is not heard to the end.
    """

    planned: Planned
    rehearsal: Rehearsal
    tried: tuple[tuple[str, float], ...]
    second: Planned | None = None
    second_total: float = -np.inf


def _more(challenger: Rehearsal, kept: Rehearsal) -> bool:
    return challenger.total > kept.total
