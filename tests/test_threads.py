"""Work shared among threads, or done in parts: all of it, once, and what goes wrong is heard of."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.threads import in_parts


@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
@pytest.mark.parametrize("count", [1, 2, 5, 17])
def test_every_row_is_worked_on_once(monkeypatch: pytest.MonkeyPatch, threads: str, count: int) -> None:
    monkeypatch.setenv("OPTIMIST_THREADS", threads)
    rows, parts = np.zeros(count), []

    def work(part: slice) -> None:
        rows[part] += 1.0
        parts.append(part)

    in_parts(work, count)
    assert (rows == 1.0).all()
    assert len(parts) == min(int(threads), count)


def test_what_fails_in_a_part_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIMIST_THREADS", "2")

    def work(part: slice) -> None:
        if part.start > 0:
            raise ValueError("the second half")

    with pytest.raises(ValueError, match="second"):
        in_parts(work, 2)
