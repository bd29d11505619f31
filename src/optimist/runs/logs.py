"""What is logged of a run while it goes on: numbers by name and step, as TensorBoard, CSV, JSON or text.

Names and files are those of Stable-Baselines3, so that runs of both can be looked at side by side. What is
recorded in a run directory can be turned into the same files later (`optimist export`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any, Protocol
from weakref import finalize

import numpy as np

from optimist.agents.agent import Update
from optimist.given import brief
from optimist.runs.record import EpisodeRow

RECENT = 100  # episodes that a mean is over, as in Stable-Baselines3
Scalars = dict[str, float]


class Writer(Protocol):
    """Somewhere to write numbers to."""

    def write(self, values: Scalars, step: int) -> None:
        """Numbers by name, after so many transitions."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class Logger:
    """Collects numbers by name and writes them, all together, when they are dumped."""

    def __init__(self, folder: str | Path | None = None, writers: Mapping[str, Writer] | None = None) -> None:
        self.dir = None if folder is None else str(folder)
        self._writers = dict(writers or {})
        self._values: dict[str, tuple[float, tuple[str, ...]]] = {}

    def __bool__(self) -> bool:
        """Whether anything is written."""
        return bool(self._writers)

    def record(self, key: str, value: Any, exclude: str | Sequence[str] | None = None) -> None:
        """Note a number for the next `dump`; `exclude` names formats that it is not for."""
        formats = (exclude,) if isinstance(exclude, str) else tuple(exclude or ())
        if isinstance(value, bool | int | float | np.number | np.bool_):
            self._values[key] = float(value), formats

    def dump(self, step: int = 0) -> None:
        """Write what was noted since the last time."""
        for name, writer in self._writers.items():
            values = {key: value for key, (value, left_out) in self._values.items() if name not in left_out}
            if values:
                writer.write(values, step)
        self._values.clear()

    def close(self) -> None:
        """Close all files."""
        for writer in self._writers.values():
            writer.close()


def configure(folder: str | Path, format_strings: Sequence[str] = ("stdout", "csv")) -> Logger:
    """A logger that writes into `folder`: `progress.csv`, `progress.json` (an object a line), TensorBoard's.

    Args:
        folder: where to; it is made if need be.
        format_strings: any of `stdout`, `csv`, `json`, `tensorboard`.

    """
    unknown = [name for name in format_strings if name not in FORMATS]
    if unknown or isinstance(format_strings, str):
        got = brief(unknown[0] if not isinstance(format_strings, str) else format_strings)
        raise ValueError(f"`format_strings` must be a list of {', '.join(FORMATS)}; got {got}.")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return Logger(place, {name: FORMATS[name](place) for name in format_strings})


class Printed:
    """As a small table on standard output."""

    def __init__(self, folder: Path) -> None:
        pass

    def write(self, values: Scalars, step: int) -> None:
        """Print them."""
        shown = {"time/total_timesteps": float(step)} | values
        wide = max(map(len, shown))
        print("\n".join(f"| {name:<{wide}} | {shown[name]:<12.6g} |" for name in sorted(shown)), flush=True)

    def close(self) -> None:
        """Nothing is open."""


class CommaSeparated:
    """`progress.csv`: a row per dump, a column per name; written anew when a new name comes up."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "progress.csv"
        self._rows: list[dict[str, Any]] = []
        self._names: list[str] = ["time/total_timesteps"]

    def write(self, values: Scalars, step: int) -> None:
        """Add a row."""
        row = {"time/total_timesteps": step} | values
        news = [name for name in row if name not in self._names]
        self._names += news
        self._rows.append(row)
        if news:
            self._file.write_text(as_csv(self._names, self._rows), "utf-8")
        else:
            with self._file.open("a", encoding="utf-8", newline="") as out:
                out.write(as_csv(self._names, [row]).split("\n", 1)[1])

    def close(self) -> None:
        """Nothing is open."""


def as_csv(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under a line of names; what a row does not have is left empty. Numbers are written in full."""
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


class JsonLines:
    """`progress.json`: one object a line."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "progress.json"
        self._file.write_text("", "utf-8")

    def write(self, values: Scalars, step: int) -> None:
        """Add a line."""
        said = {name: value if np.isfinite(value) else None for name, value in values.items()}
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"time/total_timesteps": step} | said, allow_nan=False) + "\n")

    def close(self) -> None:
        """Nothing is open."""


class TensorBoard:
    """Event files, written by tensorboardX: at once, without its thread."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX.event_file_writer import EventsWriter  # noqa: PLC0415
            from tensorboardX.proto.event_pb2 import Event  # noqa: PLC0415
        except ImportError as error:
            raise ValueError(
                "TensorBoard files must be written by tensorboardX, which is not installed; "
                "`pip install 'optimist[tensorboard]'` brings it."
            ) from error
        self._event = Event
        self._writer = EventsWriter(str(folder / "events"))
        self.file = Path(self._writer._file_name)
        self._close = finalize(self, self._writer.close)  # whoever forgets to

    def write(self, values: Scalars, step: int) -> None:
        """Add a point to every curve."""
        event = self._event(wall_time=time(), step=step)
        for name, value in values.items():
            event.summary.value.add(tag=name, simple_value=value)
        self._writer.write_event(event)
        self._writer.flush()

    def close(self) -> None:
        """All of it is on disk."""
        self._close()


FORMATS: dict[str, Any] = {
    "stdout": Printed,
    "csv": CommaSeparated,
    "json": JsonLines,
    "tensorboard": TensorBoard,
}


def next_folder(logs: str | Path, name: str) -> Path:
    """Where the next run of that name is logged: `name_1`, `name_2` and so on, as in Stable-Baselines3."""
    taken = [file.name.rpartition("_")[2] for file in Path(logs).glob(f"{name}_*")]
    return Path(logs) / f"{name}_{max([int(text) for text in taken if text.isdecimal()], default=0) + 1}"


class Logs:
    """The logger of a session: one that was given, or one for TensorBoard, or one that writes nothing."""

    def __init__(self) -> None:
        self.logger = Logger()
        self._given = False

    def give(self, logger: Logger) -> None:
        """Log to that one from now on."""
        self.logger, self._given = logger, True

    def begin(self, tensorboard_log: str | Path | None, name: str) -> Logger:
        """The logger to use now; one for TensorBoard goes on until it is renewed."""
        if tensorboard_log is not None and not self._given and not self.logger:
            self.logger = configure(next_folder(tensorboard_log, name), ["tensorboard"])
        return self.logger

    def renew(self) -> None:
        """What comes now is another run; one that was given stays."""
        if not self._given:
            self.close()

    def close(self) -> None:
        """Close all files."""
        self.logger.close()
        self.logger, self._given = Logger(), False


# --- what there is to log ---


def episode_scalars(rows: Sequence[EpisodeRow]) -> Scalars:
    """Of the last of these episodes."""
    row, recent = rows[-1], rows[-RECENT:]
    found = {
        "rollout/ep_rew": row.total_reward,
        "rollout/ep_len": float(row.steps),
        "rollout/ep_rew_mean": float(np.mean([one.total_reward for one in recent])),
        "rollout/ep_len_mean": float(np.mean([one.steps for one in recent])),
        "time/episodes": float(row.episode),
    }
    return found if row.expected is None else found | {"rollout/ep_rew_expected": row.expected}


def plan_scalars(row: Mapping[str, Any]) -> Scalars:
    """Of one plan, as it is in the record."""
    said = {f"train/{name}": row.get(name) for name in PLANNED}
    return {name: float(value) for name, value in said.items() if value is not None}


PLANNED = (
    "mean_uncertainty", "mean_drift", "uncertainty_drift", "fit_seconds", "predict_seconds", "plan_seconds",
    "sweeps", "residual", "settled",
)  # fmt: skip


def update_scalars(update: Update) -> Scalars:
    """The same, of an update that was just made."""
    return plan_scalars(vars(update) | (vars(update.drift) if update.drift is not None else {}))
