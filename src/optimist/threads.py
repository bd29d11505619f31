"""Threads: how many there may be, and work shared among them. What comes of it does not depend on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from os import cpu_count, environ
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

T = TypeVar("T")
R = TypeVar("R")


def default_threads() -> int:
    """As many as there are cores, unless whoever shares them among processes says otherwise."""
    said = environ.get("OPTIMIST_THREADS", "")
    if said and not (said.isdecimal() and int(said) > 0):
        raise ValueError(f"OPTIMIST_THREADS must be a whole number above 0, or be left out; got {said!r}.")
    return int(said) if said else cpu_count() or 1


def shared(work: Callable[[T], R], given: Sequence[T], *, most: int | None = None) -> list[R]:
    """What `work` makes of each, in order, several at a time (`most`); BLAS has one thread for each of them.

    A few hundred points are too few to share: two BLAS threads take three times as long as one.
    """
    count = min(default_threads(), len(given), most or len(given))
    with single_blas():
        if count <= 1:
            return [work(one) for one in given]
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, given))


def in_parts(work: Callable[[slice], None], count: int, starts: NDArray[np.intp] | None = None) -> None:
    """`work` on parts of so many rows at once, on threads that stay: what takes a millisecond starts none.

    `starts` [count + 1] say where the work of each row begins, and where all of it ends; else all take alike.
    """
    n_parts = min(default_threads(), count)
    if n_parts <= 1:
        return work(slice(0, count))
    ends = [count * part // n_parts for part in range(n_parts + 1)]
    if starts is not None:
        ends = np.searchsorted(starts, [starts[-1] * part // n_parts for part in range(n_parts + 1)]).tolist()
    rest = [_lasting().submit(work, slice(*part)) for part in pairwise(ends[1:])]
    work(slice(0, ends[1]))
    for other in rest:
        other.result()
    return None


_LASTING: list[ThreadPoolExecutor] = []


def _lasting() -> ThreadPoolExecutor:
    with _LOCK:
        if not _LASTING:
            _LASTING.append(ThreadPoolExecutor(default_threads(), "optimist"))
        return _LASTING[0]


_LOCK = Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LASTING.clear)  # threads stay behind
_WITHIN: list[threadpool_limits] = []  # of whoever came first
_COUNT = [0]  # how many are within


@contextmanager
def single_blas() -> Iterator[None]:
    """One thread for BLAS, as long as anybody wants it: the limit is the whole process's."""
    with _LOCK:
        if not _COUNT[0]:
            _WITHIN.append(threadpool_limits(1, user_api="blas"))
        _COUNT[0] += 1
    try:
        yield
    finally:
        with _LOCK:
            _COUNT[0] -= 1
            if not _COUNT[0]:
                _WITHIN.pop().restore_original_limits()
