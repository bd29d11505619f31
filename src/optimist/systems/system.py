"""System: a benchmark problem whole, true dynamics included. The agent never sees one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import STEP, STEP_ROWS, Outcome, Step, compiled_for, step_rows
from optimist.discretisation import Discretisation
from optimist.given import array_of
from optimist.steps import Dynamics
from optimist.systems import gymnasium_id
from optimist.systems.drawing import Drawing, bars
from optimist.task import Task

USUAL_SEED, USUAL_EPISODES, USUAL_STEPS = 0, 20, 50  # of what a usual displacement is measured on
FEW = 32  # states: handing the step to a compiled loop takes as long as stepping so many


@dataclass(frozen=True)
class Recipe:
    """How somebody planned a problem: what is fixed of its discretisation, and how it was acted on."""

    grid: Discretisation
    lookahead: int | None = 0  # steps tried through the dynamics when acting; 0: Q-values; None: affordable


@dataclass(frozen=True, eq=False)
class System:
    """One of the benchmark problems: what the agent is told (`task`), and what it is not.

    Its motion is `dynamics`, batched, or `step`, compiled for single states; both where Sarsa shall learn it.
    """

    name: str
    summary: str
    task: Task
    starts: FloatArray  # [n_starts, d]
    start_spread: FloatArray  # [d], `nearby_starts` are uniform within +- this of a start
    axis_names: tuple[str, ...]  # [d], with units
    dynamics: Dynamics = None  # type: ignore[assignment]  # made of `step` when not given
    step: Step | None = None  # the same dynamics, one state at a time
    outcome: Outcome | None = None  # the task's reward and end, one transition at a time
    observation_box: Box = None  # type: ignore[assignment]  # every state it can reach; by default the task's
    drawing: Drawing = None  # type: ignore[assignment]  # how it looks; by default its coordinates as bars
    recipes: Mapping[str, Recipe] = field(default_factory=dict)  # "paper", where there is one
    paper_best: float | None = None  # total reward the paper reports for planning with the true dynamics
    best_known: float | None = None  # best total reward anybody found from the first start

    def __post_init__(self) -> None:
        if self.dynamics is None and self.step is None:
            raise ValueError(f"The system {self.name} must have `dynamics` or `step`; got neither.")
        if self.dynamics is None:
            object.__setattr__(self, "dynamics", self._stepped)
        if self.observation_box is None:
            object.__setattr__(self, "observation_box", self.task.box)
        if self.drawing is None:
            object.__setattr__(self, "drawing", bars(self.task.box))

    @property
    def gymnasium_id(self) -> str:
        """Such as optimist/MountainCar-v0."""
        return gymnasium_id(self.name)

    def nearby_starts(self, count: int, *, seed: int) -> FloatArray:
        """`count` seeded starts scattered around its starts, which take turns.  [count, d]"""
        stream = np.random.default_rng([seed, count])
        offsets = stream.uniform(-1.0, 1.0, size=(count, self.starts.shape[1]))
        centres = self.starts[np.arange(count) % len(self.starts)]
        return self.task.box.wrap(centres + offsets * self.start_spread)

    @cached_property
    def usual_displacement(self) -> FloatArray:
        """Of each coordinate in a step, root mean square, under random controls from its starts.  [d]"""
        stream, box = np.random.default_rng(USUAL_SEED), self.task.box
        states = self.nearby_starts(USUAL_EPISODES, seed=USUAL_SEED)
        squared, count = np.zeros(box.n_dims), 0
        for _ in range(min(USUAL_STEPS, self.task.max_steps)):
            controls = self.task.controls[stream.integers(self.task.n_actions, size=len(states))]
            after = self.dynamics(states, controls)
            squared += (box.displacement(states, after) ** 2).sum(axis=0)
            count += len(states)
            states = after[~self.task.terminal(after)]
            if not len(states):
                break
        return np.sqrt(squared / count)

    def noise(self, share: float | Sequence[float], name: str = "`noise`") -> FloatArray:
        """Standard deviations [d] of noise that is this share of a usual displacement, of each or of all."""
        shares = array_of(name, share)
        if shares.shape not in ((), (self.task.box.n_dims,)):
            raise ValueError(f"{name} must be a number or one per coordinate; got shape {shares.shape}.")
        if not (np.isfinite(shares).all() and (shares >= 0.0).all()):
            raise ValueError(f"{name} must be finite and not negative; got {shares.tolist()}.")
        return np.asarray(shares * self.usual_displacement)

    def _stepped(self, states: FloatArray, controls: FloatArray) -> FloatArray:
        """All `states` [n, d] stepped by compiled code, which itself checks nothing.  [n, d]"""
        n_axes, n_controls = self.task.box.n_dims, self.task.controls.shape[1]
        states = np.ascontiguousarray(states, dtype=np.float64)
        controls = np.ascontiguousarray(controls, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != n_axes:
            raise ValueError(f"States must have shape (n, {n_axes}); got {states.shape}.")
        if controls.shape not in ((1, n_controls), (len(states), n_controls)):
            raise ValueError(
                f"Controls must have shape ({len(states)}, {n_controls}) or (1, {n_controls}); "
                f"got {controls.shape}."
            )
        next_states, step = np.empty_like(states), compiled_for(self.step, STEP)
        if len(states) > FEW:
            compiled_for(step_rows, STEP_ROWS)(step, states, controls, next_states)
        else:
            for k in range(len(states)):
                step(states[k], controls[k % len(controls)], next_states[k])
        return next_states
