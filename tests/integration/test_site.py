"""The documentation site is built as `make docs` builds it, leads nowhere wrong, and fetches nothing."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.pages import ROOT, pages

pytest.importorskip("sphinx", reason="the site is made by Sphinx: pip install 'optimist[docs]'")
pytest.importorskip("furo", reason="the site looks as furo makes it: pip install 'optimist[docs]'")

MODULES = {
    ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for file in (ROOT / "src").rglob("*.py")
    if re.search(r"^__all__ = ", file.read_text("utf-8"), re.MULTILINE)
}
CHROMIUM = shutil.which("chromium")  # without it the search is not tried
NOT_PUBLIC = {"optimist.systems"}  # docs/extending.md says all there is to say
LOADED = re.compile(r"<(?:script|img|iframe|audio|video|source)\b[^>]*\bsrc=\"([^\"]+)\"")
STYLED = re.compile(r"<link\b[^>]*\brel=\"(?:stylesheet|icon|preload|preconnect)\"[^>]*\bhref=\"([^\"]+)\"")
FETCHED = re.compile(r"@import\s|url\(\s*['\"]?(?:https?:)?//")


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does."""
    recipe = re.search(r"^\t\$\(BIN\)/python (-m sphinx .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    words = recipe[1].split()
    assert words[-2:] == [".", "out/docs"]
    changed = {"docs/site": str(ROOT / "docs/site"), ".": str(source), "out/docs": str(out)}
    changed["out/doctrees"] = str(out.with_name("doctrees"))
    return subprocess.run(
        [sys.executable, *(changed.get(word, word) for word in words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def test_the_site_is_whole_and_needs_nobody(tmp_path: Path) -> None:
    """One test: it is built once, whoever runs the tests side by side."""
    site = tmp_path / "html"
    made = build(ROOT, site)
    assert made.returncode == 0, made.stderr
    every_page_is_there_and_the_top_leads_to_the_first(site)
    nothing_comes_from_the_network(site)
    formulas_are_written_out(site)
    all_that_is_public_is_in_the_reference(site)
    if CHROMIUM is not None:
        search_works_without_a_server(site, CHROMIUM)


def every_page_is_there_and_the_top_leads_to_the_first(site: Path) -> None:
    for page in pages():
        assert (site / page).with_suffix(".html").exists(), page
    assert "url=docs/index.html" in (site / "index.html").read_text()
    assert (site / "searchindex.js").stat().st_size > 10_000


def nothing_comes_from_the_network(site: Path) -> None:
    """Scripts, pictures, styles and fonts: all lie in the site. Links that a reader may follow are others."""
    for file in site.rglob("*.html"):
        text = file.read_text("utf-8")
        for address in [*LOADED.findall(text), *STYLED.findall(text)]:
            assert "//" not in address, (file, address)
            if not address.startswith("data:"):
                assert (file.parent / address.partition("?")[0]).exists(), (file, address)
    for file in site.rglob("*.css"):
        assert not FETCHED.search(file.read_text("utf-8")), file


def formulas_are_written_out(site: Path) -> None:
    text = (site / "docs/theory.html").read_text("utf-8")
    assert text.count("<math") > 60
    assert text.count('display="block"') >= 20
    assert "$$" not in text


def all_that_is_public_is_in_the_reference(site: Path) -> None:
    """Whoever adds a module with `__all__` adds a line to a page of docs/api, or to a list here."""
    text = "".join(file.read_text("utf-8") for file in (site / "docs/api").glob("*.html"))
    for module in MODULES - NOT_PUBLIC:
        for name in importlib.import_module(module).__all__:
            assert name.startswith("__") or f'id="{module}.{name}"' in text, f"{module}.{name}"


def search_works_without_a_server(site: Path, browser: str) -> None:
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom"]
    address = (site / "search.html").as_uri() + "?q=rehearsal"
    ran = [browser, *words, address]
    shown = subprocess.run(ran, capture_output=True, text=True, check=True, timeout=120)
    assert 'href="docs/theory.html' in shown.stdout


def test_what_leads_nowhere_fails(tmp_path: Path) -> None:
    """Files and anchors, from README into docs and between pages; formulas; pages that nobody lists."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "# R\n\n[good](docs/a.md#here-it-is) [gone](docs/none.md) [moved](docs/a.md#there)\n"
    )
    (tmp_path / "docs/a.md").write_text(
        "# A\n\n## Here it is\n\n[no such](#nowhere) $\\unheardof$\n\n![p](p.png)\n"
    )
    (tmp_path / "docs/lost.md").write_text("# Lost\n")
    (tmp_path / "docs/index.md").write_text("# I\n\n```{toctree}\na\n../README\n```\n")
    made = build(tmp_path, tmp_path / "out" / "html")
    assert made.returncode != 0
    for place in ("docs/none.md", "there", "nowhere", "unheardof", "p.png", "lost.md"):
        assert any(place in line for line in made.stderr.splitlines() if "WARNING" in line), (
            place,
            made.stderr,
        )
    assert "here-it-is" not in made.stderr
