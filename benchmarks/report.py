"""The tables of README.md, from results.json; `python -m benchmarks.report` writes them and measures nothing.

README.md is written by hand but for its tables. Each stands between `<!-- results: a; b -->` and
`<!-- end -->`, and has a column for every result whose name begins with one of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Result

HERE = Path(__file__).parent
TABLE = re.compile(r"(<!-- results: (.+?) -->\n).*?(<!-- end -->\n)", re.DOTALL)
LAST_RUN = re.compile(r"^Last run: .*$", re.MULTILINE)
OURS = "optimist"
LABELS = {  # the others are called what they are called in results.json
    "ratio_both_cores": "ratio, both cores",
    "ratio_scipy": "ratio against scipy CSR",
    "error": "error left",
    "jacobi_sweeps": "sweeps of Jacobi",
    "mean_error": "largest error of the mean",
    "variance_error": "largest error of the variance",
}


def main() -> None:
    write(read())


def read() -> dict[str, Result]:
    """What was measured last."""
    results: dict[str, Result] = json.loads((HERE / "results.json").read_text())
    return results


def write(results: dict[str, Result], last_run: str | None = None) -> None:
    """Put `results` into README.md, and what they were measured with, if they are new."""
    readme = HERE / "README.md"
    text = with_tables(readme.read_text(), results)
    if last_run is not None:
        text = LAST_RUN.sub(lambda _: f"Last run: {last_run}.", text)
    readme.write_text(text)


def with_tables(text: str, results: dict[str, Result]) -> str:
    """The text with each of its tables made anew."""
    shown: set[str] = set()

    def renewed(found: re.Match[str]) -> str:
        begin, prefixes, end = found.groups()
        rows = {name: row for name, row in results.items() if name.startswith(tuple(prefixes.split("; ")))}
        shown.update(rows)
        return f"{begin}\n{_table({name.removeprefix(prefixes): row for name, row in rows.items()})}\n{end}"

    text = TABLE.sub(renewed, text)
    if missing := results.keys() - shown:
        raise ValueError(f"Every result must be in a table of README.md; got none for {sorted(missing)}.")
    return text


def text_of(row: Result) -> str:
    """A result in one line."""
    return ", ".join(f"{label} {cell}" for part in PARTS for label, cell in part(row).items())


def _table(columns: dict[str, Result]) -> str:
    """A column for each result; rows are who was measured, then what else is known."""
    labels = list(dict.fromkeys(label for part in PARTS for row in columns.values() for label in part(row)))
    cells = [{label: cell for part in PARTS for label, cell in part(row).items()} for row in columns.values()]
    lines = [[label, *(column.get(label, "") for column in cells)] for label in labels]
    head, *body = (
        f"| {' | '.join(line)} |\n" for line in [["", *(name.lstrip(", ") for name in columns)], *lines]
    )
    return "".join([head, "|---" * (len(columns) + 1) + "|\n", *body])


def _ours(row: Result) -> dict[str, str]:
    if "ours_mb" in row:
        return {OURS: _megabytes(row["ours_mb"])}
    if row["ours_s"] in _peers(row).values():
        return {}  # all are ours: other sizes of the same
    return {OURS: _seconds(row["ours_s"])}


def _others(row: Result) -> dict[str, str]:
    return {name: _seconds(seconds) for name, seconds in _peers(row).items()}


def _ratio(row: Result) -> dict[str, str]:
    return {f"ratio against {row['against']}": _number(row["ratio"])} if "against" in row else {}


def _more(row: Result) -> dict[str, str]:
    cells = {}
    for key, value in row.items():
        if key in {"ours_s", "ours_mb", "peers", "ratio", "against"}:
            continue
        if key.endswith("_mb"):
            cells[key.removesuffix("_mb").replace("_", " ")] = _megabytes(value)
        elif key.endswith("_s"):
            cells[key.removesuffix("_s").replace("_", " ")] = _seconds(value)
        else:
            cells[LABELS.get(key, key)] = _number(value)
    return cells


PARTS: tuple[Callable[[Result], dict[str, str]], ...] = (_ours, _others, _ratio, _more)


def _peers(row: Result) -> dict[str, object]:
    peers = row.get("peers", {})
    assert isinstance(peers, dict)
    return peers


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _megabytes(value: object) -> str:
    return f"{_number(value)} MB"


def _seconds(value: object) -> str:
    assert isinstance(value, float)
    if value < 1e-6:
        return f"{value * 1e9:.3g} ns"
    return f"{value * 1e3:.3g} ms" if value < 1.0 else f"{value:.3g} s"


if __name__ == "__main__":
    main()
