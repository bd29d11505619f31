"""The pendulum with any torque within [-5, 5] instead of the paper's five; all else is as in `pendulum`."""

from __future__ import annotations

from dataclasses import replace

from optimist.box import Box
from optimist.systems import pendulum

MOST_TORQUE = 5.0

SYSTEM = replace(
    pendulum.SYSTEM,
    name="pendulum-continuous",
    summary="the same with any torque",
    task=replace(pendulum.SYSTEM.task, controls=Box([-MOST_TORQUE], [MOST_TORQUE])),  # type: ignore[arg-type]
    recipes={},
    paper_best=None,
    best_known=None,
)
