"""Models of the dynamics: from transitions, or from the truth, to a `Prediction` on the grid."""

from optimist.models.prediction import DynamicsModel, Prediction
from optimist.models.true_dynamics import TrueDynamics

__all__ = ["DynamicsModel", "Prediction", "TrueDynamics"]
