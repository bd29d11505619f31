"""One BLAS thread, as `fit_dynamics` has it: these matrices are too small to share, and two take longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with threadpool_limits(1, user_api="blas"):
        yield
