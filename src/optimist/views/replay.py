"""An episode once more, as a film: the system moving, beside it what the agent knew at every step.

Of our systems a picture of every recorded state is drawn. Anybody's environment cannot be put into states, so
its coordinates over time are shown; or, on request, what it renders itself while the recorded actions are
done in it again, if it comes through the same states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optimist.environments.rendering import Picture
from optimist.environments.system_environment import SystemEnvironment
from optimist.given import blamed
from optimist.runs import Session
from optimist.runs.loop import Place, begin, stepped
from optimist.runs.resume import innermost
from optimist.views.film import check_film, write_film
from optimist.views.film_figure import Scene, Stage
from optimist.views.knowledge import Episode, Maps
from optimist.views.plan_figure import Slice

RESOLUTION = 100  # points per axis of a map
FPS = 20  # steps in a second, of an environment that does not say

OnProgress = Callable[[str, int, int], None]  # what is being done, how much of it, of how much


@dataclass(frozen=True)
class Look:
    """How an episode shall be shown."""

    axes: tuple[int, int] | None = (0, 1)  # of the maps; None: there are no two
    fps: float | None = None  # steps in a second; by default the environment's own
    now: bool = False  # with the plan that the run has now, instead of those it had then
    render: bool = False  # let the environment do the actions again, and show what it renders
    pictures: int = 250  # at most, about; of a longer episode steps are left out, evenly

    def __post_init__(self) -> None:
        if self.fps is not None and not 0.0 < self.fps <= 1000.0:
            raise ValueError(f"`fps` must be above 0 and at most 1000; got {self.fps}.")
        if self.pictures < 2:
            raise ValueError(f"`pictures` must be at least 2; got {self.pictures}.")


def replay(
    run: Session[Any],
    file: str | Path,
    *,
    episode: int | None = None,
    axis_names: tuple[str, ...] | None = None,
    look: Look | None = None,
    on_progress: OnProgress | None = None,
) -> Path:
    """Write the film of a recorded episode (the last one by default) to a .gif or .mp4.

    The plans it had then are made again from the record, unless the last one is the one it had.

    >>> from optimist.views.replay import replay
    >>> run = optimist.GPRMax.resume("runs/pendulum", env, writing=False)  # doctest: +SKIP
    >>> replay(run, "pendulum.gif", episode=1)  # doctest: +SKIP

    """
    look, file = look if look is not None else Look(), Path(file)
    say = on_progress if on_progress is not None else _silent
    check_film(file)
    found = Episode.of(run, episode)
    names = axis_names if axis_names is not None else _names(run)
    count = len(found.states)
    every = -(-count // look.pictures)
    steps = sorted({*range(0, count, every), count - 1})
    pictures = _pictures(run, found, steps, look.render)
    axes = look.axes if run.box.n_dims > 1 else None
    maps = [] if axes is None else _maps(run, found, steps, axes, look.now, say)
    scene = Scene(run, found, steps, names, axes, maps)
    stage = Stage(scene, pictures)
    seconds = every / (look.fps if look.fps is not None else _fps(run))

    def told(done: int, total: int) -> None:
        say("drawing", done, total)

    write_film(file, stage.picture, len(steps), seconds=seconds, told=told)
    return file


def _silent(what: str, done: int, total: int) -> None: ...


def _names(run: Session[Any]) -> tuple[str, ...]:
    if run.env is not None and run.env.has_wrapper_attr("axis_names"):
        return tuple(run.env.get_wrapper_attr("axis_names"))
    return tuple(f"coordinate {axis}" for axis in range(run.box.n_dims))


def _fps(run: Session[Any]) -> float:
    said = None if run.env is None else run.env.metadata.get("render_fps")
    return float(said) if isinstance(said, int | float) and 0.0 < said <= 1000.0 else FPS


def _maps(
    run: Session[Any],
    episode: Episode,
    steps: list[int],
    axes: tuple[int, int],
    now: bool,
    say: OnProgress,
) -> list[Maps]:
    """What it knew at these steps, of a slice through where it was."""

    def known(step: int) -> Maps:
        shown = Slice(axes, episode.states[step], ("",) * run.box.n_dims)
        return Maps.over(run, shown, RESOLUTION)

    planned = run.planned_at
    if now or planned is None or planned <= episode.first:
        return [known(step) for step in steps]
    wanted, last = {episode.first + step for step in steps}, episode.first + steps[-1]
    found = []
    lives = run.relive()
    for number in lives:
        say("making its plans again", number, last)
        if number in wanted:
            found.append(known(number - episode.first))
        if number == last:
            break
    lives.close()  # type: ignore[attr-defined]  # as it was
    return found


def _pictures(
    run: Session[Any], episode: Episode, steps: list[int], rendered: bool
) -> Callable[[int], Picture] | None:
    """How the system looks at the k-th of these steps; None: nobody knows."""
    inner = None if run.env is None else innermost(run.env)
    if isinstance(inner, SystemEnvironment):
        ours = inner

        def drawn(k: int) -> Picture:
            step = steps[k]
            action = int(episode.actions[step]) if step < len(episode.actions) else None
            return ours.picture(episode.states[step], action)

        return drawn
    return _played_again(run, episode, set(steps)).__getitem__ if rendered else None


def _played_again(run: Session[Any], episode: Episode, steps: set[int]) -> list[Picture]:
    """What the environment renders while the recorded actions are done in it again."""
    env = run.env
    if env is None or env.render_mode != "rgb_array":
        mode = None if env is None else env.render_mode
        raise ValueError(
            'The environment must be made with render_mode="rgb_array" to show what it renders; '
            f"got {mode!r}."
        )
    place = Place(episode.row.episode, state=begin(env, run.task, run.seed, episode.row.episode))
    found = []
    for step, recorded in enumerate(episode.states):
        if place.state is None or not np.allclose(place.state, recorded, rtol=1e-9, atol=1e-9):
            raise ValueError(
                "The environment must do the same again to show what it renders; got another state at step "
                f"{step} of episode {episode.row.episode}. Without `render` its coordinates are shown."
            )
        if step in steps:
            with blamed("The environment's `render`"):
                found.append(_checked(env.render()))
        if step < len(episode.actions):
            action = int(episode.actions[step])
            made = stepped(env, run.task, lambda _, action=action: action, place, number=step + 1)  # type: ignore[misc]
            # the last place has no state: the episode is over
            place = Place(place.episode, step + 1, state=made.transition.next_state)
    return found


def _checked(picture: Any) -> Picture:
    found = np.asarray(picture)
    if found.ndim != 3 or found.shape[2] != 3 or found.dtype != np.uint8:
        raise ValueError(
            f"A picture must be [height, width, 3] of bytes; got {found.shape} of {found.dtype}."
        )
    return found.copy()
