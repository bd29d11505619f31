"""What made-up models have in common: nothing surprises them, and there is nothing to say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optimist.arrays import FloatArray
from optimist.models import Model
from optimist.models.model import Document, Packed
from optimist.transitions import Transition, Transitions


class MadeUp:
    """The part of a model that no test here looks at."""

    def surprised_by(self, transition: Transition, predicted: FloatArray, *, share: float) -> bool:
        return False

    def record(self) -> Document:
        return {}

    def pack(self) -> Packed:
        return {}, {}


@dataclass(frozen=True, eq=False)
class Learning:
    """Learns the same model from whatever it sees."""

    model: Model

    def fit(self, transitions: Transitions, previous: Any) -> Model:
        return self.model

    def unpack(self, packed: Packed, transitions: Transitions) -> Model:
        return self.model
