"""A record as a Minari dataset, written by the Minari package: for offline learning with other tools."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from optimist.runs import RunStore

ROOT = "MINARI_DATASETS_PATH"  # where Minari looks for datasets


def write_minari(store: RunStore, folder: Path) -> Path:
    """A folder of datasets (MINARI_DATASETS_PATH) with this run in it: `optimist/PROBLEM/AGENT-seed-S-v0`.

    An episode that has not ended is cut off. Transitions that are void stay in: without them the states
    around them would not follow one another.
    """
    try:
        import minari  # noqa: PLC0415
        from minari.data_collector.episode_buffer import EpisodeBuffer  # noqa: PLC0415
    except ImportError as error:
        raise ValueError(
            "Datasets must be written by Minari, which is not installed; "
            "`pip install 'optimist[minari]'` brings it."
        ) from error
    header, episodes = store.header, _episodes(store)
    if not episodes:
        raise ValueError(
            f"The run in {store.directory} must have transitions to make a dataset of; got none."
        )
    name = dataset_id(header)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / name, ignore_errors=True)  # an earlier export
    buffers = [EpisodeBuffer(id=number, **columns) for number, columns in enumerate(episodes)]
    size = len(header["task"]["low"])
    with _looking_in(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that no environment comes along
        minari.create_dataset_from_buffers(
            name,
            buffers,
            algorithm_name=header["agent"],
            observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64),
            action_space=_actions(header["task"]),
            description=f"Learned by Optimist {header.get('optimist_version')}, seed {header['seed']}.",
            author="Optimist",
            author_email="none",
            code_permalink="none",
        )
    return folder


def dataset_id(header: dict[str, Any]) -> str:
    """What the dataset of a run is called."""
    problem = re.sub(r"[^A-Za-z0-9-]+", "-", str(header.get("problem") or "problem")).strip("-").lower()
    agent = re.sub(r"[^A-Za-z0-9-]+", "-", str(header["agent"])).strip("-").lower()
    return f"optimist/{problem or 'problem'}/{agent or 'agent'}-seed-{header['seed']}-v0"


def _actions(task: dict[str, Any]) -> gymnasium.Space[Any]:
    """One action per control, or any control within bounds."""
    if task.get("control_low") is None:
        return gymnasium.spaces.Discrete(len(task["controls"]))
    return gymnasium.spaces.Box(
        np.array(task["control_low"]), np.array(task["control_high"]), dtype=np.float64
    )


def _episodes(store: RunStore) -> list[dict[str, Any]]:
    """Columns per episode, as Minari has them: one observation more than there are actions."""
    numbers = np.array([row[0] for row in store.record.chains["transitions"].rows], dtype=np.int64)
    transitions = store.transitions()
    found = []
    for episode in np.unique(numbers):
        rows = [transitions[k] for k in np.flatnonzero(numbers == episode)]
        ended = [row.terminated or row.truncated for row in rows]
        found.append(
            {
                "observations": np.array([row.state for row in rows] + [rows[-1].next_state]),
                "actions": np.array([row.action for row in rows]),
                "rewards": [row.reward for row in rows],
                "terminations": [row.terminated for row in rows],
                "truncations": [row.truncated for row in rows[:-1]] + [rows[-1].truncated or not ended[-1]],
                "infos": {},
            }
        )
    return found


@contextmanager
def _looking_in(folder: Path) -> Iterator[None]:
    before = os.environ.get(ROOT)
    os.environ[ROOT] = str(folder.resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ[ROOT]
        else:
            os.environ[ROOT] = before
