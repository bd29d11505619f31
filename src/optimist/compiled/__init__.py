"""Numba loops on arrays: no classes, no checks.

Every kernel has a slow twin in `tests/naive/`. Kernels release the GIL, so that slices of nodes can be
swept on a thread pool; numba's own threading layers are not used (they collapse, or may not be
entered twice, when other threads or processes are about).
"""
