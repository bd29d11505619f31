"""Hold a stirred tank reactor at its unstable steady state: concentration, temperature, coolant temperature.

    k   = 7.2e10 exp(-8750 / T), at most 100   (per minute)
    c'  = (1 - c) - k c
    T'  = (350 - T) + 209.2 k c + 2.092 (Tc - T)
    Tc' = 10 (u - Tc) + (T - Tc)

The usual constants of the exothermic reactor (Henson & Seborg), with a jacket that takes a while to follow.
0.5 mol/l at 350 K balance with 295 K of coolant; left alone it cools down or burns through.
"""

from __future__ import annotations

import numpy as np

from benchmarks.suite.stranger import Floats, Stranger, integrated

STEP = 0.1  # min
N_SUBSTEPS = 20
FLOW = 1.0  # 1/min
FEED = 350.0  # K
REACTION, ACTIVATION = 7.2e10, 8750.0  # 1/min, K
FASTEST = 100.0  # 1/min: all that flows in reacts at once anyway
HEAT = 209.2  # K l/mol
EXCHANGE = 2.092  # 1/min
JACKET_FLOW, JACKET_EXCHANGE = 10.0, 1.0  # 1/min
TARGET = np.array([0.5, 350.0])
CONTROLS = np.array([[275.0], [285.0], [295.0], [305.0], [315.0]])  # K, of the coolant that flows in
START = np.array([0.8, 330.0, 300.0])
SPREAD = np.array([0.03, 2.0, 2.0])
REACH = np.array([10.0, 1000.0, 1000.0])


def rates(states: Floats, controls: Floats) -> Floats:
    """Time derivative.  [n, 3]"""
    concentration, temperature, coolant = states.T
    speed = REACTION * np.exp(-ACTIVATION / np.maximum(temperature, 100.0))
    reacting = np.minimum(speed, FASTEST) * concentration
    heated = FLOW * (FEED - temperature) + HEAT * reacting + EXCHANGE * (coolant - temperature)
    cooled = JACKET_FLOW * (controls[:, 0] - coolant) + JACKET_EXCHANGE * (temperature - coolant)
    return np.column_stack([FLOW * (1.0 - concentration) - reacting, heated, cooled])


def dynamics(states: Floats, controls: Floats) -> Floats:
    """The reactor after 0.1 min.  [n, 3]"""
    return integrated(rates, states, controls, step=STEP, n_substeps=N_SUBSTEPS)


def reward(states: Floats, controls: Floats, next_states: Floats) -> Floats:
    """Squared distance from the steady state, in units of 0.2 mol/l and 20 K.  [n]"""
    off: Floats = (states[:, :2] - TARGET) / np.array([0.2, 20.0])
    cost: Floats = (off**2).sum(axis=1)
    return -cost


class StirredTank(Stranger):
    """Starts cold and full of reactant."""

    def __init__(self) -> None:
        super().__init__(dynamics, reward, start=START, spread=SPREAD, reach=REACH, controls=CONTROLS)
