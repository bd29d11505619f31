"""Found: what is known of a task before its first transition, told by somebody or found in its spaces.

What is missing (a reward, ends, open sides of the box, an optimistic value) is learned from transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.task import Reward, Terminal


@dataclass(frozen=True, eq=False)
class Found:
    """The parts of a task that need no transitions; infinite bounds and None are what is to be learned."""

    low: FloatArray  # [d], -inf: open
    high: FloatArray  # [d], inf: open
    periodic: BoolArray  # [d]
    controls: FloatArray | Box
    discount: float
    max_steps: int
    reward: Reward | None = None
    is_terminal: Terminal | None = None
    endless: bool = False  # told that nothing ends an episode but its length
    optimistic_value: float | None = None
    low_told: bool = False  # somebody said so, and nothing that is seen says otherwise; likewise:
    high_told: bool = False
    periodic_told: bool = False
    # where the parts come from, by their names in `print(task)`
    sources: dict[str, str] = field(default_factory=dict)
