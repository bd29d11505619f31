"""The types of arrays. Shapes stand beside each field: `states: FloatArray  # [n, d]`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Actions = NDArray[Any]  # numbers of a task's controls [n] (int64), or controls [n, k] (float64)
Action = int | FloatArray  # one of them: a number, or a control [k]
