"""LAPACK without the interpreter's lock: scipy's calls hold it, and processes were fitted one after another.

The same functions of the same library, through the addresses that scipy publishes for compiled code
(`scipy.linalg.cython_lapack`): ctypes lets go of the lock while they work. Bit for bit what scipy's own
`cholesky`, `cho_solve` and `lapack.dpotri` return.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_char, c_int, c_void_p
from functools import cache, lru_cache

import numpy as np

from optimist.arrays import BoolArray, FloatArray

LOWER = c_char(b"L")


@cache
def _function(name: str, n_arguments: int) -> Callable[..., None]:
    """A function of LAPACK, all of whose arguments are addresses."""
    from numba.extending import get_cython_function_address  # noqa: PLC0415  (loads LAPACK)

    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    called: Callable[..., None] = CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)
    return called


@lru_cache(maxsize=8)
def _above(size: int) -> BoolArray:
    """What lies above the diagonal.  [size, size]"""
    return np.asfortranarray(np.triu(np.ones((size, size), dtype=np.bool_), 1))


def cholesky_of(matrix: FloatArray) -> FloatArray:
    """The lower factor of a symmetric `matrix` [n, n], columns together; LinAlgError where there is none."""
    factor = np.array(matrix, dtype=np.float64, order="F")
    size, info = c_int(len(factor)), c_int()
    _function("dpotrf", 5)(byref(LOWER), byref(size), factor.ctypes.data, byref(size), byref(info))
    if info.value != 0:
        raise np.linalg.LinAlgError(f"No Cholesky factor: {info.value}.")
    np.copyto(factor, 0.0, where=_above(len(factor)))
    return factor


def solved(factor: FloatArray, right: FloatArray) -> FloatArray:
    """What factor factor^T has to be applied to for `right` [n].  [n]"""
    found = np.array(right, dtype=np.float64)
    size, one, info = c_int(len(factor)), c_int(1), c_int()
    sizes = byref(size), byref(one)
    places = factor.ctypes.data, byref(size), found.ctypes.data, byref(size)
    _function("dpotrs", 8)(byref(LOWER), *sizes, *places, byref(info))
    return found


def inverted(factor: FloatArray) -> FloatArray:
    """The lower triangle of the inverse of factor factor^T, in place of `factor`."""
    size, info = c_int(len(factor)), c_int()
    _function("dpotri", 5)(byref(LOWER), byref(size), factor.ctypes.data, byref(size), byref(info))
    return factor
