"""The documentation site: every page of `docs/` and the project's own, from the root of the repository.

`make docs` writes it to `out/docs`. Whatever Sphinx warns of fails it: a link or an anchor that leads
nowhere, a page that no list of contents has, a docstring that cannot be read. Why so:
docs/decisions/0021-docs-site.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

# All of it at once: autodoc bends pydantic's annotations, and what is imported after that fails.
import optimist.paper  # noqa: F401

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for `mathml`

project = "Optimist"
copyright = "the authors of Optimist"  # noqa: A001  (Sphinx calls it so)
html_title = "Optimist"
html_theme = "furo"
root_doc = "docs/index"
include_patterns = ["docs/**", "benchmarks/**", "*.md"]
exclude_patterns = [".*", "out", "runs", "src", "tests", "build", "dist", "**/__pycache__", "docs/site"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]

# Markdown as GitHub reads it: the same pages serve both.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
html_math_renderer = "mathml"

# Docstrings are prose: a name in back quotes is linked where it is documented, and is code everywhere.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "exclude-members": "model_config"}
autodoc_preserve_defaults = True
ALIASES = ("ArrayLike", "BoolArray", "FloatArray", "IntArray", "Dynamics", "OnSweep", "Reward", "Step")
autodoc_type_aliases = {name: name for name in (*ALIASES, "Terminal")}  # not what numpy makes of them
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
add_module_names = False
toc_object_entries_show_parents = "hide"

# Nothing is fetched when a page is read.
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]  # leads from the top of the site to its first page
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}


def plain_aliases(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """In a union an alias is shown as the object that stands for it; its name is enough."""
    bare = [text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns)]
    return bare[0], bare[1]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", plain_aliases)
