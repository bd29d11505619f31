"""Chains: every row of a record carries a digest over itself and over the row before it.

So no row can change, go, come or swap its place without all that follow it disagreeing. SQLite checks that a
page makes sense, not that it is what was written: of a thousand flipped bits it let half pass.

Values are hashed by the kind of their column, as they come back from SQLite: it keeps no negative zero, and
of numbers that are none (NaN) it makes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
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

    A kind is a letter for each column: `q` a whole number, `d` a number, `t` text, `b` bytes.
    """
    parts = [previous]
    try:
        for kind, value in zip(kinds, row, strict=True):
            parts.append(b"n" if value is None else ENCODERS[kind](value))
    except (struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"The values of a row must be of the kinds {kinds}; got {row!r}.") from error
    return blake2b(b"".join(parts), digest_size=SIZE).digest()


WHOLE, NUMBER, SIZED = struct.Struct("<cq"), struct.Struct("<cd"), struct.Struct("<cq")


def _whole(value: Any) -> bytes:
    return WHOLE.pack(b"q", value)


def _number(value: Any) -> bytes:
    number = float(value) + 0.0
    return b"n" if number != number else NUMBER.pack(b"d", number)  # noqa: PLR0124 - quick for NaN


def _text(value: Any) -> bytes:
    content: bytes = value.encode("utf-8", "surrogateescape")
    return SIZED.pack(b"t", len(content)) + content


def _bytes(value: Any) -> bytes:
    return SIZED.pack(b"b", len(value)) + bytes(value) if isinstance(value, bytes) else _refused(value)


def _refused(value: Any) -> bytes:
    raise TypeError(f"no bytes: {value!r}")


ENCODERS: dict[str, Callable[[Any], bytes]] = {"q": _whole, "d": _number, "t": _text, "b": _bytes}
