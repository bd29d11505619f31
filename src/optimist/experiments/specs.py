"""Experiments as data: every run has a stable id, and a place where it is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from optimist.agents import PRESETS
from optimist.documents import LARGEST, Seed, first_error, read_document
from optimist.experiments.kinds import KINDS
from optimist.experiments.problems import label_of, require_problem

MOST_RUNS = 100_000  # of an experiment

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Count = Annotated[int, Field(ge=1, lt=2**63, strict=True)]


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

    @field_validator("agent", "preset")
    @classmethod
    def _known(cls, value: str, info: Any) -> str:
        known = list(KINDS if info.field_name == "agent" else PRESETS)
        if value not in known:
            raise ValueError(f"`{info.field_name}` must be one of {', '.join(known)}; got {value!r}.")
        return value

    @field_validator("problem")
    @classmethod
    def _possible(cls, value: str) -> str:
        require_problem(value)
        return value

    @property
    def id(self) -> str:
        """Such as figure4/mountain-car/gp-rmax-exp/seed-3."""
        label = label_of(Path(self.problem).name if ".py:" in self.problem else self.problem)
        return f"{self.experiment}/{label}/{self.agent}/seed-{self.seed}"

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
        bad = [seed for seed in listed if type(seed) is not int or not 0 <= seed < LARGEST]
        if bad or not listed:
            got = bad[0] if bad and isinstance(value, list | tuple) else value
            raise ValueError(
                f"`seeds` must be a list of whole numbers from 0, or a number of at least 1; got {got!r}."
            )
        return value

    @property
    def n_runs(self) -> int:
        """How many there are."""
        n_seeds = self.seeds if isinstance(self.seeds, int) else len(self.seeds)
        return len(self.problems) * len(self.agents) * n_seeds

    def problems_in(self, folder: Path) -> tuple[str, ...]:
        """The problems; those of one's own with the whole path of their file."""
        return tuple(str((folder / text).resolve()) if ".py:" in text else text for text in self.problems)

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

    @field_validator("runs")
    @classmethod
    def _countable(cls, value: tuple[Group, ...]) -> tuple[Group, ...]:
        count = sum(group.n_runs for group in value)
        if count > MOST_RUNS:
            raise ValueError(f"`runs` must be at most {MOST_RUNS} in all; got {count}.")
        return value

    def beside(self, folder: Path) -> Experiment:
        """The same, where files of problems are looked for in `folder`."""
        groups = [group.model_copy(update={"problems": group.problems_in(folder)}) for group in self.runs]
        return self.model_copy(update={"runs": tuple(groups)})

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
    document = read_document(file, "The experiment")
    try:
        experiment = Experiment.model_validate(document).beside(file.parent)
        experiment.specs()
    except ValidationError as error:
        where, kind, said = first_error(error)
        said = "it is not known." if kind == "extra_forbidden" else said
        plain = kind == "value_error" and "." not in where
        raise ValueError(
            f"The experiment in {file} is not valid: {said if plain else f'{where!r}: {said}'}"
        ) from error
    return experiment
