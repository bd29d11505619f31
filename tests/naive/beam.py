"""A beam, path by path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optimist.arrays import FloatArray
from optimist.planning import Flow, QFunction
from optimist.task import Task


class Path(NamedTuple):
    """What one sequence has come to."""

    total: float
    share: float  # of what follows, how much counts
    first: int
    state: FloatArray
    worth: float


def best_of_beam(
    task: Task, flow: Flow, plan: QFunction, root: FloatArray, *, width: int, levels: int, optimistic: bool
) -> tuple[int, float]:
    """The first action of the best path, and what that is worth."""
    paths, over = [Path(0.0, 1.0, -1, root, 0.0)], []
    for _ in range(levels):
        further = []
        for path in paths:
            for action in range(task.n_actions):
                found = flow(path.state[np.newaxis], action)
                assert found.uncertainty is not None
                after, control = found.next_states, task.controls[action : action + 1]
                unsure = float(found.uncertainty[0]) if optimistic else 0.0
                paid = float(task.rewards(path.state[np.newaxis], control, after)[0])
                total = path.total + path.share * ((1.0 - unsure) * paid + unsure * task.optimistic_value)
                first = action if path.first < 0 else path.first
                if task.terminal(after)[0]:
                    over.append(Path(total, 0.0, first, after[0], total))
                    continue
                share = path.share * (1.0 - unsure) * task.discount
                worth = total + share * float(plan.value(after)[0])
                further.append(Path(total, share, first, after[0], worth))
        paths = sorted(further, key=lambda path: -path.worth)[:width]
    best = max([*over, *paths], key=lambda path: path.worth)
    return best.first, best.worth
