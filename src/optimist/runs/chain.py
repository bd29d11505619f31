"""Chains: every row of a record carries a digest over itself and over the row before it.

So no row can change, go, come or swap its place without all that follow it disagreeing. SQLite checks that a
page makes sense, not that it is what was written: of a thousand flipped bits it let half pass.

Values are hashed by the kind of their column, as they come back from SQLite: it keeps no negative zero, and
of numbers that are none (NaN) it makes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

SIZE = 16  # bytes of a digest

Row = tuple[Any, ...]  # the values of one row, without its number and its digest


def genesis(table: str) -> bytes:
    """What the first row of a table follows."""
    return digest(b"optimist " + table.encode())


def digest(content: bytes) -> bytes:
    """Of anything."""
    return blake2b(content, digest_size=SIZE).digest()


def link(previous: bytes, kinds: str, row: Sequence[Any]) -> bytes:
    """The digest of a row after one with the digest `previous`; a ValueError when it is of other kinds.

    A kind is a letter for each column: `q` a whole number, `d` a number, `t` text, `b` bytes, `a` a
    whole number or bytes.
    """
    numbers: list[Any] = [0]  # which values are nothing, a bit each; then numbers, lengths of the others
    contents = [previous, b""]
    try:
        for column, (kind, value) in enumerate(zip(kinds, row, strict=True)):
            if value is None or value != value:  # noqa: PLR0124 - NaN
                numbers[0] |= 1 << column
                numbers.append(0)
            elif kind == "q" or (kind == "a" and not isinstance(value, bytes)):
                numbers.append(value)
            elif kind == "d":
                numbers.append(value + 0.0)
            else:
                contents.append(_content(kind, value))
                numbers.append(len(contents[-1]))
        contents[1] = _packer(kinds).pack(*numbers)
    except (struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"The values of a row must be of the kinds {kinds}; got {row!r}.") from error
    return blake2b(b"".join(contents), digest_size=SIZE).digest()


def _content(kind: str, value: Any) -> bytes:
    content = value.encode("utf-8", "surrogateescape") if kind == "t" else value
    if not isinstance(content, bytes):
        raise TypeError("no bytes")
    return content


@cache
def _packer(kinds: str) -> struct.Struct:
    """Packs a whole number, then a number for each column."""
    return struct.Struct("<q" + "".join("d" if kind == "d" else "q" for kind in kinds))
