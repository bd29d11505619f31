"""What a GP-RMAX agent has packed, as a schema: it is checked against task and settings before it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from optimist.agents.choosing import Choosing
from optimist.agents.knowledge import Knowledge
from optimist.agents.settings import AgentSettings
from optimist.discretisation import ONE_STEP, Holding, Layout
from optimist.documents import NotNegative, Number, Said, parsed, require_array
from optimist.given import brief
from optimist.grid import Grid
from optimist.models.drift import Drift
from optimist.models.model import Arrays, ModelLearner, Packed, imagined_by
from optimist.planning import Chooser, Flow, Plan, Planned
from optimist.planning.between import sight
from optimist.planning.chooser import POLISH
from optimist.planning.memory import require_memory
from optimist.planning.rehearsal import Expectation
from optimist.planning.sights import Sights
from optimist.task import Task
from optimist.transitions import Transitions

SECOND, BEGUN, KEPT = "second.", "begun.", "kept."  # what the names of other plans' arrays begin with
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
    unknown: bool = False  # whether something unknown was tried since
    faded: Annotated[int, Field(ge=0, lt=2**63)] = 0


class PlannedSaid(Said):
    """A plan, but for its arrays."""

    plan: PlanSaid
    mean_hold: NotNegative
    layout: LayoutSaid

    @classmethod
    def of(cls, planned: Planned) -> PlannedSaid:
        """As JSON can say it."""
        plan, layout = planned.plan, planned.layout
        return cls(
            plan=PlanSaid(sweeps=plan.sweeps, residual=finite(plan.residual), converged=bool(plan.converged)),
            mean_hold=planned.mean_hold,
            layout=LayoutSaid(
                hold=layout.holding.most,
                until_crossed=layout.holding.until_crossed,
                depth=layout.depth,
                placement=layout.placement,
                polished=layout.polished,
            ),
        )


class KnowledgeSaid(PlannedSaid):
    """All that an agent has made of its transitions, but for the arrays."""

    n_transitions: Count
    marks: MarksSaid
    settled: bool
    drifts: list[DriftSaid]
    model: dict[str, Any]  # its learner checks it
    n_updates: Count
    leaving: Number | None
    expected: ExpectedSaid
    second: PlannedSaid | None  # of the plans that were tried out the second best
    begun: PlannedSaid | None  # what the episode that was going on was acted in by
    kept: PlannedSaid | None = None  # what it had slept on
    stirred: bool = False  # by what noise does not explain
    ends_catch: bool = False  # whether ends are believed to stop steps on their way

    @property
    def others(self) -> dict[str, PlannedSaid | None]:
        """Plans beside it, by what the names of their arrays begin with."""
        return {SECOND: self.second, BEGUN: self.begun, KEPT: self.kept}


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
            "expected": None not in (said.expected.low, said.expected.high)
            and said.expected.low > said.expected.high,  # type: ignore[operator]
            **self._wrong_plan(said),
            "stirred": said.stirred and said.settled,
            "ends_catch": said.ends_catch and not self.settings.planning.rehearse,
        }
        for prefix, part in said.others.items():
            wrong |= {} if part is None else self._wrong_plan(part, prefix)
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise ValueError(
                    f"`knowledge.{name}` must fit the settings and the transitions; got another."
                )
        return said

    def _wrong_plan(self, said: PlannedSaid, where: str = "") -> dict[str, bool]:
        chooser, first, layout = self.chooser, self.first, said.layout
        holdings = {first.holding} | ({ONE_STEP} if self.settings.grid.hold is None else set())
        short = max(1, sight(chooser.task) // 2)
        depths = {chooser.depth} | ({short} if chooser.depth is None else set())
        wrong = {
            "plan.sweeps": said.plan.sweeps > self.settings.planning.max_sweeps,
            "mean_hold": said.mean_hold > layout.hold,
            "layout.hold": Holding(layout.hold, layout.until_crossed) not in holdings,
            "layout.depth": layout.depth not in depths,
            "layout.placement": layout.placement not in {first.placement, *chooser.kinds},
            "layout.polished": layout.polished and self.settings.grid.nodes is not None,
        }
        return {f"{where}{name}": is_wrong for name, is_wrong in wrong.items()}

    def grid(self, arrays: Arrays, polished: bool, prefix: str = "") -> Grid:
        """Where the nodes are: as many as settings allow, increasing, within the box."""
        box, fixed = self.first.grid.box, self.settings.grid.nodes
        axes = []
        for axis in range(box.n_dims):
            name = f"{prefix}axis.{axis}"
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

    def require_no_more(self, arrays: Arrays, prefixes: Sequence[str]) -> None:
        """Raise ValueError when an array is left over that nobody asks for."""
        axes = [f"axis.{axis}" for axis in range(self.first.grid.n_dims)]
        known = {prefix + name for prefix in prefixes for name in ("q_values", *axes)}
        strange = {name for name in arrays if not name.startswith("model.")} - known
        if strange:
            raise ValueError(f"The array {brief(min(strange))} must be one that agents pack; got another.")

    def knowledge(
        self,
        arrays: Arrays,
        said: KnowledgeSaid,
        seen: Transitions,
        learner: ModelLearner,
        choosing: Choosing,
    ) -> Knowledge:
        """What `packed` packed; a ValueError when it does not fit together, or not the transitions `seen`."""
        prefixes = [prefix for prefix, part in said.others.items() if part is not None]
        self.require_no_more(arrays, ["", *prefixes])
        mine = {name[6:]: array for name, array in arrays.items() if name.startswith("model.")}
        model = learner.unpack((mine, said.model), seen)
        leaving = None if said.leaving is None else choosing.leaving(seen, said.leaving)
        if (leaving is None) != (said.leaving is None):
            raise ValueError("`knowledge.leaving` must come with transitions that left the box; got none.")

        def planned(part: PlannedSaid, prefix: str = "") -> Planned:
            grid = self.grid(arrays, part.layout.polished, prefix)
            shape = (grid.n_nodes, self.chooser.task.n_actions)
            q_values = require_array(arrays, f"{prefix}q_values", shape)
            residual = np.inf if part.plan.residual is None else part.plan.residual
            plan = Plan(q_values, part.plan.sweeps, residual, part.plan.converged)
            holding = Holding(part.layout.hold, part.layout.until_crossed)
            layout = Layout(grid, holding, part.layout.depth, part.layout.placement, part.layout.polished)
            made = choosing.acting_on(plan, layout, model, leaving)
            return replace(made, mean_hold=part.mean_hold)

        made = planned(said)
        second, begun, kept = (
            None if part is None else planned(part, prefix) for prefix, part in said.others.items()
        )
        flow = made.step
        assert isinstance(flow, Flow)
        drifts = tuple(one.drift() for one in said.drifts)
        expectation = Expectation.recorded(said.expected.model_dump())
        sights = Sights.of(made, imagined_by(model), others=(second, kept))
        try_out = choosing.stage(model, seen)
        counts = expectation, said.n_updates, choosing.planner, try_out, second, sights, begun, kept
        return Knowledge(
            said.n_transitions, model, made, flow, drifts, said.settled, *counts, stirred=said.stirred
        )


def packed(knowledge: Knowledge, marks: dict[str, Any]) -> Packed:
    """Model and plan as arrays, the rest as numbers; `marks` say which transitions are not learned from."""
    arrays, model = knowledge.model.pack()
    leaving = knowledge.planned.leaving
    others = {SECOND: knowledge.second, BEGUN: knowledge.begun, KEPT: knowledge.kept}
    document = {
        "n_transitions": knowledge.n_transitions,
        "marks": marks,
        "settled": knowledge.settled,
        "stirred": knowledge.stirred,
        "ends_catch": knowledge.planned.task.ends_catch,
        "drifts": [DriftSaid.of(drift).model_dump() for drift in knowledge.drifts],
        "model": model,
        "n_updates": knowledge.n_updates,
        "leaving": None if leaving is None else leaving.worst,
        "expected": knowledge.expectation.record(),
        **PlannedSaid.of(knowledge.planned).model_dump(),
        **{
            prefix.rstrip("."): None if one is None else PlannedSaid.of(one).model_dump()
            for prefix, one in others.items()
        },
    }
    mine = {f"model.{name}": array for name, array in arrays.items()} | _arrays(knowledge.planned, "")
    for prefix, one in others.items():
        mine |= {} if one is None else _arrays(one, prefix)
    return mine, document


def _arrays(planned: Planned, prefix: str) -> Arrays:
    """Where the nodes of a plan are, and what it says there."""
    axes = {f"{prefix}axis.{axis}": nodes for axis, nodes in enumerate(planned.grid.axes)}
    return {**axes, f"{prefix}q_values": planned.plan.q_values}


def recorded(task: Task) -> dict[str, Any]:
    """For the record: what is believed of a task, where it was not told."""
    said = {"ends_catch": True} if task.ends_catch else {}
    if not task.evidence:
        return said
    box = {
        "low": task.box.low.tolist(),
        "high": task.box.high.tolist(),
        "periodic": task.box.periodic.tolist(),
    }
    return said | {"believed": str(task).splitlines(), "box": box}
