"""Discretisation: how states and time are cut up for planning. Settings, file format, layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from optimist.box import Box
from optimist.documents import Settings
from optimist.grid import Grid
from optimist.task import Task

BUDGET = 190_000  # nodes in all: 101^2, 57^3, 19^4, 11^5, 7^6
MOST_PER_AXIS = 101  # finer than a hundredth of an axis nothing is gained; odd: a node in the middle
LONGEST_HOLD = 16  # steps after which a control is let go, whether or not a cell was crossed

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, lt=2**63, strict=True)]


@dataclass(frozen=True)
class Holding:
    """How long a control is held when a step is planned."""

    most: int = 1  # steps
    until_crossed: bool = False  # let go as soon as the path has moved by a cell along some axis

    def require(self, task: Task) -> int:
        """`most`; a ValueError when no episode is so long."""
        if not 1 <= self.most <= task.max_steps or int(self.most) != self.most:
            raise ValueError(f"`hold` must be a whole number from 1 to {task.max_steps}; got {self.most}.")
        return self.most


ONE_STEP = Holding()


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the nodes are, how long controls are held, how far acting looks: all a planner need be told."""

    grid: Grid
    holding: Holding = ONE_STEP
    depth: int | None = None  # steps looked ahead when acting; None: what is affordable; 0: act on Q-values
    placement: str = "uniform"  # how the nodes were placed
    polished: bool = False  # more nodes than the budget, for when all is learned

    @property
    def name(self) -> str:
        """In words."""
        words = [self.placement]
        if not self.holding.until_crossed:
            words.append("single steps" if self.holding.most == 1 else f"{self.holding.most} steps held")
        if self.depth is not None:
            words.append(f"looking {self.depth} ahead")
        return ", ".join([*words, "polished"] if self.polished else words)


class Discretisation(Settings):
    """What a planner may choose. What is not fixed here, it chooses itself."""

    budget: Count = BUDGET  # nodes in all, those per axis follow; three times as many for a last polish
    # [d]; None: as the budget allows
    nodes: tuple[Annotated[int, Field(ge=2, strict=True)], ...] | None = None
    spacing: tuple[Positive, ...] | None = None  # [d], powers of `Grid.spaced`; None: where the paths go
    # [d], plan on +- these where the task's box is wider; nothing on a periodic axis
    limits: tuple[Positive, ...] | None = None
    hold: Count | None = None  # steps a control is held while planning; None: until a cell is crossed

    def nodes_for(self, n_dims: int) -> tuple[int, ...]:
        """Nodes per axis, before anything is known of the axes; a ValueError when they do not fit."""
        for name in ("nodes", "spacing", "limits"):
            given = getattr(self, name)
            if given is not None and len(given) != n_dims:
                raise ValueError(f"`grid.{name}` must have one entry per axis ({n_dims}); got {len(given)}.")
        if self.nodes is not None:
            return self.nodes
        count = min(MOST_PER_AXIS, int(self.budget ** (1.0 / n_dims) + 1e-9))
        if count < 3:
            raise ValueError(
                f"`grid.budget` must be at least {3**n_dims}, three nodes on each of {n_dims} axes; "
                f"got {self.budget}."
            )
        return (count - (count + 1) % 2,) * n_dims

    def box_within(self, box: Box) -> Box:
        """What of `box` is planned on."""
        return box if self.limits is None else box.narrowed(self.limits)

    def grid_over(self, box: Box) -> Grid:
        """The grid over `box` before anything is known, or what of it the limits leave."""
        nodes = self.nodes_for(box.n_dims)
        return Grid.spaced(self.box_within(box), nodes, self.spacing or (1.0,) * box.n_dims)

    def holding_for(self, task: Task) -> Holding:
        """As told; else until a cell is crossed."""
        if self.hold is not None:
            return Holding(self.hold)
        return Holding(min(LONGEST_HOLD, task.max_steps), until_crossed=True)
