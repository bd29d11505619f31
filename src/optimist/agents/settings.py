"""Settings of the agent: checked, frozen, and the file format of a run at the same time.

`PRESETS["ours"]` is the default for every problem; `PRESETS["paper"]` is what the paper says, as far as it
says it. Problems differ in their `GridSettings` only.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from optimist.gp import Metric
from optimist.grid import Grid
from optimist.models import ModelSettings, RegressorSettings, StoppingRule
from optimist.planning import Stopping, Tables
from optimist.planning.search import affordable_depth, require_affordable
from optimist.task import Task

DEFAULT_NODES = {
    1: 401,
    2: 101,
    3: 41,
    4: 21,
    5: 11,
    6: 7,
}  # per axis, by dimension; odd: a node in the middle

AGENTS = {"gp-rmax-exp": "exp", "gp-rmax-grid": "grid", "gp-rmax-noexp": "noexp"}

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, strict=True)]
KnownnessName = Literal["cell-variance", "gp-variance", "visited-cells", "none"]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GridSettings(_Settings):
    """How states and time are cut up for planning: the one thing that differs between problems."""

    nodes: tuple[Annotated[int, Field(ge=2, strict=True)], ...] | None = (
        None  # [d]; None: a count that suits the dimension
    )
    spacing: tuple[Positive, ...] | None = None  # [d], powers of `Grid.spaced`; None: uniform
    # [d], plan on +- these where the task's box is wider; nothing on a periodic axis
    limits: tuple[Positive, ...] | None = None
    hold: Count = 1  # steps a control is held while planning, for when a step is short against a cell

    def nodes_for(self, n_dims: int) -> tuple[int, ...]:
        """Nodes per axis; a ValueError when they do not fit."""
        for name in ("nodes", "spacing", "limits"):
            given = getattr(self, name)
            if given is not None and len(given) != n_dims:
                raise ValueError(f"`grid.{name}` must have one entry per axis ({n_dims}); got {len(given)}.")
        return self.nodes or (DEFAULT_NODES[n_dims],) * n_dims


class ModelOptions(_Settings):
    """How the dynamics are learned; see `optimist.models`."""

    kind: Literal["joint", "per-action"] = "joint"
    metric: Metric = Metric.AXES
    subset: Annotated[int, Field(ge=2)] = 300  # points the likelihood is optimised on
    max_basis: Count = 1000
    basis_tolerance: Annotated[float, Field(ge=0.0)] = 1e-2
    refit_growth: Annotated[float, Field(ge=1.0)] = 1.25


class PlanningOptions(_Settings):
    """How the Bellman equation is solved, and how its solution is acted on."""

    tolerance: Positive = 1e-2  # residual, against the mean size of a reward
    max_sweeps: Count = 500
    depth: Annotated[int, Field(ge=0)] | None = (
        None  # steps searched ahead; None: affordable; 0: act on Q-values
    )

    def search_depth(self, n_actions: int, grid: Grid) -> int:
        """Steps to search ahead when acting."""
        return affordable_depth(n_actions, grid) if self.depth is None else self.depth


class StoppingOptions(_Settings):
    """When learning stops: both drifts below their tolerances, `patience` times in a row; when it goes on."""

    mean_drift_tolerance: Positive = 0.05
    uncertainty_drift_tolerance: Positive = 0.01
    patience: Count = 2
    surprise: Positive = 0.2  # a prediction off by this much of the spread of displacements wakes the learner


class AgentSettings(_Settings):
    """All choices of a GP-RMAX agent."""

    knownness: KnownnessName = "cell-variance"
    first_plans: tuple[Count, ...] = (5, 10, 20, 35)  # transitions at which to plan before the regular ones
    replan_every: Count = 25  # the paper's K, counted from the last of `first_plans`
    grid: GridSettings = GridSettings()
    model: ModelOptions = ModelOptions()
    planning: PlanningOptions = PlanningOptions()
    stopping: StoppingOptions = StoppingOptions()

    @model_validator(mode="after")
    def _increasing(self) -> Self:
        if list(self.first_plans) != sorted(set(self.first_plans)):
            raise ValueError(f"`first_plans` must be increasing; got {list(self.first_plans)}.")
        return self

    def due(self, n_transitions: int) -> bool:
        """Whether to plan after so many transitions."""
        if n_transitions in self.first_plans:
            return True
        past = n_transitions - (self.first_plans[-1] if self.first_plans else 0)
        return past > 0 and past % self.replan_every == 0

    @property
    def model_settings(self) -> ModelSettings:
        """The model-learner's."""
        regressor = RegressorSettings(
            metric=self.model.metric,
            subset=self.model.subset,
            max_basis=self.model.max_basis,
            basis_tolerance=self.model.basis_tolerance,
            refit_growth=self.model.refit_growth,
        )
        return ModelSettings(self.model.kind == "joint", regressor, self.knownness)

    def solver_stopping(self, tables: Tables) -> Stopping:
        """The planner's: its tolerance goes with the size of the rewards, whatever their unit."""
        size = float(np.abs(tables.rewards).mean())
        return Stopping(self.planning.tolerance * (size or 1.0), self.planning.max_sweeps)

    @property
    def stopping_rule(self) -> StoppingRule:
        """The paper's delta_1 and delta_2."""
        return StoppingRule(**self.stopping.model_dump(exclude={"surprise"}))


PRESETS: dict[str, AgentSettings] = {
    "ours": AgentSettings(),
    "paper": AgentSettings(
        knownness="gp-variance",
        first_plans=(),
        replan_every=50,
        model=ModelOptions(kind="per-action", subset=150),
        planning=PlanningOptions(depth=0),
    ),
}


def settings_of(
    agent: str, *, preset: str = "ours", grid: GridSettings | None = None, file: Path | None = None
) -> AgentSettings:
    """The settings of a named agent: a preset, the problem's grid, then what `file` (TOML or JSON) says."""
    if agent not in AGENTS:
        raise ValueError(f"The agent must be one of {', '.join(AGENTS)}; got {agent!r}.")
    if preset not in PRESETS:
        raise ValueError(f"The preset must be one of {', '.join(PRESETS)}; got {preset!r}.")
    chosen = PRESETS[preset]
    variant = {"exp": chosen.knownness, "grid": "visited-cells", "noexp": "none"}[AGENTS[agent]]
    document = chosen.model_dump(mode="json") | {"knownness": variant}
    if grid is not None:
        document["grid"] = grid.model_dump(mode="json")
    if file is not None:
        document = _merged(document, _read(file))
    return parse_settings(document)


def parse_settings(document: dict[str, Any]) -> AgentSettings:
    """Checked settings; what is wrong is said in one sentence."""
    try:
        return AgentSettings.model_validate(document)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from error


def check_settings(settings: AgentSettings, task: Task) -> None:
    """Raise ValueError where settings do not fit the task."""
    settings.grid.nodes_for(task.box.n_dims)
    if settings.planning.depth:
        require_affordable(task.n_actions, settings.planning.depth)
    if settings.grid.hold > task.max_steps:
        raise ValueError(f"`grid.hold` must be at most {task.max_steps}; got {settings.grid.hold}.")


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"The settings file must be readable text; got {file}: {error}.") from error
    try:
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = "JSON" if file.suffix == ".json" else "TOML"
        raise ValueError(f"The settings file must be valid {kind}; got {file}: {error}.") from error
    if not isinstance(document, dict):
        raise ValueError(f"The settings file must hold a table of settings; got {file}.")
    return document


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merged(base[key], value) if both else value
    return merged


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    # a union names its branches too; the user knows only the keys
    keys = [str(part) for part in first["loc"]]
    where = ".".join(keys)
    if first["type"] == "extra_forbidden":
        owner = AgentSettings.model_fields[keys[0]].default if len(keys) > 1 else AgentSettings()
        known = ", ".join(type(owner).model_fields)
        return f"The settings must not have unknown keys; got {where!r}. Known here: {known}."
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    return f"The setting {where!r} must be valid: {first['msg']}; got {first['input']!r}."
