"""Refusing a grid that will not fit, before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

GIGABYTE = 1e9


def needed_bytes(shape: Sequence[int], n_actions: int) -> int:
    """About what predicting, tabulating and solving take at their peak."""
    d = len(shape)
    per_action = 8 * d + (4 + 4 * d + 16) + 24 + 16 + 8 * (d + 2)  # successors, tables, backup, Q, flow
    per_node = (4 + 4 * d + 24) + 5 * 8 + 4  # packed policy, values and their copies, places
    return prod(shape) * (n_actions * per_action + per_node)


def available_bytes() -> int | None:
    """What the system would give, or None where it does not say (other than Linux)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        available.append(int(text))
    return min(available, default=None)


def require_memory(shape: Sequence[int], n_actions: int, *, available: int | None = None) -> None:
    """Raise ValueError, with the size that would fit, when a grid of this shape would not."""
    room = available_bytes() if available is None else available
    needed = needed_bytes(shape, n_actions)
    if room is None or needed <= room:
        return
    fitting = ",".join(map(str, _fitting(shape, n_actions, room)))
    raise ValueError(
        f"The grid must fit in memory; {' x '.join(map(str, shape))} nodes with {n_actions} actions "
        f"need about {needed / GIGABYTE:,.1f} GB, and {room / GIGABYTE:,.1f} GB are available. "
        f"{fitting} nodes would fit."
    )


def _fitting(shape: Sequence[int], n_actions: int, room: int) -> tuple[int, ...]:
    """The same proportions, as large as fits; at least 2 nodes per axis."""
    scale = 1.0
    while True:
        counts = tuple(max(2, int(count * scale)) for count in shape)
        if needed_bytes(counts, n_actions) <= room or max(counts) == 2:
            return counts
        scale *= 0.99
