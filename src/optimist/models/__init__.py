"""Models of the dynamics: from transitions to successors on the grid."""

from optimist.models.drift import StoppingRule
from optimist.models.fitting import fit_dynamics
from optimist.models.gp_dynamics import GPDynamics, GPSettings
from optimist.models.knownness import KNOWNNESS
from optimist.models.learners import LEARNERS, LearnerKind
from optimist.models.model import Model, ModelLearner, ModelSettings, step_of

__all__ = [
    "KNOWNNESS",
    "LEARNERS",
    "GPDynamics",
    "GPSettings",
    "LearnerKind",
    "Model",
    "ModelLearner",
    "ModelSettings",
    "StoppingRule",
    "fit_dynamics",
    "step_of",
]
