"""Optimist: learns to control a low-dimensional continuous system in a handful of episodes.

GP-RMAX (Jung & Stone 2010) made real. `GPRMax` learns, `adapt` makes anybody's environment learnable, `find`
one of which little or nothing is told, `smooth` has changes of control cost, `plan` plans with known
dynamics, `check` looks whether a recorded run is whole, `export` writes it for other programs. Importing the
package registers its environments with Gymnasium.
"""

from optimist.starting import watch

watch()  # for Ctrl-C, before all that takes time, be it `__future__`

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

from optimist.environments.registration import register  # noqa: E402

if TYPE_CHECKING:
    from optimist.box import Box
    from optimist.discretisation import Discretisation
    from optimist.environments.adapter import adapt
    from optimist.environments.finding import find
    from optimist.environments.smooth import smooth
    from optimist.exports import export
    from optimist.grid import Grid
    from optimist.learner import GPRMax
    from optimist.planning import plan
    from optimist.runs.check import check
    from optimist.task import Task

__version__ = "0.1.0"
__all__ = [
    "Box",
    "Discretisation",
    "GPRMax",
    "Grid",
    "Task",
    "adapt",
    "check",
    "export",
    "find",
    "plan",
    "smooth",
    "__version__",
]

# Loaded when they are used: importing the package is quick.
_HOMES = {
    "Box": "optimist.box",
    "Discretisation": "optimist.discretisation",
    "GPRMax": "optimist.learner",
    "Grid": "optimist.grid",
    "Task": "optimist.task",
    "adapt": "optimist.environments.adapter",
    "check": "optimist.runs.check",
    "export": "optimist.exports",
    "find": "optimist.environments.finding",
    "plan": "optimist.planning",
    "smooth": "optimist.environments.smooth",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register()
