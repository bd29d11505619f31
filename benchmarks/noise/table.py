"""What totals came to, as the page of results shows it: `python -m benchmarks.noise.table`."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.noise.__main__ import PROBLEMS, results

SHARES = (0.01, 0.05, 0.1)
SEEDS = range(10)


def behind(found: dict[str, Any], problem: str, share: float) -> dict[int, float]:
    """Of every seed that was run, how far its mean total lies below that with the truth, in per cent."""
    best = found.get(f"best/{problem}/{share}/0")
    runs = {seed: found.get(f"totals/{problem}/{share}/{seed}") for seed in SEEDS}
    if best is None:
        return {}
    return {seed: 100.0 * (run["mean"] / best["mean"] - 1.0) for seed, run in runs.items() if run is not None}


def rows(found: dict[str, Any]) -> list[str]:
    """One line for every problem and share of noise, in Markdown."""
    heads = ("problem", "noise", "true dynamics and noise", "learned, median", *map(str, SEEDS))
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for problem in PROBLEMS.split(","):
        for share in SHARES:
            differences = behind(found, problem, share)
            if differences:
                best = found[f"best/{problem}/{share}/0"]
                each = " | ".join(f"{differences[seed]:.1f}" if seed in differences else "" for seed in SEEDS)
                middle = f"{median(differences.values()):.1f} % behind"
                truth = f"{best['mean']:.2f} ± {best['error']:.2f}"
                lines.append(
                    f"| {problem.replace('-', ' ')} | {100 * share:.0f} % | {truth} | {middle} | {each} |"
                )
    return lines


if __name__ == "__main__":
    print("\n".join(rows(results())))
