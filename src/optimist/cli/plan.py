"""`optimist plan`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from optimist.cli.axes import FIRST_TWO, Axes, numbers, two_axes
from optimist.cli.output import print_json, progress
from optimist.cli.problems import PROBLEM_HELP, AsJson
from optimist.experiments.problems import Problem, find_problem
from optimist.planning import BackupName, KnownPlan, Limits, Rollouts
from optimist.planning.certificate import Certificate
from optimist.systems.system import Recipe

NEARBY_SEED = 0
MANY_EPISODES = 200  # with noise


Recipes = Annotated[str, typer.Option(help="'ours': the discretisation is chosen; 'paper': as printed.")]
BUDGET = "Nodes in all, at most 101 per axis; a last, polished plan has three times as many."
Budget = Annotated[int | None, typer.Option(help=BUDGET)]
Nodes = Annotated[str | None, typer.Option(metavar="N,N,...", help="Nodes per axis, such as 100,100.")]
SPACING = "'uniform', or a power per axis: above 1 puts more nodes near the middle."
Spacing = Annotated[str | None, typer.Option(metavar="P,P,...", help=SPACING)]
HOLD = "Plan with every control held for so many steps; else until a cell is crossed."
Hold = Annotated[int | None, typer.Option(help=HOLD)]
LOOKAHEAD = "Act by trying so many steps ahead; 0 acts on interpolated Q-values."
BackedUp = Annotated[str, typer.Option(help=f"Which Bellman backup: {', '.join(BackupName)}.")]
CERTIFY = "Bound the distance from the optimum, controls held."
Nearby = Annotated[int, typer.Option(help="Roll out from so many seeded starts near the paper's, too.")]
NOISE = (
    "Noise of every step (of our problems), as a share of a usual displacement: one number, or one per axis."
)
Noise = Annotated[str | None, typer.Option(metavar="S[,S,...]", help=NOISE)]
PLOT = "Draw value function and policy (.png, .pdf, .svg)."


def plan(
    problem: Annotated[str, typer.Argument(help=PROBLEM_HELP)],
    recipe: Recipes = "ours",
    budget: Budget = None,
    nodes: Nodes = None,
    spacing: Spacing = None,
    hold: Hold = None,
    lookahead: Annotated[int | None, typer.Option(help=LOOKAHEAD)] = None,
    backup: BackedUp = BackupName.V_EXACT.value,
    tolerance: Annotated[float, typer.Option(help="Stop at this residual.")] = 1e-4,
    max_sweeps: Annotated[int, typer.Option(help="Stop after so many sweeps.")] = 2000,
    certify: Annotated[bool, typer.Option("--certify", help=CERTIFY)] = False,
    nearby: Nearby = 0,
    noise: Noise = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=PLOT)] = None,
    axes: Axes = FIRST_TWO,
    as_json: AsJson = False,
) -> None:
    """Plan with the true dynamics, then roll out: the best possible performance.

    Example: optimist plan mountain-car --plot plan.png
    """
    found = find_problem(problem)
    chosen = _recipe(found, recipe, nodes, spacing, hold)
    if budget is not None:
        grid = chosen.grid.model_copy(update={"budget": _at_least(1, "--budget", budget)})
        grid.nodes_for(found.task.box.n_dims)
        chosen = replace(chosen, grid=grid)
    if lookahead is not None:
        chosen = replace(chosen, lookahead=_at_least(0, "--lookahead", lookahead))
    _at_least(0, "--nearby", nearby)
    _known_backup(backup)
    limits, shares = Limits(tolerance, max_sweeps), _shares(found, noise)
    if plot is not None:
        from optimist.views.plan_figure import check_target  # noqa: PLC0415

        check_target(plot)
    if plot is not None or axes != FIRST_TWO:
        two_axes(found, axes)
    with progress(f"planning {problem}") as say:
        say("predicting successors")

        def listen(sweeps: int, change: float) -> None:
            if np.isfinite(change):
                say(f"sweep {sweeps}, change {change:.1e}")

        made = found.plan(chosen, backup=backup, limits=limits, on_sweep=listen, noise=shares)
        say("rolling out")
        rollouts = found.roll_out(made, found.starts)
        around = found.roll_out(made, found.nearby_starts(nearby, seed=NEARBY_SEED)) if nearby else None
        often = _often(found, made) if made.noise is not None else None
        say("certifying")
        certificate = made.certify() if certify else None
    if plot is not None:
        _draw(found, made, rollouts, two_axes(found, axes), plot)
    result = _result(made, rollouts) | {"problem": found.name}
    if around is not None:
        result["nearby"] = _nearby(around)
    if often is not None:
        result["noise"] = often
    if certificate is not None:
        result["certificate"] = _certified(certificate)
    if plot is not None:
        result["plot"] = str(plot)
    if as_json:
        print_json(result)
    else:
        _print(found, result)


def _recipe(problem: Problem, name: str, nodes: str | None, spacing: str | None, hold: int | None) -> Recipe:
    if name not in problem.recipes:
        known = ", ".join(problem.recipes)
        raise ValueError(f"--recipe must be one of {known} for {problem.name}; got {name!r}.")
    recipe = problem.recipes[name]
    n_dims = problem.task.box.n_dims
    changed: dict[str, Any] = {}
    if nodes is not None:
        counts = numbers("--nodes", nodes, n_dims, whole=True)
        if min(counts) < 2:
            raise ValueError(f"--nodes must be at least 2 on every axis; got {nodes}.")
        changed["nodes"] = tuple(int(count) for count in counts)
    if spacing == "uniform":
        changed["spacing"] = (1.0,) * n_dims
    elif spacing is not None:
        powers = numbers("--spacing", spacing, n_dims, whole=False)
        if min(powers) <= 0.0:
            raise ValueError(f"--spacing must be positive on every axis; got {spacing}.")
        changed["spacing"] = tuple(powers)
    if hold is not None:
        changed["hold"] = _at_least(1, "--hold", hold)
    return replace(recipe, grid=recipe.grid.model_copy(update=changed))


def _shares(problem: Problem, noise: str | None) -> list[float] | None:
    """Noise, one share per coordinate."""
    if noise is None:
        return None
    if problem.system is None:
        raise ValueError(f"--noise must be of a problem of ours; got {problem.name}. Call `optimist.plan`.")
    n_dims = problem.task.box.n_dims
    given = noise if "," in noise else ",".join([noise] * n_dims)
    try:
        shares = numbers("--noise", given, n_dims, whole=False)
    except ValueError:
        raise ValueError(
            f"--noise must be one finite number, or one per axis ({n_dims}); got {noise!r}."
        ) from None
    if min(shares) < 0.0:
        raise ValueError(f"--noise must not be negative; got {noise}.")
    widest = (np.array(shares) * problem.system.noise(1.0) / problem.task.box.widths).max()
    if widest > 1.0:
        most = float(f"{max(shares) / widest:.2g}")
        raise ValueError(f"--noise must not be wider than the box, so at most about {most:g}; got {noise}.")
    return shares


def _often(problem: Problem, made: KnownPlan) -> dict[str, Any]:
    """What many noisy episodes come to."""
    assert made.noise is not None
    starts = problem.starts[np.arange(MANY_EPISODES) % len(problem.starts)]
    totals = problem.roll_out(made, starts).total_rewards
    return {
        "deviations": made.noise.tolist(),
        "episodes": MANY_EPISODES,
        "total_reward": float(totals.mean()),
        "spread": float(totals.std(ddof=1)),
    }


def _at_least(least: int, option: str, value: int) -> int:
    if value < least:
        raise ValueError(f"{option} must be at least {least}; got {value}.")
    return value


def _known_backup(name: str) -> None:
    if name not in set(BackupName):
        raise ValueError(f"--backup must be one of {', '.join(BackupName)}; got {name!r}.")


def _draw(
    problem: Problem, made: KnownPlan, rollouts: Rollouts, axes: tuple[int, int] | None, file: Path
) -> None:
    from optimist.views.plan_figure import Slice, draw_line, draw_plan, save_figure  # noqa: PLC0415

    nodes = " x ".join(map(str, made.grid.shape))
    title = (
        f"{problem.name}, true model, {nodes} nodes: "
        f"total reward {rollouts.total_rewards[0]:.4g} in {rollouts.steps[0]} steps"
    )
    shown = made.q_function, problem.task.controls, rollouts.paths[:, 0], title
    if axes is None:
        save_figure(draw_line(*shown, problem.axis_names), file)
    else:
        save_figure(draw_plan(*shown, Slice(axes, problem.starts[0], problem.axis_names)), file)


def _result(made: KnownPlan, rollouts: Rollouts) -> dict[str, Any]:
    worst = int(rollouts.total_rewards.argmin())
    layout, grid = made.layout, made.grid
    return {
        "nodes": list(grid.shape),
        "n_nodes": grid.n_nodes,
        "layout": layout.name,
        "tried": [list(pair) for pair in made.tried],
        "expected": made.expected,
        "low": grid.box.low.tolist(),
        "high": grid.box.high.tolist(),
        "hold": layout.holding.most,
        "until_crossed": layout.holding.until_crossed,
        "mean_hold": round(made.mean_hold, 3),
        "lookahead": getattr(made.policy, "depth", 0),
        "backup": str(made.planner.backup),
        "sweeps": made.plan.sweeps,
        "converged": made.plan.converged,
        "residual": made.plan.residual,
        "clipped": made.n_clipped,
        "total_reward": float(rollouts.total_rewards[worst]),
        "steps": int(rollouts.steps[worst]),
        "seconds": round(made.seconds, 3),
        "rollouts": rollouts.rows(),
    }


def _nearby(around: Rollouts) -> dict[str, Any]:
    return {
        "seed": NEARBY_SEED,
        "mean": float(around.total_rewards.mean()),
        "worst": float(around.total_rewards.min()),
        "terminated": int(around.terminated.sum()),
        "rollouts": around.rows(),
    }


def _certified(certificate: Certificate) -> dict[str, Any]:
    quantiles = np.quantile(certificate.cell_residuals, [0.5, 0.9, 0.99, 1.0]).tolist()
    return {
        "residual": certificate.residual,
        "at": certificate.worst_state.tolist(),
        "points": certificate.n_points,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "cell_residuals": dict(zip(("median", "p90", "p99", "max"), quantiles, strict=True)),
    }


def _print(problem: Problem, result: dict[str, Any]) -> None:
    nodes = " x ".join(map(str, result["nodes"]))
    state = "converged" if result["converged"] else "NOT converged; allow more with --max-sweeps"
    print(f"{result['problem']}: planned with the true dynamics on {nodes} nodes, {result['layout']}")
    if len(result["tried"]) > 1:
        tried = ", ".join(f"{name} {total:.4g}" for name, total in result["tried"])
        print(f"  tried out: {tried}")
    print(
        f"  {result['sweeps']} sweeps of {result['backup']}, residual {result['residual']:.1e} "
        f"({state}), {result['seconds']:.2f} s"
    )
    if result["clipped"]:
        print(f"  {result['clipped']} successors lay outside the planned box and were clipped to it")
    paper = problem.system.paper_best if problem.system is not None else None
    reported = "" if paper is None else f"; the paper reports {paper:g}"
    quiet = "without noise, " if "noise" in result else ""
    for row in result["rollouts"]:
        print(f"  {quiet}{Rollouts.told(row)}{reported}")
    if "nearby" in result:
        around = result["nearby"]
        print(
            f"  from {len(around['rollouts'])} starts nearby: mean {around['mean']:.4g}, worst "
            f"{around['worst']:.4g}, {around['terminated']} terminated"
        )
    if "noise" in result:
        noisy = result["noise"]
        deviations = ", ".join(f"{one:.3g}" for one in noisy["deviations"])
        print(
            f"  with noise of ({deviations}), {noisy['episodes']} episodes: "
            f"mean {noisy['total_reward']:.4g}, spread {noisy['spread']:.3g}"
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
