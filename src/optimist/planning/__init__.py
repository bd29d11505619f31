"""Planning: the Bellman equation on a grid (the paper's Sections 2 and 3.3).

Q(x, a) = r(x, a) + g max_a' Q(f(x, a), a') is required at the nodes of a grid and interpolated in
between. `tabulate` turns predicted successors into arrays, `prepare` chooses which discretisation
and treatment of self-loops (`backups`), `solve` finds the fixed point, `certify` bounds how far that is
from the solution of the equation itself. Planning knows nothing of how the successors were predicted.
"""

from optimist.planning.backups import BackupName
from optimist.planning.flow import Flow, tabulate_held
from optimist.planning.hold import hold
from optimist.planning.memory import require_memory
from optimist.planning.q_function import Lookahead, Policy, QFunction
from optimist.planning.residual import Certificate, certify
from optimist.planning.rollout import Rollouts, roll_out
from optimist.planning.search import Search
from optimist.planning.solve import Plan, Stopping, solve
from optimist.planning.tables import Tables, optimistic, tabulate

__all__ = [
    "BackupName",
    "Certificate",
    "Flow",
    "Lookahead",
    "Plan",
    "Policy",
    "QFunction",
    "Rollouts",
    "Search",
    "Stopping",
    "Tables",
    "certify",
    "hold",
    "optimistic",
    "require_memory",
    "roll_out",
    "solve",
    "tabulate",
    "tabulate_held",
]
