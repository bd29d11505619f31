"""Run all benchmarks, or those named; write results.json and the tables of README.md."""

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
    report,
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
        results = report.read()
    for bench in chosen:
        print(f"{bench.__name__}: {(bench.__doc__ or '').splitlines()[0]}", file=sys.stderr)
        found = bench.run()
        results |= found
        for name, row in found.items():
            print(f"  {name}: {report.text_of(row)}", file=sys.stderr)
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    report.write(results, last_run=_versions())


def _versions() -> str:
    return (
        f"Python {platform.python_version()}, numba {numba.__version__}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, QuantEcon {quantecon.__version__}, {platform.machine()}"
    )


if __name__ == "__main__":
    main()
