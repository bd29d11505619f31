"""Optimist: learns to control a low-dimensional continuous system in a handful of episodes.

GP-RMAX (Jung & Stone 2010) made real. `GPRMax` learns, `adapt` makes anybody's environment learnable.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` would slow down every start of Python, see below
if TYPE_CHECKING:
    from optimist.box import Box
    from optimist.environments.adapter import adapt
    from optimist.grid import Grid
    from optimist.learner import GPRMax
    from optimist.task import Task

__version__ = "0.1.0"
__all__ = ["Box", "GPRMax", "Grid", "Task", "adapt", "__version__"]

# This package is imported whenever Python starts (see `environments.discovery`): nothing may be loaded
# here before it is used.
_HOMES = {
    "Box": "optimist.box",
    "GPRMax": "optimist.learner",
    "Grid": "optimist.grid",
    "Task": "optimist.task",
    "adapt": "optimist.environments.adapter",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
