"""Problem: something to learn, ours by name, or anybody's as FILE.py:FUNCTION or by its Gymnasium id.

A file is the user's own code. It is run because the user named it, on the command line or in a campaign, and
never because a recorded run does: a record only says what its problem was called.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from optimist.arrays import FloatArray
from optimist.discretisation import Discretisation
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.gymnasium_ids import make, require_id
from optimist.learner import with_task
from optimist.planning import BackupName, KnownPlan, Limits, Rollouts, plan, roll_out
from optimist.planning.solve import DEFAULT_LIMITS, OnSweep
from optimist.runs.loop import begin
from optimist.steps import Dynamics
from optimist.systems import SYSTEMS, find_system
from optimist.systems.system import Recipe, System
from optimist.task import Task

OWN = re.compile(r".*\.py:[^\W\d]\w*", re.DOTALL)  # FILE.py:FUNCTION
OURS = Recipe(Discretisation(), lookahead=None)  # nothing is fixed
N_STARTS = 3  # of an environment that chooses them itself
START_SEED = 0


@dataclass(frozen=True, eq=False)
class Problem:
    """What can be learned, and what is known of it besides. Nothing but the task is told to an agent."""

    name: str  # as it is recorded: mountain-car, or my_robot.py:make_env
    env: gymnasium.Env[Any, Any]
    task: Task
    axis_names: tuple[str, ...]  # [d]
    dynamics: Dynamics | None = None
    system: System | None = None  # if it is one of ours
    source: str | None = None  # FILE.py:FUNCTION as it was named, if it is not

    @property
    def label(self) -> str:
        """Its name as a part of a path: my_robot.make_env."""
        return label_of(self.name)

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """How it may be planned with its true dynamics: as we do everything, or as the paper did."""
        return {"ours": OURS, **(self.system.recipes if self.system is not None else {})}

    @property
    def best_known(self) -> float | None:
        """The best total reward anybody found."""
        return None if self.system is None else self.system.best_known

    @cached_property
    def starts(self) -> FloatArray:
        """Where its episodes begin, or some of the places where they do.  [n, d]"""
        return self.system.starts if self.system is not None else self._reset(N_STARTS, START_SEED)

    def nearby_starts(self, count: int, *, seed: int) -> FloatArray:
        """More of them, seeded.  [count, d]"""
        if self.system is not None:
            return self.system.nearby_starts(count, seed=seed)
        return self._reset(count, seed + 1)

    def plan(
        self,
        recipe: Recipe,
        *,
        backup: str = BackupName.V_EXACT,
        limits: Limits = DEFAULT_LIMITS,
        on_sweep: OnSweep | None = None,
        noise: Sequence[float] | None = None,
    ) -> KnownPlan:
        """Plan with its true dynamics: the best possible performance.

        `noise` is a share of a usual displacement, one per coordinate, of a problem of ours.
        """
        if self.dynamics is None:
            raise ValueError(
                f"The dynamics must be known to plan with them; got none for {self.name}. "
                "`optimist.adapt(..., dynamics=...)` gives them; `optimist learn` does without."
            )
        return plan(
            self.task,
            self.dynamics,
            recipe.grid,
            starts=self.starts,
            depth=recipe.lookahead,
            backup=backup,
            limits=limits,
            on_sweep=on_sweep,
            noise=None if noise is None or self.system is None else self.system.noise(noise),
        )

    def roll_out(self, made: KnownPlan, starts: FloatArray, *, seed: int = 0) -> Rollouts:
        """Episodes under a plan of `plan`, with the noise that was planned for, if any."""
        if made.noise is None or self.system is None:
            return made.roll_out(starts)
        noise, box = made.noise, self.system.observation_box
        return roll_out(self.task, made.dynamics, made.sights, starts, noise=noise, box=box, seed=seed)

    def _reset(self, count: int, seed: int) -> FloatArray:
        seen = [begin(self.env, self.task, seed, episode) for episode in range(1, count + 1)]
        return np.unique(seen, axis=0)


def label_of(name: str) -> str:
    """A problem's name as a part of a path: my_robot.make_env, ALE.Pong-v5, CartPole-v1.x=1."""
    return re.sub(r"[^\w.=+-]+", ".", name.replace(".py:", ".")).strip(".")


def find_problem(text: str) -> Problem:
    """The problem called `text`: one of ours, what the function in FILE.py:FUNCTION returns, or an id."""
    require_problem(text)
    if OWN.fullmatch(text):
        file, _, function = text.rpartition(":")
        return _own_problem(Path(file), function)
    if text not in SYSTEMS:
        return _described(text, make(text))
    system = find_system(text)
    return Problem(text, SystemEnvironment(text), system.task, system.axis_names, system.dynamics, system)


def require_problem(text: str) -> None:
    """Raise ValueError when `text` cannot be a problem; nobody's code is run."""
    if OWN.fullmatch(text):
        file = text.rpartition(":")[0]
        if not Path(file).is_file():
            raise ValueError(f"The file of a problem must exist; got {file}.")
    elif text not in SYSTEMS:
        require_id(text)


def _own_problem(file: Path, function: str) -> Problem:
    text = f"{file.name}:{function}"
    made = _called(file, function)
    if not isinstance(made, gymnasium.Env):
        got = " ".join(repr(made).split())
        raise ValueError(f"{text} must return an environment; got {got}.")
    return _described(text, made, source=f"{file}:{function}")


def _described(text: str, made: gymnasium.Env[Any, Any], source: str | None = None) -> Problem:
    """An environment with its task, and what else it says of itself."""
    made, task = with_task(made)
    known: dict[str, Any] = {
        name: made.get_wrapper_attr(name) if made.has_wrapper_attr(name) else None
        for name in ("axis_names", "dynamics")
    }
    names = known["axis_names"] or tuple(f"coordinate {axis}" for axis in range(task.box.n_dims))
    return Problem(text, made, task, tuple(names), known["dynamics"], source=source)


def _called(file: Path, function: str) -> object:
    """What the function in the file returns; what goes wrong in there is said in one sentence."""
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # it may import what lies beside it
    spec = spec_from_file_location(f"optimist_problem_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        with redirect_stdout(sys.stderr):  # standard output is ours
            spec.loader.exec_module(module)
            if not callable(getattr(module, function, None)):
                raise AttributeError(f"there is no function called {function}")
            return getattr(module, function)()
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{file.name}:{function} must return an environment; got {type(error).__name__}: {said}."
        ) from error
