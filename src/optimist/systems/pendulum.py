"""Inverted pendulum (Deisenroth et al. 2009): swing up with a motor too weak to push straight up.

    angle'' = (-mu rate + m g l sin(angle) + u) / (m l^2),  u held for 0.2 s (20 Runge-Kutta steps)

Angle 0 is upright. The paper prints the start (0, 0), where its reward is best; the start is hanging,
(pi, 0) (corrected). Reward -0.1 angle^2 - 0.01 rate^2 - 0.01 u^2 at the state before the step.
"""

from __future__ import annotations

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import compiled_for
from optimist.compiled.dynamics_pendulum import (
    FRICTION,
    MAX_RATE,
    STEP_ROWS_WITH_FRICTION,
    outcome,
    step,
    step_rows,
)
from optimist.systems.system import Recipe, System, stepped
from optimist.task import Task

BOX = Box([-np.pi, -MAX_RATE], [np.pi, MAX_RATE], periodic=[True, False])


def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
    """One step of 0.2 s.  [n, 2], [n, 1] -> [n, 2]"""

    def rows(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> None:
        compiled_for(step_rows, STEP_ROWS_WITH_FRICTION)(states, controls, FRICTION, next_states)

    return stepped(rows, states, controls, n_axes=2, n_controls=1)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Distance from upright, speed and effort, before the step.  [n]"""
    angle = BOX.wrap(states)[:, 0]
    cost: FloatArray = 0.1 * angle**2 + 0.01 * states[:, 1] ** 2 + 0.01 * controls[:, 0] ** 2
    return -cost


PENDULUM = System(
    name="pendulum",
    gymnasium_id="optimist/Pendulum-v0",
    summary="swing up and balance an underactuated pendulum",
    task=Task(
        box=BOX,
        controls=np.array([-5.0, -2.5, 0.0, 2.5, 5.0]),
        reward=reward,
        discount=0.99,
        optimistic_value=0.0,
    ),
    dynamics=dynamics,
    step=step,
    outcome=outcome,
    observation_box=BOX,
    starts=np.array([[-np.pi, 0.0]]),
    start_spread=np.array([0.1, 0.1]),
    axis_names=("angle [rad]", "rate [rad/s]"),
    recipes={
        "paper": Recipe((100, 100), (1.0, 1.0)),
        "ours": Recipe((100, 100), (1.0, 1.0), reason="as the paper: nothing to gain"),
    },
    paper_best=-18.41,
    best_known=-17.78,
)
