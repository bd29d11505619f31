"""`optimist replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optimist.cli.axes import FIRST_TWO, two_axes
from optimist.cli.check import named
from optimist.cli.learn import Directory, Named
from optimist.cli.output import print_json, progress, progress_bar
from optimist.cli.problems import AsJson
from optimist.experiments.online import open_run

EPISODE = "Which episode, from 1; by default the last one."
OUT = "The film: .gif, or .mp4 where there is an encoder."
AXES = "Which two axes the maps show, such as 0,2; the others are as they are at every moment."
FPS = "Steps shown in a second; by default as the system says."
NOW = "Show the plan that the run has now; else those it had then are made again, as long as that takes."
RENDER = "For your own environment: do the actions AGAIN in it, and show what it renders (rgb_array)."


def replay(
    run: Directory,
    episode: Annotated[int | None, typer.Option(metavar="K", help=EPISODE, show_default=False)] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help=OUT)] = Path("replay.gif"),
    axes: Annotated[str, typer.Option(metavar="I,J", help=AXES)] = FIRST_TWO,
    fps: Annotated[float | None, typer.Option(help=FPS, show_default=False)] = None,
    now: Annotated[bool, typer.Option("--now", help=NOW)] = False,
    render: Annotated[bool, typer.Option("--render", help=RENDER)] = False,
    problem: Named = None,
    as_json: AsJson = False,
) -> None:
    """Show a recorded episode once more: the system moving, beside it what the agent knew.

    Your own environment cannot be put into a state: its coordinates over time are shown.
    """
    from optimist.views.film import check_film  # noqa: PLC0415
    from optimist.views.knowledge import Episode  # noqa: PLC0415
    from optimist.views.replay import Look  # noqa: PLC0415
    from optimist.views.replay import replay as write_replay  # noqa: PLC0415

    directory = named(run, "DIR")
    check_film(out)
    with progress(f"bringing {run} back"):
        opened, found = open_run(directory, problem, writing=False)
    with opened, progress_bar(f"replaying {run}") as say:
        look = Look(two_axes(found, axes), fps, now, render)
        shown = Episode.of(opened, episode).row
        write_replay(
            opened, out, episode=shown.episode, axis_names=found.axis_names, look=look, on_progress=say
        )
    result = {
        "file": str(out),
        "run": run,
        "problem": found.name,
        "episode": shown.episode,
        "steps": shown.steps,
        "total_reward": shown.total_reward,
    }
    if as_json:
        print_json(result)
    else:
        print(
            f"{found.name}, episode {shown.episode}: total reward {shown.total_reward:.4g} in {shown.steps} "
            f"steps ({shown.ending})"
        )
        print(f"  film: {out}")
