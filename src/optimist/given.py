"""What others give: their functions are called, their numbers read, their failures said in one sentence.

A function is shown arrays that it cannot write to: a reward that changes its arguments would change the
record and the plan. One that needs to write (into scratch, or compiled for arrays that can be written to) is
called again with copies. Nor is one called by two threads at once: it may have scratch of its own, and
return that.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import FrameType
from typing import Any

import numpy as np

from optimist.arrays import FloatArray

MOST_SHOWN = 80  # characters of a value in a sentence
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
LIBRARIES = (HERE, os.path.dirname(os.path.abspath(os.__file__)) + os.sep, "<frozen ")
CACHING = os.path.join("numba", "core", "caching.py")
ONE_AT_A_TIME = RLock()  # who is called may call us again


class GivenError(ValueError):
    """Somebody's own function failed, or answered what cannot be used. One sentence."""


class KindError(TypeError, ValueError):
    """An argument is of a kind that cannot be meant. Whoever expects either class catches it."""


def called(name: str, function: Callable[..., object], *arguments: FloatArray) -> object:
    """What somebody's function returns; what goes wrong in there is said of it by name."""
    with ONE_AT_A_TIME:
        try:
            answer = function(*map(read_only, arguments))
        except (Exception, SystemExit):
            try:
                answer = function(*(argument.copy() for argument in arguments))
            except (Exception, SystemExit) as error:
                raise GivenError(f"{name} must not fail; got {told(error)}.") from error
        return answer.copy() if isinstance(answer, np.ndarray) else answer


def numbers(name: str, answer: object) -> FloatArray:
    """What a function returned as an array, one that may be written to."""
    try:
        array = real_numbers(answer)
    except (TypeError, ValueError):
        raise GivenError(f"{name} must return numbers; got {brief(answer)}.") from None
    return array if array.flags.writeable else array.copy()


def real_numbers(value: object) -> FloatArray:
    """Whatever it comes in as an array, the same one if it can be; text and complex numbers are refused."""
    array = np.asarray(value)
    if array.dtype != np.float64:
        if array.dtype.kind not in "biufO":
            raise TypeError(array.dtype)
        array = array.astype(np.float64)
    return array


def read_only(array: FloatArray) -> FloatArray:
    """The same numbers, not to be written to."""
    view = array.view()
    view.setflags(write=False)
    return view


@contextmanager
def blamed(who: str) -> Iterator[None]:
    """Somebody's own code that fails in here is named; what our own refuses is said as it is."""
    try:
        yield
    except (GivenError, OSError, MemoryError):
        raise
    except Exception as error:
        if place_of(error) is None:
            raise
        raise GivenError(f"{who} must not fail; got {told(error)}.") from error


def told(error: BaseException) -> str:
    """An error in words: its kind, what it says, and where in somebody's own code it was raised."""
    damaged = damaged_cache(error)
    if damaged is not None:
        return damaged
    text = one_line(str(error)).rstrip(".")
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = place_of(error)
    return said if place is None else f"{said} ({place})"


def damaged_cache(error: BaseException) -> str | None:
    """What to do when numba cannot read what it had compiled; None when the error is no such thing."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.endswith(CACHING):
            return f"compiled code that cannot be read back: delete {_cache_of(frame)} and try again"
    return None


def _cache_of(frame: FrameType) -> str:
    owner = frame.f_locals.get("self")
    found = getattr(owner, "_cache_path", None) or os.path.dirname(getattr(owner, "_index_path", ""))
    return str(found or "the folder __pycache__ beside the function, or NUMBA_CACHE_DIR")


def place_of(error: BaseException) -> str | None:
    """The last line on the way to an error that is neither ours nor a library's; None: there is none."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(LIBRARIES) and "site-packages" not in file:
            place = f"{os.path.basename(file)}, line {line}, in {frame.f_code.co_name}"
    return place


def one_line(text: str) -> str:
    """`text` without breaks, and nothing in it that a terminal would obey."""
    flat = " ".join(text.split())
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in flat)


def brief(value: object) -> str:
    """A value as Python writes it, in one line, cut short where it is long."""
    try:
        shown = one_line(repr(value))
    except Exception:  # somebody's own repr
        shown = f"a {type(value).__name__}"
    return shown if len(shown) <= MOST_SHOWN else f"{shown[: MOST_SHOWN - 3]}..."


def array_of(name: str, value: object) -> FloatArray:
    """An argument as an array of our own; a ValueError that names it when it is no numbers."""
    try:
        return np.array(real_numbers(value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers; got {brief(value)}.") from None


def listed(name: str, values: Any) -> list[Any]:
    """An argument that is a list, or the like; a `KindError` that names it when it is none."""
    try:
        return list(values)
    except TypeError:
        raise KindError(f"{name} must be a list; got {brief(values)}.") from None


def real(name: str, value: Any) -> float:
    """An argument that is one number, finite or not; a `KindError` that names it when it is none."""
    try:
        # an array of one number is a list, whatever the version of NumPy makes of it
        if isinstance(value, str | bytes) or (isinstance(value, np.ndarray) and value.ndim):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise KindError(f"{name} must be a number; got {brief(value)}.") from None


def whole(name: str, value: Any, least: int | None = None) -> int:
    """An argument that is a whole number, of at least `least`."""
    number = value if isinstance(value, int) else real(name, value)
    if not isinstance(number, int) and not number.is_integer():
        raise ValueError(f"{name} must be a whole number; got {brief(value)}.")
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least}; got {brief(value)}.")
    return int(number)


def require_callable(name: str, value: object) -> None:
    """Raise `KindError` unless an argument is a function."""
    if not callable(value):
        raise KindError(f"{name} must be a function; got {brief(value)}.")


def require_kind(name: str, value: object, kind: type[Any], example: str = "") -> None:
    """Raise `KindError` unless an argument is of that class."""
    if not isinstance(value, kind):
        such = f", such as {example}" if example else ""
        raise KindError(f"{name} must be a {kind.__name__}{such}; got {brief(value)}.")


def flag(value: Any) -> bool | None:
    """True or False, whatever array it comes in; None when it is neither."""
    try:
        number = np.asarray(value, dtype=np.float64).item()
    except (TypeError, ValueError):
        return None
    return bool(number) if number in (0.0, 1.0) else None
