"""The table of model-learners: to add one, write its file and name it here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from optimist.given import brief
from optimist.models.fitting import GPLearner
from optimist.models.gp_dynamics import GPSettings
from optimist.models.model import ModelLearner, ModelSettings
from optimist.task import Task


class LearnerKind(NamedTuple):
    """One model-learner."""

    settings: type[ModelSettings]
    # task, its settings, name of the rule of uncertainty, seed
    make: Callable[[Task, Any, str, int], ModelLearner]


LEARNERS: dict[str, LearnerKind] = {"gp": LearnerKind(GPSettings, GPLearner.of)}


def find_learner(name: str) -> LearnerKind:
    """The model-learner called `name`."""
    if not isinstance(name, str) or name not in LEARNERS:
        raise ValueError(f"`model.learner` must be one of {', '.join(LEARNERS)}; got {brief(name)}.")
    return LEARNERS[name]


def make_learner(task: Task, settings: ModelSettings, knownness: str, *, seed: int) -> ModelLearner:
    """The learner of these settings."""
    return find_learner(settings.learner).make(task, settings, knownness, seed)
