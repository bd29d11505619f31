"""Planning with known dynamics: the best possible performance (the paper's Section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from optimist.arrays import FloatArray
from optimist.discretisation import Discretisation, Layout
from optimist.given import array_of, brief, require_callable, require_kind, whole
from optimist.planning.backups import BackupName
from optimist.planning.between import BENT, bend
from optimist.planning.blur import require_noise
from optimist.planning.certificate import Certificate, certify
from optimist.planning.chooser import Chooser
from optimist.planning.contest import Contest
from optimist.planning.flow import Flow
from optimist.planning.planner import Planned, Planner
from optimist.planning.rehearsal import Rehearsal, from_around, rehearse
from optimist.planning.rollout import Rollouts, roll_out
from optimist.planning.sights import Sights
from optimist.planning.solve import DEFAULT_LIMITS, Limits, OnSweep
from optimist.steps import Dynamics, imagined_through, known, shaken
from optimist.task import Task

DEFAULT_DISCRETISATION = Discretisation()
NEGLIGIBLE = 1e-9  # of the box: noise that is no noise


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownPlan(Planned):
    """A plan made with known dynamics."""

    planner: Planner
    dynamics: Dynamics
    # Total of the rehearsal that it won, a mean over starts, if there was one; -inf when from some start
    # every plan leads a thousand widths of the box away: dynamics that blow up
    expected: float | None
    tried: tuple[tuple[str, float], ...]  # every layout that was rehearsed, and what it came to
    seconds: float  # predicting, tabulating, solving, rehearsing
    second: Planned | None = None  # the plan that came second, acted on where it is better

    @cached_property
    def sights(self) -> Sights:
        """The policy, looking as far ahead as is best from where an episode begins."""
        imagined = shaken(imagined_through(self.dynamics), self.noise)
        return Sights.of(self, imagined, others=(self.second,))

    def roll_out(self, starts: ArrayLike, *, seed: int = 0) -> Rollouts:
        """Episodes of the system itself under the plan, with the noise that was planned for."""
        starts = _starts(self.task, starts)
        return roll_out(self.task, self.dynamics, self.sights, starts, noise=self.noise, seed=seed)

    def certify(self) -> Certificate:
        """The residual, off the nodes, of the equation that was solved (controls held and all)."""
        return certify(self.q_function, self.task, self.step, holding=self.layout.holding, noise=self.noise)


def plan(
    task: Task,
    dynamics: Dynamics,
    discretisation: Discretisation = DEFAULT_DISCRETISATION,
    *,
    starts: ArrayLike | None = None,
    depth: int | None = None,
    backup: str = BackupName.V_EXACT,
    limits: Limits = DEFAULT_LIMITS,
    on_sweep: OnSweep | None = None,
    noise: ArrayLike | None = None,
) -> KnownPlan:
    """Plan a task whose dynamics are known.

    Args:
        task: what is wanted.
        dynamics: (states [n, d], controls [n, k] or [1, k]) -> next states [n, d].
        discretisation: what is fixed of nodes, spacing, limits and hold.
        starts: states [n, d] that the plan shall be good from. With them, what is not fixed is chosen:
            several layouts are planned on and tried out. Without, the nodes are uniform.
        depth: steps looked ahead when acting; by default what is affordable, 0 acts on interpolated Q-values.
        backup: which Bellman equation; see `optimist.planning.backups`.
        limits: tolerance and most sweeps of the solver.
        on_sweep: called after every sweep with their number and the largest change.
        noise: standard deviation [d] of where a step leads, around what `dynamics` say; with it the plan is
            made in expectation. None, zeros or next to nothing: steps lead where they say.

    """
    began = perf_counter()
    require_kind("`task`", task, Task)
    require_callable("`dynamics`", dynamics)
    require_kind("`discretisation`", discretisation, Discretisation, "Discretisation(nodes=(21, 21))")
    require_kind("`limits`", limits, Limits, "Limits(tolerance=1e-4)")
    depth = None if depth is None else whole("`depth`", depth)
    planner, step = Planner(task, backup, limits), known(dynamics, task.controls)
    chooser = Chooser(task, discretisation, depth)
    shaking = None if noise is None else require_noise(noise, chooser.first().grid)
    shaking = None if shaking is None else np.where(shaking > NEGLIGIBLE * task.box.widths, shaking, 0.0)
    shaking = None if shaking is None or not shaking.any() else shaking
    if shaking is not None and (shaking > task.box.widths).any():
        raise ValueError(
            f"`noise` must be narrower than the box, whose widths are {task.box.widths.tolist()}; got "
            f"{brief(noise)}."
        )

    def attempt(layout: Layout) -> Planned:
        planner.require_fits(layout)
        flow = None
        if layout.depth != 0:
            try:
                flow = Flow.through(layout.grid, step, task.n_actions)
            except ValueError:  # beyond an end dynamics need not mean anything
                ended = task.terminal(layout.grid.nodes)
                flow = Flow.through(layout.grid, step, task.n_actions, ended=ended)
        bent = task.control_box is not None and bend(task, dynamics, layout.grid) > BENT
        directly = dynamics if bent else None
        return planner.plan(step, layout, through=flow, on_sweep=on_sweep, directly=directly, noise=shaking)

    imagined = shaken(imagined_through(dynamics), shaking)

    kept, expected = attempt(chooser.first()), None
    tried: tuple[tuple[str, float], ...] = ()
    second: Planned | None = None
    if starts is not None:
        begin = from_around(task, _starts(task, starts))

        def try_out(made: Planned, against: Rehearsal | None) -> Rehearsal:
            return rehearse(task, Sights.of(made, imagined, rough=True), imagined, begin, against=against)

        won = Contest(chooser, attempt, try_out, begin.states[:0]).among_all(kept)
        kept, tried, second = won.planned, won.tried, won.second
        sights = Sights.of(kept, imagined, others=(second,))
        expected = rehearse(task, sights, imagined, begin).total
    return KnownPlan(
        **vars(kept),
        planner=planner,
        dynamics=dynamics,
        expected=expected,
        tried=tried,
        seconds=perf_counter() - began,
        second=second,
    )


def _starts(task: Task, given: ArrayLike) -> FloatArray:
    """Finite states, one in each row.  [n, d]"""
    starts = np.atleast_2d(array_of("`starts`", given))
    if starts.ndim != 2 or starts.shape[1] != task.box.n_dims or not len(starts):
        raise ValueError(f"`starts` must have shape (n, {task.box.n_dims}); got {starts.shape}.")
    if not np.isfinite(starts).all():
        raise ValueError(f"`starts` must be finite; got {starts.tolist()}.")
    return starts
