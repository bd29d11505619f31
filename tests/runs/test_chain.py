"""Digests of rows: whatever differs in them differs in their digests."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.runs import EpisodeRow, RunStore
from optimist.runs.chain import SIZE, genesis, link
from optimist.runs.tables import SCHEMA, TABLES

START = genesis("some")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "q": st.integers(-(2**63), 2**63 - 1),
    "d": st.floats(allow_nan=False),
    "t": st.text(max_size=5),
    "b": st.binary(max_size=9),
}
KINDS = st.text("qdtb", min_size=1, max_size=6)


def rows_of(kinds: str) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.none() | VALUES[kind] for kind in kinds))


@given(st.data(), KINDS)
def test_digests_are_equal_just_if_rows_are(data: st.DataObject, kinds: str) -> None:
    one, other = data.draw(rows_of(kinds)), data.draw(rows_of(kinds))
    assert len(link(START, kinds, one)) == SIZE
    assert (link(START, kinds, one) == link(START, kinds, other)) == (one == other)


@given(st.data(), KINDS)
def test_digest_depends_on_the_row_before(data: st.DataObject, kinds: str) -> None:
    row = data.draw(rows_of(kinds))
    assert link(START, kinds, row) != link(link(START, kinds, row), kinds, row)


def test_text_cannot_move_from_one_column_to_the_next() -> None:
    assert link(START, "tt", ("ab", "c")) != link(START, "tt", ("a", "bc"))
    assert link(START, "bq", (b"\0" * 8, 0)) != link(START, "bq", (b"", 0))
    assert link(START, "tb", ("ab", b"")) != link(START, "tb", ("", b"ab"))


def test_numbers_are_hashed_as_sqlite_gives_them_back() -> None:
    assert link(START, "d", (-0.0,)) == link(START, "d", (0.0,)) == link(START, "d", (0,))
    assert link(START, "d", (float("nan"),)) == link(START, "d", (None,))
    assert link(START, "d", (np.float64(1.5),)) == link(START, "d", (1.5,))
    assert link(START, "q", (True,)) == link(START, "q", (1,))


@pytest.mark.parametrize(
    ("kinds", "row"),
    [("q", ("1",)), ("q", (1.0,)), ("q", (2**63,)), ("d", ("1",)), ("t", (b"a",)), ("b", ("a",)), ("b", (3,)),
     ("qq", (1,)), ("q", (1, 2))],
)  # fmt: skip
def test_value_of_another_kind_is_refused(kinds: str, row: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"argument|must be of the kinds"):
        link(START, kinds, row)


def test_every_column_is_hashed() -> None:
    for name, table in TABLES.items():
        (statement,) = [one for one in SCHEMA if one.startswith(f"CREATE TABLE {name} ")]
        columns = [line.split()[0] for line in statement.splitlines()[1:-1]]
        assert columns == [table.number, *table.columns, "digest"]
        assert len(table.kinds) == len(table.columns)


ROWS = st.builds(
    EpisodeRow,
    st.just(1), VALUES["q"], VALUES["d"], VALUES["q"], st.sampled_from(["truncated", "ünï"]),
    st.none() | VALUES["d"],
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(ROWS)
def test_whatever_is_written_is_found_right(row: EpisodeRow) -> None:
    """No digest of ours is ever wrong about what SQLite made of a value."""
    with TemporaryDirectory() as name:
        with RunStore.create(Path(name), {}) as store:
            store.end_episodes([row])
        with RunStore.open(Path(name), writing=False) as store:
            assert store.episodes() == [row]
