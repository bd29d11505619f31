"""Discretisation: how states and time are cut up for planning. Settings, file format, grid."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from optimist.box import Box
from optimist.grid import Grid

# nodes per axis, by dimension; odd: a node in the middle
DEFAULT_NODES = {1: 401, 2: 101, 3: 41, 4: 21, 5: 11, 6: 7}

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, strict=True)]


class Discretisation(BaseModel):
    """What a planner may choose: the one thing that differs between problems."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # [d]; None: a count that suits the dimension
    nodes: tuple[Annotated[int, Field(ge=2, strict=True)], ...] | None = None
    spacing: tuple[Positive, ...] | None = None  # [d], powers of `Grid.spaced`; None: uniform
    # [d], plan on +- these where the task's box is wider; nothing on a periodic axis
    limits: tuple[Positive, ...] | None = None
    hold: Count = 1  # steps a control is held while planning, for when a step is short against a cell

    def nodes_for(self, n_dims: int) -> tuple[int, ...]:
        """Nodes per axis; a ValueError when they do not fit."""
        for name in ("nodes", "spacing", "limits"):
            given = getattr(self, name)
            if given is not None and len(given) != n_dims:
                raise ValueError(f"`grid.{name}` must have one entry per axis ({n_dims}); got {len(given)}.")
        return self.nodes or (DEFAULT_NODES[n_dims],) * n_dims

    def grid_over(self, box: Box) -> Grid:
        """The grid over `box`, or what of it the limits leave."""
        nodes = self.nodes_for(box.n_dims)
        if self.limits is not None:
            box = box.narrowed(self.limits)
        return Grid.spaced(box, nodes, self.spacing or (1.0,) * box.n_dims)
