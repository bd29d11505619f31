"""The cart-pole with any force within [-10, 10] N, as published; all else is as in `cart_pole`."""

from __future__ import annotations

from dataclasses import replace

from optimist.box import Box
from optimist.systems import cart_pole

MOST_FORCE = 10.0

SYSTEM = replace(
    cart_pole.SYSTEM,
    name="cart-pole-continuous",
    summary="the same with any force",
    task=replace(cart_pole.SYSTEM.task, controls=Box([-MOST_FORCE], [MOST_FORCE])),  # type: ignore[arg-type]
)
