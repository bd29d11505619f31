"""A record as TensorBoard's event files: the curves that would have been logged while it was made."""

from __future__ import annotations

from pathlib import Path

from optimist.runs import RunStore
from optimist.runs.logs import TensorBoard, episode_scalars, plan_scalars


def write_tensorboard(store: RunStore, folder: Path) -> Path:
    """Event files in a folder. Those of an earlier export are removed: every curve is there once."""
    episodes = store.episodes()
    points = [(row.transitions, episode_scalars(episodes[:number])) for number, row in enumerate(episodes, 1)]
    points += [(row["n_transitions"], plan_scalars(row)) for row in store.plans()]
    folder.mkdir(parents=True, exist_ok=True)
    old = list(folder.glob("events.out.tfevents.*"))
    writer = TensorBoard(folder)
    try:
        for step, values in sorted(points, key=lambda point: point[0]):
            writer.write(values, step)
    finally:
        writer.close()
    for file in set(old) - {writer.file}:
        file.unlink()
    return folder
