"""All tables of results: `python -m benchmarks.noise.table`."""

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
    lines = headed("problem", "noise", "true dynamics and noise", "learned, mean", *map(str, SEEDS))
    for problem in PROBLEMS.split(","):
        for share in SHARES:
            differences = behind(found, problem, share)
            if differences:
                best = found[f"best/{problem}/{share}/0"]
                each = [shown(differences[seed], share) if seed in differences else "" for seed in SEEDS]
                middle = f"{shown(fmean(differences.values()), share)} %"
                truth = f"{best['mean']:.4g} ± {best['error']:.1g}"
                lines.append(row(named(problem), f"{100 * share:.0f} %", truth, middle, *each))
    return lines


def updates(found: dict[str, Any]) -> list[str]:
    """One line for every seed: how many updates after settling, and after how many transitions it settled."""
    lines = headed("seed", *map(named, PROBLEMS.split(",")))
    for seed in SEEDS:
        runs = [found.get(f"settled/{problem}/0.05/{seed}") for problem in PROBLEMS.split(",")]
        lines.append(row(seed, *("" if run is None else told(run) for run in runs)))
    return lines


def told(run: dict[str, Any]) -> str:
    """Of one run: updates since, and when it had settled."""
    return "never" if run["settled_at"] is None else f"{run['further']} ({run['settled_at']})"


def shown(behind: float, share: float) -> str:
    """Per cent, bold where that is more than is allowed."""
    said = f"{behind:.1f}".replace("-0.0", "0.0")
    return f"**{said}**" if behind > ALLOWED[share] else said


def variances(found: dict[str, Any]) -> list[str]:
    """One line for every seed: learned variances against the true ones, of all coordinates."""
    lines = headed("seed", *map(named, PROBLEMS.split(",")))
    for seed in SEEDS:
        runs = [found.get(f"estimate/{problem}/0.05/{seed}") for problem in PROBLEMS.split(",")]
        each = ["" if run is None else ", ".join(f"{ratio:.2f}" for ratio in run["ratios"]) for run in runs]
        lines.append(row(seed, *each))
    return lines


def misled(found: dict[str, Any], problem: str) -> list[str]:
    """One line for every seed: failures and mean totals."""
    kinds = ("with the mean", "in expectation", "learned")
    lines = headed("seed", "planned with the mean", "in expectation", "learned from nothing, 6 episodes")
    for seed in SEEDS:
        run = found.get(f"misled/{problem}/0.0/{seed}")
        if run is not None:
            each = (f"{100 * run[kind]['failures']:.1f} %, {run[kind]['mean']:.1f}" for kind in kinds)
            lines.append(row(seed, *each))
    return lines


def changes(found: dict[str, Any], share: float) -> list[str]:
    """One line for every seed: episodes since the change, and since when it learns."""
    lines = headed("seed", "episodes 6 to 12", "within 10 % in how many", "faded")
    for seed in SEEDS:
        run = found.get(f"changed/pendulum/{share}/{seed}")
        if run is not None:
            totals = ", ".join(f"{total:.1f}" for total in run["totals"][5:])
            lines.append(row(seed, totals, run["episodes"], run["faded"]))
    return lines


def stops(found: dict[str, Any]) -> list[str]:
    """One line for every seed: a rail with stops, and the same without."""
    heads = (
        "settled after",
        "for good",
        "total afterwards",
        "without stops: settled after",
        "total",
        "difference",
    )
    lines = headed("seed", *heads)
    for seed in SEEDS:
        run, free = (found.get(f"stopped/{kind}/0.0/{seed}") for kind in ("stops", "free"))
        if run is not None and free is not None:
            worse = 100.0 * (run["played"] / free["played"] - 1.0)
            said = (
                f"{abs(worse):.1f} % {'worse' if worse > 0.0 else 'better'}" if abs(worse) > 0.05 else "none"
            )
            first = run["settled_first"], run["settled_at"]
            each = *first, run["played"], free["settled_at"], free["played"], said
            lines.append(row(seed, *each))
    return lines


def members(found: dict[str, Any]) -> list[str]:
    """One line for every member of the suite and share of noise."""
    heads = "noise", "dynamics and noise known", "learned", "settled after", "noise found in", "variances"
    lines = headed("member", *heads)
    for name in sorted(found):
        part, problem, share, _ = name.split("/")
        if part == "member":
            run = found[name]
            truth = f"{run['true']:.4g} ± {run['error']:.1g}"
            ratios = "" if run["ratios"] is None else ", ".join(f"{ratio:.2f}" for ratio in run["ratios"])
            noise = f"{100 * float(share):.0f} %"
            settled = run["settled_at"] or "not"
            lines.append(row(problem, noise, truth, f"{run['learned']:.4g}", settled, run["noisy"], ratios))
    return lines


def named(problem: str) -> str:
    """In words."""
    return problem if problem == "cart-pole" else problem.replace("-", " ")


def headed(*heads: str) -> list[str]:
    """The first two lines of a table."""
    return [row(*heads), "|---" * len(heads) + "|"]


def row(*cells: object) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print them."""
    found = results()
    tables = rows(found), updates(found), variances(found), misled(found, "cliff"), misled(found, "rocks")
    for lines in (*tables, changes(found, 0.0), changes(found, 0.05), stops(found), members(found)):
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
