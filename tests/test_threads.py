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


@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
def test_parts_have_about_as_much_to_do_where_rows_differ(
    monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("OPTIMIST_THREADS", threads)
    sizes = np.array([900, 1, 1, 300, 5, 5, 5, 300, 300])
    rows, done = np.zeros(len(sizes)), []

    def work(part: slice) -> None:
        rows[part] += 1.0
        done.append(int(sizes[part].sum()))

    in_parts(work, len(sizes), np.concatenate([[0], sizes.cumsum()]))
    assert (rows == 1.0).all()
    assert max(done) < sizes.sum() / int(threads) + sizes.max()


def test_what_fails_in_a_part_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIMIST_THREADS", "2")

    def work(part: slice) -> None:
        if part.start > 0:
            raise ValueError("the second half")

    with pytest.raises(ValueError, match="second"):
        in_parts(work, 2)
