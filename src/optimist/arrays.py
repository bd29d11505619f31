"""The types of arrays. Shapes stand beside each field: `states: FloatArray  # [n, d]`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Actions = NDArray[np.int64] | NDArray[np.float64]  # numbers of a task's controls [n], or controls [n, k]
Action = int | FloatArray  # one of them: a number, or a control [k]
