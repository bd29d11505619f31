"""`optimist learn`, `optimist resume`, `optimist evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from optimist.agents import PRESETS
from optimist.cli.output import print_json, progress
from optimist.cli.problems import AsJson
from optimist.cli.sarsa import evaluate_sarsa, go_on_sarsa, is_sarsa, learn_sarsa, print_sarsa
from optimist.experiments.online import evaluate as evaluate_run
from optimist.experiments.online import learning_settings, open_run, start_run
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.experiments.specs import ALL_AGENTS
from optimist.learner import GPRMax
from optimist.planning import Rollouts
from optimist.runs import Event, RunStore, Stepped
from optimist.systems import System, find_system

Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Draw learning curve, value function and uncertainty (.png, .pdf, .svg)."
    ),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of the run.")]


def learn(
    problem: Annotated[str, typer.Argument(help="mountain-car, pendulum, bicycle or acrobot.")],
    agent: Annotated[str, typer.Option(help=f"One of {', '.join(ALL_AGENTS)}.")] = "gp-rmax-exp",
    episodes: Annotated[int, typer.Option(help="Episodes to learn for.")] = 5,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to record the run; by default runs/PROBLEM/AGENT/seed-S.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[str, typer.Option(help=f"Which settings: {', '.join(PRESETS)}.")] = "ours",
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML or JSON file with settings that differ from the preset's."),
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Learn to control a problem from nothing, online."""
    find_system(problem)
    _at_least_one(episodes)
    directory = run if run is not None else Path("runs") / problem / agent / f"seed-{seed}"
    if agent in SARSA_AGENTS:
        _refuse("--preset, --settings and --plot are for GP-RMAX", preset != "ours" or settings or plot)
        with _interruptible(directory), progress(f"{agent} learns {problem}"):
            result = learn_sarsa(problem, agent, seed=seed, episodes=episodes, run=directory)
        _print_sarsa(result, as_json)
        return
    chosen = learning_settings(problem, agent, preset=preset, file=settings)
    _check_plot(plot)
    learner = start_run(problem, chosen, agent=agent, seed=seed, run=directory, episodes=episodes)
    if not as_json:
        nodes = " x ".join(map(str, learner.grid.shape))
        print(
            f"{problem}: {agent} learns from nothing on {nodes} nodes, seed {seed}, recorded in {directory}"
        )
    _go_on(learner, directory, episodes, plot, as_json)


def resume(
    run: Directory,
    episodes: Annotated[
        int | None,
        typer.Option(help="Episodes the run shall have in all; by default as it was started with."),
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run after any interruption."""
    _check_plot(plot)
    if is_sarsa(run):
        _refuse("--plot is for GP-RMAX", plot)
        if episodes is not None:
            _at_least_one(episodes)
        with _interruptible(run), progress(f"bringing {run} back"):
            result = go_on_sarsa(run, episodes)
        _print_sarsa(result, as_json)
        return
    with RunStore.open(run, writing=False) as store:
        wanted = episodes if episodes is not None else store.header.get("episodes", 1)
    _at_least_one(wanted)
    with _interruptible(run), progress(f"bringing {run} back"):
        learner, _ = open_run(run, writing=True)
    if not as_json:
        print(f"{run}: goes on after {learner.num_timesteps} transitions, {len(learner.episodes)} episodes")
    _go_on(learner, run, wanted, plot, as_json)


def evaluate(
    run: Directory,
    random: Annotated[int, typer.Option(help="Also from so many random states of the planned box.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Act greedily on what a run has learned, without learning."""
    if random < 0:
        raise ValueError(f"--random must not be negative; got {random}.")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}.")
    if is_sarsa(run):
        _refuse("--random is for GP-RMAX", random)
        with progress(f"evaluating {run}"):
            fixed, system = evaluate_sarsa(run)
        episodes = _evaluated(fixed, "paper")
    else:
        with progress(f"evaluating {run}"):
            learner, system = open_run(run, writing=False)
            with learner:
                fixed, scattered = evaluate_run(learner, system, n_random=random, seed=seed)
        episodes = _evaluated(fixed, "paper") + _evaluated(scattered, "random")
    with RunStore.open(run, writing=False) as store:
        rows = store.episodes()
        transitions = store.n_transitions or (rows[-1].transitions if rows else 0)
    result = {
        "run": str(run),
        "problem": system.name,
        "transitions": transitions,
        "episodes": episodes,
    }
    if as_json:
        print_json(result)
    else:
        _print_evaluation(system, result)


def _go_on(learner: GPRMax, directory: Path, episodes: int, plot: Path | None, as_json: bool) -> None:
    with learner:
        with _interruptible(directory):
            learner.learn(episodes=episodes, callback=None if as_json else _say, progress_bar=True)
        with RunStore.open(directory, writing=False) as store:
            result = _result(store, directory)
        if plot is not None:
            _draw(learner, result, plot)
            result["plot"] = str(plot)
    if as_json:
        print_json(result)
    else:
        _print_end(result)


@contextmanager
def _interruptible(directory: Path) -> Iterator[None]:
    """Ctrl-C ends cleanly: everything is recorded."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"optimist: stopped; `optimist resume {directory}` goes on.", file=sys.stderr)
        raise typer.Exit(1) from None


def _say(event: Event) -> None:
    if isinstance(event, Stepped) and event.ended is not None:
        row = event.ended
        print(
            f"  episode {row.episode}: total reward {row.total_reward:.4g} in {row.steps} steps "
            f"({row.ending}), {row.transitions} transitions",
            flush=True,
        )


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
        "transitions": store.n_transitions,
        "outside": store.n_outside(),
        "plans": len(plans),
        "fit_seconds": round(sum(row["fit_seconds"] for row in plans), 3),
        "plan_seconds": round(sum(row["predict_seconds"] + row["plan_seconds"] for row in plans), 3),
        "mean_uncertainty": plans[-1]["mean_uncertainty"] if plans else 1.0,
    }


def _print_end(result: dict[str, Any]) -> None:
    stopped = result["stopped_learning_at"]
    state = f"the model settled after {stopped} transitions" if stopped else "still learning"
    print(
        f"  {result['transitions']} transitions, {result['plans']} plans "
        f"(fitting {result['fit_seconds']:.1f} s, "
        f"planning {result['plan_seconds']:.1f} s); {1.0 - result['mean_uncertainty']:.0%} known, {state}"
    )
    if result["outside"]:
        print(f"  {result['outside']} observations lay outside the task's box; the plan saw them at its edge")
    if "plot" in result:
        print(f"  picture: {result['plot']}")
    run = result["run"]
    print(f"  look again: optimist evaluate {run}; go on: optimist resume {run} --episodes N")


def _evaluated(rollouts: Rollouts, kind: str) -> list[dict[str, Any]]:
    return [
        {
            "start": rollouts.starts[k].tolist(),
            "kind": kind,
            "total_reward": float(rollouts.total_rewards[k]),
            "steps": int(rollouts.steps[k]),
            "terminated": bool(rollouts.terminated[k]),
        }
        for k in range(len(rollouts.steps))
    ]


def _print_evaluation(system: System, result: dict[str, Any]) -> None:
    print(f"{system.name}: greedy episodes after {result['transitions']} transitions")
    for row in result["episodes"]:
        start = ", ".join(f"{x:.3g}" for x in row["start"])
        end = "terminated" if row["terminated"] else "cut off"
        print(f"  from ({start}): total reward {row['total_reward']:.4g} in {row['steps']} steps ({end})")


def _print_sarsa(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print_sarsa(result)


def _refuse(sentence: str, given: object) -> None:
    """Options that mean nothing to an agent are refused, not ignored."""
    if given:
        raise ValueError(f"{sentence}; they must not be given with Sarsa.")


def _at_least_one(episodes: int) -> None:
    if episodes < 1:
        raise ValueError(f"--episodes must be at least 1; got {episodes}.")


def _check_plot(plot: Path | None) -> None:
    if plot is not None:
        from optimist.views.plan_figure import check_target  # noqa: PLC0415

        check_target(plot)


def _draw(learner: GPRMax, result: dict[str, Any], file: Path) -> None:
    from optimist.views.learning_figure import draw_learning  # noqa: PLC0415
    from optimist.views.plan_figure import save_figure  # noqa: PLC0415

    save_figure(draw_learning(learner, find_system(result["problem"])), file)
