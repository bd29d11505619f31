"""Equations as MathML, written when the site is built: nothing is loaded or computed where they are read."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

# docutils leaves bars to the browser, which stretches one and not the other.
BARS = {
    f"<mo{given}>{bar}</mo>": f'<mo form="{form}" stretchy="false" lspace="0" rspace="0">{bar}</mo>'
    for bar in "|\u2016"
    for given, form in ((' class="mathopen"', "prefix"), ("", "postfix"))
}
logger = logging.getLogger(__name__)


def converted(node: nodes.Element, *, as_block: bool) -> str:
    """The MathML of a formula; what cannot be converted is warned of, and so fails the build."""
    try:
        written = str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as wrong:
        logger.warning("no MathML for %r: %s", node.astext(), wrong, location=node)
        return ""
    for given, plain in BARS.items():
        written = written.replace(given, plain)
    return written


def inline(writer: Any, node: nodes.Element) -> None:
    """A formula within a line."""
    writer.body.append(converted(node, as_block=False))
    raise nodes.SkipNode  # its TeX is not written beside it


def display(writer: Any, node: nodes.Element) -> None:
    """A formula on a line of its own; on a narrow screen it is scrolled, not cut off."""
    writer.body.append(writer.starttag(node, "div", CLASS="formula", tabindex="0"))
    writer.body.append(converted(node, as_block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
