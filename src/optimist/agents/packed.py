"""What a GP-RMAX agent has packed, as a schema: it is checked against task and settings before it is used."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from optimist.agents.choosing import Choosing, flow_of
from optimist.agents.knowledge import Knowledge
from optimist.agents.settings import AgentSettings
from optimist.arrays import FloatArray
from optimist.discretisation import ONE_STEP, Holding, Layout
from optimist.documents import NotNegative, Number, Said, parsed, require_array
from optimist.given import brief
from optimist.grid import Grid
from optimist.models.drift import Drift
from optimist.models.model import Arrays, ModelLearner, Packed, imagined_by, motion_on
from optimist.planning import Chooser, Plan
from optimist.planning.between import sight
from optimist.planning.chooser import POLISH
from optimist.planning.memory import require_memory
from optimist.planning.rehearsal import Expectation
from optimist.planning.sights import Sights
from optimist.task import Task
from optimist.transitions import Transitions

ROOM = 2.0  # by which the number of nodes may differ from the budget: it is shared out in whole nodes
Count = Annotated[int, Field(ge=1, lt=2**63)]


class DriftSaid(Said):
    """A drift; None: it was infinite."""

    mean_drift: NotNegative | None
    uncertainty_drift: NotNegative | None

    @classmethod
    def of(cls, drift: Drift) -> DriftSaid:
        """As JSON can say it."""
        return cls(mean_drift=finite(drift.mean_drift), uncertainty_drift=finite(drift.uncertainty_drift))

    def drift(self) -> Drift:
        """The opposite of `of`."""
        return Drift(*(math.inf if one is None else one for one in (self.mean_drift, self.uncertainty_drift)))


class PlanSaid(Said):
    """How the Q-values were found."""

    sweeps: Count
    residual: NotNegative | None  # None: infinite
    converged: bool


class ExpectedSaid(Said):
    """What an episode is expected to earn."""

    expected: Number | None
    low: Number | None
    high: Number | None
    spread: NotNegative | None = None  # of single episodes, with noise


class LayoutSaid(Said):
    """What a layout is besides its grid."""

    hold: Count
    until_crossed: bool
    depth: Annotated[int, Field(ge=0)] | None
    placement: str
    polished: bool


class MarksSaid(Said):
    """Which transitions are not learned from."""

    heard: Annotated[int, Field(ge=0, lt=2**63)]
    by_hand: list[Count]
    unexplained: list[Count]
    unlearn: bool
    woken: bool
    faded: Annotated[int, Field(ge=0, lt=2**63)] = 0


class KnowledgeSaid(Said):
    """All that an agent has made of its transitions, but for the arrays."""

    n_transitions: Count
    marks: MarksSaid
    settled: bool
    drifts: list[DriftSaid]
    plan: PlanSaid
    model: dict[str, Any]  # its learner checks it
    n_updates: Count
    mean_hold: NotNegative
    leaving: Number | None
    expected: ExpectedSaid
    layout: LayoutSaid


def finite(number: float) -> float | None:
    """As JSON can say it: None for what is not finite."""
    return number if math.isfinite(number) else None


@dataclass(frozen=True, eq=False)
class Unpacking:
    """Checks what was packed by an agent of these settings."""

    settings: AgentSettings
    chooser: Chooser
    first: Layout  # before anything is known

    def said(self, document: dict[str, Any], count: int) -> KnowledgeSaid:
        """The document, if it fits so many transitions, settings and task."""
        said = parsed(KnowledgeSaid, document, "`knowledge`")
        drifts = [one.drift() for one in said.drifts]
        wrong = {
            "n_transitions": said.n_transitions > count,
            "n_updates": said.n_updates > 1000 + 10 * count,
            "drifts": len(drifts) >= said.n_updates,
            "settled": said.settled and not self.settings.stopping.settled(drifts),
            "marks": max([*said.marks.by_hand, *said.marks.unexplained], default=0) > count
            or any(rows != sorted(set(rows)) for rows in (said.marks.by_hand, said.marks.unexplained))
            or len(said.marks.by_hand) > said.marks.heard,
            "plan.sweeps": said.plan.sweeps > self.settings.planning.max_sweeps,
            "mean_hold": said.mean_hold > said.layout.hold,
            "expected": None not in (said.expected.low, said.expected.high)
            and said.expected.low > said.expected.high,  # type: ignore[operator]
            **self._wrong_layout(said.layout),
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise ValueError(
                    f"`knowledge.{name}` must fit the settings and the transitions; got another."
                )
        return said

    def _wrong_layout(self, said: LayoutSaid) -> dict[str, bool]:
        chooser, first = self.chooser, self.first
        holdings = {first.holding} | ({ONE_STEP} if self.settings.grid.hold is None else set())
        short = max(1, sight(chooser.task) // 2)
        depths = {chooser.depth} | ({short} if chooser.depth is None else set())
        return {
            "layout.hold": Holding(said.hold, said.until_crossed) not in holdings,
            "layout.depth": said.depth not in depths,
            "layout.placement": said.placement not in {first.placement, *chooser.kinds},
            "layout.polished": said.polished and self.settings.grid.nodes is not None,
        }

    def grid(self, arrays: Arrays, polished: bool) -> Grid:
        """Where the nodes are: as many as settings allow, increasing, within the box."""
        box, fixed = self.first.grid.box, self.settings.grid.nodes
        axes = []
        for axis in range(box.n_dims):
            name = f"axis.{axis}"
            count = arrays[name].size if name in arrays else 0
            if fixed is not None and count != fixed[axis]:
                raise ValueError(f"The array {name!r} must have {fixed[axis]} nodes, as set; got {count}.")
            axes.append(require_array(arrays, name, (count,)))
        grid = Grid(box, axes)
        most = ROOM * self.first.grid.n_nodes * (POLISH if polished else 1.0)
        if grid.n_nodes > most:
            raise ValueError(f"The grid must have about {self.first.grid.n_nodes} nodes; got {grid.n_nodes}.")
        require_memory(grid.shape, self.chooser.task.n_actions)
        return grid

    def q_values(self, arrays: Arrays, grid: Grid) -> FloatArray:
        """One per node and action; and no array is left over that nobody asks for."""
        others = {name for name in arrays if not name.startswith("model.")}
        strange = others - {"q_values", *(f"axis.{axis}" for axis in range(grid.n_dims))}
        if strange:
            raise ValueError(f"The array {brief(min(strange))} must be one that agents pack; got another.")
        return require_array(arrays, "q_values", (grid.n_nodes, self.chooser.task.n_actions))

    def knowledge(
        self,
        arrays: Arrays,
        said: KnowledgeSaid,
        seen: Transitions,
        learner: ModelLearner,
        choosing: Choosing,
    ) -> Knowledge:
        """What `packed` packed; a ValueError when it does not fit together, or not the transitions `seen`."""
        grid = self.grid(arrays, said.layout.polished)
        q_values = self.q_values(arrays, grid)
        mine = {name[6:]: array for name, array in arrays.items() if name.startswith("model.")}
        model = learner.unpack((mine, said.model), seen)
        holding = Holding(said.layout.hold, said.layout.until_crossed)
        layout = Layout(grid, holding, said.layout.depth, said.layout.placement, said.layout.polished)
        flow = flow_of(model, layout.grid, choosing.task)
        leaving = None if said.leaving is None else choosing.leaving(seen, said.leaving)
        if (leaving is None) != (said.leaving is None):
            raise ValueError("`knowledge.leaving` must come with transitions that left the box; got none.")
        residual = np.inf if said.plan.residual is None else said.plan.residual
        plan = Plan(q_values, said.plan.sweeps, residual, said.plan.converged)
        directly = choosing.directly(model, grid)
        planned = choosing.planner.acting_on(
            plan, flow, layout, leaving=leaving, directly=directly, noise=motion_on(model, grid)
        )
        planned = replace(planned, mean_hold=said.mean_hold)
        drifts = tuple(one.drift() for one in said.drifts)
        expectation = Expectation.recorded(said.expected.model_dump())
        sights = Sights.of(planned, imagined_by(model))
        counts = expectation, said.n_updates, choosing.planner, choosing.stage(model, seen), sights
        return Knowledge(said.n_transitions, model, planned, flow, drifts, said.settled, *counts)


def packed(knowledge: Knowledge, marks: dict[str, Any]) -> Packed:
    """Model and plan as arrays, the rest as numbers; `marks` say which transitions are not learned from."""
    arrays, model = knowledge.model.pack()
    layout, leaving = knowledge.planned.layout, knowledge.planned.leaving
    document = {
        "n_transitions": knowledge.n_transitions,
        "marks": marks,
        "settled": knowledge.settled,
        "drifts": [DriftSaid.of(drift).model_dump() for drift in knowledge.drifts],
        "plan": {
            "sweeps": knowledge.plan.sweeps,
            "residual": finite(knowledge.plan.residual),
            "converged": bool(knowledge.plan.converged),
        },
        "model": model,
        "n_updates": knowledge.n_updates,
        "mean_hold": knowledge.planned.mean_hold,
        "leaving": None if leaving is None else leaving.worst,
        "expected": knowledge.expectation.record(),
        "layout": {
            "hold": layout.holding.most,
            "until_crossed": layout.holding.until_crossed,
            "depth": layout.depth,
            "placement": layout.placement,
            "polished": layout.polished,
        },
    }
    mine = {f"model.{name}": array for name, array in arrays.items()}
    mine |= {f"axis.{axis}": nodes for axis, nodes in enumerate(layout.grid.axes)}
    return mine | {"q_values": knowledge.plan.q_values}, document


def recorded(task: Task) -> dict[str, Any]:
    """For the record: what is believed of a task, where it was not told."""
    if not task.evidence:
        return {}
    box = {
        "low": task.box.low.tolist(),
        "high": task.box.high.tolist(),
        "periodic": task.box.periodic.tolist(),
    }
    return {"believed": str(task).splitlines(), "box": box}
