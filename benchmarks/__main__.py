"""Run all benchmarks; write results.json and the table in README.md."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import numba
import numpy as np
import quantecon
import scipy

from benchmarks import (
    bench_gp,
    bench_growth,
    bench_learning,
    bench_memory,
    bench_model,
    bench_sarsa,
    bench_solve,
    bench_sweep,
)
from benchmarks.measuring import Result

HERE = Path(__file__).parent
ALL = (
    bench_sweep,
    bench_solve,
    bench_growth,
    bench_memory,
    bench_gp,
    bench_model,
    bench_learning,
    bench_sarsa,
)


def main() -> None:
    chosen = [bench for bench in ALL if not sys.argv[1:] or bench.__name__.split(".")[-1] in sys.argv[1:]]
    results: dict[str, Result] = {}
    if chosen != list(ALL):
        results = json.loads((HERE / "results.json").read_text())
    for bench in chosen:
        print(f"{bench.__name__}: {(bench.__doc__ or '').splitlines()[0]}", file=sys.stderr)
        found = bench.run()
        results |= found
        for name, row in found.items():
            print(f"  {name}: {_line(row)}", file=sys.stderr)
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    readme = HERE / "README.md"
    kept = readme.read_text().split(MARK)[0] if readme.exists() else ""
    readme.write_text(kept + MARK + "\n\n" + _table(results))


MARK = "<!-- what follows is written by `make bench` -->"


def _line(row: Result) -> str:
    return ", ".join(f"{key} {_number(value)}" for key, value in row.items())


def _number(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name} {_number(item)}" for name, item in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _table(results: dict[str, Result]) -> str:
    versions = (
        f"Python {platform.python_version()}, numba {numba.__version__}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, QuantEcon {quantecon.__version__}, {platform.machine()}"
    )
    lines = [f"Last run: {versions}.", "", "| what | ours | peers | ratio |", "|---|---|---|---|"]
    for name, row in results.items():
        if "ours_mb" in row:
            rest = {key: value for key, value in row.items() if key != "ours_mb"}
            lines.append(f"| {name} | {_number(row['ours_mb'])} MB | {_line(rest)} | |")
            continue
        peers = row["peers"]
        assert isinstance(peers, dict)
        ours = _seconds(row["ours_s"])
        others = "; ".join(f"{peer} {_seconds(seconds)}" for peer, seconds in peers.items())
        lines.append(f"| {name} | {ours} | {others} | {_ratios(row)} |")
    return "\n".join(lines) + "\n"


def _ratios(row: Result) -> str:
    if row["ratio"] is None:
        return ""
    text = f"{_number(row['ratio'])} against {row['against']}"
    if "ratio_both_cores" in row:
        text += f"; {_number(row['ratio_both_cores'])} with both cores"
    if "variance_error" in row:
        text += f"; errors {_number(row['mean_error'])} (mean), {_number(row['variance_error'])} (variance)"
    if "error" in row:
        text += f"; error {_number(row['error'])}, {row['sweeps']} sweeps against {row['jacobi_sweeps']}"
    return text


def _seconds(value: object) -> str:
    assert isinstance(value, float)
    if value < 1e-6:
        return f"{value * 1e9:.3g} ns"
    return f"{value * 1e3:.3g} ms"


if __name__ == "__main__":
    main()
