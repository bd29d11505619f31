"""How a run shows itself in a notebook: a table, its learning curve, maps; a bar while it learns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from optimist.runs.record import EpisodeRow
from optimist.shown import block, curve, heat, over_two_axes

if TYPE_CHECKING:
    from optimist.runs.session import Session
    from optimist.runs.store import RunStore

PAUSE = 0.2  # s between two pictures of a bar


def is_notebook() -> bool:
    """Whether this process shows what it does in a notebook."""
    core = sys.modules.get("IPython")
    shell = core.get_ipython() if core is not None else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookBar:
    """A progress bar in the output of a cell. It needs nothing but what every notebook has."""

    def __init__(self, total: float, completed: float) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415

        self._html: Callable[[str], Any] = HTML
        self._total, self._completed, self._said, self._last = total, completed, "learning", monotonic()
        self._shown = display(self._picture(), display_id=True)

    def update(self, completed: float, description: str) -> None:
        """Show how far it is, if the last picture is not too fresh."""
        self._completed, self._said = completed, description
        if monotonic() >= self._last + PAUSE:
            self.refresh()

    def refresh(self) -> None:
        """Show it now."""
        self._last = monotonic()
        self._shown.update(self._picture())

    def _picture(self) -> Any:
        return self._html(
            f"<progress value='{self._completed:g}' max='{self._total:g}'></progress> {escape(self._said)}"
        )


def session_html(session: Session[Any]) -> str:
    """What a session shows of itself."""
    agent = session._agent
    known, settled = getattr(agent, "knowledge", None), agent.settled_at
    expected = getattr(agent, "expected", None)
    rows = {
        "problem": session._problem,
        "seed": session.seed,
        "transitions": session.num_timesteps,
        "episodes": len(session.episodes),
        "best episode": max((row.total_reward for row in session.episodes), default=None),
        "expects of an episode": None if expected is None else float(expected),
        "known": None if known is None else f"{1.0 - known.flow.mean_uncertainty:.0%}",
        "nodes": None if known is None else " x ".join(map(str, agent.grid.shape)),
        "learning": "goes on" if settled is None else f"stopped after {settled} transitions",
        "recorded in": None if session._store is None else str(session._store.directory),
    }
    maps = [] if known is None else _maps(session)
    return block(f"{type(session).__name__}: {session._name}", rows, _learning(session.episodes), *maps)


def store_html(store: RunStore) -> str:
    """What a record shows of itself."""
    header, episodes = store.header, store.episodes()
    rows = {
        "directory": str(store.directory),
        **{name: header.get(name) for name in ("agent", "problem", "seed")},
        "transitions": store.n_transitions,
        "episodes": len(episodes),
        "plans": len(store.plans()),
        "learning stopped at": store.stopped_learning_at(),
        "written by": f"Optimist {header.get('optimist_version')}",
    }
    return block("A recorded run", rows, _learning(episodes))


def _learning(episodes: list[EpisodeRow]) -> str:
    ended = [row for row in episodes if row.ending != "abandoned"]
    return curve(
        [row.total_reward for row in ended], [row.expected for row in ended], "total reward of each episode"
    )


def _maps(session: Session[Any]) -> list[str]:
    """Value and uncertainty over the first two axes, the others where most states were."""
    at = np.median(session.transitions.states, axis=0)
    points, shape = over_two_axes(session.box.low, session.box.high, at)
    value, uncertainty = session.value(points), session.uncertainty(points)
    found = [] if value is None else [heat(value.reshape(shape), "value over the first axes")]
    if uncertainty is not None:
        least = uncertainty.min(axis=1).reshape(shape)
        found.append(heat(least, "uncertainty there, of the best known action", 0.0, 1.0))
    return found
