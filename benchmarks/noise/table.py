"""Totals, and updates after settling, as results show them: `python -m benchmarks.noise.table`."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from benchmarks.noise.__main__ import PROBLEMS, results

SHARES = (0.01, 0.05, 0.1)
SEEDS = range(10)
ALLOWED = {0.01: 10.0, 0.05: 10.0, 0.1: 20.0}  # per cent behind; what is more is said in bold


def behind(found: dict[str, Any], problem: str, share: float) -> dict[int, float]:
    """Of every seed that was run, how far its mean total lies below that with the truth, in per cent."""
    best = found.get(f"best/{problem}/{share}/0")
    runs = {seed: found.get(f"totals/{problem}/{share}/{seed}") for seed in SEEDS}
    if best is None:
        return {}
    return {seed: 100.0 * (run["mean"] / best["mean"] - 1.0) for seed, run in runs.items() if run is not None}


def rows(found: dict[str, Any]) -> list[str]:
    """One line for every problem and share of noise, in Markdown."""
    heads = ("problem", "noise", "true dynamics and noise", "learned, mean", *map(str, SEEDS))
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for problem in PROBLEMS.split(","):
        for share in SHARES:
            differences = behind(found, problem, share)
            if differences:
                best = found[f"best/{problem}/{share}/0"]
                each = " | ".join(
                    shown(differences[seed], share) if seed in differences else "" for seed in SEEDS
                )
                middle = f"{shown(fmean(differences.values()), share)} %"
                truth = f"{best['mean']:.4g} ± {best['error']:.1g}"
                name = problem if problem == "cart-pole" else problem.replace("-", " ")
                lines.append(f"| {name} | {100 * share:.0f} % | {truth} | {middle} | {each} |")
    return lines


def updates(found: dict[str, Any]) -> list[str]:
    """One line for every seed: how many updates after settling, and after how many transitions it settled."""
    problems = PROBLEMS.split(",")
    heads = ("seed", *(name if name == "cart-pole" else name.replace("-", " ") for name in problems))
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for seed in SEEDS:
        runs = [found.get(f"settled/{problem}/0.05/{seed}") for problem in problems]
        each = ["" if run is None else told(run) for run in runs]
        lines.append(f"| {seed} | {' | '.join(each)} |")
    return lines


def told(run: dict[str, Any]) -> str:
    """Of one run: updates since, and when it had settled."""
    return "never" if run["settled_at"] is None else f"{run['further']} ({run['settled_at']})"


def shown(behind: float, share: float) -> str:
    """Per cent, bold where that is more than is allowed."""
    said = f"{behind:.1f}".replace("-0.0", "0.0")
    return f"**{said}**" if behind > ALLOWED[share] else said


if __name__ == "__main__":
    print("\n".join([*rows(results()), "", *updates(results())]))
