"""Models of the dynamics: from transitions, or from the truth, to a `Prediction` on the grid."""

from optimist.gp import Metric
from optimist.models.drift import Drift, StoppingRule, measure_drift
from optimist.models.gp_dynamics import GPDynamics, ModelSettings, fit_dynamics
from optimist.models.knownness import KNOWNNESS
from optimist.models.prediction import DynamicsModel, Prediction
from optimist.models.regressor import RegressorSettings
from optimist.models.true_dynamics import TrueDynamics

__all__ = [
    "KNOWNNESS",
    "Drift",
    "DynamicsModel",
    "GPDynamics",
    "Metric",
    "ModelSettings",
    "Prediction",
    "RegressorSettings",
    "StoppingRule",
    "TrueDynamics",
    "fit_dynamics",
    "measure_drift",
]
