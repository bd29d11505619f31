"""Timing several things fairly: in turn, many times, the fastest of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter

Result = dict[str, object]  # {ours_s, peers: {name: s}, ratio, ...}


def fastest(
    contestants: Mapping[str, Callable[[], object]], rounds: int, in_a_row: int = 1
) -> dict[str, float]:
    """Seconds of the fastest run of each, taken in turn so that all meet the same machine.

    With `in_a_row`, each runs so many times before it is the next one's turn: it finds the caches as it left
    them, which is how things are run that are done again and again.
    """
    best: dict[str, float] = {}
    for run in contestants.values():
        run()  # compile, allocate
    for _ in range(rounds):
        for name, run in contestants.items():
            for _ in range(in_a_row):
                began = perf_counter()
                run()
                best[name] = min(best.get(name, float("inf")), perf_counter() - began)
    return best


def compared(seconds: Mapping[str, float], ours: str, peer: str, **more: object) -> Result:
    """A row of results.json; `ratio` is how many times faster we are than `peer`."""
    return {
        "ours_s": seconds[ours],
        "peers": {name: s for name, s in seconds.items() if name != ours},
        "ratio": seconds[peer] / seconds[ours],
        "against": peer,
        **more,
    }
