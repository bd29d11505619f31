"""System: a benchmark problem whole, true dynamics included. The agent never sees one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.dynamics import Dynamics
from optimist.task import Task

# of single states, compiled: (state [d], control [k], next state [d] out)
CompiledStep = Callable[[FloatArray, FloatArray, FloatArray], None]
# and (state [d], control [k], next state [d]) -> reward, terminated
CompiledOutcome = Callable[[FloatArray, FloatArray, FloatArray], tuple[float, bool]]


@dataclass(frozen=True)
class Recipe:
    """How to discretise a problem for planning: data, with its reason."""

    nodes: tuple[int, ...]  # [d]
    spacing: tuple[float, ...]  # [d], powers of `Grid.spaced`; 1 is uniform
    limits: tuple[float, ...] | None = None  # [d], plan on +- these instead of the task's box
    hold: int = 1  # steps a control is held while planning
    lookahead: int = 0  # steps tried through the dynamics when acting; 0: interpolated Q-values
    reason: str = ""


@dataclass(frozen=True, eq=False)
class System:
    """One of the benchmark problems: what the agent is told (`task`), and what it is not."""

    name: str
    gymnasium_id: str
    summary: str
    task: Task
    dynamics: Dynamics
    step: CompiledStep  # the same dynamics, one state at a time
    outcome: CompiledOutcome  # the task's reward and end, one transition at a time
    observation_box: Box  # every state the dynamics can reach; at least `task.box`
    starts: FloatArray  # [n_starts, d], the paper's
    start_spread: FloatArray  # [d], `nearby_starts` are uniform within +- this of a start
    axis_names: tuple[str, ...]  # [d], with units
    recipes: dict[str, Recipe]  # "paper" and "ours" at least
    paper_best: float  # total reward the paper reports for planning with the true dynamics
    best_known: float  # best total reward anybody found from the paper's start

    def nearby_starts(self, count: int, *, seed: int) -> FloatArray:
        """`count` seeded starts scattered around the paper's, the paper's starts in turn.  [count, d]"""
        stream = np.random.default_rng([seed, count])
        offsets = stream.uniform(-1.0, 1.0, size=(count, self.starts.shape[1]))
        centres = self.starts[np.arange(count) % len(self.starts)]
        return self.task.box.wrap(centres + offsets * self.start_spread)


def stepped(
    step_rows: CompiledStep, states: FloatArray, controls: FloatArray, *, n_axes: int, n_controls: int
) -> FloatArray:
    """All `states` [n, d] stepped by compiled code, which itself checks nothing.  [n, d]"""
    states = np.ascontiguousarray(states, dtype=np.float64)
    controls = np.ascontiguousarray(controls, dtype=np.float64)
    if states.ndim != 2 or states.shape[1] != n_axes:
        raise ValueError(f"States must have shape (n, {n_axes}); got {states.shape}.")
    if controls.shape not in ((1, n_controls), (len(states), n_controls)):
        raise ValueError(
            f"Controls must have shape ({len(states)}, {n_controls}) or (1, {n_controls}); "
            f"got {controls.shape}."
        )
    next_states = np.empty_like(states)
    step_rows(states, controls, next_states)
    return next_states
