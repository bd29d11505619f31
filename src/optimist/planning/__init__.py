"""Planning: the Bellman equation on a grid (the paper's Sections 2 and 3.3).

Q(x, a) = r(x, a) + g max_a' Q(f(x, a), a') is required at the nodes of a grid and interpolated in
between. `tabulate` turns a `Step` into arrays, `prepare` chooses which discretisation
and treatment of self-loops (`backups`), `solve` finds the fixed point, `certify` bounds how far that is
from the solution of the equation itself. `Planner` is all of it. Planning knows nothing of how successors are
predicted.
"""

from optimist.planning.backups import BackupName
from optimist.planning.chooser import Chooser
from optimist.planning.flow import Flow
from optimist.planning.offline import KnownPlan, plan
from optimist.planning.planner import Planned, Planner
from optimist.planning.policy import Lookahead, Policy, QFunction
from optimist.planning.rehearsal import Rehearsal, rehearse
from optimist.planning.rollout import Rollouts, roll_out
from optimist.planning.solve import Limits, Plan, solve
from optimist.planning.tables import Tables, tabulate

__all__ = [
    "BackupName",
    "Chooser",
    "Flow",
    "KnownPlan",
    "Limits",
    "Lookahead",
    "Plan",
    "Planned",
    "Planner",
    "Policy",
    "QFunction",
    "Rehearsal",
    "Rollouts",
    "Tables",
    "plan",
    "rehearse",
    "roll_out",
    "solve",
    "tabulate",
]
