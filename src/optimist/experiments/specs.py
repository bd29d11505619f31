"""Experiments as data: every run has a stable id, and a place where it is recorded."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from optimist.agents import AGENTS, PRESETS
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.systems import SYSTEMS

ALL_AGENTS = (*AGENTS, *SARSA_AGENTS)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, strict=True)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunSpec(_Data):
    """One run: all that decides what comes out of it."""

    experiment: Name
    problem: str
    agent: str
    seed: Seed
    episodes: Count
    preset: str = "ours"

    @field_validator("problem", "agent", "preset")
    @classmethod
    def _known(cls, value: str, info: Any) -> str:
        known = {"problem": tuple(SYSTEMS), "agent": ALL_AGENTS, "preset": tuple(PRESETS)}[info.field_name]
        if value not in known:
            raise ValueError(f"`{info.field_name}` must be one of {', '.join(known)}; got {value!r}.")
        return value

    @property
    def id(self) -> str:
        """Such as figure4/mountain-car/gp-rmax-exp/seed-3."""
        return f"{self.experiment}/{self.problem}/{self.agent}/seed-{self.seed}"

    def directory(self, root: Path) -> Path:
        """Where it is recorded."""
        return root / self.id


class Group(_Data):
    """Runs that differ in problem, agent and seed only."""

    problems: tuple[str, ...] = Field(min_length=1)
    agents: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] | int  # a list, or a number n for 0 to n - 1
    episodes: Count
    preset: str = "ours"

    @field_validator("seeds", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        listed = value if isinstance(value, list | tuple) else [value - 1] if type(value) is int else [None]
        bad = [seed for seed in listed if type(seed) is not int or seed < 0]
        if bad or not listed:
            got = bad[0] if bad and isinstance(value, list | tuple) else value
            raise ValueError(
                f"`seeds` must be a list of whole numbers from 0, or a number of at least 1; got {got!r}."
            )
        return value

    def specs(self, experiment: str) -> list[RunSpec]:
        """Every combination."""
        seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        return [
            RunSpec(
                experiment=experiment,
                problem=problem,
                agent=agent,
                seed=seed,
                episodes=self.episodes,
                preset=self.preset,
            )
            for problem, agent, seed in product(self.problems, self.agents, seeds)
        ]


class Experiment(_Data):
    """A named list of groups: the file format of `optimist sweep`."""

    name: Name
    runs: tuple[Group, ...] = Field(min_length=1)

    def specs(self) -> list[RunSpec]:
        """All runs; a ValueError when two have the same id."""
        specs = [spec for group in self.runs for spec in group.specs(self.name)]
        require_distinct(specs)
        return specs


def require_distinct(specs: Sequence[RunSpec]) -> None:
    """Raise ValueError when two runs would be recorded in the same place."""
    counts = Counter(spec.id for spec in specs)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"Every run must have an id of its own; got {twice[0]} twice.")


def read_experiment(file: Path) -> Experiment:
    """An experiment from a TOML file; what is wrong is said in one sentence."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"The experiment must be a readable file; got {file}: {error.strerror}.") from error
    except ValueError as error:
        raise ValueError(f"The experiment must be valid TOML; got {file}: {error}.") from error
    try:
        experiment = Experiment.model_validate(document)
        experiment.specs()
    except ValidationError as error:
        raise ValueError(f"The experiment in {file} is not valid: {_sentence(error)}") from error
    return experiment


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {where!r}."
    if first["type"] == "value_error":
        said = str(first["ctx"]["error"])
        return f"{where!r}: {said}" if "." in where else said
    return f"{where!r}: {first['msg']}; got {first['input']!r}."
