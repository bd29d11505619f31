"""The page as one HTML document: style, script and data in it. A browser needs nothing else, and may not ask.

A policy in the document itself (Content-Security-Policy) allows exactly the script and the style that are in
it, and no connections but to where it came from; a report's, none at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from typing import Any

SCRIPTS = ("dom", "charts", "maps", "systems", "sources", "cards", "playing", "run", "sweep", "main")


@cache
def _static(name: str) -> str:
    return (files("optimist.views.page") / "static" / name).read_text("utf-8")


@cache
def script() -> str:
    """All of it, in an order in which it can be read."""
    parts = "\n".join(_static(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def page(title: str, data: dict[str, Any] | None = None) -> str:
    """The page; with `data`, a report."""
    style, code = _static("page.css"), script()
    allowed = {
        "default-src": "'none'",
        "script-src": _hashed(code),
        "style-src": _hashed(style),
        "img-src": "data: blob:",
        "connect-src": "'self'" if data is None else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    parts = {
        "{{policy}}": "; ".join(f"{name} {value}" for name, value in allowed.items()),
        "{{title}}": html.escape(title),
        "{{style}}": style,
        "{{data}}": "null" if data is None else _inlined(data),
        "{{script}}": code,
    }
    text = _static("page.html")
    pieces = []
    while text:  # each place is filled once: what is put in may hold anything
        place, name = min(
            ((text.find(name), name) for name in parts if name in text), default=(len(text), "")
        )
        pieces += [text[:place], parts.get(name, "")]
        text = text[place + len(name) :]
    return "".join(pieces)


def _inlined(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
