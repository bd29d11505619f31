"""What a learning run shows while it goes on: one line, in a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from optimist.runs.in_notebook import NotebookBar, is_notebook
from optimist.runs.loop import Ended, Event, Stepped, Updated


class Bar(Protocol):
    """Something that shows how far it is."""

    def update(self, completed: float, description: str) -> None:
        """Show it."""
        ...


class TerminalBar:
    """One line of a terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def update(self, completed: float, description: str) -> None:
        """Show it."""
        self._progress.update(self._task, completed=completed, description=description)


class LearningProgress:
    """Listens to a run: episode, steps, reward, what is known, time spent fitting and planning."""

    def __init__(self, bar: Bar, *, by_episode: bool) -> None:
        self._bar, self._by_episode = bar, by_episode
        self._reward = 0.0
        self._known = "nothing known yet"
        self._fitting = self._planning = 0.0

    @classmethod
    @contextmanager
    def shown(cls, wanted: bool, most: int | None, episodes: int | None, done: int = 0) -> Iterator[Self]:
        """A listener that shows a bar up to `most` transitions or so many episodes, if `wanted`."""
        total = episodes if most is None else most
        if wanted and is_notebook():
            bar = NotebookBar(total or 1, done)
            try:
                yield cls(bar, by_episode=most is None)
            finally:
                bar.refresh()
            return
        columns = (SpinnerColumn(), BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn())
        visible = wanted and sys.stderr.isatty()
        console = Console(stderr=True, quiet=not visible)
        with Progress(*columns, console=console, transient=True, disable=not visible) as progress:
            task = progress.add_task("learning", total=total, completed=done)
            yield cls(TerminalBar(progress, task), by_episode=most is None)

    def __call__(self, event: Event) -> None:
        """Show it."""
        if isinstance(event, Updated):
            update = event.update
            self._known = f"{1.0 - update.mean_uncertainty:.0%} known"
            self._known += ", settled" if update.settled else ""
            self._fitting += update.fit_seconds
            self._planning += update.predict_seconds + update.plan_seconds
        elif isinstance(event, Ended):
            row = event.ended
            text = (
                f"episode {row.episode}, total reward {row.total_reward:.4g}, {row.transitions} transitions"
            )
            self._bar.update(row.episode, text)
        else:
            self._step(event)

    def _step(self, event: Stepped) -> None:
        self._reward = event.transition.reward + (self._reward if event.step > 1 else 0.0)
        text = (
            f"episode {event.episode}, step {event.step}, total reward {self._reward:.4g}, {self._known}, "
            f"fitting {self._fitting:.1f} s, planning {self._planning:.1f} s"
        )
        completed = event.place.episode - 1 if self._by_episode else event.number
        self._bar.update(completed, text)
