"""`optimist learn`, `optimist resume`, `optimist evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from optimist.agents import PRESETS
from optimist.agents.doubts import UNEXPLAINED
from optimist.cli.axes import FIRST_TWO, Axes, two_axes
from optimist.cli.check import DIRECTORY, named
from optimist.cli.output import print_json, progress
from optimist.cli.problems import PROBLEM_HELP, AsJson
from optimist.cli.watch import require_live, watched
from optimist.experiments.gymnasium_ids import with_arguments
from optimist.experiments.kinds import KINDS
from optimist.experiments.online import evaluate as evaluate_run
from optimist.experiments.online import open_run, start_run
from optimist.experiments.problems import Problem, find_problem
from optimist.planning import Rollouts
from optimist.runs import Event, RunStore, Session
from optimist.runs.health import nothing_to_learn
from optimist.starting import was_stopped
from optimist.task import Task

SHOWN = 50  # episodes told of one by one; of more, some, evenly spread

PLOT = "Draw learning curve, value function, policy, path and uncertainty (.png, .pdf, .svg)."
NAMED = "The problem, when it is your own: its code is run only if you name it."
RUN = "Where to record the run; by default runs/PROBLEM/AGENT/seed-S."
ENV_ARG = "An argument of the environment, where the problem is a Gymnasium id; may be given again."
SETTINGS = "A TOML or JSON file with settings that differ from the preset's."
EPISODES = "Episodes the run shall have in all; by default as it was started with."
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help=PLOT)]
WATCH = "Serve a page meanwhile that shows what happens (`optimist watch`)."
Watch = Annotated[bool, typer.Option("--watch", help=WATCH)]
Named = Annotated[str | None, typer.Option("--problem", metavar="FILE.py:FUNCTION", help=NAMED)]
Directory = Annotated[str, typer.Argument(metavar="DIR", help=DIRECTORY)]


def learn(
    problem: Annotated[str, typer.Argument(help=PROBLEM_HELP)],
    agent: Annotated[str, typer.Option(help=f"One of {', '.join(KINDS)}.")] = "gp-rmax-exp",
    episodes: Annotated[int, typer.Option(help="Episodes to learn for.")] = 5,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    run: Annotated[str | None, typer.Option(metavar="DIR", help=RUN, show_default=False)] = None,
    preset: Annotated[str, typer.Option(help=f"Which settings: {', '.join(PRESETS)}.")] = "ours",
    settings: Annotated[Path | None, typer.Option(metavar="FILE", help=SETTINGS)] = None,
    env_arg: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help=ENV_ARG)] = None,
    plot: Plot = None,
    axes: Axes = FIRST_TWO,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Learn to control a problem from nothing, online."""
    _at_least_one(episodes)
    _check_plot(plot)
    if watch:
        require_live()
    given = named(run, "--run") if run is not None else None
    found = find_problem(with_arguments(problem, env_arg or []))
    shown = two_axes(found, axes)
    directory = given if given is not None else Path("runs") / found.label / agent / f"seed-{seed}"
    started = start_run(
        found, agent, seed=seed, run=directory, episodes=episodes, preset=preset, file=settings
    )
    if not as_json:
        print(f"{found.name}: {agent} learns from nothing, seed {seed}, recorded in {directory}")
        _say_found(started.task)
    _go_on(started, found, directory, episodes, _Picture(plot, shown), as_json, watch=watch)


def resume(
    run: Directory,
    episodes: Annotated[int | None, typer.Option(help=EPISODES)] = None,
    problem: Named = None,
    plot: Plot = None,
    axes: Axes = FIRST_TWO,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Go on with a run after any interruption."""
    directory = named(run, "DIR")
    _check_plot(plot)
    if watch:
        require_live()
    with RunStore.open(directory, writing=False) as store:
        wanted = episodes if episodes is not None else store.header.get("episodes", 1)
    _at_least_one(wanted)
    with _interruptible(directory, problem), progress(f"bringing {run} back"):
        opened, found = open_run(directory, problem, writing=True)
    shown = two_axes(found, axes)
    if not as_json:
        print(f"{run}: goes on after {opened.num_timesteps} transitions, {len(opened.episodes)} episodes")
    _go_on(opened, found, directory, wanted, _Picture(plot, shown), as_json, watch=watch)


def evaluate(
    run: Directory,
    random: Annotated[int, typer.Option(help="Also from so many random states of the planned box.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the random states, and of an environment's own starts.")] = 0,
    problem: Named = None,
    as_json: AsJson = False,
) -> None:
    """Act greedily on what a run has learned, without learning."""
    if random < 0:
        raise ValueError(f"--random must not be negative; got {random}.")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}.")
    with progress(f"evaluating {run}"):
        opened, found = open_run(named(run, "DIR"), problem, writing=False)
        with opened:
            rollouts = evaluate_run(opened, found, n_random=random, seed=seed)
    result = {
        "run": run,
        "problem": found.name,
        "transitions": opened.num_timesteps,
        "episodes": [row | {"kind": kind} for kind, made in rollouts for row in made.rows()],
    }
    if as_json:
        print_json(result)
    else:
        _print_evaluation(result)


@dataclass(frozen=True)
class _Picture:
    """What to draw in the end, if anything."""

    file: Path | None
    axes: tuple[int, int] | None


def _go_on(
    run: Session[Any],
    problem: Problem,
    directory: Path,
    episodes: int,
    picture: _Picture,
    as_json: bool,
    *,
    watch: bool,
) -> None:
    every = 1 if episodes <= SHOWN else episodes // 10

    def say(event: Event) -> None:
        row = getattr(event, "ended", None)
        if row is not None and (row.episode - 1) % every == 0:
            print(f"  {row.told()}", flush=True)

    with run, watched(directory if watch else None) as url:
        if url is not None:
            print(f"  the page: {url}", file=sys.stderr if as_json else sys.stdout, flush=True)
        quiet = redirect_stdout(sys.stderr if as_json else sys.stdout)
        with quiet, _interruptible(directory, problem.source):
            run.learn(episodes=episodes, callback=None if as_json else say, progress_bar=True)
        with RunStore.open(directory, writing=False) as store:
            result = _result(store, directory) | {"transitions": run.num_timesteps}
        if picture.file is not None:
            _draw(run, problem, picture.file, picture.axes)
            result["plot"] = str(picture.file)
        if as_json:
            print_json(result if url is None else result | {"url": url})
        else:
            _print_end(result, problem)
            _say_found(run.task)
        if run.task.evidence:
            nothing = nothing_to_learn(run.transitions if run.num_timesteps else None, len(run.episodes))
            if nothing is not None:
                raise ValueError(nothing)
        if url is not None and not as_json and sys.stdin.isatty():
            run.close()
            with suppress(EOFError, KeyboardInterrupt):
                input(f"  the page stays at {url} until you press Enter ")


@contextmanager
def _interruptible(directory: Path, source: str | None) -> Iterator[None]:
    """Ctrl-C ends cleanly: everything is recorded."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not was_stopped(error):
            raise
        print(f"optimist: stopped; `optimist resume {_again(directory, source)}` goes on.", file=sys.stderr)
        raise typer.Exit(1) from None


def _again(directory: object, source: str | None) -> str:
    """How the run is named on the command line."""
    place = quote(str(directory))
    return f"{place} --problem {quote(source)}" if source is not None else place


def _result(store: RunStore, directory: Path) -> dict[str, Any]:
    header = store.header
    plans = store.plans()
    return {
        "run": str(directory),
        "agent": header["agent"],
        "problem": header["problem"],
        "seed": header["seed"],
        "episodes": [asdict(row) for row in store.episodes()],
        "stopped_learning_at": store.stopped_learning_at(),
        "outside": store.n_outside(),
        "void": len(store.marked(UNEXPLAINED)),
        "faded": plans[-1]["model"].get("faded", 0) if plans else 0,
        "plans": len(plans),
        "fit_seconds": round(sum(row["fit_seconds"] for row in plans), 3),
        "plan_seconds": round(sum(row["predict_seconds"] + row["plan_seconds"] for row in plans), 3),
        "mean_uncertainty": plans[-1]["mean_uncertainty"] if plans else 1.0,
        "rehearsal": plans[-1]["rehearsal"] if plans else {},
        "mirror": plans[-1]["model"].get("mirror") if plans else None,
    }


def _print_end(result: dict[str, Any], problem: Problem) -> None:
    stopped = result["stopped_learning_at"]
    state = f"the model settled after {stopped} transitions" if stopped else "still learning"
    planned = (
        f", {result['plans']} plans (fitting {result['fit_seconds']:.1f} s, "
        f"planning {result['plan_seconds']:.1f} s); {1.0 - result['mean_uncertainty']:.0%} known, {state}"
    )
    print(f"  {result['transitions']} transitions{planned if result['plans'] else ''}")
    if "layout" in result["rehearsal"]:
        print(f"  {_rehearsed(result['rehearsal'])}")
    if result["mirror"]:
        print(f"  {_mirrored(result['mirror'], problem.axis_names)}")
    if result["outside"]:
        print(f"  {result['outside']} observations lay outside the task's box; the plan saw them at its edge")
    if result["faded"]:
        print(f"  the system changed: the first {result['faded']} transitions are not learned from any more")
    if result["void"]:
        left_out = f"{result['void']} of {result['transitions']} transitions were not learned from"
        print(f"  {left_out}: nothing explains them (optimist check {quote(result['run'])})")
    if "plot" in result:
        print(f"  picture: {result['plot']}")
    run = _again(result["run"], problem.source)
    print(f"  look again: optimist evaluate {run}; go on: optimist resume {run} --episodes N")


def _mirrored(signs: Sequence[int], names: Sequence[str]) -> str:
    """Which coordinates turn round in the mirror in which the system was found to do the same."""
    turned = [name for name, sign in zip(names, signs, strict=False) if sign < 0]
    controls = "and controls " if min(signs[len(names) :], default=1) < 0 else ""
    return f"it does the same in a mirror: {', '.join(turned)} {controls}turn round"


def _rehearsed(said: dict[str, Any]) -> str:
    """What the agent chose, and what it expects of it."""
    nodes = " x ".join(map(str, said["nodes"]))
    expects = "nothing good" if said["expected"] is None else f"{said['expected']:.4g}"
    between = (
        "" if said["low"] is None or said["high"] is None else f" ({said['low']:.4g} to {said['high']:.4g})"
    )
    return f"its nodes: {nodes}, {said['layout']}; it expects an episode to earn {expects}{between}"


def _print_evaluation(result: dict[str, Any]) -> None:
    print(f"{result['problem']}: greedy episodes after {result['transitions']} transitions")
    for row in result["episodes"]:
        print(f"  {Rollouts.told(row)}")


def _say_found(task: Task) -> None:
    """What was found before the first transition, where not all was told."""
    if task.evidence:
        print("\n".join(f"  {line}" for line in str(task).splitlines()))


def _at_least_one(episodes: int) -> None:
    if episodes < 1:
        raise ValueError(f"--episodes must be at least 1; got {episodes}.")


def _check_plot(plot: Path | None) -> None:
    if plot is not None:
        from optimist.views.plan_figure import check_target  # noqa: PLC0415

        check_target(plot)


def _draw(run: Session[Any], problem: Problem, file: Path, axes: tuple[int, int] | None) -> None:
    from optimist.views.learning_figure import draw_learning  # noqa: PLC0415
    from optimist.views.plan_figure import save_figure  # noqa: PLC0415

    names, best = problem.axis_names, problem.best_known
    drawn = draw_learning(run, problem.name, axis_names=names, best_known=best, axes=axes)
    save_figure(drawn, file)
