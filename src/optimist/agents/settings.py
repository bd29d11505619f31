"""Settings of the agent: checked, frozen, and the file format of a run at the same time.

`PRESETS["ours"]` is the default for every problem; `PRESETS["paper"]` is what the paper says, as far as it
says it. Problems differ in their `Discretisation` only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from optimist.discretisation import Count, Discretisation, Positive
from optimist.documents import Settings, first_error, parse_json, read_document
from optimist.given import brief, told
from optimist.models import GPSettings, ModelSettings, StoppingRule
from optimist.models.learners import find_learner
from optimist.planning import Chooser, Limits, Planner
from optimist.task import Task

# the paper's exp, grid and noexp, by their rule of uncertainty; None: the preset's
AGENTS = {"gp-rmax-exp": None, "gp-rmax-grid": "visited-cells", "gp-rmax-noexp": "none"}

KnownnessName = Literal["cell-variance", "gp-variance", "visited-cells", "none"]


class PlanningOptions(Settings):
    """How the Bellman equation is solved, and how its solution is acted on."""

    tolerance: Positive = 1e-2  # residual, against the mean size of a reward
    max_sweeps: Count = 500
    depth: Annotated[int, Field(ge=0)] | None = (
        None  # steps searched ahead; None: affordable; 0: act on Q-values
    )
    rehearse: bool = True  # try layouts out in the model; False: keep to the first
    challengers: Count = 1  # layouts tried at every update besides the one in use; between episodes more


class AgentSettings(Settings):
    """All choices of a GP-RMAX agent."""

    knownness: KnownnessName = "cell-variance"
    first_plans: tuple[Count, ...] = (
        5,
        8,
        12,
        16,
        20,
        26,
        32,
        40,
        50,
        62,
        76,
        94,
        115,
    )  # transitions at which to plan before the regular ones
    replan_every: Count = 25  # the paper's K, counted from the last of `first_plans`
    grid: Discretisation = Discretisation()
    model: SerializeAsAny[ModelSettings] = GPSettings()
    planning: PlanningOptions = PlanningOptions()
    stopping: StoppingRule = StoppingRule()

    @field_validator("model", mode="before")
    @classmethod
    def _of_its_learner(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = find_learner(value.get("learner", "gp"))
        try:
            return kind.settings.model_validate(value)
        except ValidationError as error:
            raise ValueError(_sentence(error, kind.settings, "model.")) from error

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

    def due_again(self, n_transitions: int, done: int, n_since: int) -> bool:
        """Whether to plan after so many transitions, `done` of them planned with.

        Plans come in quick succession after waking, as they do in the beginning: `n_since` were made since.
        """
        first = self.first_plans
        if n_since + 1 >= len(first) or n_transitions <= first[-1]:
            return False
        return n_transitions - done >= first[n_since + 1] - first[n_since]

    def not_planned(self, n_transitions: int) -> str:
        """What to say to whoever asks an agent that has not planned yet."""
        first = [*self.first_plans, self.replan_every][0]
        return (
            f"The agent must have planned before it can be asked; got {n_transitions} transitions, "
            f"and the first plan comes after {first}. Call `learn` first."
        )

    def planner(self, task: Task) -> Planner:
        """How such an agent plans."""
        return Planner(task, limits=Limits(self.planning.tolerance, self.planning.max_sweeps, relative=True))

    def chooser(self, task: Task) -> Chooser:
        """What such an agent plans on."""
        return Chooser(task, self.grid, self.planning.depth)


PRESETS: dict[str, AgentSettings] = {
    "ours": AgentSettings(),
    "paper": AgentSettings(
        knownness="gp-variance",
        first_plans=(),
        replan_every=50,
        model=GPSettings(kind="per-action", subset=150, linear=False, mirror=False, max_basis=1000),
        grid=Discretisation(hold=1),
        planning=PlanningOptions(depth=0, rehearse=False),
    ),
}


def settings_of(
    agent: str,
    *,
    preset: str = "ours",
    grid: Discretisation | None = None,
    file: Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> AgentSettings:
    """The settings of a named agent: a preset, the problem's grid, then what `file` (TOML or JSON) says.

    `changes` says the same as a file would: `{"replan_every": 50, "grid": {"nodes": [61, 61]}}`.
    """
    variant = find_agent(agent)
    if preset not in PRESETS:
        raise ValueError(f"The preset must be one of {', '.join(PRESETS)}; got {preset!r}.")
    chosen = PRESETS[preset]
    document = chosen.model_dump(mode="json") | {"knownness": variant or chosen.knownness}
    if grid is not None:
        document["grid"] = grid.model_dump(mode="json")
    for given in ([] if file is None else [read_document(file, "The settings")]) + _said(changes):
        model, learner = given.get("model"), document["model"]["learner"]
        if isinstance(model, dict) and model.get("learner", learner) != learner:
            del document["model"]  # another learner has other settings
        document = _merged(document, given)
    return parse_settings(document)


def _said(changes: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Changes as a file would say them."""
    if changes is None:
        return []
    try:
        return [parse_json(json.dumps(dict(changes)), "The settings", "`changes`")]
    except TypeError as error:
        raise ValueError(f"The settings must be what JSON can say; got {told(error)}.") from error


def find_agent(name: str) -> str | None:
    """The rule of uncertainty of the agent called `name`; None: its preset's."""
    if not isinstance(name, str) or name not in AGENTS:
        raise ValueError(f"The agent must be one of {', '.join(AGENTS)}; got {brief(name)}.")
    return AGENTS[name]


def parse_settings(document: dict[str, Any]) -> AgentSettings:
    """Checked settings; what is wrong is said in one sentence."""
    try:
        return AgentSettings.model_validate(document)
    except ValidationError as error:
        raise ValueError(_sentence(error, AgentSettings)) from error


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merged(base[key], value) if both else value
    return merged


def _sentence(error: ValidationError, owner: type[BaseModel], prefix: str = "") -> str:
    """What is wrong with settings of the class `owner`."""
    where, kind, said = first_error(error)
    if kind == "value_error":
        return said
    if kind == "extra_forbidden":
        if "." in where:
            owner = type(owner.model_fields[where.split(".", maxsplit=1)[0]].default)
        known = ", ".join(owner.model_fields)
        return f"The settings must not have unknown keys; got {prefix + where!r}. Known here: {known}."
    return f"The setting {prefix + where!r} {said}"
