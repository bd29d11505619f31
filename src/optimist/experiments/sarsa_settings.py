"""Sarsa(lambda) on the four systems: two tilings each, one finer and one coarser, as data.

Mountain car and acrobot, fine: as published (Sutton 1996; Singh & Sutton 1996); coarse: fewer and larger
tiles, the rest alike. Pendulum and bicycle: found by `examples/sarsa_search.py`; docs/background/sarsa.md has
the tables.
"""

from __future__ import annotations

from itertools import combinations

from optimist.agents.sarsa import SarsaSettings
from optimist.agents.tile_coding import TilingGroup

SARSA_AGENTS = ("sarsa-fine", "sarsa-coarse")


def grid(intervals: tuple[int, ...], tilings: int) -> tuple[TilingGroup, ...]:
    """Tilings over all axes."""
    return (TilingGroup(axes=tuple(range(len(intervals))), intervals=intervals, tilings=tilings),)


def subsets(intervals: int, tilings: tuple[int, ...]) -> tuple[TilingGroup, ...]:
    """Tilings over every subset of the axes: `tilings` of each that has 1, 2, ... axes; largest first."""
    n_axes = len(tilings)
    return tuple(
        TilingGroup(axes=axes, intervals=(intervals,) * size, tilings=tilings[size - 1])
        for size in range(n_axes, 0, -1)
        for axes in combinations(range(n_axes), size)
        if tilings[size - 1]
    )


SETTINGS: dict[str, dict[str, SarsaSettings]] = {
    "mountain-car": {
        "sarsa-fine": SarsaSettings(tilings=grid((8, 8), 10), step_size=0.5),
        "sarsa-coarse": SarsaSettings(tilings=grid((4, 4), 5), step_size=0.5),
    },
    "pendulum": {
        "sarsa-fine": SarsaSettings(tilings=grid((32, 32), 16), step_size=0.5, trace_decay=0.5),
        "sarsa-coarse": SarsaSettings(tilings=grid((10, 10), 4), step_size=0.2, trace_decay=0.2),
    },
    "bicycle": {
        "sarsa-fine": SarsaSettings(tilings=grid((8, 40, 16, 12), 8), step_size=0.2, trace_decay=0.95),
        "sarsa-coarse": SarsaSettings(tilings=grid((4, 24, 8, 8), 8), step_size=0.2, trace_decay=0.95),
    },
    "acrobot": {
        # 12 tilings over all axes, 3 over each triple, 2 over each pair, 3 over each axis: 48, 25,028 tiles
        "sarsa-fine": SarsaSettings(tilings=subsets(6, (3, 2, 3, 12)), step_size=0.2),
        "sarsa-coarse": SarsaSettings(tilings=subsets(4, (1, 1, 1, 4)), step_size=0.2),
    },
}


def sarsa_settings(problem: str, agent: str) -> SarsaSettings:
    """The settings of `sarsa-fine` or `sarsa-coarse` for a problem."""
    if problem not in SETTINGS:
        raise ValueError(f"The problem must be one of {', '.join(SETTINGS)}; got {problem!r}.")
    if agent not in SARSA_AGENTS:
        raise ValueError(f"The agent must be one of {', '.join(SARSA_AGENTS)}; got {agent!r}.")
    return SETTINGS[problem][agent]
