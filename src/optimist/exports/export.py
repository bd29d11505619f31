"""The formats that a record can be written in, and where it is written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from optimist.exports.datasets import write_minari
from optimist.exports.events import write_tensorboard
from optimist.exports.rows import write_csv, write_jsonl
from optimist.given import brief
from optimist.runs import RunStore

# name -> what writes it, and what it is written to unless somebody says: a folder, or a file
FORMATS: dict[str, tuple[Callable[[RunStore, Path], Path], str]] = {
    "csv": (write_csv, "csv"),
    "jsonl": (write_jsonl, "run.jsonl"),
    "tensorboard": (write_tensorboard, "tensorboard"),
    "minari": (write_minari, "minari"),
}
FOLDER = "exports"  # in the directory of the run


def export(run: str | Path, to: str = "csv", out: str | Path | None = None) -> Path:
    """Write what a run has recorded for another program; where it was written.

    Args:
        run: the directory of the run.
        to: `csv` (a folder with transitions, episodes and plans), `jsonl` (one file, an object a line),
            `tensorboard` (a folder with event files), `minari` (a folder of datasets, with one in it).
        out: where to; by default below `exports` in the directory of the run. What is there is written over.

    """
    if not isinstance(to, str) or to not in FORMATS:
        raise ValueError(f"`to` must be one of {', '.join(FORMATS)}; got {brief(to)}.")
    write, name = FORMATS[to]
    directory = Path(run)
    with RunStore.open(directory, writing=False) as store:
        place = Path(out) if out is not None else directory / FOLDER / name
        try:
            return write(store, place)
        except OSError as error:
            raise ValueError(f"`out` must be writable; got {place}: {error.strerror or error}.") from error
