"""The paper's table of best possible performances: planning with the true dynamics (Section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from optimist.experiments.problems import Problem, find_problem
from optimist.paper.order import Order
from optimist.planning import KnownPlan
from optimist.systems import PAPER

N_NEARBY = 50


@dataclass(frozen=True)
class BestRow:
    """The best possible performance of one problem."""

    problem: str
    paper: float | None
    paper_grid: float  # the paper's own uniform grid
    ours: float
    nearby: float  # mean of 50 starts


def best_possible(problem: str) -> BestRow:
    """Plan with the true dynamics, as the paper and as we do; the worst of the paper's starts."""
    found = find_problem(problem)
    ours, total = _planned(found, "ours")
    nearby = float(ours.roll_out(found.nearby_starts(N_NEARBY, seed=0)).total_rewards.mean())
    paper = found.system.paper_best if found.system is not None else None
    return BestRow(problem, paper, _planned(found, "paper")[1], total, nearby)


def best_total(problem: str) -> float:
    """Of `best_possible` only what is reached where all is chosen."""
    return _planned(find_problem(problem), "ours")[1]


def _planned(problem: Problem, recipe: str) -> tuple[KnownPlan, float]:
    made = problem.plan(problem.recipes[recipe])
    return made, float(made.roll_out(problem.starts).total_rewards.min())


def table_as_markdown(rows: Sequence[BestRow]) -> str:
    """The table of best possible performances."""
    lines = [
        "| problem | the paper | its grid, ours | chosen by us | mean of 50 starts nearby |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.problem} | {row.paper:g} | {row.paper_grid:.4g} | {row.ours:.4g} | {row.nearby:.4g} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def table(order: Order) -> list[Path]:
    """Make it."""
    rows = []
    for problem in PAPER:
        order.say(f"planning {problem} with the true dynamics")
        rows.append(best_possible(problem))
    return [order.written("table", table_as_markdown(rows))]
