"""Environments by their Gymnasium id, with arguments: CartPole-v1[sutton_barto_reward=true]."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import gymnasium

from optimist.given import brief, one_line, told
from optimist.systems import SYSTEMS

SHAPE = re.compile(
    r"(?:(?P<module>[A-Za-z_][\w.]*):(?=[^\[]*-v\d+(?:\[|$)))?(?P<id>(?:[\w.-]+/)?[\w.-]*[A-Za-z][\w.-]*)(?:\[(?P<arguments>[^\[\]]*)\])?"
)
NEAR = 3  # names that are suggested


def looks_like_id(text: str) -> bool:
    """Whether `text` may be an id, with or without arguments."""
    return SHAPE.fullmatch(text) is not None


def is_registered(text: str) -> bool:
    """Whether it is an id that Gymnasium knows already; nothing is imported for it."""
    parts = SHAPE.fullmatch(text)
    return parts is not None and parts["module"] is None and parts["id"] in gymnasium.registry


def with_arguments(text: str, arguments: Sequence[str]) -> str:
    """The problem `text` with arguments, each as KEY=VALUE."""
    for one in arguments:
        if not re.fullmatch(r"[A-Za-z_]\w*=[^\[\],]*", one):
            raise ValueError(f"--env-arg must be KEY=VALUE, without commas or brackets; got {one!r}.")
    if not arguments:
        return text
    if not looks_like_id(text) or text in SYSTEMS:
        raise ValueError(f"--env-arg must come with the id of a Gymnasium environment; got {text!r}.")
    return f"{text}[{','.join(arguments)}]"


def require_id(text: str) -> None:
    """Raise ValueError, with near names, unless Gymnasium knows the id, or a module is to be asked first."""
    parts = SHAPE.fullmatch(text)
    if parts is not None and (parts["module"] is not None or parts["id"] in gymnasium.registry):
        return
    known = [*SYSTEMS, *gymnasium.registry]
    lower = {name.lower(): name for name in known}
    asked = (text if parts is None else parts["id"]).lower()
    near = [lower[name] for name in get_close_matches(asked, lower, NEAR, 0.5)]
    hint = f" Near: {', '.join(near)}." if near else ""
    raise ValueError(
        f"The problem must be one of {', '.join(SYSTEMS)}, an id that Gymnasium knows, or your own as "
        f"FILE.py:FUNCTION; got {text!r}.{hint}"
    )


def make(text: str) -> gymnasium.Env[Any, Any]:
    """The environment of an id with arguments; what goes wrong in there is said in one sentence."""
    require_id(text)
    parts = SHAPE.fullmatch(text)
    assert parts is not None
    if parts["module"] is not None:
        try:
            import_module(parts["module"])
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"The module {parts['module']} must be importable; got {told(error)}."
            ) from error
        require_id(text.partition(":")[2])
    arguments = dict(_argument(one) for one in (parts["arguments"] or "").split(",") if one)
    try:
        made: gymnasium.Env[Any, Any] = gymnasium.make(parts["id"], **arguments)
    except (Exception, SystemExit) as error:
        said = one_line(str(error)).rstrip(".")
        raise ValueError(f"The environment {brief(text)} must be possible to make; got {said}.") from error
    return made


def _argument(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, {"True": True, "False": False, "None": None}.get(value, value)
