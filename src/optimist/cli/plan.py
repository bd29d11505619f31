"""`optimist plan`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from optimist.cli.output import print_json, progress
from optimist.cli.problems import AsJson
from optimist.experiments.offline import OfflinePlan, plan_offline
from optimist.planning import BackupName, Certificate, Rollouts, Stopping
from optimist.systems import Recipe, System, find_system

NEARBY_SEED = 0


def plan(
    problem: Annotated[str, typer.Argument(help="mountain-car, pendulum, bicycle or acrobot.")],
    recipe: Annotated[
        str, typer.Option(help="Where to start from: 'ours', 'paper'; 'fine' for acrobot.")
    ] = "ours",
    nodes: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Nodes per axis, such as 100,100.")
    ] = None,
    spacing: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,...",
            help="'uniform', or a power per axis: above 1 puts more nodes near the middle.",
        ),
    ] = None,
    hold: Annotated[int | None, typer.Option(help="Plan with every control held for so many steps.")] = None,
    lookahead: Annotated[
        int | None,
        typer.Option(help="Act by trying so many steps ahead; 0 acts on interpolated Q-values."),
    ] = None,
    backup: Annotated[
        str, typer.Option(help=f"Which Bellman backup: {', '.join(BackupName)}.")
    ] = BackupName.V_EXACT.value,
    tolerance: Annotated[float, typer.Option(help="Stop at this residual.")] = 1e-4,
    max_sweeps: Annotated[int, typer.Option(help="Stop after so many sweeps.")] = 2000,
    certify: Annotated[
        bool, typer.Option("--certify", help="Bound the distance from the optimum, controls held.")
    ] = False,
    nearby: Annotated[
        int, typer.Option(help="Roll out from so many seeded starts near the paper's, too.")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw value function and policy (.png, .pdf, .svg)."),
    ] = None,
    axes: Annotated[
        str,
        typer.Option(metavar="I,J", help="Which two axes to draw; the others stay at the start."),
    ] = "0,1",
    as_json: AsJson = False,
) -> None:
    """Plan with the true dynamics, then roll out: the best possible performance.

    Example: optimist plan mountain-car --plot plan.png
    """
    system = find_system(problem)
    chosen = _recipe(system, recipe, nodes, spacing)
    chosen = replace(
        chosen,
        hold=chosen.hold if hold is None else _at_least(1, "--hold", hold),
        lookahead=chosen.lookahead if lookahead is None else _at_least(0, "--lookahead", lookahead),
    )
    _at_least(0, "--nearby", nearby)
    _known_backup(backup)
    stopping = Stopping(tolerance, max_sweeps)
    shown = _axes(system, axes)
    if plot is not None:
        from optimist.views.plan_figure import check_target  # noqa: PLC0415

        check_target(plot)
    with progress(f"planning {problem}") as say:
        say("predicting successors")

        def listen(sweeps: int, change: float) -> None:
            if np.isfinite(change):
                say(f"sweep {sweeps}, change {change:.1e}")

        made = plan_offline(system, chosen, backup=backup, stopping=stopping, listener=listen)
        say("rolling out")
        rollouts = made.roll_out(system.starts)
        around = made.roll_out(system.nearby_starts(nearby, seed=NEARBY_SEED)) if nearby else None
        say("certifying")
        certificate = made.certify() if certify else None
    if plot is not None:
        _draw(made, rollouts, shown, plot)
    result = _result(made, backup, rollouts, around, certificate, plot)
    if as_json:
        print_json(result)
    else:
        _print(system, result)


def _recipe(system: System, name: str, nodes: str | None, spacing: str | None) -> Recipe:
    if name not in system.recipes:
        known = ", ".join(system.recipes)
        raise ValueError(f"--recipe must be one of {known} for {system.name}; got {name!r}.")
    recipe = system.recipes[name]
    n_dims = system.task.box.n_dims
    if nodes is not None:
        counts = _numbers("--nodes", nodes, n_dims, whole=True)
        if min(counts) < 2:
            raise ValueError(f"--nodes must be at least 2 on every axis; got {nodes}.")
        recipe = replace(recipe, nodes=tuple(int(count) for count in counts))
    if spacing == "uniform":
        recipe = replace(recipe, spacing=(1.0,) * n_dims)
    elif spacing is not None:
        powers = _numbers("--spacing", spacing, n_dims, whole=False)
        if min(powers) <= 0.0:
            raise ValueError(f"--spacing must be positive on every axis; got {spacing}.")
        recipe = replace(recipe, spacing=tuple(powers))
    return recipe


def _numbers(option: str, text: str, count: int, *, whole: bool) -> list[float]:
    kind = "whole number" if whole else "number"
    try:
        numbers = [float(int(part) if whole else float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        numbers = []
    if len(numbers) != count or not np.isfinite(numbers).all():
        example = ",".join(["100" if whole else "1.5"] * count)
        raise ValueError(f"{option} must be one {kind} per axis ({count}), such as {example}; got {text!r}.")
    return numbers


def _at_least(least: int, option: str, value: int) -> int:
    if value < least:
        raise ValueError(f"{option} must be at least {least}; got {value}.")
    return value


def _known_backup(name: str) -> None:
    if name not in set(BackupName):
        raise ValueError(f"--backup must be one of {', '.join(BackupName)}; got {name!r}.")


def _axes(system: System, text: str) -> tuple[int, int]:
    n_dims = system.task.box.n_dims
    first, second = (int(axis) for axis in _numbers("--axes", text, 2, whole=True))
    if first == second or not (0 <= first < n_dims and 0 <= second < n_dims):
        raise ValueError(f"--axes must be two different axes from 0 to {n_dims - 1}; got {text!r}.")
    return first, second


def _draw(made: OfflinePlan, rollouts: Rollouts, axes: tuple[int, int], file: Path) -> None:
    from optimist.views.plan_figure import Slice, draw_plan, save_figure  # noqa: PLC0415

    system = made.system
    shown = Slice(axes, system.starts[0], system.axis_names)
    nodes = " x ".join(map(str, made.grid.shape))
    title = (
        f"{system.name}, true model, {nodes} nodes: "
        f"total reward {rollouts.total_rewards[0]:.4g} in {rollouts.steps[0]} steps"
    )
    figure = draw_plan(made.q_function, shown, system.task.controls, rollouts.paths[:, 0], title)
    save_figure(figure, file)


def _result(
    made: OfflinePlan,
    backup: str,
    rollouts: Rollouts,
    around: Rollouts | None,
    certificate: Certificate | None,
    plot: Path | None,
) -> dict[str, Any]:
    worst = int(rollouts.total_rewards.argmin())
    result: dict[str, Any] = {
        "problem": made.system.name,
        "nodes": list(made.grid.shape),
        "n_nodes": made.grid.n_nodes,
        "spacing": list(made.recipe.spacing),
        "low": made.grid.box.low.tolist(),
        "high": made.grid.box.high.tolist(),
        "hold": made.recipe.hold,
        "lookahead": made.recipe.lookahead,
        "backup": backup,
        "sweeps": made.plan.sweeps,
        "converged": made.plan.converged,
        "residual": made.plan.residual,
        "clipped": made.n_clipped,
        "total_reward": float(rollouts.total_rewards[worst]),
        "steps": int(rollouts.steps[worst]),
        "seconds": round(made.seconds, 3),
        "rollouts": _episodes(rollouts),
    }
    if around is not None:
        result["nearby"] = {
            "seed": NEARBY_SEED,
            "mean": float(around.total_rewards.mean()),
            "worst": float(around.total_rewards.min()),
            "terminated": int(around.terminated.sum()),
            "rollouts": _episodes(around),
        }
    if certificate is not None:
        result["certificate"] = {
            "residual": certificate.residual,
            "at": certificate.worst_state.tolist(),
            "points": certificate.n_points,
            "lower": certificate.lower,
            "upper": certificate.upper,
            "cell_residuals": dict(
                zip(
                    ("median", "p90", "p99", "max"),
                    np.quantile(certificate.cell_residuals, [0.5, 0.9, 0.99, 1.0]).tolist(),
                    strict=True,
                )
            ),
        }
    if plot is not None:
        result["plot"] = str(plot)
    return result


def _episodes(rollouts: Rollouts) -> list[dict[str, Any]]:
    return [
        {
            "start": rollouts.starts[k].tolist(),
            "total_reward": float(rollouts.total_rewards[k]),
            "steps": int(rollouts.steps[k]),
            "terminated": bool(rollouts.terminated[k]),
        }
        for k in range(len(rollouts.steps))
    ]


def _print(system: System, result: dict[str, Any]) -> None:
    nodes = " x ".join(map(str, result["nodes"]))
    state = "converged" if result["converged"] else "NOT converged; allow more with --max-sweeps"
    print(f"{result['problem']}: planned with the true dynamics on {nodes} nodes")
    print(
        f"  {result['sweeps']} sweeps of {result['backup']}, residual {result['residual']:.1e} "
        f"({state}), {result['seconds']:.2f} s"
    )
    if result["clipped"]:
        print(f"  {result['clipped']} successors lay outside the planned box and were clipped to it")
    for episode in result["rollouts"]:
        start = ", ".join(f"{x:.3g}" for x in episode["start"])
        end = "terminated" if episode["terminated"] else "cut off"
        print(
            f"  from ({start}): total reward {episode['total_reward']:.4g} in {episode['steps']} "
            f"steps ({end}); the paper reports {system.paper_best:g}"
        )
    if "nearby" in result:
        around = result["nearby"]
        print(
            f"  from {len(around['rollouts'])} starts nearby: mean {around['mean']:.4g}, worst "
            f"{around['worst']:.4g}, {around['terminated']} terminated"
        )
    if "certificate" in result:
        found = result["certificate"]
        upper = f"as sampled at most {found['upper']:.3g}"
        if not np.isfinite(found["upper"]):
            upper = "not bounded from above with discount 1"
        print(
            f"  certificate: largest |Q - TQ| {found['residual']:.3g} at {found['points']} points; "
            f"|Q - Q*| is at least {found['lower']:.3g}, {upper}"
        )
    if "plot" in result:
        print(f"  picture: {result['plot']}")
